//! The tables: rows are steps, columns are targets.

use super::words;
use crate::rocksdb::{CachePair, RocksdbReport, StepBlock, StepColumn, TargetFigures, TargetStep};
use deltabench_compare::comparison::Verdict;
use deltabench_model::plan::Role;
use deltabench_model::table::{Cell, Column, Line, Look, Span, SpanForm, Table};
use deltabench_report::table::tone;
use deltabench_report::words as house;

/// What stands where there is nothing.
const NOTHING: &str = "-";

/// Who is shown in the tables: all but the placebo, which the verdicts rest on and nobody asks about.
pub(super) fn shown(report: &RocksdbReport) -> Vec<&TargetFigures> {
    let all = report.targets.iter();
    all.filter(|row| row.role != Role::Placebo).collect()
}

/// A table under these heads, with a row for each step.
fn by_step(
    report: &RocksdbReport,
    heads: Vec<Column>,
    label: &'static str,
    cells: impl Fn(usize) -> Vec<Cell>,
) -> Table {
    let steps = report.steps.iter().enumerate();
    let lines = steps.map(|(place, column)| Line::row(words::step(report, column), cells(place)));
    table(heads, lines.collect(), label)
}

fn table(columns: Vec<Column>, lines: Vec<Line>, label: &'static str) -> Table {
    Table {
        corner: "step".to_owned(),
        columns,
        lines,
        row_noun: "step",
        label: label.to_owned(),
        look: Look {
            compact: true,
            class: "steps",
            ..Look::default()
        },
        ..Table::default()
    }
}

fn by_target(
    report: &RocksdbReport,
    label: &'static str,
    cell: impl Fn(&TargetFigures, &TargetStep) -> Cell,
) -> Table {
    let rows = shown(report);
    let heads = rows.iter().map(|row| Column::of(row.name.as_str()));
    by_step(report, heads.collect(), label, |place| {
        let of = |row: &&TargetFigures| {
            let step = row.steps.get(place);
            step.map_or_else(|| NOTHING.into(), |step| cell(row, step))
        };
        rows.iter().map(of).collect()
    })
}

/// Operations per second.
pub(super) fn throughput(report: &RocksdbReport) -> Table {
    by_target(report, "table of steps", |_, step| {
        let rate = step.throughput;
        rate.map_or_else(|| NOTHING.into(), |rate| house::number(rate).into())
    })
}

/// Throughput against the base: `1.00` for it, `0.97 ▼` for others.
pub(super) fn relative(report: &RocksdbReport) -> Table {
    by_target(report, "relative throughput by step", |row, step| {
        let Some(relative) = step.relative.filter(|_| row.role != Role::Base) else {
            let is_base = row.role == Role::Base && step.throughput.is_some();
            return if is_base { "1.00" } else { NOTHING }.into();
        };
        let (estimate, verdict) = (relative.ratio.estimate, relative.verdict);
        let text = format!("{estimate:.2} {}", house::sign(verdict));
        let spoken = format!(" {}", house::verdict(verdict));
        let cell = Cell {
            spans: vec![
                Span::set(text, SpanForm::Plain, Some(tone(verdict))),
                Span::set(spoken, SpanForm::Spoken, None),
            ],
            ..Cell::default()
        };
        cell.tipped(house::ratio_interval(&relative.ratio))
    })
}

/// One cache against the other: a column for each pair.
pub(super) fn caches(report: &RocksdbReport) -> Table {
    let pairs = report.caches.iter();
    let heads = pairs.map(|pair| Column::of(pair.name.as_str()));
    let label = "HyperClock against LRU by step";
    by_step(report, heads.collect(), label, |place| {
        let pairs = report.caches.iter();
        pairs.map(|pair| cache(pair, place)).collect()
    })
}

