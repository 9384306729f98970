//! What was withdrawn, in words.

use crate::conditions::Conditions;
use crate::context::{DeltaChosen, ReportContext, planned_cell};
use crate::summary::shown_summaries;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Verdict};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan};

/// What every report begins with: all withdrawals, one sentence each, those of the whole run first, then
/// those of the run that confirmed it; and a δ that was chosen for the report.
pub(crate) fn sentences(plan: &Plan, context: &ReportContext) -> Vec<String> {
    let conditions = Conditions::new(plan);
    let (run, cells): (Vec<_>, Vec<_>) = context
        .invalidations
        .iter()
        .partition(|withdrawal| withdrawal.cell.is_none());
    let whole = run
        .into_iter()
        .map(|withdrawal| format!("withdrawn: this whole run: {}", reason(withdrawal)));
    let single = cells.into_iter().map(|withdrawal| {
        let cell = withdrawal.cell.and_then(|id| planned_cell(plan, id));
        let name = cell.map_or_else(
            || "a cell that is not in the plan".to_owned(),
            |cell| conditions.planned_name(cell),
        );
        format!("withdrawn: {name}: {}", reason(withdrawal))
    });
    let confirming = context.confirmation_withdrawn.iter().map(|withdrawal| {
        let of = withdrawal.cell.as_ref();
        format!(
            "withdrawn: {}the run {} that confirmed this one: {} ({})",
            of.map_or_else(String::new, |cell| format!("{cell} of ")),
            withdrawal.run,
            withdrawal.reason,
            words::date(withdrawal.at_unix_ms)
        )
    });
    let all = whole.chain(single).chain(confirming);
    all.chain(context.delta_chosen.map(chosen)).collect()
}

/// That a δ was chosen after the measurement.
fn chosen(delta: DeltaChosen) -> String {
    let planned = delta.planned.map_or_else(
        || "the run took each cell's from its noise".to_owned(),
        |planned| format!("the run planned ±{}", words::share(planned)),
    );
    format!(
        "judged with δ ±{}, chosen for this report; {planned}",
        words::share(delta.chosen)
    )
}

/// Whether a cell's figures are not to be used.
pub(crate) fn is_void(cell: &CellComparison, context: &ReportContext) -> bool {
    cell.verdict == Verdict::Unfit || of_cell(context, cell.cell).is_some()
}

/// The name of a mean; × says that cells are in it which are not to be used.
pub(crate) fn mean_name(
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
            && is_void(cell, context)
            && !context
                .figures
                .left_out
                .contains(&(cell.cell, cell.candidate))
    });
    u32::try_from(void.count()).unwrap_or(u32::MAX)
}

/// What × behind a mean says, where one has it.
pub(crate) fn mean_legend(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Option<String> {
    let mut shown = comparison
        .cells
        .iter()
        .map(|cell| cell.candidate)
        .flat_map(|candidate| shown_summaries(comparison, plan, candidate));
    shown
        .any(|summary| has_void(summary, comparison, context))
        .then(|| {
            format!(
                "{} behind a mean: unfit or withdrawn cells are in it, do not use it",
                words::sign(Verdict::Unfit)
            )
        })
}

/// Why a cell is not to be used, its own withdrawal or that of the run; absent where it is.
pub(crate) fn of_cell(context: &ReportContext, cell: CellId) -> Option<String> {
    let reasons: Vec<&str> = context
        .invalidations
        .iter()
        .filter(|withdrawal| withdrawal.cell.is_none_or(|id| id == cell))
        .map(|withdrawal| withdrawal.reason.as_str())
        .collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// `withdrawn (reason)`, to be said at the cell itself; only where the whole run is not withdrawn already.
pub(crate) fn note(context: &ReportContext, cell: CellId) -> Option<String> {
    let mut all = context.invalidations.iter();
    if all.any(|withdrawal| withdrawal.cell.is_none()) {
        return None;
    }
    of_cell(context, cell).map(|reason| format!("withdrawn ({reason})"))
}

fn reason(withdrawal: &Invalidation) -> String {
    format!(
        "{} ({})",
        withdrawal.reason,
        words::date(withdrawal.at_unix_ms)
    )
}
