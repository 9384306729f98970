//! What on this host spoils measurements, with the effect and the way to mend it.

use crate::host_facts::HostFacts;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::units::to_f64;

/// Share of time with some task waiting for a core above which throughput is other programs' too, percent.
/// Reason: at 1 to 2 % a 2-core host is idle but for its own daemons; the contended sessions of driver.md had
/// 20 to 80 %.
const PRESSURE_NOTICEABLE: f64 = 10.0;

/// Steal since boot that is worth telling, percent. Source: measurement.md 3.4 voids rounds above 2 %.
const STEAL_NOTICEABLE: f64 = 2.0;

/// Load for each core, before anything of ours runs, that is worth telling.
const LOAD_NOTICEABLE: f64 = 0.5;

/// Clock sources that cost a system call or worse for each look at the clock.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "xen", "jiffies"];

/// Notes on what makes measurements on this host wider or wrong. All are notes: whether the host is fit is
/// told by the placebo, not by its settings.
///
/// Take the facts before the servers start, or the load is our own.
#[must_use]
pub fn host_findings(facts: &HostFacts) -> Vec<Finding> {
    let checks = [
        governor,
        turbo,
        simultaneous_threads,
        few_cores,
        virtual_machine,
        steal,
        pressure,
        load,
        swap,
        transparent_huge_pages,
        numa,
        clock_source,
    ];
    checks.iter().filter_map(|check| check(facts)).collect()
}

fn note(kind: &str, text: String) -> Finding {
    Finding::new(kind, Severity::Note, text)
}

fn governor(facts: &HostFacts) -> Option<Finding> {
    let others: Vec<&str> = facts
        .governors
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "performance")
        .collect();
    (!others.is_empty()).then(|| {
        note(
            "cpu-governor",
            format!(
                "frequency governor {} changes the speed of cores with their load, which widens intervals \
                 of throughput and CPU time; set it with: cpupower frequency-set -g performance",
                others.join(", ")
            ),
        )
    })
}

fn turbo(facts: &HostFacts) -> Option<Finding> {
    (facts.turbo == Some(true)).then(|| {
        note(
            "turbo",
            "cores run above their nominal frequency as heat and neighbours allow, which adds drift; for \
             runs below ±1 % write 1 to intel_pstate/no_turbo or 0 to cpufreq/boost"
                .to_owned(),
        )
    })
}

fn simultaneous_threads(facts: &HostFacts) -> Option<Finding> {
    (facts.smt == Some(true)).then(|| {
        note(
            "smt",
            "two hardware threads share a core, so CPU time of one depends on what the other does; keep the \
             sibling idle, or write off to /sys/devices/system/cpu/smt/control"
                .to_owned(),
        )
    })
}

fn few_cores(facts: &HostFacts) -> Option<Finding> {
    (facts.online_cores > 0 && facts.online_cores < 4).then(|| {
        note(
            "few-cores",
            format!(
                "{} cores: client, server and everything else share them, so throughput of several clients \
                 includes the client's own cost; CPU per operation does not",
                facts.online_cores
            ),
        )
    })
}

fn virtual_machine(facts: &HostFacts) -> Option<Finding> {
    (facts.virtual_machine == Some(true)).then(|| {
        note(
            "virtual-machine",
            "a virtual machine: other guests share cores, caches and disks without being visible here; the \
             placebo tells how much that matters, a machine of its own removes it"
                .to_owned(),
        )
    })
}

fn steal(facts: &HostFacts) -> Option<Finding> {
    let steal = facts
        .steal_percent_since_boot
        .filter(|&steal| steal > STEAL_NOTICEABLE)?;
    Some(note(
        "steal",
        format!(
            "the hypervisor took {steal:.1} % of this machine's time since boot, which lowers throughput in \
             bursts; prefer CPU per operation, or move to a host that is not overcommitted"
        ),
    ))
}

fn pressure(facts: &HostFacts) -> Option<Finding> {
    let pressure = facts
        .pressure_cpu_some_avg10
        .filter(|&share| share > PRESSURE_NOTICEABLE)?;
    Some(note(
        "cpu-pressure",
        format!(
            "tasks waited for a core in {pressure:.0} % of the last 10 s before the run, which widens \
             intervals of throughput and latency; end other programs (top shows them) or accept more blocks"
        ),
    ))
}

fn load(facts: &HostFacts) -> Option<Finding> {
    let load = facts.load_1min?;
    (facts.online_cores > 0 && load > LOAD_NOTICEABLE * to_f64(facts.online_cores)).then(|| {
        note(
            "load",
            format!(
                "load average {load:.1} on {} cores before the run: other programs compete with the servers; \
                 end them or accept more blocks",
                facts.online_cores
            ),
        )
    })
}

