//! Clusters whose data are those of a user's data directory: copied, prepared by a server without network,
//! upgraded by `pg_upgrade`.

use super::{ABANDON_STEPS, Cluster};
use crate::configuration;
use crate::directory::{Control, DataDirectory, State};
use crate::failure::failed;
use crate::kernel;
use crate::log;
use crate::process::Handle;
use crate::remnants::end_servers;
use crate::spawn::Launch;
use crate::template::{SETTINGS_FILE, major};
use crate::tree;
use crate::upgrade::{PORT, Programs, complaints, problem_of};
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Files of configuration that a copy has from our own template in place of the user's.
const CONFIGURATION: [&str; 5] = [
    "postgresql.conf",
    "postgresql.auto.conf",
    "pg_hba.conf",
    "pg_ident.conf",
    SETTINGS_FILE,
];
/// Settings of servers that only prepare or upgrade, each with the first version that has it: nothing is
/// archived or analysed, no subscription can connect, and no trigger runs because somebody logs in. A cluster
/// with many tables needs many locks.
const PREPARING: [(&str, &str, u32); 8] = [
    ("fsync", "off", 0),
    ("full_page_writes", "off", 0),
    ("autovacuum", "off", 0),
    ("archive_mode", "off", 0),
    ("lc_messages", "C", 0),
    ("max_locks_per_transaction", "512", 0),
    ("max_logical_replication_workers", "0", 100_000),
    ("event_triggers", "off", 170_000),
];
/// And of a server that recovers: transactions may have been prepared and ended while the backup was taken.
const RECOVERING: [(&str, &str, u32); 1] = [("max_prepared_transactions", "1000", 0)];
/// What its session sets over the user's settings of the database and of all roles.
const SESSION: [&str; 2] = [
    "SET default_transaction_read_only = off",
    "SET search_path = pg_catalog",
];
/// How often a running program is looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// Limit for what a server without network does: statements on catalogs, and a checkpoint.
const PREPARING_LIMIT: Duration = Duration::from_secs(600);

impl Cluster {
    /// What its own data directory says of itself.
    ///
    /// Errors: it cannot be read.
    pub fn control(&self) -> Result<Control, Problem> {
        Control::of(&self.data_dir())
    }

    /// Replaces the data with a copy of a user's directory. Of the configuration it keeps its own.
    ///
    /// Errors: a directory of another version or build, one that changes meanwhile, a full disk, an
    /// interruption.
    pub fn adopt(&mut self, from: &DataDirectory, interrupted: &AtomicBool) -> Result<(), Problem> {
        self.check_stopped("replace the data of")?;
        if let Some(why) = from.control().objection(&self.control()?) {
            return Err(Problem::new(format!(
                "{} cannot start {}",
                self.installation.resolved,
                from.path().display()
            ))
            .detail(why)
            .hint(
                "name a build like the one that made it, such as installed:VERSION or path:DIR",
            ));
        }
        let own = self.directory.join("configuration");
        self.keep_configuration(&own)?;
        let (data, owner) = (self.data_dir(), self.user.owner());
        tree::remove_tree(&data)?;
        from.copy(&data, owner, &|| go_on(interrupted))?;
        self.take_configuration(&own)?;
        tree::remove_tree(&own)?;
        if from.is_backup() {
            self.recover(from.path(), interrupted)?;
        }
        kernel::sync_file_system(&data).map_err(|error| failed("sync", &data, &error))?;
        self.clean = true;
        Ok(())
    }

    /// Replaces the data with a copy of those of a stopped cluster of the same major version.
    ///
    /// Errors: the other did not stop cleanly; a build with other catalogs; a full disk; an interruption.
    pub fn copy_adopted(&mut self, from: &Self, interrupted: &AtomicBool) -> Result<(), Problem> {
        self.check_stopped("replace the data of")?;
        from.check_at_rest()?;
        if let Some(why) = from.control()?.objection(&self.control()?) {
            return Err(Problem::new(format!(
                "{} cannot start data of {}",
                self.installation.resolved, from.installation.resolved
            ))
            .detail(why));
        }
        let (data, owner) = (self.data_dir(), self.user.owner());
        tree::remove_tree(&data)?;
        tree::copy_tree_while(&from.data_dir(), &data, owner, &|| go_on(interrupted))?;
        kernel::sync_file_system(&data).map_err(|error| failed("sync", &data, &error))?;
        self.clean = true;
        Ok(())
    }

