//! Processes named so that a reused pid is never mistaken for them.

use crate::counter::COUNTED_MARK;
use crate::kernel;
use deltabench_proc::{Process, Stat, process_ids, process_tree};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// Variable that a worker of an engine has, and everything that it starts: by it, and by where it works,
/// [`crate::sweep`] knows that it is ours.
pub const ENGINE_MARK: (&str, &str) = ("DELTABENCH_STARTED", "engine");

/// How long processes may take to stop: one that waits for its disk stops when it has it.
pub(crate) const FREEZE_LIMIT: Duration = Duration::from_secs(60);

/// First and longest pause between two looks whether all have stopped.
const LOOKS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(5));

/// A process: its pid and when it started, which together never repeat until the machine restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since the machine started.
    pub(crate) start_ticks: u64,
}

impl Identity {
    /// The process that has this pid now; `None` if there is none, or only its unreaped remains.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = Process::of(pid).stat()?;
        (!stat.has_ended()).then_some(Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// The same for a child of ours that may already have ended, as long as it is not reaped.
    fn of_child(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            start_ticks: Process::of(pid).stat()?.start_ticks,
        })
    }

    /// Whether this very process still runs.
    pub(crate) fn is_running(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// A process that can be signalled and waited for without a race against pid reuse.
pub struct Handle {
    pub(crate) identity: Identity,
    // Absent on kernels before 5.3; there the identity is checked again before each signal.
    pidfd: Option<OwnedFd>,
}

impl Handle {
    /// A handle on the process that has this pid now.
    pub(crate) fn open(pid: u32) -> Option<Self> {
        // Opened before the identity is read: from then on the pid cannot be reused behind the
        // descriptor's back.
        let pidfd = kernel::pidfd_open(pid).ok()?;
        let identity = Identity::of(pid)?;
        Some(Self { identity, pidfd })
    }

    /// A handle on a child that has not been reaped, whether it runs or not.
    pub(crate) fn of_child(child: &Child) -> Option<Self> {
        let pidfd = kernel::pidfd_open(child.id()).ok()?;
        let identity = Identity::of_child(child.id())?;
        Some(Self { identity, pidfd })
    }

    /// Sends a signal; a process that has ended is no error.
    ///
    /// Errors: the kernel's refusal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let sent = match &self.pidfd {
            Some(pidfd) => kernel::pidfd_signal(pidfd, signal),
            None if self.identity.is_running() => kernel::kill(self.identity.pid, signal),
            None => Ok(()),
        };
        match sent {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            other => other,
        }
    }

    /// Waits until the process has ended (it may still have to be reaped); false when `limit` passes
    /// first.
    pub fn wait(&self, limit: Duration) -> bool {
        if let Some(pidfd) = &self.pidfd
            && let Ok(ended) = kernel::pidfd_wait(pidfd, limit)
        {
            return ended;
        }
        let deadline = Instant::now() + limit;
        while self.identity.is_running() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// Waits until all threads of a process do nothing, or it has ended.
pub(crate) fn wait_until_stopped(pid: u32, deadline: Instant) -> Result<(), String> {
    let (mut pause, longest) = LOOKS;
    loop {
        match Process::of(pid).stat() {
            None => return Ok(()),
            Some(stat) if does_nothing(pid, &stat) => return Ok(()),
            Some(_) if Instant::now() >= deadline => {
                return Err(format!(
                    "process {pid} did not stop within {} s",
                    FREEZE_LIMIT.as_secs()
                ));
            }
            Some(_) => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

/// Whether a process that was told to stop works no more.
///
/// One that has begun another program by vfork(2) or posix_spawn(3) waits in the kernel until its child runs
/// that. A child that was stopped before never does, and so its parent is never seen as stopped. It stops as
/// soon as the child goes on, before it does anything.
pub(crate) fn does_nothing(pid: u32, stat: &Stat) -> bool {
    stat.has_ended() || stat.is_stopped() || stat.state == b'D' && has_stopped_child(pid)
}

fn has_stopped_child(pid: u32) -> bool {
    let tree = process_tree(pid).unwrap_or_default().into_iter();
    let mut stats = tree.filter_map(|child| Process::of(child).stat());
    stats.any(|child| child.parent == pid && child.is_stopped())
}

/// A process of a server of ours that does nothing until this is dropped, or until it is thawed.
pub struct Frozen(Handle);

impl Frozen {
    /// Stops the process that has this pid now; none if there is none, or the kernel refuses.
    pub fn of(pid: u32) -> Option<Self> {
        let handle = Handle::open(pid)?;
        handle.signal(libc::SIGSTOP).ok()?;
        Some(Self(handle))
    }

    /// Waits until it does nothing, or has ended.
    ///
    /// Errors: it goes on for a minute.
    pub fn await_stop(&self) -> Result<(), String> {
        let Self(handle) = self;
        wait_until_stopped(handle.identity.pid, Instant::now() + FREEZE_LIMIT)
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        let Self(handle) = self;
        // One that has ended meanwhile needs nothing any more.
        let _ = handle.signal(libc::SIGCONT);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
    }
}

/// The servers (and initdbs) of `uid` that work inside `directory`: every one of their processes
/// changes into the data directory or is started in its parent. Other programs there, a user's shell
/// for example, are not listed.
pub(crate) fn servers_inside(directory: &Path, uid: u32) -> Vec<Handle> {
    processes_inside(directory, uid, is_server)
}

/// The same for workers of engines, with what a `db_bench` or a script around it has started.
pub(crate) fn engines_inside(directory: &Path, uid: u32) -> Vec<Handle> {
    processes_inside(directory, uid, is_engine)
}

fn processes_inside(directory: &Path, uid: u32, is_one: fn(&Process) -> bool) -> Vec<Handle> {
    let ids = process_ids(Path::new("/proc")).unwrap_or_default();
    ids.into_iter()
        .filter_map(|pid| {
            // The handle comes first, so that what is checked below is the process that would be
            // signalled.
            let handle = Handle::open(pid)?;
            let process = Process::of(pid);
            (is_inside(&process, directory, uid) && is_one(&process)).then_some(handle)
        })
        .collect()
}

fn is_inside(process: &Process, directory: &Path, uid: u32) -> bool {
    process.real_uid() == Some(uid)
        && std::fs::read_link(process.directory()).is_ok_and(|cwd| cwd.starts_with(directory))
}

fn is_server(process: &Process) -> bool {
    let program = process.program();
    let is_named = program
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .is_some_and(
            // A binary replaced since the start reads `postgres (deleted)`.
            |name| matches!(name.trim_end_matches(" (deleted)"), "postgres" | "initdb"),
        );
    // Under a counter the program of all its processes is the counter's.
    is_named || process.has_variable(COUNTED_MARK.0, COUNTED_MARK.1)
}

/// Whether it, or a program that started it, was started by [`crate::Launch`] as an engine. Its name says
/// nothing: a `db_bench` is called whatever its user likes.
fn is_engine(process: &Process) -> bool {
    process.has_variable(ENGINE_MARK.0, ENGINE_MARK.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_is_another_process() {
        let own = Identity::of(std::process::id()).unwrap();
        assert!(own.is_running());
        let earlier = Identity {
            start_ticks: own.start_ticks - 1,
            ..own
        };
        assert!(!earlier.is_running());
    }

    #[test]
    fn an_unreaped_process_does_not_count_as_running() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let handle = Handle::open(child.id()).unwrap();
        handle.signal(libc::SIGKILL).unwrap();
        assert!(handle.wait(Duration::from_secs(60)));
        assert!(!handle.identity.is_running());
        handle.signal(libc::SIGKILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_foreign_program_inside_the_directory_is_not_ours() {
        let directory = tempfile::tempdir().unwrap();
        let inside = std::fs::canonicalize(directory.path()).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .current_dir(&inside)
            .spawn()
            .unwrap();
        assert!(servers_inside(&inside, kernel::effective_uid()).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
