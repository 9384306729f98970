//! The result of a comparison: what every report is made from.

use deltabench_model::finding::Finding;
use deltabench_model::plan::{CellId, Group, ServerId};

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Larger is better.
    Higher,
    /// Smaller is better.
    Lower,
}

/// A metric that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Operations per second.
    Throughput,
    /// CPU of the server's processes for each operation, microseconds.
    ServerCpuPerOperation,
    /// Median latency, microseconds.
    LatencyP50,
    /// 99th percentile of latency, microseconds.
    LatencyP99,
}

impl Metric {
    /// All metrics, in report order.
    pub const ALL: [Self; 4] = [
        Self::Throughput,
        Self::ServerCpuPerOperation,
        Self::LatencyP50,
        Self::LatencyP99,
    ];

    /// The key in JSON and CSV.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::ServerCpuPerOperation => "server_cpu_us_per_op",
            Self::LatencyP50 => "latency_us_p50",
            Self::LatencyP99 => "latency_us_p99",
        }
    }

    /// The unit of absolute values.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "ops/s",
            Self::ServerCpuPerOperation => "us/op",
            Self::LatencyP50 | Self::LatencyP99 => "us",
        }
    }

    /// Which way is good.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Self::Throughput => Better::Higher,
            _ => Better::Lower,
        }
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
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::NoChange => "no-change",
            Self::Inconclusive => "inconclusive",
            Self::Unfit => "unfit",
        }
    }
}

/// A relative value (candidate / base) with its interval. All are plain ratios: 1.0 is equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// exp of the mean of the block values.
    pub estimate: f64,
    /// 95 % interval; absent with fewer than two blocks.
    pub ci95: Option<(f64, f64)>,
    /// 90 % interval (for the equivalence test); absent likewise.
    pub ci90: Option<(f64, f64)>,
}

/// One metric of one cell and candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricComparison {
    /// Which metric.
    pub metric: Metric,
    /// Absolute value on the base.
    pub base: f64,
    /// Absolute value on the candidate.
    pub candidate: f64,
    /// Relative value.
    pub ratio: Ratio,
    /// The verdict this metric alone would give; only for the metrics that are judged.
    pub verdict: Option<Verdict>,
    /// Log-ratio of each block, in block order: the sample behind the interval.
    pub blocks: Vec<f64>,
}

/// One cell and one candidate (or the placebo) against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct CellComparison {
    /// The cell.
    pub cell: CellId,
    /// Workload name.
    pub workload: String,
    /// Family.
    pub group: Group,
    /// Clients.
    pub clients: u32,
    /// The side compared with the base.
    pub candidate: ServerId,
    /// Its name.
    pub candidate_name: String,
    /// The answer.
    pub verdict: Verdict,
    /// Why, in words, for example `slower by 3.4 % to 5.1 %`.
    pub reason: String,
    /// Restart blocks that count.
    pub blocks: u32,
    /// Rounds that count, over all blocks.
    pub rounds: u64,
    /// Rounds that were left out because a slice in them was void.
    pub void_rounds: u64,
    /// The metrics that could be compared, in [`Metric::ALL`] order.
    pub metrics: Vec<MetricComparison>,
    /// Rounds in order: (block, round, log-ratio of throughput, log-ratio of CPU per operation).
    pub series: Vec<RoundRatio>,
    /// Server errors seen on the base.
    pub base_errors: u64,
    /// Server errors seen on the candidate.
    pub candidate_errors: u64,
}

/// The log-ratios of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundRatio {
    /// Restart block.
    pub block: u32,
    /// Round in the visit.
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
    /// Cells judged.
    pub cells: u32,
}

/// Everything that a report shows about one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// δ used for the verdicts, as a share.
    pub delta: f64,
    /// Candidates' cells, ordered by cell and then by candidate.
    pub cells: Vec<CellComparison>,
    /// The placebo's cells, in the same form.
    pub placebo_cells: Vec<CellComparison>,
    /// The placebo in one line; absent when the run has none or nothing was measured.
    pub placebo: Option<PlaceboSummary>,
    /// How often each verdict was given.
    pub counts: VerdictCounts,
    /// Whether the host could be trusted, and what was wrong if not.
    pub host_ok: bool,
    /// Differences between the sides besides what was asked, and facts about the host.
    pub findings: Vec<Finding>,
}
