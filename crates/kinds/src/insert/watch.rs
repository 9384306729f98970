//! What a server's processes and the host use while a step runs.
//!
//! A step is long, and processes come and go in it: autovacuum, parallel workers. So a thread looks twice a
//! second which there are. CPU time is the kernel's sum over the tree of processes, ended ones included, from
//! which nothing is lost; switches and waits for a core are those of processes that were seen.

use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::insert::InsertRole;
use deltabench_observe::{DeviceClock, ObserveError, ServerCounters, SliceCosts, SliceMeters};
use deltabench_proc::{Process, process_tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(500);

/// What was used over a step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used {
    /// CPU of all processes of the server, ended ones included, nanoseconds.
    pub(crate) server_cpu_ns: Option<u64>,
    /// Waits, switches, pressure, stolen time and the device.
    pub(crate) costs: Option<SliceCosts>,
    /// The kernel's counters of the server's processes.
    pub(crate) counters: BTreeMap<String, f64>,
    /// CPU of each role's backends, nanoseconds.
    pub(crate) roles: BTreeMap<InsertRole, u64>,
    /// The most resident memory that was seen of any process.
    pub(crate) largest_rss_bytes: u64,
}

impl Used {
    /// Busy time of the host beside the server and a client with so much CPU.
    pub(crate) fn foreign_cpu_ns(&self) -> Option<u64> {
        let costs = self.costs?;
        // What the meter did not see of the server stands among the foreign.
        let beside = costs.foreign_cpu_ns + costs.server.cpu_ns;
        Some(beside.saturating_sub(self.server_cpu_ns.unwrap_or(costs.server.cpu_ns)))
    }
}

/// Watches a server until it is told to end.
pub(crate) struct Watch {
    tell: SyncSender<Word>,
    done: Receiver<Option<u64>>,
    thread: JoinHandle<Used>,
}

/// What the watching thread is told. Each has the CPU of the client since the start.
enum Word {
    /// The turn is over: others have theirs.
    Pause(u64),
    /// The next turn begins.
    Resume,
    End(u64),
}

struct Watcher {
    postmaster: u32,
    meters: SliceMeters,
    counters: ServerCounters,
    /// Backends: role, process, CPU at the start and at the last look.
    backends: Vec<(InsertRole, u32, u64, u64)>,
    largest_rss_bytes: u64,
    /// Of the turns that are over.
    costs: Option<SliceCosts>,
    /// CPU of the client in them.
    client_cpu_ns: u64,
    /// Whether others have their turns.
    paused: bool,
}

impl Watch {
    /// Starts watching the server with this main process, whose clients are connected.
    ///
    /// Errors: the host does not tell the CPU of processes.
    pub(crate) fn start(
        postmaster: u32,
        data_dir: &Path,
        backends: &[(InsertRole, u32)],
    ) -> Result<Self, ObserveError> {
        let mut meters = SliceMeters::open(&[postmaster])?;
        if let Some(device) = DeviceClock::of(data_dir) {
            meters = meters.with_device(device);
        }
        let pids: Vec<u32> = backends.iter().map(|(_, pid)| *pid).collect();
        let counters = ServerCounters::open(postmaster)?.with_hardware(&pids);
        let backend = |(role, pid): &(InsertRole, u32)| {
            let spent = cpu_ns(*pid).unwrap_or(0);
            (*role, *pid, spent, spent)
        };
        let mut watcher = Watcher {
            postmaster,
            meters,
            counters,
            backends: backends.iter().map(backend).collect(),
            largest_rss_bytes: 0,
            costs: None,
            client_cpu_ns: 0,
            paused: false,
        };
        let (tell, told) = sync_channel(1);
        let (tell_done, done) = sync_channel(1);
        watcher.meters.start();
        let thread = std::thread::spawn(move || {
            loop {
                match told.recv_timeout(EVERY) {
                    Err(RecvTimeoutError::Timeout) if watcher.paused => {}
                    Err(RecvTimeoutError::Timeout) => watcher.look(),
                    Ok(Word::End(client_cpu_ns)) => return watcher.finish(client_cpu_ns),
                    Err(RecvTimeoutError::Disconnected) => return watcher.finish(0),
                    Ok(Word::Pause(client_cpu_ns)) => {
                        watcher.look();
                        watcher.close(client_cpu_ns);
                        watcher.paused = true;
                        // Whoever does not wait any more has ended.
                        let _ = tell_done.send(watcher.costs.map(|costs| costs.server.cpu_ns));
                    }
                    Ok(Word::Resume) => {
                        watcher.paused = false;
                        watcher.meters.start();
                        let _ = tell_done.send(None);
                    }
                }
            }
        });
        Ok(Self { tell, done, thread })
    }

