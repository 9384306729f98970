//! Means over cells: which are shown, and which are not to be used.

use crate::context::ReportContext;
use crate::{withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Verdict};
use deltabench_model::plan::{Plan, ServerId};

/// The means worth a row: of groups with several cells if there are several groups, and of all cells. None
/// where no cell of them can be told.
pub(crate) fn shown<'a>(
    comparison: &'a Comparison,
    plan: &Plan,
    candidate: ServerId,
) -> Vec<&'a GroupSummary> {
    let mut cells = comparison.cells.iter();
    let few = |cell: &CellComparison| withheld::of_cell(plan, cell.blocks).is_some();
    if cells.any(|cell| cell.candidate == candidate && few(cell)) {
        return Vec::new();
    }
    let of: Vec<&GroupSummary> = comparison
        .summaries
        .iter()
        .filter(|summary| summary.candidate == candidate)
        .collect();
    let groups = of.iter().filter(|summary| summary.group.is_some()).count();
    let shown = |summary: &&GroupSummary| {
        summary.of > 1 && summary.cells > 0 && (summary.group.is_none() || groups > 1)
    };
    of.into_iter().filter(shown).collect()
}

/// The name of a mean; × says that cells are in it which are not to be used.
pub(crate) fn name(
    summary: &GroupSummary,
    comparison: &Comparison,
    context: &ReportContext,
) -> String {
    let name = words::mean_of(summary);
    if has_void(summary, comparison, context) {
        format!("{name} {}", words::sign(Verdict::Unfit))
    } else {
        name
    }
}

fn has_void(summary: &GroupSummary, comparison: &Comparison, context: &ReportContext) -> bool {
    void_cells(summary, comparison, context) > 0
}

/// How many cells of a mean are not to be used.
pub(crate) fn void_cells(
    summary: &GroupSummary,
    comparison: &Comparison,
    context: &ReportContext,
) -> u32 {
    let void = comparison.cells.iter().filter(|cell| {
        cell.candidate == summary.candidate
            && summary.group.is_none_or(|group| group == cell.group)
            && withdrawn::is_void(cell, context)
            && !context
                .figures
                .left_out
                .contains(&(cell.cell, cell.candidate))
    });
    u32::try_from(void.count()).unwrap_or(u32::MAX)
}

/// What × behind a mean says, where one has it.
pub(crate) fn legend(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Option<String> {
    let mut shown = comparison
        .cells
        .iter()
        .map(|cell| cell.candidate)
        .flat_map(|candidate| shown(comparison, plan, candidate));
    shown
        .any(|summary| has_void(summary, comparison, context))
        .then(|| {
            format!(
                "{} after a mean: it includes unfit or withdrawn cells, do not use it",
                words::sign(Verdict::Unfit)
            )
        })
}
