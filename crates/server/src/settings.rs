//! Did a setting take? What was asked for against what the server reports, across units and spellings.

use deltabench_model::installation::Setting;
use deltabench_model::units::to_u64;

/// A value of a setting in one form, whatever the spelling.
#[derive(Debug, Clone, PartialEq)]
pub enum Normal {
    /// `on`, `true`, `yes`, `1` and their opposites.
    Boolean(bool),
    /// A number without a unit.
    Number(f64),
    /// An amount of memory, in bytes.
    Bytes(f64),
    /// A duration, in microseconds.
    Microseconds(f64),
    /// Anything else, in lower case.
    Text(String),
}

/// Bytes or microseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Memory,
    Time,
}

/// The value in one form. A number without a unit counts in `unit`, which is the setting's own (`8kB`,
/// `ms`).
///
/// Source: PostgreSQL manual, "Parameter Names and Values"; unit names are case-sensitive, as there.
pub fn normalise(value: &str, unit: Option<&str>) -> Normal {
    let value = value.trim();
    if let Some((number, suffix)) = split_number(value) {
        let own = unit.and_then(parse_unit);
        let given = if suffix.is_empty() {
            own
        } else {
            parse_unit(suffix)
        };
        match given {
            Some((factor, Dimension::Memory)) => return Normal::Bytes(number * factor),
            Some((factor, Dimension::Time)) => return Normal::Microseconds(number * factor),
            None if suffix.is_empty() => return Normal::Number(number),
            None => {}
        }
    }
    match boolean(value) {
        Some(truth) => Normal::Boolean(truth),
        None => Normal::Text(value.to_ascii_lowercase()),
    }
}

/// Whether a value switches a setting off, however that is spelled: `off`, `no`, `0`.
pub fn is_off(value: &str) -> bool {
    boolean(value) == Some(false)
}

/// An amount of memory in whole megabytes, rounded up; `None` if it is not one. Without a unit it
/// counts 8 kB blocks, as `shared_buffers` does.
pub fn megabytes(value: &str) -> Option<u64> {
    match normalise(value, Some("8kB")) {
        Normal::Bytes(bytes) if bytes >= 0.0 => Some(to_u64((bytes / 1_048_576.0).ceil())),
        _ => None,
    }
}

/// Settings that the server did not take as asked, one sentence each; empty when all did. Later askings
/// win.
///
/// Shape: `actual` is all of `pg_settings`.
pub fn unmet(asked: &[(String, String)], actual: &[Setting]) -> Vec<String> {
    let mut failures = Vec::new();
    for (place, (name, value)) in asked.iter().enumerate() {
        if asked
            .iter()
            .skip(place + 1)
            .any(|(later, _)| later.eq_ignore_ascii_case(name))
        {
            continue;
        }
        match actual
            .iter()
            .find(|setting| setting.name.eq_ignore_ascii_case(name))
        {
            None => failures.push(format!(
                "{name}: requested {value}, but the server does not list it"
            )),
            Some(setting) if !is_met(value, setting) => failures.push(format!(
                "{name}: requested {value}, but the server has {}{} ({})",
                setting.value,
                setting
                    .unit
                    .as_deref()
                    .map(|unit| format!(" x {unit}"))
                    .unwrap_or_default(),
                setting.source
            )),
            Some(_) => {}
        }
    }
    failures
}

/// Values that stand for "choose yourself"; the server reports what it chose.
const CHOSEN_BY_SERVER: &[(&str, &str)] = &[
    ("commit_timestamp_buffers", "0"),
    ("io_max_concurrency", "-1"),
    ("subtransaction_buffers", "0"),
    ("transaction_buffers", "0"),
    ("wal_buffers", "-1"),
];

/// Old spellings that the server reports in their new form.
///
/// Source: guc_tables.c: enum entries marked hidden, or listed twice.
const SAME_MEANING: &[(&str, &str, &str)] = &[
    ("password_encryption", "on", "md5"),
    ("wal_compression", "on", "pglz"),
    ("wal_level", "archive", "replica"),
    ("wal_level", "hot_standby", "replica"),
    ("client_min_messages", "debug", "debug2"),
    ("log_min_messages", "debug", "debug2"),
];

