//! Memory: how much, and in pages of which size.

use super::Check;
use crate::host_sample::HostSample;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::{FindingKind, Severity};
use deltabench_model::units::to_f64;

/// Below this base, placebo and candidate with small tables do not fit side by side.
const MEMORY_LEAST: u64 = 512 << 20;

/// Below this the default tables do not: a million rows are about 250 MiB in the shared buffers of each of
/// three servers, and once more in the page cache.
const MEMORY_COMFORTABLE: u64 = 2 << 30;

pub(super) fn checks(facts: &HostFacts, sample: Option<&HostSample>) -> Vec<Check> {
    vec![
        free_memory(facts),
        swap(facts, sample),
        transparent_huge_pages(facts),
        huge_pages(facts),
    ]
}

/// Bytes as a person reads them.
pub(super) fn gibibytes(bytes: u64) -> String {
    if bytes < 1 << 30 {
        format!("{} MiB", bytes.div_ceil(1 << 20))
    } else {
        format!("{:.1} GiB", to_f64(bytes) / to_f64(1 << 30))
    }
}

fn free_memory(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::FreeMemory;
    const TITLE: &str = "free memory";
    let Some(free) = facts.memory_available_bytes else {
        return Check::unknown(KIND, TITLE);
    };
    let of = facts
        .memory_bytes
        .map(|all| format!(" of {}", gibibytes(all)))
        .unwrap_or_default();
    let check = Check::fine(KIND, TITLE, format!("{}{of}", gibibytes(free)));
    let severity = match free {
        _ if free < MEMORY_LEAST => Severity::Unfit,
        _ if free < MEMORY_COMFORTABLE => Severity::Note,
        _ => return check,
    };
    check.found(
        severity,
        "base, placebo and candidate run at the same time; what does not fit is read from disk",
        "stop other programs, or measure with fewer rows (--rows)",
    )
}

fn swap(facts: &HostFacts, sample: Option<&HostSample>) -> Check {
    const KIND: FindingKind = FindingKind::Swap;
    const TITLE: &str = "swap";
    const FIX: &str = "free memory, then: swapoff -a && swapon -a";
    let moved = sample.and_then(|sample| sample.swapped_pages).unwrap_or(0);
    if moved > 0 {
        return Check::fine(KIND, TITLE, format!("{moved} pages swapped while looking")).found(
            Severity::Confounder,
            "the host is short of memory now, and swaps out one server more than another",
            FIX,
        );
    }
    match facts.swap_used_bytes {
        None => Check::unknown(KIND, TITLE),
        Some(0) => Check::fine(KIND, TITLE, "not in use"),
        Some(used) => Check::fine(KIND, TITLE, format!("{} in use", gibibytes(used))).found(
            Severity::Note,
            "memory of a server that is read back from disk shows as latency",
            FIX,
        ),
    }
}

fn transparent_huge_pages(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::TransparentHugePages;
    const TITLE: &str = "THP";
    let Some(setting) = facts.transparent_huge_pages.as_deref() else {
        return Check::unknown(KIND, TITLE);
    };
    let check = Check::fine(KIND, TITLE, setting);
    if setting != "always" {
        return check;
    }
    check.found(
        Severity::Note,
        "each start gets huge pages for another part of memory, which adds to the variance between \
         blocks",
        "write madvise to /sys/kernel/mm/transparent_hugepage/enabled",
    )
}

fn huge_pages(facts: &HostFacts) -> Check {
    const KIND: FindingKind = FindingKind::HugePages;
    const TITLE: &str = "huge pages";
    let Some(free) = facts.huge_pages_free else {
        return Check::unknown(KIND, TITLE);
    };
    let size = facts.huge_page_bytes.map(gibibytes).unwrap_or_default();
    match (free, facts.huge_pages_reservable) {
        (0, Some(true)) => Check::fine(
            KIND,
            TITLE,
            "none reserved; a run reserves its own and gives them back",
        ),
        (0, None) => Check::unknown(KIND, TITLE),
        (0, Some(false)) => Check::fine(KIND, TITLE, "none free").found(
            Severity::Note,
            "production often has them, and the spread between restarts may be larger without them",
            "run as root, or reserve them: sysctl vm.nr_hugepages=1024",
        ),
        (free, _) => Check::fine(KIND, TITLE, format!("{free} of {size} free")),
    }
}
