//! Which columns the table of cells has in a width, and what is in them.

use crate::axis::text_bar;
use crate::{counts, withheld, words};
use deltabench_compare::InstructionCounts;
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Metric};
use deltabench_model::plan::Plan;

/// A column after the name of the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Clients or threads.
    Workers,
    /// Throughput, candidate / base, with its interval.
    Throughput,
    /// The change that matters.
    Delta,
    /// The interval of throughput drawn in so many columns.
    Bar(usize),
    /// CPU per operation with its interval.
    Cpu,
    /// The same with half of its interval.
    CpuHalf,
    /// Counted instructions of an operation, candidate / base.
    Instructions,
    /// Latency, base → candidate.
    P50,
    P99,
}

use Column::{Bar, Cpu, CpuHalf, Delta, Instructions, P50, P99, Throughput, Workers};

/// The columns, the best first; those that a run has nothing for are left out. CPU has the count behind it.
const LAYOUTS: [&[Column]; 9] = [
    &[Workers, Throughput, Delta, Bar(21), Cpu, P50, P99],
    &[Workers, Throughput, Delta, Bar(15), Cpu, P50, P99],
    &[Workers, Throughput, Delta, Bar(15), CpuHalf, P50, P99],
    &[Workers, Throughput, Delta, Bar(11), CpuHalf, P50, P99],
    &[Workers, Throughput, Delta, Bar(11), CpuHalf, P99],
    &[Workers, Throughput, Delta, CpuHalf, P99],
    &[Workers, Throughput, Delta, Bar(11), CpuHalf],
    &[Workers, Throughput, Delta, CpuHalf],
    &[Workers, Throughput, Delta, Instructions],
];

/// Between two columns.
const GAP: &str = "  ";

/// What columns show, and how wide each is.
pub(super) struct Columns<'a> {
    pub(super) plan: &'a Plan,
    /// The end of the bar's axis, as a share.
    pub(super) limit: f64,
    counts: Option<&'a InstructionCounts>,
    list: Vec<(Column, usize)>,
}

impl<'a> Columns<'a> {
    /// The best layout that fits into `width` beside names of `names` columns; whether names have to stand on
    /// lines of their own is second.
    pub(super) fn new(
        plan: &'a Plan,
        limit: f64,
        comparison: &'a Comparison,
        means: &[&GroupSummary],
        (width, names): (usize, usize),
    ) -> (Self, bool) {
        let cells = &comparison.cells;
        let of = |layout: &[Column]| {
            let mut columns = Self {
                plan,
                limit,
                counts: comparison.instructions.as_ref(),
                list: Vec::new(),
            };
            let all = layout.iter().flat_map(|column| match column {
                Cpu | CpuHalf => vec![*column, Instructions],
                _ => vec![*column],
            });
            let kept = all.filter(|column| column.is_used(plan, comparison));
            columns.list = kept
                .map(|column| (column, columns.width_of(column, cells, means)))
                .collect();
            columns
        };
        let mut all = LAYOUTS.iter().map(|layout| of(layout));
        let fits = |columns: &Self| names + columns.width() <= width;
        match all.find(fits) {
            Some(columns) => (columns, false),
            None => (of(&[Workers, Throughput, Delta, CpuHalf]), true),
        }
    }

    /// Whether intervals are drawn.
    pub(super) fn has_bar(&self) -> bool {
        self.has(|column| matches!(column, Bar(_)))
    }

    /// Whether some figure has half of its interval only.
    pub(super) fn has_halves(&self) -> bool {
        self.has(|column| column == CpuHalf)
    }

    /// Whether a half-width is told as a factor.
    pub(super) fn has_wide(&self, comparison: &Comparison) -> bool {
        let cells = comparison.cells.iter();
        let cpu = cells.filter_map(|cell| words::metric(cell, Metric::ServerCpuPerOperation));
        let mut halves = cpu.map(|metric| words::ratio_half(&metric.ratio));
        self.has_halves() && halves.any(|half| half.contains(words::WIDE))
    }

    fn has(&self, wanted: impl Fn(Column) -> bool) -> bool {
        self.list.iter().any(|(column, _)| wanted(*column))
    }

    fn width(&self) -> usize {
        let widths = self.list.iter().map(|(_, width)| GAP.len() + width);
        widths.sum()
    }

