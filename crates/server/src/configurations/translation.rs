//! How a setting of one version is said to another.

use super::entry::{Entry, Kind};
use super::history::{Period, branch};
use super::libraries::Libraries;
use crate::settings::{Normal, normalise};
use deltabench_model::units::{to_f64, to_u64};

/// Size of a segment of WAL, unless initdb was told otherwise.
const SEGMENT_MB: u64 = 16;

/// A setting that got another name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Renamed {
    /// Its name before.
    pub(super) old: &'static str,
    /// Its name since.
    pub(super) new: &'static str,
    /// The first version with the new name, as the server counts.
    pub(super) since: u32,
    /// What the value becomes.
    pub(super) how: How,
}

/// What the value of a renamed setting becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Same,
    /// Segments of WAL become megabytes.
    Segments,
    /// Segments of WAL between two checkpoints become megabytes of WAL kept at most.
    Checkpoints,
}

/// Source: release notes of 9.3, 9.5, 10, 13, 16 and 18.
pub(super) const RENAMED: &[Renamed] = &[
    renamed(
        "replication_timeout",
        "wal_sender_timeout",
        90_300,
        How::Same,
    ),
    renamed(
        "checkpoint_segments",
        "max_wal_size",
        90_500,
        How::Checkpoints,
    ),
    renamed(
        "min_parallel_relation_size",
        "min_parallel_table_scan_size",
        100_000,
        How::Same,
    ),
    renamed("wal_keep_segments", "wal_keep_size", 130_000, How::Segments),
    renamed(
        "force_parallel_mode",
        "debug_parallel_query",
        160_000,
        How::Same,
    ),
    renamed("ssl_ecdh_curve", "ssl_groups", 180_000, How::Same),
];

const fn renamed(old: &'static str, new: &'static str, since: u32, how: How) -> Renamed {
    Renamed {
        old,
        new,
        since,
        how,
    }
}

/// A setting under the name that a version has for it.
#[derive(Clone, Copy)]
pub(super) struct Renaming {
    renamed: &'static Renamed,
    /// From the old name to the new one, or back.
    to_new: bool,
}

/// What a version calls a setting that others call `name`; `None` if it does not call it otherwise.
pub(super) fn renaming(name: &str, version_num: u32) -> Option<Renaming> {
    RENAMED.iter().find_map(|renamed| {
        let to_new = version_num >= renamed.since;
        let asked = if to_new { renamed.old } else { renamed.new };
        (asked == name).then_some(Renaming { renamed, to_new })
    })
}

impl Renaming {
    /// What the version calls it.
    pub(super) fn name(self) -> &'static str {
        if self.to_new {
            self.renamed.new
        } else {
            self.renamed.old
        }
    }

    /// Whether the name that the version does not have was for an amount of memory.
    pub(super) fn is_from_memory(self) -> bool {
        !self.to_new && self.renamed.how != How::Same
    }
}

/// When there was a setting that this version does not have, in words.
pub(super) fn when(period: Period, version_num: u32) -> String {
    let (name, version) = (period.name, branch(version_num));
    match (period.covers(version_num), period.first, period.last) {
        (false, Some(first), None) => format!("{version} has no {name}; {first} introduced it"),
        (false, None, Some(last)) => {
            format!("{version} has no {name}; {last} was the last to have it")
        }
        (false, Some(first), Some(last)) if first == last => {
            format!("{version} has no {name}; only {first} has it")
        }
        (false, Some(first), Some(last)) => {
            format!("{version} has no {name}; only {first} to {last} have it")
        }
        // Later releases of the branch have it.
        _ => format!("this release of {version} has no {name}"),
    }
}

