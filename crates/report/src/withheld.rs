//! What stands instead of relative throughput while there are too few passes to tell it; files have the
//! figures, with their intervals, all the same.

use deltabench_compare::comparison::Comparison;
use deltabench_compare::is_whole_step;
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::{Cell, Plan};
use deltabench_model::units::count;

/// What stands where there are too few passes for an answer.
pub const CANNOT_TELL: &str = "cannot tell";

/// What the base of a ratio is where candidates are compared with both of its copies.
pub(crate) fn controls(plan: &Plan) -> Option<&'static str> {
    let paired = |cell: &Cell| !plan.work.is_unpaired() && !is_whole_step(plan, cell);
    let second = plan.second_control();
    let second = second.filter(|_| plan.cells.iter().any(paired));
    second.map(|_| "base: the mean of its two copies")
}

/// What every table says of runs whose servers ran one after another; absent for others.
pub(crate) fn unpaired(plan: &Plan) -> Option<&'static str> {
    plan.work
        .is_unpaired()
        .then_some("unpaired sequential runs: no interval is one of pairs")
}

/// For a cell with so many blocks; absent where they are enough, or no passes.
pub(crate) fn of_cell(plan: &Plan, blocks: u32) -> Option<String> {
    let needed = count(MIN_BLOCKS);
    let few = plan.work.has_passes() && (1..needed).contains(&u64::from(blocks));
    few.then(|| format!("{CANNOT_TELL} ({blocks} of {needed} passes)"))
}

/// For the placebo over all cells.
pub(crate) fn of_placebo(plan: &Plan, comparison: &Comparison) -> Option<String> {
    let blocks = comparison.placebo_cells.iter().map(|cell| cell.blocks);
    of_cell(plan, blocks.max()?)
}
