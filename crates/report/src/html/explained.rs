//! Where instructions went: a panel for each explained cell, and what the script draws its flame graph from.

use super::typeset;
use crate::context::{ReportContext, resolved};
use crate::explained;
use crate::table::page::table;
use deltabench_model::explanation::{ExplainedCell, Known};
use deltabench_model::plan::Plan;
use maud::{Markup, html};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the panel of a cell is in the page.
pub(super) fn anchor(cell: &ExplainedCell) -> String {
    format!("explained-{}-{}", cell.cell, cell.candidate)
}

/// The section of all explained cells; nothing without one.
pub(super) fn section(plan: &Plan, context: &ReportContext) -> Markup {
    html! {
        @if !context.explained.is_empty() {
            section #explained {
                h2 { "Where the instructions went" }
                p.legend {
                    "These are counted instructions of the server's own code, not times. No instruction is "
                    "in two rows, except that a row \"of it\" is a part of the row above."
                }
                @for (place, cell) in context.explained.iter().enumerate() { (panel(place, cell, plan)) }
            }
        }
    }
}

fn panel(place: usize, cell: &ExplainedCell, plan: &Plan) -> Markup {
    let title = explained::title(cell, plan);
    html! {
        article id=(anchor(cell)) {
            details open {
                summary {
                    h3 { (title) } " "
                    span.change { (typeset(&explained::sides(&cell.explanation))) }
                }
                (table(&explained::table(cell)))
                p.muted { (typeset(&explained::foot(&cell.explanation))) }
                @for note in &cell.notes { p.muted { (typeset(note)) } }
                (graph(place, &title))
            }
        }
    }
}

/// Where the script draws, with its switches.
fn graph(place: usize, title: &str) -> Markup {
    let id = format!("flame-{}", place + 1);
    html! {
        div.scripted.flame data-flame=(place) {
            div.controls {
                label {
                    span { "widths" }
                    select data-widths {
                        option value="candidate" { "of the candidate" }
                        option value="base" { "of the base" }
                        option value="difference" { "only what differs" }
                    }
                }
                label { span { "find" } input type="search" data-find placeholder="function"; }
                button type="button" data-whole { "whole graph" }
            }
            figure.plot {
                div.chart id=(id) tabindex="0" data-title={ "Where the instructions went: " (title) }
                    style="height:420px" {}
                p.legend.said role="status" {}
                figcaption.legend {
                    span.note {}
                    button type="button" data-file="folded" { "folded stacks" }
                    button type="button" data-file="base" { "callgrind, base" }
                    button type="button" data-file="candidate" { "callgrind, candidate" }
                    button type="button" data-save=(id) { "save as image" }
                }
            }
        }
    }
}

/// Flame graphs as the script has them.
pub(super) fn data(plan: &Plan, cells: &[ExplainedCell]) -> Value {
    cells.iter().map(|cell| flame(plan, cell)).collect()
}

/// Frames are parent, name, own instructions of base and candidate, calls of both, on which sides it is
/// known, and what it was called before.
fn flame(plan: &Plan, cell: &ExplainedCell) -> Value {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut frames: Vec<Value> = Vec::with_capacity(cell.explanation.frames.len());
    for frame in &cell.explanation.frames {
        let mut number = |name| {
            *numbers.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        };
        frames.push(json!([
            frame.parent,
            number(&frame.name),
            frame.base.own,
            frame.candidate.own,
            frame.base.calls,
            frame.candidate.calls,
            match frame.known {
                Known::Both => 0,
                Known::Base => 1,
                Known::Candidate => 2,
            },
            frame.was.as_deref().map(number),
        ]));
    }
    json!({
        "title": explained::title(cell, plan),
        "base": resolved(plan, plan.base()),
        "candidate": resolved(plan, cell.candidate),
        "operations": cell.explanation.operations,
        "names": names,
        "frames": frames,
    })
}
