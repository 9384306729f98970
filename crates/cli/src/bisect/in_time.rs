//! What the runs say that measured a culprit in time.

use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_compare::comparison::{CellComparison, Metric};
use deltabench_lab::Judged;
use deltabench_report::{InTime, TimeChange};
use deltabench_store::{RunState, Store};

/// What a run says of a culprit next to its parent; nothing if it was not begun. `change` is the culprit's by
/// count.
pub fn in_time(run: &str, change: f64, store: &Store) -> Result<Option<InTime>, Failure> {
    let Some(reached) = store.reached(run).map_err(store_problem)? else {
        return Ok(None);
    };
    let plan = store.plan(run).map_err(store_problem)?;
    let judged = Judged::of(run, &plan, store).map_err(Failure::Failed)?;
    let comparison = judged.standing(store).map_err(Failure::Failed)?;
    let cell = comparison.cells.first();
    let of = |cell: Option<&CellComparison>, metric| cell.and_then(|cell| change_of(cell, metric));
    let cpu = of(cell, Metric::ServerCpuPerOperation);
    let judged_by = match cpu {
        Some(_) => Metric::ServerCpuPerOperation,
        None => Metric::Throughput,
    };
    let p = cell.and_then(|cell| cell.p_of(judged_by));
    let placebo = of(comparison.placebo_cells.first(), judged_by);
    Ok(Some(InTime::new(
        run.to_owned(),
        reached.state == RunState::Finished,
        cell.map_or(0, |cell| cell.blocks),
        (cpu, of(cell, Metric::Throughput), placebo),
        (change, p),
    )))
}

fn change_of(cell: &CellComparison, metric: Metric) -> Option<TimeChange> {
    let ratio = cell.metric(metric)?.ratio;
    Some(TimeChange {
        change: ratio.estimate - 1.0,
        ci95: ratio.ci95.map(|(low, high)| (low - 1.0, high - 1.0)),
    })
}
