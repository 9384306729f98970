//! Where instructions went, from what a run stored of them.

use crate::store_problem;
use deltabench_compare::comparison::{CellComparison, Comparison, Verdict};
use deltabench_explain::explain;
use deltabench_model::explanation::ExplainedCell;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_store::Store;

/// Cells that one report explains at most.
pub const EXPLAINED: usize = 4;

/// Explains those cells, or without any the cells that changed, the worst first, in so many lines each.
///
/// Shape: cells whose instructions were not counted on both sides are left out.
/// Errors: the store cannot be read.
pub fn explained(
    run: &str,
    (plan, comparison): (&Plan, &Comparison),
    store: &Store,
    cells: &[CellId],
    lines: usize,
) -> Result<Vec<ExplainedCell>, Problem> {
    let Some(counts) = &comparison.instructions else {
        return Ok(Vec::new());
    };
    let distance = |cell: &CellComparison| {
        let found = counts.of_cell(cell.cell, cell.candidate);
        found.map_or(0.0, |found| found.ratio.ln().abs())
    };
    let mut found = Vec::new();
    for cell in wanted(comparison, cells, distance) {
        let profile = |server| store.count_profile(run, (server, cell.cell));
        let base = profile(plan.base()).map_err(store_problem)?;
        let candidate = profile(cell.candidate).map_err(store_problem)?;
        let (Some(base), Some(candidate)) = (base, candidate) else {
            continue;
        };
        let spans = counts.of_cell(cell.cell, cell.candidate).into_iter();
        let spans = spans.flat_map(|found| [found.base.span, found.counted.span]);
        let span = spans.flatten().reduce(f64::max);
        found.push(ExplainedCell {
            cell: cell.cell,
            candidate: cell.candidate,
            explanation: explain(&base, &candidate, lines),
            notes: span.map(starts_differ).into_iter().collect(),
        });
    }
    Ok(found)
}

fn starts_differ(span: f64) -> String {
    format!(
        "starts of one server differ by {:.4} % at most; the system calls' own work is not counted",
        span * 100.0
    )
}

/// The cells that are meant, the worst first.
fn wanted<'a>(
    comparison: &'a Comparison,
    cells: &[CellId],
    distance: impl Fn(&CellComparison) -> f64,
) -> Vec<&'a CellComparison> {
    let changed = |cell: &&CellComparison| match cells {
        [] => matches!(cell.verdict, Verdict::Regression | Verdict::Improvement),
        cells => cells.contains(&cell.cell),
    };
    let mut found: Vec<&CellComparison> = comparison.cells.iter().filter(changed).collect();
    let faster = |cell: &CellComparison| cell.verdict != Verdict::Regression;
    found.sort_by(|a, b| {
        let worse = faster(a).cmp(&faster(b));
        worse.then(distance(b).total_cmp(&distance(a)))
    });
    found.truncate(EXPLAINED);
    found
}
