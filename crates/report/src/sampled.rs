//! Where the servers' time went, in words.

use crate::conditions::Conditions;
use crate::context::resolved;
use crate::lines::wrapped;
use crate::markdown::quoting::escape;
use crate::markdown::section::{LIMIT, Section, fit};
use crate::table::markdown::section;
use deltabench_model::explanation::TimeChange;
use deltabench_model::plan::Plan;
use deltabench_model::sampled::{FunctionTime, SampledCell, SampledTime};
use deltabench_model::table::{Cell, Column, Line, Table};

/// Functions that are shown of those called different.
const DIFFERENT: usize = 12;

/// Functions that are shown of those that are not.
const OTHERS: usize = 5;

/// Below this share of complete stacks, times of callers are too small.
const COMPLETE: f64 = 0.99;

/// On a terminal: for each sampled cell the functions that differ, the largest of the others, and how the
/// placebo fared.
pub(crate) fn terminal(cells: &[SampledCell], plan: &Plan, width: usize) -> Vec<String> {
    cells
        .iter()
        .flat_map(|cell| lines(cell, plan, width))
        .collect()
}

/// All cells as text for a terminal of that width.
pub fn sampled_text(cells: &[SampledCell], plan: &Plan, width: usize) -> String {
    terminal(cells, plan, width).join("\n")
}

/// All cells as Markdown.
pub fn sampled_markdown(cells: &[SampledCell], plan: &Plan) -> String {
    fit(sections(cells, plan), LIMIT)
}

/// In Markdown, with a heading; nothing where nothing was sampled.
pub(crate) fn sections(cells: &[SampledCell], plan: &Plan) -> Vec<Section> {
    if cells.is_empty() {
        return Vec::new();
    }
    let paragraph = |text: String| Section {
        head: vec![text],
        ..Section::default()
    };
    let mut sections = vec![paragraph("### Time by function\n".to_owned())];
    for cell in cells {
        sections.extend([
            paragraph(format!("{}\n", escape(&head(cell, plan)))),
            section(&table(cell)),
            paragraph(format!("{}\n", escape(&foot(cell)))),
            Section::list("", notes(cell), "note"),
        ]);
    }
    sections
}

/// A row for each function that is shown, for the page and for Markdown.
pub(crate) fn table(cell: &SampledCell) -> Table {
    let row = |(function, what): (&FunctionTime, &str)| {
        let change = &function.change;
        let fields = [
            what.to_owned(),
            format!("{:.0}", change.base_ns),
            format!("{:.0}", change.candidate_ns),
            interval(change),
            said(function).to_owned(),
        ];
        Line::row(function.name.clone(), fields.map(Cell::from).into())
    };
    Table {
        corner: "function".to_owned(),
        columns: vec![
            Column::of_words("time"),
            Column::of("base, ns/op"),
            Column::of("candidate, ns/op"),
            Column::of("difference"),
            Column::of_words(""),
        ],
        lines: shown(&cell.time).into_iter().map(row).collect(),
        row_noun: "function",
        label: "time by function".to_owned(),
        ..Table::default()
    }
}

/// `+22 [+7, +36]`.
pub(crate) fn interval(change: &TimeChange) -> String {
    let difference = change.candidate_ns - change.base_ns;
    format!(
        "{difference:+.0} [{:+.0}, {:+.0}]",
        change.low_ns, change.high_ns
    )
}

/// Which cell, on which servers, from how many samples.
pub(crate) fn head(cell: &SampledCell, plan: &Plan) -> String {
    let planned = plan.cell(cell.cell);
    let name = planned.map_or_else(String::new, |planned| {
        Conditions::new(plan).planned_name(planned)
    });
    let time = &cell.time;
    let (base, candidate) = time.samples;
    format!(
        "time by function, {name}: {} against {}; {} restarts, {base} and {candidate} samples, in \
         separate slices",
        resolved(plan, cell.candidate),
        resolved(plan, plan.base()),
        time.blocks
    )
}

fn lines(cell: &SampledCell, plan: &Plan, width: usize) -> Vec<String> {
    let mut lines = wrapped(&head(cell, plan), width, 0, 2);
    lines.extend(rows(&cell.time));
    lines.extend(wrapped(&foot(cell), width, 2, 4));
    for note in notes(cell) {
        lines.extend(wrapped(&format!("note: {note}"), width, 2, 4));
    }
    lines
}

fn rows(time: &SampledTime) -> Vec<String> {
    let rows = shown(time).into_iter();
    rows.map(|(function, what)| row(function, what)).collect()
}

/// Functions that are shown, with what their time is of.
fn shown(time: &SampledTime) -> Vec<(&FunctionTime, &'static str)> {
    let own = time.own.iter().map(|function| (function, "itself"));
    let inclusive = time
        .inclusive
        .iter()
        .map(|function| (function, "with what it calls"));
    let (mut different, mut others): (Vec<_>, Vec<_>) = own
        .chain(inclusive)
        .partition(|(function, _)| function.is_different());
    different.sort_by(|(a, _), (b, _)| a.p.total_cmp(&b.p));
    different.truncate(DIFFERENT);
    // A caller says again what is below it.
    others.retain(|(_, what)| *what == "itself");
    others.sort_by(|(a, _), (b, _)| size(b).total_cmp(&size(a)));
    others.truncate(OTHERS);
    different.append(&mut others);
    different
}

