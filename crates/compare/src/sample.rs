//! One value for each block: the sample behind every interval.

use crate::comparison::{Difference, Metric, MetricComparison, Probed, Ratio};
use crate::levels::Levels;
use crate::pairing::{Block, Pairing};
use crate::probes::{Probes, Slope};
use crate::thresholds::TRIM;
use crate::unpaired::{stretch, stretched};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, seconds, to_f64};
use deltabench_stats::Interval;
use deltabench_stats::skewed::{SkewedMean, Skewness, of_starts};
use deltabench_stats::summary::{geometric_mean, mean, sample_sd, trimmed_mean};

/// A metric in one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockValue {
    pub(crate) block: u32,
    /// Absolute value on the base: the geometric mean of both copies where there is a second control.
    pub(crate) base: f64,
    /// Absolute value on the candidate.
    pub(crate) candidate: f64,
    /// ln(candidate / base) of all rounds together: what the block's operations took in all.
    pub(crate) log_ratio: f64,
    /// The trimmed mean of the rounds' log-ratios: what a typical operation took.
    pub(crate) typical: f64,
    /// Third central moment of `log_ratio`, from the scatter of the block's rounds.
    pub(crate) third: f64,
    /// `log_ratio` against the base alone, without a second control.
    pub(crate) one_control: f64,
    /// `log_ratio` as timed: without what probes of the core say.
    pub(crate) timed: f64,
    /// ln(candidate / base) of the probes; absent where there are none.
    pub(crate) probes: Option<f64>,
}

impl BlockValue {
    /// A value that is not made of rounds.
    pub(crate) fn plain(block: u32, base: f64, candidate: f64) -> Option<Self> {
        let log_ratio = (candidate / base).ln();
        log_ratio.is_finite().then_some(Self {
            block,
            base,
            candidate,
            log_ratio,
            typical: log_ratio,
            third: 0.0,
            one_control: log_ratio,
            timed: log_ratio,
            probes: None,
        })
    }
}

/// Block values of throughput, operations per second, in block order.
pub(crate) fn throughput(pairing: &Pairing<'_>) -> Vec<BlockValue> {
    let time = |_: &Block<'_>, slice: &Slice| Some(seconds(slice.duration_ns));
    let values = of_blocks(pairing, time).into_iter();
    tied(pairing, values.map(turned).collect())
}

/// The values with the scatter of two independent samples ([`crate::unpaired`]); never with less than they
/// have.
pub(crate) fn spread(values: Vec<BlockValue>) -> Vec<BlockValue> {
    let of = |value: fn(&BlockValue) -> f64| -> Vec<f64> { values.iter().map(value).collect() };
    let factor = stretch(&of(|value| value.base), &of(|value| value.candidate));
    let logs = stretched(&of(|value| value.log_ratio), factor);
    let typical = stretched(&of(|value| value.typical), factor);
    let both = logs.into_iter().zip(typical);
    let spread = values
        .into_iter()
        .zip(both)
        .map(|(value, both)| BlockValue {
            log_ratio: both.0,
            one_control: both.0,
            typical: both.1,
            ..value
        });
    spread.collect()
}

/// The values as they are where the sides of a block belong together.
fn tied(pairing: &Pairing<'_>, values: Vec<BlockValue>) -> Vec<BlockValue> {
    match pairing.blocks.iter().any(|block| block.unpaired) {
        true => spread(values),
        false => values,
    }
}

/// Block values of CPU per operation, microseconds, in block order.
pub(crate) fn server_cpu(pairing: &Pairing<'_>) -> Vec<BlockValue> {
    let cpu = |block: &Block<'_>, slice: &Slice| block.cpu_us(slice);
    tied(pairing, of_blocks(pairing, cpu))
}

/// From cost for each operation to operations for each cost.
fn turned(value: BlockValue) -> BlockValue {
    BlockValue {
        base: 1.0 / value.base,
        candidate: 1.0 / value.candidate,
        log_ratio: -value.log_ratio,
        typical: -value.typical,
        third: -value.third,
        one_control: -value.one_control,
        timed: -value.timed,
        ..value
    }
}

/// What one side spent in a round, and on how many operations.
type Spent = (f64, f64);

