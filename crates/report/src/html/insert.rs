//! The Insert Benchmark on the page: the published tables, and for each step its bars, its course in time,
//! its response times and its metrics.

mod data;

pub(super) use data::{InsertData, data};

use super::{class, percent, typeset};
use crate::context::{ReportContext, resolved};
use crate::insert::words::{self, Line};
use crate::words as house;
use deltabench_compare::insert::{
    BUCKETS, INSERT_METRICS, InsertReport, Quartile, ResponseTimes, ServerRow, ShareColour,
    StepColumn, StepFigures,
};
use deltabench_model::insert::InsertRole;
use deltabench_model::plan::Plan;
use maud::{Markup, html};

/// Style that only these pages need.
pub(super) const STYLE: &str = include_str!("insert.css");

/// Nothing for runs of anything else.
pub(super) fn section(plan: &Plan, context: &ReportContext) -> Markup {
    let Some(report) = &context.insert else {
        return html! {};
    };
    html! {
        section #insert {
            h2 { "Insert Benchmark" }
            p.legend { (typeset(&words::head(plan, report))) }
            h3 { "Throughput" }
            (absolute(report))
            p.legend { (words::THROUGHPUT) "; " (words::QUARTILES) }
            h3 { "Relative throughput, server / " (resolved(plan, plan.base())) }
            (relative(report))
            p.legend {
                (words::RELATIVE) ". The verdict is over passes and among all steps; "
                span.red { "red" } " and " span.green { "green" }
                " are the published bands. Without enough passes there is no figure to quote; the intervals "
                "are below."
            }
            @if report.steps.iter().any(|step| step.target.is_some()) {
                h3 { "Background inserts" }
                (service(report))
                p.legend { (words::service_legend()) }
            }
            @if let Some(text) = words::settled(report) { p { (typeset(&text)) } }
            @if !report.notes.is_empty() {
                h3 { "What to mind" }
                ul.findings { @for note in &report.notes { li { (typeset(note)) } } }
            }
            (steps(report))
        }
    }
}

fn head(first: &str, names: &[String]) -> Markup {
    html! {
        thead { tr { th scope="col" { (first) } @for name in names { th scope="col" { (name) } } } }
    }
}

fn names(report: &InsertReport) -> Vec<String> {
    report.steps.iter().map(|step| step.name.clone()).collect()
}