fn size(function: &FunctionTime) -> f64 {
    difference(function).abs()
}

fn difference(function: &FunctionTime) -> f64 {
    function.change.candidate_ns - function.change.base_ns
}

fn row(function: &FunctionTime, what: &str) -> String {
    let change = &function.change;
    format!(
        "  {:<40} {:>6.0} → {:>6.0} ns  {}  {what}, {}",
        function.name,
        change.base_ns,
        change.candidate_ns,
        interval(change),
        said(function)
    )
}

fn said(function: &FunctionTime) -> &'static str {
    match function.is_different() {
        true => "called different",
        false => "not called different",
    }
}

pub(crate) fn counts(time: &SampledTime) -> (usize, usize) {
    let all = || time.own.iter().chain(&time.inclusive);
    (
        all().filter(|function| function.is_different()).count(),
        all().count(),
    )
}

pub(crate) fn foot(cell: &SampledCell) -> String {
    let (different, all) = counts(&cell.time);
    let placebo = cell.placebo.as_ref().map_or_else(
        || "no placebo".to_owned(),
        |placebo| {
            let (different, all) = counts(placebo);
            format!("placebo: {different} of {all}")
        },
    );
    format!(
        "called different: {different} of {all} functions (each by itself or with what it calls); {placebo}"
    )
}

pub(crate) fn notes(cell: &SampledCell) -> Vec<String> {
    let time = &cell.time;
    let biased = cell.biased.then(|| {
        "sampled only by process and outside of the kernel: the sampling event makes short operations \
         50 % more expensive, and samples come late in them, so the shares of functions are biased"
            .to_owned()
    });
    let lost = (cell.lost > 0).then(|| {
        format!(
            "{} samples are missing because the buffer was full; next time take fewer per second: \
             compare --sample=N, explain --sample --rate N",
            cell.lost
        )
    });
    let truncated = (time.complete < COMPLETE).then(|| {
        let share = (1.0 - time.complete) * 100.0;
        format!(
            "{share:.1} % of the stacks are [truncated]: callers have more time than the table \
                 shows"
        )
    });
    let cost = cell.cost.map_or_else(String::new, |cost| {
        format!(
            ", which costs {:+.1} % of the CPU of an operation",
            cost * 100.0
        )
    });
    let rate = format!(
        "{} samples a second{cost}; for a function with 1 % of the time, a difference below {:.0} ns \
         is not visible",
        cell.rate, time.unseen_ns
    );
    [biased, truncated, lost, Some(rate)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {

    use super::*;
    use deltabench_model::plan::{CellId, ServerId};

    fn function(name: &str, base_ns: f64, candidate_ns: f64, p: f64) -> FunctionTime {
        FunctionTime {
            name: name.to_owned(),
            change: TimeChange {
                base_ns,
                candidate_ns,
                low_ns: candidate_ns - base_ns - 15.0,
                high_ns: candidate_ns - base_ns + 15.0,
            },
            p,
        }
    }

    fn time() -> SampledTime {
        SampledTime {
            own: vec![
                function("RelationGetIndexScan", 31.0, 78.0, 1e-4),
                function("LWLockRelease", 93.0, 100.0, 0.9),
                function("AllocSetAlloc", 500.0, 480.0, 0.4),
            ],
            inclusive: vec![function("index_beginscan", 200.0, 260.0, 0.01)],
            blocks: 8,
            samples: (38_000, 38_100),
            complete: 0.97,
            overdispersion: 1.1,
            lasting: 0.0,
            unseen_ns: 24.0,
        }
    }

    #[test]
    fn what_differs_comes_first_and_the_largest_of_the_rest_follow() {
        let rows = rows(&time());
        let names: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.split_whitespace().next())
            .collect();
        assert_eq!(
            names,
            [
                "RelationGetIndexScan",
                "index_beginscan",
                "AllocSetAlloc",
                "LWLockRelease"
            ]
        );
        assert!(rows[0].contains("31 →     78 ns  +47 [+32, +62]  itself, called different"));
        assert!(rows[3].ends_with("itself, not called different"));
    }

    #[test]
    fn the_placebo_the_cost_and_what_weakens_it_are_said() {
        let cell = SampledCell {
            cell: CellId(0),
            candidate: ServerId(2),
            time: time(),
            placebo: Some(time()),
            biased: true,
            rate: 498,
            cost: Some(0.013),
            lost: 7,
        };
        assert!(foot(&cell).starts_with("called different: 2 of 4 functions"));
        assert!(foot(&cell).ends_with("placebo: 2 of 4"));
        let notes = notes(&cell).join("\n");
        for part in [
            "biased",
            "3.0 % of the stacks are [truncated]",
            "498 samples",
            "7 samples are missing",
            "+1.3 %",
            "24 ns",
        ] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
    }
}