/// What the server shows for `archive_command`, whatever its value is, while `archive_mode` is off.
///
/// Source: `show_archive_command` in xlog.c.
const ARCHIVING_IS_OFF: &str = "(disabled)";

/// The words of `DateStyle` that the server shows as they are written. It has others, such as `US`, and shows
/// what they stand for.
///
/// Source: `check_datestyle` in variable.c.
const DATE_STYLES: [&str; 7] = ["iso", "sql", "postgres", "german", "mdy", "dmy", "ymd"];

fn is_met(asked: &str, setting: &Setting) -> bool {
    let name = setting.name.to_ascii_lowercase();
    if CHOSEN_BY_SERVER
        .iter()
        .any(|(n, value)| *n == name && *value == asked.trim())
    {
        return true;
    }
    let unit = setting.unit.as_deref();
    let actual = normalise(&setting.value, unit);
    let wanted = normalise(asked, unit);
    match (&wanted, &actual) {
        (Normal::Bytes(wanted), Normal::Bytes(actual))
        | (Normal::Microseconds(wanted), Normal::Microseconds(actual)) => {
            let factor = unit.and_then(parse_unit).map_or(1.0, |(factor, _)| factor);
            same_amount(wanted / factor, actual / factor)
        }
        (Normal::Number(wanted), Normal::Number(actual)) => close(*wanted, *actual),
        // `1` is a number until the server says `on`.
        (Normal::Number(_), Normal::Boolean(actual)) => boolean(asked) == Some(*actual),
        (Normal::Boolean(wanted), Normal::Boolean(actual)) => wanted == actual,
        _ => same_text(&name, asked.trim(), setting.value.trim()),
    }
}

fn same_text(name: &str, asked: &str, actual: &str) -> bool {
    asked.eq_ignore_ascii_case(actual)
        || (name.starts_with("archive_") && actual == ARCHIVING_IS_OFF)
        || (name == "datestyle" && same_date_style(asked, actual))
        || SAME_MEANING.iter().any(|(n, old, new)| {
            *n == name
                && *new == actual
                && (old.eq_ignore_ascii_case(asked)
                    || (*old == "on" && boolean(asked) == Some(true)))
        })
}

/// The server shows a style and an order of day and month, also if only one of them was asked for.
fn same_date_style(asked: &str, actual: &str) -> bool {
    let parts = |list: &str| -> Vec<String> {
        let parts = list.split(',').map(str::trim);
        parts.map(str::to_ascii_lowercase).collect()
    };
    let (asked, actual) = (parts(asked), parts(actual));
    let is_shown = |part: &String| DATE_STYLES.contains(&part.as_str());
    !asked.iter().all(is_shown) || asked.iter().all(|part| actual.contains(part))
}

/// Both in the setting's unit. An asked value that is no whole number of units may have been rounded,
/// up or down depending on the version; a whole one must be exactly there.
fn same_amount(wanted: f64, actual: f64) -> bool {
    let whole = (wanted - wanted.round()).abs() < 1e-9;
    close(wanted, actual)
        || (!whole && (close(actual, wanted.floor()) || close(actual, wanted.ceil())))
}

/// Whole numbers must be the same; of others the server prints six significant digits.
fn close(one: f64, other: f64) -> bool {
    let whole = |value: f64| (value - value.round()).abs() < 1e-9;
    if whole(one) && whole(other) {
        return (one - other).abs() < 0.5;
    }
    (one - other).abs() <= 1e-5 * one.abs().max(other.abs())
}

