//! Which costs moved, and how surprising that is against the placebo's own moves.

use super::blocks::{BlockCost, CostSample};
use super::labels::label;
use crate::comparison::{CellComparison, Cost, Metric, Moved, Ratio};
use crate::thresholds::{
    MIN_BLOCKS, MOVED_BYTES, MOVED_CHEAP_EVENTS, MOVED_COMPARABLE, MOVED_EVENTS, MOVED_FALSE,
    MOVED_LEAST, MOVED_LISTED, MOVED_MB, MOVED_PRIOR, MOVED_TIME_SHARE, SECOND_CONTROL_SD,
    SESSION_EVENTS, SESSIONS_OF_CLIENT,
};
use crate::words;
use deltabench_model::metric::{metric, unit};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::multiplicity::benjamini_hochberg;
use deltabench_stats::student::t_cdf;
use deltabench_stats::summary::{mean, sample_sd};

/// A cost that moved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shift {
    pub(super) cost: Cost,
    /// Mean move as a share, with its sign.
    pub(super) by: f64,
    /// As in [`Moved::surprise`].
    surprise: f64,
    /// As in [`Moved::p`].
    p: f64,
    /// Operations of a block that it was counted over.
    operations: f64,
}

impl Shift {
    pub(super) fn key(&self) -> &str {
        &self.cost.key
    }

    /// For example `user CPU +3.6 %`.
    pub(super) fn short(&self) -> String {
        format!("{} {}", label(self.key()), size(&self.cost).0)
    }

    /// For example `user CPU +3.6 % [+3.1, +4.2]`.
    fn text(&self) -> String {
        let (size, interval) = size(&self.cost);
        match interval {
            Some(interval) => format!("{} {size} {interval}", label(self.key())),
            None => format!("{} {size}", label(self.key())),
        }
    }
}

/// Ratios beyond this are told by both values.
const FACTOR: f64 = 3.0;

/// The size of a move and its interval: in percent, or where that says little by both values. The interval is
/// always that of what was tested: of the ratio where there is one, else of the difference.
fn size(cost: &Cost) -> (String, Option<String>) {
    let plain = cost
        .ratio
        .filter(|ratio| (1.0 / FACTOR..FACTOR).contains(&ratio.estimate));
    if let Some(ratio) = plain {
        let interval = ratio.ci95.map(words::ends);
        return (words::signed(ratio.estimate - 1.0), interval);
    }
    let interval = match (cost.ratio, cost.difference.ci95) {
        (Some(Ratio { ci95, .. }), _) => {
            ci95.map(|(low, high)| format!("[×{}, ×{}]", short(low), short(high)))
        }
        (None, ends) => ends.map(|(low, high)| format!("[{:+}, {:+}]", short(low), short(high))),
    };
    let (base, candidate) = (short(cost.base), short(cost.candidate));
    let unit = unit(&cost.key).0;
    (format!("from {base} to {candidate} {unit}"), interval)
}

/// Three digits, as a number that prints itself without needless zeros.
pub(super) fn short(value: f64) -> f64 {
    if value.abs() < 1e-12 || !value.is_finite() {
        return 0.0;
    }
    let text = format!("{value:.2e}");
    text.parse().unwrap_or(value)
}

/// The costs that moved, most surprising first; empty with fewer blocks than a verdict takes.
///
/// With x the mean move of the candidate over n blocks and se its standard error, m(c) and se(c) those of the
/// placebo in each comparable cell c of k: τ² = max(0, mean(m² − se²)) + 3/4 mean(m²)/k, what the placebo
/// moves beyond its own noise, and t = x / √(se² + τ²), with Satterthwaite's degrees of freedom of both
/// parts. p is adjusted by Benjamini and Hochberg over the costs of the cell.
/// Source: variance between groups by moments, DerSimonian & Laird 1986 with a known mean of zero;
///         Satterthwaite 1946.
pub(super) fn shifts(
    cell: &CellComparison,
    samples: &[CostSample],
    placebo: &[&[CostSample]],
) -> Vec<Shift> {
    let levels = crate::levels::Levels::printing(cell.interval_level);
    let tested: Vec<(Shift, f64)> = samples
        .iter()
        .filter_map(|sample| {
            let test = test(sample, placebo)?;
            let shift = Shift {
                cost: sample.cost(levels)?,
                by: test.by,
                surprise: test.surprise,
                p: 1.0,
                operations: sample.operations(),
            };
            Some((shift, test.p))
        })
        .collect();
    let p: Vec<f64> = tested.iter().map(|(_, p)| *p).collect();
    let time = operation_us(cell);
    let moved = tested.into_iter().zip(benjamini_hochberg(&p));
    let mut moved: Vec<(Shift, f64)> = moved
        .map(|((shift, alone), p)| (Shift { p, ..shift }, alone))
        .filter(|(shift, _)| shift.p <= MOVED_FALSE)
        .filter(|(shift, _)| !negligible(shift, time) && !is_of_sessions(shift, cell.clients))
        .collect();
    moved.sort_by(|(a, p), (b, q)| b.surprise.total_cmp(&a.surprise).then(p.total_cmp(q)));
    moved.into_iter().map(|(shift, _)| shift).collect()
}

