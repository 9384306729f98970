//! What differs between two libraries besides what was asked.

use deltabench_compare::fairness::only_in;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::{Build, Installation, Setting};
use deltabench_model::work::rocksdb::{BLOCK_CACHE, BlockCache};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of one target of the run.
#[derive(Debug, Clone)]
pub struct EngineFacts<'a> {
    /// Its name in sentences, for example `base` or `rocksdb:10.2.1`.
    pub name: String,
    pub installation: &'a Installation,
    /// Options in force, by `SECTION.name`; empty where it does not tell.
    pub settings: &'a [Setting],
    /// Options that were asked for on this target alone, by their names; later ones win.
    pub asked: &'a [(String, String)],
    /// Options that its version does not know and that were left out, with why.
    pub left_out: &'a [(String, String)],
    /// The block cache that was made, in words; empty where it does not tell.
    pub cache: &'a str,
    /// The block cache that was asked for.
    pub wanted: BlockCache,
}

/// Everything that differs, in a fixed order: build, options, block cache.
///
/// Shape: as [`deltabench_compare::fairness::fairness`]. Kinds: `same-binary`, `build-unknown`,
///        `compiler-differs`, `compression-differs`, `options-left-out`, `options-differ`,
///        `options-differ-harmless`,
///        `options-only-in-base`, `options-only-in-candidate`, `block-cache-not-as-asked`,
///        `block-cache-differs`.
/// Source: `.comment` of the library; the options file that RocksDB writes beside a database.
pub fn fairness(base: &EngineFacts<'_>, candidate: &EngineFacts<'_>) -> Vec<Finding> {
    let mut findings = builds(base, candidate);
    findings.extend(left_out(base, candidate));
    findings.extend(options(base, candidate));
    findings.extend(caches(base, candidate));
    findings
}

fn builds(base: &EngineFacts<'_>, candidate: &EngineFacts<'_>) -> Vec<Finding> {
    let hash = |side: &EngineFacts<'_>| side.installation.binary_sha256.clone();
    if !hash(base).is_empty() && hash(base) == hash(candidate) {
        let what = if base.asked == candidate.asked {
            "this is an A/A comparison"
        } else {
            "only the options that you asked for differ"
        };
        let text = format!(
            "{} and {} are the same build: {what}",
            base.name, candidate.name
        );
        return vec![Finding::new(FindingKind::SameBinary, Severity::Note, text)];
    }
    let (left, right) = match (&base.installation.build, &candidate.installation.build) {
        (Some(left), Some(right)) => (left, right),
        (left, _) => {
            let name = if left.is_none() {
                &base.name
            } else {
                &candidate.name
            };
            let text = format!(
                "deltabench does not know how {name} was compiled, so it did not \
                                compare builds"
            );
            return vec![Finding::new(
                FindingKind::BuildUnknown,
                Severity::Note,
                text,
            )];
        }
    };
    let compilers = (left.compiler != right.compiler).then(|| {
        let text = format!(
            "{} was compiled by {}, {} by {}: the run measures the compilers, too",
            base.name,
            or_unknown(&left.compiler),
            candidate.name,
            or_unknown(&right.compiler)
        );
        Finding::new(FindingKind::CompilerDiffers, Severity::Confounder, text)
    });
    let libraries = compression(base, candidate, left, right);
    compilers.into_iter().chain(libraries).collect()
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() {
        "an unknown compiler"
    } else {
        text
    }
}

/// Compression libraries that only one of the two has; what is compressed is compressed by lz4 alone.
fn compression(
    base: &EngineFacts<'_>,
    candidate: &EngineFacts<'_>,
    left: &Build,
    right: &Build,
) -> Option<Finding> {
    let known = |build: &Build| -> Option<BTreeSet<String>> {
        let list = build.configure.strip_prefix("compression:")?;
        Some(list.split(',').map(|name| name.trim().to_owned()).collect())
    };
    let (left, right) = (known(left)?, known(right)?);
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).cloned().collect()
    };
    let (left_only, right_only) = (only(&left, &right), only(&right, &left));
    let text = only_in(&base.name, &candidate.name, &left_only, &right_only);
    let severity = match left_only
        .iter()
        .chain(&right_only)
        .any(|name| name == "lz4")
    {
        true => Severity::Confounder,
        false => Severity::Note,
    };
    (!text.is_empty()).then(|| {
        let text = format!("compression libraries differ: {text}");
        Finding::new(FindingKind::own("compression-differs"), severity, text)
    })
}

