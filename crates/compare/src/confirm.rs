//! What a second measurement says about the regressions of a first.

use crate::comparison::{CellComparison, Comparison, Confirmation, Verdict};

/// Marks the regressions of `first` that `again` has measured: what came again is confirmed, what did not is
/// inconclusive, because only one of two fresh loads has shown it.
///
/// `again` is a run that confirms `first` ([`deltabench_model::plan::Plan::confirms`]); its cells are a part
/// of those of `first`. Cells that it has not, or that it has not finished, stay as they are.
/// Source: measurement.md 3.11.
pub fn confirm(first: &mut Comparison, again: &Comparison) {
    let regressions = first
        .cells
        .iter_mut()
        .filter(|cell| cell.verdict == Verdict::Regression);
    for cell in regressions {
        let Some(other) = again.cells.iter().find(|other| is_same(cell, other)) else {
            continue;
        };
        cell.confirmation = other.confirmation;
        if other.confirmation == Some(Confirmation::DidNotRecur) {
            cell.verdict = Verdict::Inconclusive;
            cell.reason = format!("did not recur on a fresh load; at first {}", cell.reason);
            first.counts.regression -= 1;
            first.counts.inconclusive += 1;
        }
    }
}

fn is_same(first: &CellComparison, again: &CellComparison) -> bool {
    first.workload == again.workload
        && first.clients == again.clients
        && first.candidate == again.candidate
}
