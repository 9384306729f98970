//! What a run of RocksDB says: its targets step by step, one block cache against the other, and what makes
//! the comparison less than fair.
//!
//! Verdicts are those of any run ([`deltabench_compare::analyse()`]). What stands here is beside them: the
//! figures that published reports of `db_bench` have, for each target, step and block, and findings that only
//! an embedded engine gives rise to.

mod benchmark;
mod blocks;
mod caches;
mod chain;
mod check;
mod column;
mod conditions;
mod counted;
mod facts;
pub mod fairness;
mod figures;
mod findings;
mod host;
mod outlook;
mod reading;
pub mod shown;
mod step_blocks;
mod workers;

pub use benchmark::Rocksdb;
pub use caches::CachePair;
pub use check::in_memory;
pub use column::StepColumn;
pub use counted::{check_counted, count, measured_steps};
pub use figures::{RelativeStep, RocksdbReport, TargetFigures, TargetStep, rocksdb_report};
pub use outlook::{RocksdbOutlook, outlook};
pub use reading::RocksdbReader;
pub use step_blocks::{Latencies, StepBlock};
