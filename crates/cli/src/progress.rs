//! The progress of a run: in place on a terminal, else a line for each block.

mod board;
mod screen;

use crate::console::say;
use board::Board;
pub use board::Planned;
use deltabench_compare::comparison::{Comparison, Metric, MetricComparison};
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::units::count;
use deltabench_report::{unbroken, wrapped};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use screen::Screen;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Stderr};
use terminal_size::{Height, Width, terminal_size_of};

/// Prints progress to stderr.
///
/// On a terminal a board of a few lines is drawn over again: what is measured now, how far the block is, and
/// how the interval of each open cell closes. It is gone when this is dropped. Elsewhere, and where
/// `NO_COLOR` or `TERM=dumb` ask for plain text, each block has its line.
pub struct Progress {
    live: Option<Live>,
}

impl Progress {
    /// Looks at stderr once.
    pub fn new(planned: Planned) -> Self {
        Self {
            live: in_place().then(|| Live::new(planned)),
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
    fn new(planned: Planned) -> Self {
        Self {
            board: Board::new(planned),
            screen: Screen::new(std::io::stderr()),
        }
    }

    fn draw(&mut self) {
        let (width, height) = size();
        // The cursor has the last line.
        let lines = self.board.lines(height.saturating_sub(1));
        self.screen.draw(&lines, (width, height));
    }

    /// What stays, above the lines that are drawn over.
    fn say(&mut self, text: &str) {
        let size = size();
        self.screen.clear(size);
        let width = size.0.saturating_sub(1);
        for line in text.lines() {
            let indent = line.chars().take_while(|letter| *letter == ' ').count();
            // What fits stays as it is, columns included.
            if line.chars().count() <= width {
                say(line);
            } else {
                let lines = wrapped(&unbroken(line), width, indent, indent + 2);
                lines.iter().for_each(|line| say(line));
            }
        }
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
            live.screen.clear(size());
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

    fn doing(&mut self, what: &str) {
        if let Some(live) = &mut self.live {
            live.board.doing(what);
            live.draw();
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
    let repeat = if progress.passes { "pass" } else { "block" };
    let mut line = format!("{repeat} {}", progress.done);
    if progress.done <= progress.planned {
        line.push_str(&format!("/{}", progress.planned));
    }
    // Without candidates nothing is to be decided.
    let alone = matches!(&progress.comparison, Some(found) if found.cells.is_empty());
    let few = progress.passes && u64::from(progress.done) < count(MIN_BLOCKS);
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
    let all = comparison.cells.len();
    let cells: BTreeSet<_> = comparison.cells.iter().map(|one| one.cell).collect();
    // A cell has one for each candidate.
    let word = match (all, cells.len() < all) {
        (_, true) => "comparisons",
        (1, _) => "cell",
        _ => "cells",
    };
    let mut text = format!("{decided} of {all} {word} decided");
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
            passes: false,
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
        BlockProgress {
            done,
            planned: 8,
            open_cells: 3,
            cells: 3,
            worker: "client",
            elapsed_seconds: 60.0,
            remaining_seconds: 220.0,
            passes: true,
            comparison: Some(analyse(&plan, &measured, Vec::new())),
        }
    }

    #[test]
    fn few_passes_cannot_tell() {
        assert_eq!(
            line(&passes(2)),
            "pass 2/8: cannot tell before 6 passes; 3 cells open, at most 4 min left"
        );
        assert!(line(&passes(6)).contains("slowest point-query -10.0 %"));
    }

    #[test]
    fn a_cell_with_two_candidates_has_two_comparisons_to_decide() {
        let mut two = passes(7);
        if let Some(comparison) = &mut two.comparison {
            comparison.cells.truncate(1);
        }
        assert!(line(&two).contains(" of 1 cell decided"));
        if let Some(comparison) = &mut two.comparison {
            comparison.cells.extend(comparison.cells.clone());
        }
        assert!(line(&two).contains(" of 2 comparisons decided"));
    }

    #[test]
    fn without_candidates_nothing_is_said_to_be_decided() {
        let mut alone = passes(7);
        if let Some(comparison) = &mut alone.comparison {
            comparison.cells.clear();
        }
        assert_eq!(line(&alone), "pass 7/8; at most 4 min left");
    }
}
