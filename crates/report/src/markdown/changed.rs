//! What changed, at the top.

use super::section::Section;
use super::table::{RATIOS, judged, relative};
use crate::conditions::Conditions;
use crate::context::ReportContext;
use crate::remarks::changed;
use crate::summary::nothing_found;
use crate::table::markdown::section as section_of;
use crate::{counts, differences, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::Plan;
use deltabench_model::table::{Cell, Column, Line, Table};

/// What is said where nothing changed.
const NOTHING: &str = "No cell was found slower or faster";

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
    let mut columns = Vec::new();
    columns.extend(several.then_some("candidate"));
    let counts = comparison.instructions.as_ref();
    let ratios = RATIOS.map(|(head, difference, metric)| {
        let has_difference = differences::any(comparison, metric, plan);
        (head, has_difference.then_some(difference), metric)
    });
    for (head, difference, _) in ratios {
        columns.push(head);
        columns.extend(difference);
    }
    columns.extend(counts.map(|_| counts::HEAD));
    columns.push("verdict");
    columns.extend(explained.then_some("what moved"));
    let line = |cell: &&CellComparison| {
        let mut fields: Vec<Cell> = Vec::new();
        fields.extend(several.then(|| cell.candidate_name.as_str().into()));
        for (_, difference, metric) in ratios {
            fields.push(Cell::as_is(relative(cell, metric, plan)));
            let text = difference.map(|_| differences::in_column(cell, metric, plan));
            fields.extend(text.map(Cell::as_is));
        }
        let ratio = counts::ratio(counts, cell).unwrap_or_default();
        fields.extend(counts.map(|_| Cell::as_is(ratio)));
        fields.push(judged(cell, comparison, context).into());
        fields.extend(explained.then(|| cell.explanation.clone().unwrap_or_default().into()));
        Line::row(conditions.name(cell), fields)
    };
    let mut section = section_of(&Table {
        corner: "workload".to_owned(),
        columns: columns.into_iter().map(Column::of_words).collect(),
        lines: cells.iter().map(line).collect(),
        row_noun: "cell",
        ..Table::default()
    });
    section.head.insert(0, "### What changed\n".to_owned());
    section
}

fn faster(cell: &CellComparison) -> bool {
    cell.verdict != Verdict::Regression
}

/// How far throughput is from equal.
fn size(cell: &CellComparison) -> f64 {
    words::metric(cell, Metric::Throughput).map_or(0.0, |metric| metric.ratio.estimate.ln().abs())
}
