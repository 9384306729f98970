//! The published figures of the Insert Benchmark, with what the comparison says of them.

use super::record::StepRecord;
use super::response::{ResponseTimes, response_times};
use super::{Quartile, Service, ShareColour, colour, metrics, notes, service};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Ratio, Verdict};
use deltabench_compare::thresholds::{LEVEL_DIFFERENT, MIN_BLOCKS};
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::units::{count, seconds, to_f64};
use deltabench_model::work::insert::{InsertSecond, InsertSetup, InsertStep};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;

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
    /// What settling took before the first step of queries, in the order of the passes; [`insert_report`]
    /// leaves it empty for who knows to fill.
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
    /// Its colour as published; absent unless it may be quoted.
    pub colour: Option<ShareColour>,
}

/// The figures of the benchmark; `None` for a plan that has no such benchmark.
///
/// Shape:  `steps` in any order, those of cells and servers that the plan does not have are ignored;
///         `comparison` is that of [`deltabench_compare::analyse()`]. `cores` are those of the machine, for
///         percent of it.
/// Units:  as the columns and [`INSERT_METRICS`](super::INSERT_METRICS) say.
/// Source: docs/sources/insert-benchmark.md#figures. Differences: response times count from the
///         scheduled start where there is a rate, and p50 and p99 are over all clients, not the first alone;
///         CPU is of the server's processes alone; who missed the service level is left out of both ends of
///         the quartiles.
pub fn insert_report(
    plan: &Plan,
    steps: &[StepRecord],
    comparison: &Comparison,
    cores: Option<u32>,
) -> Option<InsertReport> {
    let setup = plan.work.insert()?;
    let columns = columns(plan, setup);
    let servers = (0..)
        .zip(&plan.servers)
        .map(|(server, planned)| ServerFigures {
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
            response_times(&sound)
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
        disturbed: super::reading::is_disturbed(record),
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
