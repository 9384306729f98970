//! A data directory of the user: looked at and copied, never changed and never started.

mod backup;
mod control;
mod settings;

pub use control::{Control, State};
pub use settings::DirectorySettings;

use crate::access::changeable;
use crate::failure::failed;
use crate::tree::{self, Owner};
use crate::user::ServerUser;
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};

/// Directories that are copied as they are, if they are there: tables, indexes, catalogs, the state of
/// transactions.
const WHOLE: [&str; 8] = [
    "base",
    "global",
    "pg_clog",
    "pg_commit_ts",
    "pg_multixact",
    "pg_serial",
    "pg_subtrans",
    "pg_xact",
];
/// Directories that a server wants to find, and that are empty in a copy: slots of standbys and subscribers,
/// how far a subscription is, counters of use, temporary files.
const EMPTY: [&str; 11] = [
    "pg_dynshmem",
    "pg_logical",
    "pg_logical/mappings",
    "pg_logical/snapshots",
    "pg_notify",
    "pg_replslot",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_tblspc",
    "pg_twophase",
];
/// The write-ahead log, which may be a link to another disk. Before 10 it was called `pg_xlog`.
const LOGS: [&str; 2] = ["pg_wal", "pg_xlog"];
/// Files of a directory that is not the state of a stopped primary, each with what it says and what to do.
const NOT_STOPPED: [(&str, &str, &str); 4] = [
    (
        PROCESS,
        "its server runs, or it is a snapshot of one that ran",
        "stop the server (pg_ctl -D DIR stop); start a snapshot once with its own version, wait until it is \
         ready, and stop it",
    ),
    ("recovery.signal", "its recovery is not finished", RECOVER),
    ("standby.signal", "it is a standby", PROMOTE),
    (
        "recovery.conf",
        "it is a standby, or its recovery is not finished",
        PROMOTE,
    ),
];
/// The file that a server has while it runs.
const PROCESS: &str = "postmaster.pid";
const RECOVER: &str = "start it once with its own version, wait until it accepts connections, and stop it \
                       (pg_ctl -D DIR start; pg_ctl -D DIR stop)";
const PROMOTE: &str = "use a copy of it: start the copy with its own version, cut off from the primary, \
                       promote it (pg_ctl -D DIR promote), and stop it";

/// A data directory that was left by a clean shutdown, or a base backup with its write-ahead log.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    path: PathBuf,
    major: String,
    control: Control,
    /// Numbers of tablespaces with the directories that have them.
    tablespaces: Vec<(String, PathBuf)>,
    bytes: u64,
    /// The label of a base backup that is not recovered yet.
    label: Option<String>,
}

impl DataDirectory {
    /// Looks at a directory.
    ///
    /// Errors: it is none, its server runs or did not shut down cleanly, it is a standby or a base backup
    /// that cannot be recovered here, a tablespace is not there, it cannot be read.
    pub fn find(path: &Path) -> Result<Self, Problem> {
        let path = std::fs::canonicalize(path).map_err(|error| failed("find", path, &error))?;
        let major = major(&path)?;
        check_at_rest(&path)?;
        let label = backup::label(&path)?;
        let control = Control::of(&path)?;
        // The label says where recovery begins, and not what the file says.
        if label.is_none() {
            check_state(&path, control.state)?;
        }
        let tablespaces = tablespaces(&path, &format!("PG_{major}_{}", control.catalog))?;
        let mut found = Self {
            path,
            major,
            control,
            tablespaces,
            bytes: 0,
            label,
        };
        found.bytes = found
            .parts()
            .iter()
            .map(|part| tree::bytes_on_disk(part))
            .sum();
        Ok(found)
    }

    /// The directory, without links in its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version that made it: `17`, `9.6`.
    pub fn major(&self) -> &str {
        &self.major
    }

    /// What its `pg_control` says.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Bytes on disk of what a copy has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is a base backup: its copy has to be recovered first.
    pub fn is_backup(&self) -> bool {
        self.label.is_some()
    }

    /// Tablespaces besides the two that every directory has.
    pub fn tablespaces(&self) -> usize {
        self.tablespaces.len()
    }

