//! What the Insert Benchmark says: the tables of published studies, and the verdicts that they lack.
//!
//! A pass of all steps on a server gives one figure for each step; passes are the sample. [`analyse`] judges
//! them as any comparison is judged, and withholds the verdict where a server missed its service level:
//! who inserts less than was asked has had less to do. [`insert_report`] puts the published figures beside
//! that. Void steps are in no figure.

mod colour;
mod metrics;
mod notes;
mod response;
mod service;

pub use colour::{Quartile, ShareColour};
pub use metrics::{Fold, INSERT_METRICS, InsertMetric};
pub use response::{BUCKETS, PERCENTILES, ResponseTimes};
pub use service::Service;

use crate::analyse::analyse_without;
use crate::comparison::{CellComparison, Comparison, Metric, Ratio, Verdict};
use crate::interference::disturbed;
use crate::thresholds::{LEVEL_DIFFERENT, MIN_BLOCKS};
use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::insert::{InsertSecond, InsertSetup, InsertStep, StepRecord};
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, seconds, to_f64};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;

/// All figures of a run of the Insert Benchmark.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InsertReport {
    /// The steps, in the plan's order: columns of the summary.
    pub steps: Vec<StepColumn>,
    /// Base, placebo and candidates, in the plan's order: its rows.
    pub servers: Vec<ServerRow>,
    /// Passes planned.
    pub passes_planned: u32,
    /// Passes that a verdict needs.
    pub passes_needed: u32,
    /// What settling took before the first step of queries, in the order of the passes; [`insert_report`]
    /// leaves it empty for who knows to fill.
    pub settled: Vec<Settled>,
    /// What to mind, in words: missed service levels, pitfalls, disturbed and void passes.
    pub notes: Vec<String>,
}

/// What settling took on one server in one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    /// The server.
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
    /// Its cell.
    pub cell: CellId,
    /// What it does.
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
pub struct ServerRow {
    /// Its number in the plan.
    pub server: ServerId,
    /// Its part.
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
    /// By metric, as [`INSERT_METRICS`], over the good passes.
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
    /// By metric, as [`INSERT_METRICS`].
    pub metrics: Vec<Option<f64>>,
    /// Every second of it, all clients together.
    pub seconds: Vec<InsertSecond>,
}

impl PassFigures {
    /// Whether the pass alone kept its background rate; `None` where there is none to keep.
    #[must_use]
    pub fn kept(&self, target: Option<f64>) -> Option<bool> {
        Some(service::kept(self.background?, target?))
    }
}

/// A mean over passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// 95 % interval of it (Student's t, cut at 0); absent with fewer than two passes.
    pub ci95: Option<(f64, f64)>,
    /// Passes.
    pub passes: u32,
}

/// A step against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeStep {
    /// Throughput, candidate / base, over the passes that both have; absent without one.
    pub ratio: Option<Ratio>,
    /// The answer.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// Passes behind it.
    pub passes: u32,
    /// Whether it may be quoted: there are enough passes, and both servers kept their service level.
    pub quotable: bool,
    /// Its colour as published; absent unless it may be quoted.
    pub colour: Option<ShareColour>,
}

/// Compares as [`crate::analyse()`] does, without verdicts on steps whose service level a side has missed.
///
/// Of steps that other load disturbed none is left out; a finding names them.
///
/// Shape: `slices` are those of the store, which has steps as slices too. A plan without the Insert Benchmark
///        is analysed as ever.
#[must_use]
pub fn analyse(
    plan: &Plan,
    slices: &[Slice],
    steps: &[StepRecord],
    mut findings: Vec<Finding>,
) -> Comparison {
    let Some(setup) = plan.work.insert() else {
        return crate::analyse(plan, slices, findings);
    };
    findings.extend(disturbances(plan, steps));
    analyse_without(plan, slices, findings, &service::missed(plan, setup, steps))
}