    /// A turn is over, in which and before which the client had so much CPU: what happens until
    /// [`Watch::resume`] does not count. Returns CPU of the server's processes so far, nanoseconds.
    pub(crate) fn pause(&self, client_cpu_ns: u64) -> Option<u64> {
        self.ask(Word::Pause(client_cpu_ns))
    }

    /// The next turn begins.
    pub(crate) fn resume(&self) {
        self.ask(Word::Resume);
    }

    /// Absent also where the thread has ended, which is found out by joining it.
    fn ask(&self, word: Word) -> Option<u64> {
        self.tell.send(word).ok()?;
        self.done.recv().ok()?
    }

    /// What was used since the start; `client_cpu_ns` is the CPU of the client meanwhile. To be called before
    /// the clients disconnect.
    pub(crate) fn finish(self, client_cpu_ns: u64) -> Used {
        let _ = self.tell.send(Word::End(client_cpu_ns));
        self.thread.join().unwrap_or_default()
    }
}

impl Watcher {
    fn look(&mut self) {
        // A server that has gone keeps what it had.
        let _ = self.meters.refresh();
        drop(self.counters.read());
        for (_, pid, _, last) in &mut self.backends {
            *last = cpu_ns(*pid).unwrap_or(*last);
        }
        let tree = process_tree(self.postmaster)
            .unwrap_or_default()
            .into_iter();
        let largest = tree
            .filter_map(|pid| Process::of(pid).resident_bytes())
            .max();
        self.largest_rss_bytes = self.largest_rss_bytes.max(largest.unwrap_or(0));
    }

    /// Adds what was used in a turn.
    fn close(&mut self, client_cpu_ns: u64) {
        let of_turn = client_cpu_ns.saturating_sub(self.client_cpu_ns);
        self.client_cpu_ns = client_cpu_ns;
        let costs = self.meters.end(0, of_turn);
        self.costs = match (self.costs, costs) {
            (Some(before), Some(costs)) => Some(before.and(&costs)),
            (before, costs) => before.or(costs),
        };
    }

    fn finish(mut self, client_cpu_ns: u64) -> Used {
        self.look();
        self.close(client_cpu_ns);
        let costs = self.costs;
        let counters = self.counters.finish();
        let both = counters
            .get("process_user_ns")
            .zip(counters.get("process_system_ns"));
        let mut roles = BTreeMap::new();
        for (role, _, start, last) in &self.backends {
            *roles.entry(*role).or_default() += last.saturating_sub(*start);
        }
        Used {
            server_cpu_ns: both.map(|(user, system)| to_u64(user + system)),
            costs,
            counters,
            roles,
            largest_rss_bytes: self.largest_rss_bytes,
        }
    }
}

/// CPU of a process of one thread.
fn cpu_ns(pid: u32) -> Option<u64> {
    Some(Process::of(pid).schedstat()?.cpu_ns)
}

impl Used {
    /// All of it that has a key, for the record of a step.
    pub(crate) fn values(&self) -> BTreeMap<String, f64> {
        let mut values = self.counters.clone();
        let mut add = |key: &str, value: u64| values.insert(key.to_owned(), to_f64(value));
        if let Some(device) = self.costs.and_then(|costs| costs.device) {
            add("device_reads", device.reads);
            add("device_read_bytes", device.read_bytes);
            add("device_writes", device.writes);
            add("device_write_bytes", device.write_bytes);
            add("device_read_ns", device.read_ns);
            add("device_write_ns", device.write_ns);
        }
        for (role, cpu_ns) in &self.roles {
            add(&format!("{}_cpu_ns", role.word()), *cpu_ns);
        }
        add("largest_rss_bytes", self.largest_rss_bytes);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_children_did_that_have_ended_is_counted_and_what_others_did_is_not() {
        // A shell whose children work one after another, each shorter than a look.
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let script =
            format!("read go; for n in 1 2 3 4 5 6; do sh -c '{work}'; done; echo; read go");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let roles = [(InsertRole::Delete, shell.id())];
        let watch = Watch::start(shell.id(), Path::new("/proc"), &roles).unwrap();
        let mut input = shell.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"go\n").unwrap();
        let mut answer = [0_u8; 1];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut answer).unwrap();
        let used = watch.finish(0);
        std::io::Write::write_all(&mut input, b"go\n").unwrap();
        shell.wait().unwrap();
        let cpu = used.server_cpu_ns.unwrap();
        assert!(cpu >= 20_000_000, "{cpu}");
        assert!(used.values().contains_key("delete_cpu_ns"));
        assert!(used.largest_rss_bytes > 100_000, "{used:?}");
        assert!(used.foreign_cpu_ns().is_some());
    }
}
