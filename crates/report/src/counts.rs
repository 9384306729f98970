//! Counted instructions: a table in every form, beside what was measured or alone.

use crate::conditions::Conditions;
use crate::context::resolved;
use crate::table::tone;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Verdict};
use deltabench_compare::{Apart, CountedCell, InstructionCounts};
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::table::{Cell, Column, Line, Look, Table};

/// Key of the metric, as in the list of metrics.
pub(crate) const KEY: &str = "instructions_per_op";

/// Its unit.
pub(crate) const UNIT: &str = "instructions";

/// Spans below this are shown as such: more digits say nothing.
const SPAN_SHOWN: f64 = 0.000_001;

/// A sentence for each candidate: how many cells need more, fewer or as many instructions.
pub(crate) fn summary(counts: &InstructionCounts, plan: &Plan) -> String {
    let sentences = plan
        .candidates()
        .into_iter()
        .map(|candidate| sentence(counts, plan, candidate));
    sentences.collect::<Vec<_>>().join("\n")
}

fn sentence(counts: &InstructionCounts, plan: &Plan, candidate: ServerId) -> String {
    let sides = format!(
        "{} vs {}",
        resolved(plan, candidate),
        resolved(plan, plan.base())
    );
    let cells = || {
        counts
            .cells
            .iter()
            .filter(|cell| cell.candidate == candidate)
    };
    let of = |verdict| cells().filter(move |cell| cell.verdict == verdict);
    let conditions = Conditions::new(plan);
    let farthest = |verdict, word: &str| {
        let distance = |cell: &&CountedCell| cell.ratio.ln().abs();
        let found = of(verdict).max_by(|one, other| distance(one).total_cmp(&distance(other)));
        found.map_or_else(String::new, |cell| {
            format!(
                " ({word} {} {})",
                cell.change(),
                name(cell, plan, &conditions)
            )
        })
    };
    let limit = words::share(counts.limit);
    let mut parts = vec![
        format!(
            "{} with more instructions per operation{}",
            of(Verdict::Regression).count(),
            farthest(Verdict::Regression, "most")
        ),
        format!(
            "{} with fewer{}",
            of(Verdict::Improvement).count(),
            farthest(Verdict::Improvement, "fewest")
        ),
        format!("{} within {limit}", of(Verdict::NoChange).count()),
    ];
    let open = of(Verdict::Inconclusive).count();
    if open > 0 {
        parts.push(format!("{open} without an answer because starts differ"));
    }
    let missing = plan.cells.len().saturating_sub(cells().count());
    if missing > 0 {
        parts.push(format!("{missing} not counted"));
    }
    let mean = counts.mean(candidate).filter(|_| cells().count() > 1);
    let mean = mean.map_or_else(String::new, |mean| {
        format!("; geometric mean {:+.2} %", (mean - 1.0) * 100.0)
    });
    format!("{sides}: {}{mean}", parts.join(", "))
}

fn name(cell: &CountedCell, plan: &Plan, conditions: &Conditions<'_>) -> String {
    let planned = plan.cell(cell.cell);
    planned.map_or_else(String::new, |planned| conditions.planned_name(planned))
}

/// A table for each candidate.
pub(crate) fn tables(comparison: &Comparison, plan: &Plan) -> Vec<Table> {
    let Some(counts) = &comparison.instructions else {
        return Vec::new();
    };
    let candidates = plan.candidates().into_iter();
    candidates
        .map(|candidate| table(counts, comparison, plan, candidate))
        .filter(|table| !table.lines.is_empty())
        .collect()
}

fn table(
    counts: &InstructionCounts,
    comparison: &Comparison,
    plan: &Plan,
    candidate: ServerId,
) -> Table {
    let conditions = Conditions::new(plan);
    let beside = !counts.alone;
    let mut lines = Vec::new();
    for group in words::GROUPS {
        let of_group = |cell: &&CountedCell| {
            let planned = plan.cell(cell.cell);
            cell.candidate == candidate && planned.is_some_and(|planned| planned.group == group)
        };
        let mut cells = counts.cells.iter().filter(of_group).peekable();
        if cells.peek().is_some() {
            lines.push(Line::Heading(words::heading_in(plan, group).to_owned()));
        }
        for cell in cells {
            let mut fields = vec![
                Cell::from(grouped(cell.base.per_op)),
                Cell::from(grouped(cell.counted.per_op)),
                Cell::from(cell.change()).toned(Some(tone(cell.verdict))),
                Cell::from(span(cell)),
                Cell::from(word(cell.verdict)),
            ];
            if beside {
                fields.push(Cell::from(against(cell, comparison)));
            }
            lines.push(Line::row(name(cell, plan, &conditions), fields));
        }
    }
    let mut columns = vec![
        Column::of(resolved(plan, plan.base())),
        Column::of(resolved(plan, candidate)),
        Column::of("change"),
        Column::of("starts differ by"),
        Column::of_words(""),
    ];
    if beside {
        columns.push(Column::of_words("time"));
    }
    Table {
        title: "user instructions per operation".to_owned(),
        reading: format!(
            ": counted; above {} more is a regression",
            words::share(counts.limit)
        ),
        corner: "workload".to_owned(),
        columns,
        lines,
        row_noun: "workload",
        label: "Counted instructions".to_owned(),
        look: Look::default(),
    }
}

/// What the two servers' starts differ by, at most.
fn span(cell: &CountedCell) -> String {
    match cell.span() {
        None => "one start".to_owned(),
        Some(span) if span < SPAN_SHOWN => "0".to_owned(),
        Some(span) => format!("{:.4} %", span * 100.0),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "▼ more",
        Verdict::Improvement => "▲ fewer",
        Verdict::NoChange => "",
        Verdict::Inconclusive | Verdict::Unfit => "? open",
    }
}

/// What time said of the same cell, where it does not say what the count says.
fn against(cell: &CountedCell, comparison: &Comparison) -> &'static str {
    let mut cells = comparison.cells.iter();
    let measured = cells.find(|found| found.cell == cell.cell && found.candidate == cell.candidate);
    match measured.and_then(|measured| cell.apart(measured)) {
        Some(Apart::Opposite) => "time says the opposite",
        Some(Apart::WorkAlone) => "time does not show it",
        Some(Apart::TimeAlone) => "time changed, the work did not",
        None => "",
    }
}

/// Head of the column beside throughput and CPU.
pub(crate) const HEAD: &str = "instr/op";

/// Candidate / base of a cell, as a column beside throughput and CPU has it; absent where it was not counted.
pub(crate) fn ratio(counts: Option<&InstructionCounts>, cell: &CellComparison) -> Option<String> {
    let found = counts?.of_cell(cell.cell, cell.candidate)?;
    Some(format!("{:.4}", found.ratio))
}

/// A number of instructions: whole, in groups of three.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_whole_and_grouped() {
        assert_eq!(grouped(44_140.4).replace('\u{202f}', " "), "44 140");
        assert_eq!(grouped(999.6).replace('\u{202f}', " "), "1 000");
        assert_eq!(grouped(12.0), "12");
        assert_eq!(grouped(1_234_567.0).replace('\u{202f}', " "), "1 234 567");
    }
}