    fn keep_configuration(&self, own: &Path) -> Result<(), Problem> {
        tree::remove_tree(own)?;
        tree::make_directory(own, 0o700, None)?;
        for name in CONFIGURATION {
            copy_text(&self.data_dir().join(name), &own.join(name), None)?;
        }
        Ok(())
    }

    fn take_configuration(&self, own: &Path) -> Result<(), Problem> {
        for name in CONFIGURATION {
            copy_text(
                &own.join(name),
                &self.data_dir().join(name),
                self.user.owner(),
            )?;
        }
        Ok(())
    }

    /// Has a server of one session recover the copy of a base backup with the log that is in it. It has no
    /// command of the user, follows no server, and makes no link to a tablespace elsewhere.
    ///
    /// Errors: the log is not whole, the backup has prepared transactions, an interruption.
    fn recover(&self, backup: &Path, interrupted: &AtomicBool) -> Result<(), Problem> {
        let (data, scratch) = (self.data_dir(), self.directory.join("recovery"));
        tree::make_directory(&scratch, 0o700, self.user.owner())?;
        // A server that recovers refuses tablespaces that are no links.
        self.link_tablespaces(&data, &scratch)?;
        self.write_preparing_with(&data, self.installation.version_num, &RECOVERING)?;
        let links = data.join("pg_tblspc");
        // The log may say that a tablespace was made: then a link to the original would be made here.
        set_mode(&links, 0o500)?;
        let recovered = self.run_recovery(interrupted);
        set_mode(&links, 0o700)?;
        if let Some(problem) = recovered? {
            return Err(problem);
        }
        self.embed_tablespaces()?;
        tree::remove_tree(&scratch)?;
        if !entries(&data.join("pg_twophase"))?.is_empty() {
            return Err(Problem::new(format!("{} has prepared transactions", backup.display()))
                .detail("their locks would stay for ever")
                .hint(
                    "start a copy of it with its own version, end them with COMMIT PREPARED or ROLLBACK \
                     PREPARED, and stop it",
                ));
        }
        match self.control()?.state {
            State::ShutDown => Ok(()),
            state => Err(
                Problem::new(format!("{} was not recovered", backup.display()))
                    .detail(format!("pg_control of the copy says: {state:?}")),
            ),
        }
    }

    /// Runs a program to its end, or until somebody interrupts it; whether it ended well.
    fn run_to_end(&self, launch: Launch<'_>, interrupted: &AtomicBool) -> Result<bool, Problem> {
        let (mut child, handle) = launch.start()?;
        // One that was interrupted is ended below.
        ends_while(&handle, &|| !interrupted.load(Ordering::Relaxed));
        self.reap(&mut child, &handle)
    }

    /// Why it could not be recovered.
    ///
    /// Errors: the server cannot be started, an interruption.
    fn run_recovery(&self, interrupted: &AtomicBool) -> Result<Option<Problem>, Problem> {
        let start = log::length(&self.log_path());
        let program = self.installation.bin_dir.join("postgres");
        let launch = Launch {
            program: &program,
            // Without input it ends as soon as it has recovered.
            arguments: self.single("template1"),
            user: &self.user,
            directory: &self.directory,
            log: &self.log_path(),
            cores: None,
            cgroups: &[],
            environment: &[],
            death_signal: libc::SIGQUIT,
            piped: false,
        };
        let ended = self.run_to_end(launch, interrupted)?;
        go_on(interrupted)?;
        let logged = log::since(&self.log_path(), start);
        if ended && !has_failed(&logged) {
            return Ok(None);
        }
        let end = log::last_lines(&logged, log::SHOWN_LINES);
        Ok(Some(
            Problem::new(format!(
                "{} cannot recover the copy of the base backup",
                self.installation.resolved
            ))
            .detail(end.clone())
            .hint(way_out(&end)),
        ))
    }

