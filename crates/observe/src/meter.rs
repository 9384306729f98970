//! CPU of all processes of one server.

use crate::cgroup::ServerCgroup;
use crate::error::ObserveError;
use deltabench_proc::cgroup::CgroupKind;
use deltabench_proc::cpu::Schedstat;
use deltabench_proc::{KernelFile, Process, process_tree, thread_dir, threads};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where the CPU figures of a server come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuSource {
    /// `/proc/PID/task/TID/schedstat` of every known thread, nanoseconds.
    Schedstat,
    /// `cpuacct.usage` of a version 1 cgroup of its own, nanoseconds.
    CgroupV1,
    /// `usage_usec` in `cpu.stat` of a version 2 cgroup of its own, microseconds.
    CgroupV2,
}

impl CpuSource {
    /// The word stored and printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Schedstat => "schedstat",
            Self::CgroupV1 => "cgroup-v1",
            Self::CgroupV2 => "cgroup-v2",
        }
    }
}

/// CPU of a server up to a moment. Only differences between two readings of one meter mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpuReading {
    /// Time on a core, nanoseconds.
    pub cpu_ns: u64,
    /// Time spent runnable but waiting for a core, nanoseconds; absent where the source cannot tell.
    pub run_queue_wait_ns: Option<u64>,
    /// Times that a thread was given a core; absent where the source cannot tell.
    pub switches: Option<u64>,
}

impl CpuReading {
    /// What was spent in two times together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Self {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            run_queue_wait_ns: both(self.run_queue_wait_ns, other.run_queue_wait_ns),
            switches: both(self.switches, other.switches),
        }
    }

    /// What was spent since an earlier reading of the same meter.
    pub fn since(&self, earlier: &Self) -> Self {
        let passed = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).map(|(now, then)| now.saturating_sub(then))
        };
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_queue_wait_ns: passed(self.run_queue_wait_ns, earlier.run_queue_wait_ns),
            switches: passed(self.switches, earlier.switches),
        }
    }
}

/// Processes that came and went between two listings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Processes of the server that were not in the listing before, ascending.
    pub appeared: Vec<u32>,
    /// Processes of the listing before that have ended, ascending.
    pub vanished: Vec<u32>,
}

impl Changes {
    /// Whether nothing came and nothing went.
    pub fn is_empty(&self) -> bool {
        self.appeared.is_empty() && self.vanished.is_empty()
    }
}

/// Meter of the CPU that all processes of one server use.
///
/// Accuracy: the kernel adds a running thread's time when it leaves its core or at the clock tick (1 to 10
/// ms). A thread that runs on another core at the moment of [`CpuMeter::read`] may lag by up to one tick.
/// Backends that wait for their client have left their core, so readings taken when all answers are in are
/// exact for them; what can lag is a background process that happens to run. The cgroup sources lag in the
/// same way.
///
/// The postmaster's own record of its children (`cutime`) is never used: it is credited only when a child
/// ends.
///
/// Source: Documentation/scheduler/sched-stats.rst, section `/proc/<pid>/schedstat`;
///         docs/sources/measuring-on-linux.md#cpu-of-a-server.
#[derive(Debug)]
pub struct CpuMeter {
    postmaster: u32,
    processes: BTreeSet<u32>,
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Schedstat(Threads),
    Cgroup(ServerCgroup, u64),
}

impl CpuMeter {
    /// Opens a meter on a postmaster and its children, with the best source of this host: schedstat, else a
    /// cgroup.
    ///
    /// Errors: `Gone` if there is no such process; `NoSource` if nothing can tell its CPU.
    pub fn open(postmaster_pid: u32) -> Result<Self, ObserveError> {
        let source = preferred_source()?;
        Self::open_with(
            postmaster_pid,
            source,
            &format!("{}-{postmaster_pid}", std::process::id()),
        )
    }