/// Options that were asked for and that a version does not know. What both lack differs in neither.
fn left_out(base: &EngineFacts<'_>, candidate: &EngineFacts<'_>) -> Vec<Finding> {
    let lacks = |side: &EngineFacts<'_>, name: &str| side.left_out.iter().any(|(n, _)| n == name);
    let of = |side: &EngineFacts<'_>, other: &EngineFacts<'_>| {
        let alone = side.left_out.iter().filter(|(name, _)| !lacks(other, name));
        let names: Vec<&str> = alone.map(|(name, _)| name.as_str()).collect();
        (!names.is_empty()).then(|| {
            let text = format!(
                "{} does not know these options of {}, so it runs without them: {}",
                side.name,
                other.name,
                names.join(", ")
            );
            Finding::new(
                FindingKind::own("options-left-out"),
                Severity::Confounder,
                text,
            )
        })
    };
    let alone = [of(base, candidate), of(candidate, base)];
    let both: Vec<&str> = base
        .left_out
        .iter()
        .filter(|(name, _)| lacks(candidate, name))
        .map(|(name, _)| name.as_str())
        .collect();
    let neither = (!both.is_empty()).then(|| {
        let text = format!(
            "left out of both {} and {}, because at least one does not know them: {}",
            base.name,
            candidate.name,
            both.join(", ")
        );
        Finding::new(FindingKind::own("options-left-out"), Severity::Note, text)
    });
    alone.into_iter().flatten().chain(neither).collect()
}

/// Options that say where things are, which version it is, or what is written to the log.
const IGNORED: [&str; 8] = [
    "rocksdb_version",
    "options_file_version",
    "db_log_dir",
    "wal_dir",
    "db_paths",
    "cf_paths",
    "db_host_id",
    "block_cache",
];

/// Options that hardly move numbers: the log and the manifest of the library, and when it prints statistics.
const HARMLESS: [&str; 13] = [
    "info_log_level",
    "keep_log_file_num",
    "log_file_time_to_roll",
    "log_readahead_size",
    "max_log_file_size",
    "max_manifest_file_size",
    "persist_stats_to_disk",
    "recycle_log_file_num",
    "stats_dump_period_sec",
    "stats_history_buffer_size",
    "stats_persist_period_sec",
    "manifest_preallocation_size",
    "write_dbid_to_manifest",
];

/// Options in force.
fn options(base: &EngineFacts<'_>, candidate: &EngineFacts<'_>) -> Vec<Finding> {
    let (left, right) = (by_name(base), by_name(candidate));
    // A side whose options were not read says nothing about the other.
    if left.is_empty() || right.is_empty() {
        return Vec::new();
    }
    let (mut differ, mut harmless) = (Vec::new(), Vec::new());
    for (name, one) in &left {
        let Some(other) = right.get(name).filter(|other| !same(one, other)) else {
            continue;
        };
        if name == "filter_policy" && both_bloom(one, other) {
            continue;
        }
        if asked(base, name) != asked(candidate, name) {
            continue;
        }
        let text = format!(
            "{name} {} in {}, {} in {}",
            shown(one),
            base.name,
            shown(other),
            candidate.name
        );
        match HARMLESS.contains(&option(name)) {
            true => harmless.push(text),
            false => differ.push(text),
        }
    }
    let groups = [
        (
            FindingKind::own("options-differ"),
            Severity::Confounder,
            "options differ that you did not set".to_owned(),
            differ,
        ),
        (
            FindingKind::own("options-differ-harmless"),
            Severity::Note,
            "options differ that hardly change results".to_owned(),
            harmless,
        ),
        (
            FindingKind::own("options-only-in-base"),
            Severity::Note,
            format!("options only in {}", base.name),
            alone(&left, &right),
        ),
        (
            FindingKind::own("options-only-in-candidate"),
            Severity::Note,
            format!("options only in {}", candidate.name),
            alone(&right, &left),
        ),
    ];
    groups
        .into_iter()
        .filter(|(_, _, _, items)| !items.is_empty())
        .map(|(kind, severity, before, items)| {
            let listed = match kind.word().starts_with("options-only") {
                true => first_of(&items),
                false => items.join("; "),
            };
            Finding::new(kind, severity, format!("{before}: {listed}"))
        })
        .collect()
}

