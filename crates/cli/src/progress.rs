//! The live progress: one line for each block, a counter inside it when stderr is a terminal.

use crate::output::say;
use deltabench_compare::comparison::{Comparison, Metric, MetricComparison};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use std::io::{IsTerminal, Write};

/// Prints progress to stderr.
pub struct Progress {
    live: bool,
}

impl Progress {
    /// Looks at stderr once.
    pub fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
        }
    }

    fn clear(&self) {
        if self.live {
            live("");
        }
    }
}

/// Replaces the line under the cursor. A counter that cannot be drawn is no reason to stop measuring.
fn live(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
}

impl Observer for Progress {
    fn note(&mut self, text: &str) {
        self.clear();
        say(text);
    }

    fn pilot(&mut self, pilot: &Pilot) {
        self.clear();
        let forecast = &pilot.forecast;
        say(&format!(
            "pilot on {}: throughput {}",
            pilot.workloads.join(" and "),
            forecast.throughput_line()
        ));
        if pilot.sd.1.is_some() {
            say(&format!(
                "  CPU per operation {}",
                forecast.server_cpu_line()
            ));
        }
    }

    fn visit(&mut self, block: u32, done: u32, planned: u32) {
        if self.live {
            live(&format!("block {}: {done}/{planned} cells", block + 1));
        }
    }

    fn block(&mut self, progress: &BlockProgress) {
        self.clear();
        if let Some(comparison) = &progress.comparison
            && shows_table(progress)
        {
            say(&table(comparison));
        }
        say(&line(progress));
    }
}

/// Whether the whole table is shown after this block: as soon as there is one, as soon as it has intervals,
/// and then now and again.
fn shows_table(progress: &BlockProgress) -> bool {
    let now = matches!(progress.done, 1 | 2) || progress.done.is_multiple_of(6);
    now && progress.cells > 1 && progress.open_cells > 0
}

/// A row for each cell and candidate: what is known so far.
fn table(comparison: &Comparison) -> String {
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
        let cpu = metric(Metric::ServerCpuPerOperation).map_or(String::new(), |cpu| {
            format!("  CPU/op {:>6}{}", percent(cpu), interval(cpu))
        });
        lines.push(format!(
            "  {:<width$} {:>3} clients  {:>9.0} ops/s  {}  {:>6}{}{cpu}",
            cell.workload,
            cell.clients,
            throughput.base,
            cell.candidate_name,
            percent(throughput),
            interval(throughput),
        ));
    }
    lines.join("\n")
}

fn percent(metric: &MetricComparison) -> String {
    format!("{:+.1} %", (metric.ratio.estimate - 1.0) * 100.0)
}

/// One line: how far, what the data say so far, how long still.
fn line(progress: &BlockProgress) -> String {
    let mut line = format!("block {}", progress.done);
    if progress.done <= progress.planned {
        line.push_str(&format!("/{}", progress.planned));
    }
    if let Some(comparison) = &progress.comparison {
        line.push_str(&format!(": {}", so_far(comparison)));
    }
    let (open, left) = (progress.open_cells, minutes(progress.remaining_seconds));
    if open > 0 {
        line.push_str(&format!("; {open} cells open, at most {left} left"));
    }
    line
}

fn so_far(comparison: &Comparison) -> String {
    let decided =
        comparison.counts.regression + comparison.counts.improvement + comparison.counts.no_change;
    let mut text = format!("{decided} of {} cells decided", comparison.cells.len());
    let widest = |metric| widths(comparison, metric).fold(0.0_f64, f64::max);
    let (throughput, cpu) = (
        widest(Metric::Throughput),
        widest(Metric::ServerCpuPerOperation),
    );
    if throughput > 0.0 {
        text.push_str(&format!(
            "; widest interval: throughput ±{throughput:.1} %, CPU/op ±{cpu:.1} %"
        ));
    }
    if let Some((name, estimate)) = worst(comparison) {
        text.push_str(&format!(
            "; slowest {name} {:+.1} %{}",
            (estimate.ratio.estimate - 1.0) * 100.0,
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
        format!(
            " [{:+.1}, {:+.1}]",
            (low - 1.0) * 100.0,
            (high - 1.0) * 100.0
        )
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

    #[test]
    fn a_block_line_says_how_far_and_how_long() {
        let progress = BlockProgress {
            done: 3,
            planned: 14,
            open_cells: 5,
            cells: 8,
            elapsed_seconds: 60.0,
            remaining_seconds: 220.0,
            comparison: None,
        };
        assert_eq!(
            line(&progress),
            "block 3/14; 5 cells open, at most 4 min left"
        );
    }
}