fn swap(facts: &HostFacts) -> Option<Finding> {
    let used = facts.swap_used_bytes.filter(|&bytes| bytes > 0)?;
    Some(note(
        "swap",
        format!(
            "{} MiB of swap are in use: memory of a server that is read back from disk shows as latency; \
             free memory, then: swapoff -a && swapon -a",
            used.div_ceil(1 << 20)
        ),
    ))
}

fn transparent_huge_pages(facts: &HostFacts) -> Option<Finding> {
    (facts.transparent_huge_pages.as_deref() == Some("always")).then(|| {
        note(
            "transparent-huge-pages",
            "transparent huge pages are always on: which memory gets them is luck of each start and adds to \
             the variance between blocks; write madvise to /sys/kernel/mm/transparent_hugepage/enabled"
                .to_owned(),
        )
    })
}

fn numa(facts: &HostFacts) -> Option<Finding> {
    let nodes = facts.numa_nodes.filter(|&nodes| nodes > 1)?;
    Some(note(
        "numa",
        format!(
            "{nodes} NUMA nodes: memory on the far node is slower and placement is luck of each start; keep \
             deltabench on one node with: numactl --cpunodebind=0 --membind=0"
        ),
    ))
}

fn clock_source(facts: &HostFacts) -> Option<Finding> {
    let name = facts
        .clock_source
        .as_deref()
        .filter(|name| SLOW_CLOCKS.contains(name))?;
    Some(note(
        "clock-source",
        format!(
            "clock source {name} makes each look at the clock cost about a microsecond, in the client and in \
             EXPLAIN ANALYZE; boot with clocksource=tsc if the processor has a stable one"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(facts: &HostFacts) -> Vec<String> {
        host_findings(facts)
            .into_iter()
            .map(|finding| finding.kind)
            .collect()
    }

    fn calm() -> HostFacts {
        HostFacts {
            online_cores: 16,
            governors: vec!["performance".to_owned()],
            turbo: Some(false),
            smt: Some(false),
            numa_nodes: Some(1),
            swap_used_bytes: Some(0),
            transparent_huge_pages: Some("madvise".to_owned()),
            virtual_machine: Some(false),
            clock_source: Some("tsc".to_owned()),
            load_1min: Some(0.2),
            pressure_cpu_some_avg10: Some(0.5),
            steal_percent_since_boot: Some(0.0),
            ..HostFacts::default()
        }
    }

    #[test]
    fn a_calm_host_of_its_own_has_no_findings() {
        assert_eq!(kinds(&calm()), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_said_about_what_is_not_known() {
        assert_eq!(kinds(&HostFacts::default()), Vec::<String>::new());
    }

    #[test]
    fn each_disturbance_has_its_finding() {
        type Disturb = fn(&mut HostFacts);
        let cases: [(&str, Disturb); 12] = [
            ("cpu-governor", |facts| {
                facts.governors.push("powersave".to_owned())
            }),
            ("turbo", |facts| facts.turbo = Some(true)),
            ("smt", |facts| facts.smt = Some(true)),
            ("few-cores", |facts| facts.online_cores = 2),
            ("virtual-machine", |facts| {
                facts.virtual_machine = Some(true)
            }),
            ("steal", |facts| facts.steal_percent_since_boot = Some(2.1)),
            ("cpu-pressure", |facts| {
                facts.pressure_cpu_some_avg10 = Some(80.0)
            }),
            ("load", |facts| facts.load_1min = Some(8.1)),
            ("swap", |facts| facts.swap_used_bytes = Some(4096)),
            ("transparent-huge-pages", |facts| {
                facts.transparent_huge_pages = Some("always".to_owned())
            }),
            ("numa", |facts| facts.numa_nodes = Some(2)),
            ("clock-source", |facts| {
                facts.clock_source = Some("hpet".to_owned())
            }),
        ];
        for (kind, disturb) in cases {
            let mut facts = calm();
            disturb(&mut facts);
            assert_eq!(kinds(&facts), [kind]);
        }
    }

    #[test]
    fn a_finding_holds_its_facts() {
        let facts = HostFacts {
            swap_used_bytes: Some(3 << 20),
            ..calm()
        };
        let finding = host_findings(&facts).remove(0);
        assert_eq!(finding.severity, Severity::Note);
        assert!(
            finding.text.starts_with("3 MiB of swap are in use"),
            "{}",
            finding.text
        );
        assert!(
            !finding.text.contains("  "),
            "no gaps from line breaks: {}",
            finding.text
        );
    }
}
