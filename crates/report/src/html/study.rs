//! The page of a study: what must be known first, then every table as a map of colours with its charts.
//!
//! Tables, spreads, notes and runs are made here and need no script; nor does the switch between verdicts and
//! published bands. The script filters, tells exact values and draws.

mod data;
mod heat;
mod runs;

use super::grids;
use super::{Document, Script, class, document, typeset};
use crate::study::context::StudyContext;
use crate::study::lead::{Counts, counts, extremes, sentence};
use crate::study::words as study_words;
use crate::words;
use deltabench_compare::comparison::Metric;
use deltabench_compare::study::{Axis, Study, StudyTable};
use deltabench_compare::thresholds::{BAND_HIGH, BAND_LOW};
use deltabench_model::plan::Group;
use deltabench_model::units::count;
use maud::{Markup, html};

const STYLE: &str = include_str!("study.css");
/// Tables of throughput that are open at first; of many more nobody reads all.
const OPEN: usize = 8;

/// The report of a study as one self-contained HTML file.
pub(crate) fn study(study: &Study, context: &StudyContext) -> String {
    document(&Document {
        title: &study.name,
        style: STYLE,
        body: sections(study, context),
        script: Some(("study", &data::text(study), Script::Within)),
    })
}

fn sections(study: &Study, context: &StudyContext) -> Markup {
    let counts = counts(study);
    html! {
        h1 { (typeset(&sentence(study))) }
        (byline(study, context))
        (chips(counts))
        @let extremes = extremes(study);
        @if !extremes.is_empty() {
            ul.findings.extremes { @for text in &extremes { li { (typeset(text)) } } }
        }
        (runs::withdrawn(context))
        @if !study.notes.is_empty() {
            section #first {
                h2 { "Before comparing" }
                ul.findings { @for note in &study.notes { li { (typeset(note)) } } }
            }
        }
        @if study.tables.is_empty() {
            p { "There is no table yet, because no results can be compared." }
        } @else {
            (contents(study))
            (controls(study))
            (legend(study))
            (tables(study))
        }
        (grids::section(&study.grids))
        (runs::section(context))
    }
}

fn byline(study: &Study, context: &StudyContext) -> Markup {
    let tables = words::plural(count(study.tables.len()), "table");
    let runs = words::plural(count(context.runs.len()), "run");
    html! {
        @if let Some(about) = &context.about { p { (about) } }
        p.muted {
            @if !context.execution.is_empty() { "execution " (context.execution) ", " }
            @if let Some(source) = &context.source { "after " (source) ", " }
            @if let Some(scale) = &context.scale { "at scale " (scale) ", " }
            (tables) " from " (runs) ", deltabench " (context.deltabench_version)
        }
    }
}

fn chips(counts: Counts) -> Markup {
    html! {
        @if counts.total() > 0 {
            ul.chips {
                @for (verdict, times) in counts.list() {
                    li class=(class(verdict)) {
                        span aria-hidden="true" { (words::sign(verdict)) } " "
                        (times) " " (words::verdict(verdict))
                    }
                }
            }
        }
    }
}

/// Where each table is.
fn contents(study: &Study) -> Markup {
    html! {
        nav.contents aria-label="tables" {
            @for axis in AXES {
                @let of: Vec<(usize, &StudyTable)> = of_axis(study, axis).collect();
                @if !of.is_empty() {
                    p { b { (heading(axis, study.worker())) } }
                    ul { @for (place, table) in of {
                        li { a href={ "#" (anchor(place)) } { (table.title) } }
                    } }
                }
            }
        }
    }
}

const AXES: [Axis; 4] = [Axis::Servers, Axis::Clients, Axis::Part, Axis::Host];

fn of_axis(study: &Study, axis: Axis) -> impl Iterator<Item = (usize, &StudyTable)> {
    let all = study.tables.iter().enumerate();
    all.filter(move |(_, table)| table.axis == axis)
}

fn heading(axis: Axis, worker: &str) -> &'static str {
    match axis {
        Axis::Servers if worker == "thread" => "Targets side by side",
        Axis::Servers => "Servers side by side",
        Axis::Clients if worker == "thread" => "Over threads",
        Axis::Clients => "Over clients",
        Axis::Part => "Between runs: sizes, memory, storage",
        Axis::Host => "Between machines",
    }
}

fn anchor(place: usize) -> String {
    format!("table-{}", place + 1)
}

