//! Where the instructions of a cell went, in words: for every form of a report.

use crate::conditions::Conditions;
use crate::context::{ReportContext, resolved};
use crate::lines::wrapped;
use crate::markdown::quoting::escape;
use crate::markdown::section::{LIMIT, Section, fit};
use crate::table;
use crate::words::plural;
use deltabench_compare::CountedCell;
use deltabench_model::explanation::{ExplainedCell, Explanation, Known, Line, Place};
use deltabench_model::plan::Plan;
use deltabench_model::table::{Cell, Column, Line as TableLine, Look, Table};
use deltabench_model::units::{signed_to_f64, to_f64};

/// Names of a path that are all shown; of a longer one the first and the last two.
const NAMES: usize = 4;
/// A share of a difference that is hardly any of it.
const HARDLY: f64 = 0.15;
/// A place with this share of a difference has most of it.
const MOSTLY: f64 = 0.5;
/// Calls that differ by less than this share are the same.
const SAME_CALLS: f64 = 0.01;

/// What a name may be in a text, in order: the cell, and the candidate where there are several.
pub(crate) fn title(cell: &ExplainedCell, plan: &Plan) -> String {
    let planned = plan.cell(cell.cell);
    let name = planned.map_or_else(String::new, |planned| {
        Conditions::new(plan).planned_name(planned)
    });
    if plan.candidates().len() > 1 {
        format!("{name} on {}", resolved(plan, cell.candidate))
    } else {
        name
    }
}

/// Both sides in a sentence: `44140 → 45627 instructions per operation, +3.37 %`.
pub(crate) fn sides(explanation: &Explanation) -> String {
    let (base, candidate) = explanation.total();
    let of = |value| each(value, explanation);
    format!(
        "{} → {} instructions per operation, {}",
        number(of(base)),
        number(of(candidate)),
        change(explanation)
    )
}

/// `+3.37 %`.
fn change(explanation: &Explanation) -> String {
    let (base, candidate) = explanation.total();
    let ratio = signed_to_f64(candidate) / signed_to_f64(base.max(1));
    format!("{:+.2} %", (ratio - 1.0) * 100.0)
}

/// What was counted of a cell that changed, in short: where its difference went, if that is known.
pub fn counted_in_short(counted: &CountedCell, explained: Option<&ExplainedCell>) -> String {
    if counted.is_same() {
        return format!("the same instructions ({})", counted.change());
    }
    let explanation = explained.map(|cell| &cell.explanation);
    let place = explanation.and_then(|explanation| main_place(explanation, counted.ratio));
    let change = crate::words::change(counted.ratio);
    format!("{change} instructions{}", place.unwrap_or_default())
}

/// The words after the change: `, most of it in LockAcquireExtended`. Nothing where no place goes along with
/// the whole, or the window that is explained not with all of them.
fn main_place(explanation: &Explanation, ratio: f64) -> Option<String> {
    let (base, candidate) = explanation.total();
    let whole = candidate - base;
    if (whole > 0) != (ratio > 1.0) {
        return None;
    }
    let along = |line: &&Line| line.difference().signum() == whole.signum();
    let first = explanation.lines.iter().find(along)?;
    let how_much = match signed_to_f64(first.difference()) / signed_to_f64(whole) {
        part if part >= MOSTLY => "most of it",
        _ => "the largest part",
    };
    Some(format!(", {how_much} in {}", first.names.last()?))
}

/// How much the lines account for, and how many functions there are.
pub(crate) fn foot(explanation: &Explanation) -> String {
    let counts = explanation.functions;
    let told = explanation.accounted().map_or_else(String::new, |share| {
        let (base, candidate) = explanation.total();
        let sum: i64 = explanation.lines.iter().map(Line::difference).sum();
        format!(
            "accounted for: {} of {}, {:.0} %; ",
            signed(each(sum, explanation)),
            signed(each(candidate - base, explanation)),
            // Never `-0`.
            (share * 100.0).round() + 0.0
        )
    });
    format!(
        "{told}{} of {} functions differ, {} of them by less than one instruction; {} are the same",
        counts.differ,
        counts.all,
        counts.slightly,
        counts.all - counts.differ
    )
}

