//! The order in which the published studies run their tests, as data.

use StepLength::{Read, Seconds, Write};
use WarmUpClients::{AsMeasured, OnePerTable};

/// One step of the published order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedStep {
    /// Load that nothing is reported of.
    WarmUp {
        workload: &'static str,
        clients: WarmUpClients,
        length: StepLength,
    },
    /// A row of the report.
    Measure {
        workload: &'static str,
        length: StepLength,
    },
    /// Vacuum and analyze every table, checkpoint, wait: [`crate::Chore::Settle`].
    PostWrite,
}

/// Clients of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUpClients {
    /// As many as there are tables.
    OnePerTable,
    /// As many as in the measurement.
    AsMeasured,
}

/// How long a step of the published order takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepLength {
    /// The time of a read test.
    Read,
    /// The time of a write test.
    Write,
    Seconds(u32),
}

impl PublishedStep {
    /// The workload that is measured, if one is.
    pub fn measured(self) -> Option<&'static str> {
        match self {
            Self::Measure { workload, .. } => Some(workload),
            Self::WarmUp { .. } | Self::PostWrite => None,
        }
    }
}

/// All steps, from loaded tables on; those whose workload is not asked for are left out with their
/// warm-ups.
///
/// Shape: the tests on fresh tables between the first and the last of their kind are switched off in the
/// published script today; they stand where they ran.
/// Source: reference of the published tests, section 1.6 (order since April 2025).
pub fn published_order() -> &'static [PublishedStep] {
    ORDER
}

/// The write phase that comes before the published read tests, in order.
pub fn write_phase() -> Vec<&'static str> {
    let phase = ORDER.iter().filter_map(|step| match *step {
        PublishedStep::Measure { workload, .. } => Some(workload),
        _ => None,
    });
    phase
        .skip_while(|name| *name != WRITE_PHASE.0)
        .take_while(|name| *name != WRITE_PHASE.1)
        .collect()
}

/// The first test of the write phase, and the first one after it.
const WRITE_PHASE: (&str, &str) = ("update-inlist", "scan");

const fn warm(workload: &'static str, clients: WarmUpClients, length: StepLength) -> PublishedStep {
    PublishedStep::WarmUp {
        workload,
        clients,
        length,
    }
}

const fn read(workload: &'static str) -> PublishedStep {
    let length = Read;
    PublishedStep::Measure { workload, length }
}

const fn write(workload: &'static str) -> PublishedStep {
    let length = Write;
    PublishedStep::Measure { workload, length }
}

const ORDER: &[PublishedStep] = &[
    warm("point-query", OnePerTable, Read),
    PublishedStep::PostWrite,
    warm("scan", AsMeasured, Seconds(60)),
    read("point-query.pre"),
    read("random-points-10.pre"),
    read("random-points-100.pre"),
    read("random-points-1000.pre"),
    read("read-only-10.pre"),
    read("read-only-100.pre"),
    read("read-only-10000.pre"),
    read("points-covered-pk.pre"),
    read("points-notcovered-pk.pre"),
    read("points-covered-si.pre"),
    read("points-notcovered-si.pre"),
    read("range-covered-pk.pre"),
    read("range-notcovered-pk.pre"),
    read("range-covered-si.pre"),
    read("range-notcovered-si.pre"),
    write("update-inlist"),
    write("update-index"),
    write("update-nonindex"),
    write("update-one"),
    write("update-zipf"),
    // For the time of a read test, as published.
    read("write-only"),
    write("read-write-10"),
    write("read-write-100"),
    PublishedStep::PostWrite,
    warm("scan", AsMeasured, Seconds(60)),
    read("scan"),
    read("read-only-10"),
    read("read-only-100"),
    read("read-only-10000"),
    read("read-only-simple"),
    read("read-only-sum"),
    read("read-only-order"),
    read("read-only-distinct"),
    read("read-only-count"),
    read("point-query"),
    read("random-points-10"),
    read("random-points-100"),
    read("random-points-1000"),
    read("hot-points"),
    read("points-covered-pk"),
    read("points-notcovered-pk"),
    read("range-covered-pk"),
    read("range-notcovered-pk"),
    warm("points-covered-si", AsMeasured, Read),
    read("points-covered-si"),
    read("points-notcovered-si"),
    read("range-covered-si"),
    read("range-notcovered-si"),
    write("delete"),
    write("insert"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_phase_is_what_ages_the_tables() {
        assert_eq!(
            write_phase(),
            [
                "update-inlist",
                "update-index",
                "update-nonindex",
                "update-one",
                "update-zipf",
                "write-only",
                "read-write-10",
                "read-write-100",
            ]
        );
    }

    #[test]
    fn tables_are_settled_after_the_first_warm_up_and_after_the_write_phase() {
        let before: Vec<Option<PublishedStep>> = (1..ORDER.len())
            .filter(|&at| ORDER[at] == PublishedStep::PostWrite)
            .map(|at| ORDER.get(at - 1).copied())
            .collect();
        assert_eq!(
            before,
            [
                Some(warm("point-query", OnePerTable, Read)),
                Some(write("read-write-100")),
            ]
        );
    }

    #[test]
    fn every_warm_up_comes_right_before_a_reading_test_or_a_settling() {
        let next: Vec<Option<&str>> = (0..ORDER.len() - 1)
            .filter(|&at| matches!(ORDER[at], PublishedStep::WarmUp { .. }))
            .map(|at| ORDER[at + 1].measured())
            .collect();
        assert_eq!(
            next,
            [
                None,
                Some("point-query.pre"),
                Some("scan"),
                Some("points-covered-si")
            ]
        );
    }
}
