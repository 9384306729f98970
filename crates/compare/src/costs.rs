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

/// Fills [`CellComparison::costs`], [`CellComparison::cost_rates`], [`CellComparison::moved`] and
/// [`CellComparison::explanation`] of every cell, the placebo's too, from what was counted beside the slices.
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
    for (cell, told) in cells.zip(of_placebo.into_iter().chain(of_cells)) {
        cell.cost_rates = told.rates;
        (cell.costs, cell.moved, cell.explanation) = match unpaired {
            true => (
                told.costs.into_iter().map(figures_alone).collect(),
                Vec::new(),
                None,
            ),
            false => (told.costs, told.moved, told.explanation),
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
struct Told {
    costs: Vec<Cost>,
    /// As [`CellComparison::cost_rates`].
    rates: Option<(f64, f64)>,
    moved: Vec<Moved>,
    explanation: Option<String>,
}

fn told(cell: &CellComparison, sampled: &Sampled, placebo: &[&[CostSample]]) -> Told {
    let levels = Levels::printing(cell.interval_level);
    let shifts = moved::shifts(cell, &sampled.samples, placebo);
    Told {
        costs: costs(&sampled.samples, levels),
        rates: sampled.rates,
        moved: moved::listed(&shifts),
        explanation: explain::explain(cell, sampled, &shifts, levels),
    }
}

fn costs(samples: &[CostSample], levels: Levels) -> Vec<Cost> {
    samples
        .iter()
        .filter_map(|sample| sample.cost(levels))
        .collect()
}
