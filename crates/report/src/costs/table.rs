//! The table of costs for a terminal.

use super::{Figure, columns, figure, per_second};
use crate::conditions::Conditions;
use crate::context::{ReportContext, resolved};
use crate::lines::wrapped;
use crate::terminal::TerminalOptions;
use crate::{withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Difference, Moved, Ratio};
use deltabench_model::plan::{CellId, Plan, ServerId};

/// Names of servers that are longer get a line of their own.
const NAME: usize = 24;

/// What the factor behind a move says.
const PLACEBOS_OWN: &str = "the most surprising counters first; \"n x the placebo's own\" means that the \
                            counter moved n times as far as it typically moves between two copies of the \
                            base";
/// A larger factor is not printed: the placebo's own move is then all but nothing.
const MOST_TIMES: f64 = 1000.0;

/// How much of an interval is printed, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `1.026 [1.021, 1.031]`.
    Ends,
    /// `1.026 ±0.005`.
    HalfWidth,
    /// `1.026`.
    Alone,
}

/// What each operation cost, cell by cell: CPU, context switches, reads, KB read and written for each
/// operation and operations per second, absolute for each server and relative to the base; then what moved.
///
/// Shape: the published columns in their order; one that no cell has is left out and named below. Intervals
///        as far as the width allows. Lines of at most `width` columns, but names of servers are not cut.
pub fn costs_table(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> String {
    let wrap = |line: &String| wrapped(line, options.width.max(60), 0, 2);
    let mut lines: Vec<String> = Vec::new();
    for sentence in withdrawn::sentences(plan, context) {
        lines.extend(wrap(&sentence));
    }
    lines.extend(names(plan).iter().flat_map(wrap));
    for block in blocks(comparison, plan, options.width) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(block);
    }
    lines.push(String::new());
    lines.extend(
        legend(comparison, plan, options.width)
            .iter()
            .flat_map(wrap),
    );
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n") + "\n"
}

/// The lines of each cell, without the legend.
pub(crate) fn blocks(comparison: &Comparison, plan: &Plan, width: usize) -> Vec<Vec<String>> {
    let table = CostTable::new(comparison, plan, width.max(60));
    table.cells.iter().map(|cells| table.block(cells)).collect()
}

/// Who is who, where the names are too long to stand in the rows; else nothing.
pub(crate) fn names(plan: &Plan) -> Vec<String> {
    let sides = std::iter::once(plan.base()).chain(plan.candidates());
    let sides: Vec<ServerId> = sides.collect();
    let long = |id: &ServerId| resolved(plan, *id).chars().count() > NAME;
    if !sides.iter().any(long) {
        return Vec::new();
    }
    let line = |id| format!("{}: {}", server(plan, id), resolved(plan, id));
    sides.into_iter().map(line).collect()
}

/// What a server is called in the rows.
fn server(plan: &Plan, id: ServerId) -> String {
    let candidates = plan.candidates();
    let sides = candidates.iter().copied().chain([plan.base()]);
    let mut names = sides.map(|id| resolved(plan, id));
    if names.all(|name| name.chars().count() <= NAME) {
        return resolved(plan, id);
    }
    match (0..)
        .zip(&candidates)
        .find(|(_, candidate)| **candidate == id)
    {
        None => "base".to_owned(),
        Some(_) if candidates.len() == 1 => "candidate".to_owned(),
        Some((place, _)) => {
            let place: u32 = place;
            format!("candidate {}", place + 1)
        }
    }
}

/// How to read the table.
pub(crate) fn legend(comparison: &Comparison, plan: &Plan, width: usize) -> Vec<String> {
    if comparison.cells.iter().all(|cell| cell.costs.is_empty()) {
        return vec!["no costs were collected in this run".to_owned()];
    }
    let table = CostTable::new(comparison, plan, width.max(60));
    let interval = if table.style == Style::Alone {
        ""
    } else {
        " with 95 % interval"
    };
    let mut lines: Vec<String> = withheld::unpaired(plan)
        .map(str::to_owned)
        .into_iter()
        .collect();
    lines.extend([
        if comparison.sessions.is_some() {
            "Costs are from all blocks of the first session that counts. o/s and the judged CPU/op are over \
             all sessions."
        } else {
            "Costs are from all blocks, also those before a detection. If a cell has fresh blocks, the \
             judged CPU/op and o/s are from these only."
        }
        .to_owned(),
        format!(
            "The upper rows are totals, but o/s is a mean over blocks. The relative row is the mean over \
             blocks of candidate / base{interval}; 1.0 is equal. A figure with a sign is a difference, \
             because one side was 0 in some block; 0 means no difference. {}",
            if plan.work.is_embedded() {
                "o is an operation; in a range step it is a seek with its nexts."
            } else {
                "o is the published unit of work: a query, or 1000 rows of a scan."
            }
        ),
    ]);
    lines.extend(table.meanings().map(str::to_owned));
    if table.has_wide() {
        lines.push(words::wide_meaning());
    }
    if comparison.cells.iter().any(|cell| !cell.moved.is_empty()) {
        lines.push(format!("moved: {PLACEBOS_OWN}"));
    }
    let mut moves = comparison.cells.iter().flat_map(|cell| &cell.moved);
    if moves.any(|moved| moved.text.contains("[×")) {
        lines.push(
            "[×0.1, ×0.2]: candidate / base in the mean of blocks lies between these".to_owned(),
        );
    }
    let absent: Vec<&str> = columns(plan)
        .iter()
        .filter(|(_, key)| !table.columns.iter().any(|column| column.key == *key))
        .map(|(name, _)| *name)
        .collect();
    if !absent.is_empty() {
        lines.push(format!("not available here: {}", absent.join(", ")));
    }
    lines
}

