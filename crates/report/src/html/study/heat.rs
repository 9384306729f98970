//! A table of a study as a map of colours: figures with their intervals, signs for verdicts and bands.

use super::super::{class, typeset};
use crate::study::lead::column_counts;
use crate::study::words as study_words;
use crate::words;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Axis, Figure, GroupSpread, Study, StudyRow, StudyTable};
use deltabench_model::units::to_u64;
use maud::{Markup, html};

/// Strongest and weakest shade, in percent, and the change at which it is strongest.
const SHADES: (f64, f64) = (14.0, 48.0);
const FULL: f64 = 0.25;

/// More columns than this have upright heads, unless their names are short.
const MANY: usize = 7;
/// Characters of a short name.
const SHORT: usize = 8;

pub(super) fn table(study: &Study, table: &StudyTable) -> Markup {
    let spreads = study_words::spreads_of(study, table);
    let span = table.columns.len() + 1;
    html! {
        div.scroll.heat-box role="region" aria-label=(table.title) tabindex="0" {
            table.heat.many[table.columns.len() > MANY && long_heads(table)] {
                thead { tr {
                    th scope="col" { "workload" }
                    @for (place, column) in table.columns.iter().enumerate() {
                        th scope="col" class=[(place == table.base).then_some("base")] {
                            span {
                                (column.name)
                                @if let Some(cost) = column.cost_per_month {
                                    br; small { (format!("{cost:.2}")) " a month" }
                                }
                                @if let Some(days) = study_words::days(column) { br; small { (days) } }
                            }
                        }
                    }
                } }
                @for group in words::GROUPS {
                    @let rows = study_words::rows_of(table, group);
                    @if !rows.is_empty() {
                        tbody data-group=(group.word()) {
                            tr.group { th colspan=(span) scope="rowgroup" {
                                span { (study_words::group_heading(table.worker, Some(group))) }
                            } }
                            @for row in rows { (figures(table, row)) }
                            @if let Some(spread) = study_words::spread(&spreads, Some(group)) {
                                (mean(table, spread))
                            }
                        }
                    }
                }
                (foot(table, study_words::spread(&spreads, None)))
            }
        }
    }
}

fn long_heads(table: &StudyTable) -> bool {
    let mut columns = table.columns.iter();
    columns.any(|column| column.name.chars().count() > SHORT)
}

fn figures(table: &StudyTable, row: &StudyRow) -> Markup {
    let place = table.rows.iter().position(|one| std::ptr::eq(one, row));
    html! {
        tr data-row=[place] {
            th scope="row" { (row.name) }
            @for column in 0..table.columns.len() {
                @match study_words::figure(row, column) {
                    Some(figure) => (cell(table, column, figure)),
                    None => td.none { span.hear { "not measured" } },
                }
            }
        }
    }
}

fn cell(table: &StudyTable, column: usize, figure: &Figure) -> Markup {
    let ratio = study_words::ratio(figure.ratio.estimate);
    if column == table.base {
        return html! { td.base { (ratio) } };
    }
    let band = study_words::band(table, column, figure);
    let (before, after) = if study_words::is_claim(figure) {
        ("", "")
    } else {
        ("(", ")")
    };
    let shade = to_u64(shade(table, figure).round());
    html! {
        td class=(classes(table, column, figure)) style={ "--d:" (shade) "%" } {
            (before) (ratio)
            @if let Some(band) = band { span.band aria-hidden="true" { (band.sign()) } }
            small {
                (study_words::plus_minus(&figure.ratio))
                @if let Some(share) = figure.efficiency { ", " (typeset(&study_words::efficiency(share))) }
                @if let Some(per_cost) = figure.per_cost { br; (words::figure(per_cost)) "/s per unit" }
                (after)
                @if let Some(verdict) = figure.verdict {
                    " " b aria-hidden="true" { (words::sign(verdict)) }
                    span.hear { (words::verdict(verdict)) }
                }
            }
        }
    }
}

