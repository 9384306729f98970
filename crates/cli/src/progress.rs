//! The progress of a run: in place on a terminal, else a line for each block.

mod board;
mod screen;

use crate::console::say;
use board::Board;
use deltabench_compare::comparison::{Comparison, Metric, MetricComparison};
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::PublishedRate;
use deltabench_model::units::count;
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use screen::Screen;
use std::io::{IsTerminal, Stderr};
use terminal_size::{Height, Width, terminal_size_of};

/// Prints progress to stderr.
///
/// On a terminal a few lines are drawn over again: how far the block is, and how the interval of each open
/// cell closes. They are gone when this is dropped. Elsewhere, and where `NO_COLOR` or `TERM=dumb` ask for
/// plain text, each block has its line.
pub struct Progress {
    live: Option<Live>,
}

impl Progress {
    /// Looks at stderr once.
    pub fn new() -> Self {
        Self {
            live: in_place().then(Live::new),
        }
    }
}

/// Whether stderr is a terminal on which lines may be drawn over.
fn in_place() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    std::io::stderr().is_terminal() && !plain && !dumb
}

struct Live {
    board: Board,
    screen: Screen<Stderr>,
}

impl Live {
    fn new() -> Self {
        Self {
            board: Board::default(),
            screen: Screen::new(std::io::stderr()),
        }
    }

    fn draw(&mut self) {
        let (width, height) = size();
        // The cursor has the last line.
        let lines = self.board.lines(height.saturating_sub(1));
        self.screen.draw(&lines, width);
    }

    /// A line that stays, above those that are drawn over.
    fn say(&mut self, text: &str) {
        self.screen.clear(size().0);
        say(text);
        self.draw();
    }
}

