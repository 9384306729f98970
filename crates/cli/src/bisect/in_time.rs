//! What the runs say that measured a culprit in time.

use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_lab::Judged;
use deltabench_model::finding::Severity;
use deltabench_report::{By, InTime, TimeChange, Timed};
use deltabench_store::{RunState, Store};

/// What a run says of a culprit next to its parent; nothing if it was not begun. `change` is the culprit's,
/// by what points are compared by.
pub fn in_time(
    run: &str,
    (change, by): (f64, By),
    store: &Store,
) -> Result<Option<InTime>, Failure> {
    let Some(reached) = store.reached(run).map_err(store_problem)? else {
        return Ok(None);
    };
    let plan = store.plan(run).map_err(store_problem)?;
    let judged = Judged::of(run, &plan, store).map_err(Failure::Failed)?;
    let comparison = judged.standing(store).map_err(Failure::Failed)?;
    let cell = comparison.cells.first();
    let of = |cell: Option<&CellComparison>, metric| cell.and_then(|cell| change_of(cell, metric));
    let cpu = of(cell, Metric::ServerCpuPerOperation);
    let by_throughput = by == By::Throughput || cpu.is_none();
    let judged_by = match by_throughput {
        false => Metric::ServerCpuPerOperation,
        true => Metric::Throughput,
    };
    let planned = plan.cells.first();
    let timed = Timed {
        run: run.to_owned(),
        is_finished: reached.state == RunState::Finished,
        blocks: cell.map_or(0, |cell| cell.blocks),
        clients: planned.map_or(0, |cell| cell.clients),
        rows: plan.data.rows,
        by_throughput,
        cpu,
        throughput: of(cell, Metric::Throughput),
        placebo: of(comparison.placebo_cells.first(), judged_by),
        p: cell.and_then(|cell| cell.p_of(judged_by)),
        unfit: unfit(&comparison),
    };
    Ok(Some(InTime::new(timed, change)))
}

/// Why the run cannot be trusted, or was withdrawn.
pub fn unfit(comparison: &Comparison) -> Option<String> {
    let mut findings = comparison.findings.iter();
    let of_host = findings.find(|finding| finding.severity == Severity::Unfit);
    let of_host = of_host.map(|finding| finding.text.clone());
    let cell = comparison.cells.first();
    let unfit = cell.filter(|cell| [cell.alone, cell.verdict].contains(&Verdict::Unfit));
    of_host.or_else(|| Some(unfit?.reason.clone()))
}

fn change_of(cell: &CellComparison, metric: Metric) -> Option<TimeChange> {
    let ratio = cell.metric(metric)?.ratio;
    Some(TimeChange {
        change: ratio.estimate - 1.0,
        ci95: ratio.ci95.map(|(low, high)| (low - 1.0, high - 1.0)),
    })
}
