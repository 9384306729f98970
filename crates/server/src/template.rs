//! Initialised data directories, made once for each installation and copied from then on.

use crate::access::check_reachable;
use crate::catalogs;
use crate::failure::failed;
use crate::kernel;
use crate::log;
use crate::spawn::Launch;
use crate::tree;
use crate::user::ServerUser;
use crate::workspace::Workspace;
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Part of the cache key: raise it when what is done to a template here changes.
const REVISION: u32 = 2;
/// Limit for initdb, which takes half a second.
const INITDB_LIMIT: Duration = Duration::from_secs(180);
/// The file of ours that `postgresql.conf` includes.
pub(crate) const SETTINGS_FILE: &str = "deltabench.conf";

/// An initialised, stopped data directory in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    directory: PathBuf,
}

impl Template {
    /// The template of an installation from `CACHE/initdb/`, made first if need be: by initdb in the
    /// workspace, where the server user can work, then moved into place in one step under a lock.
    ///
    /// Shape:  superuser `deltabench`, trust on local sockets, no locale, UTF-8; `checksums` absent
    ///          means the
    ///         version's own default.
    /// Errors: binaries missing or out of the server user's reach, initdb failing (with its output), a
    /// full disk.
    pub fn obtain(
        installation: &Installation,
        checksums: Option<bool>,
        cache_root: &Path,
        workspace: &Workspace,
    ) -> Result<Self, Problem> {
        let key = key(installation, checksums)?;
        // Also when the template is there already: the servers to come have to be started from this tree.
        check_binaries(installation, &workspace.inner.user)?;
        let cache = cache_root.join("initdb");
        std::fs::create_dir_all(&cache).map_err(|error| failed("make", &cache, &error))?;
        let template = Self {
            directory: cache.join(&key),
        };
        if template.is_complete(installation) {
            return Ok(template);
        }
        let _lock = lock(&cache.join(format!("{key}.lock")))?;
        // Another deltabench may have made it while we waited.
        if template.is_complete(installation) {
            return Ok(template);
        }
        tree::remove_tree(&template.directory)?;
        let scratch = workspace.inner.directory.join(format!("initdb-{key}"));
        let made = initialise(installation, checksums, &scratch, &workspace.inner.user)
            .and_then(|data| publish(&data, &template.directory));
        tree::remove_tree(&scratch)?;
        made.map(|()| template)
    }

    /// The data directory; ours, to be copied, never to be started.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn is_complete(&self, installation: &Installation) -> bool {
        let version =
            std::fs::read_to_string(self.directory.join("PG_VERSION")).unwrap_or_default();
        version.trim() == major(installation.version_num)
            && self.directory.join("global/pg_control").is_file()
            && self.directory.join(SETTINGS_FILE).is_file()
    }
}

/// `9.6` or `18`.
pub(crate) fn major(version_num: u32) -> String {
    if version_num >= 100_000 {
        (version_num / 10_000).to_string()
    } else {
        format!("{}.{}", version_num / 10_000, version_num / 100 % 100)
    }
}

fn key(installation: &Installation, checksums: Option<bool>) -> Result<String, Problem> {
    let hash = installation
        .binary_sha256
        .get(..16)
        .filter(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()));
    let hash = hash.ok_or_else(|| {
        Problem::new(format!(
            "{} has no hash of its server binary",
            installation.resolved
        ))
        .detail(format!(
            "`{}` is not a SHA-256 in hexadecimal",
            installation.binary_sha256
        ))
    })?;
    let checksums = match checksums {
        None => "default",
        Some(true) => "checksums",
        Some(false) => "plain",
    };
    let catalogs = catalogs::checksum(installation)?;
    Ok(format!(
        "{}-{hash}-{catalogs}-{checksums}-r{REVISION}",
        major(installation.version_num)
    ))
}

fn lock(path: &Path) -> Result<File, Problem> {
    let told = |error: std::io::Error| failed("lock", path, &error);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(told)?;
    file.lock().map_err(told)?;
    Ok(file)
}

fn arguments(data: &Path, version_num: u32, checksums: Option<bool>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-D".into(), data.into()];
    // -N: the copy is synced as a whole.
    arguments.extend(
        [
            "-U",
            crate::SUPERUSER,
            "-A",
            "trust",
            "--no-locale",
            "-E",
            "UTF8",
            "-N",
        ]
        .map(OsString::from),
    );
    match checksums {
        Some(true) => arguments.push("--data-checksums".into()),
        // Before 18 they are off unless asked for, and the word does not exist.
        Some(false) if version_num >= 180_000 => arguments.push("--no-data-checksums".into()),
        _ => {}
    }
    arguments
}

fn initialise(
    installation: &Installation,
    checksums: Option<bool>,
    scratch: &Path,
    user: &ServerUser,
) -> Result<PathBuf, Problem> {
    tree::make_directory(scratch, 0o700, user.owner())?;
    let data = scratch.join("data");
    // Beside the scratch directory, so that the server user cannot put a link in its place.
    let log_path = beside(scratch, "log");
    let launch = Launch {
        program: &installation.bin_dir.join("initdb"),
        arguments: arguments(&data, installation.version_num, checksums),
        user,
        directory: scratch,
        log: &log_path,
        cores: None,
        cgroups: &[],
        environment: &[],
        death_signal: libc::SIGKILL,
        piped: false,
    };
    let (mut child, handle) = launch.start()?;
    let ended = handle.wait(INITDB_LIMIT);
    if !ended {
        // Reaped below in any case.
        let _ = handle.signal(libc::SIGKILL);
    }
    let status = child
        .wait()
        .map_err(|error| failed("wait for", &installation.bin_dir.join("initdb"), &error))?;
    let output = log::last_lines(&log::since(&log_path, 0), log::SHOWN_LINES);
    let _ = std::fs::remove_file(&log_path);
    if !ended {
        return Err(
            Problem::new(format!("initdb of {} took too long", installation.resolved))
                .detail(output),
        );
    }
    if !status.success() {
        return Err(log::explain(&output, &installation.resolved)
            .unwrap_or_else(|| {
                Problem::new(format!(
                    "initdb of {} failed ({status})",
                    installation.resolved
                ))
            })
            .detail(output));
    }
    include_settings_file(&data, user)?;
    Ok(data)
}

