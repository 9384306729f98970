//! What kind of machine this is, and in which mood.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Facts about the host that bear on measurements. What cannot be read is absent, never a default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// Model name of the first core.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub online_cores: u64,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Main memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that programs can still get without swapping, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap space in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// Frequency governors in use, each once, ascending; empty where the host cannot change frequency.
    pub governors: Vec<String>,
    /// Whether cores may run above their nominal frequency.
    pub turbo: Option<bool>,
    /// Whether two hardware threads share a core.
    pub smt: Option<bool>,
    /// NUMA nodes online.
    pub numa_nodes: Option<u64>,
    /// Setting of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Huge pages reserved for programs that ask for them.
    pub huge_pages_total: Option<u64>,
    /// Of these, not yet in use.
    pub huge_pages_free: Option<u64>,
    /// Size of one of them, bytes.
    pub huge_page_bytes: Option<u64>,
    /// Whether this is a virtual machine (the `hypervisor` flag of the processor).
    pub virtual_machine: Option<bool>,
    /// Clock source of the kernel, for example `tsc`.
    pub clock_source: Option<String>,
    /// Load average over one minute.
    pub load_1min: Option<f64>,
    /// Share of the last 10 s in which some task waited for a core, percent.
    pub pressure_cpu_some_avg10: Option<f64>,
    /// Share of time since boot that the hypervisor gave to others, percent of all cores' time.
    pub steal_percent_since_boot: Option<f64>,
}

impl HostFacts {
    /// Reads the facts of this host.
    #[must_use]
    pub fn read() -> Self {
        Self::read_below(Path::new("/"))
    }

    /// Reads them from a tree with `proc` and `sys` in it.
    fn read_below(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let word = |path: &str| {
            text(path)
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        let cpuinfo = text("proc/cpuinfo").unwrap_or_default();
        let memory = text("proc/meminfo").unwrap_or_default();
        let stat = text("proc/stat").unwrap_or_default();
        let swap = memory_field(&memory, "SwapTotal").zip(memory_field(&memory, "SwapFree"));
        Self {
            cpu_model: cpuinfo_field(&cpuinfo, "model name")
                .or_else(|| cpuinfo_field(&cpuinfo, "cpu model")),
            online_cores: online_cores(&stat),
            kernel: word("proc/sys/kernel/osrelease"),
            memory_bytes: memory_field(&memory, "MemTotal"),
            memory_available_bytes: memory_field(&memory, "MemAvailable"),
            swap_used_bytes: swap.map(|(total, free)| total.saturating_sub(free)),
            governors: governors(root),
            turbo: turbo(
                word("sys/devices/system/cpu/intel_pstate/no_turbo").as_deref(),
                word("sys/devices/system/cpu/cpufreq/boost").as_deref(),
            ),
            smt: word("sys/devices/system/cpu/smt/active").map(|active| active == "1"),
            numa_nodes: word("sys/devices/system/node/online").and_then(|list| list_length(&list)),
            transparent_huge_pages: word("sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|line| chosen(&line)),
            huge_pages_total: memory_field(&memory, "HugePages_Total"),
            huge_pages_free: memory_field(&memory, "HugePages_Free"),
            huge_page_bytes: memory_field(&memory, "Hugepagesize"),
            virtual_machine: cpuinfo_field(&cpuinfo, "flags").map(|flags| {
                flags
                    .split_ascii_whitespace()
                    .any(|flag| flag == "hypervisor")
            }),
            clock_source: word("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load_1min: text("proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
            pressure_cpu_some_avg10: text("proc/pressure/cpu")
                .and_then(|text| pressure_some(&text)),
            steal_percent_since_boot: steal_percent(&stat),
        }
    }
}

/// The value of `name : value` for the first core.
fn cpuinfo_field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// A field of `/proc/meminfo`: kibibytes become bytes, counts stay counts.
fn memory_field(text: &str, name: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut words = value.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => number.checked_mul(1024),
        Some(_) => None,
        None => Some(number),
    }
}

/// Lines `cpu0`, `cpu1`, … of `/proc/stat`; only cores online have one.
fn online_cores(stat: &str) -> u64 {
    let core = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    deltabench_model::units::count(stat.lines().filter(core).count())
}

fn steal_percent(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // guest and guest_nice, the ninth and tenth, are part of user and nice already.
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    let total: u64 = ticks.iter().sum();
    let steal = *ticks.get(7)?;
    (total > 0).then(|| {
        100.0 * deltabench_model::units::to_f64(steal) / deltabench_model::units::to_f64(total)
    })
}

fn governors(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/cpu")) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            fs::read_to_string(entry.ok()?.path().join("cpufreq/scaling_governor")).ok()
        })
        .map(|text| text.trim().to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

fn turbo(intel_no_turbo: Option<&str>, boost: Option<&str>) -> Option<bool> {
    intel_no_turbo
        .map(|off| off == "0")
        .or_else(|| boost.map(|on| on == "1"))
}

/// How many numbers a kernel list such as `0-3,8` holds.
fn list_length(list: &str) -> Option<u64> {
    list.trim()
        .split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

/// The word in brackets of `always [madvise] never`.
fn chosen(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

/// `avg10` of the line `some` in a file of `/proc/pressure`.
fn pressure_some(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split(' ')
        .find_map(|word| word.strip_prefix("avg10="))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/host")
            .join(name)
    }

    #[test]
    fn a_server_with_two_sockets_is_read_in_full() {
        let facts = HostFacts::read_below(&fixture("two-sockets"));
        let expected = HostFacts {
            cpu_model: Some("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz".to_owned()),
            online_cores: 4,
            kernel: Some("5.15.0-91-generic".to_owned()),
            memory_bytes: Some(196_608_000 * 1024),
            memory_available_bytes: Some(150_000_000 * 1024),
            swap_used_bytes: Some(1_000_000 * 1024),
            governors: vec!["performance".to_owned(), "powersave".to_owned()],
            turbo: Some(true),
            smt: Some(true),
            numa_nodes: Some(2),
            transparent_huge_pages: Some("always".to_owned()),
            huge_pages_total: Some(512),
            huge_pages_free: Some(500),
            huge_page_bytes: Some(2_097_152),
            virtual_machine: Some(false),
            clock_source: Some("hpet".to_owned()),
            load_1min: Some(3.5),
            pressure_cpu_some_avg10: Some(42.5),
            steal_percent_since_boot: Some(5.0),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn what_a_bare_host_does_not_tell_is_absent() {
        let facts = HostFacts::read_below(&fixture("no-such-host"));
        assert_eq!(facts, HostFacts::default());
    }

    #[test]
    fn this_host_tells_its_basics() {
        let facts = HostFacts::read();
        assert!(facts.online_cores >= 1);
        assert!(facts.memory_bytes.unwrap() > 1 << 20);
        assert!(facts.kernel.is_some() && facts.load_1min.is_some());
    }

    #[test]
    fn kernel_lists_are_counted() {
        assert_eq!(list_length("0"), Some(1));
        assert_eq!(list_length("0-3,8,10-11\n"), Some(7));
        assert_eq!(list_length("3-0"), None);
        assert_eq!(list_length(""), None);
    }

    #[test]
    fn turbo_is_told_by_either_driver() {
        assert_eq!(turbo(Some("0"), None), Some(true));
        assert_eq!(turbo(Some("1"), Some("1")), Some(false));
        assert_eq!(turbo(None, Some("0")), Some(false));
        assert_eq!(turbo(None, None), None);
    }
}
