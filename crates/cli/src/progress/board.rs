//! What the live progress shows: how each open cell's interval closes.

use super::{minutes, percent};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, Verdict,
};
use deltabench_model::plan::Stopping;
use deltabench_report::interval_bar;
use deltabench_run::events::BlockProgress;
use std::time::Instant;

/// Columns of the bar.
const BAR: usize = 25;
/// The axis ends at so many times the half-width that is aimed at: an interval is seen as it comes near.
const AXIS: f64 = 4.0;

/// Where the run stands.
#[derive(Debug)]
pub struct Board {
    /// What is planned.
    planned: Planned,
    /// Block, from 1, with visits done and planned in it.
    visit: Option<(u32, u32, u32)>,
    /// What is done now; empty before anything is.
    now: String,
    /// After the last block.
    last: Option<Last>,
}

/// What a plan measures at most.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    pub blocks: u32,
    /// `block` or `pass`.
    pub repeat: &'static str,
    /// Of all blocks, without the set-up; absent where nobody can tell.
    pub seconds: Option<f64>,
}

#[derive(Debug)]
struct Last {
    done: u32,
    planned: u32,
    open_cells: u32,
    remaining_seconds: f64,
    /// When that many seconds remained.
    at: Instant,
    cells: usize,
    rows: Vec<OpenCell>,
}

/// A cell and candidate that is still measured.
#[derive(Debug)]
struct OpenCell {
    name: String,
    /// The name without what all cells have in common.
    label: String,
    estimate: String,
    /// Half the width of the interval in percent; absent before there is one.
    half_width: Option<f64>,
    /// What it has to come to at most.
    aim: f64,
    bar: String,
    /// Whose figures these are, if not those of throughput.
    what: &'static str,
}

impl Board {
    pub fn new(planned: Planned) -> Self {
        Self {
            planned,
            visit: None,
            now: String::new(),
            last: None,
        }
    }

    /// Something else is done from now on.
    pub fn doing(&mut self, what: &str) {
        what.clone_into(&mut self.now);
    }

    /// A visit has ended.
    pub fn visit(&mut self, block: u32, done: u32, planned: u32) {
        self.visit = Some((block + 1, done, planned));
    }

    /// A block has ended: returns a line for each cell that got its answer with it.
    pub fn block(&mut self, progress: &BlockProgress) -> Vec<String> {
        self.visit = None;
        let Some(comparison) = &progress.comparison else {
            return Vec::new();
        };
        let several = several(comparison);
        let name = |cell: &CellComparison| name(cell, progress.worker, several);
        let open = |cell: &&CellComparison| progress.open_cells > 0 && is_open(cell, comparison);
        let rows = comparison.cells.iter().filter(open);
        let alike = clients_alike(comparison);
        let rows: Vec<OpenCell> = rows
            .map(|cell| {
                let mut row = OpenCell::new(name(cell), cell, comparison);
                if alike && !several {
                    row.label.clone_from(&cell.workload);
                }
                row
            })
            .collect();
        let before = self.last.take();
        let closed = comparison.cells.iter().filter(|cell| {
            let name = name(cell);
            let was_open = before
                .as_ref()
                .is_some_and(|last| last.rows.iter().any(|row| row.name == name));
            was_open && !open(cell)
        });
        let said = closed
            .map(|cell| format!("{}: {}", name(cell), answer(cell)))
            .collect();
        self.last = Some(Last {
            done: progress.done,
            planned: progress.planned,
            open_cells: progress.open_cells,
            remaining_seconds: progress.remaining_seconds,
            at: Instant::now(),
            cells: comparison.cells.len(),
            rows,
        });
        said
    }

