//! The settings of a data directory that plans and results depend on.

use crate::configurations::setting_of;
use crate::failure::failed;
use deltabench_model::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files that a server reads, in this order.
const FILES: [&str; 2] = ["postgresql.conf", "postgresql.auto.conf"];
/// What names of settings begin or end with that only the planner reads.
const PLANNER: [(&str, &str); 4] = [("enable_", ""), ("", "_cost"), ("geqo", ""), ("jit", "")];
/// The other settings that plans, their memory and the meaning of values depend on. No other setting is taken
/// over: not where a server listens, archives, logs or finds files, and not what it loads.
const OTHERS: [&str; 33] = [
    "array_nulls",
    "backslash_quote",
    "constraint_exclusion",
    "cursor_tuple_fraction",
    "datestyle",
    "default_statistics_target",
    "default_text_search_config",
    "effective_cache_size",
    "effective_io_concurrency",
    "from_collapse_limit",
    "gin_fuzzy_search_limit",
    "hash_mem_multiplier",
    "intervalstyle",
    "join_collapse_limit",
    "maintenance_io_concurrency",
    "maintenance_work_mem",
    "max_locks_per_transaction",
    "max_parallel_maintenance_workers",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "max_worker_processes",
    "min_parallel_index_scan_size",
    "min_parallel_table_scan_size",
    "parallel_leader_participation",
    "plan_cache_mode",
    "recursive_worktable_factor",
    "search_path",
    "standard_conforming_strings",
    "temp_buffers",
    "timezone",
    "transform_null_equals",
    "work_mem",
    "xmlbinary",
];
/// Names that look like the planner's and load a library.
const NEVER: [&str; 1] = ["jit_provider"];
/// Lists of libraries that a server loads.
const LIBRARIES: [&str; 3] = [
    "shared_preload_libraries",
    "session_preload_libraries",
    "local_preload_libraries",
];

/// What the files of a data directory set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectorySettings {
    /// Whether it has a `postgresql.conf`: Debian keeps it elsewhere.
    pub has_file: bool,
    /// Those that are taken over, each once.
    pub taken: Vec<(String, String)>,
    /// Names of the others.
    pub left: BTreeSet<String>,
    /// Libraries that its servers loaded.
    pub libraries: Vec<String>,
    /// Files that it includes, which are not read.
    pub includes: Vec<String>,
}

impl DirectorySettings {
    /// Reads those of a directory.
    ///
    /// Errors: a file that cannot be read.
    pub(super) fn of(directory: &Path) -> Result<Self, Problem> {
        let mut found = Self::default();
        // By setting: of each the last line counts.
        let mut libraries = BTreeMap::new();
        for name in FILES {
            let path = directory.join(name);
            match std::fs::read(&path) {
                Ok(text) => {
                    found.has_file |= name == FILES[0];
                    found.read(&String::from_utf8_lossy(&text), &mut libraries);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed("read", &path, &error)),
            }
        }
        let all = LIBRARIES.iter().filter_map(|name| libraries.remove(*name));
        found.libraries = all.flatten().collect();
        Ok(found)
    }

    fn read(&mut self, text: &str, libraries: &mut BTreeMap<String, Vec<String>>) {
        for (name, value) in text.lines().filter_map(setting_of) {
            if name.starts_with("include") {
                self.includes.push(value);
            } else if LIBRARIES.contains(&name.as_str()) {
                let names = value.split(',').map(|name| name.trim().trim_matches('"'));
                let names = names.filter(|name| !name.is_empty()).map(str::to_owned);
                libraries.insert(name, names.collect());
            } else if is_taken(&name) {
                self.taken.retain(|(known, _)| *known != name);
                self.taken.push((name, value));
            } else {
                self.left.insert(name);
            }
        }
    }
}

/// Whether a setting, in lower case, is taken over.
fn is_taken(name: &str) -> bool {
    let of_planner = |(begin, end): &(&str, &str)| name.starts_with(begin) && name.ends_with(end);
    !name.contains('.')
        && !NEVER.contains(&name)
        && (PLANNER.iter().any(of_planner) || OTHERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# production
listen_addresses = '*'
Work_Mem = 64MB   # for reports
work_mem = '32MB'
random_page_cost 1.1
enable_seqscan = on
jit_provider = 'evil'
jit = off
shared_preload_libraries = 'pg_cron, pg_stat_statements'
cron.database_name = 'shop'
archive_command = 'scp %p elsewhere:''x'''
primary_conninfo = 'host=primary password=x'
data_directory = '/var/lib/postgresql'
vacuum_cost_delay = 2ms
include_dir = 'conf.d'
";

    #[test]
    fn only_what_plans_and_values_depend_on_is_taken_over() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("postgresql.conf"), TEXT).unwrap();
        std::fs::write(scratch.path().join("postgresql.auto.conf"), "jit = 'on'\n").unwrap();
        let found = DirectorySettings::of(scratch.path()).unwrap();
        let pair = |(name, value): &(String, String)| format!("{name}={value}");
        let taken: Vec<String> = found.taken.iter().map(pair).collect();
        assert_eq!(
            taken,
            [
                "work_mem=32MB",
                "random_page_cost=1.1",
                "enable_seqscan=on",
                "jit=on"
            ]
        );
        assert_eq!(found.libraries, ["pg_cron", "pg_stat_statements"]);
        assert_eq!(found.includes, ["conf.d"]);
        assert!(found.has_file);
        for name in [
            "listen_addresses",
            "archive_command",
            "primary_conninfo",
            "data_directory",
        ] {
            assert!(found.left.contains(name), "{name}");
        }
    }

    #[test]
    fn of_each_list_of_libraries_the_last_line_counts_and_no_other_list_replaces_it() {
        let of = |text: &str| {
            let scratch = tempfile::tempdir().unwrap();
            std::fs::write(scratch.path().join("postgresql.conf"), text).unwrap();
            DirectorySettings::of(scratch.path()).unwrap().libraries
        };
        let both =
            "session_preload_libraries = 'auto_explain'\nshared_preload_libraries = 'pg_cron'\n";
        assert_eq!(of(both), ["pg_cron", "auto_explain"]);
        let twice =
            "session_preload_libraries = 'auto_explain'\nsession_preload_libraries = 'hook'\n";
        assert_eq!(of(twice), ["hook"]);
        let cleared = "shared_preload_libraries = 'pg_cron'\nshared_preload_libraries = ''\n";
        assert_eq!(of(cleared), [""; 0]);
    }

    #[test]
    fn a_directory_without_files_has_none() {
        let scratch = tempfile::tempdir().unwrap();
        let found = DirectorySettings::of(scratch.path()).unwrap();
        assert_eq!(found, DirectorySettings::default());
    }
}
