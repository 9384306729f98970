//! Versions over time: `trend`, `changes`, `nightly`, `triage`, `annotate`, `anchor`.

use clap::{Args, Subcommand, ValueEnum};
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

/// What an annotation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NoteKind {
    /// A change that is wanted, or known and accepted
    Expected,
    /// Something about the machine or its surroundings
    Environment,
    /// Anything else
    Note,
}

/// `deltabench annotate`.
#[derive(Debug, Args)]
pub struct AnnotateArguments {
    /// What you know
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// It is about this version, for example 18.4
    #[arg(long, value_name = "VERSION", group = "what")]
    pub version: Option<String>,
    /// It is about this moment: 2026-11-25T10:30 in UTC, or now
    #[arg(long, value_name = "TIME", group = "what")]
    pub at: Option<String>,
    /// Take annotation N back; TEXT says why
    #[arg(long, value_name = "N", group = "what")]
    pub take_back: Option<i64>,
    /// Only on this host, by the beginning of its identifier [default: all hosts of the lab]
    #[arg(long, value_name = "HOST", conflicts_with = "take_back")]
    pub host: Option<String>,
    /// Only in this cell, for example scan@1 [default: all cells]
    #[arg(long, value_name = "CELL", conflicts_with = "take_back")]
    pub cell: Option<String>,
    /// What kind of thing it is
    #[arg(long, value_enum, default_value = "note")]
    pub kind: NoteKind,
}

/// `deltabench anchor`.
#[derive(Debug, Args)]
pub struct AnchorArguments {
    #[command(subcommand)]
    pub what: AnchorWhat,
}

/// What to do with anchors.
#[derive(Debug, Subcommand)]
pub enum AnchorWhat {
    /// List the versions that runs have as base, and which anchor follows which
    List(Which),
    /// Let an anchor follow another one: levels go on from the old one
    Replace(ReplaceArguments),
}

/// `deltabench anchor replace`.
#[derive(Debug, Args)]
pub struct ReplaceArguments {
    /// The anchor so far
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The anchor from now on, measured with the old one in several nights
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Nights with both that it takes at least
    #[arg(long, value_name = "N", default_value_t = deltabench_trend::HOURS)]
    pub nights: usize,
    /// Only on this host, by the beginning of its identifier [default: all hosts that measured the old one]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
}
