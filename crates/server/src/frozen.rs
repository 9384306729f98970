//! Servers that do nothing while another one has its turn.

use crate::process::{FREEZE_LIMIT, Handle, wait_until_stopped};
use deltabench_model::problem::Problem;
use deltabench_proc::process_tree;
use std::collections::BTreeSet;
use std::fs::canonicalize;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Thaws every process that works inside a directory, when the pipe to deltabench closes.
///
/// A process that is stopped hears of no end of its parent: after a kill of deltabench its servers would stay
/// as they are until the next start clears up.
const THAW: &str = "trap '' HUP INT TERM; read -r line; for p in /proc/[0-9]*; do \
    case $(readlink \"$p/cwd\" 2>/dev/null) in \"$1\"/*) kill -CONT \"${p#/proc/}\" 2>/dev/null;; esac; done";

/// A server all of whose processes do nothing until this is dropped.
pub struct FrozenServer {
    // The main process is the first one.
    processes: Vec<Handle>,
}

impl FrozenServer {
    /// Stops all processes of a server of ours and waits until they have. The main process is first, so that
    /// it starts no others meanwhile.
    ///
    /// Errors: it is gone; processes that do not stop.
    pub fn of(postmaster: u32) -> Result<Self, Problem> {
        let refused = |detail: String| {
            Problem::new("a server cannot be frozen while others have their turns").detail(detail)
        };
        let mut frozen = Self {
            processes: Vec::new(),
        };
        let main = Handle::open(postmaster)
            .ok_or_else(|| refused(format!("process {postmaster} is gone")))?;
        let deadline = Instant::now() + FREEZE_LIMIT;
        frozen
            .stop(main)
            .map_err(|error| refused(error.to_string()))?;
        wait_until_stopped(postmaster, deadline).map_err(refused)?;
        let mut known = BTreeSet::from([postmaster]);
        // Those that a child of the main process has started meanwhile are found by another look.
        loop {
            let tree = process_tree(postmaster).map_err(|error| refused(error.to_string()))?;
            let new: Vec<u32> = tree.into_iter().filter(|pid| known.insert(*pid)).collect();
            if new.is_empty() {
                return Ok(frozen);
            }
            for &pid in &new {
                if let Some(handle) = Handle::open(pid) {
                    frozen
                        .stop(handle)
                        .map_err(|error| refused(error.to_string()))?;
                }
            }
            for &pid in &new {
                wait_until_stopped(pid, deadline).map_err(refused)?;
            }
        }
    }

    fn stop(&mut self, process: Handle) -> io::Result<()> {
        let sent = process.signal(libc::SIGSTOP);
        // Also one that was refused: to be thawed is no harm.
        self.processes.push(process);
        sent
    }
}

impl Drop for FrozenServer {
    fn drop(&mut self) {
        // The main process is the last one: it finds all others at work.
        for process in self.processes.iter().rev() {
            // One that has ended meanwhile needs nothing any more.
            let _ = process.signal(libc::SIGCONT);
        }
    }
}

/// Lets the servers of a workspace go on if deltabench is killed while they are frozen.
pub struct ThawGuard {
    child: Child,
}

impl ThawGuard {
    /// Starts a process that waits for our end.
    ///
    /// Errors: there is no shell.
    pub fn start(directory: &Path) -> Result<Self, Problem> {
        let refused = |error: io::Error| {
            Problem::new("cannot watch over frozen servers").detail(error.to_string())
        };
        let directory = canonicalize(directory).map_err(refused)?;
        let child = Command::new("/bin/sh")
            .args(["-c", THAW, "deltabench-thaw"])
            .arg(directory)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends our group must not end it first.
            .process_group(0)
            .spawn()
            .map_err(refused)?;
        Ok(Self { child })
    }
}

