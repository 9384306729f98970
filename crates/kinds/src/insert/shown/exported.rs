//! The tables of steps in an export.

use crate::insert::{INSERT_METRICS, InsertReport, PassFigures, ServerFigures};
use crate::shown::Exported;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_store::export::{
    BLOCK, CELL, ExportRow, ExportTable, RUN, SERVER, UNIT, integer, real, text,
};
use deltabench_store::row;

const STEPS: ExportTable = ExportTable {
    name: "steps",
    meaning: "A row for each step of the Insert Benchmark on a server in a pass.",
    columns: &[
        RUN,
        CELL,
        BLOCK,
        SERVER,
        integer("position", "place of the server in the pass, from 0"),
        text("step", "published name: `l.i0`, `qr100`"),
        integer("started_ns", "start, nanoseconds since 1970"),
        integer("duration_ns", "first send to last answer"),
        real(
            "throughput",
            "rows inserted or indexed per second, or queries per second",
        ),
        text("unit", "`rows/s` or `queries/s`"),
        real(
            "background",
            "rows inserted per second during queries; null if there are none",
        ),
        real("background_target", "how many were requested"),
        integer(
            "sla_met",
            "1 if that is at least 95 % of it, else 0; null if there is no rate",
        ),
        integer(
            "disturbed",
            "1 if other load disturbed it (it still counts), else 0",
        ),
        text("void", "why it does not count; null for a good one"),
    ],
};

const STEP_METRICS: ExportTable = ExportTable {
    name: "step_metrics",
    meaning: "A row for each figure of the metrics line of a step on a server in a pass.",
    columns: &[
        RUN,
        CELL,
        BLOCK,
        SERVER,
        text(
            "metric",
            "published name where it has one: `cpupq`, `wkbpi`",
        ),
        UNIT,
        real("value", "the figure"),
    ],
};

const STEP_SECONDS: ExportTable = ExportTable {
    name: "step_seconds",
    meaning: "A row for each second of a step on a server in a pass, all clients together.",
    columns: &[
        RUN,
        CELL,
        BLOCK,
        SERVER,
        integer(
            "second",
            "from the start of the step, from 0; the last may be cut short",
        ),
        integer("inserted", "rows inserted"),
        integer("deleted", "rows deleted"),
        integer("queries", "queries"),
        integer(
            "max_insert_us",
            "longest response of an insert that ended in it; 0 if none did",
        ),
        integer("max_delete_us", "of a delete"),
        integer("max_query_us", "of a query"),
    ],
};

/// All of them.
pub(crate) const TABLES: [ExportTable; 3] = [STEPS, STEP_METRICS, STEP_SECONDS];

impl Exported for InsertReport {
    fn rows(&self, run: &str) -> Vec<(ExportTable, Vec<ExportRow>)> {
        let places = places(run, self);
        vec![
            (STEPS, places.iter().map(step_row).collect()),
            (STEP_METRICS, places.iter().flat_map(metric_rows).collect()),
            (STEP_SECONDS, places.iter().flat_map(second_rows).collect()),
        ]
    }
}

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

fn places<'a>(run: &'a str, report: &'a InsertReport) -> Vec<Place<'a>> {
    let of = |row: &'a ServerFigures| {
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