/// Cost for each operation in every block that has it: at equal speed of the core where probes tell that, but
/// both sides' own values as they were.
fn of_blocks(
    pairing: &Pairing<'_>,
    cost: impl Fn(&Block<'_>, &Slice) -> Option<f64>,
) -> Vec<BlockValue> {
    let mut slope = Slope::default();
    let values = pairing.blocks.iter().filter_map(|block| {
        let each = |slice: &Slice| Some(cost(block, slice)? / to_f64(slice.operations));
        slope.add(block, each);
        let probes = Probes::of(block);
        let sides = Sides::of(block, |slice| cost(block, slice))?;
        sides.value(block, probes.as_ref().map(|probes| (slope.value(), probes)))
    });
    values.collect()
}

/// What all sides of a block spent.
struct Sides {
    base: Side,
    candidate: Side,
    /// ln(candidate / base) against the base alone, without a second control.
    one_control: f64,
}

impl Sides {
    /// From the rounds in which all sides know their cost; `None` if they are too few.
    fn of(block: &Block<'_>, cost: impl Fn(&Slice) -> Option<f64>) -> Option<Self> {
        let spent =
            |slice: &Slice| -> Option<Spent> { Some((cost(slice)?, to_f64(slice.operations))) };
        let (mut base, mut second, mut candidate) = (Vec::new(), Vec::new(), Vec::new());
        for round in &block.rounds {
            let controls = (spent(round.base), round.second.map(spent));
            if let ((Some(one), None | Some(Some(_))), Some(other)) =
                (controls, spent(round.candidate))
            {
                base.push(one);
                second.extend(controls.1.flatten());
                candidate.push(other);
            }
        }
        if base.len() < block.least {
            return None;
        }
        let (one, candidate) = (Side::of(&base)?, Side::of(&candidate)?);
        let one_control = (candidate.mean / one.mean).ln();
        Some(Self {
            base: match second.is_empty() {
                true => one,
                false => one.with(&Side::of(&second)?),
            },
            candidate,
            one_control,
        })
    }

    /// The block's value, less what the probes say by this slope, if they do.
    fn value(&self, block: &Block<'_>, probes: Option<(f64, &Probes)>) -> Option<BlockValue> {
        let mut value = BlockValue::plain(block.block, self.base.mean, self.candidate.mean)?;
        value.one_control = self.one_control;
        let mut off = vec![0.0; self.base.each.len()];
        if let Some((slope, probes)) = probes {
            value.log_ratio -= slope * probes.mean;
            value.one_control -= slope * probes.one_control;
            value.probes = Some(probes.mean);
            // Where a slice lacks its cost there are more probes than rounds of costs.
            let same = probes.each.len() == off.len();
            let of_round = |round: usize| probes.each.get(round).filter(|_| same);
            for (round, off) in off.iter_mut().enumerate() {
                *off = slope * of_round(round).unwrap_or(&probes.mean);
            }
        }
        if block.draws {
            let apart = std::iter::zip(&self.base.off, &self.candidate.off);
            let apart =
                std::iter::zip(apart, &off).map(|((base, candidate), off)| candidate - base - off);
            value.third = third_moment(&apart.collect::<Vec<_>>());
        }
        value.typical = value.log_ratio;
        if !block.pooled {
            let logs = std::iter::zip(&self.base.each, &self.candidate.each);
            let logs = std::iter::zip(logs, &off)
                .map(|((base, candidate), off)| (candidate / base).ln() - off);
            let logs: Vec<f64> = logs.collect();
            value.typical = trimmed_mean(&logs, TRIM)?;
        }
        Some(value)
    }
}

/// One side's rounds of a block.
struct Side {
    /// Cost for each operation, all rounds together.
    mean: f64,
    /// The same in each round.
    each: Vec<f64>,
    /// How far each round's cost is from what its operations cost on average, over that of an average round.
    off: Vec<f64>,
}

impl Side {
    fn of(rounds: &[Spent]) -> Option<Self> {
        let total = |of: fn(&Spent) -> f64| rounds.iter().map(of).sum::<f64>();
        let (cost, operations) = (total(|round| round.0), total(|round| round.1));
        let (mean, rounds_in_all) = (cost / operations, to_f64(count(rounds.len())));
        let off = |round: &Spent| (round.0 - mean * round.1) * rounds_in_all / cost;
        (cost > 0.0 && operations > 0.0).then(|| Self {
            mean,
            each: rounds.iter().map(|round| round.0 / round.1).collect(),
            off: rounds.iter().map(off).collect(),
        })
    }

    /// Two copies of one server in the same rounds, as one: their mean on the log scale.
    fn with(&self, other: &Self) -> Self {
        let pairs = |of: fn(&Self) -> &[f64], mean: fn(f64, f64) -> f64| {
            let pairs = std::iter::zip(of(self), of(other));
            pairs.map(|(one, two)| mean(*one, *two)).collect()
        };
        let geometric = |one: f64, two: f64| (one * two).sqrt();
        Self {
            mean: geometric(self.mean, other.mean),
            each: pairs(|side| &side.each, geometric),
            off: pairs(|side| &side.off, |one, two| (one + two) / 2.0),
        }
    }
}

/// Third central moment of the mean of these values, without bias; 0 for fewer than three.
fn third_moment(values: &[f64]) -> f64 {
    let n = to_f64(count(values.len()));
    let Some(centre) = mean(values).filter(|_| values.len() >= 3) else {
        return 0.0;
    };
    let cubes: f64 = values.iter().map(|value| (value - centre).powi(3)).sum();
    cubes * n / ((n - 1.0) * (n - 2.0)) / n.powi(2)
}

/// The block values of one metric as a sample: log-ratios, candidate over base.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Values {
    /// Of all rounds of each block together.
    pub(crate) logs: Vec<f64>,
    /// Of the typical operation of each block.
    pub(crate) typical: Vec<f64>,
    /// Of the error of the mean of `logs`, as estimated.
    pub(crate) skewness: Skewness,
}

