//! A client that sends only what a sleeping server wakes up for.

use deltabench_proc::Process;
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
