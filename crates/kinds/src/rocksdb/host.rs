//! What the host did while one target had its turn.

use deltabench_model::problem::Problem;
use deltabench_observe::{HostClock, HostReading, PressureClock, foreign_cpu_ns};
use deltabench_proc::Process;
use deltabench_run::visit::host_problem;

/// What happened during a turn beside it, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnCosts {
    /// CPU of all other targets, which are frozen: what should be nothing. Resolution: one clock tick.
    pub(super) idle_cpu_ns: Option<u64>,
    /// CPU of everything else on the host.
    pub(super) foreign_cpu_ns: u64,
    /// Time stolen by the hypervisor.
    pub(super) steal_ns: u64,
    /// Time in which some task of the host waited for a core.
    pub(super) cpu_pressure_ns: Option<u64>,
}

/// Reads the host at both ends of a turn. The turn's own time is taken by its worker, so that this may cost
/// some microseconds.
#[derive(Debug)]
pub(super) struct HostMeters {
    clock: HostClock,
    pressure: Option<PressureClock>,
    pids: Vec<u32>,
    before: Reading,
}

#[derive(Debug, Default)]
struct Reading {
    host: HostReading,
    pressure: Option<u64>,
    /// CPU of our own thread, which only waits and reads.
    client: u64,
    /// CPU of each worker since it began; absent where it cannot be read.
    workers: Vec<Option<u64>>,
}

impl HostMeters {
    /// Meters of the host, and of the workers with these numbers.
    ///
    /// Errors: the host does not tell what it does.
    pub(super) fn open(pids: Vec<u32>) -> Result<Self, Problem> {
        Ok(Self {
            clock: HostClock::open().map_err(host_problem)?,
            pressure: PressureClock::open(),
            pids,
            before: Reading::default(),
        })
    }

    /// Marks the start of a turn.
    pub(super) fn start(&mut self) {
        self.before = self.read();
    }

    /// What happened since the latest [`HostMeters::start`], in which the worker in place `active` has used
    /// so much CPU by its own clock.
    pub(super) fn end(&mut self, active: usize, cpu_ns: u64) -> TurnCosts {
        let now = self.read();
        let host = now.host.since(&self.before.host);
        let pairs = now.workers.iter().zip(&self.before.workers);
        let spent: Vec<Option<u64>> = pairs
            .map(|(now, then)| Some((*now)?.saturating_sub((*then)?)))
            .collect();
        let others = spent
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != active);
        let idle: Option<u64> = others.map(|(_, spent)| *spent).sum();
        // What it did before its turn's first operation and after the last one is its own, too.
        let own = spent
            .get(active)
            .copied()
            .flatten()
            .unwrap_or(0)
            .max(cpu_ns);
        let client = now.client.saturating_sub(self.before.client);
        let pressure = now.pressure.zip(self.before.pressure);
        TurnCosts {
            idle_cpu_ns: idle,
            foreign_cpu_ns: foreign_cpu_ns(host.busy_ns, own + idle.unwrap_or(0), client),
            steal_ns: host.steal_ns,
            cpu_pressure_ns: pressure.map(|(now, then)| now.saturating_sub(then)),
        }
    }

    fn read(&mut self) -> Reading {
        let tick_ns = self.clock.tick_ns();
        Reading {
            host: self.clock.read(),
            pressure: self.pressure.as_mut().map(PressureClock::read),
            client: own_thread_ns(),
            workers: self.pids.iter().map(|pid| cpu_ns(*pid, tick_ns)).collect(),
        }
    }
}

/// CPU of a process with all its threads, ended ones included. Resolution: one clock tick.
fn cpu_ns(pid: u32, tick_ns: u64) -> Option<u64> {
    let stat = Process::of(pid).stat()?;
    Some((stat.user_ticks + stat.system_ticks) * tick_ns)
}

/// CPU of this thread; 0 where the kernel does not tell.
fn own_thread_ns() -> u64 {
    Process::own_thread()
        .schedstat()
        .map_or(0, |stat| stat.cpu_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_the_active_one_is_its_own_and_work_of_another_is_seen() {
        let own = std::process::id();
        let mut meters = HostMeters::open(vec![own, 1]).unwrap();
        let burn = || {
            // Of CPU, because others may have the cores too.
            let (began, mut sum) = (own_thread_ns(), 0_u64);
            while own_thread_ns() - began < 60_000_000 {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        };
        meters.start();
        burn();
        let other = meters.end(1, 0);
        assert!(other.idle_cpu_ns.unwrap() >= 10_000_000, "{other:?}");
        meters.start();
        burn();
        let active = meters.end(0, 0);
        assert!(active.idle_cpu_ns < other.idle_cpu_ns, "{active:?}");
        let mut gone = HostMeters::open(vec![own, u32::MAX]).unwrap();
        gone.start();
        assert_eq!(gone.end(0, 0).idle_cpu_ns, None, "nobody can tell");
    }
}
