//! The table on the terminal.

use crate::axis::{axis_limit, text_bar};
use crate::conditions::Conditions;
use crate::confirmation::{legend, marks, notes};
use crate::context::{ReportContext, resolved};
use crate::lines::{left, wrapped};
use crate::remarks::{explanations, remarks, totals, troubles};
use crate::summary::summary;
use crate::{counts, explained, figures, grids, means, withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, GroupSummary, Metric, Ratio};
use deltabench_compare::gate_line;
use deltabench_model::finding::Severity;
use deltabench_model::plan::{Group, Plan, ServerId};

/// How the table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal; fewer than 60 are treated as 60.
    pub width: usize,
    /// Whether verdicts are coloured. Nothing is said by colour alone.
    pub colour: bool,
}

/// Columns that the interval bar may have, the best first.
const BARS: [usize; 2] = [21, 15];
/// Fewest columns left for the reason before it goes to lines of its own.
const REASON: usize = 24;

/// The result for the terminal: what is withdrawn, summary, a row per cell, what moved, placebo and counts,
/// findings.
///
/// Shape: lines of at most `width` columns wherever the words allow; the summary is one line however long.
pub fn terminal(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> String {
    if comparison.counted_alone().is_some() {
        return counted(comparison, plan, context, options);
    }
    let table = CellTable::new(comparison, plan, context, options);
    let withdrawn = withdrawn::sentences(plan, context);
    let mut lines: Vec<String> = withdrawn.iter().flat_map(|text| table.wrap(text)).collect();
    lines.extend(summary(comparison, plan).lines().map(str::to_owned));
    let unusual = table.conditions.unusual();
    if !unusual.is_empty() {
        lines.extend(table.wrap(&format!("conditions: {}", unusual.join("; "))));
    }
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
    if context.figures.grids_in_text {
        lines.extend(grids::terminal(&context.grids, table.width, options.colour));
    }
    for counted in counts::tables(comparison, plan) {
        lines.push(String::new());
        lines.extend(crate::table::terminal::lines(
            &counted,
            table.width,
            options.colour,
        ));
    }
    lines.push(String::new());
    lines.extend(table.legend());
    lines.extend(figures::terminal(&context.figures, table.width));
    let explained = context.explained.iter();
    let sentences = explanations(comparison, plan)
        .into_iter()
        .chain(explained.filter_map(|cell| explained::sentence(cell, plan)))
        .chain(remarks(comparison, plan, context))
        .chain(totals(comparison, plan, context))
        .chain(troubles(comparison, plan, context))
        .chain(findings(comparison));
    lines.extend(sentences.flat_map(|text| table.wrap(&text)));
    let mut text = lines
        .iter()
        .map(|line| line.trim_end())
        .collect::<Vec<_>>()
        .join("\n");
    text.push('\n');
    text
}

struct CellTable<'a> {
    comparison: &'a Comparison,
    context: &'a ReportContext,
    conditions: Conditions<'a>,
    width: usize,
    colour: bool,
    workload: usize,
    ratio: usize,
    p50: usize,
    p99: usize,
    limit: f64,
    /// Whether everything of a cell is on one line.
    one_line: bool,
    /// Columns of the interval bar; 0 where there is no room.
    bar: usize,
}

impl<'a> CellTable<'a> {
    fn new(
        comparison: &'a Comparison,
        plan: &'a Plan,
        context: &'a ReportContext,
        options: TerminalOptions,
    ) -> Self {
        let cells = &comparison.cells;
        let widest = |texts: &mut dyn Iterator<Item = String>, least: usize| {
            texts
                .map(|text| text.chars().count())
                .max()
                .unwrap_or(0)
                .max(least)
        };
        let of = |metric| cells.iter().map(move |cell| latency(cell, metric));
        let ratios = cells.iter().flat_map(|cell| {
            [Metric::Throughput, Metric::ServerCpuPerOperation]
                .map(|metric| relative(cell, metric, plan))
        });
        let conditions = Conditions::new(plan);
        let mut table = Self {
            comparison,
            context,
            width: options.width.max(60),
            colour: options.colour,
            workload: conditions.widest().max("workload".len()),
            conditions,
            ratio: widest(&mut ratios.into_iter(), "throughput".len()),
            p50: widest(&mut of(Metric::LatencyP50), "p50 µs".chars().count()),
            p99: widest(&mut of(Metric::LatencyP99), "p99 µs".chars().count()),
            limit: axis_limit(comparison),
            one_line: false,
            bar: 0,
        };
        table.lay_out();
        table
    }