struct Column {
    name: &'static str,
    key: &'static str,
    width: usize,
}

struct CostTable<'a> {
    plan: &'a Plan,
    conditions: Conditions<'a>,
    /// The candidates of each cell.
    cells: Vec<Vec<&'a CellComparison>>,
    columns: Vec<Column>,
    style: Style,
    width: usize,
}

impl<'a> CostTable<'a> {
    fn new(comparison: &'a Comparison, plan: &'a Plan, width: usize) -> Self {
        let mut ids: Vec<CellId> = comparison.cells.iter().map(|cell| cell.cell).collect();
        ids.dedup();
        let of = |id: CellId| {
            let all = comparison.cells.iter();
            all.filter(move |cell| cell.cell == id).collect()
        };
        let known = |key| {
            let mut all = comparison.cells.iter();
            all.any(|cell| figure(cell, plan, key).is_some())
        };
        let columns = columns(plan)
            .iter()
            .copied()
            .filter(|(_, key)| known(key))
            .map(|(name, key)| Column {
                name,
                key,
                width: 0,
            });
        let mut table = Self {
            plan,
            conditions: Conditions::new(plan),
            cells: ids.into_iter().map(of).collect(),
            columns: columns.collect(),
            style: Style::Alone,
            width,
        };
        table.fit();
        table
    }

    /// Takes as much of the intervals as the width allows, with columns as wide as their widest text.
    fn fit(&mut self) {
        let names = self.cells.iter().flatten();
        let name = names
            .map(|cell| self.ratio_name(cell).chars().count())
            .chain([server(self.plan, self.plan.base()).chars().count()])
            .max()
            .unwrap_or(0);
        for style in [Style::Ends, Style::HalfWidth, Style::Alone] {
            self.style = style;
            let widths: Vec<usize> = self
                .columns
                .iter()
                .map(|column| self.widest(column))
                .collect();
            let all = 2 + widths.iter().map(|width| width + 2).sum::<usize>() + name;
            for (column, width) in std::iter::zip(&mut self.columns, widths) {
                column.width = width;
            }
            if all <= self.width {
                return;
            }
        }
    }

