//! Every pass of every step as a table for spreadsheets.

use crate::insert::{INSERT_METRICS, InsertReport, PassFigures, ServerFigures, StepColumn};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::table::{Cell, Column, Line, Table};
use deltabench_model::units::seconds;
use deltabench_report::table::comma_separated;
use deltabench_report::table::{number, optional};
use deltabench_report::words;

/// Whether a plan has steps of the Insert Benchmark.
///
/// Errors: for a run of anything else.
pub(super) fn check_steps(plan: &Plan) -> Result<(), Problem> {
    if plan.work.has_passes() {
        return Ok(());
    }
    Err(Problem::new("the run has no steps of the Insert Benchmark")
        .detail("this form has a line for each server, step and pass of it")
        .hint("use --format csv for a line for each cell and metric"))
}

/// Comma-separated values (RFC 4180, line breaks as LF): a header, then a line for each server, step and pass
/// of the Insert Benchmark, void ones too.
///
/// Units: in the names of the columns where they are not those of
///        [`crate::insert::INSERT_METRICS`]. What is not known is an empty field.
pub fn steps_csv(report: &InsertReport) -> String {
    let metrics = INSERT_METRICS.iter().map(|metric| metric.key);
    let mut lines = Vec::new();
    for row in &report.servers {
        for (column, figures) in report.steps.iter().zip(&row.steps) {
            let passes = figures.passes.iter();
            lines.extend(passes.map(|pass| Line::row(row.name.as_str(), cells(row, column, pass))));
        }
    }
    comma_separated(&Table {
        corner: "server".to_owned(),
        columns: FIRST.into_iter().chain(metrics).map(Column::of).collect(),
        lines,
        ..Table::default()
    })
}

/// The columns between the server and the metrics.
const FIRST: [&str; 13] = [
    "role",
    "step",
    "pass",
    "position",
    "started_unix_ms",
    "seconds",
    "throughput",
    "throughput_unit",
    "background_rows_per_s",
    "background_target",
    "sla_met",
    "disturbed",
    "void",
];

fn cells(row: &ServerFigures, column: &StepColumn, pass: &PassFigures) -> Vec<Cell> {
    let met = pass.kept(column.target);
    let mut fields = vec![
        words::role(row.role).to_owned(),
        column.name.clone(),
        (pass.pass + 1).to_string(),
        (pass.position + 1).to_string(),
        (pass.started_ns / 1_000_000).to_string(),
        number(seconds(pass.duration_ns)),
        optional(pass.throughput),
        column.unit.to_owned(),
        optional(pass.background),
        optional(column.target),
        met.map_or_else(String::new, |met| met.to_string()),
        pass.disturbed.to_string(),
        pass.void.clone().unwrap_or_default(),
    ];
    fields.extend(pass.metrics.iter().map(|value| optional(*value)));
    fields.into_iter().map(Cell::from).collect()
}