/// On a terminal: both sides, a line for each place, what they account for.
fn terminal(cell: &ExplainedCell, plan: &Plan, width: usize) -> Vec<String> {
    let explanation = &cell.explanation;
    let head = format!("{}: {}", title(cell, plan), sides(explanation));
    let mut lines = wrapped(&head, width, 0, 2);
    for line in &explanation.lines {
        lines.extend(terminal_line(line, explanation, width, 2));
        for inner in &line.inner {
            lines.extend(terminal_line(inner, explanation, width, 6));
        }
    }
    lines.extend(wrapped(&foot(explanation), width, 2, 4));
    lines.extend(
        cell.notes
            .iter()
            .flat_map(|note| wrapped(&format!("note: {note}"), width, 2, 4)),
    );
    lines
}

fn terminal_line(
    line: &Line,
    explanation: &Explanation,
    width: usize,
    indent: usize,
) -> Vec<String> {
    let (base, candidate, difference) = figures(line, explanation);
    let figures = format!("{base:>6} → {candidate:>6} {difference:>7}  ");
    let time = time(line).map_or_else(String::new, |time| format!("; time {time}"));
    let words = format!("{}: {}{time}", place(line), why(line, explanation));
    let start = indent + figures.chars().count();
    let mut lines = wrapped(&words, width, start, start + 2);
    // Blanks between figures keep them in columns: a line must not break there.
    if let Some(first) = lines.first_mut() {
        *first = format!("{}{figures}{}", " ".repeat(indent), first.trim_start());
    }
    lines
}

/// Each place of an explanation in one text: `+116 LockAcquireExtended: 7 calls, each 16 more`.
pub fn explanation_lines(explanation: &Explanation) -> Vec<String> {
    let lines = explanation.lines.iter();
    let text = |line: &Line| {
        let (_, _, difference) = figures(line, explanation);
        format!("{difference} {}: {}", place(line), why(line, explanation))
    };
    lines.map(text).collect()
}

/// In Markdown, with a heading; nothing where nothing is explained.
pub(crate) fn sections(context: &ReportContext, plan: &Plan) -> Vec<Section> {
    if context.explained.is_empty() {
        return Vec::new();
    }
    let heading = Section {
        head: vec!["### Where the instructions went\n".to_owned()],
        ..Section::default()
    };
    let cells = context.explained.iter();
    let cells = cells.flat_map(|cell| markdown(cell, plan));
    std::iter::once(heading).chain(cells).collect()
}

/// All cells as text for a terminal, with an empty line between them.
pub fn explained_text(cells: &[ExplainedCell], plan: &Plan, width: usize) -> String {
    let cells = cells.iter().map(|cell| {
        let mut text = terminal(cell, plan, width).join("\n");
        text.push('\n');
        text
    });
    cells.collect::<Vec<_>>().join("\n")
}

/// All cells as Markdown.
pub fn explained_markdown(cells: &[ExplainedCell], plan: &Plan) -> String {
    let sections = cells.iter().flat_map(|cell| markdown(cell, plan));
    fit(sections.collect(), LIMIT)
}

/// In Markdown, without its heading.
fn markdown(cell: &ExplainedCell, plan: &Plan) -> Vec<Section> {
    let explanation = &cell.explanation;
    let heading = format!(
        "**{}**: {}\n",
        escape(&title(cell, plan)),
        escape(&sides(explanation))
    );
    let paragraph = |text: String| Section {
        head: vec![text],
        ..Section::default()
    };
    let mut sections = vec![
        paragraph(heading),
        table::markdown::section(&self::table(cell)),
        paragraph(format!("{}\n", escape(&foot(explanation)))),
    ];
    sections.push(Section::list("", cell.notes.iter().cloned(), "note"));
    sections
}

