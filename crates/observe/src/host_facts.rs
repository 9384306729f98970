//! What kind of machine this is, and what else it does.

use crate::perf::hardware_counters;
use deltabench_model::fact::HostFacts;
use deltabench_model::units::to_f64;
use deltabench_proc::cgroup::cpu_quota;
use deltabench_proc::cpu::{HostTicks, cpuinfo_field, list_length, online_cores};
use deltabench_proc::pressure::avg10;
use deltabench_proc::{field, number, word_in};
use std::fs;
use std::path::Path;

/// Reads the facts of this host.
pub fn read_host() -> HostFacts {
    HostFacts {
        hardware_counters: hardware_counters(),
        ..read_below(Path::new("/"))
    }
}

/// Reads them from a tree with `proc` and `sys` in it.
fn read_below(root: &Path) -> HostFacts {
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let word = |path: &str| word_in(&root.join(path));
    let cpuinfo = text("proc/cpuinfo").unwrap_or_default();
    let memory = text("proc/meminfo").unwrap_or_default();
    let stat = text("proc/stat").unwrap_or_default();
    let swap = number(&memory, "SwapTotal").zip(number(&memory, "SwapFree"));
    HostFacts {
        cpu_model: cpuinfo_field(&cpuinfo, "model name")
            .or_else(|| cpuinfo_field(&cpuinfo, "cpu model"))
            .map(str::to_owned),
        online_cores: online_cores(&stat),
        allowed_cores: text("proc/self/status")
            .and_then(|status| list_length(field(&status, "Cpus_allowed_list")?)),
        cpu_quota_cores: cpu_quota(root),
        kernel: word("proc/sys/kernel/osrelease"),
        microcode: cpuinfo_field(&cpuinfo, "microcode").map(str::to_owned),
        memory_bytes: number(&memory, "MemTotal"),
        memory_available_bytes: number(&memory, "MemAvailable"),
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
        huge_pages_total: number(&memory, "HugePages_Total"),
        huge_pages_free: number(&memory, "HugePages_Free"),
        huge_page_bytes: number(&memory, "Hugepagesize"),
        huge_pages_reservable: writable(&root.join("proc/sys/vm/nr_hugepages")),
        virtual_machine: cpuinfo_field(&cpuinfo, "flags").map(|flags| {
            flags
                .split_ascii_whitespace()
                .any(|flag| flag == "hypervisor")
        }),
        clock_source: word("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        hardware_counters: None,
        load_1min: text("proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
        pressure_cpu_some_avg10: text("proc/pressure/cpu").and_then(|text| avg10(&text)),
        steal_percent_since_boot: steal_percent(&stat),
    }
}

/// How this host is called in ledgers: by its name and kind, so that a machine that got another processor is
/// another host.
pub fn machine_name() -> String {
    let facts = read_host();
    let parts = [
        deltabench_proc::host::host_name().unwrap_or_default(),
        facts.cpu_model.unwrap_or_default(),
        format!("{} cores", facts.online_cores),
    ];
    let known: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    known.join(", ")
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
    let ticks = HostTicks::parse(stat.as_bytes())?;
    let (steal, all) = (ticks.steal?, ticks.all());
    (all > 0).then(|| 100.0 * to_f64(steal) / to_f64(all))
}

fn governors(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/cpu")) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(|entry| word_in(&entry.ok()?.path().join("cpufreq/scaling_governor")))
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

/// The word in brackets of `always [madvise] never`.
fn chosen(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
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
        let facts = read_below(&fixture("two-sockets"));
        let expected = HostFacts {
            cpu_model: Some("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz".to_owned()),
            online_cores: 4,
            allowed_cores: Some(3),
            cpu_quota_cores: Some(1.5),
            kernel: Some("5.15.0-91-generic".to_owned()),
            microcode: Some("0x5003604".to_owned()),
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
        let facts = read_below(&fixture("no-such-host"));
        assert_eq!(facts, HostFacts::default());
    }

    #[test]
    fn this_host_tells_its_basics() {
        let facts = read_host();
        assert!(facts.online_cores >= 1);
        assert!(facts.memory_bytes.unwrap() > 1 << 20);
        assert!(facts.kernel.is_some() && facts.load_1min.is_some());
        assert!((1..=facts.online_cores).contains(&facts.allowed_cores.unwrap()));
        assert!(facts.hardware_counters.is_some());
    }

    #[test]
    fn facts_of_an_older_version_can_be_read() {
        let facts: HostFacts = serde_json::from_str("{\"online_cores\": 2}").unwrap();
        assert_eq!((facts.online_cores, facts.allowed_cores), (2, None));
    }

    #[test]
    fn turbo_is_told_by_either_driver() {
        assert_eq!(turbo(Some("0"), None), Some(true));
        assert_eq!(turbo(Some("1"), Some("1")), Some(false));
        assert_eq!(turbo(None, Some("0")), Some(false));
        assert_eq!(turbo(None, None), None);
    }
}
