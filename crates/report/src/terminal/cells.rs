//! A line for each cell; a second one only where its sign does not say why.

use super::TerminalOptions;
use super::columns::{Columns, same_workers};
use crate::axis::axis_limit;
use crate::conditions::Conditions;
use crate::confirmation::{beyond_marks, marks, notes, short_legend};
use crate::context::ReportContext;
use crate::lines::{left, wrapped};
use crate::{counts, differences, means, withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Verdict};
use deltabench_model::plan::{Group, Plan, ServerId};

/// Verdicts in the order of the legend.
const VERDICTS: [Verdict; 5] = [
    Verdict::Regression,
    Verdict::Improvement,
    Verdict::NoChange,
    Verdict::Inconclusive,
    Verdict::Unfit,
];

/// What a reason may begin with that sign, interval and δ of the row say already.
const SAID: [&str; 3] = ["slower by ", "faster by ", "no change beyond "];

/// Cells of a group whose mean the short form shows.
const MEAN_CELLS: u32 = 4;

pub(super) struct CellTable<'a> {
    comparison: &'a Comparison,
    context: &'a ReportContext,
    conditions: Conditions<'a>,
    options: TerminalOptions,
    width: usize,
    /// Columns for signs and marks.
    signs: usize,
    /// Columns for names.
    names: usize,
    /// Whether names stand on lines of their own.
    names_above: bool,
    columns: Columns<'a>,
}

impl<'a> CellTable<'a> {
    pub(super) fn new(
        comparison: &'a Comparison,
        plan: &'a Plan,
        context: &'a ReportContext,
        options: TerminalOptions,
    ) -> Self {
        let cells = &comparison.cells;
        let width = options.width.max(60);
        let conditions = Conditions::new(plan);
        let means: Vec<_> = plan
            .candidates()
            .into_iter()
            .flat_map(|candidate| means::shown(comparison, plan, candidate))
            .collect();
        let mean_names = means
            .iter()
            .map(|mean| means::name(mean, comparison, context).chars().count());
        let names = mean_names
            .chain([conditions.widest(), head(plan).chars().count()])
            .max()
            .unwrap_or(0);
        let signs = cells.iter().map(|cell| signs(cell).chars().count());
        let signs = signs.max().unwrap_or(1) + 1;
        let limit = axis_limit(comparison);
        let (columns, names_above) =
            Columns::new(plan, limit, comparison, &means, (width, signs + names));
        Self {
            comparison,
            context,
            conditions,
            options,
            width,
            signs,
            names: if names_above { 0 } else { names },
            names_above,
            columns,
        }
    }

    /// What is not as usual, as a line; none where all is.
    pub(super) fn conditions(&self) -> Vec<String> {
        let unusual = self.conditions.unusual();
        if unusual.is_empty() {
            return Vec::new();
        }
        let text = format!("conditions: {}", unusual.join("; "));
        wrapped(&text, self.width, 0, 2)
    }

    /// The head and the rows of a candidate.
    pub(super) fn of(&self, candidate: ServerId) -> Vec<String> {
        let plan = self.conditions.plan();
        let mut lines = self.line("", &head(plan), &self.columns.head());
        for group in words::GROUPS {
            let of_group =
                |cell: &&CellComparison| cell.candidate == candidate && cell.group == group;
            let mut cells = self.comparison.cells.iter().filter(of_group).peekable();
            if cells.peek().is_some() {
                lines.push(words::heading_in(plan, group).to_owned());
                lines.extend(cells.flat_map(|cell| self.row(cell)));
                lines.extend(self.mean(candidate, Some(group)));
            }
        }
        let all = self.mean(candidate, None);
        if !all.is_empty() {
            lines.push("All cells".to_owned());
            lines.extend(all);
        }
        lines
    }

    /// The geometric mean of a group, or of all cells, as a row without a verdict. One of a few cells has no
    /// row in the short form.
    fn mean(&self, candidate: ServerId, group: Option<Group>) -> Vec<String> {
        let shown = means::shown(self.comparison, self.conditions.plan(), candidate);
        let found = shown.into_iter().find(|summary| summary.group == group);
        let found = found
            .filter(|summary| self.options.verbose || group.is_none() || summary.of >= MEAN_CELLS);
        found.map_or_else(Vec::new, |summary| {
            let name = means::name(summary, self.comparison, self.context);
            self.line("", &name, &self.columns.mean(summary))
        })
    }

    /// Sign, name and columns; the name above them where there is no room beside.
    fn line(&self, signs: &str, name: &str, columns: &str) -> Vec<String> {
        let signs = left(signs, self.signs);
        if self.names_above {
            vec![
                format!("{signs}{name}"),
                format!("{}{columns}", " ".repeat(self.signs)),
            ]
        } else {
            vec![format!("{signs}{}{columns}", left(name, self.names))]
        }
    }

