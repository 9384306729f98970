//! What an operation cost on both sides, what moved, and that in words.

mod blocks;
mod explain;
mod labels;
mod moved;
mod short_lived;
mod sources;

use crate::comparison::{CellComparison, Comparison, Cost, Moved};
use crate::levels::Levels;
use crate::parallel;
use blocks::CostSample;
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::slice::Slice;
use sources::{Sampled, Sources};

pub use labels::label;
pub use sources::Machine;

/// Fills [`CellComparison::costs`], [`CellComparison::moved`] and [`CellComparison::explanation`] of every
/// cell, the placebo's too, from what was counted beside the slices.
///
/// All blocks that count are used, also those that a verdict left out: of a cell that was measured again
/// after a detection both halves. What the verdict is made of stays untouched; a finding tells of CPU that is
/// not in it. To be called once, after
/// [`crate::analyse()`] on the same plan and slices; it reads all slices again.
///
/// Shape:  counters in any order, of two for the same visit the later counts; those of cells or servers that
///         the plan does not have are ignored. Without counters there are only the costs that slices know.
///         `machines` are those of the servers, in the plan's order.
/// Units:  those of [`deltabench_model::metric::METRICS`].
///         Without the cores of both sides' machines there is no `machine_cpu_percent_per_op`.
/// Source: docs/measuring.md, "What an operation costs, and what moved"; the published columns are those of
///         docs/sources/sysbench-microbenchmarks.md#costs.
pub fn add_costs(
    comparison: &mut Comparison,
    plan: &Plan,
    slices: &[Slice],
    counters: &[VisitCounters],
    machines: &[Machine],
) {
    let sources = Sources::new(plan, slices, counters, machines);
    let of = |cell: &CellComparison| sources.sampled(cell.cell, cell.candidate);
    let placebo = parallel::map(&comparison.placebo_cells, |cell| (cell.cell, of(cell)));
    // A placebo that is asked how surprising it is must not be its own measure.
    let others = |id: Option<CellId>| -> Vec<&[CostSample]> {
        let others = placebo.iter().filter(|(other, _)| Some(*other) != id);
        others.map(|(_, one)| one.samples.as_slice()).collect()
    };
    let pairs: Vec<_> = comparison.placebo_cells.iter().zip(&placebo).collect();
    let of_placebo = parallel::map(&pairs, |(cell, (id, sampled))| {
        told(cell, sampled, &others(Some(*id)))
    });
    let all = others(None);
    let of_cells = parallel::map(&comparison.cells, |cell| told(cell, &of(cell), &all));
    // Their intervals and tests are those of pairs.
    let unpaired = plan.work.is_unpaired();
    let cells = { comparison.placebo_cells.iter_mut() }.chain(&mut comparison.cells);
    for (cell, (costs, moved, explanation)) in cells.zip(of_placebo.into_iter().chain(of_cells)) {
        (cell.costs, cell.moved, cell.explanation) = match unpaired {
            true => (
                costs.into_iter().map(figures_alone).collect(),
                Vec::new(),
                None,
            ),
            false => (costs, moved, explanation),
        };
    }
    let unseen = short_lived::findings(plan, &comparison.cells);
    comparison.findings.extend(unseen);
}

/// A cost without its intervals.
fn figures_alone(mut cost: Cost) -> Cost {
    cost.difference.ci95 = None;
    if let Some(ratio) = &mut cost.ratio {
        (ratio.ci95, ratio.ci90) = (None, None);
    }
    cost
}

/// The costs of a cell, what moved, and that in words.
fn told(
    cell: &CellComparison,
    sampled: &Sampled,
    placebo: &[&[CostSample]],
) -> (Vec<Cost>, Vec<Moved>, Option<String>) {
    let levels = Levels::printing(cell.interval_level);
    let costs = costs(&sampled.samples, levels);
    let shifts = moved::shifts(cell, &sampled.samples, placebo);
    let explanation = explain::explain(cell, sampled, &shifts, levels);
    (costs, moved::listed(&shifts), explanation)
}

fn costs(samples: &[CostSample], levels: Levels) -> Vec<Cost> {
    samples
        .iter()
        .filter_map(|sample| sample.cost(levels))
        .collect()
}
