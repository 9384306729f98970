//! `pg_upgrade`: which programs it needs, how it is called, what its complaints mean.

use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the new version needs.
///
/// Source: `check_bin_dir` in exec.c of `pg_upgrade`.
const OF_NEW: [&str; 10] = [
    "pg_upgrade",
    "postgres",
    "pg_ctl",
    "pg_controldata",
    "pg_resetwal",
    "pg_dump",
    "pg_dumpall",
    "pg_restore",
    "psql",
    "vacuumdb",
];
/// And the old one; before 10 `pg_resetwal` was called `pg_resetxlog`.
const OF_OLD: [&str; 4] = ["postgres", "pg_ctl", "pg_controldata", "pg_resetwal"];
/// Number of the socket of its servers, which run one at a time and before those of the replay.
pub(crate) const PORT: u16 = 5599;
/// The first version that can leave the files to the kernel: deltabench syncs them itself.
const NO_SYNC_SINCE: u32 = 150_000;
/// Lines that are shown of each report.
const SHOWN: usize = 12;

/// The programs of an upgrade.
#[derive(Debug)]
pub(crate) struct Programs {
    pub upgrade: PathBuf,
    old: PathBuf,
    new: PathBuf,
    no_sync: bool,
}

impl Programs {
    /// Those of two installations.
    ///
    /// Errors: programs that one of them lacks.
    pub fn of(old: &Installation, new: &Installation) -> Result<Self, Problem> {
        check_upgrade(old, new)?;
        Ok(Self {
            upgrade: new.bin_dir.join("pg_upgrade"),
            old: old.bin_dir.clone(),
            new: new.bin_dir.clone(),
            no_sync: new.version_num >= NO_SYNC_SINCE,
        })
    }

    /// The arguments: files are linked, because the old ones are a copy that goes afterwards.
    pub fn arguments(&self, old: &Path, new: &Path, sockets: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            vec!["--link".into(), "-U".into(), crate::SUPERUSER.into()];
        for (option, value) in [
            ("-b", self.old.as_path()),
            ("-B", self.new.as_path()),
            ("-d", old),
            ("-D", new),
            ("-s", sockets),
        ] {
            arguments.extend([option.into(), value.into()]);
        }
        for option in ["-p", "-P"] {
            arguments.extend([option.into(), PORT.to_string().into()]);
        }
        if self.no_sync {
            arguments.push("--no-sync".into());
        }
        arguments
    }
}

/// Checks that one version's data can be upgraded to the other with what these trees have.
///
/// Errors: programs that one of them lacks, with who has them.
pub fn check_upgrade(old: &Installation, new: &Installation) -> Result<(), Problem> {
    let lacking = |installation: &Installation, names: &[&'static str]| {
        let names = names.iter().map(|name| match *name {
            "pg_resetwal" if installation.version_num < 100_000 => "pg_resetxlog",
            name => name,
        });
        let lacks: Vec<&str> = names
            .filter(|name| !installation.bin_dir.join(name).is_file())
            .collect();
        (!lacks.is_empty())
            .then(|| format!("{} has no {}", installation.resolved, lacks.join(", ")))
    };
    let lacking: Vec<String> = [lacking(old, &OF_OLD), lacking(new, &OF_NEW)]
        .into_iter()
        .flatten()
        .collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Problem::new("the data directory cannot be upgraded with these targets")
        .detail(format!("pg_upgrade needs programs of both versions; {}", lacking.join("; ")))
        .hint(
            "prebuilt servers (postgres:VERSION) do not have them: name installed:VERSION, path:DIR or a \
             build from source (git:DIR@REF+def) for both versions, or load a dump with --data DUMP",
        ))
}

/// The reports that `pg_upgrade` has left, by name: what a server has and the other lacks.
pub(crate) fn complaints(places: &[PathBuf]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for place in places {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            // They are the user's.
            if path.ends_with("old") || path.ends_with("tablespaces") {
                continue;
            }
            let is_report = path.extension().is_some_and(|end| end == "txt");
            if path.is_dir() {
                found.extend(complaints(&[path]));
            } else if is_report && let Ok(text) = std::fs::read_to_string(&path) {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                found.push((name, text));
            }
        }
    }
    found
}

/// What went wrong, in its own words.
pub(crate) fn problem_of(
    (old, new): (&Installation, &Installation),
    said: &str,
    reports: &[(String, String)],
) -> Problem {
    let mut detail = last_words(said);
    for (name, text) in reports {
        let lines: Vec<&str> = text.lines().take(SHOWN).collect();
        detail.push_str(&format!("\n{name}:\n{}", lines.join("\n")));
    }
    let libraries = reports
        .iter()
        .any(|(name, _)| name.starts_with("loadable_libraries"));
    let hint = if libraries {
        "name a tree of the candidate that has these libraries (installed:VERSION, path:DIR), or drop the \
         extensions in a copy of the directory"
    } else if said.contains("locale") || said.contains("lc_collate") {
        "a candidate of 16 or later takes the locale over"
    } else {
        "do in a copy of the directory what pg_upgrade asks for, or load a dump with --data DUMP"
    };
    Problem::new(format!(
        "pg_upgrade from {} to {} failed",
        old.resolved, new.resolved
    ))
    .detail(detail)
    .hint(hint)
}

