//! What a second measurement says about the differences of a first.
//!
//! The first run was measured again because it showed a difference, so its figures are too large on average
//! and its p says nothing more: whatever selected it, the second run was not selected. So "recurred" is
//! decided by the second run alone, one-sided at 5 %, which is the rate of false recurrences under any
//! selection; no combination with the first p keeps that rate when the selection is stricter than it
//! assumes. What "did not recur" means needs both runs: their common estimate, with the first one's selection
//! taken off.

use crate::analyse::counts;
use crate::comparison::{
    CellComparison, Comparison, Confirmation, Metric, Ratio, Recurrence, Verdict,
};
use crate::selected::{Estimate, Selected};
use crate::thresholds::{LEVEL_DIFFERENT, LEVEL_EQUIVALENT, RECUR_P, log_delta};
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::student::t_quantile;

/// Marks the regressions and improvements of `first` that `again` has measured; `seconds_later` is from the
/// end of the first run to the start of the second.
///
/// - **recurred**: the second run shows it again in the same direction (one-sided p ≤ 5 %). If it also shows
///   that it is smaller than δ, the cell is equal.
/// - **did not recur**: not so, and both runs together exclude what would matter: the common interval holds
///   zero and lies within ±δ on the side that was found, or the second run denies what is left of the first.
///   The cell is inconclusive, because only one of two fresh loads has shown it.
/// - **open**: neither, or the second run is not to be trusted (unfit host or cell, contended). The verdict
///   stays, marked as not confirmed yet.
///
/// `again` is a run that confirms `first` ([`deltabench_model::plan::Plan::confirms`]); its cells are a part
/// of those of `first`. Cells that it has not, or that it has not finished, stay as they are.
/// Source: docs/measuring.md#confirmation.
pub fn confirm(first: &mut Comparison, again: &Comparison, seconds_later: Option<f64>) {
    let found = |cell: &&mut CellComparison| cell.verdict.is_change();
    for cell in first.cells.iter_mut().filter(found) {
        let Some(other) = again.cells.iter().find(|other| is_same(cell, other)) else {
            continue;
        };
        if other.confirmation.is_none() {
            continue;
        }
        let Some(mut recurrence) = recurrence(cell, other, seconds_later) else {
            continue;
        };
        if !again.host_ok || other.verdict == Verdict::Unfit || other.interference.contended {
            recurrence.outcome = Confirmation::Open;
        }
        settle(cell, other, recurrence);
    }
    first.counts = counts(&first.cells);
}

fn settle(cell: &mut CellComparison, other: &CellComparison, recurrence: Recurrence) {
    cell.confirmation = Some(recurrence.outcome);
    let (outcome, found) = (recurrence.outcome, cell.reason.clone());
    cell.recurrence = Some(recurrence);
    match outcome {
        Confirmation::DidNotRecur => {
            cell.verdict = Verdict::Inconclusive;
            cell.reason = format!("did not recur on a fresh load; at first {found}");
        }
        Confirmation::Recurred if other.verdict == Verdict::NoChange => {
            cell.verdict = Verdict::NoChange;
            let again = &other.reason;
            cell.reason = format!("{again}, on a fresh load; at first {found}");
        }
        _ => {}
    }
}

fn is_same(first: &CellComparison, again: &CellComparison) -> bool {
    first.workload == again.workload
        && first.clients == again.clients
        && first.candidate == again.candidate
}

/// The mean of a cell's throughput, turned so that the difference was found above zero.
fn turned(cell: &CellComparison, sign: f64) -> Option<SkewedMean> {
    let speed = cell.metric(Metric::Throughput)?;
    let values: Vec<f64> = speed.blocks.iter().map(|value| sign * value).collect();
    SkewedMean::new(&values, speed.skewness.times(sign)).ok()
}

fn recurrence(
    first: &CellComparison,
    again: &CellComparison,
    seconds_later: Option<f64>,
) -> Option<Recurrence> {
    let sign = match first.metric(Metric::Throughput)?.ratio.estimate < 1.0 {
        true => -1.0,
        false => 1.0,
    };
    let second = turned(again, sign)?;
    let p = second.p_above();
    let (one, two) = (Estimate::of(&turned(first, sign)?)?, Estimate::of(&second)?);
    let found = Selected::new(one, LEVEL_DIFFERENT);
    let together = found.with(two);
    let half = |level: f64| t_quantile(0.5 + level / 2.0, together.df) * together.error;
    let limit = log_delta(first.delta.min(again.delta));
    let small =
        together.centre < half(LEVEL_DIFFERENT) && together.centre + half(LEVEL_EQUIVALENT) < limit;
    let outcome = if p <= RECUR_P {
        Confirmation::Recurred
    } else if small || found.is_denied_by(two) {
        Confirmation::DidNotRecur
    } else {
        Confirmation::Open
    };
    let ends = |level: f64| {
        let (a, b) = (together.centre - half(level), together.centre + half(level));
        let (low, high) = if sign > 0.0 { (a, b) } else { (-b, -a) };
        Some((low.exp(), high.exp()))
    };
    Some(Recurrence {
        outcome,
        p,
        again: again.metric(Metric::Throughput)?.ratio,
        together: Ratio {
            estimate: (sign * together.centre).exp(),
            ci95: ends(LEVEL_DIFFERENT),
            ci90: ends(LEVEL_EQUIVALENT),
        },
        seconds_later,
    })
}
