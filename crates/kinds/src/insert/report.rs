//! The published figures of a run, as plain data.

use super::quartile::{Quartile, ShareColour};
use super::response::ResponseTimes;
use super::service::{self, Service};
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_model::plan::{CellId, Role, ServerId};
use deltabench_model::work::insert::{InsertSecond, InsertStep};

/// All figures of a run of the Insert Benchmark.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InsertReport {
    /// The steps, in the plan's order: columns of the summary.
    pub steps: Vec<StepColumn>,
    /// Base, placebo and candidates, in the plan's order: its rows.
    pub servers: Vec<ServerFigures>,
    pub passes_planned: u32,
    /// Passes that a verdict needs.
    pub passes_needed: u32,
    /// What settling took before the first step of queries, in the order of the passes;
    /// [`insert_report`](super::insert_report) leaves it empty for who knows to fill.
    pub settled: Vec<Settled>,
    /// What to mind, in words: missed service levels, pitfalls, disturbed and void passes.
    pub notes: Vec<String>,
}

/// What settling took on one server in one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    pub server: ServerId,
    /// The pass, from 0.
    pub pass: u32,
    /// Vacuum of all tables, seconds.
    pub vacuum_seconds: f64,
    /// The checkpoint after it, seconds.
    pub checkpoint_seconds: f64,
    /// All of it with the wait at the end, seconds.
    pub seconds: f64,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepColumn {
    pub cell: CellId,
    pub step: InsertStep,
    /// Its published name.
    pub name: String,
    /// Unit of its throughput: `rows/s` inserted or indexed, or `queries/s`.
    pub unit: &'static str,
    /// Rows per second that all clients together are to insert beside the queries.
    pub target: Option<f64>,
}

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFigures {
    /// Its number in the plan.
    pub server: ServerId,
    pub role: Role,
    /// Its name: what it runs; `placebo` for that.
    pub name: String,
    /// By step, as [`InsertReport::steps`].
    pub steps: Vec<StepFigures>,
}

/// What a server did in a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepFigures {
    /// Every pass that was recorded, void ones too, in order.
    pub passes: Vec<PassFigures>,
    /// Throughput over the passes, in the unit of the column; absent without a good pass.
    pub throughput: Option<Spread>,
    /// Where that stands among the servers, as published; the placebo and missed service levels have none.
    pub quartile: Option<Quartile>,
    /// Background inserts; absent for steps without a rate.
    pub service: Option<Service>,
    /// Against the base; absent for the base itself.
    pub relative: Option<RelativeStep>,
    /// By metric, as [`INSERT_METRICS`](super::INSERT_METRICS), over the good passes.
    pub metrics: Vec<Option<f64>>,
    /// Response times of the good passes together, by role; none in `l.x`, which is about no statement of
    /// them.
    pub response: Vec<ResponseTimes>,
}

/// One pass of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PassFigures {
    /// The pass, from 0.
    pub pass: u32,
    /// Place of the server in it, from 0.
    pub position: u32,
    /// Why it does not count; absent for a good one.
    pub void: Option<String>,
    /// Whether other load disturbed it. It counts all the same.
    pub disturbed: bool,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// First send to last answer.
    pub duration_ns: u64,
    /// Throughput in the unit of the column.
    pub throughput: Option<f64>,
    /// Rows inserted per second beside queries.
    pub background: Option<f64>,
    /// By metric, as [`INSERT_METRICS`](super::INSERT_METRICS).
    pub metrics: Vec<Option<f64>>,
    /// Every second of it, all clients together.
    pub seconds: Vec<InsertSecond>,
    /// Start and length of its turns, nanoseconds; none if it was not cut.
    pub turns: Vec<(u64, u64)>,
}

impl PassFigures {
    /// Whether the pass alone kept its background rate; `None` where there is none to keep.
    pub fn kept(&self, target: Option<f64>) -> Option<bool> {
        Some(service::kept(self.background?, target?))
    }
}

/// A mean over passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub mean: f64,
    /// 95 % interval of it (Student's t, cut at 0); absent with fewer than two passes.
    pub ci95: Option<(f64, f64)>,
    pub passes: u32,
}

/// A step against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeStep {
    /// Throughput, candidate / base, over the passes that both have; absent without one.
    pub ratio: Option<Ratio>,
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    pub passes: u32,
    /// Whether it may be quoted: there are enough passes, and both servers kept their service level.
    pub quotable: bool,
    /// Its colour as published; absent unless it may be quoted, or comes from one pass as published figures
    /// do.
    pub colour: Option<ShareColour>,
}