    /// One line with a bar, else two lines with one, else two lines: a bar says more than a line saved.
    fn lay_out(&mut self) {
        let numbers = 2 + self.workload + 2 + "clients".len() + 2 * (2 + self.ratio);
        let all = numbers + 2 + self.p50 + 2 + self.p99 + 2 + REASON;
        let width = self.width;
        let fitting = |columns: usize| BARS.into_iter().find(|bar| width >= columns + 2 + bar);
        let (one, two) = (fitting(all), fitting(numbers));
        let plan = self.conditions.plan();
        let mut cells = self.comparison.cells.iter();
        let drawn = cells.any(|cell| withheld::of_cell(plan, cell.blocks).is_none());
        (self.one_line, self.bar) = (one.is_some(), one.or(two).filter(|_| drawn).unwrap_or(0));
    }

    fn of(&self, candidate: ServerId) -> Vec<String> {
        let mut lines = vec![self.header()];
        for group in words::GROUPS {
            let cells: Vec<&CellComparison> = self
                .comparison
                .cells
                .iter()
                .filter(|cell| shown(cell, candidate, group))
                .collect();
            if !cells.is_empty() {
                lines.push(words::heading_in(self.conditions.plan(), group).to_owned());
                lines.extend(cells.into_iter().flat_map(|cell| self.row(cell)));
                lines.extend(self.mean(candidate, Some(group)));
            }
        }
        if let Some(line) = self.mean(candidate, None) {
            lines.extend(["All cells".to_owned(), line]);
        }
        lines
    }

    /// The geometric mean of a group, or of all cells, as a row without a verdict.
    fn mean(&self, candidate: ServerId, group: Option<Group>) -> Option<String> {
        let summary = means::shown(self.comparison, self.conditions.plan(), candidate)
            .into_iter()
            .find(|summary| summary.group == group)?;
        let name = format!("  {}", means::name(summary, self.comparison, self.context));
        let mut texts = vec![
            left(&name, self.workload + 2 + 2 + "clients".len()),
            left(&words::ratio_interval(&summary.throughput), self.ratio),
        ];
        if self.bar > 0 {
            texts.push(text_bar(&summary.throughput, None, self.limit, self.bar));
        }
        texts.push(mean_cpu(summary));
        Some(texts.join("  "))
    }

    fn header(&self) -> String {
        let plan = self.conditions.plan();
        let what = if plan.work.is_embedded() {
            "step"
        } else {
            "workload"
        };
        let mut texts = self.start(what, words::workers_head(plan), "throughput");
        if self.bar > 0 {
            let scale = format!("±{}", words::share(self.limit));
            texts.push(format!("{scale:^width$}", width = self.bar));
        }
        texts.push(left("CPU/op", self.ratio));
        if self.one_line {
            texts.extend([
                left("p50 µs", self.p50),
                left("p99 µs", self.p99),
                "verdict".to_owned(),
            ]);
        }
        texts.join("  ")
    }

    fn start(&self, workload: &str, clients: &str, throughput: &str) -> Vec<String> {
        let clients = format!("{clients:>7}");
        vec![
            left(workload, self.workload + 2),
            clients,
            left(throughput, self.ratio),
        ]
    }

    fn row(&self, cell: &CellComparison) -> Vec<String> {
        let name = format!("  {}", self.conditions.label(cell));
        let mut texts = self.start(
            &name,
            &cell.clients.to_string(),
            &relative(cell, Metric::Throughput, self.conditions.plan()),
        );
        if self.bar > 0 {
            let told = withheld::of_cell(self.conditions.plan(), cell.blocks).is_none();
            let throughput = words::metric(cell, Metric::Throughput).filter(|_| told);
            let bar =
                throughput.map(|m| text_bar(&m.ratio, Some(cell.delta), self.limit, self.bar));
            texts.push(left(&bar.unwrap_or_default(), self.bar));
        }
        texts.push(left(
            &relative(cell, Metric::ServerCpuPerOperation, self.conditions.plan()),
            self.ratio,
        ));
        let judged = self.judged(cell);
        let (p50, p99) = (
            latency(cell, Metric::LatencyP50),
            latency(cell, Metric::LatencyP99),
        );
        if !self.one_line {
            let known = words::metric(cell, Metric::LatencyP50).is_some();
            let latency = known.then(|| format!("; p50 {p50} µs, p99 {p99} µs"));
            let text = format!("{judged}{}", latency.unwrap_or_default());
            let mut lines = vec![texts.join("  ")];
            lines.extend(wrapped(&text, self.width, 4, 6));
            return self.painted(cell, lines, 1);
        }
        texts.extend([left(&p50, self.p50), left(&p99, self.p99)]);
        let before = texts.join("  ") + "  ";
        let column = before.chars().count();
        let mut reason = wrapped(&judged, self.width, column, column + 2).into_iter();
        let first = reason.next().unwrap_or_default();
        let mut lines = vec![before + first.trim_start()];
        lines.extend(reason);
        self.painted(cell, lines, 0)
    }

