//! What cells that are parts of one workload come to together: totals, not a mean of ratios.
//!
//! A cell here is a statement with its share of the workload's time on the base. People pay totals: a
//! statement that takes twice as long matters by its share.

use crate::comparison::{Ratio, Verdict};
use crate::history::History;
use crate::judge::decide;
use crate::pairing::{Index, share_of_placebo};
use crate::placebo::Suspicion;
use crate::thresholds::{LEVEL_DIFFERENT, LEVEL_EQUIVALENT, MIN_BLOCKS, log_delta};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_stats::Interval;
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::summary::{mean, sample_sd};
use std::collections::BTreeMap;

/// Blocks from which on the far end of a cell may close it: two give a t of 13, and say nothing.
pub const CLOSING_BLOCKS: usize = 3;
/// Level of the interval whose far end closes a cell. It is asked after each block, so it is above 95 %.
pub const CLOSING_LEVEL: f64 = 0.99;

/// Seconds for an operation on the base and on another server in a block.
type BlockTimes = (f64, f64);

/// The times of one server next to the base's, in all cells of a plan.
#[derive(Debug, Clone)]
pub struct ServerTimes {
    /// By cell and block.
    cells: Vec<BTreeMap<u32, BlockTimes>>,
    /// The part of a placebo's offset that is in the candidates' ratios.
    share_of_placebo: f64,
}

/// What a whole workload takes on a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Time on the server / on the base.
    pub ratio: Ratio,
    pub verdict: Verdict,
    /// Blocks behind it.
    pub blocks: usize,
    /// Whether a placebo with these times is too far off to trust the others.
    pub off: bool,
}

impl ServerTimes {
    /// The times of a server.
    ///
    /// Shape: slices in any order, as [`crate::analyse()`] takes them.
    pub fn of(plan: &Plan, slices: &[Slice], server: ServerId) -> Self {
        let index = Index::new(plan, slices);
        let times = |cell| {
            let rounds = index.rounds(cell);
            let history = History::new(&index, &rounds, cell, plan.base(), server);
            let values = history.sample(0..history.visits()).throughput;
            let time = |value: &crate::sample::BlockValue| {
                (value.block, (1.0 / value.base, 1.0 / value.candidate))
            };
            values.iter().map(time).collect()
        };
        let cells = || CellId::each().take(plan.cells.len());
        let shares = cells().map(|cell| share_of_placebo(plan, cell));
        Self {
            cells: cells().map(times).collect(),
            share_of_placebo: shares.fold(0.0, f64::max),
        }
    }

    /// Mean seconds of an operation on the base, over blocks; absent without a block.
    pub fn base_seconds(&self, cell: CellId) -> Option<f64> {
        let base: Vec<f64> = self.blocks(cell)?.values().map(|(base, _)| *base).collect();
        mean(&base)
    }

    /// Standard deviation of ln(time / time on the base) between blocks; absent with fewer than two.
    pub fn sd(&self, cell: CellId) -> Option<f64> {
        sample_sd(&self.logs(cell))
    }

    /// Interval of ln(time / time on the base); absent with fewer than two blocks.
    pub fn interval(&self, cell: CellId, level: f64) -> Option<Interval> {
        let mean = SkewedMean::new(&self.logs(cell), 0.0).ok()?;
        Some(mean.interval(level))
    }

    /// Whether a cell with this share of the workload moves it by less than `impact`, at the far end of its
    /// interval.
    pub fn hardly_matters(&self, cell: CellId, share: f64, impact: f64) -> bool {
        let known = self.blocks(cell).map_or(0, BTreeMap::len) >= CLOSING_BLOCKS;
        let interval = self.interval(cell, CLOSING_LEVEL).filter(|_| known);
        interval.is_some_and(|interval| {
            let far = |log: f64| (share * log.exp_m1()).abs();
            far(interval.low).max(far(interval.high)) < impact
        })
    }

    /// The whole workload, from the share of it that each cell is on the base. A change below `delta`
    /// (a share) does not matter. Absent without a block.
    ///
    /// What the luck of a block did to one cell it may have done to others: the errors of all cells are
    /// added within each block, and the blocks are the sample.
    ///
    /// Shape:  a share for each cell, 0 or more.
    /// Source: docs/guide/replay.md#how-times-are-computed.
    pub fn whole(&self, shares: &[f64], delta: f64) -> Option<Whole> {
        let parts = self.parts(shares);
        let all: f64 = parts.iter().map(|part| part.share).sum();
        let moved: f64 = parts.iter().map(Part::moved).sum();
        let centre = (all > 0.0).then(|| (moved / all).ln())?;
        let scatter = Scatter::of(&parts, moved);
        Some(match scatter.mean(centre) {
            Some(mean) => judged(&mean, scatter.0.len(), (delta, self.share_of_placebo)),
            None => Whole {
                ratio: Ratio {
                    estimate: centre.exp(),
                    ci95: None,
                    ci90: None,
                },
                verdict: Verdict::Inconclusive,
                blocks: scatter.0.len(),
                off: false,
            },
        })
    }

