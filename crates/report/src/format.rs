//! The JSON report's own types: the contract with scripts.
//!
//! Fields may be added; none is renamed or changes its meaning without a new [`REPORT_FORMAT`] version.
//! What is not known is left out, never null, 0 or NaN. Ratios are candidate / base: 1.0 is equal.

use serde::Serialize;

/// Name and version of the JSON report.
pub const REPORT_FORMAT: (&str, u32) = ("deltabench.report", 1);

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Always [`REPORT_FORMAT`]`.0`.
    pub format: &'static str,
    /// Always [`REPORT_FORMAT`]`.1`.
    pub version: u32,
    /// The run's name.
    pub run: String,
    /// How far the run has come: `finished`, `interrupted`, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// The result in one line for each candidate.
    pub summary: String,
    /// What `deltabench compare` exits with.
    pub exit_code: u8,
    /// Start, milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_unix_ms: Option<i64>,
    /// Version of deltabench that made the report.
    pub deltabench_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The one seed of the run, as decimal digits: JSON numbers lose digits above 2^53.
    pub seed: String,
    /// The side that others are compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Target>,
    /// The sides in question.
    pub candidates: Vec<Target>,
    /// What the run says about a second copy of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placebo: Option<Placebo>,
    /// The smallest change that matters, as a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The machine.
    pub host: Host,
    /// Shape of the measurement.
    pub plan: PlanFacts,
    /// How often each verdict was given.
    pub counts: Counts,
    /// Differences besides what was asked, and doubts.
    pub fairness: Vec<Fairness>,
    /// The candidates' cells.
    pub cells: Vec<Cell>,
    /// The placebo's cells, in the same form.
    pub placebo_cells: Vec<Cell>,
}

/// One side: what was asked for and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// As asked for, for example `postgres:18`.
    pub target: String,
    /// As resolved, for example `postgres:18.6`.
    pub resolved: String,
    /// Version, for example `18.6`.
    pub version: String,
    /// `server_version_num`.
    pub version_num: u32,
    /// Where the binaries came from: `prebuilt`, `path` or `installed`.
    pub origin: deltabench_model::installation::Origin,
    /// SHA-256 of `bin/postgres`, lower-case hex.
    pub sha256: String,
    /// `select version()`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_text: Option<String>,
    /// The compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// CFLAGS it was built with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cflags: Option<String>,
    /// Its configure line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configure: Option<String>,
}

/// What the run says about nothing: base against base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placebo {
    /// Geometric mean over the cells of throughput, placebo / base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Relative>,
    /// The same of CPU per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<Relative>,
    /// Cells judged.
    pub cells: u32,
    /// Cells in which the placebo was called different.
    pub flagged: u32,
}

/// A relative value with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relative {
    /// Candidate / base.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

/// The machine, and whether it could be trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Whether it could be trusted.
    pub ok: bool,
    /// As observed.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub facts: serde_json::Value,
    /// What the run could get: huge pages and the like.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub conditions: serde_json::Value,
}

/// Shape of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanFacts {
    /// Restart blocks planned.
    pub blocks: u32,
    /// Aim for the length of one slice.
    pub slice_ms: u32,
    /// Measured seconds of one visit, for each server.
    pub visit_seconds: f64,
    /// Discarded seconds at the start of a visit.
    pub warmup_seconds: f64,
    /// Tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u64,
    /// Data checksums, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksums: Option<bool>,
    /// Settings asked for on every server, in order.
    pub settings: Vec<[String; 2]>,
}

/// How often each verdict was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Cells that got slower.
    pub regression: u32,
    /// Cells that got faster.
    pub improvement: u32,
    /// Cells shown equal within ±delta.
    #[serde(rename = "no-change")]
    pub no_change: u32,
    /// Cells that could not be decided.
    pub inconclusive: u32,
    /// Cells that could not be trusted.
    pub unfit: u32,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fairness {
    /// Stable key, for example `compiler-differs`.
    pub kind: String,
    /// `note`, `confounder` or `unfit`.
    pub severity: deltabench_model::finding::Severity,
    /// One sentence.
    pub text: String,
}

/// One cell and one candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Workload.
    pub workload: String,
    /// `point`, `range`, `range-agg` or `write`.
    pub group: &'static str,
    /// Concurrent connections.
    pub clients: u32,
    /// The candidate's resolved target, or `placebo`.
    pub candidate: String,
    /// `regression`, `improvement`, `no-change`, `inconclusive` or `unfit`.
    pub verdict: &'static str,
    /// Why, in words.
    pub reason: String,
    /// Restart blocks that count.
    pub blocks: u32,
    /// Rounds that count.
    pub rounds: u64,
    /// Rounds left out because a slice in them was void.
    pub void_rounds: u64,
    /// Server errors on the base.
    pub base_errors: u64,
    /// Server errors on the candidate.
    pub candidate_errors: u64,
    /// What was compared, by key; a metric that could not be measured is not there.
    pub metrics: Metrics,
}

/// The metrics of a cell.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metrics {
    /// Operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<MetricValue>,
    /// CPU of the server for each operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<MetricValue>,
    /// Median latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_p50: Option<MetricValue>,
    /// 99th percentile of latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_p99: Option<MetricValue>,
}

/// One metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricValue {
    /// Unit of `base` and `candidate`.
    pub unit: &'static str,
    /// `higher` or `lower`.
    pub better: &'static str,
    /// On the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// On the candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<f64>,
    /// Candidate / base: mean over the blocks, not the quotient of the two fields above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// 90 % interval of the ratio, for the equivalence test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci90: Option<[f64; 2]>,
    /// The verdict of this metric alone; only for metrics that are judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// Ratio of each block, in block order: the sample behind the interval.
    pub block_ratios: Vec<f64>,
}