    /// Arguments of a server of one session.
    fn single(&self, database: &str) -> Vec<OsString> {
        vec![
            "--single".into(),
            "-D".into(),
            self.data_dir().into(),
            "-c".into(),
            "exit_on_error=on".into(),
            database.into(),
        ]
    }

    fn write_preparing(&self, data: &Path, version_num: u32) -> Result<(), Problem> {
        self.write_preparing_with(data, version_num, &[])
    }

    fn write_preparing_with(
        &self,
        data: &Path,
        version_num: u32,
        more: &[(&str, &str, u32)],
    ) -> Result<(), Problem> {
        let settings = PREPARING
            .iter()
            .chain(more)
            .filter(|(_, _, since)| version_num >= *since);
        let settings: Vec<(String, String)> = settings
            .map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let text = configuration::render(&settings, self.workspace.sockets(), PORT, &[]);
        tree::write_file(&data.join(SETTINGS_FILE), &text, self.user.owner())
    }

    /// Has statements carried out, one on each line, by a server of one session: without network, sockets,
    /// passwords and background workers, as the first superuser, whatever its name is.
    ///
    /// Shape:  what the statements return, value by value; nulls are absent.
    /// Errors: a statement that fails, with the end of the log; a server that needs longer than ten minutes;
    /// an interruption.
    pub fn single_user(
        &mut self,
        database: &str,
        statements: &[String],
        interrupted: &AtomicBool,
    ) -> Result<Vec<String>, Problem> {
        self.single_user_within(PREPARING_LIMIT, database, statements, interrupted)
    }

    fn single_user_within(
        &mut self,
        limit: Duration,
        database: &str,
        statements: &[String],
        interrupted: &AtomicBool,
    ) -> Result<Vec<String>, Problem> {
        self.check_stopped("prepare")?;
        go_on(interrupted)?;
        self.write_preparing(&self.data_dir(), self.installation.version_num)?;
        self.log_start = log::length(&self.log_path());
        let program = self.installation.bin_dir.join("postgres");
        let launch = Launch {
            program: &program,
            arguments: self.single(database),
            user: &self.user,
            directory: &self.directory,
            log: &self.log_path(),
            cores: None,
            cgroups: &[],
            environment: &[],
            death_signal: libc::SIGQUIT,
            piped: true,
        };
        self.clean = false;
        let (mut child, handle) = launch.start()?;
        let all = [SESSION.map(str::to_owned).as_slice(), statements].concat();
        let deadline = Instant::now() + limit;
        let said = converse(&mut child, &handle, &(all.join("\n") + "\n"), &|| {
            Instant::now() < deadline && !interrupted.load(Ordering::Relaxed)
        });
        let status = child
            .wait()
            .map_err(|error| failed("wait for", &program, &error))?;
        go_on(interrupted)?;
        let logged = log::since(&self.log_path(), self.log_start);
        if said.is_none() {
            return Err(Problem::new(format!(
                "{} did not prepare the copy of the data directory within {} s",
                self.installation.resolved,
                limit.as_secs()
            ))
            .detail(log::last_lines(&logged, log::SHOWN_LINES))
            .hint("start a copy of the directory with its own server, and look whether it works there"));
        }
        if !status.success() || has_failed(&logged) {
            let end = log::last_lines(&logged, log::SHOWN_LINES);
            return Err(Problem::new(format!(
                "{} cannot prepare the copy of the data directory",
                self.installation.resolved
            ))
            .detail(end.clone())
            .hint(way_out(&end)));
        }
        self.clean = true;
        Ok(values(&said.unwrap_or_default()))
    }

