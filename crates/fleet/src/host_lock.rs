//! One lane at a time on a machine, whoever starts it, and nothing else that measures beside it.
//!
//! A lane holds the lock alone. Other commands that measure share it among themselves, as they always could.

use crate::whole_file::failed;
use deltabench_model::problem::Problem;
use deltabench_proc::Process;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The file of a machine, for all its users. Tests have one of their own in their state directory.
const PLACE: &str = "/var/tmp/deltabench-host.lock";
/// Its name in a state directory.
pub const NAME: &str = "host.lock";
/// Everybody opens it for reading, which is enough to lock it.
const MODE: u32 = 0o644;
/// In a directory that everybody writes, a link may lead anywhere, and a pipe may wait for ever.
const NO_FOLLOW: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Whether this process has the machine alone.
static OURS: AtomicBool = AtomicBool::new(false);

/// Who holds the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub execution: String,
    pub lane: u32,
    pub pid: u32,
    /// Clock ticks after the start of the kernel at which the process began.
    pub process_start: u64,
}

/// Held while something is measured; ends with the process, however that dies.
#[derive(Debug)]
pub struct HostLock {
    file: File,
    alone: bool,
}

/// The lock, or who is in the way; `None` in it where nobody said so.
pub type Tried = Result<HostLock, Option<Holder>>;

impl Drop for HostLock {
    fn drop(&mut self) {
        if self.alone {
            OURS.store(false, Ordering::SeqCst);
            // Only words for messages.
            self.file.set_len(0).ok();
        }
        // Closing the file unlocks it too; this only makes it explicit and early.
        self.file.unlock().ok();
    }
}

impl Holder {
    /// This process, as the holder for a lane.
    pub fn own(execution: &str, lane: u32) -> Self {
        let (pid, process_start) = own_process();
        Self {
            execution: execution.to_owned(),
            lane,
            pid,
            process_start,
        }
    }

    /// Whether a lock file says so by our own word, of a process of our own. Another user may write anything
    /// there, and a lane ends its older attempt.
    pub fn is_ours(&self, lock: &Path) -> bool {
        let us = deltabench_proc::host::our_user();
        let is_our =
            |data: std::io::Result<Metadata>| data.is_ok_and(|data| Some(data.uid()) == us);
        let process = std::fs::metadata(format!("/proc/{}", self.pid));
        is_our(std::fs::symlink_metadata(lock)) && is_our(process)
    }

    /// Whether that process still runs.
    pub fn is_alive(&self) -> bool {
        is_process(self.pid, self.process_start)
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "lane {} of {}, process {}",
            self.lane, self.execution, self.pid
        )
    }
}

/// This process: its number, and when it began.
pub fn own_process() -> (u32, u64) {
    let pid = std::process::id();
    (pid, start_of(pid).unwrap_or(0))
}

/// When a process began, in clock ticks after the start of the kernel; `None` if there is none, or it has
/// ended.
pub fn start_of(pid: u32) -> Option<u64> {
    let stat = Process::of(pid).stat()?;
    (!stat.has_ended()).then_some(stat.start_ticks)
}

/// Whether a process with this number runs that began then: numbers come again.
pub fn is_process(pid: u32, start: u64) -> bool {
    start_of(pid) == Some(start)
}

/// The file to lock.
pub fn path() -> PathBuf {
    let state = std::env::var_os("DELTABENCH_STATE").filter(|value| !value.is_empty());
    state.map_or_else(
        || PathBuf::from(PLACE),
        |state| PathBuf::from(state).join(NAME),
    )
}

/// Takes the machine for a lane alone, if nobody measures on it.
///
/// Errors: a file that cannot be made.
pub fn alone(path: &Path, holder: &Holder) -> Result<Tried, Problem> {
    let fail = |error: std::io::Error| match is_something_else(path) {
        true => something_else(path),
        false => failed("lock", path, &error),
    };
    let mut file = opened(path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(holder_in(&mut file))),
        Err(TryLockError::Error(error)) => return Err(fail(error)),
    }
    // Of a file of another user only the lock is ours: then nobody can say who holds it.
    if let Ok(text) = serde_json::to_string(holder) {
        let written = file.set_len(0).and_then(|()| file.rewind());
        written.and_then(|()| file.write_all(text.as_bytes())).ok();
    }
    OURS.store(true, Ordering::SeqCst);
    Ok(Ok(HostLock { file, alone: true }))
}

