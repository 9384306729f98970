//! RocksDB in the JSON report.

use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of a run of RocksDB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rocksdb {
    /// What was asked for.
    pub setup: serde_json::Value,
    /// The measured steps in order.
    pub steps: Vec<RocksdbStep>,
    /// HyperClock against LRU, for targets that differ in nothing else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<RocksdbCaches>,
}

/// A step on every target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RocksdbStep {
    /// Published name: `fillseq`, `readwhilewriting`.
    pub step: &'static str,
    /// Threads.
    pub threads: u32,
    /// The cell's place in the plan, as in [`deltabench_report::format::Cell::cell`].
    pub cell: u32,
    /// By target, base first.
    pub targets: Vec<RocksdbTarget>,
}

/// A step on a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RocksdbTarget {
    /// The target's place in the plan, from 0.
    pub server: u32,
    /// What it runs; `placebo` for that.
    pub target: String,
    /// `base`, `placebo` or `candidate`.
    pub role: &'static str,
    /// Version of the library.
    pub version: String,
    /// Operations per second, geometric mean over the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Every block.
    pub blocks: Vec<RocksdbBlock>,
}

/// A step on a target in a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RocksdbBlock {
    /// The block, from 1.
    pub block: u32,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Operations of the good turns.
    pub operations: u64,
    /// How long these took.
    pub seconds: f64,
    /// Operations per second of each turn, in order; null for a void one.
    pub turns: Vec<Option<f64>>,
    /// What published reports call them: `w_amp`, `stall_percent`, `p99` and so on; what is not known is not
    /// there.
    pub published: BTreeMap<&'static str, f64>,
    /// What moved over the whole step, by key: bytes, nanoseconds and counts.
    pub figures: BTreeMap<String, f64>,
}

/// Throughput with HyperClock over that with LRU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RocksdbCaches {
    /// What both run.
    pub target: String,
    /// The place in the plan of the one with LRU.
    pub lru: u32,
    /// The place in the plan of the one with HyperClock.
    pub hyper_clock: u32,
    /// By step that both have.
    pub steps: Vec<RocksdbCacheRatio>,
}

/// The same in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RocksdbCacheRatio {
    /// The cell's place in the plan.
    pub cell: u32,
    /// HyperClock / LRU.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}
