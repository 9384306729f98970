//! The report on a terminal: what matters, and no more unless it is asked for.

mod cells;
mod columns;

use crate::context::{ReportContext, resolved};
use crate::lines::{unbroken, wrapped};
use crate::notes::{LINES, clipped, full, notes, short};
use crate::remarks::explanations;
use crate::summary::headlines;
use crate::{counts, explained, figures, grids, sampled, table, withdrawn};
use cells::CellTable;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::gate_line;
use deltabench_model::plan::Plan;

/// How the report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal; fewer than 60 are treated as 60.
    pub width: usize,
    /// Whether signs are coloured. Nothing is said by colour alone.
    pub colour: bool,
    /// Whether every note and every cell's whole reason is printed.
    pub verbose: bool,
}

/// Cells of which the short form says what moved.
const MOVED: usize = 2;

/// The result for the terminal: what is withdrawn, a head line for each candidate, a row per cell, what
/// moved, the notes that matter most.
///
/// Shape: lines of at most `width` columns wherever the words allow.
pub fn terminal(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> String {
    let width = options.width.max(60);
    let wrap = |text: &String| wrapped(text, width, 0, 2);
    let mut lines: Vec<String> = Vec::new();
    lines.extend(withdrawn::sentences(plan, context).iter().flat_map(wrap));
    lines.extend(headlines(comparison, plan).iter().flat_map(wrap));
    lines.extend(gate_line(comparison, plan).iter().flat_map(wrap));
    if comparison.counted_alone().is_none() {
        lines.extend(measured(comparison, plan, context, options));
    }
    // Beside times the table of cells has a column.
    let whole = options.verbose || comparison.counted_alone().is_some();
    if whole {
        for counted in counts::tables(comparison, plan) {
            lines.push(String::new());
            lines.extend(table::terminal::lines(&counted, width, options.colour));
        }
    }
    let shown = figures::terminal(&context.figures, width);
    if !shown.is_empty() {
        lines.push(String::new());
        lines.extend(shown);
    }
    lines.push(String::new());
    lines.extend(moved(comparison, plan, context, options));
    lines.extend(noted(comparison, plan, context, options));
    if !context.sampled.is_empty() {
        lines.push(String::new());
        lines.extend(sampled::terminal(&context.sampled, plan, width));
    }
    let mut lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    format!("{}\n", lines.join("\n").trim_start_matches('\n'))
}

/// The tables of what was measured, with the legend of their signs.
fn measured(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> Vec<String> {
    let table = CellTable::new(comparison, plan, context, options);
    let mut lines = table.conditions();
    let candidates = plan.candidates();
    for candidate in &candidates {
        lines.push(String::new());
        if candidates.len() > 1 {
            lines.push(format!(
                "{} vs {}",
                resolved(plan, *candidate),
                resolved(plan, plan.base())
            ));
        }
        lines.extend(table.of(*candidate));
    }
    if !candidates.is_empty() {
        lines.extend(table.legend());
    }
    if context.figures.grids_in_text {
        let width = options.width.max(60);
        lines.extend(grids::terminal(&context.grids, width, options.colour));
    }
    lines
}

/// What moved in the cells that changed, and where it went: all of it, or of the first cells a few lines and
/// the commands that say the rest. The rows name the function that counts most already.
fn moved(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> Vec<String> {
    let width = options.width.max(60);
    let texts = explanations(comparison, plan);
    let explained = context.explained.iter();
    let sentences: Vec<String> = explained
        .filter_map(|cell| explained::sentence(cell, plan))
        .collect();
    if options.verbose || comparison.counted_alone().is_some() {
        let all = texts.iter().chain(&sentences);
        return all.flat_map(|text| wrapped(text, width, 0, 2)).collect();
    }
    let (shown, others) = texts.split_at(texts.len().min(MOVED));
    let mut lines: Vec<String> = { shown.iter() }
        .flat_map(|text| clipped(text, width))
        .collect();
    let run = &context.run;
    let mut more = Vec::new();
    let cut = |text: &String| wrapped(text, width, 0, 2).len() > LINES;
    match others.len() {
        0 if shown.iter().any(cut) => {
            more.push(format!("all that moved: `deltabench report {run} --costs`"));
        }
        0 => {}
        1 => more.push(format!(
            "what moved in 1 more row: `deltabench report {run} --costs`"
        )),
        rows => more.push(format!(
            "what moved in {rows} more rows: `deltabench report {run} --costs`"
        )),
    }
    if !sentences.is_empty() {
        more.push(format!("where it went: `deltabench explain {run}`"));
    }
    // A command is not broken.
    let more: Vec<String> = more.iter().map(|text| unbroken(text)).collect();
    if !more.is_empty() {
        lines.extend(wrapped(&more.join("; "), width, 0, 2));
    }
    lines
}

/// The notes, all or the few that change most, and which run this is.
fn noted(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> Vec<String> {
    let width = options.width.max(60);
    let notes = notes(comparison, plan, context);
    if options.verbose {
        return full(&notes, width);
    }
    let (mut lines, more) = short(&notes, width);
    let run = &context.run;
    let blocks = comparison.cells.iter().map(|cell| cell.blocks).max();
    let blocks = blocks.filter(|blocks| *blocks > 0);
    let blocks = blocks.map_or_else(String::new, |blocks| {
        if blocks > plan.blocks() {
            format!(", {blocks} blocks, fresh ones included")
        } else {
            format!(", {blocks} of {} blocks", plan.blocks())
        }
    });
    let more = match more {
        0 => String::new(),
        1 => format!("; 1 more note: `deltabench notes {run}`"),
        more => format!("; {more} more notes: `deltabench notes {run}`"),
    };
    let text = unbroken(&format!("run {run}{blocks}{more}"));
    lines.extend(wrapped(&text, width, 0, 2));
    lines
}