    /// Opens a meter that also counts processes which come and go unseen: a cgroup, or nothing.
    ///
    /// Errors: `Gone` if there is no such process; `NoSource` if no cgroup can be made here.
    pub fn open_grouped(postmaster_pid: u32) -> Result<Self, ObserveError> {
        let source = grouped_source(Vec::new())?;
        let label = format!("{}-{postmaster_pid}", std::process::id());
        Self::open_with(postmaster_pid, source, &label)
    }

    /// Opens a meter that only reads: schedstat, or nothing.
    ///
    /// Errors: `Gone` if there is no such process; `NoSource` if the kernel keeps no schedstat.
    pub fn open_hands_off(postmaster_pid: u32) -> Result<Self, ObserveError> {
        if !has_schedstat() {
            return Err(ObserveError::NoSource {
                reason: NO_SCHEDSTAT.to_owned(),
            });
        }
        Self::open_with(postmaster_pid, CpuSource::Schedstat, "")
    }

    /// Opens a meter with a given source. `label` (run and server) names the cgroup, if the source is one.
    ///
    /// With a cgroup source all processes of the server are moved into a cgroup of their own, from where
    /// later children inherit it; it is removed, and the processes are put back beside it, when the meter is
    /// dropped.
    ///
    /// Errors: `Gone` if there is no such process; `File` if the source cannot be used.
    pub fn open_with(
        postmaster_pid: u32,
        source: CpuSource,
        label: &str,
    ) -> Result<Self, ObserveError> {
        let inner = match source {
            CpuSource::Schedstat => Inner::Schedstat(Threads::default()),
            CpuSource::CgroupV1 => Inner::Cgroup(ServerCgroup::create(CgroupKind::V1, label)?, 0),
            CpuSource::CgroupV2 => Inner::Cgroup(
                ServerCgroup::create_for(CgroupKind::V2, postmaster_pid, label)?,
                0,
            ),
        };
        let mut meter = Self {
            postmaster: postmaster_pid,
            processes: BTreeSet::new(),
            inner,
        };
        meter.refresh()?;
        Ok(meter)
    }

    /// Where the figures come from, to be kept with the run.
    pub fn source(&self) -> CpuSource {
        match &self.inner {
            Inner::Schedstat(_) => CpuSource::Schedstat,
            Inner::Cgroup(cgroup, _) => match cgroup.kind() {
                CgroupKind::V1 => CpuSource::CgroupV1,
                CgroupKind::V2 => CpuSource::CgroupV2,
            },
        }
    }

    /// Lists the processes and threads of the server again and says what changed.
    ///
    /// Call it outside slices. A process that appeared brings all CPU of its life into the next reading, so
    /// take a new reading after it and do not subtract across it.
    ///
    /// Errors: `Gone` if the postmaster has ended; `File` if the source fails.
    pub fn refresh(&mut self) -> Result<Changes, ObserveError> {
        let listed: BTreeSet<u32> = process_tree(self.postmaster)?.into_iter().collect();
        match &mut self.inner {
            Inner::Schedstat(known) => known.update(&listed)?,
            Inner::Cgroup(cgroup, _) => cgroup.attach_all(&listed)?,
        }
        let changes = Changes {
            appeared: listed.difference(&self.processes).copied().collect(),
            vanished: self.processes.difference(&listed).copied().collect(),
        };
        self.processes = listed;
        Ok(changes)
    }

    /// The CPU so far. Never falls; a process that has ended keeps what it had at its last reading.
    ///
    /// Cost: one `pread` for each thread, or one in all for a cgroup; no memory is allocated.
    pub fn read(&mut self) -> CpuReading {
        match &mut self.inner {
            Inner::Schedstat(threads) => threads.read(),
            Inner::Cgroup(cgroup, last) => {
                // A failed read repeats the last value, so that a difference becomes 0 and not garbage.
                *last = cgroup.cpu_ns().unwrap_or(*last).max(*last);
                CpuReading {
                    cpu_ns: *last,
                    ..CpuReading::default()
                }
            }
        }
    }
}

const NO_SCHEDSTAT: &str = "/proc/self/schedstat is missing or zero";

