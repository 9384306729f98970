//! What stands first: withdrawals, the sentence that matters, and what got slower or faster, with its cause.

use super::{link, typeset};
use crate::conditions::Conditions;
use crate::confirmation::{ConfirmationStatus, marks};
use crate::context::ReportContext;
use crate::explained::counted_in_short;
use crate::remarks::changed;
use crate::summary::{nothing_found, unchanged_delta};
use crate::{differences, withdrawn, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::Plan;
use maud::{Markup, html};

/// Cells in one list; the rest is in the table, which the page says.
const LISTED: usize = 25;

/// A banner for a withdrawn run or withdrawn cells.
pub(super) fn banner(plan: &Plan, context: &ReportContext) -> Markup {
    let sentences = withdrawn::sentences(plan, context);
    html! {
        @if !sentences.is_empty() {
            div.banner role="note" {
                @for sentence in &sentences {
                    @match sentence.split_once(": ") {
                        Some((word, rest)) => p { b { (word) } " " (typeset(rest)) },
                        None => p { (typeset(sentence)) },
                    }
                }
            }
        }
    }
}

/// How often each verdict was given.
pub(super) fn counts(comparison: &Comparison) -> Markup {
    let counts = comparison.counts;
    let cells: Vec<&CellComparison> = comparison.cells.iter().collect();
    let delta = unchanged_delta(&cells, comparison.delta);
    let chips = [
        (Verdict::Regression, counts.regression),
        (Verdict::Improvement, counts.improvement),
        (Verdict::NoChange, counts.no_change),
        (Verdict::Inconclusive, counts.inconclusive),
        (Verdict::Unfit, counts.unfit),
    ];
    html! {
        ul.chips {
            @for (verdict, count) in chips {
                @if count > 0 || verdict != Verdict::Unfit {
                    li class=(super::class(verdict)) {
                        span aria-hidden="true" { (words::sign(verdict)) " " }
                        (count) " " (words::verdict(verdict))
                        @if verdict == Verdict::NoChange { " beyond " (delta) }
                    }
                }
            }
        }
    }
}

/// The cells that got slower, the worst first, then those that got faster; each leads to its card.
pub(super) fn changes(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Markup {
    let conditions = Conditions::new(plan);
    let lists = [
        (Verdict::Regression, "What got slower"),
        (Verdict::Improvement, "What got faster"),
    ];
    html! {
        @for (verdict, title) in lists {
            @let cells = sorted(comparison, verdict);
            @if !cells.is_empty() || verdict == Verdict::Regression {
                section.changes {
                    h2 { (title) }
                    @if cells.is_empty() {
                        p { (nothing_found("No cell was found slower", comparison, context)) }
                    } @else {
                        ul { @for cell in cells.iter().take(LISTED) {
                            (change(cell, comparison, &conditions, context))
                        } }
                    }
                    @if cells.len() > LISTED {
                        p.muted { "and " (cells.len() - LISTED) " more, see " a href="#values" { "values" } }
                    }
                }
            }
        }
    }
}

fn sorted(comparison: &Comparison, verdict: Verdict) -> Vec<&CellComparison> {
    let size = |cell: &CellComparison| {
        let metric = words::metric(cell, Metric::Throughput);
        metric.map_or(0.0, |metric| metric.ratio.estimate.ln().abs())
    };
    let cells = comparison.cells.iter();
    let mut cells: Vec<&CellComparison> = cells.filter(|cell| cell.verdict == verdict).collect();
    cells.sort_by(|a, b| size(b).total_cmp(&size(a)));
    cells
}

fn change(
    cell: &CellComparison,
    comparison: &Comparison,
    conditions: &Conditions<'_>,
    context: &ReportContext,
) -> Markup {
    let plan = conditions.plan();
    let figure =
        |metric| words::metric(cell, metric).map(|found| words::change_interval(&found.ratio));
    let difference = |metric| {
        let text = differences::written(cell, metric, plan);
        text.map_or_else(String::new, |text| typeset(&format!(", {text}")))
    };
    let status = ConfirmationStatus::of(cell);
    let gone = withdrawn::of_cell(context, cell.cell);
    let explained = context.explained(cell.cell, cell.candidate);
    let counts = comparison.instructions.as_ref();
    let counted = counts.and_then(|counts| counts.of_cell(cell.cell, cell.candidate));
    let counted = counted.map(|counted| typeset(&counted_in_short(counted, explained)));
    html! {
        li {
            span class=(super::class(cell.verdict)) aria-hidden="true" {
                (words::sign(cell.verdict)) (marks(cell))
            }
            " "
            span class=[gone.is_some().then_some("withdrawn")] {
                (link(cell, conditions))
                @if plan.candidates().len() > 1 { " " small { "on " (cell.candidate_name) } }
                @if let Some(text) = figure(Metric::Throughput) { ": " b { (typeset(&text)) } }
            }
            (difference(Metric::Throughput))
            @if let Some(text) = figure(Metric::ServerCpuPerOperation) {
                ", CPU/op " (typeset(&text)) (difference(Metric::ServerCpuPerOperation))
            }
            @if let Some(text) = counted {
                "; "
                @match explained {
                    Some(found) => a href={ "#" (super::explained::anchor(found)) } { (text) },
                    None => (text),
                }
            }
            @if let Some(status) = status { "; " (status.phrase()) }
            @if let Some(reason) = gone { "; " b.worse { "withdrawn" } ": " (reason) }
            (moved(cell))
        }
    }
}

/// What moved, for a cell that changed.
pub(super) fn moved(cell: &CellComparison) -> Markup {
    let text = cell.explanation.as_ref().filter(|_| changed(cell));
    html! { @if let Some(text) = text { p.moved { b { "what moved" } " " (typeset(text)) } } }
}

/// The way through the page.
pub(super) fn way(plan: &Plan, context: &ReportContext) -> Markup {
    let series = !context.samples.is_empty();
    let by_workers = format!("by {}s", words::worker(plan));
    let sections = context.figures.page.iter();
    let mut places: Vec<(&str, &str, bool)> = sections
        .filter_map(|section| Some((section.id, section.name?, true)))
        .collect();
    places.extend([
        ("cells", "cells", true),
        ("values", "values", true),
        ("explained", "where it went", !context.explained.is_empty()),
        ("sampled", "time by function", !context.sampled.is_empty()),
        ("findings", "findings", true),
        ("grids", by_workers.as_str(), !context.grids.is_empty()),
        ("charts", "charts", true),
        ("cards", "cell by cell", true),
        ("host", "the host in time", series),
        ("provenance", "provenance", true),
    ]);
    html! {
        nav.way aria-label="sections" {
            @for (id, name, _) in places.iter().filter(|(_, _, there)| *there) {
                a class=[matches!(*id, "charts" | "host").then_some("scripted")] href={ "#" (id) } { (name) }
                " "
            }
        }
    }
}
