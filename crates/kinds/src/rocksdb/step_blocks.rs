//! What a target did in a step of a block, as published reports count it.

use super::column::StepColumn;
use deltabench_compare::histograms::merge;
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{micros, seconds, to_f64};
use deltabench_model::work::rocksdb::{RocksdbSetup, StepFigures};
use hdrhistogram::serialization::Deserializer;
use std::collections::BTreeMap;

/// One target in one step of one block.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepBlock {
    /// The block, from 0.
    pub block: u32,
    /// Start of its first turn, nanoseconds since the Unix epoch; 0 where it had none.
    pub started_ns: u64,
    pub threads: u32,
    /// Operations of its good turns.
    pub operations: u64,
    /// How long these took.
    pub duration_ns: u64,
    /// Bytes of the keys and values that these put, found or went over.
    pub bytes: f64,
    /// Of all good turns together; absent where none is known.
    pub latency: Option<Latencies>,
    /// Operations per second of each turn, in order; absent for a void one.
    pub turns: Vec<Option<f64>>,
    /// What moved, see [`StepFigures`].
    pub figures: StepFigures,
}

/// Latency of an operation, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    pub p50: f64,
    /// 99 of 100 are faster.
    pub p99: f64,
    /// 999 of 1000 are faster.
    pub p99_9: f64,
    /// 9999 of 10 000 are faster.
    pub p99_99: f64,
    pub max: f64,
}

impl StepBlock {
    /// Operations per second of the turns alone, without waiting at the end.
    pub fn throughput(&self) -> Option<f64> {
        self.over_duration(to_f64(self.operations))
    }

    /// Megabytes (2^20) of keys and values per second.
    pub fn megabytes_per_second(&self) -> Option<f64> {
        let told = self.figure("megabytes_per_second");
        told.or_else(|| self.over_duration(self.bytes / MEGABYTE))
    }

    /// Microseconds of an operation as its thread sees it: threads over throughput.
    pub fn us_per_operation(&self) -> Option<f64> {
        Some(1e6 * f64::from(self.threads) / self.throughput()?)
    }

    /// What flushes and compactions wrote for each byte that was put; absent where nothing was. The library
    /// counts flushes among its compactions, so they are not added.
    pub fn write_amplification(&self) -> Option<f64> {
        Some(self.figure("compaction_write_bytes")? / self.ingest_bytes()?)
    }

    /// Write amplification as the published script has it: flushes are in it twice.
    pub fn published_write_amplification(&self) -> Option<f64> {
        let written = self.figure("compaction_write_bytes")? + self.figure("flush_bytes")?;
        Some(written / self.ingest_bytes()?)
    }

    fn ingest_bytes(&self) -> Option<f64> {
        self.figure("ingest_bytes").filter(|bytes| *bytes > 0.0)
    }

    /// Seconds in which the target was not frozen, waiting at the end included.
    pub fn uptime_seconds(&self) -> Option<f64> {
        let told = self.figure("uptime_seconds");
        told.or_else(|| Some(1e-9 * self.figure("active_ns")?))
            .filter(|seconds| *seconds > 0.0)
    }

    /// Megabytes (2^20) per second of [`StepBlock::uptime_seconds`] that compactions wrote.
    pub fn compaction_megabytes_per_second(&self) -> Option<f64> {
        Some(self.figure("compaction_write_bytes")? / MEGABYTE / self.uptime_seconds()?)
    }

    /// Share of [`StepBlock::uptime_seconds`] in which writes were delayed or stopped.
    pub fn stalled_share(&self) -> Option<f64> {
        Some(1e-9 * self.figure("stall_ns")? / self.uptime_seconds()?)
    }

    /// A figure by its key; absent where the target cannot tell it.
    pub fn figure(&self, key: &str) -> Option<f64> {
        self.figures
            .get(key)
            .copied()
            .filter(|value| value.is_finite())
    }

