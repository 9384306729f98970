//! The settings that measured servers start from: `configs/steady.conf`, fitted to a version.

const STEADY: &str = include_str!("../../../configs/steady.conf");

/// Settings for one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseSettings {
    /// What to ask the server for.
    pub settings: Vec<(String, String)>,
    /// Names of settings that this version does not have; the other side of a comparison may.
    pub dropped: Vec<String>,
}

/// The steady profile for a server of this version, with what each run works out for itself.
///
/// Shape: `version_num` as the server counts: 90624, 180006.
#[must_use]
pub fn base_settings(
    version_num: u32,
    shared_buffers_mb: u64,
    max_connections: u32,
    huge_pages: bool,
) -> BaseSettings {
    let mut settings = vec![
        (
            "shared_buffers".to_owned(),
            format!("{shared_buffers_mb}MB"),
        ),
        ("max_connections".to_owned(), max_connections.to_string()),
        // `on`, not `try`: a server that does not get them must not pass for one that has.
        (
            "huge_pages".to_owned(),
            if huge_pages { "on" } else { "off" }.to_owned(),
        ),
    ];
    let mut dropped = Vec::new();
    for entry in STEADY.lines().filter_map(parse_line) {
        if entry.since_major * 10_000 <= version_num {
            settings.push((entry.name.to_owned(), entry.value));
        } else {
            dropped.push(entry.name.to_owned());
        }
    }
    BaseSettings { settings, dropped }
}

struct Entry<'a> {
    name: &'a str,
    value: String,
    /// 0 where every supported version has it.
    since_major: u32,
}

fn parse_line(line: &str) -> Option<Entry<'_>> {
    let (assignment, comment) = line.split_once('#').unwrap_or((line, ""));
    let (name, value) = assignment.split_once('=')?;
    let since_major = match comment.trim().strip_prefix("since ") {
        Some(major) => major.trim().parse().ok()?,
        None => 0,
    };
    let value = value.trim();
    let unquoted = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(value);
    Some(Entry {
        name: name.trim(),
        value: unquoted.to_owned(),
        since_major,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(base: &'a BaseSettings, name: &str) -> Option<&'a str> {
        base.settings
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    #[test]
    fn every_line_of_the_profile_is_a_setting_or_a_comment() {
        for line in STEADY
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            assert!(parse_line(line).is_some(), "{line}");
        }
        let settings = base_settings(180_006, 512, 20, true).settings;
        crate::check_settings(&settings).unwrap();
        let mut names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), settings.len(), "each setting once");
    }

    #[test]
    fn old_versions_get_what_they_know_and_say_what_they_lack() {
        let old = base_settings(90_624, 512, 20, false);
        assert_eq!(
            (old.dropped.as_slice(), value(&old, "jit")),
            (["jit".to_owned()].as_slice(), None)
        );
        let new = base_settings(110_022, 512, 20, true);
        assert!(new.dropped.is_empty());
        assert_eq!(value(&new, "jit"), Some("off"));
        assert_eq!(
            (value(&old, "huge_pages"), value(&new, "huge_pages")),
            (Some("off"), Some("on"))
        );
        assert_eq!(
            (
                value(&new, "shared_buffers"),
                value(&new, "max_connections")
            ),
            (Some("512MB"), Some("20"))
        );
    }

    #[test]
    fn quotes_of_the_file_are_not_part_of_the_value() {
        let base = base_settings(180_006, 512, 20, true);
        assert_eq!(
            (value(&base, "timezone"), value(&base, "log_line_prefix")),
            (Some("UTC"), Some("%m [%p] "))
        );
    }
}
