//! The JSON report's own types: the contract with scripts, as its version 1 has them.
//!
//! Version 2 is made of them where they are written: intervals as objects, ids in the place of places, blocks
//! from 1 (`docs/reference/report.schema.json`).
//!
//! Fields may be added; none is renamed or changes its meaning without a new [`REPORT_FORMAT`] version.
//! What is not known is left out, never null, 0 or NaN. Ratios are candidate / base: 1.0 is equal.

mod host_speed;

use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

pub use host_speed::{BlockSpeed, Dependence, HostSpeed};

/// Name and version of the JSON report as these types have it.
pub const REPORT_FORMAT: (&str, u32) = ("deltabench.report", 1);

/// The whole report.
#[derive(Debug, Clone, Serialize)]
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
    /// The command that makes the same comparison again: targets as resolved, with the seed, without places.
    pub again: Vec<String>,
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
    /// What runs on this host have said about their placebos so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// The smallest change that matters, as a share, as asked for; each cell has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Present where the δ was chosen for this report, after the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_chosen: Option<DeltaChosen>,
    /// When measuring a cell stops.
    pub stopping: Stopping,
    /// What the exit code answers.
    pub gate: Gate,
    /// The machine.
    pub host: Host,
    /// Shape of the measurement.
    pub plan: PlanFacts,
    /// How often each verdict was given.
    pub counts: Counts,
    /// Geometric means over groups of cells and over all cells.
    pub summaries: Vec<GroupSummary>,
    /// How many verdicts were given at once and what was done about it, in words; absent for one verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplicity: Option<String>,
    /// What restarts cannot average, in words; empty where all sides run the same binary.
    pub not_averaged: Vec<String>,
    /// Differences besides what was asked, and doubts.
    pub fairness: Vec<Fairness>,
    /// The candidates' cells.
    pub cells: Vec<Cell>,
    /// The placebo's cells, in the same form.
    pub placebo_cells: Vec<Cell>,
    /// What was withdrawn, in the order it was done: nothing of it is to be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalidations: Vec<Invalidation>,
    /// What was withdrawn of the run that confirmed this one: it neither confirms nor refutes any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmation_invalidations: Vec<ConfirmationInvalidation>,
    /// What happened at a moment: blocks, checkpoints, autovacuum; in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// What the kind of benchmark has beside the verdicts.
    #[serde(flatten)]
    pub figures: BTreeMap<&'static str, Box<RawValue>>,
    /// Workloads over numbers of clients, in absolute numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<crate::study_format::StudyGrid>,
    /// What the kind has beside figures over numbers of clients.
    #[serde(flatten)]
    pub details: BTreeMap<&'static str, Box<RawValue>>,
}

/// A δ that was chosen after the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeltaChosen {
    /// What this report judges with, as a share.
    pub chosen: f64,
    /// What the run planned, as a share; absent where each cell had one from its noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<f64>,
}

/// A withdrawal of the confirming run or of a cell of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfirmationInvalidation {
    /// The confirming run.
    pub run: String,
    /// Its cell, in words; absent for the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Why, in the words of who did it.
    pub reason: String,
    /// When, milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// A withdrawal of the run or of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Invalidation {
    /// The cell's place in the plan, as in [`Cell::cell`]; absent for the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    /// Why, in the words of who did it.
    pub reason: String,
    /// When, milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// Something that happened at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// When, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// `base`, `placebo` or the candidate's resolved target; absent for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// `checkpoint`, `autovacuum`, `autoanalyze`, `block`, …
    pub kind: String,
    /// The facts, short.
    pub text: String,
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
    /// What tables call it, where it was given a name of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it stands on the axes of an experiment: name and value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coordinates: Vec<[String; 2]>,
    /// The named configuration it ran with instead of the steady one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,
    /// How it was built, if deltabench did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<deltabench_model::installation::Recipe>,
    /// Where it is, if it is a server that deltabench did not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// Where the binaries came from: `prebuilt`, `path`, `installed`, `built` or `remote`.
    pub origin: deltabench_model::installation::Origin,
    /// SHA-256 of `bin/postgres`, lower-case hex; empty for a remote server.
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

/// A server that was there before. Passwords are nowhere in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remote {
    /// Host name, address, or directory of a local socket.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Role that deltabench logs in as.
    pub user: String,
    /// Database in which deltabench makes its schemas.
    pub database: String,
    /// `disable`, `prefer`, `require`, `verify-ca` or `verify-full`.
    pub tls: deltabench_model::installation::RemoteTls,
    /// Certificates that are trusted; absent: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_certificate: Option<String>,
    /// Who tells the counters of its machine; absent: nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A named configuration as one version of the server got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Configuration {
    /// Its name.
    pub name: String,
    /// What had to be changed for this version.
    pub adapted: Vec<Adapted>,
}

/// A setting of a configuration that a version has under another name, in another unit, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Adapted {
    /// Name and value as the configuration has it.
    pub asked: [String; 2],
    /// What the server got instead; empty if it was dropped.
    pub became: Vec<[String; 2]>,
    /// Why, in words.
    pub why: String,
}

