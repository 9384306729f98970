//! Where instructions went, from what a run stored of them.

use crate::counted::Counted;
use crate::store_problem;
use deltabench_compare::CountedCell;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_explain::explain;
use deltabench_model::explanation::{ExplainedCell, TimeChange};
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::{FunctionTime, SampledCell};
use deltabench_store::Store;

/// Cells that are explained at most where none is named.
pub const EXPLAINED: usize = 4;

/// Explains those cells, or without any those that changed most, the worst first, in so many lines each, with
/// the sampled time of their functions.
///
/// Shape: cells whose instructions were not counted on both sides are left out.
/// Errors: the store cannot be read.
pub fn explained(
    run: &str,
    (plan, comparison, sampled): (&Plan, &Comparison, &[SampledCell]),
    store: &Store,
    cells: &[CellId],
    lines: usize,
) -> Result<Vec<ExplainedCell>, Problem> {
    let counted = Counted::of(run, plan, store).map_err(store_problem)?;
    explained_by(&counted, (plan, comparison, sampled), store, cells, lines)
}

/// The same by counts that are read already.
pub(crate) fn explained_by(
    by: &Counted,
    (plan, comparison, sampled): (&Plan, &Comparison, &[SampledCell]),
    store: &Store,
    cells: &[CellId],
    lines: usize,
) -> Result<Vec<ExplainedCell>, Problem> {
    let Some(counts) = &comparison.instructions else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for cell in wanted(comparison, cells) {
        if cells.is_empty() && found.len() == EXPLAINED {
            break;
        }
        let profile = |server| by.profile((server, cell.cell), store);
        let base = profile(plan.base()).map_err(store_problem)?;
        let candidate = profile(cell.candidate).map_err(store_problem)?;
        let (Some(base), Some(candidate)) = (base, candidate) else {
            continue;
        };
        let counted = counts.of_cell(cell.cell, cell.candidate);
        let span = counted.and_then(CountedCell::span);
        let mut explanation = explain(&base, &candidate, lines);
        let mut sampled = sampled.iter();
        let of = |one: &&SampledCell| (one.cell, one.candidate) == (cell.cell, cell.candidate);
        if let Some(sampled) = sampled.find(of) {
            let own = |name: &String| time_of(&sampled.time.own, name);
            let inclusive = |name: &String| time_of(&sampled.time.inclusive, name);
            for line in &mut explanation.lines {
                line.find_time(&own, &inclusive);
            }
        }
        found.push(ExplainedCell {
            cell: cell.cell,
            candidate: cell.candidate,
            explanation,
            notes: span.map(starts_differ).into_iter().collect(),
        });
    }
    Ok(found)
}

fn time_of(functions: &[FunctionTime], name: &str) -> Option<TimeChange> {
    let mut functions = functions.iter();
    let found = functions.find(|function| function.name == name);
    found.map(|function| function.change)
}

fn starts_differ(span: f64) -> String {
    format!(
        "starts of one server differ by {:.4} % at most; the work of system calls is not counted",
        span * 100.0
    )
}

/// The cells that changed, the worst first, each once.
pub fn changed(comparison: &Comparison) -> Vec<CellId> {
    let mut cells: Vec<CellId> = Vec::new();
    for cell in wanted(comparison, &[]) {
        if !cells.contains(&cell.cell) {
            cells.push(cell.cell);
        }
    }
    cells
}

/// The cells that are meant, the worst first.
fn wanted<'a>(comparison: &'a Comparison, cells: &[CellId]) -> Vec<&'a CellComparison> {
    let changed = |cell: &&CellComparison| match cells {
        [] => is_changed(cell),
        cells => cells.contains(&cell.cell),
    };
    let mut found: Vec<&CellComparison> = comparison.cells.iter().filter(changed).collect();
    found.sort_by(|a, b| {
        let worse = rank(a).cmp(&rank(b));
        worse.then(distance(comparison, b).total_cmp(&distance(comparison, a)))
    });
    found
}

/// Whether a cell got slower or faster, or takes more or less CPU for an operation.
pub(crate) fn is_changed(cell: &CellComparison) -> bool {
    rank(cell) < UNCHANGED
}

/// What ranks behind all changes.
const UNCHANGED: u8 = 3;

/// Slower before faster before what throughput does not show; one that cannot be trusted is none of them.
fn rank(cell: &CellComparison) -> u8 {
    let cpu = cell.metric(Metric::ServerCpuPerOperation);
    let differs = |verdict: Option<Verdict>| verdict.is_some_and(Verdict::is_change);
    match cell.verdict {
        Verdict::Regression => 0,
        Verdict::Improvement => 1,
        Verdict::NoChange | Verdict::Inconclusive if differs(cpu.and_then(|cpu| cpu.verdict)) => 2,
        _ => UNCHANGED,
    }
}

/// How far a cell is from no change: by its instructions, or by its throughput where those were not counted.
fn distance(comparison: &Comparison, cell: &CellComparison) -> f64 {
    let counts = comparison.instructions.as_ref();
    let counted = counts.and_then(|counts| counts.of_cell(cell.cell, cell.candidate));
    let timed = || Some(cell.metric(Metric::Throughput)?.ratio.estimate);
    let ratio = counted.map(|found| found.ratio).or_else(timed);
    ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::analyse;
    use deltabench_testkit::small_run::{plan, slices};

    #[test]
    fn cells_that_are_not_named_come_with_the_worst_first() {
        let mut comparison = analyse(&plan(), &slices([0.9, 1.3, 0.8]), Vec::new());
        assert_eq!(
            changed(&comparison),
            [2, 0, 1].map(CellId),
            "regressions first"
        );
        let [first, ..] = comparison.cells.as_slice() else {
            panic!("no cell")
        };
        let first = first.clone();
        comparison.cells.extend((3..9).map(|cell| CellComparison {
            cell: CellId(cell),
            ..first.clone()
        }));
        assert_eq!(changed(&comparison)[..4], [2, 0, 3, 4].map(CellId));
        let named: Vec<CellId> = CellId::each().take(9).collect();
        assert_eq!(wanted(&comparison, &named).len(), 9);
    }
}