    /// At most `height` lines.
    pub fn lines(&self, height: usize) -> Vec<String> {
        let mut lines = vec![self.head()];
        lines.retain(|line| !line.is_empty());
        lines.extend((!self.now.is_empty()).then(|| format!("now: {}", self.now)));
        let Some(last) = &self.last else {
            lines.truncate(height);
            return lines;
        };
        let room = height.saturating_sub(lines.len());
        let fits = last.rows.len() <= room;
        let shown = if fits {
            last.rows.len()
        } else {
            room.saturating_sub(1)
        };
        let name = last.rows.iter().map(|row| row.label.chars().count()).max();
        let estimate = last
            .rows
            .iter()
            .map(|row| row.estimate.chars().count())
            .max();
        let (name, estimate) = (name.unwrap_or(0), estimate.unwrap_or(0));
        let rows = last.rows.iter().take(shown);
        lines.extend(rows.map(|row| row.line(name, estimate)));
        if !fits && room > 0 {
            lines.push(format!("  … and {} more", last.rows.len() - shown));
        }
        lines.truncate(height);
        lines
    }

    /// How far, and how long still.
    fn head(&self) -> String {
        let Planned { blocks, repeat, .. } = self.planned;
        let mut texts = Vec::new();
        if let Some((block, done, planned)) = self.visit {
            let of = match block <= blocks {
                true => format!("/{blocks}"),
                false => String::new(),
            };
            texts.push(format!("{repeat} {block}{of}: {done} of {planned} cells"));
        } else if let Some(last) = &self.last
            && last.open_cells > 0
            && last.done < last.planned
        {
            texts.push(format!("{repeat} {}/{}", last.done + 1, last.planned));
        }
        let Some(last) = &self.last else {
            // An estimate: only a block that has ended shows the pace of this host.
            let left = self.seconds_planned().map(minutes);
            texts.extend(left.map(|left| match self.visit {
                Some(_) => format!("about {left} left"),
                None => format!("measuring takes about {left}"),
            }));
            return texts.join("; ");
        };
        if last.cells > 0 {
            texts.push(format!("{} of {} open", last.rows.len(), last.cells));
        }
        if last.open_cells > 0 {
            let left = last.remaining_seconds - last.at.elapsed().as_secs_f64();
            texts.push(format!("at most {} left", minutes(left.max(0.0))));
        }
        texts.join("; ")
    }

    /// What the plan says of the blocks that are left, before one of them has shown its pace.
    fn seconds_planned(&self) -> Option<f64> {
        let (block, done, planned) = self.visit.unwrap_or((1, 0, 1));
        let over = f64::from(block.saturating_sub(1)) + f64::from(done) / f64::from(planned.max(1));
        let share = over / f64::from(self.planned.blocks.max(1));
        Some(self.planned.seconds? * (1.0 - share.min(1.0)))
    }
}

impl OpenCell {
    fn new(name: String, cell: &CellComparison, comparison: &Comparison) -> Self {
        let aim = match comparison.stopping {
            Stopping::Precision { half_width } => half_width,
            _ => cell.delta,
        };
        let shown = match comparison.stopping {
            Stopping::Precision { .. } => widest(cell),
            _ => throughput(cell),
        };
        let is_cpu = shown.is_some_and(|shown| shown.metric != Metric::Throughput);
        let interval = shown.and_then(|metric| metric.ratio.ci95);
        Self {
            label: name.clone(),
            name,
            what: if is_cpu { " CPU/op" } else { "" },
            estimate: shown.map_or_else(|| "not measured".to_owned(), percent),
            half_width: interval.map(|(low, high)| (high - low) / 2.0),
            aim,
            bar: shown.map_or_else(String::new, |metric| {
                interval_bar(&metric.ratio, aim, AXIS * aim, BAR)
            }),
        }
    }

    /// `  point-query at 1 client   -0.4 %  ±2.9 → ±1.5 %  ├──●──┤`.
    fn line(&self, name: usize, estimate: usize) -> String {
        let now = match self.half_width {
            Some(half) => format!("±{:.1}", 100.0 * half),
            None => "±?".to_owned(),
        };
        format!(
            "  {:<name$}  {:>estimate$}  {now:>6} → ±{:.1} %  {}{}",
            self.label,
            self.estimate,
            100.0 * self.aim,
            self.bar,
            self.what
        )
    }
}

fn throughput(cell: &CellComparison) -> Option<&MetricComparison> {
    let mut metrics = cell.metrics.iter();
    metrics.find(|metric| metric.metric == Metric::Throughput && metric.ratio.estimate.is_finite())
}

