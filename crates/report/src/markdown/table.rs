//! The table with every figure of a cell in its row.

use crate::conditions::Conditions;
use crate::confirmation::{ConfirmationStatus, marks, notes};
use crate::context::ReportContext;
use crate::published::{Published, published};
use crate::{counts, differences, means, withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Metric};
use deltabench_model::plan::Plan;
use deltabench_model::table::{Align, Cell, Column, Line, Row, Table};

/// The metrics that are ratios: the heads of the ratio and of the difference beside it.
pub(super) const RATIOS: [(&str, &str, Metric); 2] = [
    ("throughput", "Δ µs/op", Metric::Throughput),
    ("CPU/op", "Δ CPU µs/op", Metric::ServerCpuPerOperation),
];

/// A column of the table: its head, on which side its texts stand, what each cell has in it.
struct Part<'a> {
    head: &'static str,
    align: Align,
    text: Box<dyn Fn(&CellComparison) -> Cell + 'a>,
}

pub(super) struct CellTable<'a> {
    comparison: &'a Comparison,
    plan: &'a Plan,
    context: &'a ReportContext,
    parts: Vec<Part<'a>>,
}

impl<'a> CellTable<'a> {
    pub(super) fn new(
        comparison: &'a Comparison,
        plan: &'a Plan,
        context: &'a ReportContext,
    ) -> Self {
        let aged = Conditions::new(plan).any_state();
        let mut table = Self {
            comparison,
            plan,
            context,
            parts: Vec::new(),
        };
        let any = |has: fn(&CellComparison) -> bool| comparison.cells.iter().any(has);
        table.add(words::workers_head(plan), Align::Right, true, |cell| {
            cell.clients.to_string().into()
        });
        table.add("state", Align::Left, aged, |cell| {
            plan.cell(cell.cell)
                .map_or("", |planned| planned.state.word())
                .into()
        });
        let several = plan.candidates().len() > 1;
        table.add("candidate", Align::Left, several, |cell| {
            cell.candidate_name.as_str().into()
        });
        for (heading, difference, metric) in RATIOS {
            let text = move |cell: &CellComparison| Cell::as_is(relative(cell, metric, plan));
            table.add(heading, Align::Left, true, text);
            let has_difference = differences::any(comparison, metric, plan);
            table.add(difference, Align::Left, has_difference, move |cell| {
                Cell::as_is(differences::in_column(cell, metric, plan))
            });
        }
        let counts = comparison.instructions.as_ref();
        table.add(counts::HEAD, Align::Left, counts.is_some(), move |cell| {
            Cell::as_is(counts::ratio(counts, cell).unwrap_or_default())
        });
        for (heading, metric) in [
            ("p50 µs", Metric::LatencyP50),
            ("p99 µs", Metric::LatencyP99),
        ] {
            table.add(heading, Align::Left, true, move |cell| {
                words::metric(cell, metric)
                    .map_or_else(|| words::UNKNOWN.to_owned(), words::from_to)
                    .into()
            });
        }
        let is_shown = is_published(comparison, plan);
        table.add("published figure", Align::Left, is_shown, |cell| {
            published_words(cell, plan)
        });
        table.add("δ", Align::Right, true, |cell| {
            format!("±{}", words::share(cell.delta)).into()
        });
        let has_p = any(|cell| cell.p_bh.is_some());
        table.add("p (BH)", Align::Right, has_p, |cell| {
            Cell::as_is(cell.p_bh.map_or_else(String::new, words::p_value))
        });
        let is_confirmed = any(|cell| ConfirmationStatus::of(cell).is_some());
        table.add("measured again", Align::Left, is_confirmed, |cell| {
            ConfirmationStatus::of(cell)
                .map_or("", |status| status.phrase())
                .into()
        });
        table.add("verdict", Align::Left, true, move |cell| {
            judged(cell, comparison, context).into()
        });
        table
    }

    fn add(
        &mut self,
        head: &'static str,
        align: Align,
        shown: bool,
        text: impl Fn(&CellComparison) -> Cell + 'a,
    ) {
        if shown {
            self.parts.push(Part {
                head,
                align,
                text: Box::new(text),
            });
        }
    }

    /// A row for each cell, then the means.
    pub(super) fn table(&self) -> Table {
        let conditions = Conditions::new(self.plan);
        let aged = conditions.any_state();
        let columns = self.parts.iter().map(|part| Column {
            align: part.align,
            ..Column::of(part.head)
        });
        let cells = self.comparison.cells.iter().map(|cell| {
            let fields = self.parts.iter().map(|part| (part.text)(cell));
            Line::row(label(&conditions, aged, cell), fields.collect())
        });
        let candidates = self.plan.candidates().into_iter();
        let means =
            candidates.flat_map(|candidate| means::shown(self.comparison, self.plan, candidate));
        Table {
            corner: "workload".to_owned(),
            columns: columns.collect(),
            lines: cells
                .chain(means.map(|summary| self.mean(summary)))
                .collect(),
            row_noun: "row",
            ..Table::default()
        }
    }

    fn mean(&self, summary: &GroupSummary) -> Line {
        let of = summary
            .group
            .map_or("all cells", |group| words::heading_in(self.plan, group));
        let name = means::name(summary, self.comparison, self.context);
        let cells = self.parts.iter().map(|part| match part.head {
            "candidate" => summary.candidate_name.as_str().into(),
            "throughput" => Cell::as_is(words::ratio_interval(&summary.throughput)),
            "CPU/op" => Cell::as_is(
                summary
                    .server_cpu
                    .as_ref()
                    .map_or_else(|| words::UNKNOWN.to_owned(), words::ratio_interval),
            ),
            _ => Cell::default(),
        });
        Line::Row(Row {
            name: format!("{name} ({of})"),
            cells: cells.collect(),
            is_mean: true,
        })
    }
}

fn published_words(cell: &CellComparison, plan: &Plan) -> Cell {
    let figure = published(cell, plan).filter(Published::differs);
    figure.map_or_else(Cell::default, |figure| figure.words().into())
}

/// Whether a published figure is anything but operations per second.
fn is_published(comparison: &Comparison, plan: &Plan) -> bool {
    let cells = comparison.cells.iter();
    cells
        .filter_map(|cell| published(cell, plan))
        .any(|figure| figure.differs())
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
    texts.push(differences::judged_without(cell));
    texts.extend(notes(cell, &comparison.stopping));
    format!(
        "{}{} {}",
        words::sign(cell.verdict),
        marks(cell),
        texts.join("; ")
    )
}

/// A workload's name; its state has a column where any has one.
fn label(conditions: &Conditions<'_>, aged: bool, cell: &CellComparison) -> String {
    if aged {
        conditions.label_without_state(cell)
    } else {
        conditions.label(cell)
    }
}
