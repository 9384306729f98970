//! What changed, at the top.

use super::escape;
use super::section::Section;
use super::table::{judged, relative, row};
use crate::conditions::Conditions;
use crate::context::ReportContext;
use crate::remarks::changed;
use crate::summary::nothing_found;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::Plan;

/// What is said where nothing changed.
const NOTHING: &str = "No cell is shown to be slower or faster";

/// A row for each cell that got slower, then for each that got faster, with what moved; the largest first.
pub(super) fn section(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Section {
    let cells = comparison.cells.iter().filter(|cell| changed(cell));
    let mut cells: Vec<&CellComparison> = cells.collect();
    if cells.is_empty() {
        return Section {
            rows: vec![format!("{}\n", nothing_found(NOTHING, comparison, context))],
            ..Section::default()
        };
    }
    // A stable sort: equal ones stay in the plan's order.
    cells.sort_by(|a, b| faster(a).cmp(&faster(b)).then(size(b).total_cmp(&size(a))));
    let conditions = Conditions::new(plan);
    let several = plan.candidates().len() > 1;
    let explained = cells.iter().any(|cell| cell.explanation.is_some());
    let mut headings = vec!["workload"];
    headings.extend(several.then_some("candidate"));
    headings.extend(["throughput", "CPU/op", "verdict"]);
    headings.extend(explained.then_some("what moved"));
    let rule = vec!["---"; headings.len()];
    let fields = |cell: &&CellComparison| {
        let mut fields = vec![escape(&conditions.name(cell))];
        fields.extend(several.then(|| escape(&cell.candidate_name)));
        fields.extend([
            relative(cell, Metric::Throughput, plan),
            relative(cell, Metric::ServerCpuPerOperation, plan),
            judged(cell, comparison, context),
        ]);
        fields.extend(explained.then(|| escape(cell.explanation.as_deref().unwrap_or_default())));
        row(fields)
    };
    Section {
        head: vec![
            "### What changed\n".to_owned(),
            row(headings.into_iter().map(str::to_owned).collect()),
            format!("|{}|", rule.join("|")),
        ],
        rows: cells.iter().map(fields).collect(),
        foot: vec![String::new()],
        what: "cell",
    }
}

fn faster(cell: &CellComparison) -> bool {
    cell.verdict != Verdict::Regression
}

/// How far throughput is from equal.
fn size(cell: &CellComparison) -> f64 {
    words::metric(cell, Metric::Throughput).map_or(0.0, |metric| metric.ratio.estimate.ln().abs())
}