/// A value under the setting's other name: the value, and why it is that; `None` if the value is none.
///
/// Shape: `completion_target` is the `checkpoint_completion_target` that the server will have.
pub(super) fn convert(
    renaming: Renaming,
    value: &str,
    version_num: u32,
    completion_target: f64,
) -> Option<(String, String)> {
    let called = renaming.name();
    let plain = format!("{} calls it {called}", branch(version_num));
    let (value, more) = match renaming.renamed.how {
        How::Same => (value.to_owned(), String::new()),
        How::Segments => {
            let value = if renaming.to_new {
                let segments: u64 = value.trim().parse().ok()?;
                format!("{}MB", segments.checked_mul(SEGMENT_MB)?)
            } else {
                size_mb(value)?.div_ceil(SEGMENT_MB).to_string()
            };
            (value, format!("; a segment is {SEGMENT_MB} MB"))
        }
        How::Checkpoints => {
            let cycles = cycles(version_num, completion_target);
            let (value, by) = if renaming.to_new {
                let segments: u64 = value.trim().parse().ok()?;
                let least = to_u64((to_f64(segments) * cycles).ceil());
                // The server divides and rounds down, and 81 / 2.7 is less than 30 to it.
                let short = to_f64(least) / cycles < to_f64(segments);
                let kept = least.checked_add(u64::from(short))?;
                (format!("{}MB", kept.checked_mul(SEGMENT_MB)?), "x")
            } else {
                let segments = to_f64(size_mb(value)? / SEGMENT_MB) / cycles;
                (to_u64(segments.floor().max(1.0)).to_string(), "/")
            };
            let more = format!(
                "; checkpoints stay as far apart: segments of {SEGMENT_MB} MB {by} {cycles:.1}"
            );
            (value, more)
        }
    };
    Some((value, format!("{plain}{more}")))
}

/// How much more WAL a server keeps than is written between two checkpoints.
///
/// The release notes of 9.5 give `max_wal_size = 3 * checkpoint_segments * 16MB` as approximately equivalent.
/// This is the exact inverse of what the server does with it, so that checkpoints come after the same WAL: a
/// factor of 2 + target before 11, which kept the WAL of two cycles, and of 1 + target since. The 3 would
/// put them 58 % farther apart there.
///
/// Source: CalculateCheckpointSegments in xlog.c of 9.5 to 18; before 9.5 the manual's "not more than (2 +
/// checkpoint_completion_target) * checkpoint_segments + 1 files".
fn cycles(version_num: u32, completion_target: f64) -> f64 {
    let kept = if version_num < 110_000 { 2.0 } else { 1.0 };
    kept + completion_target
}

/// Whole megabytes of a setting whose unit without one is the megabyte.
fn size_mb(value: &str) -> Option<u64> {
    match normalise(value, Some("MB")) {
        Normal::Bytes(bytes) if bytes >= 0.0 => Some(to_u64((bytes / 1_048_576.0).ceil())),
        _ => None,
    }
}

/// One way in which configurations are fitted to a version, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// What is asked for, and where it is not possible.
    pub asked: String,
    pub becomes: String,
}

/// Everything that [`adapt`](crate::adapt) does but leave out what a version does not have; in Markdown.
pub fn translations() -> Vec<Translation> {
    let renamed = RENAMED.iter().flat_map(|renamed| {
        let since = branch(renamed.since);
        let (old, new) = (renamed.old, renamed.new);
        let (forth, back) = match renamed.how {
            How::Same => (String::new(), String::new()),
            How::Segments => (
                format!(", segments x {SEGMENT_MB} MB"),
                format!(", MB / {SEGMENT_MB}"),
            ),
            How::Checkpoints => (
                format!(", segments x (2 + target, since 11: 1 + target) x {SEGMENT_MB} MB"),
                format!(", MB / {SEGMENT_MB} / (2 + target)"),
            ),
        };
        [
            (format!("`{old}` since {since}"), format!("`{new}`{forth}")),
            (format!("`{new}` before {since}"), format!("`{old}`{back}")),
        ]
    });
    let rules = RULES
        .iter()
        .map(|rule| (rule.asked.to_owned(), rule.becomes.to_owned()));
    renamed
        .chain(rules)
        .map(|(asked, becomes)| Translation { asked, becomes })
        .collect()
}

