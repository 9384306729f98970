//! The Insert Benchmark in the JSON report.

use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of the Insert Benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Insert {
    /// What was asked for.
    pub setup: serde_json::Value,
    /// Passes of all steps that were planned.
    pub passes_planned: u32,
    /// Passes that a verdict needs.
    pub passes_needed: u32,
    /// The steps in order.
    pub steps: Vec<InsertStep>,
    /// What settling before the queries took, by server and pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<InsertSettled>,
    /// What to mind, in words.
    pub notes: Vec<String>,
    /// What the keys of `metrics` mean.
    pub metrics: Vec<InsertMetric>,
}

/// What settling took on a server in a pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertSettled {
    /// The server's place in the plan, from 0.
    pub server: u32,
    /// The pass, from 1.
    pub pass: u32,
    /// Vacuum of all tables.
    pub vacuum_seconds: f64,
    /// The checkpoint after it.
    pub checkpoint_seconds: f64,
    /// All of it, with the wait at the end.
    pub seconds: f64,
}

/// A key of `metrics`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertMetric {
    /// The key.
    pub key: &'static str,
    /// Unit; empty for plain numbers.
    pub unit: &'static str,
    /// Whether published reports print it.
    pub published: bool,
    /// What it says.
    pub meaning: &'static str,
}

/// A step on every server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertStep {
    /// Published name: `l.i0`, `qr100`.
    pub step: String,
    /// The cell's place in the plan, as in [`deltabench_report::format::Cell::cell`].
    pub cell: u32,
    /// Unit of throughput: `rows/s` or `queries/s`.
    pub unit: &'static str,
    /// Rows per second to be inserted beside queries; absent for other steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_target: Option<f64>,
    /// By server, base first.
    pub servers: Vec<InsertServer>,
}

/// A step on a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertServer {
    /// What it runs; `placebo` for that.
    pub server: String,
    /// `base`, `placebo` or `candidate`.
    pub role: &'static str,
    /// Mean over passes, in the step's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_high: Option<f64>,
    /// Among the servers: `best-quartile`, `between`, `worst-quartile` or `sla-missed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quartile: Option<&'static str>,
    /// Against the base; absent for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<InsertRelative>,
    /// Background inserts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<InsertBackground>,
    /// Over the good passes, by key; what is not known is not there.
    pub metrics: BTreeMap<&'static str, f64>,
    /// Response times of the good passes together, by role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub response: Vec<InsertResponse>,
    /// Every pass, void ones too.
    pub passes: Vec<InsertPass>,
}

/// Throughput of a step against the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertRelative {
    /// server / base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The verdict, as in [`deltabench_report::format::Cell`].
    pub verdict: &'static str,
    /// Why, in words.
    pub reason: String,
    /// Passes behind it.
    pub passes: u32,
    /// Whether the ratio may be quoted: there are enough passes, and both sides kept their service level.
    pub quotable: bool,
}

/// Background inserts of a step on a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertBackground {
    /// Rows per second, mean over passes.
    pub rate: f64,
    /// Whether that is at least 95 % of the target.
    pub met: bool,
    /// Passes that were below by themselves.
    pub short_passes: u32,
}

/// Response times of a role.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertResponse {
    /// `insert`, `delete` or `query`.
    pub role: &'static str,
    /// Statements.
    pub statements: u64,
    /// Percent of them up to each published end (`256us` … `16s`) and beyond the end before it; `gt`: slower.
    pub percent: Vec<(&'static str, f64)>,
    /// Exact percentiles in microseconds: 50, 95, 99, 99.9.
    pub percentiles_us: Vec<f64>,
    /// The slowest, microseconds. With a rate all count from the scheduled start.
    pub max_us: f64,
    /// The slowest from sending to answer, microseconds.
    pub max_service_us: f64,
}

/// One pass of a step on a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertPass {
    /// The pass, from 1.
    pub pass: u32,
    /// Place of the server in the pass, from 1.
    pub position: u32,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Length.
    pub seconds: f64,
    /// Throughput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Rows per second inserted beside queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<f64>,
    /// Whether other load disturbed it; it counts all the same.
    pub disturbed: bool,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// By key.
    pub metrics: BTreeMap<&'static str, f64>,
}
