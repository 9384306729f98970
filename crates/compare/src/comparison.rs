//! The result of a comparison: what every report is made from.

mod hours;
mod instructions;

use crate::levels::{is_asked_of_cpu, scale, scaled};
use crate::thresholds::MIN_BLOCKS;
use deltabench_model::finding::Finding;
use deltabench_model::metric::{self, MetricInfo};
use deltabench_model::plan::{CellId, Gate, Group, ServerId, Stopping};
use deltabench_model::units::index;
use deltabench_stats::between::Between;
use deltabench_stats::skewed::{SkewedMean, Skewness};

pub use deltabench_model::metric::Better;
pub use hours::{Hours, HoursFrom, Sessions};
pub use instructions::{Apart, CountedCell, InstructionCounts, ServerCount};

/// A metric that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Operations per second.
    Throughput,
    /// CPU of the server's processes for each operation, microseconds.
    ServerCpuPerOperation,
    /// Median latency, microseconds.
    LatencyP50,
    /// 95th percentile of latency, microseconds.
    LatencyP95,
    /// 99th percentile of latency, microseconds.
    LatencyP99,
    /// 99.9th percentile of latency, microseconds.
    LatencyP999,
    /// The longest latency of a block, microseconds.
    LatencyMax,
}

impl Metric {
    /// All metrics, in report order.
    pub const ALL: [Self; 7] = [
        Self::Throughput,
        Self::ServerCpuPerOperation,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::LatencyP99,
        Self::LatencyP999,
        Self::LatencyMax,
    ];

    /// Its row in the registry.
    pub fn info(self) -> &'static MetricInfo {
        match self {
            Self::Throughput => &metric::THROUGHPUT,
            Self::ServerCpuPerOperation => &metric::SERVER_CPU,
            Self::LatencyP50 => &metric::LATENCY_P50,
            Self::LatencyP95 => &metric::LATENCY_P95,
            Self::LatencyP99 => &metric::LATENCY_P99,
            Self::LatencyP999 => &metric::LATENCY_P999,
            Self::LatencyMax => &metric::LATENCY_MAX,
        }
    }

    /// The key in JSON and CSV.
    pub fn key(self) -> &'static str {
        self.info().key
    }

    /// The unit of absolute values.
    pub fn unit(self) -> &'static str {
        self.info().unit
    }

    /// The quantile of a latency; absent for other metrics.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Throughput | Self::ServerCpuPerOperation => None,
            Self::LatencyP50 => Some(0.5),
            Self::LatencyP95 => Some(0.95),
            Self::LatencyP99 => Some(0.99),
            Self::LatencyP999 => Some(0.999),
            Self::LatencyMax => Some(1.0),
        }
    }

    /// Which way is good.
    pub fn better(self) -> Better {
        self.info().better.unwrap_or(Better::Lower)
    }
}

/// The answer for a cell or a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Slower, beyond chance.
    Regression,
    /// Faster, beyond chance.
    Improvement,
    /// Equal within ±δ, shown by an equivalence test.
    NoChange,
    /// The data allow neither.
    Inconclusive,
    /// Placebo or host say that this cell cannot be trusted.
    Unfit,
}

impl Verdict {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::NoChange => "no-change",
            Self::Inconclusive => "inconclusive",
            Self::Unfit => "unfit",
        }
    }

    /// Whether it claims a difference.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Regression | Self::Improvement)
    }
}

/// A relative value (candidate / base) with its interval. All are plain ratios: 1.0 is equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// exp of the mean of the block values.
    pub estimate: f64,
    /// Interval that holds the true ratio in 95 of 100 runs; absent with fewer than two blocks. Where
    /// measuring stopped early it is computed at [`CellComparison::interval_level`] to keep that rate.
    pub ci95: Option<(f64, f64)>,
    /// 90 % interval (for the equivalence test); absent and widened likewise.
    pub ci90: Option<(f64, f64)>,
}

impl Ratio {
    /// With each end at least as far out as that of `other`.
    pub(crate) fn outer(self, other: &Self) -> Self {
        let outer = |one: Option<(f64, f64)>, other: Option<(f64, f64)>| {
            let (one, other) = (one?, other?);
            Some((one.0.min(other.0), one.1.max(other.1)))
        };
        Self {
            ci95: outer(self.ci95, other.ci95),
            ci90: outer(self.ci90, other.ci90),
            ..self
        }
    }
}

