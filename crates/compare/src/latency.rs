//! Quantiles of latency, block by block and of all blocks together.

use crate::comparison::LatencyCurves;
use crate::histograms::merge;
use crate::pairing::Block;
use crate::sample::{BlockValue, spread};
use crate::thresholds::SLOWER_OPERATIONS;
use deltabench_model::units::{micros, to_f64};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// The histograms of both sides of some blocks, each merged from its slices.
pub(crate) struct Merged(Vec<MergedBlock>);

struct MergedBlock {
    block: u32,
    unpaired: bool,
    base: Histogram<u64>,
    /// Of a second control.
    second: Option<Histogram<u64>>,
    candidate: Histogram<u64>,
}

impl MergedBlock {
    /// Operations of the server that has the fewest.
    fn fewest(&self) -> u64 {
        let second = self.second.as_ref().map_or(u64::MAX, Histogram::len);
        self.base.len().min(self.candidate.len()).min(second)
    }
}

/// The latencies of all servers of a pair over all blocks.
struct Sides {
    base: Histogram<u64>,
    /// Of a second control.
    second: Option<Histogram<u64>>,
    candidate: Histogram<u64>,
}

impl Merged {
    /// A block is left out if a histogram of it cannot be read: half of a block is not its quantile.
    pub(crate) fn new(blocks: &[Block<'_>]) -> Self {
        let mut reader = Deserializer::new();
        let merged = blocks.iter().filter_map(|block| {
            let rounds = || block.rounds.iter();
            let base = rounds().map(|round| round.base.latency_histogram.as_slice());
            let candidate = rounds().map(|round| round.candidate.latency_histogram.as_slice());
            let second = rounds().filter_map(|round| round.second);
            let second: Vec<&[u8]> = second
                .map(|slice| slice.latency_histogram.as_slice())
                .collect();
            let second = match second.is_empty() {
                true => None,
                false => Some(merge(&mut reader, second.into_iter())?),
            };
            Some(MergedBlock {
                block: block.block,
                second,
                unpaired: block.unpaired,
                base: merge(&mut reader, base)?,
                candidate: merge(&mut reader, candidate)?,
            })
        });
        Self(merged.collect())
    }

    /// A quantile in each block from `first` to `last`, microseconds.
    pub(crate) fn quantiles(&self, q: f64, (first, last): (u32, u32)) -> Vec<BlockValue> {
        let blocks = self.0.iter();
        let values = blocks
            .filter(|block| (first..=last).contains(&block.block))
            .filter_map(|block| block_value(block, q))
            .collect();
        match self.0.iter().any(|block| block.unpaired) {
            true => spread(values),
            false => values,
        }
    }

    /// Whether every block has enough slower operations on all its servers for a quantile to mean something.
    /// The longest operation always does.
    pub(crate) fn resolve(&self, q: f64) -> bool {
        let fewest = self.0.iter().map(MergedBlock::fewest).min().unwrap_or(0);
        q >= 1.0 || (1.0 - q) * to_f64(fewest) >= SLOWER_OPERATIONS - 1e-6
    }

    /// The latencies of one server over all blocks; `None` unless every block has them.
    fn side(&self, side: fn(&MergedBlock) -> Option<&Histogram<u64>>) -> Option<Histogram<u64>> {
        let mut blocks = self.0.iter().map(side);
        let mut sum = blocks.next()??.clone();
        for block in blocks {
            sum.add(block?).ok()?;
        }
        Some(sum)
    }

    /// `None` without a block.
    fn sides(&self) -> Option<Sides> {
        Some(Sides {
            base: self.side(|block| Some(&block.base))?,
            second: self.side(|block| block.second.as_ref()),
            candidate: self.side(|block| Some(&block.candidate))?,
        })
    }

    /// The latencies of all copies of the base together, and of the candidate, over all blocks; `None`
    /// without one.
    pub(crate) fn of_controls(&self) -> Option<(Histogram<u64>, Histogram<u64>)> {
        let mut sides = self.sides()?;
        if let Some(second) = sides.second {
            sides.base.add(second).ok()?;
        }
        Some((sides.base, sides.candidate))
    }

    /// Both sides, all blocks together; `None` without a block. The base's curve is the geometric mean of
    /// those of its copies.
    pub(crate) fn curves(&self) -> Option<LatencyCurves> {
        let sides = self.sides()?;
        let second = sides.second.as_ref();
        let fewest = sides.base.len().min(sides.candidate.len());
        let fewest = to_f64(fewest.min(second.map_or(u64::MAX, Histogram::len)));
        // The smallest of all is told, however few they are.
        let told = |percentile: &f64| {
            *percentile <= 0.0 || (1.0 - percentile / 100.0) * fewest >= SLOWER_OPERATIONS - 1e-6
        };
        let percentiles: Vec<f64> = CURVE.into_iter().filter(told).collect();
        let values = |one: &Histogram<u64>, other: Option<&Histogram<u64>>| {
            let at = percentiles.iter();
            at.map(|percentile| middle(one, other, percentile / 100.0))
                .collect()
        };
        Some(LatencyCurves {
            base_us: values(&sides.base, second),
            candidate_us: values(&sides.candidate, None),
            percentiles,
        })
    }
}

/// Percentiles of a curve, denser towards 100.
const CURVE: [f64; 19] = [
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 97.5, 99.0, 99.5,
    99.9, 99.95, 99.99,
];

fn block_value(block: &MergedBlock, q: f64) -> Option<BlockValue> {
    let base = middle(&block.base, block.second.as_ref(), q);
    let candidate = middle(&block.candidate, None, q);
    BlockValue::plain(block.block, base, candidate)
}

/// A quantile of one server, or the geometric mean of those of two copies, microseconds.
fn middle(one: &Histogram<u64>, other: Option<&Histogram<u64>>, q: f64) -> f64 {
    let value = |histogram: &Histogram<u64>| micros(histogram.value_at_quantile(q));
    match other {
        Some(other) => (value(one) * value(other)).sqrt(),
        None => value(one),
    }
}