/// A setting that a server has, and what is asked of it.
pub(super) struct Case<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    /// Absent if the server has it and does not list it.
    pub(super) entry: Option<&'a Entry>,
    pub(super) version_num: u32,
    pub(super) libraries: &'a Libraries,
}

/// What becomes of a value that a server does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// Another value, and why.
    Becomes(String, String),
    /// The setting is left out, and why.
    Dropped(String),
}

/// A rule for values that some versions do not take.
pub(super) struct Rule {
    /// Settings, values and versions it is for, as the guide has it.
    pub(super) asked: &'static str,
    /// What it does, as the guide has it.
    pub(super) becomes: &'static str,
    pub(super) fit: fn(&Case<'_>) -> Option<Fit>,
}

/// Rules in order; the first that has something to say is taken.
pub(super) const RULES: &[Rule] = &[
    Rule {
        asked: "`wal_compression = pglz` before 15",
        becomes: "`on`, which is pglz there",
        fit: pglz,
    },
    Rule {
        asked: "`wal_compression = lz4` or `zstd` before 15",
        becomes: "dropped",
        fit: newer_compression,
    },
    Rule {
        asked: "`vacuum_cost_delay`, `autovacuum_vacuum_cost_delay` of part of a millisecond before 12",
        becomes: "rounded up to whole milliseconds",
        fit: cost_delay,
    },
    Rule {
        asked: "amounts such as `1.5GB` of whole-number settings before 12, `512B` before 11",
        becomes: "the same amount in a smaller unit",
        fit: fraction,
    },
    Rule {
        asked: "`bgwriter_lru_maxpages` above 1000 before 10",
        becomes: "1000, the largest value there",
        fit: too_large,
    },
    Rule {
        asked: "`effective_io_concurrency`, `maintenance_io_concurrency` on a platform without prefetching",
        becomes: "0, the largest value there",
        fit: too_large,
    },
    Rule {
        asked: "`wal_level = replica` before 9.6",
        becomes: "`hot_standby`, its name then",
        fit: wal_level,
    },
    Rule {
        asked: "`password_encryption = on` since 14",
        becomes: "`md5`, its meaning then",
        fit: password_encryption,
    },
    Rule {
        asked: "`dynamic_shared_memory_type = none` since 12",
        becomes: "dropped",
        fit: no_shared_memory,
    },
    Rule {
        asked: "a library of `shared_preload_libraries` that the installation does not have",
        becomes: "removed from the list, with the library's settings",
        fit: preloaded,
    },
    Rule {
        asked: "`jit = on` where the build has no LLVM",
        becomes: "unchanged, with a note: the server compiles nothing",
        fit: jit,
    },
];

fn pglz(case: &Case<'_>) -> Option<Fit> {
    let applies = compresses_by_boolean(case) && case.value.eq_ignore_ascii_case("pglz");
    applies.then(|| {
        Fit::Becomes(
            "on".into(),
            format!("in {} `on` means pglz", case.version()),
        )
    })
}

fn newer_compression(case: &Case<'_>) -> Option<Fit> {
    let newer = ["lz4", "zstd"]
        .iter()
        .any(|word| case.value.eq_ignore_ascii_case(word));
    (compresses_by_boolean(case) && newer).then(|| {
        let (version, value) = (case.version(), case.value);
        Fit::Dropped(format!(
            "{version} has no wal_compression = {value}; 15 introduced it"
        ))
    })
}

fn compresses_by_boolean(case: &Case<'_>) -> bool {
    case.name == "wal_compression" && case.kind() == Some(Kind::Boolean)
}

fn cost_delay(case: &Case<'_>) -> Option<Fit> {
    let named = matches!(
        case.name,
        "vacuum_cost_delay" | "autovacuum_vacuum_cost_delay"
    );
    if !named || case.kind() != Some(Kind::Integer) {
        return None;
    }
    let Normal::Microseconds(delay) = normalise(case.value, Some("ms")) else {
        return None;
    };
    let whole = (delay / 1e3).ceil();
    let as_it_is = case
        .value
        .trim()
        .trim_end_matches("ms")
        .trim_end()
        .parse::<i64>()
        .is_ok();
    (!as_it_is && delay > 0.0).then(|| {
        let why = format!(
            "{} accepts only whole milliseconds; 12 introduced fractions",
            case.version()
        );
        Fit::Becomes(format!("{}ms", to_u64(whole)), why)
    })
}

fn fraction(case: &Case<'_>) -> Option<Fit> {
    let value = case.value.trim();
    let bytes_unit = value.ends_with(|c: char| c.is_ascii_digit()) || !value.ends_with('B');
    let plain_bytes = !bytes_unit
        && value
            .trim_end_matches('B')
            .ends_with(|c: char| c.is_ascii_digit());
    let too_fine = value.contains('.') || (plain_bytes && case.version_num < 110_000);
    if case.version_num >= 120_000 || case.kind() != Some(Kind::Integer) || !too_fine {
        return None;
    }
    let text = match normalise(value, None) {
        Normal::Bytes(bytes) if bytes % 1024.0 < 0.5 => format!("{}kB", to_u64(bytes / 1024.0)),
        Normal::Microseconds(time) if time >= 1000.0 => format!("{}ms", to_u64(time / 1e3)),
        _ => return None,
    };
    let why = format!("{} reads only whole numbers", case.version());
    Some(Fit::Becomes(text, why))
}

fn too_large(case: &Case<'_>) -> Option<Fit> {
    let named = matches!(
        case.name,
        "bgwriter_lru_maxpages" | "effective_io_concurrency" | "maintenance_io_concurrency"
    );
    let most = case.entry?.maximum.filter(|_| named)?;
    let asked: f64 = case.value.trim().parse().ok()?;
    (asked > most).then(|| {
        let most = to_u64(most);
        let why = format!("{} accepts at most {most}", case.version());
        Fit::Becomes(most.to_string(), why)
    })
}

fn wal_level(case: &Case<'_>) -> Option<Fit> {
    let newer = case.value.eq_ignore_ascii_case("replica");
    (case.name == "wal_level" && case.version_num < 90_600 && newer).then(|| {
        let why = format!("{} calls it hot_standby", case.version());
        Fit::Becomes("hot_standby".into(), why)
    })
}

fn password_encryption(case: &Case<'_>) -> Option<Fit> {
    let on = normalise(case.value, None) == Normal::Boolean(true) || case.value.trim() == "1";
    (case.name == "password_encryption" && case.version_num >= 140_000 && on).then(|| {
        let why = format!("{} accepts only names; `on` meant md5", case.version());
        Fit::Becomes("md5".into(), why)
    })
}

fn no_shared_memory(case: &Case<'_>) -> Option<Fit> {
    let named = case.name == "dynamic_shared_memory_type";
    let none = case.value.eq_ignore_ascii_case("none");
    (named && none && case.version_num >= 120_000).then(|| {
        let version = case.version();
        Fit::Dropped(format!(
            "{version} requires shared memory here; 11 was the last version without that rule"
        ))
    })
}

fn preloaded(case: &Case<'_>) -> Option<Fit> {
    if case.name != "shared_preload_libraries" {
        return None;
    }
    let (there, missing) = case.libraries.sort(case.value);
    if missing.is_empty() {
        return None;
    }
    let why = format!("the installation has no {}", missing.join(", "));
    Some(if there.is_empty() {
        Fit::Dropped(why)
    } else {
        Fit::Becomes(there.join(", "), why)
    })
}

fn jit(case: &Case<'_>) -> Option<Fit> {
    let on =
        matches!(normalise(case.value, None), Normal::Boolean(true)) || case.value.trim() == "1";
    let without = case.name == "jit" && on && case.libraries.lack("llvmjit");
    without.then(|| {
        let why = "the build has no LLVM: the server compiles nothing".to_owned();
        Fit::Becomes(case.value.to_owned(), why)
    })
}

impl Case<'_> {
    fn version(&self) -> String {
        branch(self.version_num)
    }

