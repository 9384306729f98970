//! The processor's event counters.

use crate::perf_event::{Attributes, Place, flag, open};
use deltabench_model::units::to_f64;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 1 | 2;

/// Whose work an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfScope {
    /// Also what the kernel does for the process.
    UserAndKernel,
    /// Only outside the kernel: all that this host allows.
    UserOnly,
}

impl PerfScope {
    /// The word stored and printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::UserAndKernel => "user-and-kernel",
            Self::UserOnly => "user-only",
        }
    }
}

/// An event: key of its counter, `type` and `config` of the kernel.
#[derive(Debug, Clone, Copy)]
struct Event {
    key: &'static str,
    kind: u32,
    config: u64,
}

const fn event(key: &'static str, kind: u32, config: u64) -> Event {
    Event { key, kind, config }
}

/// Source: perf_event_open(2): `PERF_TYPE_HARDWARE` is 0, `PERF_TYPE_HW_CACHE` 3 with `config` = cache |
/// operation << 8 | result << 16; the data TLB is cache 3, a read operation 0, a miss result 1.
const HARDWARE: &[Event] = &[
    event("perf_instructions", 0, 1),
    event("perf_cycles", 0, 0),
    event("perf_branch_misses", 0, 5),
    event("perf_cache_misses", 0, 3),
    event("perf_dtlb_misses", 3, 3 | 1 << 16),
];

/// Tries to count cycles of this thread; `None` where that cannot be asked.
pub(crate) fn hardware_counters() -> Option<bool> {
    let cycles = event("perf_cycles", 0, 0);
    Some(open_event(cycles, 0, PerfScope::UserOnly).is_ok())
}

/// Hardware events of some processes, from now on.
///
/// Each event is open by itself, so that a processor with few counters can take turns; a value is scaled by
/// the share of its time that it was counted in. Threads that the processes start later are not counted,
/// which PostgreSQL's backends do not do.
///
/// Price: while it is open, each switch to and from such a process loads and stores the counters, some
/// microseconds in all; the same for every server.
///
/// Source: perf_event_open(2).
#[derive(Debug)]
pub struct PerfCounters {
    scope: PerfScope,
    open: Vec<(Event, Vec<File>)>,
}

impl PerfCounters {
    /// Counts instructions, cycles, branch misses, last-level cache misses and data TLB load misses of these
    /// processes. `None` where the machine has none of these events, they are not allowed, or none of the
    /// processes exists.
    pub fn open(pids: &[u32]) -> Option<Self> {
        Self::open_events(HARDWARE, pids)
    }

    /// Whose work is counted.
    pub fn scope(&self) -> PerfScope {
        self.scope
    }

    /// Counts since it was opened, over all processes, by the keys of
    /// [`deltabench_model::metric::MetricInfo::counter`]. An event that never had its turn is absent. What a
    /// process did before it ended stays counted.
    pub fn read(&mut self) -> BTreeMap<String, f64> {
        let mut values = BTreeMap::new();
        for (event, files) in &mut self.open {
            let counts: Option<Vec<f64>> = files.iter_mut().map(scaled).collect();
            if let Some(counts) = counts {
                values.insert(event.key.to_owned(), counts.iter().sum());
            }
        }
        values
    }

    /// An event counts only if it is open on all processes that exist: a part would pass for the whole.
    fn open_events(events: &[Event], pids: &[u32]) -> Option<Self> {
        let scope = [PerfScope::UserAndKernel, PerfScope::UserOnly]
            .into_iter()
            .find(|&scope| may_count(events, pids, scope))?;
        let open: Vec<_> = events
            .iter()
            .filter_map(|&event| Some((event, on_all(event, pids, scope)?)))
            .collect();
        (!open.is_empty()).then_some(Self { scope, open })
    }
}

/// Whether one of the events can be opened on one of the processes.
fn may_count(events: &[Event], pids: &[u32], scope: PerfScope) -> bool {
    events.iter().any(|&event| {
        pids.iter()
            .any(|&pid| open_event(event, pid, scope).is_ok())
    })
}

fn on_all(event: Event, pids: &[u32], scope: PerfScope) -> Option<Vec<File>> {
    let mut files = Vec::with_capacity(pids.len());
    for &pid in pids {
        match open_event(event, pid, scope) {
            Ok(file) => files.push(file),
            // It has ended since it was listed.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(_) => return None,
        }
    }
    (!files.is_empty()).then_some(files)
}

