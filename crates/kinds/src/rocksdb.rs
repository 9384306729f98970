//! What a run of RocksDB says: its targets step by step, one block cache against the other, and what makes
//! the comparison less than fair.
//!
//! Verdicts are those of any run ([`deltabench_compare::analyse()`]). What stands here is beside them: the
//! figures that published reports of `db_bench` have, for each target, step and block, and findings that only
//! an embedded engine gives rise to.

mod caches;
mod figures;
mod findings;
pub mod shown;
mod step_blocks;

pub use caches::CachePair;
pub use figures::{
    RelativeStep, RocksdbReport, StepColumn, TargetFigures, TargetStep, rocksdb_report,
};
pub use step_blocks::{Latencies, StepBlock};

use deltabench_compare::{Reader, Reading, Records};
use deltabench_model::plan::Plan;

/// Adds the findings that only what was measured can show.
pub struct RocksdbReader;

impl Reader for RocksdbReader {
    fn read(&self, plan: &Plan, records: &Records<'_>) -> Reading {
        let mut reading = Reading::of(records);
        let found = findings::findings(plan, records.slices, records.counters);
        reading.findings.extend(found);
        reading
    }
}
