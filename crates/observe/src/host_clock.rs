//! Busy and stolen time of the whole host.

use crate::busy::{BusyCounter, BusySource};
use crate::error::ObserveError;
use deltabench_proc::KernelFile;
use deltabench_proc::cpu::HostTicks;
use deltabench_proc::tick_ns;
use std::path::Path;

/// Time of all cores of the host up to a moment. Only differences mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostReading {
    /// Time in which a core ran anything, nanoseconds summed over cores. Resolution: that of
    /// [`HostClock::busy_source`].
    pub busy_ns: u64,
    /// Time the hypervisor gave to others while a core wanted to run, nanoseconds summed over cores.
    /// Resolution: one clock tick of user space, 10 ms nearly everywhere; a slice of 50 ms on 2 cores is 10
    /// ticks, so single slices tell only coarse steal and sums over a visit tell the rest.
    pub steal_ns: u64,
}

impl HostReading {
    /// What passed since an earlier reading. The kernel may correct its counts downwards; that counts as 0.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }
}

/// CPU that neither server nor client used: busy time of the host less theirs, at least 0.
///
/// Units: nanoseconds of the same span. Resolution: that of [`HostClock::busy_source`].
pub fn foreign_cpu_ns(busy_ns: u64, server_cpu_ns: u64, client_cpu_ns: u64) -> u64 {
    busy_ns.saturating_sub(server_cpu_ns.saturating_add(client_cpu_ns))
}

/// Reader of busy and stolen time that keeps its files open.
///
/// Busy time comes from the cgroups' own count where the host has one (see [`BusySource`]), else from
/// `/proc/stat`; stolen time is only there.
///
/// Source: proc_stat(5). Cost: the kernel builds the whole of `/proc/stat` for each read, 10 µs on a machine
/// with 2 cores and more with many cores; read it between slices. The cgroup adds 1.2 µs.
#[derive(Debug)]
pub struct HostClock {
    file: KernelFile<256>,
    tick_ns: u64,
    fine: Option<BusyCounter>,
    last: HostReading,
}

impl HostClock {
    /// Opens the host's clock with the finest source of busy time.
    ///
    /// Errors: `File` or `Format` if `/proc/stat` cannot be used.
    pub fn open() -> Result<Self, ObserveError> {
        Self::open_at(Path::new("/proc/stat"), BusyCounter::open())
    }

    /// Length of one tick, nanoseconds: the resolution of stolen time, and of busy time without a cgroup.
    pub fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Where busy time comes from, to be kept with the run.
    pub fn busy_source(&self) -> BusySource {
        self.fine
            .as_ref()
            .map_or(BusySource::Ticks, BusyCounter::source)
    }

    /// Smallest step of busy time, nanoseconds.
    pub fn busy_resolution_ns(&self) -> u64 {
        match self.busy_source() {
            BusySource::CgroupV1 => 1,
            BusySource::CgroupV2 => 1000,
            BusySource::Ticks => self.tick_ns,
        }
    }

    /// Busy and stolen time so far. A failed read repeats the last value.
    pub fn read(&mut self) -> HostReading {
        let tick = self.tick_ns;
        let ticks = self.file.read(|bytes| totals(bytes, tick)).ok();
        self.last.steal_ns = ticks.map_or(self.last.steal_ns, |ticks| ticks.steal_ns);
        let busy = match &mut self.fine {
            Some(counter) => Some(counter.read()),
            None => ticks.map(|ticks| ticks.busy_ns),
        };
        self.last.busy_ns = busy.unwrap_or(self.last.busy_ns);
        self.last
    }

    fn open_at(path: &Path, fine: Option<BusyCounter>) -> Result<Self, ObserveError> {
        let mut clock = Self {
            file: KernelFile::open(path)?,
            tick_ns: tick_ns(),
            fine,
            last: HostReading::default(),
        };
        let tick = clock.tick_ns;
        clock
            .file
            .read(|bytes| totals(bytes, tick))
            .map_err(|source| ObserveError::file("read", path, source))?;
        clock.read();
        Ok(clock)
    }
}

fn totals(bytes: &[u8], tick_ns: u64) -> Option<HostReading> {
    let ticks = HostTicks::parse(bytes)?;
    Some(HostReading {
        busy_ns: ticks.busy() * tick_ns,
        steal_ns: ticks.steal.unwrap_or(0) * tick_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_summed_without_idle_and_guest() {
        let text = b"cpu  100 20 30 4000 500 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let reading = totals(text, 10_000_000).unwrap();
        assert_eq!(reading.busy_ns, (100 + 20 + 30 + 6 + 7) * 10_000_000);
        assert_eq!(reading.steal_ns, 80_000_000);
    }

    #[test]
    fn a_kernel_without_steal_reads_as_no_steal() {
        assert_eq!(totals(b"cpu  1 2 3 4 5 6 7\n", 1).unwrap().steal_ns, 0);
    }

    #[test]
    fn the_host_is_busy_while_this_thread_is_whatever_the_source() {
        let ticks = HostClock::open_at(Path::new("/proc/stat"), None).unwrap();
        assert_eq!(ticks.busy_source(), BusySource::Ticks);
        assert_eq!(ticks.busy_resolution_ns(), ticks.tick_ns());
        for mut clock in [ticks, HostClock::open().unwrap()] {
            let before = clock.read();
            let start = std::time::Instant::now();
            while start.elapsed().as_millis() < 100 {
                std::hint::black_box(start);
            }
            let spent = clock.read().since(&before);
            assert!(spent.busy_ns > 0, "{:?}: {spent:?}", clock.busy_source());
            assert!((1_000_000..=10_000_000).contains(&clock.tick_ns()));
        }
    }

    #[test]
    fn foreign_is_what_remains_and_never_negative() {
        assert_eq!(foreign_cpu_ns(100, 60, 30), 10);
        assert_eq!(foreign_cpu_ns(100, 90, 30), 0);
        assert_eq!(foreign_cpu_ns(1, u64::MAX, 5), 0);
    }

    #[test]
    fn a_count_that_falls_is_no_time() {
        let earlier = HostReading {
            busy_ns: 50,
            steal_ns: 9,
        };
        let later = HostReading {
            busy_ns: 70,
            steal_ns: 4,
        };
        assert_eq!(
            later.since(&earlier),
            HostReading {
                busy_ns: 20,
                steal_ns: 0
            }
        );
    }
}