/// Columns and lines of the terminal, or what the oldest had.
fn size() -> (usize, usize) {
    terminal_size_of(std::io::stderr()).map_or((80, 24), |(Width(width), Height(height))| {
        (usize::from(width), usize::from(height))
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(live) = &mut self.live {
            live.screen.clear(size().0);
        }
    }
}

impl Progress {
    fn say(&mut self, text: &str) {
        match &mut self.live {
            Some(live) => live.say(text),
            None => say(text),
        }
    }
}

impl Observer for Progress {
    fn note(&mut self, text: &str) {
        self.say(text);
    }

    fn pilot(&mut self, pilot: &Pilot) {
        let forecast = &pilot.forecast;
        self.say(&format!(
            "pilot on {}: throughput {}",
            pilot.workloads.join(" and "),
            forecast.throughput_line()
        ));
        if pilot.sd.1.is_some() {
            self.say(&format!(
                "  CPU per operation {}",
                forecast.server_cpu_line()
            ));
        }
    }

    fn visit(&mut self, block: u32, done: u32, planned: u32) {
        if let Some(live) = &mut self.live {
            live.board.visit(block, done, planned);
            live.draw();
        }
    }

    fn block(&mut self, progress: &BlockProgress) {
        let Some(live) = &mut self.live else {
            if let Some(comparison) = &progress.comparison
                && shows_table(progress)
            {
                say(&table(
                    comparison,
                    progress.passes.as_deref(),
                    progress.worker,
                ));
            }
            say(&line(progress));
            return;
        };
        for closed in live.board.block(progress) {
            live.say(&closed);
        }
        if progress.open_cells == 0 {
            live.say(&line(progress));
        }
        live.draw();
    }
}

/// Whether the whole table is shown after this block: as soon as there is one, as soon as it has intervals,
/// and then now and again.
fn shows_table(progress: &BlockProgress) -> bool {
    let compares = progress.comparison.as_ref();
    if compares.is_none_or(|found| found.cells.is_empty()) {
        return false;
    }
    let now = matches!(progress.done, 1 | 2) || progress.done.is_multiple_of(6);
    now && progress.cells > 1 && progress.open_cells > 0
}

/// A row for each cell and candidate: what is known so far, in the units of passes where blocks are passes.
fn table(comparison: &Comparison, passes: Option<&[PublishedRate]>, worker: &str) -> String {
    let width = comparison
        .cells
        .iter()
        .map(|cell| cell.workload.len())
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for cell in &comparison.cells {
        let metric = |wanted: Metric| cell.metrics.iter().find(|value| value.metric == wanted);
        let Some(throughput) = metric(Metric::Throughput) else {
            continue;
        };
        let counted = passes.and_then(|cells| cells.get(cell.cell.index()));
        let (factor, unit) =
            counted.map_or((1.0, "ops/s"), |rate| (rate.per_operation, &*rate.unit));
        let change = if counted.is_some() && u64::from(cell.blocks) < count(MIN_BLOCKS) {
            format!("cannot tell ({} of {MIN_BLOCKS} passes)", cell.blocks)
        } else {
            let cpu = metric(Metric::ServerCpuPerOperation).map_or(String::new(), |cpu| {
                format!("  CPU/op {:>6}{}", percent(cpu), interval(cpu))
            });
            format!("{:>6}{}{cpu}", percent(throughput), interval(throughput))
        };
        lines.push(format!(
            "  {:<width$} {:>3} {}{}  {:>9.0} {unit}  {}  {change}",
            cell.workload,
            cell.clients,
            worker,
            if cell.clients == 1 { " " } else { "s" },
            throughput.base * factor,
            cell.candidate_name,
        ));
    }
    lines.join("\n")
}

fn percent(metric: &MetricComparison) -> String {
    format!("{} %", signed(metric.ratio.estimate))
}

/// A ratio as a change in percent, never `-0.0`.
fn signed(ratio: f64) -> String {
    let text = format!("{:+.1}", (ratio - 1.0) * 100.0);
    if text == "-0.0" {
        "+0.0".to_owned()
    } else {
        text
    }
}

/// One line: how far, what the data say so far, how long still.
fn line(progress: &BlockProgress) -> String {
    let mut line = format!("block {}", progress.done);
    if progress.done <= progress.planned {
        line.push_str(&format!("/{}", progress.planned));
    }
    // Without candidates nothing is to be decided.
    let alone = matches!(&progress.comparison, Some(found) if found.cells.is_empty());
    let few = progress.passes.is_some() && u64::from(progress.done) < count(MIN_BLOCKS);
    if let Some(comparison) = progress.comparison.as_ref().filter(|_| !alone) {
        line.push_str(": ");
        line.push_str(&match few {
            true => format!("cannot tell before {MIN_BLOCKS} passes"),
            false => so_far(comparison),
        });
    }
    let (open, left) = (progress.open_cells, minutes(progress.remaining_seconds));
    if open > 0 && alone {
        line.push_str(&format!("; at most {left} left"));
    } else if open > 0 {
        let cells = if open == 1 { "cell" } else { "cells" };
        line.push_str(&format!("; {open} {cells} open, at most {left} left"));
    }
    line
}

fn so_far(comparison: &Comparison) -> String {
    let decided =
        comparison.counts.regression + comparison.counts.improvement + comparison.counts.no_change;
    let cells = comparison.cells.len();
    let word = if cells == 1 { "cell" } else { "cells" };
    let mut text = format!("{decided} of {cells} {word} decided");
    let widest = |metric| widths(comparison, metric).fold(0.0_f64, f64::max);
    let (throughput, cpu) = (
        widest(Metric::Throughput),
        widest(Metric::ServerCpuPerOperation),
    );
    if throughput > 0.0 {
        text.push_str(&format!("; widest interval: throughput ±{throughput:.1} %"));
    }
    if cpu > 0.0 {
        text.push_str(&format!(", CPU/op ±{cpu:.1} %"));
    }
    if let Some((name, estimate)) = worst(comparison) {
        text.push_str(&format!(
            "; slowest {name} {}{}",
            percent(estimate),
            interval(estimate)
        ));
    }
    text
}

fn widths(comparison: &Comparison, metric: Metric) -> impl Iterator<Item = f64> {
    comparison
        .cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .filter(move |value| value.metric == metric)
        .filter_map(|value| value.ratio.ci95)
        .map(|(low, high)| (high - low) / 2.0 * 100.0)
}

fn worst(comparison: &Comparison) -> Option<(&str, &MetricComparison)> {
    comparison
        .cells
        .iter()
        .filter_map(|cell| {
            let metric = cell
                .metrics
                .iter()
                .find(|value| value.metric == Metric::Throughput)?;
            Some((cell.workload.as_str(), metric))
        })
        .min_by(|a, b| a.1.ratio.estimate.total_cmp(&b.1.ratio.estimate))
}

fn interval(metric: &MetricComparison) -> String {
    metric.ratio.ci95.map_or(String::new(), |(low, high)| {
        format!(" [{}, {}]", signed(low), signed(high))
    })
}

fn minutes(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::analyse;
    use deltabench_testkit::small_run::{plan, slices};

    #[test]
    fn a_block_line_says_how_far_and_how_long() {
        let progress = BlockProgress {
            done: 3,
            planned: 14,
            open_cells: 5,
            cells: 8,
            worker: "client",
            elapsed_seconds: 60.0,
            remaining_seconds: 220.0,
            passes: None,
            comparison: None,
        };
        assert_eq!(
            line(&progress),
            "block 3/14; 5 cells open, at most 4 min left"
        );
    }

    /// Where passes stand after `done` blocks of the fixture's eight.
    fn passes(done: u32) -> BlockProgress {
        let plan = plan();
        let mut measured = slices([0.9, 1.0, 1.0]);
        measured.retain(|slice| slice.block < done);
        let rows = PublishedRate {
            per_operation: 100.0,
            unit: "rows/s".to_owned(),
        };
        BlockProgress {
            done,
            planned: 8,
            open_cells: 3,
            cells: 3,
            worker: "client",
            elapsed_seconds: 60.0,
            remaining_seconds: 220.0,
            passes: Some(vec![rows; 3]),
            comparison: Some(analyse(&plan, &measured, Vec::new())),
        }
    }

    #[test]
    fn passes_are_told_in_published_units_and_few_of_them_cannot_tell() {
        let few = passes(2);
        assert_eq!(
            line(&few),
            "block 2/8: cannot tell before 6 passes; 3 cells open, at most 4 min left"
        );
        let rows = table(
            few.comparison.as_ref().unwrap(),
            few.passes.as_deref(),
            "client",
        );
        // 10,000 operations per second of 100 rows each.
        assert!(rows.contains(" 1000000 rows/s "), "{rows}");
        assert!(rows.contains("cannot tell (2 of 6 passes)"), "{rows}");
        assert!(!rows.contains('%'), "{rows}");
        let enough = passes(6);
        assert!(line(&enough).contains("slowest point-query -10.0 %"));
        let rows = table(
            enough.comparison.as_ref().unwrap(),
            enough.passes.as_deref(),
            "client",
        );
        assert!(
            rows.contains("rows/s") && rows.contains("-10.0 %"),
            "{rows}"
        );
        let blocks = table(enough.comparison.as_ref().unwrap(), None, "client");
        assert!(blocks.contains(" 10000 ops/s "), "{blocks}");
    }

    #[test]
    fn without_candidates_nothing_is_said_to_be_decided() {
        let mut alone = passes(7);
        if let Some(comparison) = &mut alone.comparison {
            comparison.cells.clear();
        }
        assert_eq!(line(&alone), "block 7/8; at most 4 min left");
        alone.done = 6;
        assert!(!shows_table(&alone) && shows_table(&passes(6)));
    }
}
