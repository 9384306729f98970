//! The published figures of the Insert Benchmark, with what the comparison says of them.

use super::record::StepRecord;
use super::report::{
    InsertReport, PassFigures, RelativeStep, ServerFigures, Spread, StepColumn, StepFigures,
};
use super::response::response_times;
use super::{Service, ShareColour, colour, metrics, notes, service};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_compare::thresholds::{LEVEL_DIFFERENT, MIN_BLOCKS};
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::units::{count, seconds, to_f64};
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;

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
    let servers = ServerId::each()
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
    let cells = CellId::each()
        .zip(&plan.cells)
        .filter_map(|(cell, planned)| {
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
        turns: record
            .turns
            .iter()
            .map(|turn| (turn.started_ns, turn.duration_ns))
            .collect(),
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
            .filter(|_| quotable || found.blocks == 1)
            .map(|ratio| ShareColour::of(ratio.estimate)),
    })
}