impl Values {
    pub(crate) fn of(values: &[BlockValue]) -> Self {
        let logs = log_ratios(values);
        let thirds: f64 = values.iter().map(|value| value.third).sum();
        let blocks = to_f64(count(logs.len()));
        let error = sample_sd(&logs).map_or(0.0, |sd| sd / blocks.sqrt());
        let of_rounds = Skewness::of(thirds / blocks.powi(3) / error.powi(3));
        let apart = values
            .iter()
            .map(|value| value.one_control - value.log_ratio);
        let of_starts = of_starts(&logs, &apart.collect::<Vec<f64>>());
        Self {
            logs,
            typical: values.iter().map(|value| value.typical).collect(),
            skewness: of_rounds.or(of_starts),
        }
    }

    /// Values that are not known to be skewed, and have no typical part.
    pub(crate) fn plain(logs: Vec<f64>) -> Self {
        Self {
            typical: logs.clone(),
            logs,
            skewness: Skewness::default(),
        }
    }

    /// Times 1 or −1.
    pub(crate) fn times(&self, sign: f64) -> Self {
        let turned = |values: &[f64]| values.iter().map(|value| sign * value).collect();
        Self {
            logs: turned(&self.logs),
            typical: turned(&self.typical),
            skewness: self.skewness.times(sign),
        }
    }

    /// The mean of the typical operation's log-ratios; `None` with fewer than two blocks.
    pub(crate) fn of_typical(&self) -> Option<SkewedMean> {
        SkewedMean::new(&self.typical, 0.0).ok()
    }

    /// The mean of the log-ratios; `None` with fewer than two blocks.
    pub(crate) fn mean(&self) -> Option<SkewedMean> {
        SkewedMean::new(&self.logs, self.skewness).ok()
    }

    /// The mean of so many blocks like these with this sd; `None` without a block.
    pub(crate) fn of_blocks(&self, blocks: usize, sd: f64) -> Option<SkewedMean> {
        let (have, blocks) = (to_f64(count(self.logs.len())), to_f64(count(blocks)));
        Some(SkewedMean::assumed(
            mean(&self.logs)?,
            sd / blocks.sqrt(),
            blocks - 1.0,
            // That of the mean of n values falls with the root of n.
            self.skewness.times((have / blocks).sqrt()),
        ))
    }
}

/// The log-ratios alone.
pub(crate) fn log_ratios(values: &[BlockValue]) -> Vec<f64> {
    values.iter().map(|value| value.log_ratio).collect()
}

