//! Quantiles of latency, block by block.

use crate::pairing::Block;
use crate::sample::BlockValue;
use deltabench_model::units::micros;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// The quantiles that are compared, in microseconds.
#[derive(Default)]
pub(crate) struct Latencies {
    pub(crate) p50: Vec<BlockValue>,
    pub(crate) p99: Vec<BlockValue>,
}

impl Latencies {
    /// From the merged histograms of each of these blocks.
    ///
    /// A block is left out if a histogram of it cannot be read: half of a block is not its quantile.
    pub(crate) fn new(blocks: &[&Block<'_>]) -> Self {
        let mut reader = Deserializer::new();
        let mut latencies = Self::default();
        for block in blocks {
            let base = block
                .rounds
                .iter()
                .map(|round| round.base.latency_histogram.as_slice());
            let candidate = block
                .rounds
                .iter()
                .map(|round| round.candidate.latency_histogram.as_slice());
            if let (Some(base), Some(candidate)) =
                (merge(&mut reader, base), merge(&mut reader, candidate))
            {
                latencies
                    .p50
                    .extend(block_value(block, &base, &candidate, 0.5));
                latencies
                    .p99
                    .extend(block_value(block, &base, &candidate, 0.99));
            }
        }
        latencies
    }
}

fn block_value(
    block: &Block<'_>,
    base: &Histogram<u64>,
    candidate: &Histogram<u64>,
    q: f64,
) -> Option<BlockValue> {
    let base = micros(base.value_at_quantile(q));
    let candidate = micros(candidate.value_at_quantile(q));
    let log_ratio = (candidate / base).ln();
    log_ratio.is_finite().then_some(BlockValue {
        block: block.block,
        base,
        candidate,
        log_ratio,
    })
}

/// One histogram of many; `None` for none, for an empty one or for bytes that are no histogram.
fn merge<'a>(
    reader: &mut Deserializer,
    serialized: impl Iterator<Item = &'a [u8]>,
) -> Option<Histogram<u64>> {
    let mut merged: Option<Histogram<u64>> = None;
    for mut bytes in serialized {
        let mut next: Histogram<u64> = reader.deserialize(&mut bytes).ok()?;
        match &mut merged {
            None => {
                next.auto(true);
                merged = Some(next);
            }
            Some(merged) => merged.add(next).ok()?,
        }
    }
    merged.filter(|histogram| !histogram.is_empty())
}
