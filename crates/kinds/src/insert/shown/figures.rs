//! What a report shows of the Insert Benchmark beside its verdicts.

use super::tables::{self, OfStep};
use super::{csv, json, words};
use crate::insert::{
    INSERT_METRICS, InsertReport, PassFigures, ServerFigures, StepColumn, StepFigures, is_published,
};
use deltabench_model::figures::{Block, Figures, Fold, PageSection, PassSeries, StepSeries};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::table::{Span, SpanForm, Table, Tone};
use deltabench_model::work::insert::InsertSecond;
use deltabench_report::resolved;

/// Figures of the metrics line that a terminal shows; the page has all.
const SHOWN: [&str; 10] = [
    "cpupq",
    "cspq",
    "rpq",
    "rkbpq",
    "wpi",
    "wkbpi",
    "dbgb1",
    "maxop",
    "p99",
    "delete_cpu",
];

/// The tables in every form, the files, and which cells are in no mean.
pub fn figures(plan: &Plan, report: &InsertReport) -> Figures {
    Figures {
        terminal: terminal(plan, report),
        markdown: markdown(plan, report),
        page: vec![PageSection {
            id: "insert",
            heading: "Insert Benchmark",
            name: Some("Insert Benchmark"),
            blocks: page(plan, report),
        }],
        series: series(report),
        json: vec![("insert", json::insert(plan, report))],
        formats: vec![("steps", csv::steps_csv(report))],
        left_out: left_out(report),
        ..Figures::default()
    }
}

fn titled(table: Table, title: &str, reading: String) -> Block {
    Block::Table(Table {
        title: title.to_owned(),
        reading,
        corner: String::new(),
        ..table
    })
}

fn terminal(plan: &Plan, report: &InsertReport) -> Vec<Block> {
    let head = format!("Insert Benchmark: {}", words::head(plan, report));
    let mut blocks = vec![Block::Text(head)];
    let mut add = |table: Table, title: &str, reading: String| {
        blocks.extend([Block::Text(String::new()), titled(table, title, reading)]);
    };
    let reading = format!(": {}; {}", words::THROUGHPUT, words::QUARTILES);
    add(tables::absolute(report), "Throughput", reading);
    if words::any_told(report) {
        let base = resolved(plan, plan.base());
        let reading = format!(", server / {base}; {}", words::RELATIVE);
        add(
            tables::relative(report, true),
            words::relative_title(report),
            reading,
        );
    }
    if has_targets(report) {
        let reading = format!(": {}", words::service_legend());
        add(
            tables::service(report, false),
            "Background inserts",
            reading,
        );
    }
    add(
        tables::metrics(report, &SHOWN),
        &metrics_title(),
        String::new(),
    );
    blocks.push(Block::Text(String::new()));
    blocks.extend(words::settled(report).map(Block::Text));
    blocks.push(Block::Notes(report.notes.clone()));
    blocks
}

fn has_targets(report: &InsertReport) -> bool {
    report.steps.iter().any(|step| step.target.is_some())
}

fn metrics_title() -> String {
    let known = SHOWN
        .iter()
        .filter_map(|key| INSERT_METRICS.iter().find(|metric| metric.key == *key));
    let texts: Vec<String> = known
        .map(|metric| match metric.unit {
            "" => metric.key.to_owned(),
            unit => format!("{} {}", metric.key, unit.replace("us", "µs")),
        })
        .collect();
    format!(
        "For each operation, and sizes ({}; q: a row inserted or indexed in l.*, else a query; i: a row \
         inserted; CPU of the server alone)",
        texts.join(", ")
    )
}

/// The summary, open; the metrics line, folded.
fn markdown(plan: &Plan, report: &InsertReport) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("Insert Benchmark".to_owned()),
        Block::Text(words::head(plan, report)),
    ];
    let reading = format!(": {}; {}", words::THROUGHPUT, words::QUARTILES);
    blocks.push(titled(tables::absolute(report), "Throughput", reading));
    let base = resolved(plan, plan.base());
    let reading = format!(", server / {base}: {}", words::RELATIVE);
    let table = tables::relative(report, false);
    blocks.push(titled(table, words::relative_title(report), reading));
    if has_targets(report) {
        let reading = format!(": {}", words::service_legend());
        let table = tables::service(report, true);
        blocks.push(titled(table, "Background inserts", reading));
    }
    blocks.extend(words::settled(report).map(Block::Text));
    blocks.push(Block::Notes(report.notes.clone()));
    let published = INSERT_METRICS.iter().filter(|metric| is_published(metric));
    let keys: Vec<&str> = published.map(|metric| metric.key).collect();
    let mut metrics = tables::metrics(report, &keys);
    metrics.look.folded = true;
    let title = "Metrics of each step, as published; CPU of the server alone";
    blocks.push(titled(metrics, title, String::new()));
    blocks
}

