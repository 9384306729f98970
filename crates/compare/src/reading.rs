//! What a run has to say beside its slices: plain data, made from its records by the kind of benchmark.
//!
//! Slices are judged in one way, whatever was measured. What only a kind knows of them - a service level that
//! a server missed, a finding that its counters show - comes in through a [`Reading`].

use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::Slice;
use std::collections::BTreeMap;

/// What was recorded of a run so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Records<'a> {
    /// Slices; those that stand for whole records may be left out.
    pub slices: &'a [Slice],
    /// What was noted of host, servers and data.
    pub findings: &'a [Finding],
    pub counters: &'a [VisitCounters],
    /// Whole pieces of work, of kinds that record such.
    pub records: &'a [Record],
}

/// Cells of servers that give no verdict, and why: they are shown, but neither judged nor part of a mean.
pub type Unfit = BTreeMap<(CellId, ServerId), String>;

/// What is known of a run beside its slices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// What was noted of host, servers and data, and then what the records themselves show.
    pub findings: Vec<Finding>,
    /// What must not be judged.
    pub unfit: Unfit,
    /// What was counted in visits, and in what stands for them.
    pub counters: Vec<VisitCounters>,
    /// Slices that whole records stand for, in their order.
    pub slices: Vec<Slice>,
}

impl Reading {
    /// What was recorded, as it is.
    pub fn of(records: &Records<'_>) -> Self {
        Self {
            findings: records.findings.to_vec(),
            unfit: Unfit::new(),
            counters: records.counters.to_vec(),
            slices: Vec::new(),
        }
    }
}

/// Findings alone: of a run whose records say no more than its slices do.
impl From<Vec<Finding>> for Reading {
    fn from(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            ..Self::default()
        }
    }
}

/// What a kind reads of a run besides slices and findings, to say after each block where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadsToo {
    /// What was counted in visits.
    pub counters: bool,
    /// Whole pieces of work.
    pub records: bool,
}

/// How the records of a kind of benchmark are read.
pub trait Reader: Sync {
    /// What [`Reader::read`] looks at beside slices and findings; the rest need not be read from the store
    /// while a run goes on.
    fn reads_too(&self) -> ReadsToo {
        ReadsToo::default()
    }

    /// What the records of a run say beside its slices.
    ///
    /// Shape: records in any order, those of cells and servers that the plan does not have are ignored. It
    ///        can be called after any block. Errors: a record that cannot be read.
    fn read(&self, _plan: &Plan, records: &Records<'_>) -> Result<Reading, Problem> {
        Ok(Reading::of(records))
    }
}