impl Drop for ThawGuard {
    fn drop(&mut self) {
        // Nothing of ours is frozen any more. A refusal would leave nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::does_nothing;
    use deltabench_proc::Process;
    use std::time::Duration;

    /// A shell with a child that writes a line each 10 ms.
    fn busy(directory: &Path) -> Child {
        let script = "(while :; do echo x >> out; sleep 0.01; done) & wait";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(directory);
        command.process_group(0).spawn().unwrap()
    }

    fn length(directory: &Path) -> u64 {
        std::fs::metadata(directory.join("out")).map_or(0, |file| file.len())
    }

    fn grows(directory: &Path) -> bool {
        let (before, deadline) = (length(directory), Instant::now() + Duration::from_secs(60));
        while Instant::now() < deadline {
            if length(directory) > before {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn stopped(pid: u32) -> bool {
        Process::of(pid)
            .stat()
            .is_some_and(|stat| stat.is_stopped())
    }

    /// Ends a shell with all that it has started.
    fn end(mut child: Child) {
        let tree = process_tree(child.id()).unwrap();
        for pid in tree {
            if let Some(handle) = Handle::open(pid) {
                handle.signal(libc::SIGKILL).unwrap();
            }
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_frozen_server_does_nothing_with_all_its_processes_until_it_is_thawed() {
        let directory = tempfile::tempdir().unwrap();
        let server = busy(directory.path());
        assert!(grows(directory.path()));
        let frozen = FrozenServer::of(server.id()).unwrap();
        let tree = process_tree(server.id()).unwrap();
        let stat = |pid: u32| Process::of(pid).stat();
        let idle = |pid: &u32| stat(*pid).is_none_or(|stat| does_nothing(*pid, &stat));
        assert!(tree.len() >= 2 && tree.iter().all(idle));
        let before = length(directory.path());
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(length(directory.path()), before);
        drop(frozen);
        assert!(grows(directory.path()));
        end(server);
    }

    /// Waits in the kernel for a child that has stopped itself before it became another program.
    const WAITS_FOR_CHILD: &str = "#include <signal.h>\n#include <unistd.h>\n\
        int main(void) { if (vfork() == 0) { raise(SIGSTOP); _exit(0); } \
        for (;;) { write(1, \"x\", 1); usleep(10000); } }";

    #[test]
    fn a_process_that_waits_for_a_stopped_child_is_frozen_too() {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("w.c"), directory.path().join("w"));
        std::fs::write(&source, WAITS_FOR_CHILD).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg("-w").arg("-o").arg(&program).arg(&source);
        assert!(compiler.status().unwrap().success());
        let out = std::fs::File::create(directory.path().join("out")).unwrap();
        let parent = Command::new(&program).stdout(out).spawn().unwrap();
        let children = || process_tree(parent.id()).unwrap().into_iter().skip(1);
        let began = Instant::now();
        while !children().any(stopped) {
            assert!(began.elapsed() < FREEZE_LIMIT);
            std::thread::sleep(Duration::from_millis(5));
        }
        let began = Instant::now();
        let frozen = FrozenServer::of(parent.id()).unwrap();
        assert!(began.elapsed() < FREEZE_LIMIT);
        assert!(!stopped(parent.id()) && length(directory.path()) == 0);
        drop(frozen);
        assert!(grows(directory.path()));
        end(parent);
    }

    #[test]
    fn servers_of_a_killed_run_are_thawed_and_others_are_not() {
        let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // As data directories are, below the workspace.
        let data = ours.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mut guard = ThawGuard::start(ours.path()).unwrap();
        let servers = [busy(&data), busy(other.path())];
        let frozen = servers
            .each_ref()
            .map(|one| FrozenServer::of(one.id()).unwrap());
        // What the kernel does when deltabench is killed.
        drop(guard.child.stdin.take());
        guard.child.wait().unwrap();
        assert!(grows(&data));
        assert!(stopped(servers[1].id()), "in another directory");
        drop(frozen);
        assert!(grows(other.path()));
        servers.into_iter().for_each(end);
    }

    #[test]
    fn a_server_that_is_gone_cannot_be_frozen() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(FrozenServer::of(child.id()).is_err());
    }
}