/// A metric with and without what probes of the core say of its speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// Relative value as timed, whatever the probes say.
    pub timed: Ratio,
    /// Standard deviation of block values over that of values as timed; absent with fewer than two blocks.
    pub scatter: Option<f64>,
    /// How long a probe took beside the candidate, over that beside the base: 1 but for chance.
    pub beside: Ratio,
    /// ln of that in each block that has probes, with the block's number.
    pub in_blocks: Vec<(u32, f64)>,
    /// Two-sided p of "it takes as long"; absent with fewer than two blocks.
    pub p: Option<f64>,
}

/// One metric of one cell and candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricComparison {
    pub metric: Metric,
    /// Absolute value on the base.
    pub base: f64,
    /// Absolute value on the candidate.
    pub candidate: f64,
    /// Relative value of totals: what all operations took together.
    pub ratio: Ratio,
    /// Relative value of the typical operation: rounds with the slowest and the fastest fifth left out.
    /// Throughput and CPU per operation have it.
    pub typical: Option<Ratio>,
    /// What an operation takes more on the candidate, microseconds: of its client's time for throughput.
    /// Absent for the throughput of an open loop, which is what was asked for, and for the longest operation,
    /// of which a block has one.
    pub difference_us: Option<Difference>,
    /// The verdict of this metric alone; only for the metrics that are judged: throughput, CPU per operation,
    /// and the slow end of latency, that among all cells (Benjamini-Hochberg).
    pub verdict: Option<Verdict>,
    /// Log-ratio of each block, in block order: the sample behind the interval. With looks these are the
    /// blocks of the decision: those up to the look, or the fresh ones that confirmed what a look had found.
    pub blocks: Vec<f64>,
    /// The number of the block of each.
    pub numbers: Vec<u32>,
    /// Log-ratios of all other blocks, with their numbers: those up to the look that found a difference, or
    /// what was measured after the answer because other cells or servers needed it. Throughput and CPU per
    /// operation of one session have them.
    pub other_blocks: Vec<(u32, f64)>,
    /// Skewness of the error of their mean, for the interval.
    pub skewness: Skewness,
    /// What probes of the core changed; throughput and CPU per operation of one session have it where there
    /// were probes.
    pub probed: Option<Probed>,
    /// What other hours say of it; absent where nobody asked, and for a slow quantile of a single session
    /// of a host without a history.
    pub hours: Option<Hours>,
}

impl MetricComparison {
    /// Two-sided p of "both are equal", of this cell alone: from the sessions if there are several,
    /// else from the blocks; `None` with fewer than two.
    pub fn p(&self) -> Option<f64> {
        if let Some(sessions) = self.over_sessions() {
            return Some(sessions.p());
        }
        let mean = SkewedMean::new(&self.blocks, self.skewness).ok()?;
        Some(mean.p())
    }

    /// Blocks of one session are not independent: they have in common what moves from hour to hour.
    fn over_sessions(&self) -> Option<Between> {
        self.hours.as_ref()?.mean
    }
}

/// What stalls cost one side more than the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// Whether it is the candidate that loses by them.
    pub on_candidate: bool,
    /// One operation in so many is that slow on the side that loses.
    pub one_in: f64,
    /// The same on the other side; absent where none is.
    pub other_one_in: Option<f64>,
    /// What such an operation takes, milliseconds.
    pub milliseconds: f64,
    /// Their part of all the time of operations, as a share.
    pub share_of_time: f64,
    /// Two-sided p of "totals and the typical operation changed alike", of this cell alone.
    pub p: f64,
    /// Whether the cell's reason names them, because the typical operation has another verdict than the
    /// total, or CPU per operation answers it otherwise.
    pub named: bool,
}

impl Stalls {
    pub(crate) fn named_if(self, named: bool) -> Self {
        Self { named, ..self }
    }

    /// The side that loses by them, in a word.
    pub(crate) fn loser(&self) -> &'static str {
        if self.on_candidate {
            "candidate"
        } else {
            "base"
        }
    }
}