/// The published tables, and for each step its bars, its course in time, response times and metrics.
fn page(plan: &Plan, report: &InsertReport) -> Vec<Block> {
    let heading = |text: &str| Block::Heading(text.to_owned());
    let legend = |text: String| Block::Legend(vec![text.into()]);
    let base = resolved(plan, plan.base());
    let mut blocks = vec![
        legend(words::head(plan, report)),
        heading("Throughput"),
        Block::Table(tables::absolute(report)),
        legend(format!("{}; {}", words::THROUGHPUT, words::QUARTILES)),
        heading(&format!(
            "{}, server / {base}",
            words::relative_title(report)
        )),
        Block::Table(tables::relative(report, false)),
        Block::Legend(relative_legend()),
    ];
    if has_targets(report) {
        blocks.extend([
            heading("Background inserts"),
            Block::Table(tables::service(report, false)),
            legend(words::service_legend()),
        ]);
    }
    blocks.extend(words::settled(report).map(Block::Text));
    blocks.extend([
        Block::Notes(report.notes.clone()),
        heading("Step by step"),
        Block::PassChoice,
    ]);
    let steps = report.steps.iter().enumerate();
    blocks.extend(steps.filter_map(|(place, column)| step(report, place, column)));
    blocks
}

fn relative_legend() -> Vec<Span> {
    let coloured = |text: &str, tone| Span::set(text, SpanForm::Plain, Some(tone));
    vec![
        format!("{}. The verdict is over passes and among all steps; ", words::RELATIVE).into(),
        coloured("red", Tone::Red),
        " and ".into(),
        coloured("green", Tone::Green),
        " are the published bands. Without enough passes there is no figure to quote; the intervals are \
         below."
            .into(),
    ]
}

/// Everything of a step; nothing where it was not done.
fn step(report: &InsertReport, place: usize, column: &StepColumn) -> Option<Block> {
    let rows = report.servers.iter();
    let rows: Vec<OfStep<'_>> = rows
        .filter_map(|row| Some((row, row.steps.get(place)?)))
        .collect();
    let mut all = rows.iter();
    if !all.any(|(_, figures)| !figures.passes.is_empty()) {
        return None;
    }
    let mut blocks = vec![
        Block::Table(tables::bars(column, &rows)),
        Block::Series(place),
    ];
    let mut more = tables::responses(column, &rows);
    more.extend([true, false].map(|published| tables::metrics_of_step(&rows, published)));
    more.retain(|table| !table.columns.is_empty());
    blocks.extend(more.into_iter().map(Block::Table));
    Some(Block::Fold(Fold {
        title: column.name.clone(),
        subtitle: words::meaning(column),
        class: "charts step",
        open: place == 0,
        blocks,
    }))
}

fn series(report: &InsertReport) -> Vec<StepSeries> {
    let steps = report.steps.iter().enumerate().map(|(place, column)| {
        let servers = report.servers.iter().map(|row| {
            let passes = row.steps.get(place).map_or(&[][..], |step| &step.passes);
            (row.server, passes.iter().map(pass).collect())
        });
        StepSeries {
            name: column.name.clone(),
            servers: servers.collect(),
        }
    });
    steps.collect()
}

fn pass(pass: &PassFigures) -> PassSeries {
    let role = |of: fn(&InsertSecond) -> (u64, u64)| pass.seconds.iter().map(of).collect();
    PassSeries {
        pass: pass.pass,
        started_ns: pass.started_ns,
        duration_ns: pass.duration_ns,
        roles: [
            role(|second| (second.inserted, second.max_insert_us)),
            role(|second| (second.deleted, second.max_delete_us)),
            role(|second| (second.queries, second.max_query_us)),
        ],
        turns: pass.turns.clone(),
    }
}

/// Cells that are in no mean, since the server or the base has missed the service level of the step.
fn left_out(report: &InsertReport) -> Vec<(CellId, ServerId)> {
    let missed = |row: &ServerFigures, place: usize| {
        let service = row
            .steps
            .get(place)
            .and_then(|figures: &StepFigures| figures.service);
        service.is_some_and(|service| !service.met)
    };
    let mut out = Vec::new();
    for (place, step) in report.steps.iter().enumerate() {
        let mut bases = report.servers.iter().filter(|row| words::is_base(row));
        let base = bases.any(|row| missed(row, place));
        let of = report
            .servers
            .iter()
            .filter(|row| base || missed(row, place));
        out.extend(of.map(|row| (step.cell, row.server)));
    }
    out
}
