//! The rows of steps of the Insert Benchmark.

use super::rows::{ExportRow, row};
use super::schema;
use deltabench_kinds::insert::{INSERT_METRICS, InsertReport, PassFigures};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_store::export::{Datum, Export, ExportError};

/// One pass of a step, and where it belongs.
struct Place<'a> {
    run: &'a str,
    cell: CellId,
    server: ServerId,
    step: &'a str,
    unit: &'static str,
    target: Option<f64>,
    pass: &'a PassFigures,
}

/// Writes the rows of all steps; nothing for runs of anything else.
pub fn write(
    export: &mut Export,
    run: &str,
    report: Option<&InsertReport>,
) -> Result<(), ExportError> {
    let places: Vec<Place<'_>> = report.map(|report| places(run, report)).unwrap_or_default();
    export.rows(&schema::STEPS, places.iter().map(step_row))?;
    export.rows(&schema::STEP_METRICS, places.iter().flat_map(metric_rows))?;
    export.rows(&schema::STEP_SECONDS, places.iter().flat_map(second_rows))
}

fn places<'a>(run: &'a str, report: &'a InsertReport) -> Vec<Place<'a>> {
    let of = |row: &'a deltabench_kinds::insert::ServerFigures| {
        let steps = report.steps.iter().zip(&row.steps);
        steps.flat_map(move |(column, figures)| {
            figures.passes.iter().map(move |pass| Place {
                run,
                cell: column.cell,
                server: row.server,
                step: &column.name,
                unit: column.unit,
                target: column.target,
                pass,
            })
        })
    };
    report.servers.iter().flat_map(of).collect()
}

fn step_row(place: &Place<'_>) -> ExportRow {
    let pass = place.pass;
    row![
        place.run,
        place.cell,
        pass.pass,
        place.server,
        pass.position,
        place.step,
        pass.started_ns,
        pass.duration_ns,
        pass.throughput,
        place.unit,
        pass.background,
        place.target,
        pass.kept(place.target),
        pass.disturbed,
        pass.void.as_deref(),
    ]
}

fn metric_rows<'a>(place: &'a Place<'_>) -> impl Iterator<Item = ExportRow> + 'a {
    let all = INSERT_METRICS.iter().zip(&place.pass.metrics);
    all.filter_map(move |(metric, value)| {
        let (run, pass) = (place.run, place.pass.pass);
        let value = (*value)?;
        Some(row![
            run,
            place.cell,
            pass,
            place.server,
            metric.key,
            metric.unit,
            value
        ])
    })
}

fn second_rows<'a>(place: &'a Place<'_>) -> impl Iterator<Item = ExportRow> + 'a {
    let all = (0_u32..).zip(&place.pass.seconds);
    all.map(move |(second, one)| {
        row![
            place.run,
            place.cell,
            place.pass.pass,
            place.server,
            second,
            one.inserted,
            one.deleted,
            one.queries,
            one.max_insert_us,
            one.max_delete_us,
            one.max_query_us,
        ]
    })
}
