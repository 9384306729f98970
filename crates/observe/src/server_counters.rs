//! The kernel's counters of all processes of one server.

use crate::error::ObserveError;
use crate::perf::PerfCounters;
use deltabench_model::units::to_f64;
use deltabench_proc::tick_ns;
use deltabench_proc::{Process, process_tree, threads};
use std::collections::BTreeMap;

/// How often the processes are read until they were the same before and after.
const ATTEMPTS: usize = 5;

/// Memory is sized up while the processes together map no more than this, bytes. The kernel walks every page
/// of every process: 12 µs for a megabyte, so about 20 ms.
const MAPPED_AT_MOST: u64 = 1_600 << 20;

/// Counters of all processes of a server from [`ServerCounters::open`] on, by the keys of
/// [`deltabench_model::metric::MetricInfo::counter`].
///
/// CPU time, page faults and bytes: nothing is lost. A process born meanwhile counts from its birth; one that
/// ended lives on in what the kernel keeps of a parent's ended children, and is left nowhere else, so the sum
/// over the tree goes on. (A parent that ignores SIGCHLD would keep nothing; PostgreSQL's does not.)
///
/// `process_short_ns` is the part of CPU time of processes that were born after opening, or ended before the
/// reading: what a [`crate::CpuMeter`] that was opened at the same time did not see. One that ended is in it
/// from opening on.
///
/// Context switches: the kernel keeps none of ended processes. They count up to the latest
/// [`ServerCounters::read`]; one that was born and ended between two readings is not seen. So read before
/// connections are closed.
///
/// Resolution: CPU time counts in clock ticks of user space (10 ms) for each process; the kernel splits its
/// exact sum in the ratio in which ticks hit user and kernel mode.
///
/// Source: proc_pid_stat(5), proc_pid_io(5), proc_pid_status(5), proc_pid_smaps(5); kernel/exit.c,
/// `wait_task_zombie`, adds an ended child to its parent.
#[derive(Debug)]
pub struct ServerCounters {
    postmaster: u32,
    start: Totals,
    last: Totals,
    /// Ticks of CPU of each process at opening.
    known: BTreeMap<Born, u64>,
    /// Ticks of CPU that children had left that had ended by then.
    ended_before: u64,
    /// Ticks of CPU since then of processes that were not there all the time.
    short_ticks: u64,
    switches: BTreeMap<Thread, Switches>,
    perf: Option<PerfCounters>,
}

/// Sums over a tree, ended children included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Totals {
    user_ticks: u64,
    system_ticks: u64,
    minor_faults: u64,
    major_faults: u64,
    /// Absent where one of the processes does not show it.
    io: Option<(u64, u64)>,
}

/// A thread by process, number and start, so that a number used again is not taken for the same.
type Thread = (u32, u32, u64);

/// A process by number and start.
type Born = (u32, u64);

/// All processes of a tree at one moment.
#[derive(Debug, Default)]
struct Reading {
    totals: Totals,
    /// Ticks of CPU of each process itself.
    own: BTreeMap<Born, u64>,
    /// Ticks of CPU that ended children left.
    ended: u64,
    /// Voluntary and involuntary switches of each thread.
    switches: Vec<(Thread, (u64, u64))>,
}

impl Reading {
    /// Ticks of CPU since an earlier moment that processes used which were not there all the time. `known`
    /// are those of that moment with their ticks, `ended` is what ended children had left by then.
    fn short_ticks(&self, known: &BTreeMap<Born, u64>, ended: u64) -> u64 {
        let born = self.own.iter().filter(|(one, _)| !known.contains_key(one));
        let born: u64 = born.map(|(_, ticks)| ticks).sum();
        let gone = known.iter().filter(|(one, _)| !self.own.contains_key(one));
        let gone: u64 = gone.map(|(_, ticks)| ticks).sum();
        (self.ended.saturating_sub(ended) + born).saturating_sub(gone)
    }
}

/// Voluntary and involuntary switches: those to be taken off, and the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Switches {
    start: (u64, u64),
    last: (u64, u64),
}

