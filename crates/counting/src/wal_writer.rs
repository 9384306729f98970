//! The WAL writer, which does nothing while a cell that writes is counted.
//!
//! Whether a backend may say on a tuple that its transaction has committed depends on whether WAL was written
//! since. This process writes it five times a second, and an operation differs by that.

use crate::asleep::asleep_within;
use deltabench_proc::Process;
use deltabench_server::Frozen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How long to wait for it to sleep. It does so every 200 ms, but a busy machine makes it slow.
const RESTS: Duration = Duration::from_secs(5);

/// A backend that sleeps for longer inside of a statement waits for somebody: for the WAL writer, as
/// `DROP DATABASE` does from 15 on, or for a lock.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two looks at a backend.
const LOOK: Duration = Duration::from_millis(50);

/// A WAL writer that does nothing until this is dropped, or until a backend needs it.
pub struct Stopped {
    frozen: Frozen,
    patience: Duration,
    went_on: AtomicBool,
}

impl Stopped {
    /// Stops the process when it sleeps, because it may hold a lock while it works; none if it does not sleep
    /// in time.
    pub fn of(pid: u32) -> Option<Self> {
        Self::within(pid, RESTS, PATIENCE)
    }

    fn within(pid: u32, rests: Duration, patience: Duration) -> Option<Self> {
        if !asleep_within(pid, rests) {
            return None;
        }
        Some(Self {
            frozen: Frozen::of(pid)?,
            patience,
            went_on: AtomicBool::new(false),
        })
    }

    /// Does some work of a backend. If that waits for long, the WAL writer goes on, for good.
    pub fn while_working<T>(&self, backend: u32, work: impl FnOnce() -> T) -> T {
        let (working, ended) = sync_channel(0);
        std::thread::scope(|scope| {
            scope.spawn(move || self.watch(backend, &ended));
            let done = work();
            drop(working);
            done
        })
    }

    /// Whether a backend needed it.
    pub fn went_on(&self) -> bool {
        self.went_on.load(Ordering::Relaxed)
    }

    /// Looks at a backend until its work has ended; nothing is ever sent.
    fn watch(&self, backend: u32, ended: &Receiver<()>) {
        let process = Process::of(backend);
        let mut since: Option<Instant> = None;
        while !self.went_on() && ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if process.stat().is_none_or(|stat| stat.state != b'S') {
                since = None;
            } else if since.get_or_insert_with(Instant::now).elapsed() >= self.patience {
                self.went_on.store(true, Ordering::Relaxed);
                self.frozen.thaw();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    const MOMENT: Duration = Duration::from_millis(300);

    fn bash(script: &str) -> Child {
        Command::new("bash").args(["-c", script]).spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Whether a process is stopped, or becomes so at once.
    fn is_stopped(pid: u32) -> bool {
        let begun = Instant::now();
        let stopped = || Process::of(pid).stat().unwrap().state == b'T';
        while !stopped() && begun.elapsed() < MOMENT {
            std::thread::sleep(Duration::from_millis(1));
        }
        stopped()
    }

    #[test]
    fn it_is_not_stopped_at_work() {
        let writer = bash("while :; do :; done");
        let stopped = Stopped::within(writer.id(), MOMENT, MOMENT);
        let is_none = stopped.is_none();
        let state = is_stopped(writer.id());
        end(writer);
        assert!(is_none && !state);
    }

    #[test]
    fn it_goes_on_when_a_backend_waits_for_long_and_not_while_one_works() {
        let (writer, waiting) = (bash("sleep 60; :"), bash("sleep 60; :"));
        let working = bash("while :; do :; done");
        let stopped = Stopped::within(writer.id(), Duration::from_secs(20), MOMENT).unwrap();
        let at_first = is_stopped(writer.id());
        stopped.while_working(working.id(), || std::thread::sleep(3 * MOMENT));
        let beside_work = (stopped.went_on(), is_stopped(writer.id()));
        let begun = Instant::now();
        stopped.while_working(waiting.id(), || {
            while is_stopped(writer.id()) && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(LOOK);
            }
        });
        let beside_waiting = (stopped.went_on(), is_stopped(writer.id()));
        [writer, waiting, working].into_iter().for_each(end);
        assert!(at_first);
        assert_eq!(beside_work, (false, true));
        assert_eq!(beside_waiting, (true, false));
    }
}