    /// Sign, marks, verdict, reason and what is to be said of it.
    fn judged(&self, cell: &CellComparison) -> String {
        let mut texts: Vec<String> = withdrawn::note(self.context, cell.cell)
            .into_iter()
            .collect();
        texts.push(format!("{} {}", signs(cell), words::judged(cell)));
        texts.extend(notes(cell, &self.comparison.stopping));
        texts.join("; ")
    }

    /// Colours the verdict's word in the line that has it.
    fn painted(&self, cell: &CellComparison, mut lines: Vec<String>, line: usize) -> Vec<String> {
        let code = words::paint(cell.verdict);
        let plain = format!("{} {}", signs(cell), words::verdict(cell.verdict));
        if let Some(line) = lines.get_mut(line).filter(|_| self.colour) {
            *line = line.replacen(&plain, &format!("\u{1b}[{code}m{plain}\u{1b}[0m"), 1);
        }
        lines
    }

    fn legend(&self) -> Vec<String> {
        let mut text =
            "throughput, CPU/op: candidate / base with 95 % interval over restart blocks, \
                        1.0 is equal; latency: base → candidate"
                .to_owned();
        if self.bar > 0 {
            let delta = words::deltas(&self.comparison.cells);
            text.push_str(&format!("; bar: throughput, │ is equal, ┊ is {delta}"));
        }
        for (mark, meaning) in legend(&self.comparison.cells) {
            text.push_str(&format!("; {mark} {meaning}"));
        }
        if let Some(meaning) = means::legend(self.comparison, self.conditions.plan(), self.context)
        {
            text.push_str(&format!("; {meaning}"));
        }
        self.wrap(&text)
    }

    fn wrap(&self, text: &str) -> Vec<String> {
        wrapped(text, self.width, 0, 2)
    }
}

fn shown(cell: &CellComparison, candidate: ServerId, group: Group) -> bool {
    cell.candidate == candidate && cell.group == group
}

/// The verdict's sign and the cell's marks.
fn signs(cell: &CellComparison) -> String {
    format!("{}{}", words::sign(cell.verdict), marks(cell))
}

fn mean_cpu(summary: &GroupSummary) -> String {
    let known = |ratio: &Ratio| words::ratio_interval(ratio);
    summary
        .server_cpu
        .as_ref()
        .map_or_else(|| words::UNKNOWN.to_owned(), known)
}

fn relative(cell: &CellComparison, metric: Metric, plan: &Plan) -> String {
    let withheld = withheld::of_cell(plan, cell.blocks).filter(|_| metric == Metric::Throughput);
    words::metric(cell, metric).map_or_else(
        || words::UNKNOWN.to_owned(),
        |m| withheld.unwrap_or_else(|| words::ratio_interval(&m.ratio)),
    )
}

fn latency(cell: &CellComparison, metric: Metric) -> String {
    words::metric(cell, metric).map_or_else(|| words::UNKNOWN.to_owned(), words::from_to)
}

/// The result of a run that counted and measured nothing: summary, tables, findings.
fn counted(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> String {
    let width = options.width.max(60);
    let wrap = |text: &str| wrapped(text, width, 0, 2);
    let withdrawn = withdrawn::sentences(plan, context);
    let mut lines: Vec<String> = withdrawn.iter().flat_map(|text| wrap(text)).collect();
    lines.extend(summary(comparison, plan).lines().flat_map(wrap));
    for table in counts::tables(comparison, plan) {
        lines.push(String::new());
        lines.extend(crate::table::terminal::lines(&table, width, options.colour));
    }
    lines.push(String::new());
    lines.extend(
        gate_line(comparison, plan)
            .into_iter()
            .flat_map(|text| wrap(&text)),
    );
    let explained = context.explained.iter();
    let sentences = explained.filter_map(|cell| explained::sentence(cell, plan));
    lines.extend(sentences.flat_map(|text| wrap(&text)));
    lines.extend(
        findings(comparison)
            .into_iter()
            .flat_map(|text| wrap(&text)),
    );
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    format!("{}\n", lines.join("\n"))
}

/// The findings, those that matter most first.
fn findings(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for severity in [Severity::Unfit, Severity::Confounder, Severity::Note] {
        let of = comparison
            .findings
            .iter()
            .filter(|finding| finding.severity == severity);
        lines.extend(of.map(|finding| format!("{}: {}", words::severity(severity), finding.text)));
    }
    lines
}
