//! The tables of the Insert Benchmark, in every form: absolute throughput, relative throughput, background
//! inserts, response times and the metrics line, as published reports lay them out, with the verdicts.

mod csv;
pub mod format;
mod json;
mod markdown;
mod terminal;
pub(crate) mod words;

pub use csv::{check_steps, steps_csv};
pub(crate) use json::insert as json_of;
pub(crate) use markdown::sections;
pub(crate) use terminal::{grid, lines};

use crate::context::ReportContext;
use deltabench_compare::comparison::{CellComparison, Comparison};
use deltabench_compare::insert::ServerRow;
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::Plan;
use deltabench_model::units::count;

/// What stands instead of relative throughput while there are too few passes to tell it; files have the
/// figures, with their intervals, all the same.
pub(crate) fn withheld(plan: &Plan, blocks: u32) -> Option<String> {
    let needed = count(MIN_BLOCKS);
    let few = plan.work.has_passes() && (1..needed).contains(&u64::from(blocks));
    few.then(|| format!("{} ({blocks} of {needed} passes)", words::CANNOT_TELL))
}

/// The same for the placebo over all cells.
pub(crate) fn placebo_withheld(plan: &Plan, comparison: &Comparison) -> Option<String> {
    let blocks = comparison.placebo_cells.iter().map(|cell| cell.blocks);
    withheld(plan, blocks.max()?)
}

/// Whether a cell is in no mean, since its server or the base has missed the service level of the step.
pub(crate) fn is_left_out(context: &ReportContext, cell: &CellComparison) -> bool {
    let Some(report) = &context.insert else {
        return false;
    };
    let place = report.steps.iter().position(|step| step.cell == cell.cell);
    let missed = |row: &ServerRow| {
        let figures = place.and_then(|place| row.steps.get(place));
        let service = figures.and_then(|figures| figures.service);
        service.is_some_and(|service| !service.met)
    };
    let mut sides = report
        .servers
        .iter()
        .filter(|row| words::is_base(row) || row.server == cell.candidate);
    sides.any(missed)
}
