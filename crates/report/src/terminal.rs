//! The table on the terminal.

use crate::context::{ReportContext, resolved};
use crate::picture::{axis_limit, text_bar};
use crate::summary::summary;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
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

/// Columns of the interval bar, where there is room.
const BAR: usize = 21;
/// From this width on, everything of a cell is on one line.
const ONE_LINE: usize = 110;
/// Fewest columns left for the reason before it goes to lines of its own.
const REASON: usize = 24;

/// The result for the terminal: summary, a row per cell, placebo and counts, findings.
///
/// Shape: lines of at most `width` columns wherever the words allow; the summary is one line however long.
#[must_use]
pub fn terminal(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> String {
    let table = Table::new(comparison, plan, options);
    let mut lines: Vec<String> = summary(comparison, plan)
        .lines()
        .map(str::to_owned)
        .collect();
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
    lines.push(String::new());
    lines.extend(table.legend());
    lines.extend(
        placebo(comparison)
            .into_iter()
            .chain(totals(comparison, plan, context))
            .flat_map(|text| table.wrap(&text)),
    );
    lines.extend(
        troubles(comparison)
            .iter()
            .flat_map(|text| table.wrap(text)),
    );
    lines.extend(
        findings(comparison)
            .iter()
            .flat_map(|text| table.wrap(text)),
    );
    let mut text = lines
        .iter()
        .map(|line| line.trim_end())
        .collect::<Vec<_>>()
        .join("\n");
    text.push('\n');
    text
}

struct Table<'a> {
    comparison: &'a Comparison,
    width: usize,
    colour: bool,
    workload: usize,
    ratio: usize,
    p50: usize,
    p99: usize,
    limit: f64,
}