/// A row for each place; for the page and for Markdown.
pub(crate) fn table(cell: &ExplainedCell) -> Table {
    let explanation = &cell.explanation;
    let lines = explanation.lines.iter();
    let mut columns: Vec<Column> = ["base", "candidate", "difference"].map(Column::of).into();
    let timed = { explanation.lines.iter() }.any(|line| line.time.is_some());
    columns.extend(timed.then(|| Column::of_words("time of the function")));
    columns.push(Column::of_words("why"));
    let row = |line: &Line, within: bool| {
        let (base, candidate, difference) = figures(line, explanation);
        let mut cells: Vec<Cell> = vec![base.into(), candidate.into(), difference.into()];
        cells.extend(timed.then(|| time(line).unwrap_or_default().into()));
        cells.push(why(line, explanation).into());
        let indent = if within { "of it: " } else { "" };
        TableLine::row(format!("{indent}{}", place(line)), cells)
    };
    let rows = lines.flat_map(|line| {
        let inner = line.inner.iter().map(|inner| row(inner, true));
        std::iter::once(row(line, false))
            .chain(inner)
            .collect::<Vec<_>>()
    });
    Table {
        corner: "where".to_owned(),
        columns,
        lines: rows.collect(),
        row_noun: "place",
        label: "where the instructions went".to_owned(),
        look: Look {
            class: "costs explained",
            ..Look::default()
        },
        ..Table::default()
    }
}

/// `+22 [+7, +36] ns, agrees`; absent where it was not sampled.
fn time(line: &Line) -> Option<String> {
    let word = line.agreement()?.word();
    Some(format!(
        "{} ns, {word}",
        crate::sampled::interval(&line.time?)
    ))
}

/// Base, candidate and difference, of one operation. The difference is that of the figures shown.
fn figures(line: &Line, explanation: &Explanation) -> (String, String, String) {
    let (base, candidate) = (
        each(line.base, explanation),
        each(line.candidate, explanation),
    );
    let shown = |value: f64| number(value).parse().unwrap_or(value);
    let difference: f64 = shown(candidate) - shown(base);
    (number(base), number(candidate), signed(difference))
}

/// The place in words: a path, a function with what it was split into.
fn place(line: &Line) -> String {
    let path = match line.names.as_slice() {
        [first, .., caller, last] if line.names.len() > NAMES => {
            format!("{first} › … › {caller} › {last}")
        }
        names => names.join(" › "),
    };
    match line.place {
        Place::Path => path,
        Place::Itself => format!("{path}, itself"),
        Place::Everywhere => format!("{path}, wherever it is called"),
        Place::EverywhereWithCalls => format!("{path} with what it calls, wherever it is called"),
    }
}

/// Called more often, or dearer in each call; and what it was split into.
pub(crate) fn why(line: &Line, explanation: &Explanation) -> String {
    let cost = calls_and_cost(line, explanation);
    let frames = line
        .frames
        .iter()
        .filter_map(|frame| explanation.frames.get(frame.index()));
    let frames: Vec<_> = frames.collect();
    let of = |known: Known| {
        let names = line.with.iter().filter(|name| {
            let mut found = frames.iter().filter(|frame| frame.name == **name);
            found.any(|frame| frame.known == known)
        });
        names.map(String::as_str).collect::<Vec<_>>()
    };
    let (new, gone) = (of(Known::Candidate), of(Known::Base));
    let was = frames.first().and_then(|frame| frame.was.as_ref());
    let mut parts = vec![cost];
    parts.extend((!new.is_empty()).then(|| format!("with {}, new", listed(&new))));
    parts.extend((!gone.is_empty()).then(|| format!("without {}, gone", listed(&gone))));
    parts.extend(was.map(|was| format!("{was} before")));
    parts.join("; ")
}