/// Whether more blocks are wanted for it, as far as the comparison tells.
fn is_open(cell: &CellComparison, comparison: &Comparison) -> bool {
    match comparison.stopping {
        Stopping::Fixed => true,
        Stopping::Sequential { .. } => cell.decided_at.is_none(),
        Stopping::Precision { half_width } => !cell.is_within(half_width),
    }
}

/// The metric that is furthest from a width that throughput and CPU per operation have to reach.
fn widest(cell: &CellComparison) -> Option<&MetricComparison> {
    let width = |metric: &MetricComparison| {
        let ends = metric.ratio.ci95;
        ends.map_or(f64::INFINITY, |(low, high)| (high / low).ln())
    };
    // Throughput comes first, and stays where the other one is as wide.
    let known = cell
        .metrics_of_width()
        .filter(|found| found.ratio.estimate.is_finite());
    known.reduce(|first, other| {
        if width(other) > width(first) {
            other
        } else {
            first
        }
    })
}

fn several(comparison: &Comparison) -> bool {
    let mut cells = comparison.cells.iter();
    let first = cells.next().map(|cell| cell.candidate);
    cells.any(|cell| Some(cell.candidate) != first)
}

/// Whether all cells have the same number of clients, so that no row has to say it.
fn clients_alike(comparison: &Comparison) -> bool {
    let mut cells = comparison.cells.iter().map(|cell| cell.clients);
    let first = cells.next();
    cells.all(|clients| Some(clients) == first)
}

fn name(cell: &CellComparison, worker: &str, several: bool) -> String {
    let on = if several {
        format!(" on {}", cell.candidate_name)
    } else {
        String::new()
    };
    let s = if cell.clients == 1 { "" } else { "s" };
    format!("{} at {} {worker}{s}{on}", cell.workload, cell.clients)
}