/// What verdict colours say, and what bands say.
fn classes(table: &StudyTable, column: usize, figure: &Figure) -> String {
    let judged = match figure.verdict {
        Some(verdict) => class(verdict),
        None if table.axis == Axis::Clients => "growth",
        None => "unjudged",
    };
    let banded =
        study_words::band(table, column, figure).map(|band| match band.is_bad(table.metric) {
            Some(true) => "b-bad",
            Some(false) => "b-good",
            None => "b-middle",
        });
    [Some(judged), banded]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// How strong the colour is: by the size of the change; over clients by how near it is to linear.
fn shade(table: &StudyTable, figure: &Figure) -> f64 {
    let (least, most) = SHADES;
    let size = if table.axis == Axis::Clients {
        // Squared, so that losses are seen.
        figure.efficiency.unwrap_or(0.0).powi(2)
    } else {
        figure.ratio.estimate.ln().abs() / FULL
    };
    if size.is_finite() {
        least + (most - least) * size.clamp(0.0, 1.0)
    } else {
        least
    }
}

fn mean(table: &StudyTable, spread: &GroupSpread) -> Markup {
    let of = |column| study_words::column_spread(spread, column)?.geometric;
    let known = (0..table.columns.len()).any(|column| of(column).is_some());
    html! {
        @if known {
            tr.mean {
                th scope="row" { "geometric mean" }
                @for column in 0..table.columns.len() {
                    td class=[(column == table.base).then_some("base")] {
                        @if let Some(mean) = of(column) {
                            (study_words::ratio(mean.estimate))
                            @if column != table.base { small { (study_words::plus_minus(&mean)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The mean of all rows, and how often each column was called worse or better.
fn foot(table: &StudyTable, all: Option<&GroupSpread>) -> Markup {
    let judged = |verdict: &Verdict| *verdict != Verdict::NoChange;
    let any = table
        .rows
        .iter()
        .flat_map(study_words::figures)
        .any(|(_, figure)| figure.verdict.is_some());
    html! {
        tfoot {
            @if let Some(spread) = all {
                tr.group { th colspan=(table.columns.len() + 1) scope="rowgroup" {
                    span { (study_words::group_heading(table.worker, None)) }
                } }
                (mean(table, spread))
            }
            @if any {
                tr.counts {
                    th scope="row" { "verdicts" }
                    @for column in 0..table.columns.len() {
                        td class=[(column == table.base).then_some("base")] {
                            @if column != table.base {
                                @for (verdict, times) in column_counts(table, column).list() {
                                    @if judged(&verdict) {
                                        span class=(class(verdict)) { (words::sign(verdict)) (times) } " "
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The spreads as published: a row for each group and column.
pub(super) fn spreads(study: &Study, table: &StudyTable) -> Markup {
    let spreads = study_words::spreads_of(study, table);
    html! {
        @if !spreads.is_empty() {
            details.spreads {
                summary { "Spread of the ratios by group" }
                div.scroll tabindex="0" role="region" aria-label="spreads" {
                    table.costs {
                        thead { tr {
                            th scope="col" { "group, column" }
                            th scope="col" { "rows" }
                            @for head in study_words::SPREAD_HEADS { th scope="col" { (head) } }
                            th scope="col" { "geometric mean" }
                        } }
                        @for spread in spreads { (spread_rows(table, spread)) }
                    }
                }
            }
        }
    }
}

fn spread_rows(table: &StudyTable, spread: &GroupSpread) -> Markup {
    let columns = table.columns.iter().enumerate();
    let others = columns.filter(|(column, _)| *column != table.base);
    html! {
        tbody {
            tr.group { th colspan="8" scope="rowgroup" {
                (study_words::spread_heading(table.worker, spread.of))
            } }
            @for (column, head) in others {
                @if let Some(of) = study_words::column_spread(spread, column) {
                    tr {
                        th scope="row" { (head.name) }
                        td { (of.count) }
                        @for text in study_words::spread_figures(of) { td { (text) } }
                        td {
                            @if let Some(mean) = &of.geometric { (words::ratio_interval(mean)) }
                        }
                    }
                }
            }
        }
    }
}