/// Functions that are named, at most.
const LISTED: usize = 3;

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown: Vec<&str> = names.iter().take(LISTED).copied().collect();
    match (more, shown.split_last()) {
        (0, Some((last, first))) if !first.is_empty() => {
            format!("{} and {last}", first.join(", "))
        }
        (0, _) => shown.join(", "),
        (more, _) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Δ = (calls₂ - calls₁) · cost₁ + calls₂ · (cost₂ - cost₁), in words.
fn calls_and_cost(line: &Line, explanation: &Explanation) -> String {
    let of = |value| each(value, explanation);
    let (before, after) = (of(line.base_calls), of(line.candidate_calls));
    let (base, candidate) = (of(line.base), of(line.candidate));
    let none = |value: f64| value.abs() < f64::EPSILON;
    if none(before) && none(after) {
        return "not called itself; its callers use it".to_owned();
    }
    if none(before) {
        return format!("not called before (now {})", times(after));
    }
    if none(after) {
        return format!("no longer called ({} before)", times(before));
    }
    let (cost_before, cost_after) = (base / before, candidate / after);
    let dearer = match cost_after - cost_before {
        more if more >= 0.0 => format!("{} more", number(more)),
        less => format!("{} less", number(-less)),
    };
    let same = (after - before).abs() <= SAME_CALLS * before.max(after);
    if same {
        return match number(after).as_str() {
            "1" => format!("same calls (1), {dearer}"),
            calls => format!(
                "same calls ({calls}), each {dearer}: {} → {}",
                number(cost_before),
                number(cost_after)
            ),
        };
    }
    let by_calls = (after - before) * cost_before;
    let by_cost = after * (cost_after - cost_before);
    let often = if after > before { "more" } else { "fewer" };
    let apart = number((after - before).abs());
    let noun = if apart == "1" { "time" } else { "times" };
    let calls = format!(
        "called {apart} {often} {noun} ({} → {})",
        number(before),
        number(after)
    );
    let whole = (candidate - base).abs();
    if by_cost.abs() <= HARDLY * whole {
        calls
    } else if by_calls.abs() <= HARDLY * whole {
        format!("each call {dearer}; {calls}")
    } else {
        format!(
            "{calls}: {}; each {dearer}: {}",
            signed(by_calls),
            signed(by_cost)
        )
    }
}

/// `once`, `3 times`, `0.04 times`.
fn times(calls: f64) -> String {
    match number(calls).as_str() {
        "1" => "once".to_owned(),
        calls => format!("{calls} times"),
    }
}

/// A figure of all operations as that of one.
pub(crate) fn each(value: i64, explanation: &Explanation) -> f64 {
    signed_to_f64(value) / to_f64(explanation.operations.max(1))
}

/// Whole from 10 on, else with a digit after the point if there is one.
fn number(value: f64) -> String {
    let text = if value.abs() >= 10.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if text == "-0" { "0".to_owned() } else { text }
}

fn signed(value: f64) -> String {
    let text = number(value);
    if text.starts_with('-') || text == "0" {
        text
    } else {
        format!("+{text}")
    }
}

/// What counted and said alone: a sentence for a cell beside others.
pub(crate) fn sentence(cell: &ExplainedCell, plan: &Plan) -> Option<String> {
    let explanation = &cell.explanation;
    let largest: Vec<String> = explanation
        .lines
        .iter()
        .take(LISTED)
        .map(|line| {
            let (_, _, difference) = figures(line, explanation);
            let name = line.names.last().map_or("", String::as_str);
            format!("{name} {difference}")
        })
        .collect();
    let functions = plural(explanation.functions.differ, "function");
    (!largest.is_empty()).then(|| {
        format!(
            "where it went: {}: {}: {}; {functions} differ",
            title(cell, plan),
            sides(explanation),
            largest.join(", ")
        )
    })
}