/// One cell and one candidate (or the placebo) against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct CellComparison {
    pub cell: CellId,
    pub workload: String,
    pub group: Group,
    pub clients: u32,
    /// The side compared with the base.
    pub candidate: ServerId,
    pub candidate_name: String,
    /// The answer, as listed among all cells: a regression or improvement only where
    /// [`CellComparison::p_bh`] is at most 5 %.
    pub verdict: Verdict,
    /// What the answer would be if this were the only cell.
    pub alone: Verdict,
    /// Why, in words, for example `slower by 3.4 % to 5.1 %`.
    pub reason: String,
    /// The smallest change that matters here, as a share: the plan's, or one of its own from the placebo's
    /// noise.
    pub delta: f64,
    /// Two-sided p of "throughput is equal", valid however often was looked; absent before the first look
    /// or with fewer than two blocks. Where fresh blocks followed a detection it is that of both together.
    pub p: Option<f64>,
    /// `p` adjusted by Holm over all cells and candidates: for the gate.
    pub p_holm: Option<f64>,
    /// `p` adjusted by Benjamini and Hochberg over all cells and candidates: for the listing.
    pub p_bh: Option<f64>,
    /// Looks made at this cell so far; 0 where the plan has none.
    pub looks: u32,
    /// The look, from 1, that decided; absent while open, and where the plan has no looks.
    pub decided_at: Option<u32>,
    /// A difference that a look found before the last one, which is then measured again on fresh blocks.
    pub detection: Option<Detection>,
    /// What throughput lost to stalls that the typical operation does not show; absent where it lost none
    /// beyond chance.
    pub stalls: Option<Stalls>,
    /// Whether a second run on a fresh load found the difference again. In a run that confirms another `Open`
    /// once the cell is measured, since only both runs together can say.
    pub confirmation: Option<Confirmation>,
    /// What that second run found; absent without one.
    pub recurrence: Option<Recurrence>,
    /// Level of Student's interval behind `ci95`: 0.95, or more where measuring stopped at a width or
    /// at a clear difference.
    pub interval_level: f64,
    /// Why a server of this cell never became steady, in words; filled by who measures.
    pub drifting: Option<String>,
    /// Rounds that other load disturbed, and what the estimates are with and without them.
    pub interference: Interference,
    /// How fast the host was in each block, and whether the difference goes with that; absent with too few
    /// blocks, without a third server, for servers elsewhere, and where a block is one long step.
    pub host_speed: Option<HostSpeed>,
    /// Blocks that might still decide an inconclusive cell; absent beyond a thousand, or when decided.
    pub blocks_to_verdict: Option<u32>,
    /// Minutes for these blocks at the pace of this run; absent where the pace is not known.
    pub minutes_to_verdict: Option<f64>,
    /// Restart blocks that count.
    pub blocks: u32,
    /// Rounds that count, over all blocks.
    pub rounds: u64,
    /// Rounds that were left out because a slice in them was void.
    pub void_rounds: u64,
    /// The metrics that could be compared, in [`Metric::ALL`] order.
    pub metrics: Vec<MetricComparison>,
    /// Absolute throughput of each block, in block order; empty until filled by [`crate::analyse()`].
    pub rates: Vec<BlockRate>,
    /// Latency of both sides, all slices that count together; absent where nothing was measured.
    pub latency: Option<LatencyCurves>,
    /// What each operation cost, in the registry's order; what one side lacks is not in it. Empty until
    /// [`crate::costs::add_costs`].
    pub costs: Vec<Cost>,
    /// Operations per second of base and candidate over the blocks of its costs, which are more or others
    /// than those behind throughput; absent until [`crate::costs::add_costs`].
    pub cost_rates: Option<(f64, f64)>,
    /// The costs that moved, most surprising first; empty until [`crate::costs::add_costs`].
    pub moved: Vec<Moved>,
    /// What moved, in words; absent where nothing did.
    pub explanation: Option<String>,
    /// Rounds in order: (block, round, log-ratio of throughput, log-ratio of CPU per operation).
    pub series: Vec<RoundRatio>,
    /// Server errors seen on the base.
    pub base_errors: u64,
    /// Server errors seen on the candidate.
    pub candidate_errors: u64,
}

impl CellComparison {
    /// Whether its figures may be used beside those of other runs. A cell that its own work makes unfit has
    /// no p; one that its placebo or its host makes unfit has.
    pub fn says_something(&self) -> bool {
        self.blocks > 0 && (self.p.is_some() || self.verdict != Verdict::Unfit)
    }

