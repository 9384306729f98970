//! Grids of absolute figures over numbers of clients: tables that need no script, and what it draws from.

use super::data::number::Number;
use super::typeset;
use crate::grids::{LEGEND, Value, page_table, segment_lines};
use crate::table::page::table;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Absolute, Grid, GridPoint};
use maud::{Markup, html};
use serde_json::{Value as Json, json};

/// Grids that are open at first.
const OPEN: usize = 8;

/// The section of all grids; nothing without one.
pub(super) fn section(grids: &[Grid]) -> Markup {
    html! {
        @if !grids.is_empty() {
            section #grids {
                @let worker = grids.first().map_or("client", |grid| grid.worker);
                h2 { "By " (worker) "s" }
                p.legend { (typeset(LEGEND)) }
                @for (place, grid) in grids.iter().enumerate() { (article(place, grid)) }
            }
        }
    }
}

fn article(place: usize, grid: &Grid) -> Markup {
    let id = format!("grid-chart-{}", place + 1);
    html! {
        article id={ "grid-" (place + 1) } {
            details open[place < OPEN] {
                summary { h3 { (grid.title) } }
                ul.segments {
                    @for text in segment_lines(grid) { li { (typeset(&text)) } }
                }
                div.scripted {
                    div.controls { label { span { "figure" } select data-grid-figure=(place) {} } }
                    figure.plot {
                        div.chart id=(id) data-grid=(place) style="height:360px" {}
                        figcaption.legend {
                            span.note {} " " button type="button" data-save=(id) { "save as image" }
                        }
                    }
                }
                (table(&page_table(grid, Value::Throughput)))
                @for value in Value::ALL.into_iter().skip(1).filter(|value| value.is_in(grid)) {
                    details.costs-of { summary { (value.title()) } (table(&page_table(grid, value))) }
                }
            }
        }
    }
}

/// Value with the ends of its interval.
type Ends = (Option<Number>, Option<Number>, Option<Number>);

/// Grids as the script has them.
pub(super) fn data(grids: &[Grid]) -> Json {
    let all = grids.iter().map(|grid| {
        let columns = grid.columns.iter().map(|column| {
            let points: Vec<Option<Json>> = column
                .points
                .iter()
                .map(|one| one.as_ref().map(point))
                .collect();
            json!({"name": column.name, "points": points})
        });
        json!({
            "title": grid.title,
            "worker": grid.worker,
            "clients": grid.clients,
            "apart": grid.apart,
            "columns": columns.collect::<Json>(),
        })
    });
    all.collect()
}

/// Values by [`Value::ALL`], what throughput is relative to the first column, verdict.
fn point(point: &GridPoint) -> Json {
    let values = Value::ALL.map(|value| value.of(point).map(|absolute| ends(&absolute)));
    let relative = point.relative.as_ref();
    let relative = relative.and_then(super::data::number::interval);
    json!([values, relative, point.verdict.map(Verdict::word)])
}

fn ends(absolute: &Absolute) -> Ends {
    let number = |value: f64| Number::new(value, super::data::number::VALUE_DIGITS);
    (
        number(absolute.estimate),
        absolute.ci95.and_then(|(low, _)| number(low)),
        absolute.ci95.and_then(|(_, high)| number(high)),
    )
}
