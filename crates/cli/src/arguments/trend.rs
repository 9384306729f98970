//! Versions over time: `trend`, `changes`, `nightly`, `triage`.

use clap::{Args, ValueEnum};
use deltabench_compare::comparison::Metric;
use std::path::PathBuf;

/// The metric of a trend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrendMetric {
    /// Operations per second
    Throughput,
    /// CPU of the server for each operation
    Cpu,
}

impl TrendMetric {
    /// As the analysis calls it.
    pub fn metric(self) -> Metric {
        match self {
            Self::Throughput => Metric::Throughput,
            Self::Cpu => Metric::ServerCpuPerOperation,
        }
    }
}

/// Which runs, and where the answer goes.
#[derive(Debug, Args)]
pub struct Which {
    /// Only this host, by the beginning of its identifier [default: all hosts of the lab]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Write JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `deltabench trend`.
#[derive(Debug, Args)]
pub struct TrendArguments {
    /// Cells, by name or its beginning, for example scan or point-query@1 [default: a line for each cell]
    #[arg(value_name = "CELL")]
    pub cells: Vec<String>,
    /// Show versions relative to this one, for example postgres:17.0 [default: the usual base]
    #[arg(long, value_name = "TARGET")]
    pub anchor: Option<String>,
    /// The metric
    #[arg(long, value_enum, default_value = "throughput")]
    pub metric: TrendMetric,
    #[command(flatten)]
    pub which: Which,
}

/// `deltabench changes`.
#[derive(Debug, Args)]
pub struct ChangesArguments {
    /// Only this metric [default: both]
    #[arg(long, value_enum)]
    pub metric: Option<TrendMetric>,
    /// Also those that later runs refuted, or somebody explained
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub which: Which,
}

/// `deltabench triage`.
#[derive(Debug, Args)]
pub struct TriageArguments {
    /// The change, as `changes` names it, or the beginning of its name
    #[arg(value_name = "CHANGE")]
    pub change: String,
    /// It comes from something else than the versions: say what
    #[arg(long, value_name = "TEXT", group = "what")]
    pub explained: Option<String>,
    /// It is wanted, or known and accepted: say why
    #[arg(long, value_name = "TEXT", group = "what")]
    pub expected: Option<String>,
    /// Take back what was said of it: say why
    #[arg(long, value_name = "TEXT", group = "what")]
    pub open: Option<String>,
}

/// `deltabench nightly`.
#[derive(Debug, Args)]
pub struct NightlyArguments {
    /// The newest version, for example git:/src/pg@master or path:/opt/nightly
    #[arg(value_name = "TARGET")]
    pub new: String,
    /// The base of all nights: a version that stays
    #[arg(long, value_name = "TARGET")]
    pub anchor: String,
    /// Runs at most that try again what is suspected
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub tries: usize,
    /// Pause before each of them; from 10 minutes on they count as another hour
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub gap: String,
    /// How to measure: options of `compare`, the same in all nights
    #[arg(last = true, value_name = "OPTION")]
    pub options: Vec<String>,
}
