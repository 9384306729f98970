//! What a second measurement says about the regressions of a first.

use crate::comparison::{CellComparison, Comparison, Confirmation, Metric, Verdict};

/// Marks the regressions of `first` that `again` has measured: what came again is confirmed, what did not is
/// inconclusive, because only one of two fresh loads has shown it.
///
/// A second run whose cell or host is unfit says nothing at all. One that shows no loss has refuted nothing
/// if its interval still holds the size that the first found, or if most of its rounds were disturbed. Then
/// the verdict stays, and is not confirmed. `again` is a run that confirms `first`
/// ([`deltabench_model::plan::Plan::confirms`]); its cells are a part of those of `first`. Cells that it has
/// not, or that it has not finished, stay as they are.
/// Source: docs/sources/statistics.md#fresh-loads.
pub fn confirm(first: &mut Comparison, again: &Comparison) {
    let regressions = first
        .cells
        .iter_mut()
        .filter(|cell| cell.verdict == Verdict::Regression);
    for cell in regressions {
        let Some(other) = again.cells.iter().find(|other| is_same(cell, other)) else {
            continue;
        };
        cell.confirmation = match other.confirmation {
            Some(_) if !again.host_ok || other.verdict == Verdict::Unfit => {
                Some(Confirmation::Open)
            }
            Some(Confirmation::DidNotRecur)
                if other.interference.contended || still_holds(other, cell) =>
            {
                Some(Confirmation::Open)
            }
            said => said,
        };
        if cell.confirmation == Some(Confirmation::DidNotRecur) {
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

/// Whether the interval of the second run holds what the first found.
fn still_holds(again: &CellComparison, first: &CellComparison) -> bool {
    let ratio = |cell: &CellComparison| Some(cell.metric(Metric::Throughput)?.ratio);
    let ends = ratio(again).and_then(|ratio| ratio.ci95);
    let found = ratio(first).map(|ratio| ratio.estimate);
    let (Some((low, high)), Some(found)) = (ends, found) else {
        return true;
    };
    (low..=high).contains(&found)
}