/// The figures of the benchmark; `None` for a plan that has no such benchmark.
///
/// Shape:  `steps` in any order, those of cells and servers that the plan does not have are ignored;
///         `comparison` is that of [`analyse`]. `cores` are those of the machine, for percent of it.
/// Units:  as the columns and [`INSERT_METRICS`] say.
/// Source: docs/sources/insert-benchmark.md#figures. Differences: response times count from the
///         scheduled start where there is a rate, and p50 and p99 are over all clients, not the first alone;
///         CPU is of the server's processes alone; who missed the service level is left out of both ends of
///         the quartiles.
#[must_use]
pub fn insert_report(
    plan: &Plan,
    steps: &[StepRecord],
    comparison: &Comparison,
    cores: Option<u32>,
) -> Option<InsertReport> {
    let setup = plan.work.insert()?;
    let columns = columns(plan, setup);
    let servers = (0..).zip(&plan.servers).map(|(server, planned)| ServerRow {
        server,
        role: planned.role,
        name: row_name(plan, planned),
        steps: columns
            .iter()
            .map(|column| {
                let mut records: Vec<&StepRecord> = steps
                    .iter()
                    .filter(|step| (step.server, step.cell) == (server, column.cell))
                    .collect();
                records.sort_by_key(|step| step.block);
                figures(setup, column, &records, (comparison, server), cores)
            })
            .collect(),
    });
    let mut report = InsertReport {
        servers: servers.collect(),
        steps: columns,
        passes_planned: plan.timing.blocks,
        passes_needed: u32::try_from(count(MIN_BLOCKS)).unwrap_or(u32::MAX),
        settled: Vec::new(),
        notes: Vec::new(),
    };
    colour::paint(&mut report);
    report.notes = notes::notes(plan, setup, &report);
    Some(report)
}

/// Its name, without the settings that all servers have: beside each other they tell nothing apart.
fn row_name(plan: &Plan, planned: &PlannedServer) -> String {
    if planned.role == Role::Placebo {
        return "placebo".to_owned();
    }
    let mut short = planned.clone();
    short.settings.retain(|setting| {
        let mut all = plan.servers.iter();
        !all.all(|other| other.settings.contains(setting))
    });
    short.name()
}

/// What was counted in each good step, in the form that [`crate::costs::add_costs`] takes.
#[must_use]
pub fn counters(steps: &[StepRecord]) -> Vec<VisitCounters> {
    let good = steps
        .iter()
        .filter(|step| step.void.is_none() && step.operations > 0);
    good.map(|step| VisitCounters {
        server: step.server,
        cell: step.cell,
        block: step.block,
        operations: step.operations,
        values: step.values.clone(),
    })
    .collect()
}

fn columns(plan: &Plan, setup: &InsertSetup) -> Vec<StepColumn> {
    let cells = (0..).zip(&plan.cells).filter_map(|(cell, planned)| {
        let step = InsertStep::from_name(&planned.workload)?;
        let unit = if step.queries() {
            "queries/s"
        } else {
            "rows/s"
        };
        Some(StepColumn {
            cell,
            step,
            name: planned.workload.clone(),
            unit,
            target: service::target(setup, step),
        })
    });
    cells.collect()
}

fn figures(
    setup: &InsertSetup,
    column: &StepColumn,
    records: &[&StepRecord],
    (comparison, server): (&Comparison, ServerId),
    cores: Option<u32>,
) -> StepFigures {
    let passes: Vec<PassFigures> = records
        .iter()
        .map(|record| pass(setup, column.step, record, cores))
        .collect();
    let good: Vec<&PassFigures> = passes.iter().filter(|pass| pass.void.is_none()).collect();
    let rates: Vec<f64> = good.iter().filter_map(|pass| pass.throughput).collect();
    let background: Vec<f64> = good.iter().filter_map(|pass| pass.background).collect();
    let sound: Vec<&StepRecord> = records
        .iter()
        .copied()
        .filter(|record| record.void.is_none())
        .collect();
    StepFigures {
        throughput: spread(&rates),
        quartile: None,
        service: column
            .target
            .and_then(|target| Service::of(&background, target)),
        relative: relative(comparison, column.cell, server),
        metrics: metrics::folded(&good),
        response: if column.step == InsertStep::Index {
            Vec::new()
        } else {
            response::response_times(&sound)
        },
        passes,
    }
}