impl<'a> Table<'a> {
    fn new(comparison: &'a Comparison, plan: &Plan, options: TerminalOptions) -> Self {
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
            [Metric::Throughput, Metric::ServerCpuPerOperation].map(|metric| relative(cell, metric))
        });
        Self {
            comparison,
            width: options.width.max(60),
            colour: options.colour,
            workload: widest(
                &mut plan.cells.iter().map(|cell| cell.workload.clone()),
                "workload".len(),
            ),
            ratio: widest(&mut ratios.into_iter(), "throughput".len()),
            p50: widest(&mut of(Metric::LatencyP50), "p50 µs".chars().count()),
            p99: widest(&mut of(Metric::LatencyP99), "p99 µs".chars().count()),
            limit: axis_limit(comparison),
        }
    }

    fn one_line(&self) -> bool {
        self.width >= ONE_LINE && self.width >= self.reason_column() + REASON
    }

    fn with_bar(&self) -> bool {
        self.one_line() && self.width >= self.reason_column() + BAR + 2 + REASON
    }

    /// Column at which the verdict begins in a row of one line, without the bar.
    fn reason_column(&self) -> usize {
        2 + self.workload
            + 2
            + "clients".len()
            + 2
            + 2 * (self.ratio + 2)
            + self.p50
            + 2
            + self.p99
            + 2
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
                lines.push(words::heading(group).to_owned());
                lines.extend(cells.into_iter().flat_map(|cell| self.row(cell)));
            }
        }
        lines
    }

    fn header(&self) -> String {
        let mut texts = self.start("workload", "clients", "throughput");
        if self.with_bar() {
            let scale = format!("±{}", words::share(self.limit));
            texts.push(format!("{scale:^BAR$}"));
        }
        texts.push(left("CPU/op", self.ratio));
        if self.one_line() {
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
        let name = format!("  {}", cell.workload);
        let mut texts = self.start(
            &name,
            &cell.clients.to_string(),
            &relative(cell, Metric::Throughput),
        );
        if self.with_bar() {
            let throughput = words::metric(cell, Metric::Throughput);
            let bar =
                throughput.map(|m| text_bar(&m.ratio, self.comparison.delta, self.limit, BAR));
            texts.push(left(&bar.unwrap_or_default(), BAR));
        }
        texts.push(left(
            &relative(cell, Metric::ServerCpuPerOperation),
            self.ratio,
        ));
        let judged = format!("{} {}", words::sign(cell.verdict), words::judged(cell));
        let (p50, p99) = (
            latency(cell, Metric::LatencyP50),
            latency(cell, Metric::LatencyP99),
        );
        if !self.one_line() {
            let text = format!("{judged}; p50 {p50} µs, p99 {p99} µs");
            let mut lines = vec![texts.join("  ")];
            lines.extend(wrapped(&text, self.width, 4, 6));
            return self.painted(cell.verdict, lines, 1);
        }
        texts.extend([left(&p50, self.p50), left(&p99, self.p99)]);
        let before = texts.join("  ") + "  ";
        let column = before.chars().count();
        let mut reason = wrapped(&judged, self.width, column, column + 2).into_iter();
        let first = reason.next().unwrap_or_default();
        let mut lines = vec![before + first.trim_start()];
        lines.extend(reason);
        self.painted(cell.verdict, lines, 0)
    }

    /// Colours the verdict's word in the line that has it.
    fn painted(&self, verdict: Verdict, mut lines: Vec<String>, line: usize) -> Vec<String> {
        let code = match verdict {
            Verdict::Regression | Verdict::Unfit => "31",
            Verdict::Improvement => "32",
            Verdict::NoChange => "2",
            Verdict::Inconclusive => "33",
        };
        let plain = format!("{} {}", words::sign(verdict), words::verdict(verdict));
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
        if self.with_bar() {
            let delta = words::share(self.comparison.delta);
            text.push_str(&format!("; bar: throughput, │ is equal, ┊ is ±{delta}"));
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

fn relative(cell: &CellComparison, metric: Metric) -> String {
    words::metric(cell, metric).map_or_else(
        || words::UNKNOWN.to_owned(),
        |m| words::ratio_interval(&m.ratio),
    )
}

fn latency(cell: &CellComparison, metric: Metric) -> String {
    words::metric(cell, metric).map_or_else(|| words::UNKNOWN.to_owned(), words::from_to)
}

fn placebo(comparison: &Comparison) -> Option<String> {
    let placebo = comparison.placebo.as_ref()?;
    let ratio = |ratio| words::ratio_interval(ratio);
    let cpu = placebo
        .server_cpu
        .as_ref()
        .map_or_else(|| words::UNKNOWN.to_owned(), ratio);
    Some(format!(
        "placebo (a second copy of the base): throughput {}, CPU/op {cpu}; called different in {} of {}",
        ratio(&placebo.throughput),
        placebo.flagged,
        words::plural(u64::from(placebo.cells), "cell"),
    ))
}

fn totals(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Option<String> {
    let cells = &comparison.cells;
    let blocks = cells.iter().map(|cell| cell.blocks).max()?;
    let rounds: u64 = cells.iter().map(|cell| cell.rounds).sum();
    let void: u64 = cells.iter().map(|cell| cell.void_rounds).sum();
    let errors: u64 = cells
        .iter()
        .map(|cell| cell.base_errors + cell.candidate_errors)
        .sum();
    Some(format!(
        "run {}: {blocks} of {}, {}, {}, {void} void, {}; seed {}",
        context.run,
        words::plural(u64::from(plan.timing.blocks), "block"),
        words::plural(deltabench_model::units::count(plan.cells.len()), "cell"),
        words::plural(rounds, "round"),
        words::plural(errors, "server error"),
        plan.seed,
    ))
}

/// Cells with void rounds or server errors, one sentence each.
fn troubles(comparison: &Comparison) -> Vec<String> {
    let troubled =
        |cell: &&CellComparison| cell.void_rounds + cell.base_errors + cell.candidate_errors > 0;
    comparison
        .cells
        .iter()
        .filter(troubled)
        .map(|cell| {
            format!(
                "{} at {}: {}, server errors {} on the base, {} on {}",
                cell.workload,
                words::plural(u64::from(cell.clients), "client"),
                words::plural(cell.void_rounds, "void round"),
                cell.base_errors,
                cell.candidate_errors,
                cell.candidate_name,
            )
        })
        .collect()
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

fn left(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// Breaks a text at spaces, but not before a percent sign; the first line is indented by `first`, the others
/// by `next`.
fn wrapped(text: &str, width: usize, first: usize, next: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(first);
    let mut used = first;
    let mut empty = true;
    // A number stays with its percent sign.
    let glued = text.replace(" %", "\u{a0}%");
    for word in glued.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if !empty && used + 1 + length > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(next)));
            used = next;
            empty = true;
        }
        if !empty {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word.replace('\u{a0}', " "));
        used += length;
        empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_the_width_and_lose_no_word() {
        let text = "one two three 4.5 % four five six seven eight nine ten";
        let lines = wrapped(text, 16, 0, 2);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 16),
            "{lines:?}"
        );
        assert_eq!(
            lines
                .join(" ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            text
        );
    }
}
