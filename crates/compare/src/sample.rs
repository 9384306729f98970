//! One value for each block: the sample behind every interval.

use crate::comparison::{Metric, MetricComparison, Ratio};
use crate::judge::Levels;
use crate::pairing::{Block, Pairing, Round};
use crate::thresholds::TRIM;
use deltabench_model::slice::Slice;
use deltabench_model::units::{micros, seconds, to_f64};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::{geometric_mean, mean, trimmed_mean};

/// A metric in one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockValue {
    pub(crate) block: u32,
    /// Absolute value on the base.
    pub(crate) base: f64,
    /// Absolute value on the candidate.
    pub(crate) candidate: f64,
    /// ln(candidate / base).
    pub(crate) log_ratio: f64,
}

/// Block values of throughput, operations per second, in block order.
pub(crate) fn throughput(pairing: &Pairing<'_>) -> Vec<BlockValue> {
    pairing.blocks.iter().filter_map(block_throughput).collect()
}

/// Block values of CPU per operation, microseconds, in block order.
pub(crate) fn server_cpu(pairing: &Pairing<'_>) -> Vec<BlockValue> {
    pairing.blocks.iter().filter_map(block_server_cpu).collect()
}

fn block_throughput(block: &Block<'_>) -> Option<BlockValue> {
    let logs: Vec<f64> = block.rounds.iter().map(Round::throughput).collect();
    let all: Vec<&Round<'_>> = block.rounds.iter().collect();
    let rate = |slice: &Slice| (to_f64(slice.operations), seconds(slice.duration_ns));
    let base = total(&all, |round| rate(round.base))?;
    let candidate = total(&all, |round| rate(round.candidate))?;
    Some(BlockValue {
        block: block.block,
        base,
        candidate,
        log_ratio: log_ratio(block, &logs, (base, candidate))?,
    })
}

fn block_server_cpu(block: &Block<'_>) -> Option<BlockValue> {
    let known: Vec<&Round<'_>> = block
        .rounds
        .iter()
        .filter(|round| round.server_cpu().is_some())
        .collect();
    let logs: Vec<f64> = known
        .iter()
        .filter_map(|round| round.server_cpu())
        .collect();
    if logs.len() < block.least {
        return None;
    }
    let cost = |slice: &Slice| {
        (
            slice.server_cpu_ns.map_or(0.0, micros),
            to_f64(slice.operations),
        )
    };
    let base = total(&known, |round| cost(round.base))?;
    let candidate = total(&known, |round| cost(round.candidate))?;
    Some(BlockValue {
        block: block.block,
        base,
        candidate,
        log_ratio: log_ratio(block, &logs, (base, candidate))?,
    })
}

/// The value of a block: the trimmed mean of its rounds, or the ratio of what they come to together.
fn log_ratio(block: &Block<'_>, logs: &[f64], (base, candidate): (f64, f64)) -> Option<f64> {
    if block.pooled {
        return (base > 0.0 && candidate > 0.0).then(|| (candidate / base).ln());
    }
    trimmed_mean(logs, TRIM)
}

/// Σ numerator / Σ denominator over rounds.
fn total<'a>(rounds: &[&Round<'a>], parts: impl Fn(&Round<'a>) -> (f64, f64)) -> Option<f64> {
    let (above, below) = rounds
        .iter()
        .map(|round| parts(round))
        .fold((0.0, 0.0), |(above, below), (a, b)| (above + a, below + b));
    (below > 0.0).then(|| above / below)
}

/// The log-ratios alone.
pub(crate) fn log_ratios(values: &[BlockValue]) -> Vec<f64> {
    values.iter().map(|value| value.log_ratio).collect()
}

/// exp(mean) of block log-ratios with its t intervals over blocks; `None` without a block.
pub(crate) fn ratio(logs: &[f64], levels: Levels) -> Option<Ratio> {
    let interval = |level| {
        t_interval(logs, level)
            .ok()
            .map(|interval| (interval.low.exp(), interval.high.exp()))
    };
    Some(Ratio {
        estimate: mean(logs)?.exp(),
        ci95: interval(levels.printed),
        ci90: interval(levels.printed_equivalent()),
    })
}

/// The metric as reported, not yet judged; `None` where no block has it.
pub(crate) fn compare_metric(
    metric: Metric,
    values: &[BlockValue],
    levels: Levels,
) -> Option<MetricComparison> {
    let blocks = log_ratios(values);
    let base: Vec<f64> = values.iter().map(|value| value.base).collect();
    let candidate: Vec<f64> = values.iter().map(|value| value.candidate).collect();
    Some(MetricComparison {
        metric,
        base: geometric_mean(&base)?,
        candidate: geometric_mean(&candidate)?,
        ratio: ratio(&blocks, levels)?,
        verdict: None,
        blocks,
    })
}
