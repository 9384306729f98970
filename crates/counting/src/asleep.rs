//! A client that sends only what a sleeping server wakes up for, to a server without other backends.

use deltabench_proc::{Process, process_tree};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a process has to be seen asleep. Else the next request is there sometimes when the server looks,
/// and sometimes it has to wait for it: that is another path through its code, 187 instructions apart.
const ASLEEP: Duration = Duration::from_micros(300);
/// Between two looks.
const INTERVAL: Duration = Duration::from_micros(60);
/// After this, what never sleeps is sent to all the same: the lane's own limit tells what is wrong.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits until a process has been asleep for long enough, or has ended.
pub fn until_asleep(pid: u32) {
    let process = Process::of(pid);
    let begun = Instant::now();
    let mut since: Option<Instant> = None;
    while begun.elapsed() < LIMIT {
        let Some(stat) = process.stat() else { return };
        if stat.has_ended() {
            return;
        }
        if stat.state == b'S' {
            if since.get_or_insert_with(Instant::now).elapsed() >= ASLEEP {
                return;
            }
        } else {
            since = None;
        }
        std::thread::sleep(INTERVAL);
    }
}

/// How long the processes of a new server have to be asleep until it is sure that no other one comes.
const SETTLED: Duration = Duration::from_millis(400);
/// After this, a process that does not end is taken for one that stays.
const ENDING: Duration = Duration::from_secs(8);

/// The processes of a server that has no clients.
///
/// A backend that begins while others end gets another place among the server's processes, another copy of
/// its parent's memory, and others to look at in each snapshot. So a client connects only when all backends
/// before it have ended.
#[derive(Debug)]
pub struct Standing {
    postmaster: u32,
    pids: BTreeSet<u32>,
}

impl Standing {
    /// Those of a server that has just started, as soon as all of them wait for something to do.
    pub fn of(postmaster: u32) -> Self {
        let begun = Instant::now();
        let mut standing = Self {
            postmaster,
            pids: BTreeSet::new(),
        };
        let mut since = Instant::now();
        while since.elapsed() < SETTLED && begun.elapsed() < LIMIT {
            let pids = standing.now();
            let asleep = |pid: &u32| {
                Process::of(*pid)
                    .stat()
                    .is_some_and(|stat| stat.state == b'S')
            };
            if pids != standing.pids || !pids.iter().all(asleep) {
                since = Instant::now();
            }
            standing.pids = pids;
            std::thread::sleep(INTERVAL);
        }
        standing
    }

    /// Waits until all other processes have ended, and the server's main process knows it.
    pub fn wait_alone(&self) {
        let begun = Instant::now();
        while !self.now().is_subset(&self.pids) && begun.elapsed() < ENDING {
            std::thread::sleep(INTERVAL);
        }
        until_asleep(self.postmaster);
    }

    fn now(&self) -> BTreeSet<u32> {
        let found = process_tree(self.postmaster).unwrap_or_default();
        found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn a_sleeping_process_is_waited_for_a_moment_only() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let begun = Instant::now();
        until_asleep(child.id());
        let took = begun.elapsed();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(took >= ASLEEP && took < LIMIT, "{took:?}");
        until_asleep(child.id());
    }

    #[test]
    fn a_client_connects_only_when_the_backends_before_it_have_ended() {
        let script = "sleep 60 & read line; sleep 0.4 & read line; kill %1";
        let mut parent = Command::new("bash")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let standing = Standing::of(parent.id());
        assert_eq!(standing.pids.len(), 2, "{standing:?}");
        let mut input = parent.stdin.take().unwrap();
        writeln!(input, "a backend").unwrap();
        while standing.now().is_subset(&standing.pids) {
            std::thread::sleep(INTERVAL);
        }
        standing.wait_alone();
        assert!(standing.now().is_subset(&standing.pids));
        drop(input);
        parent.wait().unwrap();
    }
}