    /// What the columns mean that the table has.
    fn meanings(&self) -> impl Iterator<Item = &'static str> + use<> {
        let embedded = self.plan.work.is_embedded();
        let has = |name: &str| self.columns.iter().any(|column| column.name == name);
        let others = ["cs/o", "r/o", "rKB/o", "wKB/o"].into_iter().any(has);
        let of_engine = "cpu is counted in the turns, bc miss and cmp in separate turns. All other columns \
                         are of whole steps, with their wait for compactions.";
        let cpu = "cpu/o is not CPU/op: cpu/o counts the whole host (servers, client and all else) in \
                   percent of all cores x s, CPU/op counts the server alone. So their ratios differ. Do not \
                   compare cpu/o between machines.";
        let device = "cs/o is of the server; r/o, rKB/o and wKB/o are of the device, by any process. The \
                      lines below are per second, with sizes and times of requests as iostat has them.";
        [
            embedded.then_some(of_engine),
            (!embedded && has("cpu/o")).then_some(cpu),
            (!embedded && others).then_some(device),
        ]
        .into_iter()
        .flatten()
    }

    fn widest(&self, column: &Column) -> usize {
        let texts = self.cells.iter().flatten().flat_map(|cell| {
            let found = figure(cell, self.plan, column.key);
            [
                absolute(found.map(|figure| figure.base)),
                absolute(found.map(|figure| figure.candidate)),
                relative(found, self.style),
            ]
        });
        texts
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
            .max(column.name.len())
    }

    /// Whether a ratio is printed with a factor.
    fn has_wide(&self) -> bool {
        let mut cells = self.cells.iter().flatten();
        cells.any(|cell| {
            let mut columns = self.columns.iter();
            columns.any(|column| {
                relative(figure(cell, self.plan, column.key), self.style).contains(words::WIDE)
            })
        })
    }

    fn ratio_name(&self, cell: &CellComparison) -> String {
        format!("{} / base", server(self.plan, cell.candidate))
    }

    fn block(&self, cells: &[&CellComparison]) -> Vec<String> {
        let Some(first) = cells.first() else {
            return Vec::new();
        };
        let row = |of: &dyn Fn(&Column) -> String, name: &str| {
            let columns = self.columns.iter();
            let texts =
                columns.map(|column| format!("{:<width$}", of(column), width = column.width));
            format!("  {}  {name}", texts.collect::<Vec<_>>().join("  "))
        };
        let known = |cell: &CellComparison, column: &Column| figure(cell, self.plan, column.key);
        let mut lines = vec![
            self.conditions.name(first),
            row(&|column| column.name.to_owned(), words::server(self.plan)),
            row(
                &|column| absolute(known(first, column).map(|figure| figure.base)),
                &server(self.plan, self.plan.base()),
            ),
        ];
        lines.extend(cells.iter().map(|cell| {
            let of = |column: &Column| absolute(known(cell, column).map(|figure| figure.candidate));
            row(&of, &server(self.plan, cell.candidate))
        }));
        lines.extend(cells.iter().map(|cell| {
            let of = |column: &Column| relative(known(cell, column), self.style);
            row(&of, &self.ratio_name(cell))
        }));
        if !self.plan.work.is_embedded() {
            let base = per_second(first, self.plan, |figure| figure.base);
            lines.extend(self.per_second(&base, &server(self.plan, self.plan.base())));
            for cell in cells {
                let own = per_second(cell, self.plan, |figure| figure.candidate);
                lines.extend(self.per_second(&own, &server(self.plan, cell.candidate)));
            }
        }
        for cell in cells {
            lines.extend(self.moved(cell, cells.len() > 1));
        }
        lines
    }

    /// What a server did in a second.
    fn per_second(&self, values: &[(&str, f64)], name: &str) -> Vec<String> {
        if values.is_empty() {
            return Vec::new();
        }
        let texts = values.iter();
        let texts = texts.map(|(head, value)| format!("{head} {}", words::figure(*value)));
        let text = format!("{name}: {}", texts.collect::<Vec<_>>().join(", "));
        let width = self.width.min(usize::from(u16::MAX));
        wrapped(&text, width, 2, 4)
    }

    /// The costs that moved, those of the six columns included, most surprising first.
    fn moved(&self, cell: &CellComparison, several: bool) -> Vec<String> {
        if cell.moved.is_empty() {
            return Vec::new();
        }
        let on = if several {
            format!(" on {}", cell.candidate_name)
        } else {
            String::new()
        };
        let texts: Vec<String> = cell.moved.iter().map(moved).collect();
        let text = format!("moved{on}: {}", texts.join("; "));
        let width = self.width.min(usize::from(u16::MAX));
        wrapped(&text, width, 2, 4)
    }
}

/// A move with what the placebo's own are like.
fn moved(moved: &Moved) -> String {
    if moved.surprise.is_finite() {
        let times = if moved.surprise > MOST_TIMES {
            format!("> {MOST_TIMES:.0}")
        } else if moved.surprise >= 10.0 {
            format!("{:.0}", moved.surprise)
        } else {
            format!("{:.1}", moved.surprise)
        };
        format!("{} ({times} x the placebo's own)", moved.text)
    } else {
        format!("{} (this counter never moves on the placebo)", moved.text)
    }
}

fn absolute(value: Option<f64>) -> String {
    value.map_or_else(|| words::UNKNOWN.to_owned(), words::figure)
}

fn relative(found: Option<Figure>, style: Style) -> String {
    let Some(found) = found else {
        return words::UNKNOWN.to_owned();
    };
    match (found.ratio, found.difference) {
        (Some(ratio), _) => ratio_text(&ratio, style),
        (None, Some(difference)) => difference_text(&difference, style),
        (None, None) => words::UNKNOWN.to_owned(),
    }
}

fn ratio_text(ratio: &Ratio, style: Style) -> String {
    let text = |value: f64| {
        if value < 10.0 {
            format!("{value:.3}")
        } else {
            words::figure(value)
        }
    };
    let estimate = text(ratio.estimate);
    match (style, words::ci95(ratio)) {
        (Style::Alone, _) | (_, None) => estimate,
        (Style::HalfWidth, Some(_)) => words::ratio_half(ratio),
        (Style::Ends, Some((low, high))) => format!("{estimate} [{}, {}]", text(low), text(high)),
    }
}

fn difference_text(difference: &Difference, style: Style) -> String {
    let signed = |value: f64| {
        let text = words::figure(value);
        if value < 0.0 {
            text
        } else {
            format!("+{text}")
        }
    };
    let none = |value: f64| words::figure(value) == "0";
    let certain = difference
        .ci95
        .is_none_or(|(low, high)| none(low) && none(high));
    if none(difference.estimate) && certain {
        return "0".to_owned();
    }
    let estimate = signed(difference.estimate);
    let ends = difference
        .ci95
        .filter(|(low, high)| low.is_finite() && high.is_finite());
    match (style, ends) {
        (Style::Alone, _) | (_, None) => estimate,
        (Style::HalfWidth, Some((low, high))) => {
            format!("{estimate} ±{}", words::figure((high - low) / 2.0))
        }
        (Style::Ends, Some((low, high))) => {
            format!("{estimate} [{}, {}]", signed(low), signed(high))
        }
    }
}
