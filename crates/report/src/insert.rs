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
pub(crate) use terminal::lines;

use crate::context::ReportContext;
use deltabench_compare::comparison::CellComparison;
use deltabench_compare::insert::ServerRow;

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