/// What a report lists: without those that say again what another does, and not too many.
pub(super) fn listed(shifts: &[Shift]) -> Vec<Moved> {
    let told = shifts
        .iter()
        .filter(|shift| !shifts.iter().any(|other| repeats(shift, other)));
    told.take(MOVED_LISTED)
        .map(|shift| Moved {
            key: shift.cost.key.clone(),
            surprise: shift.surprise,
            p: shift.p,
            text: shift.text(),
        })
        .collect()
}

struct Test {
    by: f64,
    surprise: f64,
    p: f64,
}

/// `None` where there is nothing to test: too few blocks, or nothing counted.
fn test(sample: &CostSample, placebo: &[&[CostSample]]) -> Option<Test> {
    let moves = sample.moves().filter(|moves| moves.len() >= MIN_BLOCKS)?;
    let by = mean(&moves)?;
    let own = Noise::of(&moves)?;
    let typical = Typical::of(sample, placebo);
    let variance = own.error + typical.beyond;
    let p = if variance > 0.0 {
        let beyond = typical.beyond.powi(2) / (typical.number + MOVED_PRIOR);
        let df = variance.powi(2) / (own.error.powi(2) / own.df + beyond);
        2.0 * t_cdf(-by.abs() / variance.sqrt(), df.max(1.0))
    } else if by.abs() > 0.0 {
        0.0
    } else {
        1.0
    };
    let size = typical.size(moves.len());
    let surprise = if by.abs() > 0.0 { by.abs() / size } else { 0.0 };
    Some(Test { by, surprise, p })
}

/// Squared standard error of a mean move, and its degrees of freedom.
struct Noise {
    error: f64,
    df: f64,
}

impl Noise {
    fn of(moves: &[f64]) -> Option<Self> {
        let n = to_f64(count(moves.len()));
        Some(Self {
            error: sample_sd(moves)?.powi(2) / n,
            df: n - 1.0,
        })
    }
}

/// How a cost of the placebo moves, over the cells that can be compared.
#[derive(Default)]
struct Typical {
    /// Squared move of a cell beyond the noise of its blocks.
    beyond: f64,
    /// Mean squared move of a cell.
    cells: f64,
    /// Mean squared move of a block.
    blocks: f64,
    /// Cells behind it.
    number: f64,
}