    /// One of its metrics; `None` where it could not be compared.
    pub fn metric(&self, wanted: Metric) -> Option<&MetricComparison> {
        self.metrics.iter().find(|found| found.metric == wanted)
    }

    /// Those of its metrics whose width ends it under
    /// [`Precision`](deltabench_model::plan::Stopping::Precision): throughput, and CPU per operation if half
    /// of its blocks have it.
    pub fn metrics_of_width(&self) -> impl Iterator<Item = &MetricComparison> {
        let speed = self.metric(Metric::Throughput);
        let cost = self.metric(Metric::ServerCpuPerOperation).filter(|cost| {
            speed.is_none_or(|speed| is_asked_of_cpu(cost.blocks.len(), speed.blocks.len()))
        });
        speed.into_iter().chain(cost)
    }

    /// Whether these are known to within so much, as a share, from as many blocks as a verdict takes.
    pub fn is_within(&self, half_width: f64) -> bool {
        // The intervals were narrow enough by their logarithms; exp and back may cost the last digit.
        let narrow = |(low, high): (f64, f64)| (high / low).ln() / 2.0 <= half_width.ln_1p() + 1e-9;
        index(u64::from(self.blocks)) >= MIN_BLOCKS
            && self.metric(Metric::Throughput).is_some()
            && self
                .metrics_of_width()
                .all(|found| found.ratio.ci95.is_some_and(narrow))
    }

    /// p of one of its metrics ([`MetricComparison::p`]) on the scale of the interval that is printed: below
    /// 5 % exactly if its 95 % one leaves 1 out.
    ///
    /// An early "no change" is the exception: its interval allows for the look that ended it
    /// (`docs/decisions/0021-an-early-no-change-has-a-wider-interval.md`) and p does not. So p may be below
    /// 5 % and the interval contain 1; the reverse does not happen.
    pub fn p_of(&self, wanted: Metric) -> Option<f64> {
        let metric = self.metric(wanted)?;
        match metric.over_sessions() {
            Some(sessions) => Some(sessions.p_scaled(scale(self.interval_level))),
            None => Some(scaled(metric.p()?, self.interval_level)),
        }
    }

    /// One-sided p of "the log-ratio of throughput is at least `bound`", on the same scale.
    pub(crate) fn p_below(&self, bound: f64) -> Option<f64> {
        let speed = self.metric(Metric::Throughput)?;
        if let Some(sessions) = speed.over_sessions() {
            return Some(sessions.p_below_scaled(bound, scale(self.interval_level)));
        }
        let beyond: Vec<f64> = speed.blocks.iter().map(|gain| bound - gain).collect();
        let mean = SkewedMean::new(&beyond, speed.skewness.times(-1.0)).ok()?;
        Some(scaled(mean.p_above(), self.interval_level))
    }

    /// One-sided p of "the log-ratio of a session in another hour is at least `bound`": never below that of
    /// the measured ones.
    pub(crate) fn another_p_below(&self, bound: f64) -> Option<f64> {
        let speed = self.metric(Metric::Throughput)?;
        let hours = speed.measured_hours()?;
        let another = [Some(hours.next), hours.next_slow].into_iter().flatten();
        let own = self.p_below(bound)?;
        Some(another.map(|next| next.p_below(bound)).fold(own, f64::max))
    }
}

/// Throughput and CPU of one block on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockRate {
    pub block: u32,
    /// Throughput of the base, ops/s.
    pub base: f64,
    pub candidate: f64,
    /// CPU of base and candidate for an operation, microseconds; absent where the block has none.
    pub server_cpu_us: Option<(f64, f64)>,
    /// Context switches of base and candidate for an operation; absent where a slice does not know them.
    pub switches: Option<(f64, f64)>,
}

/// Percentiles of latency of both sides, at the same percentiles in rising order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyCurves {
    /// Percentiles, 0 to 100: denser towards 100, up to where a side has ten slower operations.
    pub percentiles: Vec<f64>,
    pub base_us: Vec<f64>,
    pub candidate_us: Vec<f64>,
}