impl ServerCounters {
    /// Counts from now on.
    ///
    /// Errors: `Gone` if there is no such process; `File` or `Format` if `/proc` cannot be read.
    pub fn open(postmaster_pid: u32) -> Result<Self, ObserveError> {
        let found = read_tree(postmaster_pid)?;
        let from_here = |now| Switches {
            start: now,
            last: now,
        };
        Ok(Self {
            postmaster: postmaster_pid,
            start: found.totals,
            last: found.totals,
            known: found.own,
            ended_before: found.ended,
            short_ticks: 0,
            switches: { found.switches }
                .into_iter()
                .map(|(thread, now)| (thread, from_here(now)))
                .collect(),
            perf: None,
        })
    }

    /// Counts hardware events of these processes, too, where the machine has them. For backends: other
    /// processes work for nobody in particular.
    #[must_use]
    pub fn with_hardware(mut self, backends: &[u32]) -> Self {
        self.perf = PerfCounters::open(backends);
        self
    }

    /// How far each counter has moved since opening. A server that has gone keeps what it had.
    ///
    /// Cost: 90 µs for each process (unoptimised build).
    pub fn read(&mut self) -> BTreeMap<String, f64> {
        if let Ok(found) = read_tree(self.postmaster) {
            self.last = found.totals;
            self.short_ticks = found.short_ticks(&self.known, self.ended_before);
            for (thread, now) in found.switches {
                let known = self.switches.entry(thread);
                known
                    .or_insert(Switches {
                        start: (0, 0),
                        last: now,
                    })
                    .last = now;
            }
        }
        let mut values = self.values();
        if let Some(perf) = &mut self.perf {
            values.extend(perf.read());
        }
        values
    }

    /// A last reading, with the size of the server's memory as it is now.
    ///
    /// Cost: of [`ServerCounters::read`], and up to 20 ms for the memory: 46 ms were measured with 512 MB of
    /// shared buffers that 8 backends had read all through, 3.6 GB mapped in all. Memory is absent where more
    /// than 1.6 GB is mapped.
    pub fn finish(mut self) -> BTreeMap<String, f64> {
        let mut values = self.read();
        let tree = process_tree(self.postmaster).unwrap_or_default();
        if let Some(bytes) = memory_of(&tree, MAPPED_AT_MOST) {
            values.insert("memory_pss_bytes".to_owned(), to_f64(bytes));
        }
        values
    }

    fn values(&self) -> BTreeMap<String, f64> {
        let (start, last) = (&self.start, &self.last);
        let tick = to_f64(tick_ns());
        let passed = |now: u64, then: u64| to_f64(now.saturating_sub(then));
        let (mut voluntary, mut involuntary) = (0, 0);
        for switches in self.switches.values() {
            voluntary += switches.last.0.saturating_sub(switches.start.0);
            involuntary += switches.last.1.saturating_sub(switches.start.1);
        }
        let user = passed(last.user_ticks, start.user_ticks) * tick;
        let system = passed(last.system_ticks, start.system_ticks) * tick;
        let minor = passed(last.minor_faults, start.minor_faults);
        let major = passed(last.major_faults, start.major_faults);
        let mut values = vec![
            ("process_user_ns", user),
            ("process_system_ns", system),
            ("process_short_ns", to_f64(self.short_ticks) * tick),
            ("process_minor_faults", minor),
            ("process_major_faults", major),
            ("process_voluntary_switches", to_f64(voluntary)),
            ("process_involuntary_switches", to_f64(involuntary)),
        ];
        if let Some((now, then)) = last.io.zip(start.io) {
            values.push(("process_read_bytes", passed(now.0, then.0)));
            values.push(("process_write_bytes", passed(now.1, then.1)));
        }
        let owned = |(key, value): (&str, f64)| (key.to_owned(), value);
        values.into_iter().map(owned).collect()
    }
}

/// Reads every process of a tree. Where one ended meanwhile, it might be counted twice or not at all, so
/// everything is read again.
fn read_tree(root: u32) -> Result<Reading, ObserveError> {
    let mut tree = process_tree(root)?;
    let mut attempt = 1;
    loop {
        let read = read_processes(&tree);
        let again = process_tree(root)?;
        let whole = tree.iter().all(|pid| again.contains(pid));
        match read {
            Ok(read) if whole || attempt == ATTEMPTS => return Ok(read),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            _ => {}
        }
        tree = again;
        attempt += 1;
    }
}