/// The end of what it said: its list of checks that succeeded tells nothing.
fn last_words(said: &str) -> String {
    let is_told = |line: &&str| {
        let line = line.trim_end();
        // Paths are those of files that go; what is in them follows.
        let is_path = line.trim_start().starts_with('/');
        !line.is_empty() && !is_path && !line.ends_with(" ok") && !line.starts_with("---")
    };
    let lines: Vec<&str> = said.lines().filter(is_told).collect();
    let skipped = lines.len().saturating_sub(SHOWN);
    lines
        .iter()
        .skip(skipped)
        .map(|line| line.trim_end())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with these programs.
    fn tree(place: &Path, version_num: u32, programs: &[&str]) -> Installation {
        let mut found = deltabench_testkit::installations::installed("pg");
        found.bin_dir = place.join(version_num.to_string());
        found.version_num = version_num;
        found.resolved = format!("path:{version_num}");
        std::fs::create_dir_all(&found.bin_dir).unwrap();
        for program in programs {
            std::fs::write(found.bin_dir.join(program), "").unwrap();
        }
        found
    }

    #[test]
    fn programs_that_a_tree_lacks_are_named_with_who_has_them() {
        let place = tempfile::tempdir().unwrap();
        let whole = tree(place.path(), 180_000, &OF_NEW);
        let old = tree(
            place.path(),
            90_600,
            &["postgres", "pg_ctl", "pg_controldata", "pg_resetxlog"],
        );
        check_upgrade(&old, &whole).unwrap();
        let prebuilt = tree(place.path(), 170_000, &["postgres", "pg_ctl", "initdb"]);
        let problem = check_upgrade(&prebuilt, &prebuilt).unwrap_err();
        let detail = problem.detail.unwrap();
        assert!(
            detail.contains("path:170000 has no pg_controldata, pg_resetwal; "),
            "{detail}"
        );
        assert!(detail.contains("pg_upgrade, pg_controldata"), "{detail}");
        assert!(problem.hint.unwrap().contains("installed:"));
        let most = "pg_upgrade postgres pg_ctl pg_controldata pg_resetwal pg_dump pg_dumpall psql vacuumdb";
        let most: Vec<&str> = most.split(' ').collect();
        let problem = check_upgrade(&old, &tree(place.path(), 160_000, &most)).unwrap_err();
        let detail = problem.detail.unwrap();
        assert!(
            detail.ends_with("path:160000 has no pg_restore"),
            "{detail}"
        );
    }

    #[test]
    fn the_old_files_are_linked_and_the_servers_have_a_private_socket() {
        let place = tempfile::tempdir().unwrap();
        let whole = tree(place.path(), 180_000, &OF_NEW);
        let programs = Programs::of(&whole, &whole).unwrap();
        let arguments = programs.arguments(Path::new("/o"), Path::new("/n"), Path::new("/s"));
        let text: Vec<&str> = arguments.iter().filter_map(|one| one.to_str()).collect();
        let text = text.join(" ");
        assert!(
            text.starts_with("--link -U deltabench -b ") && text.ends_with("--no-sync"),
            "{text}"
        );
        assert!(
            text.contains(" -d /o -D /n -s /s -p 5599 -P 5599"),
            "{text}"
        );
    }

    /// As 18 says it.
    const SAID: &str = "Performing Consistency Checks
-----------------------------
Checking cluster versions                                     ok
Checking for presence of required libraries                   fatal

Your installation references loadable libraries that are missing from the
new installation.
Failure, exiting
";

    #[test]
    fn a_failure_has_the_words_of_pg_upgrade_and_its_reports() {
        let place = tempfile::tempdir().unwrap();
        let whole = tree(place.path(), 180_000, &OF_NEW);
        let reports = place.path().join("pg_upgrade_output.d/2026");
        std::fs::create_dir_all(&reports).unwrap();
        let text = "could not load library \"$libdir/postgis-3\"\nIn database: shop\n";
        std::fs::write(reports.join("loadable_libraries.txt"), text).unwrap();
        std::fs::create_dir_all(place.path().join("old")).unwrap();
        std::fs::write(place.path().join("old/rows.txt"), "not a report").unwrap();
        let found = complaints(&[place.path().to_path_buf()]);
        assert_eq!(found.len(), 1, "{found:?}");
        let problem = problem_of((&whole, &whole), SAID, &found);
        let detail = problem.detail.unwrap();
        assert!(
            detail.starts_with("Performing") || detail.contains("fatal"),
            "{detail}"
        );
        assert!(
            !detail.contains("cluster versions") && detail.contains("postgis-3"),
            "{detail}"
        );
        assert!(problem.hint.unwrap().contains("extensions"));
    }
}
