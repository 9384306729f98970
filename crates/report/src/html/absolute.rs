//! What each server did in absolute numbers over time, for each cell.

use super::data::number::Number;
use crate::context::{ReportContext, resolved};
use crate::words;
use deltabench_compare::absolute::{CellResult, Progress, progress};
use deltabench_model::plan::Plan;
use deltabench_model::units::to_f64;
use maud::{Markup, html};
use serde_json::{Value, json};

/// Points of a course, and those of all courses of a page.
const POINTS: f64 = 60.0;

/// Where the script of the page draws them.
pub(super) fn section(plan: &Plan, context: &ReportContext) -> Markup {
    html! {
        @if context.results.iter().any(|result| result.series.len() > 1) {
            section.scripted #course {
                h2 { "Over time" }
                p.legend {
                    "Throughput and mean latency for each interval of measured time, block after block. The \
                     chart leaves out what a " (words::server(plan)) " did while another had its turn."
                }
                div.controls {
                    label { span { "cell" } select #course-of {} }
                    label { span { "figure" } select #course-figure {} }
                }
                figure.plot {
                    div.chart #course-chart style="height:320px" {}
                    figcaption.legend {
                        span.note {} " " button type="button" data-save="course-chart" { "save as image" }
                    }
                }
            }
        }
    }
}

/// The course of each cell as the script has it.
pub(super) fn data(plan: &Plan, context: &ReportContext) -> Value {
    let by_cell = context.results.chunk_by(|one, two| one.cell == two.cell);
    let courses = by_cell.filter_map(|results| {
        let cell = plan.cell(results.first()?.cell)?;
        let clients = words::workers(plan, cell.clients);
        let rate = cell
            .rate
            .map_or(String::new(), |rate| format!(", {rate} ops/s"));
        let servers = results.iter().map(|result| {
            // The placebo runs what the base runs.
            let name = match Some(result.server) == plan.placebo() {
                true => "placebo".to_owned(),
                false => resolved(plan, result.server),
            };
            json!({"name": name, "points": points(result)})
        });
        let name = format!("{}, {clients}{rate}", cell.workload);
        Some(json!({"name": name, "servers": servers.collect::<Value>()}))
    });
    courses.collect()
}

/// Seconds at the end, operations per second, mean latency in microseconds.
fn points(result: &CellResult) -> Vec<(Option<Number>, Option<Number>, Option<Number>)> {
    let every = result.total.seconds / POINTS;
    let number = |value: f64| Number::new(value, 4);
    let point = |done: Progress| {
        let rate = to_f64(done.operations) / done.seconds;
        (
            number(done.at_seconds),
            number(rate),
            done.average_us.and_then(number),
        )
    };
    progress(&result.series, every)
        .into_iter()
        .map(point)
        .collect()
}
