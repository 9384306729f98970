//! Settings and defaults that differ.

use super::ServerFacts;
use super::values::Value;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Setting;
use std::collections::{BTreeMap, BTreeSet};

/// Settings that differ between any two servers, or that only report a fact that is compared elsewhere.
///
/// `wal_segment_size` is not here: it changes how often segments are switched, and in bytes it is equal
/// unless it really differs.
const IGNORED: [&str; 25] = [
    // Every cluster has its own.
    "cluster_name",
    "config_file",
    "data_directory",
    "event_source",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "log_directory",
    "log_filename",
    "port",
    "unix_socket_directories",
    // Say which version it is.
    "server_version",
    "server_version_num",
    // Follow from other settings and from the version.
    "num_os_semaphores",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    // Findings of their own.
    "data_checksums",
    "debug_assertions",
    "huge_pages_status",
    // Of the session that asked, not of the server.
    "application_name",
    "in_hot_standby",
    "is_superuser",
    "session_authorization",
    // Names the schema that deltabench keeps its tables in.
    "search_path",
    // Where the installation lies.
    "krb_server_keyfile",
];

/// Settings that differ without moving the numbers of a running query: text of messages, logging of rare
/// events, connections from outside, replication that nobody uses. Statement logging (`log_statement`,
/// `log_duration`, ...) is not here: it costs time in every operation.
const HARMLESS: [&str; 39] = [
    "authentication_timeout",
    "bonjour_name",
    "client_encoding",
    "client_min_messages",
    "data_directory_mode",
    "datestyle",
    "default_text_search_config",
    "dynamic_library_path",
    "gss_accept_delegation",
    "hot_standby",
    "intervalstyle",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "listen_addresses",
    "log_autovacuum_min_duration",
    "log_checkpoints",
    "log_connections",
    "log_destination",
    "log_disconnections",
    "log_error_verbosity",
    "log_file_mode",
    "log_line_prefix",
    "log_min_messages",
    "log_rotation_age",
    "log_rotation_size",
    "log_startup_progress_interval",
    "log_timezone",
    "log_truncate_on_rotation",
    "max_replication_slots",
    "max_stack_depth",
    "max_wal_senders",
    "password_encryption",
    "timezone",
    "timezone_abbreviations",
    "unix_socket_group",
    "unix_socket_permissions",
    "wal_receiver_status_interval",
];

/// Beginnings of names that are harmless as a family.
const HARMLESS_FAMILIES: [&str; 4] = ["ssl", "krb_", "syslog_", "log_replication"];

pub(super) fn findings(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = assertions(base, candidate).into_iter().collect();
    let (left, right) = (by_name(base.settings), by_name(candidate.settings));
    // A side whose settings were not read says nothing about the other.
    if left.is_empty() || right.is_empty() {
        return findings;
    }
    let mut list = |kind: FindingKind, severity, items: &[String], before: &str, between: &str| {
        if !items.is_empty() {
            let text = format!("{before}: {}", items.join(between));
            findings.push(Finding::new(kind, severity, text));
        }
    };
    let both = Both::new(base, candidate, &left, &right);
    let before = "settings differ that you did not set";
    list(
        FindingKind::SettingsDiffer,
        Severity::Confounder,
        &both.differing,
        before,
        "; ",
    );
    let before = "settings differ that hardly change results";
    list(
        FindingKind::SettingsDifferHarmless,
        Severity::Note,
        &both.harmless,
        before,
        "; ",
    );
    let before = format!(
        "defaults of {} and {} differ, but the value in force is the same",
        base.name, candidate.name
    );
    list(
        FindingKind::DefaultsDiffer,
        Severity::Note,
        &both.defaults,
        &before,
        ", ",
    );
    let before = format!("settings only in {}", base.name);
    list(
        FindingKind::SettingsOnlyInBase,
        Severity::Note,
        &only(&left, &right),
        &before,
        ", ",
    );
    let before = format!("settings only in {}", candidate.name);
    list(
        FindingKind::SettingsOnlyInCandidate,
        Severity::Note,
        &only(&right, &left),
        &before,
        ", ",
    );
    findings
}

/// Settings by lower-case name.
type ByName<'a> = BTreeMap<String, &'a Setting>;

