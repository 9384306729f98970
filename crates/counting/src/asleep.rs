//! A client that sends only what a sleeping server wakes up for, to a server without other backends.

use deltabench_proc::{Process, process_tree};
use std::cell::RefCell;
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
    asleep_within(pid, LIMIT);
}

/// Waits until a process has been asleep for long enough; whether it was in time. One that has ended was not.
pub fn asleep_within(pid: u32, limit: Duration) -> bool {
    let process = Process::of(pid);
    let begun = Instant::now();
    let mut since: Option<Instant> = None;
    while begun.elapsed() < limit {
        let Some(stat) = process.stat().filter(|stat| !stat.has_ended()) else {
            return false;
        };
        if stat.state == b'S' {
            if since.get_or_insert_with(Instant::now).elapsed() >= ASLEEP {
                return true;
            }
        } else {
            since = None;
        }
        std::thread::sleep(INTERVAL);
    }
    false
}

/// How long the processes of a new server have to be asleep until it is sure that no other one comes.
const SETTLED: Duration = Duration::from_millis(400);
/// Between two looks at all processes of a server: a look takes 0.5 ms of a core that a server wants.
const TREE_INTERVAL: Duration = Duration::from_millis(10);
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
    /// Those that were there from the beginning, and those that came later and stayed.
    pids: RefCell<BTreeSet<u32>>,
}

impl Standing {
    /// Those of a server that has just started, as soon as all of them wait for something to do.
    pub fn of(postmaster: u32) -> Self {
        let begun = Instant::now();
        let standing = Self {
            postmaster,
            pids: RefCell::default(),
        };
        let mut since = Instant::now();
        while since.elapsed() < SETTLED && begun.elapsed() < LIMIT {
            let pids = standing.now();
            let asleep = |pid: &u32| {
                Process::of(*pid)
                    .stat()
                    .is_some_and(|stat| stat.state == b'S')
            };
            let is_asleep = pids.iter().all(asleep);
            if standing.pids.replace(pids.clone()) != pids || !is_asleep {
                since = Instant::now();
            }
            std::thread::sleep(TREE_INTERVAL);
        }
        standing
    }

    /// Waits until all other processes have ended, and the server's main process knows it. It waits once for
    /// those that stay, and returns them.
    pub fn wait_alone(&self) -> Vec<u32> {
        self.wait_alone_for(ENDING)
    }

    fn wait_alone_for(&self, limit: Duration) -> Vec<u32> {
        let begun = Instant::now();
        let mut others = self.others();
        while !others.is_empty() && begun.elapsed() < limit {
            std::thread::sleep(TREE_INTERVAL);
            others = self.others();
        }
        self.pids.borrow_mut().extend(&others);
        until_asleep(self.postmaster);
        others
    }

    /// Processes that were not there before.
    fn others(&self) -> Vec<u32> {
        let known = self.pids.borrow();
        let now = self.now().into_iter();
        now.filter(|pid| !known.contains(pid)).collect()
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
        assert!(!asleep_within(child.id(), LIMIT), "it has ended");
    }

    #[test]
    fn a_process_that_never_sleeps_is_told_from_one_that_does() {
        let mut child = Command::new("bash")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        assert!(!asleep_within(child.id(), Duration::from_millis(50)));
        child.kill().unwrap();
        child.wait().unwrap();
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
        assert_eq!(standing.pids.borrow().len(), 2, "{standing:?}");
        let mut input = parent.stdin.take().unwrap();
        writeln!(input, "a backend").unwrap();
        while standing.others().is_empty() {
            std::thread::sleep(INTERVAL);
        }
        assert!(standing.wait_alone().is_empty());
        assert!(standing.others().is_empty());
        drop(input);
        parent.wait().unwrap();
    }

    #[test]
    fn a_process_that_stays_is_waited_for_once() {
        let script = "read line; sleep 60 & read line; kill %1";
        let mut parent = Command::new("bash")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let standing = Standing::of(parent.id());
        let mut input = parent.stdin.take().unwrap();
        writeln!(input, "a worker").unwrap();
        while standing.others().is_empty() {
            std::thread::sleep(INTERVAL);
        }
        let limit = Duration::from_millis(400);
        assert_eq!(standing.wait_alone_for(limit).len(), 1);
        let begun = Instant::now();
        assert!(standing.wait_alone_for(LIMIT).is_empty());
        let took = begun.elapsed();
        drop(input);
        parent.wait().unwrap();
        assert!(took < LIMIT, "{took:?}");
    }
}
