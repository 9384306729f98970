//! Clearing up after a deltabench that was killed.

use crate::cgroups;
use crate::huge_pages;
use crate::kernel;
use crate::records::what_is_left;
use crate::remnants::{SharedMemory, end_servers};
use crate::workspace::{
    DRAFT_PREFIX, OWNER_FILE, OwnerRecord, check_parent, read_owner, remove_directory, take_over,
};
use deltabench_proc::host::{boot_id, host_name};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A draft younger than this may belong to a deltabench that is making it right now.
const DRAFT_AGE: Duration = Duration::from_secs(600);

/// Finds workspaces in `parent` whose deltabench is gone, stops their servers, gives their huge pages
/// back and removes their control groups and them. A workspace whose pages or groups cannot be given back
/// stays for the next sweep. Returns what was done, and what could not be, one
/// sentence each.
///
/// A process is stopped only if it is a `postgres`, or was started as an engine ([`crate::ENGINE_MARK`]) or
/// under a counter (`DELTABENCH_STARTED=counted`), that runs as that workspace's server user with its
/// working directory inside that workspace, whose maker neither holds the lock on its owner file nor runs
/// under its pid and start time.
pub fn sweep(parent: &Path) -> Vec<String> {
    if !parent.exists() {
        return Vec::new();
    }
    if let Err(problem) = check_parent(parent) {
        let why = problem.detail.unwrap_or(problem.error);
        return vec![format!(
            "did not look for stale servers in {}: {why}",
            parent.display()
        )];
    }
    let Ok(parent) = std::fs::canonicalize(parent) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(&parent) else {
        return Vec::new();
    };
    let mut directories: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    directories.sort();
    directories
        .iter()
        .flat_map(|directory| sweep_one(directory))
        .collect()
}

fn sweep_one(directory: &Path) -> Vec<String> {
    let place = directory.display();
    if is_young_draft(directory) {
        return Vec::new();
    }
    let ours = std::fs::symlink_metadata(directory.join(OWNER_FILE))
        .is_ok_and(|m| m.is_file() && m.uid() == kernel::effective_uid());
    if !ours {
        // An empty draft is all that a kill between two system calls can leave without an owner file.
        if is_draft(directory) {
            let _ = std::fs::remove_dir(directory);
        }
        return Vec::new();
    }
    // Kept until the end: two sweeps at once do not meet in one workspace.
    let Some(_lock) = take_over(directory) else {
        return Vec::new();
    };
    let record = match read_owner(directory) {
        Ok(record) => record,
        Err(why) => {
            return vec![format!(
                "left {place} alone: its owner file cannot be read: {why}"
            )];
        }
    };
    if record.host != host_name().unwrap_or_default() {
        return vec![format!(
            "left {place} alone: it was made on {}",
            record.host
        )];
    }
    let same_boot = record.boot_id == boot_id().unwrap_or_default();
    if same_boot && record.deltabench.is_running() {
        return Vec::new();
    }
    let mut done = Vec::new();
    if same_boot && !stop_and_give_back(directory, &record, &mut done) {
        return done;
    }
    match remove_directory(directory) {
        Ok(()) => done.push(format!("removed {place}, left by run {}", record.run)),
        Err(problem) => done.push(format!(
            "{}: {}",
            problem.error,
            problem.detail.unwrap_or_default()
        )),
    }
    done
}

/// Stops what still runs of a run and gives back what the kernel has for it. False if something is left: then
/// the directory is needed to find it again.
fn stop_and_give_back(directory: &Path, record: &OwnerRecord, done: &mut Vec<String>) -> bool {
    let place = directory.display();
    let memory: Vec<SharedMemory> = clusters(directory)
        .iter()
        .map(|c| SharedMemory::of(c))
        .collect();
    let (found, left) = end_servers(directory, record.server_uid);
    if found > 0 {
        done.push(format!(
            "stopped {found} server processes of run {}, whose deltabench (process {}) is gone",
            record.run, record.deltabench.pid
        ));
    }
    if left > 0 {
        done.push(format!(
            "{left} server processes in {place} would not stop; left their directory alone"
        ));
        return false;
    }
    for segment in memory {
        segment.release(record.server_uid);
    }
    done.extend(cgroups::remove_stale(directory));
    done.extend(huge_pages::give_back_stale(directory));
    if let Some(left) = what_is_left(directory) {
        done.push(format!(
            "left {place} alone: it lists {left} that could not be given back"
        ));
        return false;
    }
    true
}