fn read_processes(tree: &[u32]) -> Result<Reading, ObserveError> {
    let mut found = Reading::default();
    let mut io = Some((0, 0));
    for &pid in tree {
        let process = Process::of(pid);
        let stat = process.stat_or_why()?;
        // Of the process with all its threads, and of its ended and awaited children.
        let sum = &mut found.totals;
        sum.user_ticks += stat.user_ticks + stat.childrens_user_ticks;
        sum.system_ticks += stat.system_ticks + stat.childrens_system_ticks;
        sum.minor_faults += stat.minor_faults + stat.childrens_minor_faults;
        sum.major_faults += stat.major_faults + stat.childrens_major_faults;
        let own = stat.user_ticks + stat.system_ticks;
        found.own.insert((pid, stat.start_ticks), own);
        found.ended += stat.childrens_user_ticks + stat.childrens_system_ticks;
        let both = io.zip(process.io());
        io = both.map(|(sum, io)| (sum.0 + io.read_bytes, sum.1 + io.write_bytes));
        for tid in threads(pid)? {
            // A thread that ended since the list was made has nothing more to say.
            if let Some(count) = Process::thread(pid, tid).switches() {
                let thread = (pid, tid, stat.start_ticks);
                found.switches.push((thread, count));
            }
        }
    }
    found.totals.io = io;
    Ok(found)
}

