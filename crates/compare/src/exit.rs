//! The one number that a script sees.

use crate::comparison::{Comparison, Verdict};
use crate::gate::{GateResult, gate_results, passes};
use deltabench_model::exit;

/// The exit code of a comparison.
///
/// Shape:  the first that applies, from top to bottom:
///
/// | code | when | why it comes here |
/// |---|---|---|
/// | 5 | no cell has a counted block | "measured nothing" must never look like an answer |
/// | 4 | the host is unfit, or every cell is | the numbers should not be used, a regression in them neither |
/// | 1 | any cell fails | one proved loss is not undone by open questions elsewhere |
/// | 3 | any cell is unfit, or open unless the gate lets open ones pass | 0 would claim more than was shown |
/// | 3 | a cell has fewer blocks than an answer needs, or the run is not finished | nor may that pass |
/// | 0 | every cell passes | |
///
/// A cell fails that is listed as a regression; with a gate, one that holds in the whole family; with a
/// margin, one whose loss is shown to be beyond it (see `docs/measuring.md`). Only candidates' cells count;
/// the placebo's never do. 2 is for bad requests and is not given here.
/// A run that counted instructions and measured nothing has no blocks: its verdicts are those of the counts,
/// and a cell that was not counted is open.
/// A run of one server, without candidates, ends with 0 if it measured something: nothing was asked.
/// Source: docs/sources/statistics.md#verdict, docs/sources/statistics.md#many-cells.
pub fn exit_code(comparison: &Comparison) -> u8 {
    let cells = &comparison.cells;
    if cells.is_empty() {
        return alone(comparison);
    }
    let results = gate_results(comparison);
    let any = |result: GateResult| results.contains(&result);
    let counted = comparison.counted_alone().is_some();
    if !counted && cells.iter().all(|cell| cell.blocks == 0) {
        exit::NOT_MEASURED
    } else if !comparison.host_ok || cells.iter().all(|cell| cell.verdict == Verdict::Unfit) {
        exit::UNFIT
    } else if any(GateResult::Failed) {
        exit::REGRESSION
    } else if !passes(comparison, &results) {
        exit::INCONCLUSIVE
    } else {
        exit::NO_REGRESSION
    }
}

/// The exit code of a run without candidates.
fn alone(comparison: &Comparison) -> u8 {
    let placebo = &comparison.placebo_cells;
    if placebo.iter().all(|cell| cell.blocks == 0) {
        exit::NOT_MEASURED
    } else if comparison.host_ok {
        exit::NO_REGRESSION
    } else {
        exit::UNFIT
    }
}
