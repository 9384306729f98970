//! Cores and their time.

use crate::file::numbers;
use deltabench_model::units::count;

/// Ticks of all cores since the start of the machine. Guest time is part of user time already.
///
/// Source: proc_stat(5), the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostTicks {
    /// Outside the kernel, nice or not.
    pub user: u64,
    /// Inside the kernel, interrupts included.
    pub system: u64,
    /// Without work.
    pub idle: u64,
    /// Without work, while some task waited for a device.
    pub iowait: u64,
    /// Given to others by the hypervisor; kernels before 2.6.11 do not tell.
    pub steal: Option<u64>,
}

impl HostTicks {
    /// Reads the beginning of the file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let line = bytes.split(|&byte| byte == b'\n').next()?;
        let mut fields = numbers(line.strip_prefix(b"cpu ")?);
        let mut next = || fields.next();
        let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
        let (iowait, irq, softirq) = (next()?, next()?, next()?);
        Some(Self {
            user: user + nice,
            system: system + irq + softirq,
            idle,
            iowait,
            steal: next(),
        })
    }

    /// Ticks in which a core ran anything.
    pub fn busy(&self) -> u64 {
        self.user + self.system
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.busy() + self.idle + self.iowait + self.steal.unwrap_or(0)
    }
}

/// Switches between tasks since the start of the machine, in the whole of `/proc/stat`.
pub fn host_switches(stat: &[u8]) -> Option<u64> {
    let mut lines = stat.split(|&byte| byte == b'\n');
    lines.find_map(|line| numbers(line.strip_prefix(b"ctxt ")?).next())
}

/// Lines `cpu0`, `cpu1`, … of `/proc/stat`; only cores online have one.
pub fn online_cores(stat: &str) -> u64 {
    let core = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    count(stat.lines().filter(core).count())
}

/// What the kernel says of its cores; empty where it does not.
pub fn cpuinfo() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

/// Names and values of the first core in `/proc/cpuinfo`.
pub fn first_core(cpuinfo: &str) -> impl Iterator<Item = (&str, &str)> {
    let first = cpuinfo.split("\n\n").next().unwrap_or_default();
    let fields = first.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.trim(), value.trim()))
}

/// The value of this name for the first core.
pub fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    first_core(cpuinfo).find_map(|(key, value)| (key == name).then_some(value))
}

/// How many numbers a kernel list such as `0-3,8` holds.
pub fn list_length(list: &str) -> Option<u64> {
    list.trim()
        .split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

/// The three numbers of a schedstat line.
///
/// Source: Documentation/scheduler/sched-stats.rst, section `/proc/<pid>/schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Schedstat {
    /// Time on a core, nanoseconds.
    pub cpu_ns: u64,
    /// Time spent runnable but waiting for a core, nanoseconds.
    pub wait_ns: u64,
    /// How often the thread was given a core.
    pub timeslices: u64,
}

impl Schedstat {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = numbers(line);
        Some(Self {
            cpu_ns: fields.next()?,
            wait_ns: fields.next()?,
            timeslices: fields.next()?,
        })
    }
}

impl std::ops::AddAssign for Schedstat {
    fn add_assign(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.wait_ns += other.wait_ns;
        self.timeslices += other.timeslices;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_time_counts_once_and_interrupts_are_the_systems() {
        let text =
            b"cpu  100 20 30 4000 500 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 9 0\nctxt 500\n";
        let ticks = HostTicks::parse(text).unwrap();
        assert_eq!((ticks.user, ticks.system), (120, 43));
        assert_eq!(
            (ticks.idle, ticks.iowait, ticks.steal),
            (4000, 500, Some(8))
        );
        assert_eq!((ticks.busy(), ticks.all()), (163, 163 + 4000 + 500 + 8));
        assert_eq!(host_switches(text), Some(500));
        assert_eq!(online_cores(std::str::from_utf8(text).unwrap()), 1);
    }

    #[test]
    fn a_kernel_without_steal_tells_none() {
        assert_eq!(
            HostTicks::parse(b"cpu  1 2 3 4 5 6 7\n").unwrap().steal,
            None
        );
        assert_eq!(HostTicks::parse(b"cpu  1 2 3\n"), None);
        assert_eq!(HostTicks::parse(b"intr 1 2 3 4 5 6 7 8\n"), None);
    }

    #[test]
    fn schedstat_has_three_numbers() {
        let expected = Schedstat {
            cpu_ns: 10,
            wait_ns: 20,
            timeslices: 3,
        };
        assert_eq!(Schedstat::parse(b"10 20 3\n"), Some(expected));
        assert_eq!(Schedstat::parse(b"10 20\n"), None);
    }

    #[test]
    fn kernel_lists_are_counted() {
        assert_eq!(list_length("0"), Some(1));
        assert_eq!(list_length("0-3,8,10-11\n"), Some(7));
        assert_eq!(list_length("3-0"), None);
        assert_eq!(list_length(""), None);
    }

    #[test]
    fn the_first_core_tells_its_model() {
        let text = "processor\t: 0\nmodel name\t: EPYC 7\nflags\t\t: fpu\n\nprocessor\t: 1\n";
        assert_eq!(cpuinfo_field(text, "model name"), Some("EPYC 7"));
        assert_eq!(cpuinfo_field(text, "cpu model"), None);
    }
}