impl Typical {
    fn of(sample: &CostSample, placebo: &[&[CostSample]]) -> Self {
        let level = |sample: &CostSample| sample.level(BlockCost::base).unwrap_or(0.0);
        let here = level(sample);
        let comparable = |other: &&CostSample| {
            let there = level(other);
            here <= MOVED_COMPARABLE * there && there <= MOVED_COMPARABLE * here
        };
        let cells = placebo.iter().filter_map(|cell| {
            cell.iter()
                .find(|other| other.key == sample.key)
                .filter(comparable)?
                .moves()
        });
        let cells: Vec<Vec<f64>> = cells.collect();
        let squares = |of: &mut dyn Iterator<Item = f64>| -> f64 {
            mean(&of.map(|by| by.powi(2)).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        let beyond: Vec<f64> = cells
            .iter()
            .filter_map(|moves| Some(mean(moves)?.powi(2) - Noise::of(moves)?.error))
            .collect();
        let number = to_f64(count(cells.len()));
        let squared = squares(&mut cells.iter().filter_map(|moves| mean(moves)));
        // Of few cells the mean may happen to be nothing though copies differ. So of a single cell all stays
        // that a candidate moves for it against two controls: three quarters of the placebo's variance.
        let few = SECOND_CONTROL_SD.powi(2) * squared / number.max(1.0);
        Self {
            beyond: mean(&beyond).unwrap_or(0.0).max(0.0) + few,
            cells: squared,
            blocks: squares(&mut cells.iter().flatten().copied()),
            number,
        }
    }

    /// A typical move over so many blocks. With few cells their means may happen to be small, which their
    /// blocks then are not.
    fn size(&self, blocks: usize) -> f64 {
        let from_blocks = self.blocks / to_f64(count(blocks.max(1)));
        self.cells.max(from_blocks).sqrt()
    }
}

/// What an operation takes, microseconds.
pub(super) fn operation_us(cell: &CellComparison) -> Option<f64> {
    let mut metrics = cell.metrics.iter();
    let speed = metrics.find(|found| found.metric == Metric::Throughput)?;
    (speed.base > 0.0).then(|| 1e6 * f64::from(cell.clients) / speed.base)
}

/// Whether nobody would care, however sure it is.
fn negligible(shift: &Shift, operation_us: Option<f64>) -> bool {
    let cost = &shift.cost;
    let below = |limit: f64| (cost.candidate - cost.base).abs() < limit;
    shift.by.abs() < MOVED_LEAST || below(floor(&cost.key, operation_us))
}

/// Whether sessions may have done it by themselves: the statistics of a database contain what they look up in
/// catalogs when they begin, which differs between versions. Of long operations a visit has so few that this
/// is no small part.
fn is_of_sessions(shift: &Shift, clients: u32) -> bool {
    // Those of clients, and the one that reads the statistics.
    let sessions = 1.0 + f64::from(clients) * SESSIONS_OF_CLIENT;
    let moved = (shift.cost.candidate - shift.cost.base).abs() * shift.operations;
    let mut of_session = SESSION_EVENTS.iter();
    of_session.any(|(key, events)| *key == shift.key() && moved < events * sessions)
}

/// The smallest amount of a cost that is worth a word, in its unit.
pub(super) fn floor(key: &str, operation_us: Option<f64>) -> f64 {
    match unit(key).0 {
        "us/op" => MOVED_TIME_SHARE * operation_us.unwrap_or(0.0),
        "/op" if metric(key).is_some_and(|info| info.better.is_none()) => MOVED_CHEAP_EVENTS,
        "/op" => MOVED_EVENTS,
        "B/op" => MOVED_BYTES,
        "KB/op" => MOVED_BYTES / 1024.0,
        "MB" => MOVED_MB,
        _ => 0.0,
    }
}

/// Costs that are seen twice, the one to tell first: the published or the more exact one.
const SYNONYMS: &[(&str, &[&str])] = &[
    (
        "context_switches_per_op",
        &["voluntary_switches_per_op", "involuntary_switches_per_op"],
    ),
    (
        "reads_per_op",
        &[
            "read_kb_per_op",
            "process_read_kb_per_op",
            "io_reads_per_op",
            "blocks_read_per_op",
        ],
    ),
    (
        "read_kb_per_op",
        &[
            "process_read_kb_per_op",
            "io_reads_per_op",
            "blocks_read_per_op",
        ],
    ),
    (
        "process_read_kb_per_op",
        &["io_reads_per_op", "blocks_read_per_op"],
    ),
    ("blocks_read_per_op", &["io_reads_per_op"]),
    (
        "writes_per_op",
        &["write_kb_per_op", "process_write_kb_per_op"],
    ),
    ("write_kb_per_op", &["process_write_kb_per_op"]),
    ("wal_bytes_per_op", &["wal_lsn_bytes_per_op"]),
    (
        "compaction_write_kb_per_op",
        &[
            "compaction_read_kb_per_op",
            "compaction_us_per_op",
            "process_written_kb_per_op",
        ],
    ),
    ("compaction_cpu_us_per_op", &["compaction_us_per_op"]),
    ("stall_us_per_op", &["stalls_per_op"]),
    ("user_cpu_us_per_op", &["cycles_per_op"]),
    (
        "server_cpu_us_per_op",
        &[
            "cycles_per_op",
            "step_user_us_per_op",
            "step_system_us_per_op",
        ],
    ),
    ("updates_per_op", &["hot_updates_per_op"]),
];

/// Sums, and the parts that say more.
const PARTS: &[(&str, &[&str])] = &[
    (
        "user_cpu_us_per_op",
        &["server_cpu_us_per_op", "machine_cpu_percent_per_op"],
    ),
    (
        "system_cpu_us_per_op",
        &["server_cpu_us_per_op", "machine_cpu_percent_per_op"],
    ),
    ("server_cpu_us_per_op", &["machine_cpu_percent_per_op"]),
];

/// Whether `shift` says again what `other` says: a sum of which a part moved the same way, or the same thing
/// from another source that moved as far.
fn repeats(shift: &Shift, other: &Shift) -> bool {
    let listed = |table: &[(&str, &[&str])]| {
        let mut rows = table.iter();
        rows.any(|(first, rest)| *first == other.key() && rest.contains(&shift.key()))
    };
    let waits = shift.key() == "wait_us_per_op" && other.key().starts_with("wait:");
    let same_way = shift.by * other.by > 0.0;
    same_way && (waits || listed(PARTS) || listed(SYNONYMS) && overlap(&shift.cost, &other.cost))
}

/// Whether two moves may be equally large; without ratios nothing speaks against it.
fn overlap(one: &Cost, two: &Cost) -> bool {
    let interval = |cost: &Cost| cost.ratio.and_then(|ratio| ratio.ci95);
    match (interval(one), interval(two)) {
        (Some(one), Some(two)) => one.0 <= two.1 && two.0 <= one.1,
        _ => true,
    }
}