    /// The user's settings that are in it.
    ///
    /// Errors: a file that cannot be read.
    pub fn settings(&self) -> Result<DirectorySettings, Problem> {
        DirectorySettings::of(&self.path)
    }

    /// A place of the directory, of its log or of a tablespace that this account may change; absent if there
    /// is none. The directories above them count, too.
    pub fn changeable_by(&self, user: &ServerUser) -> Option<PathBuf> {
        let inside = std::fs::read_dir(&self.path).into_iter().flatten();
        let inside = inside.flatten().map(|entry| entry.path());
        let mut places = std::iter::once(self.path.clone())
            .chain(self.parts())
            .chain(inside);
        places.find_map(|place| changeable(&place, user))
    }

    /// Directories of the original that are copied.
    fn parts(&self) -> Vec<PathBuf> {
        let own = WHOLE.iter().chain(&LOGS).map(|name| self.path.join(name));
        // A log on another disk is counted, too.
        let own = own.filter_map(|part| std::fs::canonicalize(part).ok());
        own.chain(self.tablespaces.iter().map(|(_, place)| place.clone()))
            .collect()
    }

    /// Copies it to `to`, which must not exist: without its configuration, keys, slots, and whatever else a
    /// server of deltabench does not need. Tablespaces become directories inside the copy.
    ///
    /// Errors: a file that cannot be read, a link where none should be, a full disk; the original changed
    /// meanwhile.
    pub(crate) fn copy(
        &self,
        to: &Path,
        owner: Option<Owner>,
        go_on: &dyn Fn() -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        tree::make_directory(to, 0o700, owner)?;
        for name in EMPTY {
            tree::make_directory(&to.join(name), 0o700, owner)?;
        }
        for name in WHOLE.iter().filter(|name| self.path.join(name).exists()) {
            tree::copy_tree_while(&self.path.join(name), &to.join(name), owner, go_on)?;
        }
        for name in LOGS.iter().filter(|name| self.path.join(name).exists()) {
            let log = std::fs::canonicalize(self.path.join(name))
                .map_err(|error| failed("find", &self.path.join(name), &error))?;
            tree::copy_tree_while(&log, &to.join(name), owner, go_on)?;
        }
        for (number, place) in &self.tablespaces {
            let own = to.join("pg_tblspc").join(number);
            tree::make_directory(&own, 0o700, owner)?;
            let name = place.file_name().unwrap_or_default();
            tree::copy_tree_while(place, &own.join(name), owner, go_on)?;
        }
        tree::write_file(&to.join("PG_VERSION"), &format!("{}\n", self.major), owner)?;
        if let Some(label) = &self.label {
            tree::write_file(&to.join(backup::LABEL), label, owner)?;
        }
        self.check_unchanged()
    }

    /// Errors: a server has worked on it since it was looked at.
    fn check_unchanged(&self) -> Result<(), Problem> {
        check_at_rest(&self.path)?;
        if Control::of(&self.path)? == self.control && backup::label(&self.path)? == self.label {
            return Ok(());
        }
        Err(Problem::new(format!(
            "{} changed while it was copied",
            self.path.display()
        ))
        .detail("a server was started on it")
        .hint("stop that server, and replay again"))
    }
}

/// The version of a data directory.
fn major(path: &Path) -> Result<String, Problem> {
    let none = |why: String| {
        Err(Problem::new(format!("{} is not a data directory", path.display()))
            .detail(why)
            .hint(
                "name the directory that has PG_VERSION, such as /var/lib/postgresql/17/main; unpack a \
                 backup in the tar format first",
            ))
    };
    let file = path.join("PG_VERSION");
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            let text = text.trim();
            let is_version = text.starts_with(|c: char| c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_digit() || c == '.');
            match is_version && path.join("global/pg_control").is_file() {
                true => Ok(text.to_owned()),
                false => none(
                    "its PG_VERSION has no version, or global/pg_control is not there".to_owned(),
                ),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(failed("read", &file, &error)
                .hint("run deltabench as the owner of the directory, or as root"))
        }
        Err(error) => none(format!(
            "{}: {}",
            file.display(),
            error.to_string().to_lowercase()
        )),
    }
}