fn has_schedstat() -> bool {
    // A kernel without CONFIG_SCHED_INFO either lacks the file or prints zeros; this process has run by now.
    let own = Process::of(std::process::id()).schedstat();
    own.is_some_and(|own| own.cpu_ns > 0)
}

/// The first source that works here.
fn preferred_source() -> Result<CpuSource, ObserveError> {
    if has_schedstat() {
        return Ok(CpuSource::Schedstat);
    }
    grouped_source(vec![NO_SCHEDSTAT.to_owned()])
}

/// Whether processes that come and go can be counted here.
#[must_use]
pub fn sees_short_lived() -> bool {
    grouped_source(Vec::new()).is_ok()
}

/// The first kind of cgroup that works here; `reasons` are those against what was tried before.
fn grouped_source(mut reasons: Vec<String>) -> Result<CpuSource, ObserveError> {
    for (kind, source) in [
        (CgroupKind::V1, CpuSource::CgroupV1),
        (CgroupKind::V2, CpuSource::CgroupV2),
    ] {
        match ServerCgroup::create(kind, &format!("probe-{}", std::process::id())) {
            Ok(_) => return Ok(source),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(ObserveError::NoSource {
        reason: reasons.join("; "),
    })
}

#[derive(Debug)]
struct Thread {
    pid: u32,
    tid: u32,
    file: KernelFile<96>,
    last: Schedstat,
    gone: bool,
}

impl Thread {
    fn open(pid: u32, tid: u32) -> Result<Self, ObserveError> {
        let file = KernelFile::open(&thread_dir(pid, tid).join("schedstat"))?;
        Ok(Self {
            pid,
            tid,
            file,
            last: Schedstat::default(),
            gone: false,
        })
    }

    fn read(&mut self) {
        if self.gone {
            return;
        }
        // An open file of /proc names the thread, not its number: if the number is used again, this read
        // fails.
        match self.file.read(Schedstat::parse) {
            Ok(now) => self.last = now,
            Err(_) => self.gone = true,
        }
    }
}

/// The threads of a server by their schedstat files.
#[derive(Debug, Default)]
struct Threads {
    alive: Vec<Thread>,
    ended: Schedstat,
}

impl Threads {
    fn read(&mut self) -> CpuReading {
        let mut sum = self.ended;
        for thread in &mut self.alive {
            thread.read();
            sum += thread.last;
        }
        CpuReading {
            cpu_ns: sum.cpu_ns,
            run_queue_wait_ns: Some(sum.wait_ns),
            switches: Some(sum.timeslices),
        }
    }

    fn update(&mut self, processes: &BTreeSet<u32>) -> Result<(), ObserveError> {
        self.read();
        for thread in self.alive.extract_if(.., |thread| thread.gone) {
            self.ended += thread.last;
        }
        let known: BTreeSet<(u32, u32)> = self
            .alive
            .iter()
            .map(|thread| (thread.pid, thread.tid))
            .collect();
        for &pid in processes {
            // A child that has ended since it was listed has nothing more to say.
            let Ok(tids) = threads(pid) else { continue };
            for tid in tids.into_iter().filter(|&tid| !known.contains(&(pid, tid))) {
                match Thread::open(pid, tid) {
                    Ok(thread) => self.alive.push(thread),
                    Err(_) if !thread_dir(pid, tid).exists() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_proc::ProcError;
    use deltabench_testkit::not_tested;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdout, Command, Stdio};

    /// A shell that does what it is told, line by line, and says `done` after each line.
    struct Shell {
        child: Child,
        answers: BufReader<ChildStdout>,
    }

    const BURN: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

    impl Shell {
        fn start() -> Self {
            let mut child = Command::new("sh")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let answers = BufReader::new(child.stdout.take().unwrap());
            let mut shell = Self { child, answers };
            shell.tell(":");
            shell
        }

        fn tell(&mut self, command: &str) -> String {
            writeln!(self.child.stdin.as_mut().unwrap(), "{command}\necho done").unwrap();
            let mut answer = String::new();
            while !answer.ends_with("done\n") {
                assert!(
                    self.answers.read_line(&mut answer).unwrap() > 0,
                    "the shell ended"
                );
            }
            answer.trim_end_matches("done\n").trim().to_owned()
        }

        fn pid(&self) -> u32 {
            self.child.id()
        }

        /// Ends the shell and gives the CPU the kernel billed it for, by rusage.
        fn end(mut self) -> u64 {
            drop(self.child.stdin.take());
            let pid = libc::pid_t::try_from(self.pid()).unwrap();
            // SAFETY: rusage is plain data; wait4 writes it and is given a child that nobody else waits for.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                assert_eq!(
                    libc::wait4(pid, std::ptr::null_mut(), 0, &raw mut usage),
                    pid
                );
                usage
            };
            let ns = |time: libc::timeval| {
                u64::try_from(time.tv_sec).unwrap() * 1_000_000_000
                    + u64::try_from(time.tv_usec).unwrap() * 1000
            };
            ns(usage.ru_utime) + ns(usage.ru_stime)
        }
    }

    #[test]
    fn schedstat_agrees_with_what_the_kernel_bills() {
        let mut shell = Shell::start();
        let mut meter = CpuMeter::open_with(shell.pid(), CpuSource::Schedstat, "unused").unwrap();
        shell.tell(BURN);
        let reading = meter.read();
        let billed = shell.end();
        assert!(
            reading.cpu_ns > 5_000_000,
            "burnt only {} ns",
            reading.cpu_ns
        );
        let off = reading.cpu_ns.abs_diff(billed);
        assert!(
            off < 5_000_000,
            "read {} ns, billed {billed} ns",
            reading.cpu_ns
        );
        assert!(reading.run_queue_wait_ns.is_some());
    }

    fn cgroup_counts_what_schedstat_counts(source: CpuSource) {
        let mut shell = Shell::start();
        let label = format!("test-{}-{}", source.word(), std::process::id());
        let mut meter = match CpuMeter::open_with(shell.pid(), source, &label) {
            Ok(meter) => meter,
            Err(error) => {
                not_tested(&format!("CPU by {}", source.word()), error);
                shell.end();
                return;
            }
        };
        assert_eq!(meter.source(), source);
        let mut reference =
            CpuMeter::open_with(shell.pid(), CpuSource::Schedstat, "unused").unwrap();
        let (before, reference_before) = (meter.read(), reference.read());
        shell.tell(BURN);
        let spent = meter.read().since(&before).cpu_ns;
        let expected = reference.read().since(&reference_before).cpu_ns;
        assert!(spent > 5_000_000, "burnt only {spent} ns");
        assert!(
            spent.abs_diff(expected) < 2_000_000,
            "{spent} ns, schedstat {expected} ns"
        );

        // A child that has come and gone counts, which schedstat cannot see.
        let before = meter.read();
        shell.tell(&format!("({BURN})"));
        let spent = meter.read().since(&before).cpu_ns;
        assert!(spent > 5_000_000, "a child that ended left only {spent} ns");

        let Inner::Cgroup(cgroup, _) = &meter.inner else {
            panic!("not a cgroup")
        };
        let dir = cgroup.dir().to_owned();
        drop(meter);
        assert!(!dir.exists(), "{} stayed behind", dir.display());
        assert_eq!(shell.tell("echo alive"), "alive");
        shell.end();
    }

    #[test]
    fn a_version_1_cgroup_counts_what_schedstat_counts() {
        cgroup_counts_what_schedstat_counts(CpuSource::CgroupV1);
    }

    #[test]
    fn a_version_2_cgroup_counts_what_schedstat_counts() {
        cgroup_counts_what_schedstat_counts(CpuSource::CgroupV2);
    }

    #[test]
    fn processes_that_come_and_go_are_told_once() {
        let mut shell = Shell::start();
        let mut meter = CpuMeter::open(shell.pid()).unwrap();
        assert_eq!(meter.processes.len(), 1);
        let child: u32 = shell.tell("sleep 60 & echo $!").parse().unwrap();
        assert_eq!(
            meter.refresh().unwrap(),
            Changes {
                appeared: vec![child],
                vanished: vec![]
            }
        );
        assert!(meter.refresh().unwrap().is_empty());
        shell.tell(&format!("kill {child}; wait {child}"));
        assert_eq!(
            meter.refresh().unwrap(),
            Changes {
                appeared: vec![],
                vanished: vec![child]
            }
        );
        shell.end();
    }

    #[test]
    fn a_process_that_ended_keeps_its_cpu() {
        let mut shell = Shell::start();
        let mut meter = CpuMeter::open_with(shell.pid(), CpuSource::Schedstat, "unused").unwrap();
        let child: u32 = shell
            .tell(&format!("({BURN}; exec sleep 60) & echo $!"))
            .parse()
            .unwrap();
        meter.refresh().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while Process::of(child).name().unwrap() != "sleep" {
            assert!(
                std::time::Instant::now() < deadline,
                "the child never finished its loop"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let before = meter.read();
        assert!(before.cpu_ns > 5_000_000);
        shell.tell(&format!("kill {child}; wait {child}"));
        let after = meter.read();
        assert!(after.cpu_ns >= before.cpu_ns);
        meter.refresh().unwrap();
        assert!(meter.read().cpu_ns >= after.cpu_ns);
        shell.end();
    }

    #[test]
    fn every_thread_of_a_process_counts() {
        let mut meter =
            CpuMeter::open_with(std::process::id(), CpuSource::Schedstat, "unused").unwrap();
        let (report, burnt) = std::sync::mpsc::sync_channel::<()>(0);
        let (finish, wait) = std::sync::mpsc::sync_channel::<()>(0);
        let thread = std::thread::spawn(move || {
            let start = cpu_of_this_thread();
            while cpu_of_this_thread() - start < 20_000_000 {
                std::hint::black_box(start);
            }
            report.send(()).unwrap();
            wait.recv().unwrap_err()
        });
        let before = meter.read();
        meter.refresh().unwrap();
        burnt.recv().unwrap();
        assert!(meter.read().since(&before).cpu_ns >= 15_000_000);
        drop(finish);
        thread.join().unwrap();
    }

    fn cpu_of_this_thread() -> u64 {
        // SAFETY: clock_gettime writes the timespec that it is given.
        let time = unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            assert_eq!(
                libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time),
                0
            );
            time
        };
        u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
    }

    #[test]
    fn a_postmaster_that_ended_is_gone() {
        let shell = Shell::start();
        let mut meter = CpuMeter::open(shell.pid()).unwrap();
        let pid = shell.pid();
        let last = meter.read();
        shell.end();
        assert_eq!(meter.read(), last, "the last value is kept");
        assert!(
            matches!(meter.refresh(), Err(ObserveError::Kernel(ProcError::Gone { pid: gone })) if gone == pid)
        );
        assert!(matches!(
            CpuMeter::open(pid),
            Err(ObserveError::Kernel(ProcError::Gone { .. }))
        ));
    }

    #[test]
    fn a_difference_is_absent_where_one_side_is() {
        let with = CpuReading {
            cpu_ns: 10,
            run_queue_wait_ns: Some(4),
            switches: Some(3),
        };
        let without = CpuReading {
            cpu_ns: 25,
            ..CpuReading::default()
        };
        assert_eq!(
            without.since(&with),
            CpuReading {
                cpu_ns: 15,
                run_queue_wait_ns: None,
                switches: None
            }
        );
        assert_eq!(
            with.since(&with),
            CpuReading {
                cpu_ns: 0,
                run_queue_wait_ns: Some(0),
                switches: Some(0)
            }
        );
        assert_eq!(with.since(&without).cpu_ns, 0, "never below zero");
    }
}