/// Number and unit, `None` if it does not start with a number.
fn split_number(value: &str) -> Option<(f64, &str)> {
    if let Some(digits) = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"))
    {
        let number = u32::from_str_radix(digits, 16).ok()?;
        return Some((f64::from(number), ""));
    }
    let end = value
        .char_indices()
        .find(|(place, c)| {
            !(c.is_ascii_digit() || *c == '.' || (*place == 0 && matches!(c, '-' | '+')))
        })
        .map_or(value.len(), |(place, _)| place);
    let (digits, rest) = value.split_at_checked(end)?;
    if let Ok(number) = value.parse::<f64>()
        && number.is_finite()
        && value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
    {
        // The whole is a number, exponent included.
        return Some((number, ""));
    }
    Some((digits.parse().ok()?, rest.trim_start()))
}

/// Factor to bytes or microseconds of a unit such as `MB`, `8kB` or `min`.
fn parse_unit(unit: &str) -> Option<(f64, Dimension)> {
    let end = unit.find(|c: char| !c.is_ascii_digit())?;
    let (digits, name) = unit.split_at_checked(end)?;
    let multiple: f64 = if digits.is_empty() {
        1.0
    } else {
        digits.parse().ok()?
    };
    let (factor, dimension) = match name {
        "B" => (1.0, Dimension::Memory),
        "kB" => (1024.0, Dimension::Memory),
        "MB" => (1_048_576.0, Dimension::Memory),
        "GB" => (1_073_741_824.0, Dimension::Memory),
        "TB" => (1_099_511_627_776.0, Dimension::Memory),
        "us" => (1.0, Dimension::Time),
        "ms" => (1e3, Dimension::Time),
        "s" => (1e6, Dimension::Time),
        "min" => (6e7, Dimension::Time),
        "h" => (3.6e9, Dimension::Time),
        "d" => (8.64e10, Dimension::Time),
        _ => return None,
    };
    Some((multiple * factor, dimension))
}

