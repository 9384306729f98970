//! The tables on a terminal.

use super::words::{self, Line};
use crate::context::{ReportContext, resolved};
use crate::lines::{left, wrapped};
use deltabench_compare::insert::{INSERT_METRICS, InsertReport};
use deltabench_model::plan::Plan;

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
/// Blanks between columns.
const GAP: usize = 2;

/// The summary, the metrics and what to mind; nothing for runs of anything else.
pub(crate) fn lines(plan: &Plan, context: &ReportContext, width: usize) -> Vec<String> {
    let Some(report) = &context.insert else {
        return Vec::new();
    };
    let mut lines = wrapped(
        &format!("Insert Benchmark: {}", words::head(plan, report)),
        width,
        0,
        2,
    );
    let names: Vec<String> = report.steps.iter().map(|step| step.name.clone()).collect();
    let mut table = |title: &str, heads: &[String], rows: &[Line]| {
        lines.push(String::new());
        lines.extend(wrapped(title, width, 0, 2));
        lines.extend(grid(heads, rows, width));
    };
    table(
        &format!("Throughput: {}; {}", words::THROUGHPUT, words::QUARTILES),
        &names,
        &words::absolute(report),
    );
    if words::any_told(report) {
        let title = format!(
            "Relative throughput, server / {}; {}",
            resolved(plan, plan.base()),
            words::RELATIVE
        );
        table(&title, &names, &words::relative(report, true));
    }
    if report.steps.iter().any(|step| step.target.is_some()) {
        let queries = |line: Line| Line {
            texts: of_queries(report, line.texts),
            ..line
        };
        let rows: Vec<Line> = words::service(report).into_iter().map(queries).collect();
        let title = format!("Background inserts: {}", words::service_legend());
        table(&title, &of_queries(report, names.clone()), &rows);
    }
    let heads = SHOWN.map(str::to_owned);
    table(&metrics_title(), &heads, &metrics(report));
    lines.push(String::new());
    let settled = words::settled(report).into_iter();
    lines.extend(settled.flat_map(|text| wrapped(&text, width, 0, 2)));
    let notes = report.notes.iter();
    lines.extend(notes.flat_map(|note| wrapped(&format!("mind: {note}"), width, 0, 2)));
    lines
}

/// The texts of the steps that have queries.
fn of_queries(report: &InsertReport, texts: Vec<String>) -> Vec<String> {
    let steps = report.steps.iter().zip(texts);
    steps
        .filter(|(step, _)| step.target.is_some())
        .map(|(_, text)| text)
        .collect()
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

fn metrics(report: &InsertReport) -> Vec<Line> {
    let mut rows = Vec::new();
    for (place, step) in report.steps.iter().enumerate() {
        for row in &report.servers {
            let figures = row
                .steps
                .get(place)
                .filter(|figures| figures.throughput.is_some());
            rows.extend(figures.map(|figures| {
                Line {
                    head: format!("{} {}", step.name, row.name),
                    server: Some(row.server),
                    texts: SHOWN
                        .iter()
                        .map(|key| words::metric(figures, key))
                        .collect(),
                }
            }));
        }
    }
    rows
}

/// A table whose columns that do not fit beside each other stand below.
pub(crate) fn grid(heads: &[String], rows: &[Line], width: usize) -> Vec<String> {
    let length = |text: &String| text.chars().count();
    let name = rows.iter().map(|row| length(&row.head)).max().unwrap_or(0);
    let columns: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(place, head)| {
            let texts = rows.iter().filter_map(|row| row.texts.get(place));
            texts.chain([head]).map(length).max().unwrap_or(0)
        })
        .collect();
    let mut lines = Vec::new();
    let mut from = 0;
    while from < columns.len() {
        let mut used = GAP + name;
        let fitting = columns.iter().skip(from).take_while(|column| {
            used += GAP + **column;
            used <= width
        });
        let to = from + fitting.count().max(1);
        let line = |head: &str, texts: &[String]| {
            let mut line = format!("  {}", left(head, name));
            for (text, column) in texts.iter().zip(&columns).skip(from).take(to - from) {
                line.push_str(&format!("{}{text:>column$}", " ".repeat(GAP)));
            }
            line
        };
        lines.push(line("", heads));
        lines.extend(rows.iter().map(|row| line(&row.head, &row.texts)));
        from = to;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_stand_below() {
        let heads = ["one", "two", "three"].map(str::to_owned);
        let rows = [Line {
            head: "name".to_owned(),
            server: None,
            texts: ["1", "2", "3"].map(str::to_owned).to_vec(),
        }];
        let lines = grid(&heads, &rows, 16);
        assert_eq!(
            lines,
            [
                "        one  two",
                "  name    1    2",
                "        three",
                "  name      3"
            ]
        );
        assert_eq!(grid(&heads, &rows, 80).len(), 2);
        assert_eq!(grid(&heads, &rows, 3).len(), 6);
    }
}