/// Refuses a directory that was not left by a clean shutdown of a primary.
fn check_at_rest(path: &Path) -> Result<(), Problem> {
    let mut there = NOT_STOPPED
        .iter()
        .filter(|(name, _, _)| path.join(name).exists());
    if let Some((name, what, hint)) = there.next() {
        // As `pg_basebackup -R` makes it.
        let of_backup = *name != PROCESS && path.join(backup::LABEL).exists();
        let hint = match of_backup {
            true => format!("take the base backup without -R, or remove {name} from a copy of it"),
            false => (*hint).to_owned(),
        };
        return Err(not_usable(path, &format!("{name} is there: {what}"), &hint));
    }
    let prepared = std::fs::read_dir(path.join("pg_twophase"));
    match prepared.map_or(0, Iterator::count) {
        0 => Ok(()),
        _ => Err(not_usable(
            path,
            "it has prepared transactions (pg_twophase), whose locks would stay for ever",
            "start it with its own version, end them with COMMIT PREPARED or ROLLBACK PREPARED, and stop it",
        )),
    }
}

fn check_state(path: &Path, state: State) -> Result<(), Problem> {
    match state {
        State::ShutDown => Ok(()),
        State::ShutDownInRecovery => Err(not_usable(
            path,
            "it is a standby that was shut down",
            PROMOTE,
        )),
        State::Running => Err(not_usable(
            path,
            "its server did not shut down cleanly (pg_control says that it runs)",
            RECOVER,
        )),
        State::Recovering => Err(not_usable(path, "its recovery is not finished", RECOVER)),
    }
}

fn not_usable(path: &Path, why: &str, hint: &str) -> Problem {
    Problem::new(format!("{} was not shut down cleanly", path.display()))
        .detail(why)
        .hint(hint.replace("DIR", &path.display().to_string()))
}