/// Whether this process has the machine alone: it is a lane.
pub fn is_ours() -> bool {
    OURS.load(Ordering::SeqCst)
}

/// Takes the machine beside others that measure, if no lane has it. Where there can be no lock there can be
/// no lane either: `None`.
///
/// Errors: something else is in the place of the file, so that lanes and others would not see each other.
pub fn beside_others(path: &Path) -> Result<Option<Tried>, Problem> {
    let mut file = match opened(path) {
        Ok(file) => file,
        Err(_) if is_something_else(path) => return Err(something_else(path)),
        Err(_) => return Ok(None),
    };
    Ok(match file.try_lock_shared() {
        Ok(()) => Some(Ok(HostLock { file, alone: false })),
        Err(TryLockError::WouldBlock) => Some(Err(holder_in(&mut file))),
        Err(TryLockError::Error(_)) => None,
    })
}

/// Whether there is a link, a directory, a pipe.
fn is_something_else(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|data| !data.is_file())
}

fn something_else(path: &Path) -> Problem {
    Problem::new(format!("{} is no plain file", path.display()))
        .detail(
            "it is the lock of this host; through a link two measurements would not see each other",
        )
        .hint(format!(
            "see who made it, then remove it: ls -l {0}",
            path.display()
        ))
}

fn holder_in(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let holder: Holder = serde_json::from_str(&text).ok()?;
    holder.is_alive().then_some(holder)
}

/// Opens the file as well as we may: for writing, else for reading; made if it is not there.
fn opened(path: &Path) -> std::io::Result<File> {
    let file = opened_as_it_is(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(ErrorKind::InvalidInput.into())
}

fn opened_as_it_is(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(NO_FOLLOW);
    match options.clone().write(true).open(path) {
        Ok(file) => return Ok(file),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return options.open(path),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let made = options.write(true).create_new(true).mode(MODE).open(path);
    match made {
        Ok(file) => {
            // Whatever the umask is.
            file.set_permissions(Permissions::from_mode(MODE)).ok();
            Ok(file)
        }
        // Somebody was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => OpenOptions::new()
            .read(true)
            .custom_flags(NO_FOLLOW)
            .open(path),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_alone_and_others_share() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(NAME);
        let holder = Holder::own("e", 3);
        let beside = || beside_others(&path).unwrap().unwrap();
        let one = beside().unwrap();
        let two = beside().unwrap();
        assert_eq!(alone(&path, &holder).unwrap().unwrap_err(), None);
        drop((one, two));
        let lane = alone(&path, &holder).unwrap().unwrap();
        assert_eq!(beside().unwrap_err(), Some(holder.clone()));
        let again = alone(&path, &Holder::own("f", 0)).unwrap().unwrap_err();
        assert_eq!(again, Some(holder), "who holds it is told");
        drop(lane);
        assert!(beside().is_ok());
    }

    #[test]
    fn a_link_in_its_place_is_refused_by_both() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(NAME);
        std::os::unix::fs::symlink(place.path().join("elsewhere"), &path).unwrap();
        let lane = alone(&path, &Holder::own("e", 3)).unwrap_err();
        assert!(lane.error.contains("is no plain file"), "{lane}");
        assert_eq!(beside_others(&path).unwrap_err().error, lane.error);
        assert!(!place.path().join("elsewhere").exists());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(beside_others(&path).is_err());
        // Where there can be no file there can be no lane.
        assert!(beside_others(Path::new("/proc/no/lock")).unwrap().is_none());
    }

    #[test]
    fn what_another_user_wrote_into_the_lock_is_no_word_of_ours() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(NAME);
        let holder = Holder::own("e", 3);
        let _lane = alone(&path, &holder).unwrap().unwrap();
        assert!(holder.is_ours(&path));
        let nobody = Holder {
            pid: 0,
            ..holder.clone()
        };
        assert!(!nobody.is_ours(&path), "no such process");
        // Only root can give files away; others have files of root.
        let theirs = match std::os::unix::fs::chown(&path, Some(12_345), None) {
            Ok(()) => path,
            Err(_) => PathBuf::from("/etc/passwd"),
        };
        assert!(!holder.is_ours(&theirs));
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let (pid, start) = own_process();
        assert!(is_process(pid, start) && !is_process(pid, start + 1));
    }
}