fn pass(
    setup: &InsertSetup,
    step: InsertStep,
    record: &StepRecord,
    cores: Option<u32>,
) -> PassFigures {
    let rate = to_f64(record.operations) / seconds(record.duration_ns);
    let rate = rate * setup.published_per_operation(step);
    PassFigures {
        pass: record.block,
        position: record.position,
        void: record.void.as_ref().map(|reason| {
            let detail = record.void_detail.as_ref();
            detail.map_or_else(
                || reason.word().to_owned(),
                |detail| format!("{}: {detail}", reason.word()),
            )
        }),
        disturbed: is_disturbed(record),
        started_ns: record.started_ns,
        duration_ns: record.duration_ns,
        throughput: Some(rate).filter(|rate| rate.is_finite() && *rate > 0.0),
        background: service::background(step, record),
        metrics: metrics::of_pass(setup, step, record, cores),
        seconds: record.seconds.clone(),
    }
}

/// Mean and interval; `None` without a value.
fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread {
        mean: mean(values)?,
        ci95: t_interval(values, LEVEL_DIFFERENT)
            .ok()
            .map(|interval| (interval.low.max(0.0), interval.high)),
        passes: u32::try_from(count(values.len())).unwrap_or(u32::MAX),
    })
}

/// What the comparison says of a step; `None` for the base.
fn relative(comparison: &Comparison, cell: CellId, server: ServerId) -> Option<RelativeStep> {
    let all = comparison.cells.iter().chain(&comparison.placebo_cells);
    let of = |one: &&CellComparison| (one.cell, one.candidate) == (cell, server);
    let found = all.into_iter().find(of)?;
    let speed = found
        .metrics
        .iter()
        .find(|metric| metric.metric == Metric::Throughput);
    let ratio = speed.map(|metric| metric.ratio);
    let enough = count(MIN_BLOCKS) <= u64::from(found.blocks);
    let quotable = enough && found.verdict != Verdict::Unfit && ratio.is_some();
    Some(RelativeStep {
        ratio,
        verdict: found.verdict,
        reason: found.reason.clone(),
        passes: found.blocks,
        quotable,
        colour: ratio
            .filter(|_| quotable)
            .map(|ratio| ShareColour::of(ratio.estimate)),
    })
}

/// By the rule for slices: steal and foreign CPU, never what was measured.
fn is_disturbed(record: &StepRecord) -> bool {
    disturbed(std::iter::once(&Slice {
        latency_histogram: Vec::new(),
        errors: Vec::new(),
        ..record.slice()
    }))
}

/// The steps that other load disturbed, in one finding.
fn disturbances(plan: &Plan, steps: &[StepRecord]) -> Option<Finding> {
    let all = steps.iter().filter(|step| step.void.is_none());
    let hit: Vec<&StepRecord> = all.clone().filter(|step| is_disturbed(step)).collect();
    let cell = |step: &StepRecord| {
        let planned = plan
            .cells
            .get(deltabench_model::units::index(u64::from(step.cell)));
        planned
            .map_or("?", |cell| cell.workload.as_str())
            .to_owned()
    };
    let names: Vec<String> = hit
        .iter()
        .take(NAMED)
        .map(|step| {
            format!(
                "{} on {} in pass {}",
                cell(step),
                plan.server_name(step.server),
                step.block + 1
            )
        })
        .collect();
    let more = hit.len().saturating_sub(names.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!hit.is_empty()).then(|| {
        let text = format!(
            "other load disturbed {} of {} steps, none of which was left out: {}{more}",
            hit.len(),
            all.count(),
            names.join(", ")
        );
        Finding::new("disturbed-steps", Severity::Note, text)
    })
}

/// Steps that a finding or a note names before it counts the rest.
const NAMED: usize = 6;