/// The part of an experiment that a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// Name of this execution of it: all its runs have it in common.
    pub execution: String,
    /// The scale it was carried out at; absent: as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// Which part, from 1.
    pub part: u32,
    /// Of how many.
    pub of: u32,
    /// Which of the repetitions of these coordinates, from 1.
    pub repetition: u32,
    /// Where it stands on the axes that no run can vary by itself: name and value.
    pub coordinates: Vec<[String; 2]>,
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

/// The placebo cells of all runs on this host, counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ledger {
    /// Cells in which the placebo was called different.
    pub flagged: u64,
    /// Placebo cells judged.
    pub total: u64,
    /// Upper bound of the rate of false alarms, as a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_bound: Option<f64>,
}

/// When measuring a cell stops.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stopping {
    /// `fixed`: after all blocks; `sequential`: at a look that decides; `precision`: at a width.
    pub mode: &'static str,
    /// `sequential`: blocks of each look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Vec<u32>>,
    /// `precision`: half-width of the interval to reach, as a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

/// What the exit code answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    /// Whether the exit code is that of a gate: family-wise over all cells.
    pub on: bool,
    /// Largest loss of throughput that passes, as a share; absent: any regression fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_worse_than: Option<f64>,
    /// Whether cells without an answer pass.
    pub inconclusive_passes: bool,
    /// Its answer in one line; absent where there is no gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// The geometric mean over the cells of a group, or over all, for one candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupSummary {
    /// The candidate's resolved target.
    pub candidate: String,
    /// `point`, `range`, `range-agg` or `write`; absent for all cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// Cells in it that have an estimate.
    pub cells: u32,
    /// Cells in it.
    pub of: u32,
    /// Those of them that are unfit or withdrawn: a mean with any of them in it is not to be used.
    pub void_cells: u32,
    /// Mean of throughput; its interval knows that cells share blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Relative>,
    /// The same of CPU per operation, over the cells where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<Relative>,
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
    /// Whether each cell has a δ of its own from its placebo's noise.
    pub delta_from_noise: bool,
    /// Order of the cells in a block: `drawn`, or `published`: each on what those before it left behind.
    pub order: deltabench_model::plan::CellOrder,
    /// How the client reaches the servers: `socket`, `tcp` or `tls`.
    pub transport: deltabench_model::plan::Transport,
    /// Cores given by hand; absent where they are drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pins: Option<Pins>,
    /// Settings asked for on one server only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own_settings: Vec<OwnSettings>,
    /// Memory of each server with its page cache, bytes; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The storage profile that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<deltabench_model::plan::StorageProfile>,
    /// What caches hold when a visit starts: `as-is`, `cold` or `prewarmed`.
    pub cache: deltabench_model::plan::CacheState,
    /// Servers made slower on purpose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub burns: Vec<Burn>,
    /// The run whose regressions this one measures again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirms: Option<String>,
    /// The experiment that the run is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
}

/// Cores given by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pins {
    /// Cores of the servers.
    pub server: Vec<u64>,
    /// Cores of the client.
    pub client: Vec<u64>,
}

/// Settings asked for on one server only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnSettings {
    /// `base`, `placebo` or the candidate's name.
    pub server: String,
    /// Name and value, in order.
    pub settings: Vec<[String; 2]>,
}

/// A server that is made slower on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Burn {
    /// `base`, `placebo` or the candidate's resolved target.
    pub server: String,
    /// CPU that every message from a client costs it on top, nanoseconds.
    pub burn_ns: u64,
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
    /// Its place in the plan, from 0.
    pub cell: u32,
    /// Workload.
    pub workload: String,
    /// `point`, `range`, `range-agg` or `write`.
    pub group: &'static str,
    /// Concurrent connections.
    pub clients: u32,
    /// What its tables have been through before: `fresh` or `aged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Operations per second that are scheduled (open loop); absent for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The candidate's resolved target, or `placebo`.
    pub candidate: String,
    /// `regression`, `improvement`, `no-change`, `inconclusive` or `unfit`; a regression or improvement only
    /// where `p_bh` is at most 0.05.
    pub verdict: &'static str,
    /// What the verdict would be if this were the only cell.
    pub alone: &'static str,
    /// Why, in words.
    pub reason: String,
    /// The smallest change that matters here, as a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Two-sided p of "throughput is equal", valid however often was looked. Where fresh blocks confirmed a
    /// look it is that of both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// `p` adjusted by Holm over all cells and candidates: for the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// `p` adjusted by Benjamini and Hochberg over all cells and candidates: for the listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_bh: Option<f64>,
    /// Looks made at this cell so far; 0 where the plan has none.
    pub looks: u32,
    /// The look, from 1, that decided; absent while open, and where the plan has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<u32>,
    /// A difference that a look found before the last one; `metrics` then come from the fresh blocks after
    /// it, once these are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<Detection>,
    /// Whether a run on freshly loaded data found the regression again: `recurred`, `did-not-recur`, or
    /// `open` where it could not tell; absent where none was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<&'static str>,
    /// Whether a difference came again, in one word: `fresh-load` (another run), `fresh-blocks` (of this
    /// run), `not-yet` or `did-not-recur`; absent where nothing had to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<&'static str>,
    /// Level of Student's interval behind `ci95`: 0.95, or more where measuring stopped at a width, so that
    /// it still holds the truth in 95 of 100 runs.
    pub interval_level: f64,
    /// Why a server of this cell never became steady, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drifting: Option<String>,
    /// How the servers became warm, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Rounds that other load disturbed.
    pub interference: Interference,
    /// How fast the host was in each block, and whether the difference goes with that; absent with too few
    /// blocks, and where a block is one long step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_speed: Option<HostSpeed>,
    /// Blocks that might still decide an inconclusive cell; absent beyond a thousand, or when decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_to_verdict: Option<u32>,
    /// Minutes for these blocks at the pace of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes_to_verdict: Option<f64>,
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
    /// Throughput as published studies count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// What each operation cost, in the order of the registry of metrics; what one side lacks is not in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// The costs that moved, most surprising first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
    /// What moved, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Throughput of each block on both sides, in block order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<BlockRate>,
    /// Latency of both sides, all slices that count together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Why the cell, or the whole run, was withdrawn: its figures are not to be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
}