/// A ratio with its interval.
fn cache(pair: &CachePair, place: usize) -> Cell {
    let ratio = pair.ratios.get(place).and_then(Option::as_ref);
    ratio.map_or_else(
        || NOTHING.into(),
        |ratio| house::ratio_interval(ratio).into(),
    )
}

/// The same with a sign where the interval leaves out 1.
pub(super) fn caches_with_signs(report: &RocksdbReport) -> Table {
    let mut table = caches(report);
    let lines = table.lines.iter_mut().enumerate();
    for (place, line) in lines {
        let Line::Row(row) = line else { continue };
        for (cell, pair) in row.cells.iter_mut().zip(&report.caches) {
            let ratio = pair.ratios.get(place).and_then(Option::as_ref);
            let verdict = match ratio.and_then(house::ci95) {
                Some((low, _)) if low > 1.0 => Verdict::Improvement,
                Some((_, high)) if high < 1.0 => Verdict::Regression,
                _ => continue,
            };
            let sign = format!(" {}", house::sign(verdict));
            let form = SpanForm::Strong { sign: "" };
            cell.spans.push(Span::set(sign, form, Some(tone(verdict))));
        }
    }
    table
}

/// A figure of what a step did: head, decimals, and the value of a block in the unit of the head.
type Figure = (&'static str, usize, fn(&StepBlock) -> Option<f64>);

const GB: f64 = 1.0 / 1_073_741_824.0;

/// The most telling first: a terminal has no room for all.
const SHOWN: [Figure; 10] = [
    ("write amp", 2, StepBlock::write_amplification),
    ("stall%", 1, |block| Some(100.0 * block.stalled_share()?)),
    ("drain s", 2, |block| Some(1e-9 * block.figure("drain_ns")?)),
    ("comp GB", 3, |block| {
        Some(GB * block.figure("compaction_write_bytes")?)
    }),
    ("comp s", 2, |block| {
        Some(1e-9 * block.figure("compaction_ns")?)
    }),
    ("comp cpu s", 2, |block| {
        Some(1e-9 * block.figure("compaction_cpu_ns")?)
    }),
    ("LSM GB", 3, |block| Some(GB * block.figure("lsm_bytes")?)),
    ("RSS GB", 3, |block| {
        Some(GB * block.figure("largest_rss_bytes")?)
    }),
    ("user s", 2, |block| {
        Some(1e-9 * block.figure("user_cpu_ns")?)
    }),
    ("system s", 2, |block| {
        Some(1e-9 * block.figure("system_cpu_ns")?)
    }),
];

/// What each step did on each target, a row for each of those `of_interest`; at most so many figures, of
/// those that somebody knows. Without rows where there is nothing to show.
pub(super) fn figures(
    report: &RocksdbReport,
    most: usize,
    of_interest: impl Fn(&StepColumn) -> bool,
) -> Table {
    let rows = shown(report);
    let known = |(_, _, of): &&Figure| {
        let mut steps = rows.iter().flat_map(|row| &row.steps);
        steps.any(|step| step.mean(of).is_some())
    };
    let columns: Vec<&Figure> = SHOWN.iter().filter(known).take(most).collect();
    let mut lines = Vec::new();
    let steps = report.steps.iter().enumerate();
    for (place, column) in steps.filter(|(_, column)| of_interest(column)) {
        for row in &rows {
            let Some(figures) = row.steps.get(place).filter(|step| !step.blocks.is_empty()) else {
                continue;
            };
            let cells = columns.iter().map(|(_, decimals, of)| {
                let mean = figures.mean(of);
                mean.map_or_else(
                    || NOTHING.into(),
                    |mean| format!("{mean:.decimals$}").into(),
                )
            });
            let name = format!("{} {}", words::step(report, column), row.name);
            lines.push(Line::row(name, cells.collect()));
        }
    }
    if columns.is_empty() {
        lines.clear();
    }
    let heads = columns.iter().map(|(head, _, _)| Column::of(*head));
    table(heads.collect(), lines, "table of steps")
}
