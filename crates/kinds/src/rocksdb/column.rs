//! The columns of the tables: measured steps.

use deltabench_model::plan::CellId;
use deltabench_model::work::rocksdb::RocksdbStep;

/// One measured step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepColumn {
    pub cell: CellId,
    pub step: RocksdbStep,
    pub threads: u32,
}