    /// Replaces the data with those of an older cluster, upgraded by the `pg_upgrade` of this one. The older
    /// one stays as it is.
    ///
    /// Shape:  this cluster is new and has the checksums of the other.
    /// Errors: programs that are missing, what `pg_upgrade` complains of, a full disk, an interruption.
    pub fn upgrade_from(&mut self, from: &Self, interrupted: &AtomicBool) -> Result<(), Problem> {
        self.check_stopped("upgrade")?;
        from.check_at_rest()?;
        let programs = Programs::of(&from.installation, &self.installation)?;
        let scratch = self.directory.join("upgrade");
        tree::make_directory(&scratch, 0o700, self.user.owner())?;
        let old = scratch.join("old");
        tree::copy_tree_while(&from.data_dir(), &old, self.user.owner(), &|| {
            go_on(interrupted)
        })?;
        self.link_tablespaces(&old, &scratch)?;
        self.write_preparing(&old, from.installation.version_num)?;
        self.write_preparing(&self.data_dir(), self.installation.version_num)?;
        self.clean = false;
        self.pg_upgrade(
            (&programs, &from.installation),
            (&scratch, &old),
            interrupted,
        )?;
        self.embed_tablespaces()?;
        tree::remove_tree(&scratch)?;
        let data = self.data_dir();
        kernel::sync_file_system(&data).map_err(|error| failed("sync", &data, &error))?;
        self.clean = true;
        Ok(())
    }

    fn pg_upgrade(
        &self,
        (programs, from): (&Programs, &Installation),
        (scratch, old): (&Path, &Path),
        interrupted: &AtomicBool,
    ) -> Result<(), Problem> {
        let log_path = self.directory.join("pg_upgrade.log");
        let launch = Launch {
            program: &programs.upgrade,
            arguments: programs.arguments(old, &self.data_dir(), self.workspace.sockets()),
            user: &self.user,
            directory: scratch,
            log: &log_path,
            cores: None,
            cgroups: &[],
            environment: &[],
            death_signal: libc::SIGTERM,
            piped: false,
        };
        let ended = self.run_to_end(launch, interrupted)?;
        // Its own servers end with it, unless it was ended itself.
        end_servers(&self.directory, self.user.uid);
        go_on(interrupted)?;
        if ended {
            return Ok(());
        }
        let said = log::since(&log_path, 0);
        let reports = complaints(&[
            self.data_dir().join("pg_upgrade_output.d"),
            scratch.to_path_buf(),
        ]);
        Err(problem_of((from, &self.installation), &said, &reports))
    }

    /// Whether a program that is to have ended did so well.
    fn reap(&self, child: &mut Child, handle: &Handle) -> Result<bool, Problem> {
        if !handle.wait(Duration::ZERO) {
            // Reaped below in any case.
            let _ = handle.signal(libc::SIGKILL);
        }
        let status = child.wait();
        let status =
            status.map_err(|error| failed("wait for a program in", &self.directory, &error))?;
        Ok(status.success())
    }

    /// `pg_upgrade` asks the old server where its tablespaces are: they become links to directories beside
    /// the old data.
    fn link_tablespaces(&self, old: &Path, scratch: &Path) -> Result<(), Problem> {
        let places = scratch.join("tablespaces");
        tree::make_directory(&places, 0o700, self.user.owner())?;
        for own in entries(&old.join("pg_tblspc"))? {
            let place = places.join(own.file_name().unwrap_or_default());
            std::fs::rename(&own, &place).map_err(|error| failed("rename", &own, &error))?;
            std::os::unix::fs::symlink(&place, &own)
                .map_err(|error| failed("make", &own, &error))?;
        }
        Ok(())
    }

    /// Takes the tablespaces of the new version into the data directory.
    fn embed_tablespaces(&self) -> Result<(), Problem> {
        for own in entries(&self.data_dir().join("pg_tblspc"))? {
            let place = std::fs::read_link(&own).map_err(|error| failed("read", &own, &error))?;
            std::fs::remove_file(&own).map_err(|error| failed("remove", &own, &error))?;
            tree::make_directory(&own, 0o700, self.user.owner())?;
            let own_version = format!("PG_{}_", major(self.installation.version_num));
            for version in entries(&place)? {
                let name = version.file_name().unwrap_or_default();
                if !name.to_string_lossy().starts_with(&own_version) {
                    continue;
                }
                let to = own.join(name);
                std::fs::rename(&version, &to)
                    .map_err(|error| failed("rename", &version, &error))?;
            }
        }
        Ok(())
    }
}