    fn width_of(&self, column: Column, cells: &[CellComparison], means: &[&GroupSummary]) -> usize {
        let texts = cells
            .iter()
            .map(|cell| self.of_cell(column, cell))
            .chain(means.iter().map(|mean| self.of_mean(column, mean)))
            .chain([self.of_head(column)]);
        let widths = texts.map(|text| text.chars().count());
        widths.max().unwrap_or(0)
    }

    pub(super) fn head(&self) -> String {
        self.line(|column| self.of_head(column))
    }

    pub(super) fn cell(&self, cell: &CellComparison) -> String {
        self.line(|column| self.of_cell(column, cell))
    }

    pub(super) fn mean(&self, mean: &GroupSummary) -> String {
        self.line(|column| self.of_mean(column, mean))
    }

    fn line(&self, text: impl Fn(Column) -> String) -> String {
        let mut line = String::new();
        for (column, width) in &self.list {
            let text = text(*column);
            line.push_str(GAP);
            match column {
                Workers => line.push_str(&format!("{text:>width$}")),
                _ => line.push_str(&format!("{text:<width$}")),
            }
        }
        line
    }

    fn of_head(&self, column: Column) -> String {
        match column {
            Workers => words::workers_head(self.plan).to_owned(),
            Throughput => "throughput".to_owned(),
            Delta => "δ".to_owned(),
            Bar(width) => format!("{:^width$}", format!("±{}", words::share(self.limit))),
            Cpu | CpuHalf => "CPU/op".to_owned(),
            Instructions => counts::HEAD.to_owned(),
            P50 => "p50 µs".to_owned(),
            P99 => "p99 µs".to_owned(),
        }
    }

    fn of_cell(&self, column: Column, cell: &CellComparison) -> String {
        let few = withheld::of_cell(self.plan, cell.blocks);
        let ratio = |metric, write: fn(&_) -> String| {
            let found = words::metric(cell, metric);
            found.map_or_else(|| words::UNKNOWN.to_owned(), |found| write(&found.ratio))
        };
        let latency = |metric| {
            let found = words::metric(cell, metric);
            found.map_or_else(|| "-".to_owned(), words::from_to)
        };
        match column {
            Workers => cell.clients.to_string(),
            Throughput => few.unwrap_or_else(|| ratio(Metric::Throughput, words::ratio_interval)),
            Delta => words::deltas([cell]),
            Bar(width) => words::metric(cell, Metric::Throughput)
                .filter(|_| few.is_none())
                .map_or_else(String::new, |found| {
                    text_bar(&found.ratio, Some(cell.delta), self.limit, width)
                }),
            Cpu => ratio(Metric::ServerCpuPerOperation, words::ratio_interval),
            CpuHalf => ratio(Metric::ServerCpuPerOperation, words::ratio_half),
            Instructions => counts::ratio(self.counts, cell).unwrap_or_default(),
            P50 => latency(Metric::LatencyP50),
            P99 => latency(Metric::LatencyP99),
        }
    }

    fn of_mean(&self, column: Column, mean: &GroupSummary) -> String {
        let cpu = |write: fn(&_) -> String| {
            let ratio = mean.server_cpu.as_ref();
            ratio.map_or_else(|| words::UNKNOWN.to_owned(), write)
        };
        match column {
            Throughput => words::ratio_interval(&mean.throughput),
            Bar(width) => text_bar(&mean.throughput, None, self.limit, width),
            Cpu => cpu(words::ratio_interval),
            CpuHalf => cpu(words::ratio_half),
            Workers | Delta | Instructions | P50 | P99 => String::new(),
        }
    }
}

impl Column {
    /// Whether the column says something of these cells that is not the same for all of them.
    fn is_used(self, plan: &Plan, comparison: &Comparison) -> bool {
        let cells = &comparison.cells;
        let known = |metric| {
            cells
                .iter()
                .any(|cell| words::metric(cell, metric).is_some())
        };
        match self {
            Workers => same_workers(plan).is_none(),
            Bar(_) => cells
                .iter()
                .any(|cell| withheld::of_cell(plan, cell.blocks).is_none()),
            Instructions => comparison.instructions.is_some(),
            P50 => known(Metric::LatencyP50),
            P99 => known(Metric::LatencyP99),
            Throughput | Delta | Cpu | CpuHalf => true,
        }
    }
}

/// The number of clients or threads that all cells have; absent where they differ.
pub(super) fn same_workers(plan: &Plan) -> Option<u32> {
    let mut numbers = plan.cells.iter().map(|cell| cell.clients);
    let first = numbers.next()?;
    numbers.all(|number| number == first).then_some(first)
}