/// Opens a counting event on a process, on whatever core it runs; 0 is the calling thread.
fn open_event(event: Event, pid: u32, scope: PerfScope) -> std::io::Result<File> {
    let attributes = Attributes {
        kind: event.kind,
        config: event.config,
        read_format: WITH_TIMES,
        flags: match scope {
            PerfScope::UserAndKernel => 0,
            PerfScope::UserOnly => flag::USER_ONLY,
        },
        ..Attributes::default()
    };
    let place = Place {
        pid: Some(pid),
        core: None,
    };
    open(&attributes, place)
}

/// The count of an event; `None` if it should have been counted and never was.
fn scaled(file: &mut File) -> Option<f64> {
    let mut bytes = [0_u8; 24];
    file.read_exact(&mut bytes).ok()?;
    let mut words = bytes
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
    estimate(words.next()?, words.next()?, words.next()?)
}

/// The count over the whole time that it was enabled, from that over the time it was running.
fn estimate(count: u64, enabled: u64, running: u64) -> Option<f64> {
    match (enabled, running) {
        // The process had no core meanwhile.
        (0, _) => Some(0.0),
        (_, 0) => None,
        _ => Some(to_f64(count) * (to_f64(enabled) / to_f64(running))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::not_tested;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    /// What the kernel counts by itself, on machines without counters too.
    const SOFTWARE: &[Event] = &[event("task_clock", 1, 1), event("page_faults", 1, 2)];

    #[test]
    fn whether_there_are_counters_can_be_told() {
        assert!(hardware_counters().is_some());
    }

    #[test]
    fn a_shared_counter_is_scaled_and_one_that_never_ran_is_absent() {
        assert_eq!(estimate(100, 10, 10), Some(100.0));
        assert_eq!(estimate(100, 30, 10), Some(300.0));
        assert_eq!(estimate(0, 0, 0), Some(0.0));
        assert_eq!(estimate(0, 30, 0), None);
    }

    #[test]
    fn events_of_a_process_are_counted_from_opening_on_and_survive_its_end() {
        let mut shell = Command::new("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = shell.stdin.take().unwrap();
        let mut answers = BufReader::new(shell.stdout.take().unwrap());
        let mut tell = |command: &str| {
            writeln!(input, "{command}; echo done").unwrap();
            answers.read_line(&mut String::new()).unwrap();
        };
        tell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        let Some(mut perf) = PerfCounters::open_events(SOFTWARE, &[shell.id()]) else {
            not_tested("counters of events", "perf_event_open is not allowed here");
            drop(input);
            shell.wait().unwrap();
            return;
        };
        let first = perf.read();
        tell("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done");
        let second = perf.read();
        let burnt = second["task_clock"] - first["task_clock"];
        assert!(burnt > 2e6, "{first:?} {second:?}");
        drop(input);
        shell.wait().unwrap();
        let last = perf.read();
        assert!(last["task_clock"] >= second["task_clock"], "{last:?}");
        assert!(last["page_faults"] >= 1.0, "its end faults: {last:?}");
    }

    #[test]
    fn processes_that_are_gone_are_left_out_and_none_is_none() {
        let mut child = Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        assert!(PerfCounters::open_events(SOFTWARE, &[gone]).is_none());
        assert!(PerfCounters::open_events(SOFTWARE, &[]).is_none());
        let own = [gone, std::process::id()];
        if let Some(perf) = PerfCounters::open_events(SOFTWARE, &own) {
            assert!(perf.open.iter().all(|(_, files)| files.len() == 1));
        }
    }

    #[test]
    fn an_event_that_the_machine_lacks_is_absent_and_the_others_stay() {
        let events = [event("task_clock", 1, 1), event("nonsense", 1, 9_999)];
        let own = [std::process::id()];
        let Some(mut perf) = PerfCounters::open_events(&events, &own) else {
            not_tested(
                "events that are absent",
                "perf_event_open is not allowed here",
            );
            return;
        };
        assert_eq!(perf.read().keys().collect::<Vec<_>>(), ["task_clock"]);
        let hardware = PerfCounters::open(&own);
        assert_eq!(hardware.is_some(), hardware_counters().unwrap());
    }
}