/// Whether a server said that something failed.
fn has_failed(logged: &str) -> bool {
    let words = ["FATAL:  ", "PANIC:  ", "ERROR:  "];
    words.iter().any(|word| logged.contains(word))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Problem> {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).map_err(|error| failed("change", path, &error))
}

/// Errors: the user wants to stop.
fn go_on(interrupted: &AtomicBool) -> Result<(), Problem> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(Problem::new("interrupted")),
        false => Ok(()),
    }
}

fn copy_text(from: &Path, to: &Path, owner: Option<tree::Owner>) -> Result<(), Problem> {
    let text = std::fs::read_to_string(from).map_err(|error| failed("read", from, &error))?;
    tree::write_file(to, &text, owner)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Problem> {
    let read = std::fs::read_dir(directory).map_err(|error| failed("read", directory, &error))?;
    let mut all: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    all.sort();
    Ok(all)
}

/// Sends statements to a server of one session and hears it to its end. Nothing is returned if it had to be
/// ended because `may_go_on` no longer held.
fn converse(
    child: &mut Child,
    handle: &Handle,
    statements: &str,
    may_go_on: &dyn Fn() -> bool,
) -> Option<String> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A server that has ended takes no more; its log says why.
            let _ = input.map(|mut input| input.write_all(statements.as_bytes()));
        });
        // Beside the wait: a server that hangs keeps its output open, too.
        let hearing = scope.spawn(move || {
            let mut said = Vec::new();
            // What is cut is found by the status.
            let _ = output.map(|mut output| output.read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        });
        let ended = ends_while(handle, may_go_on);
        if !ended {
            end_by_force(handle);
        }
        hearing.join().ok().filter(|_| ended)
    })
}

/// Waits for the end of a program; false if it still runs when `may_go_on` no longer holds.
fn ends_while(handle: &Handle, may_go_on: &dyn Fn() -> bool) -> bool {
    while !handle.wait(INTERVAL) {
        if !may_go_on() {
            return false;
        }
    }
    true
}

/// Ends a program whose data nobody wants any more.
fn end_by_force(handle: &Handle) {
    for (signal, limit) in ABANDON_STEPS {
        // A refusal shows in the wait.
        let _ = handle.signal(*signal);
        if handle.wait(*limit) {
            return;
        }
    }
}

/// The values in what a server of one session prints: `\t 1: name = "value"\t(typeid = ...`.
///
/// Source: `debugtup` in printtup.c.
fn values(said: &str) -> Vec<String> {
    let value = |line: &str| {
        let (_, rest) = line.split_once(" = \"")?;
        let (value, _) = rest.rsplit_once("\"\t(typeid = ")?;
        Some(value.to_owned())
    };
    said.lines().filter_map(value).collect()
}