/// Filters for all tables, and what colours say.
fn controls(study: &Study) -> Markup {
    let has = |group: &Group| {
        let mut rows = study.tables.iter().flat_map(|table| &table.rows);
        rows.any(|row| row.group == *group)
    };
    let groups: Vec<Group> = words::GROUPS.into_iter().filter(has).collect();
    html! {
        form.controls #filters role="search" aria-label="what the tables show" {
            label.scripted {
                span { "find" }
                input #find type="search" placeholder="workload" autocomplete="off";
            }
            @if groups.len() > 1 {
                label.scripted { span { "group" } select #group {
                    option value="" { "all" }
                    @for group in groups {
                        option value=(group.word()) {
                            (study_words::group_heading(study.worker(), Some(group)))
                        }
                    }
                } }
            }
            fieldset.switch {
                legend { "colours are" }
                label { input #by-verdict type="radio" name="colours" checked; "verdicts" }
                label {
                    input #by-bands type="radio" name="colours";
                    "published bands (≤ " (BAND_LOW) ", ≥ " (BAND_HIGH) ")"
                }
            }
            output.scripted #shown aria-live="polite" {}
        }
    }
}

fn legend(study: &Study) -> Markup {
    html! {
        p.legend {
            @for text in study_words::legend(study) { span { (typeset(&text)) } " " }
            span.scripted { "to see exact values, point at a figure or use the arrow keys in a table" }
        }
    }
}

fn tables(study: &Study) -> Markup {
    let throughput = |table: &&StudyTable| table.metric == Metric::Throughput;
    html! {
        @for axis in AXES {
            @if of_axis(study, axis).next().is_some() {
                section id=(study_words::axis(axis)) {
                    h2 { (heading(axis, study.worker())) }
                    @if axis == Axis::Clients { (over_clients()) }
                    @for (place, table) in of_axis(study, axis) {
                        @let before = study.tables.iter().take(place).filter(throughput).count();
                        (table_section(study, place, table, throughput(&table) && before < OPEN))
                    }
                }
            }
        }
    }
}

fn table_section(study: &Study, place: usize, table: &StudyTable, open: bool) -> Markup {
    let bars = table.axis != Axis::Clients;
    html! {
        article id=(anchor(place)) data-table=(place) {
            details open[open] {
                summary { h3 { (table.title) } " " (column_chips(table)) }
                (heat::table(study, table))
                (heat::spreads(study, table))
                @if !table.notes.is_empty() {
                    ul.findings { @for note in &table.notes { li { (typeset(note)) } } }
                }
                @if bars {
                    details.scripted.charts open[place == 0] {
                        summary { "Charts" }
                        p.legend { span.bars-note {} }
                        div.columns data-bars=(place) {}
                    }
                }
                @if study_words::Beside::PerCost.is_in(table) { (per_cost(place)) }
            }
        }
    }
}

/// What a table says at a glance, while it is closed.
fn column_chips(table: &StudyTable) -> Markup {
    let mut counts = Counts::default();
    for column in (0..table.columns.len()).filter(|column| *column != table.base) {
        counts.merge(crate::study::lead::column_counts(table, column));
    }
    html! {
        small {
            @for (verdict, times) in counts.list().into_iter().filter(|(verdict, _)| verdict.is_change()) {
                b class=(class(verdict)) { (words::sign(verdict)) " " (times) } " "
            }
        }
    }
}

fn over_clients() -> Markup {
    html! {
        div.scripted #over-clients {
            div.controls {
                label { span { "lines are" } select #lines-are {} }
                label { span { "of" } select #lines-of {} }
                label { span { "figure" } select #lines-figure {} }
            }
            figure.plot {
                div.chart #clients-chart style="height:420px" {}
                figcaption.legend {
                    span.note {} " " button type="button" data-save="clients-chart" { "save as image" }
                }
            }
        }
    }
}

fn per_cost(place: usize) -> Markup {
    let id = format!("cost-{}", place + 1);
    html! {
        div.scripted data-cost=(place) {
            p.metric { "Operations per second for each unit of monthly cost" }
            div.controls { label { span { "workload" } select {} } }
            figure.plot {
                div.chart id=(id) style="height:320px" {}
                figcaption.legend {
                    span.note {} " " button type="button" data-save=(id) { "save as image" }
                }
            }
        }
    }
}
