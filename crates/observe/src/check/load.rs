//! What others do with the machine right now.

use super::processor::usable_cores;
use super::{Check, above};
use crate::host_sample::HostSample;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::{FindingKind, Severity};
use deltabench_model::units::to_f64;

/// Share of the cores' time used by others, percent. Reason: below 5 % it is a daemon now and then. From a
/// quarter on a 2-core machine has a neighbour in half of all slices of one core, and turns of 20 ms do not
/// meet the same one. At three quarters there is no core left to measure on.
const FOREIGN: [(f64, Severity); 3] = [
    (5.0, Severity::Note),
    (25.0, Severity::Confounder),
    (75.0, Severity::Unfit),
];

/// Share of the cores' time stolen, percent. The first is the steal that disturbs a round
/// (docs/sources/statistics.md#disturbed-rounds). At the second a tenth of every visit's rounds would be left
/// at best.
const STOLEN: [(f64, Severity); 2] = [(2.0, Severity::Note), (20.0, Severity::Unfit)];

/// Share of time with some task waiting for a core, percent. Reason: at 1 to 2 % a 2-core host is idle but
/// for its own daemons, on a busy one it is 20 to 80 % (docs/sources/measuring-on-linux.md#other-load).
const WAITED: [(f64, Severity); 1] = [(10.0, Severity::Note)];

/// Slow moments of a core over fast ones, doing the same. Reason: a core to itself with a steady clock does
/// not change by a tenth; a busy hardware thread beside it costs 30 to 60 % (docs/measuring.md).
const SWING: f64 = 1.15;

/// Load for each core, before deltabench starts anything, that is worth a note.
const LOAD_NOTICEABLE: f64 = 0.5;

/// Neighbours that are named, and what they must use of a core at least, percent.
const NAMED: usize = 3;
const NAMED_FROM: f64 = 1.0;

pub(super) fn checks(facts: &HostFacts, sample: Option<&HostSample>) -> Vec<Check> {
    vec![
        other_load(facts, sample),
        pressure(facts, sample),
        steal(facts, sample),
        core_speed(sample),
    ]
}

fn other_load(facts: &HostFacts, sample: Option<&HostSample>) -> Check {
    const KIND: FindingKind = FindingKind::OtherLoad;
    const TITLE: &str = "other load";
    const EFFECT: &str = "other programs compete with the servers: intervals of throughput and latency get \
                          wider, those of CPU per operation less so";
    let fix = |severity| match severity {
        Severity::Unfit => "stop them first",
        _ => "stop them, or plan more blocks",
    };
    if let Some(sample) = sample {
        let share = sample.foreign_percent;
        let check = Check::fine(
            KIND,
            TITLE,
            format!("others use {share:.0} % of the cores{}", names(sample)),
        );
        return match above(share, &FOREIGN) {
            Some(severity) => check.found(severity, EFFECT, fix(severity)),
            None => check,
        };
    }
    let Some(load) = facts.load_1min.filter(|_| facts.online_cores > 0) else {
        return Check::unknown(KIND, TITLE);
    };
    let cores = usable_cores(facts);
    let check = Check::fine(
        KIND,
        TITLE,
        format!("load average {load:.1} on {cores} cores before the run"),
    );
    if load <= LOAD_NOTICEABLE * to_f64(cores) {
        return check;
    }
    check.found(Severity::Note, EFFECT, fix(Severity::Note))
}

fn names(sample: &HostSample) -> String {
    let named: Vec<String> = sample
        .neighbours
        .iter()
        .filter(|neighbour| neighbour.core_percent >= NAMED_FROM)
        .take(NAMED)
        .map(|neighbour| format!("{} {:.0}", neighbour.name, neighbour.core_percent))
        .collect();
    if named.is_empty() {
        String::new()
    } else {
        format!(" (percent of one core: {})", named.join(", "))
    }
}

fn pressure(facts: &HostFacts, sample: Option<&HostSample>) -> Check {
    const KIND: FindingKind = FindingKind::CpuPressure;
    const TITLE: &str = "CPU pressure";
    let (waited, when) = match sample {
        Some(sample) => (sample.pressure_percent, "of the sample"),
        None => (
            facts.pressure_cpu_some_avg10,
            "of the last 10 s before the run",
        ),
    };
    let Some(waited) = waited else {
        return Check::unknown(KIND, TITLE);
    };
    let check = Check::fine(
        KIND,
        TITLE,
        format!("tasks waited for a core in {waited:.0} % {when}"),
    );
    match above(waited, &WAITED) {
        Some(severity) => check.found(
            severity,
            "a server that waits for a core looks slower than it is",
            "stop other programs (top shows them), or plan more blocks",
        ),
        None => check,
    }
}

fn steal(facts: &HostFacts, sample: Option<&HostSample>) -> Check {
    const KIND: FindingKind = FindingKind::Steal;
    const TITLE: &str = "steal";
    let (stolen, when) = match sample {
        Some(sample) => (sample.steal_percent, "of the sample"),
        None => (
            facts.steal_percent_since_boot,
            "of this machine's time since boot",
        ),
    };
    let Some(stolen) = stolen else {
        return Check::unknown(KIND, TITLE);
    };
    let check = Check::fine(
        KIND,
        TITLE,
        format!("the hypervisor took {stolen:.1} % {when}"),
    );
    // What was taken since boot need not be taken now: only a sample can say that no run helps.
    let severity = above(stolen, &STOLEN).map(|severity| match sample {
        Some(_) => severity,
        None => Severity::Note,
    });
    match severity {
        Some(severity) => check.found(
            severity,
            "it lowers throughput in bursts, on every server",
            "prefer CPU per operation, or move to a host that is not overcommitted",
        ),
        None => check,
    }
}

fn core_speed(sample: Option<&HostSample>) -> Check {
    const KIND: FindingKind = FindingKind::CoreSpeed;
    const TITLE: &str = "core speed";
    let Some(speed) = sample.and_then(|sample| sample.core_speed) else {
        return Check::unknown(KIND, TITLE);
    };
    let ([fast, _, slow], memory) = (speed.arithmetic_ns, speed.memory_ns);
    let check = Check::fine(
        KIND,
        TITLE,
        format!(
            "the same arithmetic took {fast:.2} to {slow:.2} ns a step from moment to moment, a random \
             access to 64 MB {memory:.0} ns"
        ),
    );
    if speed.swing() <= SWING {
        return check;
    }
    check.found(
        Severity::Note,
        "its clock changes, or another guest, program or hardware thread uses the core: all servers slow \
         down alike, so absolute figures change and ratios do not; if a difference changes too, the \
         report says so",
        "use a machine with its own cores and a fixed clock (SMT and turbo off, or a dedicated host)",
    )
}