/// The verdict in the words of its reason.
fn answer(cell: &CellComparison) -> String {
    if cell.verdict == Verdict::Inconclusive && !cell.reason.starts_with("inconclusive") {
        return format!("inconclusive: {}", cell.reason);
    }
    cell.reason.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::analyse;
    use deltabench_testkit::small_run::{plan, slices};

    fn progress(change: impl FnOnce(&mut Comparison)) -> BlockProgress {
        let mut plan = plan();
        plan.stopping = Stopping::Sequential { looks: vec![6, 8] };
        let mut comparison = analyse(&plan, &slices([0.9, 1.0, 1.0]), Vec::new());
        comparison.stopping = plan.stopping;
        for cell in &mut comparison.cells {
            cell.decided_at = None;
        }
        change(&mut comparison);
        BlockProgress {
            worker: "client",
            done: 3,
            planned: 8,
            open_cells: 3,
            cells: 3,
            elapsed_seconds: 60.0,
            remaining_seconds: 220.0,
            passes: false,
            comparison: Some(comparison),
        }
    }

    fn a_board() -> Board {
        Board::new(Planned {
            blocks: 8,
            repeat: "block",
            seconds: Some(480.0),
        })
    }

    #[test]
    fn before_the_first_block_has_ended_the_plan_says_how_long_it_takes() {
        let mut board = a_board();
        assert_eq!(board.lines(10), ["measuring takes about 8 min"]);
        board.visit(0, 1, 4);
        assert_eq!(
            board.lines(10),
            ["block 1/8: 1 of 4 cells; about 8 min left"]
        );
        // Where a killed run goes on.
        board.visit(4, 4, 4);
        assert_eq!(
            board.lines(10),
            ["block 5/8: 4 of 4 cells; about 3 min left"]
        );
    }

    #[test]
    fn steps_of_rocksdb_have_threads() {
        let mut board = a_board();
        let threads = BlockProgress {
            worker: "thread",
            ..progress(|comparison| {
                for cell in &mut comparison.cells {
                    cell.workload = "readwhilewriting".to_owned();
                }
            })
        };
        board.block(&threads);
        let lines = board.lines(10).join("\n");
        assert!(lines.contains("readwhilewriting at 4 threads"), "{lines}");
        assert!(!lines.contains("client"), "{lines}");
    }

    #[test]
    fn a_row_says_how_wide_the_interval_is_and_what_it_has_to_come_to() {
        let mut board = a_board();
        assert_eq!(board.block(&progress(|_| {})), Vec::<String>::new());
        board.visit(3, 2, 3);
        let lines = board.lines(10);
        assert_eq!(
            lines[0],
            "block 4/8: 2 of 3 cells; 3 of 3 open; at most 4 min left"
        );
        assert_eq!(lines.len(), 4);
        assert!(
            lines[1].starts_with("  point-query at 1 client   -10.0 %    ±0.2 → ±3.0 %  "),
            "{lines:#?}"
        );
        assert!(
            lines[2].contains("point-query at 4 clients   +0.0 %"),
            "{lines:#?}"
        );
        assert!(
            lines[3].contains('┊') && lines[3].contains('●'),
            "{lines:#?}"
        );
    }

    #[test]
    fn a_row_has_room_for_its_bar_where_all_cells_have_the_same_number_of_clients() {
        let mut board = a_board();
        board.block(&progress(|comparison| {
            for cell in &mut comparison.cells {
                (cell.workload, cell.clients) = ("points-notcovered-pk".to_owned(), 1);
            }
        }));
        let lines = board.lines(10);
        assert!(
            lines[1].starts_with("  points-notcovered-pk  "),
            "{lines:#?}"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() <= 79),
            "{lines:#?}"
        );
    }

    #[test]
    fn the_second_line_says_what_is_measured_now() {
        let mut board = a_board();
        board.doing("starting the servers");
        assert_eq!(
            board.lines(10),
            ["measuring takes about 8 min", "now: starting the servers"]
        );
        board.block(&progress(|_| {}));
        board.doing("point-query at 4 clients");
        assert_eq!(board.lines(10)[1], "now: point-query at 4 clients");
    }

    #[test]
    fn a_cell_that_got_its_answer_is_said_once_and_leaves_the_rows() {
        let mut board = a_board();
        board.block(&progress(|_| {}));
        let closing = |comparison: &mut Comparison| comparison.cells[0].decided_at = Some(1);
        let said = board.block(&progress(closing));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("point-query at 1 client: slower by "),
            "{said:?}"
        );
        assert_eq!(board.lines(10).len(), 3);
        assert_eq!(board.block(&progress(closing)), Vec::<String>::new());
    }

    #[test]
    fn no_more_lines_than_the_terminal_has() {
        let mut board = a_board();
        board.block(&progress(|_| {}));
        for height in 0..6 {
            assert!(board.lines(height).len() <= height, "{height}");
        }
        let lines = board.lines(3);
        assert_eq!(lines[2], "  … and 2 more", "{lines:#?}");
    }

    #[test]
    fn with_a_width_to_reach_the_aim_is_that_width() {
        let mut board = a_board();
        board.block(&progress(|comparison| {
            comparison.stopping = Stopping::Precision { half_width: 0.001 };
        }));
        assert!(
            board.lines(10)[1].contains("±0.2 → ±0.1 %"),
            "{:#?}",
            board.lines(10)
        );
        let mut board = a_board();
        board.block(&progress(|comparison| {
            comparison.stopping = Stopping::Precision { half_width: 0.01 };
        }));
        assert_eq!(board.lines(10).len(), 1, "{:#?}", board.lines(10));
        let mut board = a_board();
        board.block(&progress(|comparison| {
            comparison.stopping = Stopping::Precision { half_width: 0.01 };
            let metrics = &mut comparison.cells[0].metrics;
            metrics.retain(|found| found.metric == Metric::Throughput);
            let mut cost = metrics[0].clone();
            cost.metric = Metric::ServerCpuPerOperation;
            cost.ratio.ci95 = Some((0.98, 1.02));
            metrics.push(cost);
        }));
        let lines = board.lines(10);
        assert!(lines[1].contains("±2.0 → ±1.0 %"), "{lines:#?}");
        assert!(lines[1].ends_with(" CPU/op"), "{lines:#?}");
    }

    #[test]
    fn what_was_not_measured_has_no_figures() {
        let mut board = a_board();
        board.block(&progress(|comparison| {
            comparison.cells[0].metrics.clear();
        }));
        assert!(
            board.lines(10)[1].contains("not measured      ±? → ±3.0 %"),
            "{:#?}",
            board.lines(10)
        );
    }
}