/// Source: parse_bool of PostgreSQL: unique prefixes of true, false, yes, no; on, off; 1, 0.
fn boolean(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let prefix_of = |word: &str| !value.is_empty() && word.starts_with(&value);
    match value.as_str() {
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        _ if prefix_of("true") || prefix_of("yes") => Some(true),
        _ if prefix_of("false") || prefix_of("no") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_switches_a_setting_off_does_so_in_all_spellings() {
        for off in ["off", "OF", "False", "n", "0", " no "] {
            assert!(is_off(off), "{off}");
        }
        for other in ["on", "1", "local", "", "o", "00"] {
            assert!(!is_off(other), "{other}");
        }
    }

    #[test]
    fn spellings_of_the_same_value_have_one_form() {
        use Normal::{Boolean, Bytes, Microseconds, Number, Text};
        for (value, unit, wanted) in [
            ("512MB", Some("8kB"), Bytes(536_870_912.0)),
            ("65536", Some("8kB"), Bytes(536_870_912.0)),
            ("0.5GB", Some("8kB"), Bytes(536_870_912.0)),
            (" 512 MB ", None, Bytes(536_870_912.0)),
            ("2", Some("16MB"), Bytes(33_554_432.0)),
            ("5min", Some("s"), Microseconds(3e8)),
            ("300", Some("s"), Microseconds(3e8)),
            ("1d", Some("min"), Microseconds(8.64e10)),
            ("-1", Some("ms"), Microseconds(-1e3)),
            ("on", None, Boolean(true)),
            ("TRUE", None, Boolean(true)),
            ("y", None, Boolean(true)),
            ("f", None, Boolean(false)),
            ("1", None, Number(1.0)),
            ("1e3", None, Number(1000.0)),
            ("0x10", None, Number(16.0)),
            (".9", None, Number(0.9)),
            ("Replica", None, Text("replica".into())),
            ("infinity", None, Text("infinity".into())),
            ("10MiB", None, Text("10mib".into())),
            ("o", None, Text("o".into())),
            ("", None, Text(String::new())),
        ] {
            assert_eq!(normalise(value, unit), wanted, "{value} {unit:?}");
        }
    }

    #[test]
    fn megabytes_reads_what_shared_buffers_takes() {
        for (value, wanted) in [
            ("1GB", Some(1024)),
            ("131072", Some(1024)),
            ("100kB", Some(1)),
            ("lots", None),
        ] {
            assert_eq!(megabytes(value), wanted, "{value}");
        }
    }

    fn setting(name: &str, value: &str, unit: Option<&str>) -> Setting {
        Setting {
            name: name.into(),
            value: value.into(),
            unit: unit.map(str::to_owned),
            boot_value: None,
            source: "configuration file".into(),
        }
    }

    fn failures(name: &str, asked: &str, value: &str, unit: Option<&str>) -> usize {
        unmet(
            &[(name.to_owned(), asked.to_owned())],
            &[setting(name, value, unit)],
        )
        .len()
    }

    #[test]
    fn what_took_is_recognised_across_units_and_words() {
        for (name, asked, value, unit) in [
            ("shared_buffers", "512MB", "65536", Some("8kB")),
            ("shared_buffers", "100kB", "12", Some("8kB")),
            ("shared_buffers", "100kB", "13", Some("8kB")),
            ("max_wal_size", "8GB", "512", Some("16MB")),
            ("checkpoint_timeout", "1h", "3600", Some("s")),
            ("checkpoint_completion_target", "0.9", "0.9", None),
            ("vacuum_cost_delay", "500us", "0.5", Some("ms")),
            ("fsync", "yes", "on", None),
            ("fsync", "0", "off", None),
            ("huge_pages", "Try", "try", None),
            ("synchronous_commit", "false", "off", None),
            ("wal_compression", "true", "pglz", None),
            ("password_encryption", "on", "md5", None),
            ("wal_level", "hot_standby", "replica", None),
            ("wal_buffers", "-1", "2048", Some("8kB")),
            ("timezone", "utc", "UTC", None),
            ("log_line_prefix", "%m [%p] ", "%m [%p] ", None),
            ("unix_socket_permissions", "0700", "0700", None),
            ("archive_command", "cp %p /a/%f", "(disabled)", None),
            ("archive_command", "cp %p /a/%f", "cp %p /a/%f", None),
            ("DateStyle", "ISO", "ISO, MDY", None),
            ("DateStyle", "dmy,sql", "SQL, DMY", None),
            ("DateStyle", "European", "ISO, DMY", None),
        ] {
            assert_eq!(
                failures(name, asked, value, unit),
                0,
                "{name} {asked} {value}"
            );
        }
    }

    #[test]
    fn what_did_not_take_is_told_with_both_values() {
        for (name, asked, value, unit) in [
            ("shared_buffers", "512MB", "65535", Some("8kB")),
            ("shared_buffers", "512MB", "16384", Some("8kB")),
            ("checkpoint_timeout", "1h", "3600", Some("min")),
            ("fsync", "on", "off", None),
            ("huge_pages", "on", "try", None),
            ("wal_compression", "on", "lz4", None),
            ("wal_buffers", "16MB", "512", Some("8kB")),
            ("max_connections", "100", "101", None),
            ("max_files_per_process", "2000000", "2000001", None),
            ("archive_command", "cp %p /a/%f", "cp %p /b/%f", None),
            ("archive_mode", "on", "off", None),
            ("restore_command", "cp /a/%f %p", "(disabled)", None),
            ("DateStyle", "SQL", "ISO, MDY", None),
            ("DateStyle", "ISO, DMY", "ISO, MDY", None),
        ] {
            assert_eq!(
                failures(name, asked, value, unit),
                1,
                "{name} {asked} {value}"
            );
        }
        let asked = [("shared_buffers".to_owned(), "512MB".to_owned())];
        let told = unmet(&asked, &[setting("shared_buffers", "16384", Some("8kB"))]);
        assert_eq!(
            told,
            [
                "shared_buffers: requested 512MB, but the server has 16384 x 8kB (configuration file)"
            ]
        );
        assert!(unmet(&asked, &[])[0].contains("does not list it"));
    }

    #[test]
    fn only_the_last_asking_counts() {
        let asked = [
            ("jit".to_owned(), "on".to_owned()),
            ("JIT".to_owned(), "off".to_owned()),
        ];
        assert!(unmet(&asked, &[setting("jit", "off", None)]).is_empty());
    }
}