/// What is unlike among the settings that both sides have, in words.
#[derive(Default)]
struct Both {
    differing: Vec<String>,
    harmless: Vec<String>,
    defaults: Vec<String>,
}

impl Both {
    fn new(
        base: &ServerFacts<'_>,
        candidate: &ServerFacts<'_>,
        left: &ByName<'_>,
        right: &ByName<'_>,
    ) -> Self {
        let mut both = Self::default();
        for (name, left) in left {
            let Some(right) = right.get(name) else {
                continue;
            };
            if !in_force(left).same(&in_force(right)) {
                if asked(base, name) != asked(candidate, name) {
                    continue;
                }
                let list = if is_harmless(name) {
                    &mut both.harmless
                } else {
                    &mut both.differing
                };
                list.push(in_words(base, candidate, left, right));
            } else if let (Some(was), Some(is)) = (default(left), default(right))
                && !was.same(&is)
            {
                both.defaults
                    .push(format!("{} ({was} and {is})", left.name));
            }
        }
        both
    }
}

/// A server that checks itself all the time is not the one that users run.
fn assertions(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Option<Finding> {
    let on = |side: &ServerFacts<'_>| {
        side.settings
            .iter()
            .any(|s| s.name == "debug_assertions" && s.value == "on")
    };
    let who = match (on(base), on(candidate)) {
        (false, false) => return None,
        (true, true) => "both sides check".to_owned(),
        (true, false) => format!("{} checks", base.name),
        (false, true) => format!("{} checks", candidate.name),
    };
    let text = format!("{who} assertions (debug_assertions = on); production builds do not");
    Some(Finding::new(
        FindingKind::AssertionsOn,
        Severity::Confounder,
        text,
    ))
}

/// Those with other values, or on one side only; names in order.
pub(super) fn differing(one: &[Setting], other: &[Setting]) -> Vec<String> {
    let (one, other) = (by_name(one), by_name(other));
    let value = |of: &ByName<'_>, name: &String| of.get(name).map(|found| found.value.clone());
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let counts = |name: &&String| {
        let family = |start: &&str| name.starts_with(*start);
        !HARMLESS.contains(&name.as_str()) && !HARMLESS_FAMILIES.iter().any(family)
    };
    { names.into_iter() }
        .filter(counts)
        .filter(|name| value(&one, name) != value(&other, name))
        .cloned()
        .collect()
}

/// All settings, without those that are ignored.
fn by_name(settings: &[Setting]) -> ByName<'_> {
    let names = settings
        .iter()
        .map(|setting| (setting.name.to_lowercase(), setting));
    names
        .filter(|(name, _)| !IGNORED.contains(&name.as_str()))
        .collect()
}

fn only(left: &ByName<'_>, right: &ByName<'_>) -> Vec<String> {
    left.iter()
        .filter(|(name, _)| !right.contains_key(*name))
        .map(|(_, setting)| setting.name.clone())
        .collect()
}

/// What was asked for on this side; the last one wins, as in a configuration file.
fn asked<'a>(side: &ServerFacts<'a>, name: &str) -> Option<&'a str> {
    let asked = side
        .asked_settings
        .iter()
        .rev()
        .find(|(asked, _)| asked.eq_ignore_ascii_case(name));
    asked.map(|(_, value)| value.as_str())
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
        || HARMLESS_FAMILIES
            .iter()
            .any(|family| name.starts_with(family))
}

fn in_force(setting: &Setting) -> Value {
    Value::new(&setting.value, setting.unit.as_deref())
}

fn default(setting: &Setting) -> Option<Value> {
    Some(Value::new(
        setting.boot_value.as_deref()?,
        setting.unit.as_deref(),
    ))
}

/// `jit off in base, on in postgres:18 (defaults)`.
fn in_words(
    base: &ServerFacts<'_>,
    candidate: &ServerFacts<'_>,
    left: &Setting,
    right: &Setting,
) -> String {
    let origin = match (left.source == "default", right.source == "default") {
        (true, true) => " (defaults)".to_owned(),
        (true, false) => format!(" (default in {})", base.name),
        (false, true) => format!(" (default in {})", candidate.name),
        (false, false) => String::new(),
    };
    let (was, is) = (in_force(left), in_force(right));
    format!(
        "{} {was} in {}, {is} in {}{origin}",
        left.name, base.name, candidate.name
    )
}
