//! What a report shows of RocksDB beside its verdicts.

use super::{json, tables, tsv, words};
use crate::rocksdb::{RocksdbReport, StepColumn};
use deltabench_model::figures::{Block, Curves, Figures, Fold, PageSection};
use deltabench_model::plan::{Plan, Role};
use deltabench_model::table::{Span, SpanForm, Table, Tone};
use deltabench_report::words as house;

/// Figures of what a step did that a terminal shows; page, Markdown and JSON have all.
const COLUMNS: usize = 8;

/// The tables in every form, the files, and what was asked for.
pub fn figures(run: &str, plan: &Plan, report: &RocksdbReport) -> Figures {
    Figures {
        terminal: terminal(plan, report),
        markdown: markdown(plan, report),
        page: vec![PageSection {
            id: "rocksdb",
            heading: "RocksDB: targets by step",
            name: Some("RocksDB"),
            blocks: page(plan, report),
        }],
        json: vec![("rocksdb", json::rocksdb(plan, report))],
        formats: vec![("rocksdb", tsv::rocksdb_tsv(run, plan, report))],
        setup: words::setup_rows(plan),
        ..Figures::default()
    }
}

fn titled(table: Table, title: &str, reading: &str) -> Block {
    Block::Table(Table {
        title: title.to_owned(),
        reading: format!(": {reading}"),
        corner: String::new(),
        ..table
    })
}

/// Targets by step and the caches, alike on a terminal and in Markdown.
fn summary(report: &RocksdbReport) -> Vec<Block> {
    let mut blocks = vec![
        titled(
            tables::throughput(report),
            "Throughput",
            &words::throughput_legend(report),
        ),
        titled(
            tables::relative(report),
            "Relative throughput",
            words::RELATIVE,
        ),
    ];
    if !report.caches.is_empty() {
        let table = tables::caches(report);
        blocks.push(titled(table, "HyperClock against LRU", words::CACHES));
    }
    blocks
}

fn terminal(plan: &Plan, report: &RocksdbReport) -> Vec<Block> {
    let empty = || Block::Text(String::new());
    let head = format!("RocksDB, {}", words::head(plan, report));
    let mut blocks = vec![empty(), Block::Text(head)];
    blocks.extend(summary(report));
    let table = tables::figures(report, COLUMNS, |column| column.step.writes());
    if !table.lines.is_empty() {
        blocks.push(titled(table, "What a step that writes did", words::FIGURES));
    }
    blocks.push(empty());
    blocks
}

fn markdown(plan: &Plan, report: &RocksdbReport) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("RocksDB".to_owned()),
        Block::Text(words::head(plan, report)),
    ];
    blocks.extend(summary(report));
    let mut table = tables::figures(report, usize::MAX, |_| true);
    table.look.folded = true;
    blocks.push(titled(table, "What a step did", words::FIGURES));
    blocks
}

fn page(plan: &Plan, report: &RocksdbReport) -> Vec<Block> {
    let heading = |text: &str| Block::Heading(text.to_owned());
    let legend = |text: String| Block::Legend(vec![text.into()]);
    let mut blocks = vec![
        legend(words::head(plan, report)),
        heading("Throughput"),
        Block::Table(tables::throughput(report)),
        legend(words::throughput_legend(report)),
        heading("Relative throughput, target / base"),
        Block::Table(tables::relative(report)),
        legend(format!(
            "{}; the cells below have the intervals",
            words::RELATIVE
        )),
    ];
    if !report.caches.is_empty() {
        blocks.extend([
            heading("HyperClock against LRU"),
            Block::Table(tables::caches_with_signs(report)),
            Block::Legend(caches_legend()),
        ]);
    }
    let table = tables::figures(report, usize::MAX, |_| true);
    if !table.lines.is_empty() {
        blocks.push(Block::Fold(Fold {
            title: "What each step did".to_owned(),
            blocks: vec![Block::Table(table), legend(words::FIGURES.to_owned())],
            ..Fold::default()
        }));
    }
    blocks.push(heading("Turn by turn"));
    blocks.push(legend(
        "Operations per second of each turn: a line for each block, from 0 to the step's fastest turn. Steps \
         of one turn are not here."
            .to_owned(),
    ));
    let steps = report.steps.iter().enumerate();
    blocks.extend(steps.filter_map(|(place, column)| turns(report, place, column)));
    blocks
}

fn caches_legend() -> Vec<Span> {
    let sign = |text: &str, tone| Span::set(text, SpanForm::Strong { sign: "" }, Some(tone));
    vec![
        format!("{}; ", words::CACHES).into(),
        sign("▲", Tone::Better),
        " and ".into(),
        sign("▼", Tone::Worse),
        ": the interval leaves out 1".into(),
    ]
}

/// The turns of a step on each target; nothing where no block has several.
fn turns(report: &RocksdbReport, place: usize, column: &StepColumn) -> Option<Block> {
    let rows = tables::shown(report);
    let of_step = || rows.iter().filter_map(|row| row.steps.get(place));
    let blocks = || of_step().flat_map(|step| &step.blocks);
    let rates = blocks().flat_map(|block| block.turns.iter().flatten().copied());
    let fastest = rates.fold(0.0, f64::max);
    if fastest <= 0.0 || blocks().all(|block| block.turns.len() <= 1) {
        return None;
    }
    let curves = rows.iter().map(|row| {
        let blocks = row.steps.get(place).map_or(&[][..], |step| &step.blocks);
        Block::Curves(Curves {
            title: row.name.clone(),
            label: format!("turns of {} on {}", column.step.name(), row.name),
            most: fastest,
            scale: (house::number(fastest), "0 ops/s".to_owned()),
            of_base: row.role == Role::Base,
            lines: blocks.iter().map(|block| block.turns.clone()).collect(),
        })
    });
    Some(Block::Fold(Fold {
        title: words::step(report, column),
        class: "step",
        blocks: curves.collect(),
        ..Fold::default()
    }))
}
