//! How fast the host was while a cell was measured, in the JSON report.

use super::Estimate;
use serde::Serialize;

/// How fast the host was in each block of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSpeed {
    /// Time per operation in the second slowest block over that in the second fastest, on the servers outside
    /// of the pair.
    pub slowdown: f64,
    /// Each block over the second fastest, in block order.
    pub blocks: Vec<BlockSpeed>,
    /// Whether throughput's ratio goes with it; absent where blocks were about as fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Dependence>,
    /// The same of CPU per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<Dependence>,
}

/// How fast the host was in a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockSpeed {
    /// Restart block, from 0.
    pub block: u32,
    /// Time per operation over that in the second fastest block.
    pub slowdown: f64,
}

/// Candidate / base where the host was fast and where it was slow: blocks on either side of the middle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dependence {
    /// Where it was fast.
    pub fast: Estimate,
    /// Where it was slow.
    pub slow: Estimate,
    /// Two-sided p of "both are the same", of this cell and metric alone.
    pub p: f64,
}
