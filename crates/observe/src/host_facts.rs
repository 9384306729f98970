//! What kind of machine this is, and in which mood.

use crate::cgroup::{CgroupKind, cgroup_dirs};
use crate::perf::hardware_counters;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Facts about the host that bear on measurements. What cannot be read is absent, never a default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Model name of the first core.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub online_cores: u64,
    /// Cores that this process may run on.
    pub allowed_cores: Option<u64>,
    /// Cores' worth of CPU time that its cgroups allow; absent without a limit.
    pub cpu_quota_cores: Option<f64>,
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
    /// Whether this process may reserve more of them.
    pub huge_pages_reservable: Option<bool>,
    /// Whether this is a virtual machine (the `hypervisor` flag of the processor).
    pub virtual_machine: Option<bool>,
    /// Clock source of the kernel, for example `tsc`.
    pub clock_source: Option<String>,
    /// Whether the processor's event counters can be used (`perf`).
    pub hardware_counters: Option<bool>,
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
        Self {
            hardware_counters: hardware_counters(),
            ..Self::read_below(Path::new("/"))
        }
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
            allowed_cores: text("proc/self/status").and_then(|status| allowed_cores(&status)),
            cpu_quota_cores: cpu_quota(root),
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
            huge_pages_reservable: writable(&root.join("proc/sys/vm/nr_hugepages")),
            virtual_machine: cpuinfo_field(&cpuinfo, "flags").map(|flags| {
                flags
                    .split_ascii_whitespace()
                    .any(|flag| flag == "hypervisor")
            }),
            clock_source: word("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            hardware_counters: None,
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

fn allowed_cores(status: &str) -> Option<u64> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list_length(list)
}

/// The tightest CPU quota of this process's cgroups, in cores.
///
/// Source: cgroup-v2.rst, `cpu.max`; sched-bwc.rst, `cpu.cfs_quota_us`. A limit on a group holds for all
/// below it.
fn cpu_quota(root: &Path) -> Option<f64> {
    let quotas = [CgroupKind::V1, CgroupKind::V2]
        .into_iter()
        .flat_map(|kind| {
            cgroup_dirs(root, kind, "cpu")
                .into_iter()
                .filter_map(move |dir| {
                    let text = |name: &str| fs::read_to_string(dir.join(name)).ok();
                    let words = match kind {
                        CgroupKind::V1 => format!(
                            "{} {}",
                            text("cpu.cfs_quota_us")?.trim(),
                            text("cpu.cfs_period_us")?.trim()
                        ),
                        CgroupKind::V2 => text("cpu.max")?,
                    };
                    quota_cores(&words)
                })
        });
    quotas.min_by(f64::total_cmp)
}

/// Quota over period; `max` and `-1` are no limit.
fn quota_cores(words: &str) -> Option<f64> {
    let mut words = words.split_ascii_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Whether a file could be written; `None` if there is none.
fn writable(path: &Path) -> Option<bool> {
    match fs::OpenOptions::new().write(true).open(path) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(_) => Some(false),
    }
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
            allowed_cores: Some(3),
            cpu_quota_cores: Some(1.5),
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
            huge_pages_reservable: None,
            virtual_machine: Some(false),
            clock_source: Some("hpet".to_owned()),
            hardware_counters: None,
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
        assert!((1..=facts.online_cores).contains(&facts.allowed_cores.unwrap()));
        assert!(facts.hardware_counters.is_some());
    }

    #[test]
    fn quotas_are_cores_and_no_limit_is_absent() {
        assert_eq!(quota_cores("150000 100000\n"), Some(1.5));
        assert_eq!(quota_cores("max 100000\n"), None);
        assert_eq!(quota_cores("-1 100000"), None);
        assert_eq!(quota_cores(""), None);
    }

    #[test]
    fn facts_of_an_older_version_can_be_read() {
        let facts: HostFacts = serde_json::from_str("{\"online_cores\": 2}").unwrap();
        assert_eq!((facts.online_cores, facts.allowed_cores), (2, None));
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