    fn row(&self, cell: &CellComparison) -> Vec<String> {
        let name = self.conditions.label(cell);
        let mut lines = self.line(&signs(cell), &name, &self.columns.cell(cell));
        let reason = self.reason(cell);
        if !reason.is_empty() {
            let beside = lines
                .last_mut()
                .filter(|line| line.chars().count() + 2 + reason.chars().count() <= self.width);
            match beside {
                Some(line) => line.push_str(&format!("  {reason}")),
                None => {
                    let indent = self.signs + 2;
                    lines.extend(wrapped(&reason, self.width, indent, indent));
                }
            }
        }
        lines.extend(self.differences(cell));
        if let Some(first) = lines.first_mut().filter(|_| self.options.colour) {
            let (sign, code) = (signs(cell), words::paint(cell.verdict));
            *first = first.replacen(&sign, &format!("\u{1b}[{code}m{sign}\u{1b}[0m"), 1);
        }
        lines
    }

    /// What is to be said of a cell beyond its row.
    fn reason(&self, cell: &CellComparison) -> String {
        let stopping = &self.comparison.stopping;
        let withdrawn = withdrawn::note(self.context, cell.cell);
        let mut texts: Vec<String> = withdrawn.into_iter().collect();
        if self.options.verbose {
            texts.push(differences::judged_without(cell));
            texts.extend(notes(cell, stopping));
        } else {
            let unsaid = unsaid(&cell.reason);
            let plan = self.conditions.plan();
            texts.extend(unsaid.map(|text| differences::with_cpu(&text, cell, plan)));
            texts.extend(beyond_marks(cell, stopping));
        }
        texts.join("; ")
    }

    /// What an operation takes more or less, on a line of its own. In the short form only the second line of
    /// a change has both, because the rows of all others would be twice as long.
    fn differences(&self, cell: &CellComparison) -> Vec<String> {
        let found = differences::both(cell, self.conditions.plan());
        let text = found.filter(|_| self.options.verbose);
        let indent = self.signs + 2;
        text.map_or_else(Vec::new, |text| wrapped(&text, self.width, indent, indent))
    }

    /// What the signs in the table mean: those that occur.
    pub(super) fn legend(&self) -> Vec<String> {
        let cells = &self.comparison.cells;
        let mut texts = vec!["candidate / base [95 % interval]".to_owned()];
        let unpaired = withheld::unpaired(self.conditions.plan());
        texts.extend(unpaired.map(str::to_owned));
        texts.extend(withheld::controls(self.conditions.plan()).map(str::to_owned));
        if self.columns.has_halves() {
            texts.push("± half of it".to_owned());
        }
        if self.columns.has_wide(self.comparison) {
            texts.push(words::wide_meaning());
        }
        if self.comparison.instructions.is_some() {
            texts.push(format!("{} counted", counts::HEAD));
        }
        if self.columns.has_bar() {
            texts.push("┊ ±δ".to_owned());
        }
        let plan = self.conditions.plan();
        let void = means::legend(self.comparison, plan, self.context).is_some();
        for verdict in VERDICTS {
            let mut of = cells.iter().map(|cell| cell.verdict);
            if of.any(|found| found == verdict) || (void && verdict == Verdict::Unfit) {
                texts.push(meaning(verdict));
            }
        }
        let marks = short_legend(cells).into_iter();
        texts.extend(marks.map(|(mark, meaning)| format!("{mark} {meaning}")));
        // A sign stays with its word.
        let glued: Vec<String> = texts
            .iter()
            .map(|text| text.replace(' ', "\u{a0}"))
            .collect();
        wrapped(&glued.join(", "), self.width, 0, 2)
    }
}

/// A verdict's sign with what it means.
fn meaning(verdict: Verdict) -> String {
    let more = match verdict {
        Verdict::NoChange => " beyond ±δ",
        Verdict::Unfit => ", do not use",
        _ => "",
    };
    format!("{} {}{more}", words::sign(verdict), words::verdict(verdict))
}

/// The head of the names, with the number of clients where all cells have the same.
fn head(plan: &Plan) -> String {
    let what = if plan.work.is_embedded() {
        "step"
    } else {
        "workload"
    };
    same_workers(plan).map_or_else(
        || what.to_owned(),
        |number| format!("{what}, {}", words::workers(plan, number)),
    )
}

/// The verdict's sign and the cell's marks.
fn signs(cell: &CellComparison) -> String {
    format!("{}{}", words::sign(cell.verdict), marks(cell))
}

/// A reason without what the row says itself.
fn unsaid(reason: &str) -> Option<String> {
    let reason = reason.strip_prefix("inconclusive: ").unwrap_or(reason);
    let said = SAID.iter().any(|start| reason.starts_with(start));
    let rest = if said {
        reason.split_once("; ").map_or("", |(_, rest)| rest)
    } else {
        reason
    };
    Some(rest.to_owned()).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::unsaid;

    #[test]
    fn a_reason_says_what_the_row_does_not() {
        let cases = [
            ("no change beyond ±2 % (measurably slower by 1.1 %)", None),
            ("slower by 1.7 % to 3.3 % (look 1, recurred)", None),
            (
                "no change beyond ±3 %; CPU per operation: higher by 3.1 % to 4.0 %",
                Some("CPU per operation: higher by 3.1 % to 4.0 %"),
            ),
            ("placebo is off by +2.4 %", Some("placebo is off by +2.4 %")),
            (
                "inconclusive: needs 4 more blocks",
                Some("needs 4 more blocks"),
            ),
        ];
        for (reason, expected) in cases {
            assert_eq!(unsaid(reason).as_deref(), expected, "{reason}");
        }
    }
}
