//! RocksDB on the page: targets by step, one block cache against the other, and what each step did.

use super::{class, typeset};
use crate::context::ReportContext;
use crate::insert::words::{Line, NOTHING};
use crate::rocksdb::words;
use crate::words as house;
use deltabench_compare::rocksdb::{CachePair, RocksdbReport, StepBlock, StepColumn, TargetRow};
use deltabench_model::plan::{Plan, Role};
use deltabench_model::units::{count, to_f64};
use maud::{Markup, html};

/// Nothing for runs of anything else.
pub(super) fn section(plan: &Plan, context: &ReportContext) -> Markup {
    let Some(report) = &context.rocksdb else {
        return html! {};
    };
    let rows = words::shown(report);
    let heads = words::heads(&rows);
    html! {
        section #rocksdb {
            h2 { "RocksDB: targets by step" }
            p.legend { (typeset(&words::head(plan, report))) }
            h3 { "Throughput" }
            (plain(&heads, &words::lines(report, &rows, words::throughput)))
            p.legend { (words::throughput_legend(report)) }
            h3 { "Relative throughput, target / base" }
            (relative(report, &rows, &heads))
            p.legend { (words::relative_legend(report)) "; intervals are with the cells below" }
            @if !report.caches.is_empty() {
                h3 { "HyperClock against LRU" }
                (caches(report))
                p.legend { (words::CACHES) "; " b.better { "▲" } " and " b.worse { "▼" }
                    ": the interval leaves out 1" }
            }
            (figures(report))
            h3 { "Turn by turn" }
            p.legend {
                "Operations per second of each turn: a line for each block, from 0 to the step's fastest \
                 turn. Steps of one turn are not here."
            }
            @for (place, column) in report.steps.iter().enumerate() { (turns(report, &rows, place, column)) }
        }
    }
}

fn head(names: &[String]) -> Markup {
    html! {
        thead { tr { th scope="col" { "step" } @for name in names { th scope="col" { (name) } } } }
    }
}

/// A table whose texts say all.
fn plain(heads: &[String], lines: &[Line]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="table of steps" {
            table.steps {
                (head(heads))
                tbody {
                    @for line in lines {
                        tr {
                            th scope="row" { (line.head) }
                            @for text in &line.texts { td { (typeset(text)) } }
                        }
                    }
                }
            }
        }
    }
}

fn relative(report: &RocksdbReport, rows: &[&TargetRow], heads: &[String]) -> Markup {
    let lines = words::lines(report, rows, words::relative);
    html! {
        div.scroll tabindex="0" role="region" aria-label="relative throughput by step" {
            table.steps {
                (head(heads))
                tbody {
                    @for (place, line) in lines.iter().enumerate() {
                        tr {
                            th scope="row" { (line.head) }
                            @for (row, text) in rows.iter().zip(&line.texts) {
                                @let found = row.steps.get(place).and_then(|step| step.relative);
                                @let title = found.map(|found| house::ratio_interval(&found.ratio));
                                td title=[title] {
                                    span class=[found.map(|found| class(found.verdict))] { (text) }
                                    @if let Some(found) = found {
                                        span.hear { " " (house::verdict(found.verdict)) }
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

fn caches(report: &RocksdbReport) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="HyperClock against LRU by step" {
            table.steps {
                (head(&words::pairs(report)))
                tbody {
                    @for (place, column) in report.steps.iter().enumerate() {
                        tr {
                            th scope="row" { (words::step(report, column)) }
                            @for pair in &report.caches { td { (cache(pair, place)) } }
                        }
                    }
                }
            }
        }
    }
}

/// A ratio with its interval, and a sign where that leaves out 1.
fn cache(pair: &CachePair, place: usize) -> Markup {
    let ends = pair
        .ratios
        .get(place)
        .and_then(Option::as_ref)
        .and_then(house::ci95);
    let (sign, class) = match ends {
        Some((low, _)) if low > 1.0 => (" ▲", "better"),
        Some((_, high)) if high < 1.0 => (" ▼", "worse"),
        _ => ("", ""),
    };
    html! {
        (typeset(&words::cache(pair, place)))
        @if !sign.is_empty() { b class=(class) { (sign) } }
    }
}

/// What each step did, folded.
fn figures(report: &RocksdbReport) -> Markup {
    let (heads, lines) = words::figures(report, |_| true);
    html! {
        @if !lines.is_empty() {
            details {
                summary { "What each step did" }
                (plain(&heads, &lines))
                p.legend { (words::FIGURES) }
            }
        }
    }
}

/// The turns of a step on each target, folded.
fn turns(report: &RocksdbReport, rows: &[&TargetRow], place: usize, column: &StepColumn) -> Markup {
    let of = |row: &&TargetRow| {
        let blocks = row.steps.get(place).map(|step| step.blocks.clone());
        (row.name.clone(), row.role, blocks.unwrap_or_default())
    };
    let sides: Vec<(String, Role, Vec<StepBlock>)> = rows.iter().map(of).collect();
    let all = sides.iter().flat_map(|(_, _, blocks)| blocks);
    let rates = all.flat_map(|block| block.turns.iter().flatten().copied());
    let fastest = rates.fold(0.0, f64::max);
    let mut several = sides.iter().flat_map(|(_, _, blocks)| blocks);
    let drawn = several.any(|block| block.turns.len() > 1) && fastest > 0.0;
    html! {
        @if drawn {
            details.step {
                summary { (words::step(report, column)) }
                @for (name, role, blocks) in &sides {
                    p.metric { (name) }
                    div.warmup {
                        span.scale { span { (house::number(fastest)) } span { "0 ops/s" } }
                        @let label = format!("turns of {} on {name}", column.step.name());
                        svg width="100%" height="60" viewBox="0 0 1000 100" preserveAspectRatio="none"
                            role="img" aria-label=(label) {
                            @for block in blocks {
                                path class=(if *role == Role::Base { "curve" } else { "curve side" })
                                    d=(path(block, fastest)) {}
                            }
                        }
                    }
                    @if blocks.is_empty() { p.muted { (NOTHING) } }
                }
            }
        }
    }
}

/// The turns of a block as a line; a void one is a gap.
fn path(block: &StepBlock, fastest: f64) -> String {
    let last = to_f64(count(block.turns.len().saturating_sub(1))).max(1.0);
    let mut path = String::new();
    let mut pen = 'M';
    for (turn, rate) in (0_u32..).zip(&block.turns) {
        let Some(rate) = rate else {
            pen = 'M';
            continue;
        };
        let x = 1000.0 * f64::from(turn) / last;
        let y = 100.0 * (1.0 - rate / fastest);
        path.push_str(&format!("{pen}{x:.0} {y:.1}"));
        pen = 'L';
    }
    path
}