/// One cost of an operation on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Key in [`deltabench_model::metric::METRICS`], or `wait:TYPE:EVENT` for a sampled wait (us/op).
    pub key: String,
    /// On the base, in the metric's unit.
    pub base: f64,
    pub candidate: f64,
    /// candidate - base with its 95 % interval, in the metric's unit: also where one of them is 0.
    pub difference: Difference,
    /// candidate / base; absent unless both are above 0 in every block.
    pub ratio: Option<Ratio>,
    /// Blocks in which both sides have it.
    pub blocks: u32,
}

/// A difference of absolute values with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean over the blocks.
    pub estimate: f64,
    /// Interval that holds the true difference in 95 of 100 runs; absent with fewer than two blocks.
    pub ci95: Option<(f64, f64)>,
}

/// A cost that moved, and how surprising that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    pub key: String,
    /// How many times the placebo's own typical move of this cost it moved; infinite where the placebo's
    /// never moves.
    pub surprise: f64,
    /// Two-sided p of "it did not move", adjusted by Benjamini and Hochberg over the costs of this cell.
    pub p: f64,
    /// The move in words, for example `user CPU +3.6 % [+3.1, +4.2]`.
    pub text: String,
}

/// A difference that a look found before the last one.
///
/// An estimate at the moment of its discovery is biased outward, so fresh blocks are measured and the printed
/// numbers come from these alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// The look, from 1.
    pub look: u32,
    pub blocks: u32,
    /// Throughput as estimated there.
    pub throughput: Ratio,
    /// Its p there, valid however often was looked.
    pub p: f64,
    /// What the fresh blocks say.
    pub outcome: DetectionOutcome,
}

/// What fresh blocks say about a detection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DetectionOutcome {
    /// Not yet all measured.
    Confirming {
        /// Fresh blocks still needed.
        blocks_left: u32,
    },
    /// Same direction, one-sided p at most 2.5 %.
    Recurred { p: f64 },
    /// Not so: the cell is inconclusive, or equal where the fresh blocks show that.
    DidNotRecur {
        /// The one-sided p of the direction that was found.
        p: f64,
    },
}

/// Whether a difference that one run found came again in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Confirmation {
    /// In the same direction, one-sided p at most 5 %.
    Recurred,
    /// Not so, and both runs together exclude it, or the second denies the first.
    DidNotRecur,
    /// Neither is shown, or the second run is not to be trusted.
    Open,
}

/// What a second run on a fresh load says of a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    pub outcome: Confirmation,
    /// One-sided p of "the second run shows nothing in the direction that was found".
    pub p: f64,
    /// Throughput in the second run alone, which nothing has selected.
    pub again: Ratio,
    /// Throughput in both runs together, without the first one's selection: it was measured again because it
    /// looked large.
    pub together: Ratio,
    /// From the end of the first run to the start of the second; absent where that is not known.
    pub seconds_later: Option<f64>,
}

impl Confirmation {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Recurred => "recurred",
            Self::DidNotRecur => "did-not-recur",
            Self::Open => "open",
        }
    }
}

/// Rounds that other load disturbed: steal, foreign CPU, servers that were kept off their core or should have
/// been idle.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Interference {
    /// Rounds disturbed, by a rule that does not look at outcomes, over all blocks.
    pub disturbed_rounds: u64,
    /// Those of them that do not count: all, but where the cell is contended and its interval is no wider
    /// without them.
    pub left_out: u64,
    /// More than half of the rounds are disturbed, in the blocks behind throughput and those before them.
    pub contended: bool,
    /// Estimates with the disturbed rounds in; absent where there are none.
    pub with_voided: Option<Estimates>,
    /// Estimates with the disturbed rounds left out; absent where there are none, or no block is left.
    pub without_voided: Option<Estimates>,
}

/// How fast the host was in each block of a cell, and whether the difference goes with that.
///
/// The host's speed is that of the servers outside of the pair: the placebo and other candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSpeed {
    /// Their time per operation in the second slowest block over that in the second fastest.
    pub slowdown: f64,
    /// The same for each block, in block order: 1.4 took 40 % longer.
    pub blocks: Vec<(u32, f64)>,
    /// Whether throughput's ratio goes with it; absent where blocks were about as fast, or only a few were
    /// not.
    pub throughput: Option<Dependence>,
    /// The same of CPU per operation.
    pub server_cpu: Option<Dependence>,
    /// How far hours move throughput's log-ratio that are as fast as the fast blocks or as slow as the slow
    /// ones: a standard deviation, half of ln `slowdown` times the slope of the log-ratio over ln of time per
    /// operation, without what chance adds to that. 0 where blocks were about as fast.
    pub throughput_moves: f64,
    /// The same of CPU per operation.
    pub server_cpu_moves: f64,
}

