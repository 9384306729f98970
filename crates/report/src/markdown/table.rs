//! The table with every figure of a cell in its row.

use super::escape;
use crate::conditions::Conditions;
use crate::confirmation::{ConfirmationStatus, marks, notes};
use crate::context::ReportContext;
use crate::published::{Published, published};
use crate::{means, withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Metric};
use deltabench_model::plan::Plan;

/// A column of the table: its heading, how it is aligned, its text in each cell's row.
struct Column<'a> {
    heading: &'static str,
    line: &'static str,
    text: Box<dyn Fn(&CellComparison) -> String + 'a>,
}

pub(super) struct CellTable<'a> {
    comparison: &'a Comparison,
    plan: &'a Plan,
    context: &'a ReportContext,
    columns: Vec<Column<'a>>,
}

impl<'a> CellTable<'a> {
    pub(super) fn new(
        comparison: &'a Comparison,
        plan: &'a Plan,
        context: &'a ReportContext,
    ) -> Self {
        let conditions = Conditions::new(plan);
        let mut table = Self {
            comparison,
            plan,
            context,
            columns: Vec::new(),
        };
        let any = |has: fn(&CellComparison) -> bool| comparison.cells.iter().any(has);
        let aged = conditions.any_state();
        table.add("workload", "---", true, move |cell| {
            label(&conditions, aged, cell)
        });
        table.add(words::workers_head(plan), "--:", true, |cell| {
            cell.clients.to_string()
        });
        table.add("state", "---", aged, |cell| {
            plan.cell(cell.cell)
                .map_or_else(String::new, |planned| planned.state.word().to_owned())
        });
        table.add("candidate", "---", plan.candidates().len() > 1, |cell| {
            escape(&cell.candidate_name)
        });
        for (heading, metric) in [
            ("throughput", Metric::Throughput),
            ("CPU/op", Metric::ServerCpuPerOperation),
        ] {
            let text = move |cell: &CellComparison| relative(cell, metric, plan);
            table.add(heading, "---", true, text);
        }
        for (heading, metric) in [
            ("p50 µs", Metric::LatencyP50),
            ("p99 µs", Metric::LatencyP99),
        ] {
            table.add(heading, "---", true, move |cell| {
                words::metric(cell, metric)
                    .map_or_else(|| words::UNKNOWN.to_owned(), words::from_to)
            });
        }
        table.add(
            "published figure",
            "---",
            is_published(comparison, plan),
            |cell| published_words(cell, plan),
        );
        table.add("δ", "--:", true, |cell| {
            format!("±{}", words::share(cell.delta))
        });
        table.add("p (BH)", "--:", any(|cell| cell.p_bh.is_some()), |cell| {
            cell.p_bh.map_or_else(String::new, words::p_value)
        });
        table.add(
            "confirmed",
            "---",
            any(|cell| ConfirmationStatus::of(cell).is_some()),
            |cell| {
                ConfirmationStatus::of(cell)
                    .map_or_else(String::new, |status| status.phrase().to_owned())
            },
        );
        table.add("verdict", "---", true, move |cell| {
            judged(cell, comparison, context)
        });
        table
    }

    fn add(
        &mut self,
        heading: &'static str,
        line: &'static str,
        shown: bool,
        text: impl Fn(&CellComparison) -> String + 'a,
    ) {
        if shown {
            self.columns.push(Column {
                heading,
                line,
                text: Box::new(text),
            });
        }
    }

    /// Headings and rule.
    pub(super) fn head(&self) -> Vec<String> {
        let headings = self.columns.iter().map(|column| column.heading.to_owned());
        let rules: Vec<&str> = self.columns.iter().map(|column| column.line).collect();
        vec![row(headings.collect()), format!("|{}|", rules.join("|"))]
    }

    /// A row for each cell, then the means.
    pub(super) fn rows(&self) -> Vec<String> {
        let cells = self.comparison.cells.iter().map(|cell| {
            let fields = self.columns.iter().map(|column| (column.text)(cell));
            row(fields.collect())
        });
        let candidates = self.plan.candidates().into_iter();
        let means =
            candidates.flat_map(|candidate| means::shown(self.comparison, self.plan, candidate));
        cells
            .chain(means.map(|summary| row(self.mean(summary))))
            .collect()
    }

    fn mean(&self, summary: &GroupSummary) -> Vec<String> {
        let of = summary
            .group
            .map_or("all cells", |group| words::heading_in(self.plan, group));
        let columns = self.columns.iter().map(|column| match column.heading {
            "workload" => format!(
                "*{} ({of})*",
                means::name(summary, self.comparison, self.context)
            ),
            "candidate" => escape(&summary.candidate_name),
            "throughput" => words::ratio_interval(&summary.throughput),
            "CPU/op" => summary
                .server_cpu
                .as_ref()
                .map_or_else(|| words::UNKNOWN.to_owned(), words::ratio_interval),
            _ => String::new(),
        });
        columns.collect()
    }
}

fn published_words(cell: &CellComparison, plan: &Plan) -> String {
    let figure = published(cell, plan).filter(Published::differs);
    figure.map_or_else(String::new, |figure| escape(&figure.words()))
}

/// Whether a published figure is anything but operations per second.
fn is_published(comparison: &Comparison, plan: &Plan) -> bool {
    let cells = comparison.cells.iter();
    cells
        .filter_map(|cell| published(cell, plan))
        .any(|figure| figure.differs())
}

/// A row of a table.
pub(super) fn row(fields: Vec<String>) -> String {
    format!("| {} |", fields.join(" | "))
}

/// Candidate / base with its interval.
pub(super) fn relative(cell: &CellComparison, metric: Metric, plan: &Plan) -> String {
    let withheld = withheld::of_cell(plan, cell.blocks).filter(|_| metric == Metric::Throughput);
    words::metric(cell, metric).map_or_else(
        || words::UNKNOWN.to_owned(),
        |metric| withheld.unwrap_or_else(|| words::ratio_interval(&metric.ratio)),
    )
}

/// Sign, marks, verdict and reason.
pub(super) fn judged(
    cell: &CellComparison,
    comparison: &Comparison,
    context: &ReportContext,
) -> String {
    let mut texts: Vec<String> = withdrawn::note(context, cell.cell).into_iter().collect();
    texts.push(words::judged(cell));
    texts.extend(notes(cell, &comparison.stopping));
    format!(
        "{}{} {}",
        words::sign(cell.verdict),
        escape(&marks(cell)),
        escape(&texts.join("; "))
    )
}

/// A workload's name; its state has a column where any has one.
fn label(conditions: &Conditions<'_>, aged: bool, cell: &CellComparison) -> String {
    escape(&if aged {
        conditions.label_without_state(cell)
    } else {
        conditions.label(cell)
    })
}