/// What to do about a server that cannot use the copy.
fn way_out(log: &str) -> &'static str {
    if log.contains("locale") || log.contains("ICU") || log.contains("collation") {
        "install the locale on this machine (locale-gen), or use targets with it, such as installed:VERSION"
    } else if log.contains("Tablespace/CREATE") {
        "a tablespace was made while the backup was taken, and a server would make a link to it: take \
         another backup"
    } else if [
        "WAL ends before",
        "checkpoint record",
        "requested WAL segment",
    ]
    .iter()
    .any(|words| log.contains(words))
    {
        "its write-ahead log is not in it: take the backup with `pg_basebackup -X stream`, or let a server \
         of its own version recover a copy of it with restore_command, and stop that server"
    } else if log.contains("could not access file") || log.contains("could not load library") {
        "use targets that have this library, such as installed:VERSION or path:DIR"
    } else {
        "start a copy of the directory with its own server, and look whether it works there"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::ServerUser;
    use crate::workspace::Workspace;
    use std::sync::Arc;

    #[test]
    fn values_of_a_server_of_one_session_are_read() {
        let said = "\nPostgreSQL stand-alone backend 17.11\nbackend> \t 1: rolname\t(typeid = 19, len = 64, \
                    typmod = -1, byval = f)\n\t----\n\t 1: rolname = \"my \"\"boss\"\t(typeid = 19, len = 6, \
                    typmod = -1, byval = f)\n\t----\nbackend> ";
        assert_eq!(values(said), ["my \"\"boss"]);
    }

    #[test]
    fn what_a_server_lacks_has_a_way_out() {
        assert!(
            way_out("FATAL:  database locale is incompatible with operating system")
                .contains("locale-gen")
        );
        assert!(way_out("could not access file \"$libdir/postgis-3\"").contains("library"));
        assert!(way_out("FATAL:  WAL ends before end of online backup").contains("-X stream"));
        let made = "FATAL:  Permission denied\nCONTEXT:  WAL redo at 0/1 for Tablespace/CREATE: 1";
        assert!(way_out(made).contains("another backup"));
        assert!(way_out("PANIC").contains("its own server"));
    }

    /// A stopped cluster whose server is a script.
    fn cluster(scratch: &Path, script: &str) -> Cluster {
        set_mode(scratch, 0o755).unwrap();
        let program = scratch.join("bin/postgres");
        std::fs::create_dir(scratch.join("bin")).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_mode(&program, 0o755).unwrap();
        let mut installation = deltabench_testkit::installations::installed("pg");
        installation.bin_dir = scratch.join("bin");
        let user = ServerUser::choose(None).unwrap();
        let workspace = Workspace::create(&scratch.join("w"), "run", &user).unwrap();
        let directory = workspace.directory().join("clusters/c0");
        tree::make_directory(&directory, 0o711, None).unwrap();
        user.make_directory(&directory.join("data")).unwrap();
        Cluster {
            name: "c0".to_owned(),
            directory,
            installation,
            settings: Vec::new(),
            user,
            workspace: Arc::clone(&workspace.inner),
            server: None,
            clean: true,
            log_start: 0,
        }
    }

    /// Says something, and then neither ends nor closes its output.
    const HANGS: &str = "echo begun; touch data/begun; exec sleep 600";
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_server_of_one_session_that_hangs_is_ended_after_its_time() {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        let mut cluster = cluster(scratch.path(), HANGS);
        let (started, stay) = (Instant::now(), AtomicBool::new(false));
        let second = Duration::from_secs(1);
        let ended = cluster.single_user_within(second, "postgres", &[], &stay);
        assert!(ended.unwrap_err().error.contains("within 1 s"));
        assert!(started.elapsed() < MINUTE);
        assert!(cluster.check_at_rest().is_err(), "nobody copies it");
    }

    #[test]
    fn an_interruption_ends_a_server_of_one_session_and_no_other_is_started() {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        let mut cluster = cluster(scratch.path(), HANGS);
        let (started, stop) = (Instant::now(), AtomicBool::new(false));
        let begun = cluster.data_dir().join("begun");
        let interrupted = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.exists() && started.elapsed() < MINUTE {
                    std::thread::sleep(Duration::from_millis(5));
                }
                stop.store(true, Ordering::Relaxed);
            });
            cluster.single_user("postgres", &[], &stop)
        });
        assert_eq!(interrupted.unwrap_err().error, "interrupted");
        assert!(begun.exists() && started.elapsed() < MINUTE);
        std::fs::remove_file(&begun).unwrap();
        let next = cluster.single_user("postgres", &[], &stop);
        assert_eq!(next.unwrap_err().error, "interrupted");
        assert!(!begun.exists());
    }

    #[test]
    fn an_interruption_stops_a_copy() {
        assert!(go_on(&AtomicBool::new(false)).is_ok());
        assert_eq!(
            go_on(&AtomicBool::new(true)).unwrap_err().error,
            "interrupted"
        );
    }
}