/// A table of servers and steps; `paint` gives the class of a place and what a pointer tells of it.
fn summary(
    report: &InsertReport,
    lines: &[Line],
    paint: impl Fn(&StepFigures) -> (&'static str, String),
) -> Markup {
    let row_of = |line: &Line| {
        let mut rows = report.servers.iter();
        rows.find(|row| Some(row.server) == line.server)
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="table of servers and steps" {
            table.steps {
                (head("server", &names(report)))
                tbody {
                    @for line in lines {
                        tr {
                            th scope="row" { (line.head) }
                            @for (place, text) in line.texts.iter().enumerate() {
                                @let figures = row_of(line).and_then(|row| row.steps.get(place));
                                @let (class, title) = figures.map(&paint).unwrap_or_default();
                                td class=(class) title=[(!title.is_empty()).then_some(title)] {
                                    (typeset(text))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn absolute(report: &InsertReport) -> Markup {
    summary(report, &words::absolute(report), |figures| {
        let class = match figures.quartile {
            Some(Quartile::Worst) => "red",
            Some(Quartile::Best) => "green",
            Some(Quartile::Missed) => "grey",
            Some(Quartile::Between) | None => "",
        };
        (class, interval(figures))
    })
}

/// The mean over passes with its interval, in words.
fn interval(figures: &StepFigures) -> String {
    let Some(spread) = figures.throughput else {
        return String::new();
    };
    let ends = spread.ci95.map_or_else(
        || "no interval".to_owned(),
        |(low, high)| format!("{} to {}", house::number(low), house::number(high)),
    );
    let passes = u64::from(spread.passes);
    format!("{} [{ends}], passes: {passes}", house::number(spread.mean))
}

fn relative(report: &InsertReport) -> Markup {
    summary(report, &words::relative(report, false), |figures| {
        let Some(relative) = &figures.relative else {
            return ("", String::new());
        };
        let class = match relative.colour {
            Some(ShareColour::Slower) => "red",
            Some(ShareColour::Faster) => "green",
            Some(ShareColour::Between) | None => "grey",
        };
        let ratio = relative.ratio.as_ref().filter(|_| relative.quotable);
        let ratio = ratio.map(|ratio| format!("{}, ", house::ratio_interval(ratio)));
        (
            class,
            format!("{}{}", ratio.unwrap_or_default(), relative.reason),
        )
    })
}

fn service(report: &InsertReport) -> Markup {
    let with_rate = |place: usize| {
        report
            .steps
            .get(place)
            .is_some_and(|step| step.target.is_some())
    };
    let mut shown = report.clone();
    shown.steps.retain(|step| step.target.is_some());
    for row in &mut shown.servers {
        let mut place = 0;
        row.steps.retain(|_| {
            place += 1;
            with_rate(place - 1)
        });
    }
    summary(&shown, &words::service(&shown), |figures| {
        let Some(service) = figures.service else {
            return ("", String::new());
        };
        let class = if service.met { "" } else { "red" };
        (
            class,
            format!("{} of the target", house::share(service.share())),
        )
    })
}

fn steps(report: &InsertReport) -> Markup {
    html! {
        h3 { "Step by step" }
        div.controls.scripted #insert-controls { label { span { "pass" } select #insert-pass {} } }
        @for (place, column) in report.steps.iter().enumerate() {
            @let rows: Vec<(&ServerRow, &StepFigures)> = of_step(report, place);
            @if rows.iter().any(|(_, figures)| !figures.passes.is_empty()) {
                details.charts.step open[place == 0] {
                    summary { (column.name) " " small { (meaning(column)) } }
                    (bars(column, &rows))
                    div.columns.scripted data-step=(place) {}
                    (responses(column, &rows))
                    (metrics(&rows, true))
                    (metrics(&rows, false))
                }
            }
        }
    }
}

fn of_step(report: &InsertReport, place: usize) -> Vec<(&ServerRow, &StepFigures)> {
    let rows = report.servers.iter();
    rows.filter_map(|row| Some((row, row.steps.get(place)?)))
        .collect()
}

/// What a step does, in a few words.
fn meaning(column: &StepColumn) -> String {
    use deltabench_model::insert::InsertStep;
    match column.step {
        InsertStep::LoadRows => "inserts in the order of the key, no secondary indexes".to_owned(),
        InsertStep::Index => "three secondary indexes are made".to_owned(),
        InsertStep::WriteMany => "inserts and deletes of 50 rows".to_owned(),
        InsertStep::WriteFew => "inserts and deletes of 5 rows".to_owned(),
        InsertStep::Range(rate) => format!(
            "range queries beside {rate} inserted and deleted rows per second of each client"
        ),
        InsertStep::Point(rate) => format!(
            "point queries beside {rate} inserted and deleted rows per second of each client"
        ),
    }
}

/// Mean throughput with its interval, a bar for each server, and the verdict.
fn bars(column: &StepColumn, rows: &[(&ServerRow, &StepFigures)]) -> Markup {
    let ends = rows.iter().filter_map(|(_, figures)| {
        let spread = figures.throughput?;
        Some(
            spread
                .ci95
                .map_or(spread.mean, |(_, high)| high)
                .max(spread.mean),
        )
    });
    let most = ends.fold(0.0, f64::max);
    // An interval over two passes may be wider than the values: it is cut, and the text has it.
    let means = rows
        .iter()
        .filter_map(|(_, figures)| Some(figures.throughput?.mean));
    let most = most.min(1.3 * means.fold(0.0, f64::max));
    html! {
        table.bars {
            caption { "Throughput, " (column.unit) ", mean over passes with 95 % interval" }
            tbody {
                @for (row, figures) in rows {
                    tr {
                        th scope="row" { (row.name) }
                        td.bar { @if most > 0.0 { (bar(figures, most)) } }
                        td { (typeset(&interval(figures))) }
                        td { (judged(figures)) }
                    }
                }
            }
        }
    }
}

fn bar(figures: &StepFigures, most: f64) -> Markup {
    let Some(spread) = figures.throughput else {
        return html! {};
    };
    let at = |value: f64| percent((value / most).clamp(0.0, 1.0));
    html! {
        svg width="100%" height="18" role="img" aria-label=(interval(figures)) {
            rect.mean x="0" y="3" height="12" width=(at(spread.mean)) {}
            @if let Some((low, high)) = spread.ci95 {
                line.whisker x1=(at(low)) x2=(at(high)) y1="9" y2="9" {}
                line.whisker x1=(at(low)) x2=(at(low)) y1="5" y2="13" {}
                line.whisker x1=(at(high)) x2=(at(high)) y1="5" y2="13" {}
            }
        }
    }
}

fn judged(figures: &StepFigures) -> Markup {
    let Some(relative) = &figures.relative else {
        return html! {};
    };
    let ratio = relative.ratio.as_ref().map(house::ratio_interval);
    html! {
        b class=(class(relative.verdict)) {
            span aria-hidden="true" { (house::sign(relative.verdict)) " " }
            (house::verdict(relative.verdict))
        }
        @if let Some(ratio) = ratio.filter(|_| relative.quotable) { " " (ratio) }
        " " small { (typeset(&relative.reason)) }
    }
}

/// Response times of each role; where there are queries they come first, as published.
fn responses(column: &StepColumn, rows: &[(&ServerRow, &StepFigures)]) -> Markup {
    let order = if column.step.queries() {
        [InsertRole::Query, InsertRole::Insert, InsertRole::Delete]
    } else {
        [InsertRole::Insert, InsertRole::Delete, InsertRole::Query]
    };
    html! { @for role in order { (response(column, role, rows)) } }
}

fn response(column: &StepColumn, role: InsertRole, rows: &[(&ServerRow, &StepFigures)]) -> Markup {
    let of = |figures: &StepFigures| -> Option<ResponseTimes> {
        figures
            .response
            .iter()
            .find(|times| times.role == role)
            .cloned()
    };
    let times: Vec<(&ServerRow, ResponseTimes)> = rows
        .iter()
        .filter_map(|(row, figures)| Some((*row, of(figures)?)))
        .collect();
    let heads: Vec<String> = BUCKETS
        .iter()
        .map(|(name, _)| name.replace("us", " µs").replace("ms", " ms"))
        .chain(["slower", "p50", "p95", "p99", "p99.9", "max"].map(str::to_owned))
        .collect();
    let since = match column.target {
        Some(_) if role != InsertRole::Query => ", from the time it was to be sent",
        _ => "",
    };
    html! {
        @if !times.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="response times" {
                table.steps.response {
                    caption { "Response times of each " (role.word()) ", % up to" (since) }
                    (head("server", &heads))
                    tbody {
                        @for (row, times) in &times {
                            tr {
                                th scope="row" { (row.name) }
                                @for share in &times.percent { td { (words::percent(*share)) } }
                                @for (nth, text) in words::exact(times).iter().enumerate() {
                                    @let last = nth == times.percentiles_us.len();
                                    td class=[last.then(|| painted(times))] { (text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn painted(times: &ResponseTimes) -> &'static str {
    match times.quartile {
        Some(Quartile::Worst) => "red",
        Some(Quartile::Best) => "green",
        _ => "",
    }
}

/// The metrics line of each server: published figures, or those that are ours.
fn metrics(rows: &[(&ServerRow, &StepFigures)], published: bool) -> Markup {
    let known = |key: &str| {
        rows.iter()
            .any(|(_, figures)| words::metric(figures, key) != words::NOTHING)
    };
    let shown: Vec<_> = INSERT_METRICS
        .iter()
        .filter(|metric| metric.published == published && known(metric.key))
        .collect();
    html! {
        @if !shown.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="metrics" {
                table.steps.response {
                    caption {
                        @if published { "Metrics, as published" } @else { "Sizes, and known pitfalls" }
                    }
                    thead { tr {
                        th scope="col" { "server" }
                        @for metric in &shown {
                            th scope="col" title=(metric.meaning) {
                                (metric.key.replace('_', " "))
                                @let unit = metric.unit.replace("us", "µs");
                                @if !unit.is_empty() { br; small { (unit) } }
                            }
                        }
                    } }
                    tbody {
                        @for (row, figures) in rows {
                            tr {
                                th scope="row" { (row.name) }
                                @for metric in &shown { td { (words::metric(figures, metric.key)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
