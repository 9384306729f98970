//! Cores, their frequency, and what tells time and counts events on them.

use super::Check;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::{FindingKind, Severity};
use deltabench_model::units::to_f64;

/// Cores from which client, servers and the rest of the machine do not have to share any.
const ENOUGH_CORES: u64 = 4;

/// Clock sources that cost a system call or worse for each look at the clock.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "xen", "jiffies"];

pub(super) fn checks(facts: &HostFacts) -> Vec<Check> {
    vec![
        cores(facts),
        quota(facts),
        governor(facts),
        turbo(facts),
        simultaneous_threads(facts),
        numa(facts),
        virtual_machine(facts),
        clock_source(facts),
        hardware_counters(facts),
    ]
}

/// Cores that this process may run on.
pub(super) fn usable_cores(facts: &HostFacts) -> u64 {
    facts.allowed_cores.map_or(facts.online_cores, |allowed| {
        allowed.min(facts.online_cores)
    })
}

fn cores(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::FewCores;
    const TITLE: &str = "cores";
    let usable = usable_cores(facts);
    if usable == 0 {
        return Check::unknown(KIND, TITLE);
    }
    let seen = if usable < facts.online_cores {
        format!(
            "{usable} of {} cores allowed by affinity",
            facts.online_cores
        )
    } else {
        format!("{usable} cores")
    };
    let check = Check::fine(KIND, TITLE, seen);
    if usable >= ENOUGH_CORES {
        return check;
    }
    check.found(
        Severity::Note,
        "client and server share them, so throughput with several clients includes the client's own cost; \
         CPU per operation does not",
        "judge by CPU per operation, or use a machine with 4 cores or more",
    )
}

fn quota(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::CpuQuota;
    const TITLE: &str = "CPU quota";
    let Some(quota) = facts.cpu_quota_cores else {
        return Check::fine(KIND, TITLE, "none");
    };
    let check = Check::fine(
        KIND,
        TITLE,
        format!("{quota:.1} cores by the cgroup's quota"),
    );
    if quota >= to_f64(usable_cores(facts).max(1)) {
        return check;
    }
    let severity = if quota < 1.0 {
        Severity::Unfit
    } else {
        Severity::Confounder
    };
    check.found(
        severity,
        "when it is used up, everything stops for the rest of the period, and the server that works \
         then is charged with it",
        "run without --cpus or CPUQuota=, and limit cores with a cpuset instead",
    )
}

fn governor(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::CpuGovernor;
    const TITLE: &str = "governor";
    if facts.governors.is_empty() {
        return Check::unknown(KIND, TITLE);
    }
    let check = Check::fine(KIND, TITLE, facts.governors.join(", "));
    if facts.governors.iter().all(|name| name == "performance") {
        return check;
    }
    check.found(
        Severity::Note,
        "it changes the speed of cores with their load, which widens intervals of throughput and CPU time",
        "cpupower frequency-set -g performance",
    )
}

fn turbo(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::Turbo;
    const TITLE: &str = "turbo";
    match facts.turbo {
        None => Check::unknown(KIND, TITLE),
        Some(false) => Check::fine(KIND, TITLE, "off"),
        Some(true) => Check::fine(KIND, TITLE, "on").found(
            Severity::Note,
            "cores run above their nominal frequency as heat and neighbours allow, which adds drift",
            "for runs below ±1 % write 1 to intel_pstate/no_turbo or 0 to cpufreq/boost",
        ),
    }
}

fn simultaneous_threads(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::Smt;
    const TITLE: &str = "SMT";
    match facts.smt {
        None => Check::unknown(KIND, TITLE),
        Some(false) => Check::fine(KIND, TITLE, "off, or not visible in this guest"),
        Some(true) => Check::fine(KIND, TITLE, "on").found(
            Severity::Note,
            "two hardware threads share a core, so CPU time of one depends on what the other does",
            "keep the sibling idle, or write off to /sys/devices/system/cpu/smt/control",
        ),
    }
}

fn numa(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::Numa;
    const TITLE: &str = "NUMA";
    match facts.numa_nodes {
        None => Check::unknown(KIND, TITLE),
        Some(nodes) if nodes <= 1 => Check::fine(KIND, TITLE, "1 node"),
        Some(nodes) => Check::fine(KIND, TITLE, format!("{nodes} nodes")).found(
            Severity::Note,
            "memory on the far node is slower, and each start places memory at random",
            "keep deltabench on one node with: numactl --cpunodebind=0 --membind=0",
        ),
    }
}

fn virtual_machine(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::VirtualMachine;
    const TITLE: &str = "virtualisation";
    match facts.virtual_machine {
        None => Check::unknown(KIND, TITLE),
        Some(false) => Check::fine(KIND, TITLE, "none"),
        Some(true) => Check::fine(KIND, TITLE, "a virtual machine").found(
            Severity::Note,
            "other guests use the same cores, caches and disks, and deltabench cannot see them",
            "the placebo shows how much that matters; use a dedicated machine to avoid it",
        ),
    }
}

fn clock_source(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::ClockSource;
    const TITLE: &str = "clock";
    let Some(name) = facts.clock_source.as_deref() else {
        return Check::unknown(KIND, TITLE);
    };
    let check = Check::fine(KIND, TITLE, name);
    if !SLOW_CLOCKS.contains(&name) {
        return check;
    }
    check.found(
        Severity::Note,
        "each reading of the clock costs about a microsecond, in the client and in EXPLAIN ANALYZE",
        "boot with clocksource=tsc if the processor has a stable one",
    )
}

/// Only tells: no figure of a comparison is made from hardware counters.
fn hardware_counters(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::HardwareCounters;
    const TITLE: &str = "perf counters";
    match facts.hardware_counters {
        None => Check::unknown(KIND, TITLE),
        Some(true) => Check::fine(KIND, TITLE, "available"),
        Some(false) => Check::fine(
            KIND,
            TITLE,
            "not available; no figure of a comparison needs them",
        ),
    }
}