/// exp(mean) of block log-ratios with its intervals over blocks; `None` without a block.
pub(crate) fn ratio(values: &Values, levels: Levels) -> Option<Ratio> {
    let known = values.mean();
    let ends = |interval: Interval| (interval.low.exp(), interval.high.exp());
    Some(Ratio {
        estimate: mean(&values.logs)?.exp(),
        ci95: known.map(|mean| ends(levels.interval(&mean))),
        ci90: known.map(|mean| ends(mean.interval(levels.printed_equivalent()))),
    })
}

/// The metric as reported, not yet judged; `None` where no block has it. `clients` share the operations of a
/// closed loop; an open loop has none.
pub(crate) fn compare_metric(
    metric: Metric,
    values: &[BlockValue],
    clients: Option<u32>,
    levels: Levels,
) -> Option<MetricComparison> {
    let sample = Values::of(values);
    let base: Vec<f64> = values.iter().map(|value| value.base).collect();
    let candidate: Vec<f64> = values.iter().map(|value| value.candidate).collect();
    let rounds = matches!(metric, Metric::Throughput | Metric::ServerCpuPerOperation);
    let typical = rounds.then(|| ratio(&Values::plain(sample.typical.clone()), levels));
    Some(MetricComparison {
        metric,
        base: geometric_mean(&base)?,
        candidate: geometric_mean(&candidate)?,
        ratio: ratio(&sample, levels)?,
        typical: typical.flatten(),
        difference_us: (metric != Metric::LatencyMax)
            .then(|| difference(metric, values, clients, levels))
            .flatten(),
        verdict: None,
        skewness: sample.skewness,
        blocks: sample.logs,
        numbers: values.iter().map(|value| value.block).collect(),
        other_blocks: Vec::new(),
        probed: probed(values, levels),
        hours: None,
    })
}

/// What probes changed in these values; `None` where no block has them.
fn probed(values: &[BlockValue], levels: Levels) -> Option<Probed> {
    let in_block = |value: &BlockValue| Some((value.block, value.probes?));
    let in_blocks: Vec<(u32, f64)> = values.iter().filter_map(in_block).collect();
    let beside = Values::plain(in_blocks.iter().map(|(_, probes)| *probes).collect());
    let timed = Values::plain(values.iter().map(|value| value.timed).collect());
    let scatter = sample_sd(&log_ratios(values)).zip(sample_sd(&timed.logs));
    Some(Probed {
        timed: ratio(&timed, levels)?,
        scatter: scatter.map(|(equal, timed)| equal / timed),
        beside: ratio(&beside, Levels::FIXED)?,
        p: beside.mean().map(|mean| mean.p()),
        in_blocks,
    })
}

/// What an operation takes longer on the candidate, microseconds: of its time for throughput and latencies,
/// of CPU for CPU.
fn difference(
    metric: Metric,
    values: &[BlockValue],
    clients: Option<u32>,
    levels: Levels,
) -> Option<Difference> {
    let more = |value: &BlockValue| match metric {
        Metric::Throughput => {
            let base = f64::from(clients?) * 1e6 / value.base;
            Some(base * (-value.log_ratio).exp_m1())
        }
        _ => Some(value.base * value.log_ratio.exp_m1()),
    };
    let sign = if metric == Metric::Throughput {
        -1.0
    } else {
        1.0
    };
    let differences: Vec<f64> = values.iter().map(more).collect::<Option<_>>()?;
    let sample = Values::of(values);
    let interval = SkewedMean::new(&differences, sample.skewness.times(sign)).ok();
    // What a look does to the interval of the ratio it does to that of the difference.
    let longer = |log: fn(&Interval) -> f64| {
        let mean = sample.mean()?;
        let (plain, ends) = (mean.interval(levels.printed), levels.interval(&mean));
        let by = (log(&ends) - mean.centre) / (log(&plain) - mean.centre);
        Some(by).filter(|by| by.is_finite())
    };
    let (low, high) = (longer(|ends| ends.low), longer(|ends| ends.high));
    let (low, high) = (low.unwrap_or(1.0), high.unwrap_or(1.0));
    let (below, above) = if sign > 0.0 { (low, high) } else { (high, low) };
    Some(Difference {
        estimate: mean(&differences)?,
        ci95: interval.map(|mean| {
            let (ends, centre) = (mean.interval(levels.printed), mean.centre);
            let low = centre - below * (centre - ends.low);
            (low, centre + above * (ends.high - centre))
        }),
    })
}