/// One cost of an operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Key of the metric (`deltabench_model::metric`), or `wait:TYPE:EVENT` for a sampled wait.
    pub key: String,
    /// Unit of `base`, `candidate` and `difference`.
    pub unit: &'static str,
    /// `higher` or `lower`; absent where neither is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<&'static str>,
    /// On the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// On the candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<f64>,
    /// Candidate - base, also where one of them is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Estimate>,
    /// Candidate / base; absent unless both are above 0 in every block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
    /// Blocks in which both sides have it.
    pub blocks: u32,
}

/// An estimate with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the blocks.
    pub estimate: f64,
    /// 95 % interval; absent with fewer than two blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

/// A cost that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// Key of the cost.
    pub key: String,
    /// How many times the placebo's own typical move of this cost; absent where the placebo's never moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surprise: Option<f64>,
    /// Two-sided p of "it did not move", adjusted by Benjamini and Hochberg over the costs of this cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The move in words.
    pub text: String,
}

/// Throughput and CPU of one block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockRate {
    /// Restart block, from 0.
    pub block: u32,
    /// On the base, ops/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// On the candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<f64>,
    /// CPU of base and candidate for an operation, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us: Option<[f64; 2]>,
}

/// Percentiles of latency; the three lists are of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// Percentiles, 0 to 100, rising.
    pub percentiles: Vec<f64>,
    /// The base, microseconds.
    pub base_us: Vec<f64>,
    /// The candidate.
    pub candidate_us: Vec<f64>,
}

/// A difference that a look found before the last one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detection {
    /// The look, from 1.
    pub look: u32,
    /// Blocks behind it.
    pub blocks: u32,
    /// Throughput as estimated there: biased outward, because it is what made the look stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Relative>,
    /// Its p there, valid however often was looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// What the fresh blocks say: `confirming` (not yet all measured), `recurred` or `did-not-recur`.
    pub outcome: &'static str,
    /// `confirming`: fresh blocks still needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_left: Option<u32>,
    /// Else: one-sided p of the direction that was found, from the fresh blocks alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_p: Option<f64>,
}

/// Rounds that other load disturbed: steal, foreign CPU, or servers that should have been idle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interference {
    /// Rounds disturbed, by a rule that does not look at outcomes; left out unless `contended`.
    pub disturbed_rounds: u64,
    /// More than half of the rounds are disturbed: all stay in.
    pub contended: bool,
    /// Estimates with the disturbed rounds; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_voided: Option<Estimates>,
    /// Estimates without them; absent where there are none, or no block is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_voided: Option<Estimates>,
}

/// Both metrics that are judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimates {
    /// Operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Relative>,
    /// CPU of the server for each operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<Relative>,
}

/// How the servers of a cell became warm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WarmUp {
    /// Visits whose warm-up is known.
    pub visits: u32,
    /// Visits that began with every server steady.
    pub steady: u32,
    /// The discarded rounds of one visit that stands for the others.
    pub curves: Vec<WarmUpCurve>,
}

/// The discarded rounds of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WarmUpCurve {
    /// `base`, `placebo` or the candidate's resolved target.
    pub server: String,
    /// Microseconds per operation in each round, in order.
    pub us_per_op: Vec<f64>,
}

/// Throughput as published studies count it: `per_operation` times ours, so its ratio is the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// On the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// On the candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<f64>,
    /// The published unit, for example `queries/s`.
    pub unit: String,
    /// Published units of one operation: 16 statements of a transaction, 1000 thousands of rows of a scan.
    pub per_operation: f64,
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
    /// 95 % interval of the ratio; see `interval_level` of the cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// 90 % interval of the ratio, for the equivalence test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci90: Option<[f64; 2]>,
    /// The verdict of this metric alone; only for metrics that are judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// Ratio of each block, in block order: the sample behind the interval. After a `detection` that recurred
    /// these are the fresh blocks only.
    pub block_ratios: Vec<f64>,
}