/// Proportional set sizes added up; absent where one cannot be read or together they map more than `limit`
/// bytes.
fn memory_of(tree: &[u32], limit: u64) -> Option<u64> {
    let mapped = tree
        .iter()
        .filter_map(|&pid| Process::of(pid).resident_bytes())
        .sum::<u64>();
    if mapped > limit {
        return None;
    }
    let mut bytes = 0;
    for &pid in tree {
        bytes += Process::of(pid).proportional_bytes()?;
    }
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_proc::ProcError;
    use deltabench_testkit::not_tested;
    use std::fs;
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

    const BURN: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

    /// A shell that does what it is told, line by line.
    struct Shell {
        child: Child,
        input: Option<ChildStdin>,
        answers: BufReader<ChildStdout>,
    }

    impl Shell {
        fn start() -> Self {
            let mut child = Command::new("sh")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut shell = Self {
                answers: BufReader::new(child.stdout.take().unwrap()),
                input: child.stdin.take(),
                child,
            };
            shell.tell(":");
            shell
        }

        fn tell(&mut self, command: &str) {
            writeln!(self.input.as_mut().unwrap(), "{command}; echo done").unwrap();
            assert!(self.answers.read_line(&mut String::new()).unwrap() > 0);
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.input = None;
            self.child.wait().unwrap();
        }
    }

    fn opened(shell: &Shell) -> ServerCounters {
        ServerCounters::open(shell.child.id()).unwrap()
    }

    #[test]
    fn only_what_happened_since_opening_counts() {
        let mut shell = Shell::start();
        shell.tell(BURN);
        let mut counters = opened(&shell);
        let nothing = counters.read();
        assert!(nothing["process_user_ns"].abs() < 1.0, "{nothing:?}");
        shell.tell(BURN);
        // The shell waits for a child.
        shell.tell("sh -c :");
        let values = counters.finish();
        assert!(
            values["process_user_ns"] + values["process_system_ns"] > 2e7,
            "{values:?}"
        );
        assert!(values["process_voluntary_switches"] >= 1.0, "{values:?}");
        if Path::new("/proc/self/smaps_rollup").exists() {
            assert!(values["memory_pss_bytes"] > 1e4, "{values:?}");
        }
    }

    #[test]
    fn what_a_child_did_counts_whether_it_lives_or_has_ended() {
        let mut shell = Shell::start();
        let mut counters = opened(&shell);
        shell.tell(&format!("sh -c '{BURN}'"));
        let ended = counters.read();
        let cpu = |values: &BTreeMap<String, f64>| {
            values["process_user_ns"] + values["process_system_ns"]
        };
        assert!(cpu(&ended) > 2e7, "{ended:?}");
        assert!(ended["process_minor_faults"] >= 10.0, "{ended:?}");
        let again = counters.read();
        assert!(cpu(&again) < cpu(&ended) * 1.5, "not twice: {again:?}");
    }

    #[test]
    fn cpu_of_processes_that_come_or_go_is_told_apart() {
        let mut shell = Shell::start();
        shell.tell(BURN);
        shell.tell("sleep 60 & pid=$!");
        let mut counters = opened(&shell);
        let short = |counters: &mut ServerCounters| counters.read()["process_short_ns"];
        shell.tell(BURN);
        assert!(
            short(&mut counters) < 1.0,
            "the shell was there all the time"
        );
        shell.tell(&format!("sh -c '{BURN}'"));
        let ended = short(&mut counters);
        assert!(ended > 2e7, "{ended}");
        // One that was there at opening and did nothing leaves nothing.
        shell.tell("kill $pid; wait $pid 2>/dev/null");
        let after = short(&mut counters);
        assert!((ended..ended + 2e7).contains(&after), "{ended} {after}");
    }

    #[test]
    fn bytes_written_by_an_ended_child_are_counted_once() {
        // On a disk: temporary files may be in memory, as in CI.
        let name = format!("deltabench-observe-io-{}", std::process::id());
        let dir = std::path::Path::new("/var/tmp").join(name);
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("data");
        let mut shell = Shell::start();
        let mut counters = opened(&shell);
        if !counters.read().contains_key("process_write_bytes") {
            not_tested("bytes of ended processes", "/proc/PID/io may not be read");
            fs::remove_dir_all(&dir).unwrap();
            return;
        }
        shell.tell(&format!(
            "dd if=/dev/zero of={} bs=65536 count=64 conv=fsync 2>/dev/null",
            file.display()
        ));
        let written = counters.read()["process_write_bytes"];
        // A file system in memory writes nothing; a real one its own blocks besides.
        if crate::DeviceClock::of(&dir).is_some() {
            let expected = f64::from(64 << 16);
            assert!((expected..expected * 1.5).contains(&written), "{written}");
        } else {
            not_tested("bytes of ended processes", "/var/tmp is on no block device");
        }
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn switches_of_a_process_that_was_read_stay_when_it_has_ended() {
        let mut shell = Shell::start();
        shell.tell("sleep 60 & pid=$!");
        let mut counters = opened(&shell);
        let first = counters.read()["process_voluntary_switches"];
        shell.tell("kill $pid; wait $pid 2>/dev/null");
        let last = counters.read()["process_voluntary_switches"];
        assert!(last >= first, "{first} {last}");
        assert_eq!(counters.switches.len(), 2);
    }

    #[test]
    fn a_server_that_has_gone_keeps_its_last_values() {
        let mut shell = Shell::start();
        let mut counters = opened(&shell);
        shell.tell(BURN);
        let alive = counters.read();
        let pid = shell.child.id();
        drop(shell);
        assert_eq!(counters.read(), alive);
        assert!(matches!(
            ServerCounters::open(pid),
            Err(ObserveError::Kernel(ProcError::Gone { .. }))
        ));
    }

    #[test]
    fn memory_that_would_take_long_to_size_up_is_absent() {
        let own = [std::process::id()];
        let resident = Process::of(own[0]).resident_bytes().unwrap();
        assert!(resident > 100_000, "{resident}");
        assert_eq!(memory_of(&own, resident / 2), None);
        assert_eq!(memory_of(&[], MAPPED_AT_MOST), None);
    }

    #[test]
    fn memory_of_a_process_that_ended_since_it_was_listed_is_nothing() {
        let mut child = Command::new("true").spawn().unwrap();
        let own = std::process::id();
        let both = memory_of(&[own, child.id()], MAPPED_AT_MOST);
        child.wait().unwrap();
        let after = memory_of(&[own, child.id()], MAPPED_AT_MOST);
        assert_eq!(both.is_some(), after.is_some());
        assert_eq!(
            after.is_some(),
            Path::new("/proc/self/smaps_rollup").exists()
        );
    }
}