/// Checks that the server user can run this installation.
fn check_binaries(installation: &Installation, user: &ServerUser) -> Result<(), Problem> {
    let way_out = format!(
        "make it readable for `{}`, copy the tree to a place that is, or name another user (--server-user)",
        user.name
    );
    for program in ["postgres", "initdb"] {
        let path = installation.bin_dir.join(program);
        if !path.is_file() {
            return Err(
                Problem::new(format!("{} has no {program}", installation.resolved))
                    .detail(format!("{} is not there", path.display())),
            );
        }
        check_reachable(&path, user, &way_out)?;
    }
    Ok(())
}

fn include_settings_file(data: &Path, user: &ServerUser) -> Result<(), Problem> {
    tree::write_file(&data.join(SETTINGS_FILE), "", user.owner())?;
    let path = data.join("postgresql.conf");
    let append = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&path)?;
        write!(file, "\ninclude '{SETTINGS_FILE}'\n")
    };
    append().map_err(|error| failed("write", &path, &error))
}

/// `DIRECTORY.SUFFIX`. Not `with_extension`, which takes the `.6-...` of a 9.6 for an extension and
/// would give all templates of that major the same draft.
fn beside(directory: &Path, suffix: &str) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Copies a new data directory into the cache and gives it its name as the last step. The caller holds
/// the lock.
fn publish(data: &Path, directory: &Path) -> Result<(), Problem> {
    let draft = beside(directory, "draft");
    tree::remove_tree(&draft)?;
    tree::copy_tree(data, &draft, None)?;
    // Names only what is on disk: after a power cut there is a whole template or none.
    kernel::sync_file_system(&draft).map_err(|error| failed("sync", &draft, &error))?;
    std::fs::rename(&draft, directory).map_err(|error| failed("make", directory, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::installation::Origin;

    fn installation(version_num: u32, sha: &str) -> Installation {
        Installation {
            asked: "path:/x".into(),
            resolved: "path:/x".into(),
            origin: Origin::Path,
            bin_dir: "/x/bin".into(),
            version_num,
            version: "0".into(),
            binary_sha256: sha.into(),
            build: None,
            recipe: None,
            remote: None,
            engine: deltabench_model::installation::Engine::Postgres,
        }
    }

    #[test]
    fn majors_are_written_as_pg_version_has_them() {
        assert_eq!(
            ["9.6", "10", "18"],
            [major(90_624), major(100_023), major(180_006)]
                .each_ref()
                .map(String::as_str)
        );
    }

    #[test]
    fn different_binaries_and_options_never_share_a_template() {
        let (one, two) = ("a".repeat(64), "b".repeat(64));
        let key = |sha: &str, checksums| key(&installation(180_006, sha), checksums).unwrap();
        let keys = [
            key(&one, None),
            key(&one, Some(true)),
            key(&one, Some(false)),
            key(&two, None),
        ];
        for (n, first) in keys.iter().enumerate() {
            assert!(keys[n + 1..].iter().all(|second| second != first));
        }
    }

    #[test]
    fn builds_with_one_program_and_other_catalogs_never_share_a_template() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = scratch.path().join("share/postgresql").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let mut one = installation(180_006, &"a".repeat(64));
        one.bin_dir = scratch.path().join("bin");
        let mut keys = Vec::new();
        for (name, text) in [
            ("postgres.bki", "i"),
            ("postgres.bki", "s"),
            ("system_views.sql", "CREATE VIEW"),
            ("extension/plpgsql--1.0.sql", "CREATE FUNCTION"),
        ] {
            write(name, text);
            keys.push(key(&one, None).unwrap());
        }
        keys.dedup();
        assert_eq!(keys.len(), 4);
        write("README", "what initdb does not read");
        assert_eq!(Some(key(&one, None).unwrap()), keys.pop());
    }

    #[test]
    fn drafts_are_as_distinct_as_their_templates() {
        let draft = |name: &str| beside(&Path::new("/cache").join(name), "draft");
        assert_eq!(
            draft("9.6-aa-plain-r1"),
            Path::new("/cache/9.6-aa-plain-r1.draft")
        );
        assert_ne!(draft("9.6-aa-plain-r1"), draft("9.6-aa-default-r1"));
    }

    #[test]
    fn a_hash_that_is_none_cannot_become_a_path() {
        for sha in ["", "short", "../../../../../../etc/passwd"] {
            assert!(key(&installation(180_006, sha), None).is_err(), "{sha}");
        }
    }

    #[test]
    fn checksums_are_asked_for_in_words_the_version_knows() {
        let has = |version, checksums, word: &str| {
            arguments(Path::new("/d"), version, checksums)
                .iter()
                .any(|argument| argument == word)
        };
        assert!(has(90_624, Some(true), "--data-checksums"));
        assert!(has(180_006, Some(false), "--no-data-checksums"));
        assert!(!has(170_005, Some(false), "--no-data-checksums"));
        assert!(
            !has(180_006, None, "--no-data-checksums") && !has(180_006, None, "--data-checksums")
        );
    }
}