    fn over_duration(&self, amount: f64) -> Option<f64> {
        (self.operations > 0 && self.duration_ns > 0).then(|| amount / seconds(self.duration_ns))
    }
}

const MEGABYTE: f64 = 1_048_576.0;

/// Slices of a step by round.
type Rounds<'a> = BTreeMap<u32, &'a Slice>;

/// All blocks of all targets in all steps, in order.
pub(super) fn by_place(
    setup: &RocksdbSetup,
    steps: &[StepColumn],
    slices: &[Slice],
    counters: &[VisitCounters],
) -> BTreeMap<(ServerId, CellId), Vec<StepBlock>> {
    let mut places: BTreeMap<(ServerId, CellId, u32), Rounds<'_>> = BTreeMap::new();
    for slice in slices {
        let place = (slice.server, slice.cell, slice.block);
        places.entry(place).or_default().insert(slice.round, slice);
    }
    let counted: BTreeMap<(ServerId, CellId, u32), &VisitCounters> = counters
        .iter()
        .map(|visit| ((visit.server, visit.cell, visit.block), visit))
        .collect();
    let mut reader = Deserializer::new();
    let mut blocks: BTreeMap<(ServerId, CellId), Vec<StepBlock>> = BTreeMap::new();
    for ((server, cell, block), rounds) in places {
        let Some(step) = steps.iter().find(|step| step.cell == cell) else {
            continue;
        };
        let counted = counted.get(&(server, cell, block));
        let figures = counted.map(|visit| visit.values.clone());
        let of = StepBlock {
            block,
            figures: figures.unwrap_or_default(),
            ..step_block(setup, step, &rounds, &mut reader)
        };
        blocks
            .entry((server, cell))
            .or_default()
            .push(with_told_latency(of));
    }
    blocks
}

fn step_block(
    setup: &RocksdbSetup,
    step: &StepColumn,
    rounds: &Rounds<'_>,
    reader: &mut Deserializer,
) -> StepBlock {
    let good: Vec<&Slice> = rounds
        .values()
        .copied()
        .filter(|slice| slice.void.is_none() && slice.operations > 0 && slice.duration_ns > 0)
        .collect();
    let sum = |of: fn(&Slice) -> u64| good.iter().map(|slice| of(slice)).sum::<u64>();
    let operations = sum(|slice| slice.operations);
    let entries = match step.step.writes() {
        true => operations,
        false => sum(|slice| slice.rows),
    };
    let pair = f64::from(setup.key_bytes) + f64::from(setup.value_bytes);
    let histograms = good.iter().map(|slice| slice.latency_histogram.as_slice());
    StepBlock {
        block: 0,
        started_ns: rounds
            .values()
            .map(|slice| slice.started_ns)
            .min()
            .unwrap_or(0),
        threads: step.threads,
        operations,
        duration_ns: sum(|slice| slice.duration_ns),
        bytes: to_f64(entries) * pair,
        latency: merge(reader, histograms).map(|histogram| {
            let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
            Latencies {
                p50: at(0.5),
                p99: at(0.99),
                p99_9: at(0.999),
                p99_99: at(0.9999),
                max: micros(histogram.max()),
            }
        }),
        turns: rounds.values().map(|slice| rate(slice)).collect(),
        figures: StepFigures::new(),
    }
}

fn rate(slice: &Slice) -> Option<f64> {
    (slice.void.is_none() && slice.duration_ns > 0)
        .then(|| to_f64(slice.operations) / seconds(slice.duration_ns))
}

/// A `db_bench` tells percentiles in the place of a histogram.
fn with_told_latency(block: StepBlock) -> StepBlock {
    let told = || {
        Some(Latencies {
            p50: block.figure("latency_p50_us")?,
            p99: block.figure("latency_p99_us")?,
            p99_9: block.figure("latency_p99_9_us")?,
            p99_99: block.figure("latency_p99_99_us")?,
            max: block.figure("latency_max_us")?,
        })
    };
    StepBlock {
        latency: block.latency.or_else(told),
        ..block
    }
}