/// A ratio where the host was fast and where it was slow: blocks on either side of the middle of
/// [`HostSpeed::slowdown`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dependence {
    /// The ratio where the host was fast.
    pub fast: Ratio,
    pub slow: Ratio,
    /// Two-sided p of "both are the same", of this cell and metric alone, with `correlation` allowed for.
    pub p: f64,
    /// Correlation of blocks in a row, less the means of both sides; 0 where it is negative.
    pub correlation: f64,
}

/// Both primary metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimates {
    pub throughput: Ratio,
    /// CPU per operation, where known.
    pub server_cpu: Option<Ratio>,
}

/// The geometric mean over the cells of a group, or over all, for one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSummary {
    /// The side compared with the base.
    pub candidate: ServerId,
    pub candidate_name: String,
    /// The group; absent for all cells.
    pub group: Option<Group>,
    /// Cells in it that have an estimate.
    pub cells: u32,
    /// Cells in it of the plan.
    pub of: u32,
    /// Geometric mean of throughput, with an interval that knows that cells share blocks.
    pub throughput: Ratio,
    /// The same of CPU per operation, over the cells where it is known.
    pub server_cpu: Option<Ratio>,
}

/// The log-ratios of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundRatio {
    pub block: u32,
    pub round: u32,
    /// ln(candidate / base) of throughput.
    pub throughput: f64,
    /// ln(candidate / base) of CPU per operation, where known.
    pub server_cpu: Option<f64>,
}

/// How often each verdict was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerdictCounts {
    /// Cells that got slower.
    pub regression: u32,
    /// Cells that got faster.
    pub improvement: u32,
    /// Cells shown equal within ±δ.
    pub no_change: u32,
    /// Cells that could not be decided.
    pub inconclusive: u32,
    /// Cells that could not be trusted.
    pub unfit: u32,
}

/// The placebo over all cells: the run's own answer to "what does it say about nothing?".
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceboSummary {
    /// Geometric mean over the cells of throughput, placebo / base, with its interval.
    pub throughput: Ratio,
    /// The same of CPU per operation, where known.
    pub server_cpu: Option<Ratio>,
    /// Cells in which the placebo was called different.
    pub flagged: u32,
    pub cells: u32,
}

/// Everything that a report shows about one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The plan's δ, as a share; each cell has its own in [`CellComparison::delta`].
    pub delta: f64,
    /// When the plan stops measuring a cell.
    pub stopping: Stopping,
    /// What the exit code answers.
    pub gate: Gate,
    /// Candidates' cells, ordered by cell and then by candidate.
    pub cells: Vec<CellComparison>,
    /// The placebo's cells, in the same form.
    pub placebo_cells: Vec<CellComparison>,
    /// The placebo in one line; absent when the run has none or nothing was measured.
    pub placebo: Option<PlaceboSummary>,
    /// Geometric means for each candidate: each group of the plan in its order, then all cells.
    pub summaries: Vec<GroupSummary>,
    /// How often each verdict was given.
    pub counts: VerdictCounts,
    /// Whether the host could be trusted, and what was wrong if not.
    pub host_ok: bool,
    /// Whether the run has not come to its end: nothing passes yet.
    pub unfinished: bool,
    /// Differences between the sides besides what was asked, and facts about the host.
    pub findings: Vec<Finding>,
    /// Instructions counted; absent where they were not.
    pub instructions: Option<InstructionCounts>,
    /// The sessions that it is made of; absent for one run.
    pub sessions: Option<Sessions>,
}

impl Comparison {
    /// The counted instructions of a run that has nothing else.
    pub fn counted_alone(&self) -> Option<&InstructionCounts> {
        self.instructions.as_ref().filter(|counts| counts.alone)
    }

    /// The counted instructions of a run that was timed too.
    pub fn counted_beside(&self) -> Option<&InstructionCounts> {
        self.instructions.as_ref().filter(|counts| !counts.alone)
    }
}
