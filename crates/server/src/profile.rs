//! The settings that measured servers start from: `configs/steady.conf`, or a named configuration in its
//! place.

use crate::configurations::{Configurations, is_auto, period};

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
pub fn base_settings(
    version_num: u32,
    shared_buffers_mb: u64,
    max_connections: u32,
    huge_pages: bool,
) -> BaseSettings {
    let mut settings = worked_out(shared_buffers_mb, max_connections, huge_pages);
    let mut dropped = Vec::new();
    for (name, value) in builtin("steady") {
        if period(&name).is_none_or(|period| period.covers(version_num)) {
            settings.push((name, value));
        } else {
            dropped.push(name);
        }
    }
    BaseSettings { settings, dropped }
}

/// A named configuration in place of the steady profile: under it only what deltabench itself needs of a
/// server, and what each run works out for itself where the configuration leaves it out or has it `auto`.
///
/// Shape: `configuration` is what [`adapt`](crate::adapt) made of it for the server.
pub fn settings_under(
    configuration: &[(String, String)],
    shared_buffers_mb: u64,
    max_connections: u32,
    huge_pages: bool,
) -> Vec<(String, String)> {
    let mut settings = worked_out(shared_buffers_mb, max_connections, huge_pages);
    settings.extend(builtin("needed"));
    let chosen = |name: &str, value: &str| !is_auto(name, value);
    settings.retain(|(name, _)| {
        !configuration
            .iter()
            .any(|(set, value)| set.eq_ignore_ascii_case(name) && chosen(set, value))
    });
    let own = configuration
        .iter()
        .filter(|(name, value)| chosen(name, value));
    settings.extend(own.cloned());
    settings
}

fn worked_out(
    shared_buffers_mb: u64,
    max_connections: u32,
    huge_pages: bool,
) -> Vec<(String, String)> {
    // `on`, not `try`: a server that does not get them must not pass for one that has.
    let huge_pages = if huge_pages { "on" } else { "off" };
    [
        ("shared_buffers", format!("{shared_buffers_mb}MB")),
        ("max_connections", max_connections.to_string()),
        ("huge_pages", huge_pages.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// A file of ours; a test holds that each can be read.
fn builtin(name: &str) -> Vec<(String, String)> {
    Configurations::builtin()
        .and_then(|known| known.get(name))
        .unwrap_or_default()
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
    fn the_steady_profile_is_whole_and_names_each_setting_once() {
        let settings = base_settings(180_006, 512, 20, true).settings;
        crate::check_settings(&settings).unwrap();
        assert_eq!(settings.len(), 3 + builtin("steady").len());
        assert!(builtin("needed").len() >= 4 && builtin("steady").len() >= 20);
        let mut names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), settings.len(), "each setting once");
    }

    #[test]
    fn a_configuration_stands_over_what_is_needed_and_worked_out() {
        let asked = [
            ("shared_buffers", "23GB"),
            ("max_connections", "auto"),
            ("log_line_prefix", "%p "),
        ];
        let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = settings_under(&asked, 512, 20, false);
        let value = |name: &str| {
            let mut found = settings.iter().filter(|(n, _)| n == name);
            let value = found.next().map(|(_, value)| value.as_str());
            assert!(found.next().is_none(), "{name} once");
            value
        };
        assert_eq!(value("shared_buffers"), Some("23GB"));
        assert_eq!(value("max_connections"), Some("20"));
        assert_eq!(value("huge_pages"), Some("off"));
        assert_eq!(value("log_line_prefix"), Some("%p "));
        assert_eq!(value("restart_after_crash"), Some("off"));
        assert_eq!(
            value("checkpoint_timeout"),
            None,
            "the steady profile is not there"
        );
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
