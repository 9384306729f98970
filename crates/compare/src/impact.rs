//! What cells that are parts of one workload come to together: totals, not a mean of ratios.
//!
//! A cell here is a statement with its share of the workload's time on the base. People pay totals: a
//! statement that takes twice as long matters by its share.

use crate::comparison::{Ratio, Verdict};
use crate::history::History;
use crate::judge::decide;
use crate::pairing::Index;
use crate::placebo::Suspicion;
use crate::thresholds::{LEVEL_DIFFERENT, LEVEL_EQUIVALENT, MIN_BLOCKS, log_delta};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_stats::Interval;
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::summary::{mean, sample_sd};
use std::collections::{BTreeMap, BTreeSet};

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
        Self {
            cells: CellId::each().take(plan.cells.len()).map(times).collect(),
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
    /// The value of a block is the ratio of the totals. A cell that was not measured in all blocks stands in
    /// them with its mean; its own error is added to that of the others.
    ///
    /// Shape:  a share for each cell, 0 or more.
    /// Source: docs/guide/replay.md#how-times-are-computed.
    pub fn whole(&self, shares: &[f64], delta: f64) -> Option<Whole> {
        let parts: Vec<Part<'_>> = self.parts(shares);
        let blocks = common_blocks(&parts);
        let (whole, rest): (Vec<&Part<'_>>, Vec<&Part<'_>>) =
            parts.iter().partition(|part| part.has(&blocks));
        let base: f64 = rest.iter().map(|part| part.share).sum();
        let other: f64 = rest.iter().map(|part| part.moved()).sum();
        let value = |block: &u32| {
            let sum = |of: fn(&BlockTimes) -> f64| -> f64 {
                let one = |part: &&Part<'_>| {
                    let time = part.times.get(block).map_or(part.base, of);
                    part.share * time / part.base
                };
                whole.iter().map(one).sum()
            };
            ((other + sum(|times| times.1)) / (base + sum(|times| times.0))).ln()
        };
        let logs: Vec<f64> = blocks.iter().map(value).collect();
        let centre = mean(&logs)?;
        let Some(sd) = sample_sd(&logs) else {
            return Some(Whole {
                ratio: Ratio {
                    estimate: centre.exp(),
                    ci95: None,
                    ci90: None,
                },
                verdict: Verdict::Inconclusive,
                blocks: logs.len(),
                off: false,
            });
        };
        let all: f64 = parts.iter().map(|part| part.share).sum();
        let of_rest: f64 = rest.iter().map(|part| part.variance(all)).sum();
        let n = to_f64(count(logs.len()));
        let error = (sd * sd / n + of_rest).sqrt();
        Some(judged(
            &SkewedMean::assumed(centre, error, n - 1.0, 0.0),
            logs.len(),
            delta,
        ))
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
            if let Some(base) = self.base_seconds(cell).filter(|_| share > 0.0) {
                let logs = self.logs(cell);
                parts.push(Part {
                    times,
                    share,
                    base,
                    logs,
                });
            }
        }
        parts
    }
}

/// A cell of a workload.
struct Part<'a> {
    times: &'a BTreeMap<u32, BlockTimes>,
    share: f64,
    /// Mean seconds on the base.
    base: f64,
    logs: Vec<f64>,
}

impl Part<'_> {
    fn has(&self, blocks: &BTreeSet<u32>) -> bool {
        blocks.iter().all(|block| self.times.contains_key(block))
    }

    /// Its share of the base's time, as it is on the other server.
    fn moved(&self) -> f64 {
        self.share * mean(&self.logs).unwrap_or(0.0).exp()
    }

    /// What its own error adds to the variance of the log of a whole of this size.
    fn variance(&self, all: f64) -> f64 {
        let sd = sample_sd(&self.logs).unwrap_or(0.0);
        let part = self.moved() / all;
        part * part * sd * sd / to_f64(count(self.logs.len()))
    }
}

/// All blocks; without the last one where that was cut short, so that most cells lack it.
fn common_blocks(parts: &[Part<'_>]) -> BTreeSet<u32> {
    let all: BTreeSet<u32> = parts
        .iter()
        .flat_map(|part| part.times.keys().copied())
        .collect();
    let mut shorter = all.clone();
    shorter.pop_last();
    let whole = |blocks: &BTreeSet<u32>| -> f64 {
        let parts = parts.iter().filter(|part| part.has(blocks));
        parts.map(|part| part.share).sum()
    };
    if whole(&shorter) > 2.0 * whole(&all) && !shorter.is_empty() {
        shorter
    } else {
        all
    }
}

fn judged(mean: &SkewedMean, blocks: usize, delta: f64) -> Whole {
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
        off: Suspicion::of(mean.p(), (mean.centre, 1.0), blocks, delta).is_some(),
    }
}