fn clusters(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory.join("clusters"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn is_draft(directory: &Path) -> bool {
    directory
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with(DRAFT_PREFIX))
}

fn is_young_draft(directory: &Path) -> bool {
    let age = std::fs::metadata(directory)
        .and_then(|m| m.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    is_draft(directory) && age.is_none_or(|age| age < DRAFT_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::ServerUser;
    use crate::workspace::Workspace;
    use std::os::unix::fs::PermissionsExt;

    fn parent() -> tempfile::TempDir {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        scratch
    }

    /// A workspace whose maker is gone: its record as edited, its lock free.
    fn abandoned(parent: &Path, edit: impl Fn(&mut OwnerRecord)) -> std::path::PathBuf {
        let template =
            Workspace::create(parent, "template", &ServerUser::choose(None).unwrap()).unwrap();
        let mut record = read_owner(template.directory()).unwrap();
        drop(template);
        record.deltabench.start_ticks -= 1;
        edit(&mut record);
        let directory = parent.join("abandoned");
        std::fs::create_dir_all(directory.join("clusters/c0/data")).unwrap();
        std::fs::write(
            directory.join(OWNER_FILE),
            serde_json::to_string(&record).unwrap(),
        )
        .unwrap();
        directory
    }

    #[test]
    fn a_workspace_whose_maker_is_gone_is_removed_and_a_live_one_is_not() {
        let parent = parent();
        let stale = abandoned(parent.path(), |_| {});
        let live =
            Workspace::create(parent.path(), "live", &ServerUser::choose(None).unwrap()).unwrap();
        let done = sweep(parent.path());
        assert_eq!(done.len(), 1, "{done:?}");
        assert!(done[0].contains("removed") && !stale.exists());
        assert!(live.directory().exists());
        assert!(sweep(parent.path()).is_empty());
    }

    #[test]
    fn a_frozen_engine_of_a_killed_run_is_ended_and_a_users_program_beside_it_is_not() {
        let parent = parent();
        let stale = abandoned(parent.path(), |_| {});
        let user = ServerUser::choose(None).unwrap();
        let directory = stale.join("engine");
        user.make_directory(&directory).unwrap();
        let start = |environment: &[(String, String)]| {
            let launch = crate::Launch {
                program: Path::new("/bin/sleep"),
                arguments: vec!["600".into()],
                user: &user,
                directory: &directory,
                log: &stale.join("log"),
                cores: None,
                cgroups: &[],
                environment,
                death_signal: libc::SIGKILL,
                piped: true,
            };
            launch.start().unwrap()
        };
        let mark = crate::ENGINE_MARK;
        let (mut engine, handle) = start(&[(mark.0.to_owned(), mark.1.to_owned())]);
        let (mut other, other_handle) = start(&[]);
        handle.signal(libc::SIGSTOP).unwrap();
        let started = std::time::Instant::now();
        let done = sweep(parent.path());
        assert!(done[0].contains("stopped 1 server processes"), "{done:?}");
        assert!(!stale.exists());
        assert!(
            started.elapsed() < crate::remnants::QUIT_LIMIT,
            "nothing of it is waited for in vain"
        );
        assert!(handle.wait(Duration::ZERO) && !other_handle.wait(Duration::ZERO));
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&engine.wait().unwrap()),
            Some(libc::SIGKILL)
        );
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_workspace_stays_with_its_records_until_its_control_groups_are_removed() {
        let parent = parent();
        let stale = abandoned(parent.path(), |_| {});
        let group = parent.path().join("elsewhere/deltabench-run-c0");
        std::fs::create_dir_all(&group).unwrap();
        // An ordinary directory with a file in it: as a group it cannot be removed.
        std::fs::write(group.join("cgroup.procs"), "").unwrap();
        let record = stale.join(crate::records::CGROUPS_FILE);
        std::fs::write(&record, group.display().to_string()).unwrap();
        let done = sweep(parent.path()).join("\n");
        assert!(done.contains("could not remove"), "{done}");
        assert!(done.contains("it lists control groups"), "{done}");
        assert!(record.exists() && stale.join(OWNER_FILE).exists());
        std::fs::remove_dir_all(&group).unwrap();
        assert!(sweep(parent.path())[0].contains("removed") && !stale.exists());
    }

    #[test]
    fn a_record_of_another_boot_is_cleared_even_if_its_pid_lives_again() {
        let parent = parent();
        let stale = abandoned(parent.path(), |record| {
            record.boot_id = "another".into();
            record.deltabench.start_ticks += 1;
        });
        assert!(sweep(parent.path())[0].contains("removed"));
        assert!(!stale.exists());
    }

    #[test]
    fn what_another_machine_or_a_stranger_made_is_left_alone() {
        let parent = parent();
        let other = abandoned(parent.path(), |record| record.host = "elsewhere".into());
        std::fs::create_dir(parent.path().join("stranger")).unwrap();
        let done = sweep(parent.path());
        assert!(
            done.len() == 1 && done[0].contains("made on elsewhere"),
            "{done:?}"
        );
        assert!(other.exists() && parent.path().join("stranger").exists());
    }

    #[test]
    fn a_parent_that_others_can_write_to_is_not_swept() {
        let parent = parent();
        let stale = abandoned(parent.path(), |_| {});
        std::fs::set_permissions(parent.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(sweep(parent.path())[0].contains("others can write"));
        assert!(stale.exists());
    }

    #[test]
    fn a_parent_that_is_not_there_needs_no_sweeping() {
        assert!(sweep(Path::new("/no/such/place/of/deltabench")).is_empty());
    }
}
