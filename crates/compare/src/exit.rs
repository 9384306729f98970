//! The one number that a script sees.

use crate::comparison::{Comparison, Verdict};

/// The exit code of a comparison.
///
/// Shape: the first that applies, from top to bottom:
///
/// | code | when | why it comes here |
/// |---|---|---|
/// | 5 | no cell has a counted block | "measured nothing" must never look like an answer |
/// | 4 | the host is unfit, or every cell is | the numbers should not be used, a regression in them neither |
/// | 1 | any cell is a regression | one proved loss is not undone by open questions elsewhere |
/// | 3 | any cell is inconclusive or unfit | 0 would claim more than was shown |
/// | 0 | every cell is an improvement or no change | |
///
/// Only candidates' cells count; the placebo's never do. 2 is for bad requests and is not given here.
/// Source: measurement.md 3.8.
#[must_use]
pub fn exit_code(comparison: &Comparison) -> u8 {
    let cells = &comparison.cells;
    let any = |verdict: Verdict| cells.iter().any(|cell| cell.verdict == verdict);
    if cells.iter().all(|cell| cell.blocks == 0) {
        5
    } else if !comparison.host_ok || cells.iter().all(|cell| cell.verdict == Verdict::Unfit) {
        4
    } else if any(Verdict::Regression) {
        1
    } else if any(Verdict::Inconclusive) || any(Verdict::Unfit) {
        3
    } else {
        0
    }
}