/// Names of options that the first has and the second has not.
fn alone(one: &ByName<'_>, other: &ByName<'_>) -> Vec<String> {
    let names = one.keys().filter(|name| !other.contains_key(*name));
    names.cloned().collect()
}

/// Names of options that a version has alone, as many as a sentence has room for.
const NAMED: usize = 8;

fn first_of(names: &[String]) -> String {
    let told: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", told.join("; "))
}

/// Values by the names that are told: without their section, since no option is in two, and field by field
/// where a value has fields: newer versions have more of them.
type ByName<'a> = BTreeMap<String, &'a str>;

fn by_name<'a>(side: &EngineFacts<'a>) -> ByName<'a> {
    let all = side.settings.iter();
    all.map(|setting| (last_part(&setting.name), setting.value.as_str()))
        .filter(|(name, _)| !IGNORED.contains(name))
        .flat_map(|(name, value)| fields(name, value))
        .collect()
}

/// `{level=3;strategy=0;}` of `compression_opts` as `compression_opts.level` and `compression_opts.strategy`;
/// `id`, which says what an object is, under the name itself.
fn fields<'a>(name: &str, value: &'a str) -> Vec<(String, &'a str)> {
    let inner = value
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let Some(inner) = inner else {
        return vec![(name.to_owned(), value)];
    };
    let mut depth = 0_u32;
    let parts = inner.split(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ';' && depth == 0
    });
    parts
        .filter_map(|part| part.split_once('='))
        .map(|(field, value)| match field.trim() {
            "id" => (name.to_owned(), value),
            field => (format!("{name}.{field}"), value),
        })
        .collect()
}

/// `DBOptions.max_open_files` without its section; `TableOptions/BlockBasedTable.x` likewise.
fn last_part(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, last)| last)
}

/// The option that a field is of.
fn option(name: &str) -> &str {
    name.split_once('.').map_or(name, |(option, _)| option)
}

/// What was asked for on this side alone; the last one wins.
fn asked<'a>(side: &EngineFacts<'a>, name: &str) -> Option<&'a str> {
    let mut all = side.asked.iter().rev();
    // `block_based_table_factory.block_size` is `block_size` in the file.
    let is = |asked: &str| asked == name || last_part(asked) == option(name);
    all.find(|(asked, _)| is(asked))
        .map(|(_, value)| value.as_str())
}

/// Equal as written, or as numbers.
fn same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    one.trim() == other.trim()
        || number(one)
            .zip(number(other))
            .is_some_and(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()))
}

/// Versions before 7 write `rocksdb.BuiltinBloomFilter` for what later ones write as `bloomfilter:10:false`;
/// its bits are among the options that are asked for.
fn both_bloom(one: &str, other: &str) -> bool {
    let named = |text: &str| text.to_lowercase().contains("bloom");
    let silent = |text: &str| text.starts_with("rocksdb.");
    named(one) && named(other) && (silent(one) || silent(other))
}

fn shown(value: &str) -> &str {
    if value.trim().is_empty() {
        "empty"
    } else {
        value
    }
}

/// A cache that is not the one asked for, and two that were made in other ways.
fn caches(base: &EngineFacts<'_>, candidate: &EngineFacts<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [base, candidate]
        .into_iter()
        .filter(|side| !side.cache.is_empty() && !side.cache.starts_with(side.wanted.word()))
        .map(|side| {
            let text = format!(
                "{} has the block cache {}, not {} as requested",
                side.name,
                side.cache,
                side.wanted.word()
            );
            Finding::new(
                FindingKind::own("block-cache-not-as-asked"),
                Severity::Confounder,
                text,
            )
        })
        .collect();
    let asked_alike = base.wanted == candidate.wanted
        && asked(base, BLOCK_CACHE) == asked(candidate, BLOCK_CACHE);
    let told = !base.cache.is_empty() && !candidate.cache.is_empty();
    if findings.is_empty() && told && asked_alike && base.cache != candidate.cache {
        let text = format!(
            "the block cache of {} is {}, that of {} is {}",
            base.name, base.cache, candidate.name, candidate.cache
        );
        findings.push(Finding::new(
            FindingKind::own("block-cache-differs"),
            Severity::Confounder,
            text,
        ));
    }
    findings
}
