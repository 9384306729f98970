//! What a run still has to measure.

use crate::history::History;
use crate::noise::cell_delta;
use crate::pairing::Index;
use crate::stopping::{CellProgress, StoppingInput};
use crate::thresholds::BLOCKS_OF_NOISE;
use deltabench_model::plan::{CellId, Plan, Stopping};
use deltabench_model::slice::Slice;
use deltabench_model::units::count;

/// What each cell of the plan still needs, in the plan's order. A cell is open while any candidate is.
///
/// It can be called after any block. The answer depends on the plan and on whole blocks only, and once a cell
/// is decided it stays so, whatever is measured in others.
///
/// With [`deltabench_model::plan::Stopping::Sequential`], a candidate is done at a look when
/// - throughput is equal within ±δ; if CPU per operation is then open, the cell goes on to the next look, and
///   stops there; or
/// - throughput is different, and six fresh blocks have said whether that recurs, or two that it is clear.
///   Where six blocks would hardly confirm it, or are not left, the cell goes on to the next look instead; or
/// - it was the last look.
///
/// [`Fixed`](deltabench_model::plan::Stopping::Fixed) takes all blocks of the plan. With
/// [`Precision`](deltabench_model::plan::Stopping::Precision) a candidate is done when the intervals of
/// throughput and CPU per operation are narrow enough, or after all blocks of the plan. A plan without
/// candidates, a server at several client counts, takes all blocks: nothing is asked that could be answered
/// before.
///
/// Shape:  slices in any order, as [`crate::analyse()`] takes them.
/// Source: docs/sources/statistics.md#looking-early; levels and rules are in docs/measuring.md.
pub fn progress(plan: &Plan, slices: &[Slice]) -> Vec<CellProgress> {
    let index = Index::new(plan, slices);
    let cells = CellId::each().zip(&plan.cells).map(|(cell, _)| {
        let rounds = index.rounds(cell);
        let pair = |server| History::new(&index, &rounds, cell, plan.compared_with(server), server);
        let placebo = plan.placebo().map(pair);
        let delta = cell_delta(plan, placebo.as_ref(), index.sd_of_candidates(cell));
        let candidates = plan.candidates();
        if candidates.is_empty() {
            return alone(plan, placebo.as_ref());
        }
        let courses = candidates.iter().map(|&candidate| {
            let input = StoppingInput {
                plan,
                history: &pair(candidate),
                delta,
            };
            input.state().progress
        });
        courses.fold(CellProgress::Decided, CellProgress::and)
    });
    cells.collect()
}

/// What a cell needs that only base and placebo have.
fn alone(plan: &Plan, placebo: Option<&History<'_>>) -> CellProgress {
    // There is no interval whose width could end it.
    let blocks = match plan.stopping {
        Stopping::Precision { .. } => plan.timing.blocks.min(BLOCKS_OF_NOISE),
        _ => plan.timing.blocks,
    };
    let done = placebo.map_or(0, History::visits);
    if count(done) < u64::from(blocks) {
        CellProgress::Measuring { next_look: blocks }
    } else {
        CellProgress::Decided
    }
}