    fn blocks(&self, cell: CellId) -> Option<&BTreeMap<u32, BlockTimes>> {
        self.cells.get(cell.index())
    }

    /// ln(time / time on the base) in each block.
    fn logs(&self, cell: CellId) -> Vec<f64> {
        let times = self.blocks(cell).into_iter().flat_map(BTreeMap::values);
        times.map(|(base, other)| (other / base).ln()).collect()
    }

    /// The cells that were measured and have a share.
    fn parts(&self, shares: &[f64]) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for ((cell, times), &share) in CellId::each().zip(&self.cells).zip(shares) {
            let logs = self.logs(cell);
            if share > 0.0 && !logs.is_empty() {
                parts.push(Part { times, share, logs });
            }
        }
        parts
    }
}

/// A cell of a workload.
struct Part<'a> {
    times: &'a BTreeMap<u32, BlockTimes>,
    share: f64,
    /// ln(time / time on the base), by block.
    logs: Vec<f64>,
}

impl Part<'_> {
    /// Its share of the base's time, as it is on the other server.
    fn moved(&self) -> f64 {
        self.share * mean(&self.logs).unwrap_or(0.0).exp()
    }
}

/// What each block adds to the error of the whole, and how much the whole leans on it: a share.
struct Scatter(BTreeMap<u32, (f64, f64)>);

impl Scatter {
    /// That of cells which are `moved` together.
    ///
    /// A cell's own mean has taken its part of the block's luck out of what is left, so that is enlarged as
    /// in a sample's variance.
    fn of(parts: &[Part<'_>], moved: f64) -> Self {
        let mut blocks: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for part in parts {
            let n = to_f64(count(part.logs.len()));
            let weight = part.moved() / moved / n;
            let centre = mean(&part.logs).unwrap_or(0.0);
            let enlarged = if n > 1.0 { (n / (n - 1.0)).sqrt() } else { 0.0 };
            for (block, log) in part.times.keys().zip(&part.logs) {
                let (error, leaning) = blocks.entry(*block).or_default();
                *error += weight * enlarged * (log - centre);
                *leaning += weight;
            }
        }
        Self(blocks)
    }

    /// The mean with its error; absent with fewer than two blocks.
    ///
    /// Degrees of freedom: those of a sum of squares with these weights (Satterthwaite), as if all error were
    /// luck of the blocks.
    fn mean(&self, centre: f64) -> Option<SkewedMean> {
        let blocks = || self.0.values();
        let squares: f64 = blocks().map(|(error, _)| error * error).sum();
        let weights: f64 = blocks().map(|(_, leaning)| leaning.powi(2)).sum();
        let of_squares: f64 = blocks().map(|(_, leaning)| leaning.powi(4)).sum();
        let df = (weights.powi(2) / of_squares - 1.0).max(1.0);
        (self.0.len() > 1).then(|| SkewedMean::assumed(centre, squares.sqrt(), df, 0.0))
    }
}

fn judged(mean: &SkewedMean, blocks: usize, (delta, share): (f64, f64)) -> Whole {
    let ends = |level: f64| {
        let interval = mean.interval(level);
        (interval.low.exp(), interval.high.exp())
    };
    // Below zero is worse, as everywhere.
    let gain = |level: f64| {
        let interval = mean.interval(level);
        Interval {
            low: -interval.high,
            high: -interval.low,
        }
    };
    let equivalent = gain(LEVEL_EQUIVALENT);
    let verdict = match blocks < MIN_BLOCKS {
        true => Verdict::Inconclusive,
        false => decide(
            gain(LEVEL_DIFFERENT),
            equivalent,
            equivalent,
            log_delta(delta),
        ),
    };
    Whole {
        ratio: Ratio {
            estimate: mean.centre.exp(),
            ci95: Some(ends(LEVEL_DIFFERENT)),
            ci90: Some(ends(LEVEL_EQUIVALENT)),
        },
        verdict,
        blocks,
        off: Suspicion::of(mean.p(), (mean.centre, share), blocks, delta).is_some(),
    }
}
