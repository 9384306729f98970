//! The columns of the tables: measured steps.

use deltabench_model::plan::CellId;
use deltabench_model::work::rocksdb::RocksdbStep;

/// One measured step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepColumn {
    pub cell: CellId,
    pub step: RocksdbStep,
    pub threads: u32,
    /// Whether a block's relative throughput is the trimmed mean of its paired turns, and not the quotient
    /// of what they come to together.
    pub trimmed: bool,
}
