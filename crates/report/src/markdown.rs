//! A comparison for a pull request.

use crate::conditions::Conditions;
use crate::context::{ReportContext, planned_cell};
use crate::published::{Published, published};
use crate::remarks::remarks;
use crate::standing::{Standing, legend, marks, notes};
use crate::summary::{shown_summaries, summary};
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Metric};
use deltabench_model::plan::Plan;

/// Markdown with a table (GitHub's dialect): summary, a row per cell, means, remarks, findings.
///
/// Columns that would be empty or say the usual in every row are left out.
#[must_use]
pub fn markdown(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let mut lines: Vec<String> = summary(comparison, plan)
        .lines()
        .map(|line| format!("**{}**\n", escape(line)))
        .collect();
    let conditions = Conditions::new(plan);
    let unusual = conditions.unusual();
    if !unusual.is_empty() {
        lines.push(format!("conditions: {}\n", escape(&unusual.join("; "))));
    }
    let table = Table::new(comparison, plan, conditions);
    lines.extend(table.lines());
    lines.push(String::new());
    let mut reading =
        "Throughput and CPU/op are candidate / base with 95 % interval over restart blocks"
            .to_owned();
    for (mark, meaning) in legend(&comparison.cells) {
        reading.push_str(&format!("; {mark} {meaning}"));
    }
    lines.push(format!("{reading}."));
    lines.push(String::new());
    let remarks = remarks(comparison, plan, context);
    lines.extend(remarks.iter().map(|text| format!("- {}", escape(text))));
    let finding = |f: &deltabench_model::finding::Finding| {
        format!("- {}: {}", words::severity(f.severity), escape(&f.text))
    };
    lines.extend(comparison.findings.iter().map(finding));
    lines.push(String::new());
    let made = format!(
        "run {}, deltabench {}",
        context.run, context.deltabench_version
    );
    lines.push(format!(
        "{}: {}",
        escape(&made),
        escape(&words::shell(&plan.command))
    ));
    lines.join("\n") + "\n"
}

/// A column of the table: its heading, how it is aligned, its text in each cell's row.
struct Column<'a> {
    heading: &'static str,
    line: &'static str,
    text: Box<dyn Fn(&CellComparison) -> String + 'a>,
}

struct Table<'a> {
    comparison: &'a Comparison,
    plan: &'a Plan,
    columns: Vec<Column<'a>>,
}

impl<'a> Table<'a> {
    fn new(comparison: &'a Comparison, plan: &'a Plan, conditions: Conditions<'a>) -> Self {
        let mut table = Self {
            comparison,
            plan,
            columns: Vec::new(),
        };
        let any = |has: fn(&CellComparison) -> bool| comparison.cells.iter().any(has);
        let aged = conditions.any_state();
        table.add("workload", "---", true, move |cell| {
            escape(&if aged {
                conditions.label_without_state(cell)
            } else {
                conditions.label(cell)
            })
        });
        table.add("clients", "--:", true, |cell| cell.clients.to_string());
        table.add("state", "---", aged, |cell| {
            planned_cell(plan, cell.cell)
                .map_or_else(String::new, |planned| planned.state.word().to_owned())
        });
        table.add("candidate", "---", plan.candidates().len() > 1, |cell| {
            escape(&cell.candidate_name)
        });
        for (heading, metric) in [
            ("throughput", Metric::Throughput),
            ("CPU/op", Metric::ServerCpuPerOperation),
        ] {
            table.add(heading, "---", true, move |cell| relative(cell, metric));
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
            |cell| {
                published(cell, plan)
                    .filter(Published::differs)
                    .map_or_else(String::new, |figure| escape(&figure.words()))
            },
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
            any(|cell| Standing::of(cell).is_some()),
            |cell| {
                Standing::of(cell).map_or_else(String::new, |standing| standing.phrase().to_owned())
            },
        );
        table.add("verdict", "---", true, |cell| judged(cell, comparison));
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

    fn lines(&self) -> Vec<String> {
        let row = |fields: Vec<String>| format!("| {} |", fields.join(" | "));
        let headings = self.columns.iter().map(|column| column.heading.to_owned());
        let rules: Vec<&str> = self.columns.iter().map(|column| column.line).collect();
        let mut lines = vec![row(headings.collect()), format!("|{}|", rules.join("|"))];
        for cell in &self.comparison.cells {
            let fields = self.columns.iter().map(|column| (column.text)(cell));
            lines.push(row(fields.collect()));
        }
        for candidate in self.plan.candidates() {
            for summary in shown_summaries(self.comparison, candidate) {
                lines.push(row(self.mean(summary)));
            }
        }
        lines
    }

    fn mean(&self, summary: &GroupSummary) -> Vec<String> {
        let of = summary.group.map_or("all cells", words::heading);
        let columns = self.columns.iter().map(|column| match column.heading {
            "workload" => format!("*{} ({of})*", words::mean_of(summary)),
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

/// Whether a published figure is anything but operations per second.
fn is_published(comparison: &Comparison, plan: &Plan) -> bool {
    let cells = comparison.cells.iter();
    cells
        .filter_map(|cell| published(cell, plan))
        .any(|figure| figure.differs())
}

fn relative(cell: &CellComparison, metric: Metric) -> String {
    words::metric(cell, metric).map_or_else(
        || words::UNKNOWN.to_owned(),
        |metric| words::ratio_interval(&metric.ratio),
    )
}

fn judged(cell: &CellComparison, comparison: &Comparison) -> String {
    let mut texts = vec![words::judged(cell)];
    texts.extend(notes(cell, &comparison.stopping));
    format!(
        "{}{} {}",
        words::sign(cell.verdict),
        escape(&marks(cell)),
        escape(&texts.join("; "))
    )
}

/// Text that Markdown shows as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