    fn kind(&self) -> Option<Kind> {
        self.entry.map(|entry| entry.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configurations::history;

    fn entry(kind: Kind, maximum: Option<f64>) -> Entry {
        Entry {
            name: "x".into(),
            context: "user".into(),
            kind,
            minimum: None,
            maximum,
        }
    }

    fn fit(
        name: &str,
        value: &str,
        kind: Kind,
        maximum: Option<f64>,
        version_num: u32,
    ) -> Option<Fit> {
        let entry = entry(kind, maximum);
        let case = Case {
            name,
            value,
            entry: Some(&entry),
            version_num,
            libraries: &Libraries::unknown(),
        };
        RULES.iter().find_map(|rule| (rule.fit)(&case))
    }

    #[test]
    fn values_that_a_version_does_not_take_become_others() {
        use Kind::{Boolean, Enum, Integer};
        for (name, value, kind, maximum, version_num, wanted) in [
            ("wal_compression", "pglz", Boolean, None, 140_000, "on"),
            (
                "autovacuum_vacuum_cost_delay",
                "0.5ms",
                Integer,
                None,
                110_000,
                "1ms",
            ),
            ("vacuum_cost_delay", "1.5", Integer, None, 90_624, "2ms"),
            ("vacuum_cost_delay", "500us", Integer, None, 110_000, "1ms"),
            ("work_mem", "1.5GB", Integer, None, 110_000, "1572864kB"),
            ("work_mem", "2048B", Integer, None, 100_000, "2kB"),
            (
                "checkpoint_timeout",
                "1.5min",
                Integer,
                None,
                110_000,
                "90000ms",
            ),
            (
                "bgwriter_lru_maxpages",
                "2000",
                Integer,
                Some(1000.0),
                90_624,
                "1000",
            ),
            (
                "effective_io_concurrency",
                "200",
                Integer,
                Some(0.0),
                140_000,
                "0",
            ),
            ("wal_level", "replica", Enum, None, 90_500, "hot_standby"),
            ("password_encryption", "on", Enum, None, 140_000, "md5"),
        ] {
            match fit(name, value, kind, maximum, version_num) {
                Some(Fit::Becomes(became, why)) => {
                    assert_eq!(became, wanted, "{name} {value}");
                    assert!(why.contains(&branch(version_num)), "{why}");
                }
                other => panic!("{name} {value}: {other:?}"),
            }
        }
        for (name, value, kind, version_num) in [
            ("wal_compression", "lz4", Boolean, 140_000),
            ("wal_compression", "zstd", Boolean, 90_624),
            ("dynamic_shared_memory_type", "none", Enum, 120_000),
        ] {
            let dropped = fit(name, value, kind, None, version_num);
            assert!(matches!(dropped, Some(Fit::Dropped(_))), "{name} {value}");
        }
    }

    #[test]
    fn values_that_a_version_takes_stay() {
        use Kind::{Boolean, Enum, Integer, Real};
        for (name, value, kind, maximum, version_num) in [
            ("wal_compression", "on", Boolean, None, 140_000),
            ("wal_compression", "lz4", Enum, None, 150_000),
            ("autovacuum_vacuum_cost_delay", "1ms", Integer, None, 90_624),
            ("autovacuum_vacuum_cost_delay", "-1", Integer, None, 90_624),
            ("autovacuum_vacuum_cost_delay", "0", Integer, None, 90_624),
            ("autovacuum_vacuum_cost_delay", "0.5ms", Real, None, 120_000),
            ("work_mem", "64MB", Integer, None, 90_624),
            ("work_mem", "1.5GB", Integer, None, 120_000),
            ("random_page_cost", "1.1", Real, None, 90_624),
            (
                "bgwriter_lru_maxpages",
                "1000",
                Integer,
                Some(1000.0),
                90_624,
            ),
            (
                "bgwriter_lru_maxpages",
                "2000",
                Integer,
                Some(1_073_741_823.0),
                100_000,
            ),
            ("max_connections", "99999999", Integer, Some(1000.0), 90_624),
            ("wal_level", "replica", Enum, None, 90_600),
            ("password_encryption", "on", Boolean, None, 90_624),
        ] {
            assert_eq!(
                fit(name, value, kind, maximum, version_num),
                None,
                "{name} {value}"
            );
        }
    }

    fn converted(name: &str, value: &str, version_num: u32, target: f64) -> Option<String> {
        let renaming = renaming(name, version_num).unwrap();
        convert(renaming, value, version_num, target).map(|(value, _)| value)
    }

    /// What a server makes of `max_wal_size`: segments between checkpoints.
    fn distance(megabytes: u64, version_num: u32, target: f64) -> f64 {
        (to_f64(megabytes / 16) / cycles(version_num, target)).floor()
    }

    #[test]
    fn checkpoints_stay_as_far_apart_in_every_version() {
        for (version_num, wanted) in [
            (90_624, "2976MB"),
            (100_000, "2976MB"),
            (110_000, "1952MB"),
            (180_006, "1952MB"),
        ] {
            let size = converted("checkpoint_segments", "64", version_num, 0.9);
            assert_eq!(size.as_deref(), Some(wanted));
        }
        for version_num in [90_500, 110_000] {
            for target in [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0] {
                for segments in 1..300 {
                    let asked = segments.to_string();
                    let size = converted("checkpoint_segments", &asked, version_num, target);
                    let size: u64 = size.unwrap().trim_end_matches("MB").parse().unwrap();
                    let got = distance(size, version_num, target);
                    let wrong = format!("{segments} {target} {version_num}: {got}");
                    assert!((got - to_f64(segments)).abs() < 0.5, "{wrong}");
                }
            }
        }
        let back = |value| converted("max_wal_size", value, 90_426, 0.9);
        assert_eq!(back("2976MB").as_deref(), Some("64"));
        assert_eq!(back("32MB").as_deref(), Some("1"));
        assert_eq!(back("lots"), None);
    }

    #[test]
    fn segments_become_megabytes_and_back() {
        for (name, value, version_num, wanted) in [
            ("wal_keep_segments", "10", 130_000, Some("160MB")),
            ("wal_keep_size", "1GB", 120_000, Some("64")),
            ("wal_keep_size", "100", 120_000, Some("7")),
            ("force_parallel_mode", "regress", 160_000, Some("regress")),
            ("wal_keep_segments", "ten", 130_000, None),
        ] {
            let value = converted(name, value, version_num, 0.5);
            assert_eq!(value.as_deref(), wanted, "{name}");
        }
    }

    #[test]
    fn a_version_has_one_name_for_a_setting() {
        for (name, version_num, wanted) in [
            ("checkpoint_segments", 90_500, Some("max_wal_size")),
            ("checkpoint_segments", 90_400, None),
            ("max_wal_size", 90_400, Some("checkpoint_segments")),
            ("debug_parallel_query", 150_000, Some("force_parallel_mode")),
            ("work_mem", 90_400, None),
        ] {
            let other = renaming(name, version_num).map(Renaming::name);
            assert_eq!(other, wanted, "{name}");
        }
        for renamed in RENAMED {
            let periods = [renamed.old, renamed.new].map(|name| history::period(name).unwrap());
            let covers = |version_num| periods.map(|period| period.covers(version_num));
            let before = history::number(periods[0].last.unwrap()).unwrap();
            assert_eq!(covers(renamed.since), [false, true], "{}", renamed.old);
            assert_eq!(covers(before), [true, false], "{}", renamed.old);
        }
    }
}
