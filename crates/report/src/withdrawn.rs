//! What was withdrawn, in words.

use crate::conditions::Conditions;
use crate::context::{DeltaChosen, ReportContext, resolved};
use crate::words;
use deltabench_compare::comparison::{CellComparison, Verdict};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan, ServerId};

/// What every report begins with: that the run is not finished; all withdrawals, one sentence each, those of
/// the whole run first, then those of the run that confirmed it; and a δ that was chosen for the report.
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
        let cell = withdrawal.cell.and_then(|id| plan.cell(id));
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
    let unfinished = unfinished(context).into_iter();
    let all = unfinished.chain(whole).chain(single).chain(confirming);
    let rebased = context.planned_base.map(|planned| rebased(plan, planned));
    all.chain(context.delta_chosen.map(chosen))
        .chain(rebased)
        .collect()
}

/// That a run has not come to its end.
fn unfinished(context: &ReportContext) -> Option<String> {
    let run = &context.run;
    match context.state.as_str() {
        "interrupted" | "failed" => Some(format!(
            "not finished: this run is {}; `deltabench resume {run}` goes on",
            context.state
        )),
        "running" => Some(format!(
            "not finished: this run is being measured, or was killed: then `deltabench resume {run}` goes on"
        )),
        _ => None,
    }
}

/// That the report is relative to another server than the run was planned for.
fn rebased(plan: &Plan, planned: ServerId) -> String {
    let planned = resolved(plan, planned);
    format!(
        "relative to {}, chosen for this report; the run was planned relative to {planned}: that decided \
         when cells had enough blocks, the placebo is its copy, and notes from the time of measuring call it \
         the base",
        resolved(plan, plan.base())
    )
}

/// That a δ was chosen after the measurement.
fn chosen(delta: DeltaChosen) -> String {
    let planned = delta.planned.map_or_else(
        || "the run chose the δ of each cell from its noise".to_owned(),
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