/// Numbers of tablespaces with their directories of this version.
fn tablespaces(path: &Path, version: &str) -> Result<Vec<(String, PathBuf)>, Problem> {
    let links = path.join("pg_tblspc");
    let entries = std::fs::read_dir(&links).map_err(|error| failed("read", &links, &error))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", &links, &error))?;
        let place = entry.path().join(version);
        let place = std::fs::canonicalize(&place).map_err(|error| {
            Problem::new(format!("a tablespace of {} is not there", path.display()))
                .detail(format!(
                    "{}: {}",
                    place.display(),
                    error.to_string().to_lowercase()
                ))
                .hint(
                    "copy the tablespaces, too, and let the links in pg_tblspc lead to the copies",
                )
        })?;
        found.push((entry.file_name().to_string_lossy().into_owned(), place));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A directory as a clean shutdown leaves it, with a log and a tablespace elsewhere.
    fn directory(scratch: &Path) -> PathBuf {
        let path = scratch.join("17/main");
        for name in [
            "base/5",
            "global",
            "pg_xact",
            "pg_tblspc",
            "pg_twophase",
            "pg_replslot/standby",
        ] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        fs::write(path.join("PG_VERSION"), "17\n").unwrap();
        fs::write(path.join("global/pg_control"), control::tests::file(1)).unwrap();
        fs::write(path.join("base/5/16384"), "rows").unwrap();
        fs::write(path.join("pg_replslot/standby/state"), "slot").unwrap();
        fs::write(path.join("server.key"), "secret").unwrap();
        fs::write(
            path.join("postgresql.conf"),
            "archive_command = 'scp %p elsewhere:'\n",
        )
        .unwrap();
        fs::create_dir_all(scratch.join("wal")).unwrap();
        fs::write(scratch.join("wal/000000010000000000000001"), "log").unwrap();
        symlink(scratch.join("wal"), path.join("pg_wal")).unwrap();
        let space = scratch.join("fast/PG_17_202406281/5");
        fs::create_dir_all(&space).unwrap();
        fs::write(space.join("16500"), "fast rows").unwrap();
        symlink(scratch.join("fast"), path.join("pg_tblspc/16400")).unwrap();
        path
    }

    #[test]
    fn a_copy_has_tables_log_and_tablespaces_and_nothing_that_is_private() {
        let scratch = tempfile::tempdir().unwrap();
        let path = directory(scratch.path());
        let found = DataDirectory::find(&path).unwrap();
        assert_eq!((found.major(), found.tablespaces()), ("17", 1));
        assert!(found.bytes() > 16 << 10, "{}", found.bytes());
        let to = scratch.path().join("copy");
        found.copy(&to, None, &|| Ok(())).unwrap();
        let read = |name: &str| fs::read_to_string(to.join(name)).unwrap();
        assert_eq!(read("base/5/16384"), "rows");
        assert_eq!(read("pg_wal/000000010000000000000001"), "log");
        assert_eq!(read("pg_tblspc/16400/PG_17_202406281/5/16500"), "fast rows");
        let is_link = |name: &str| fs::symlink_metadata(to.join(name)).unwrap().is_symlink();
        assert!(!is_link("pg_wal") && !is_link("pg_tblspc/16400"));
        for absent in ["server.key", "postgresql.conf", "pg_replslot/standby"] {
            assert!(!to.join(absent).exists(), "{absent}");
        }
        let stopped = found.copy(&scratch.path().join("other"), None, &|| {
            Err(Problem::new("interrupted"))
        });
        assert_eq!(stopped.unwrap_err().error, "interrupted");
    }

    #[test]
    fn a_directory_that_is_not_at_rest_is_refused_with_what_to_do() {
        let scratch = tempfile::tempdir().unwrap();
        let path = directory(scratch.path());
        let refused = || {
            let problem = DataDirectory::find(&path).unwrap_err();
            (problem.detail.unwrap(), problem.hint.unwrap())
        };
        for (name, why, hint) in [
            ("postmaster.pid", "runs", "stop"),
            ("backup_label", "base backup", "pg_basebackup"),
            ("recovery.signal", "not finished", "start it once"),
            ("standby.signal", "standby", "promote"),
            ("pg_twophase/0001", "prepared", "ROLLBACK PREPARED"),
        ] {
            fs::write(path.join(name), "").unwrap();
            let (detail, way_out) = refused();
            assert!(
                detail.contains(why) && way_out.contains(hint),
                "{detail} {way_out}"
            );
            fs::remove_file(path.join(name)).unwrap();
        }
        for (state, why) in [(6, "cleanly"), (2, "standby"), (5, "recovery")] {
            fs::write(path.join("global/pg_control"), control::tests::file(state)).unwrap();
            assert!(refused().0.contains(why), "{state}");
        }
    }

    #[test]
    fn a_base_backup_is_copied_with_its_label_and_without_what_would_start_a_standby() {
        let scratch = tempfile::tempdir().unwrap();
        let path = directory(scratch.path());
        fs::write(path.join("global/pg_control"), control::tests::file(6)).unwrap();
        let label =
            "START WAL LOCATION: 0/2000028\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n";
        fs::write(path.join("backup_label"), label).unwrap();
        fs::write(path.join("tablespace_map"), "16400 /fast\n").unwrap();
        let found = DataDirectory::find(&path).unwrap();
        assert!(found.is_backup());
        let to = scratch.path().join("copy");
        found.copy(&to, None, &|| Ok(())).unwrap();
        assert_eq!(fs::read_to_string(to.join("backup_label")).unwrap(), label);
        assert!(!to.join("tablespace_map").exists(), "it would make links");
        fs::write(path.join("standby.signal"), "").unwrap();
        let standby = DataDirectory::find(&path).unwrap_err();
        assert!(standby.hint.unwrap().contains("without -R"));
    }

    #[test]
    fn what_is_no_data_directory_or_lacks_a_tablespace_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let path = directory(scratch.path());
        let none = DataDirectory::find(scratch.path()).unwrap_err();
        assert!(none.error.ends_with("is not a data directory"), "{none:?}");
        fs::remove_dir_all(scratch.path().join("fast")).unwrap();
        let lost = DataDirectory::find(&path).unwrap_err();
        assert!(lost.error.contains("tablespace") && lost.detail.unwrap().contains("16400"));
    }

    #[test]
    fn a_directory_that_a_server_works_on_meanwhile_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = directory(scratch.path());
        let found = DataDirectory::find(&path).unwrap();
        let start = || {
            fs::write(path.join("global/pg_control"), control::tests::file(6)).unwrap();
            Ok(())
        };
        let problem = found
            .copy(&scratch.path().join("copy"), None, &start)
            .unwrap_err();
        assert!(problem.error.contains("changed while"), "{problem:?}");
    }
}
