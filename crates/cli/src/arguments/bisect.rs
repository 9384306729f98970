//! `deltabench bisect`.

use super::conditions::Servers;
use crate::amounts::row_count;
use clap::{Args, ValueEnum};
use deltabench_model::bisection::{BisectedBy, CULPRIT_BLOCKS, FEWEST_CULPRIT_BLOCKS};
use std::path::PathBuf;

/// `deltabench bisect`.
#[derive(Debug, Args)]
pub struct BisectArguments {
    /// A range of commits (git:DIR@BASE..CANDIDATE+VARIANT) or of point releases (postgres:17.0..17.6); or
    /// servers in order of time; or a run whose two sides are such servers, by its name, or `last`
    #[arg(value_name = "RANGE|RUN|TARGET TARGET", required = true)]
    pub what: Vec<String>,
    /// Of a range or of targets: the workload to count
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Of a range or of targets: your own workload file, or a pgbench script (.sql)
    #[arg(short = 'f', long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// Of a run: the cell to count [default: the one that changed most]
    #[arg(long, value_name = "NAME[@CLIENTS]")]
    pub cell: Option<String>,
    /// Of a run of releases: search the commits between their tags in this clone of PostgreSQL's
    /// repository, built with this variant
    #[arg(long, value_name = "DIR[+VARIANT]")]
    pub repository: Option<String>,
    /// What points are compared by. auto: instructions, unless both ends show that these are not what
    /// changed; then CPU per operation, in restart blocks
    #[arg(long, value_name = "METRIC", value_enum, default_value_t = MetricWord::Auto)]
    pub metric: MetricWord,
    /// Smallest step to look for: at least this many percent more or less. In time it is 1% or more
    #[arg(long, value_name = "PERCENT", default_value = "0.5%")]
    pub min: String,
    /// Most culprits to look for, the largest first
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub culprits: u32,
    /// Commits or releases to leave out, because they do not work; may be repeated
    #[arg(long, value_name = "COMMIT,COMMIT", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Start no look, and measure no culprit in time, that would end later than this after the command's
    /// start, for example 2h [default: no limit for looks; after 20 minutes only the largest culprit is
    /// measured in time]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Name culprits by their counts only; by default each is then measured next to its parent in time, and a
    /// commit is undone on the candidate if that is possible
    #[arg(long)]
    pub count_only: bool,
    /// Restart blocks in which a culprit is measured next to its parent; fewer than 6 say nothing
    #[arg(long, value_name = "N", default_value_t = CULPRIT_BLOCKS,
        value_parser = clap::value_parser!(u32).range(i64::from(FEWEST_CULPRIT_BLOCKS)..=100))]
    pub blocks: u32,
    /// Keep this many of the builds that were made for looks; the oldest others are removed from the cache
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub keep_builds: u32,
    /// Of a range or of targets: number of rows, for example 200k [default: 20000]
    #[arg(long, value_name = "N", value_parser = row_count)]
    pub rows: Option<u64>,
    /// Of a range or of targets: a setting of every server; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Show what would be searched, and how long that takes, without measuring
    #[arg(long)]
    pub dry_run: bool,
    /// Write the JSON report here; `-` is stdout [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the page here [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `--metric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MetricWord {
    Auto,
    Count,
    Cpu,
    Throughput,
}

impl From<MetricWord> for BisectedBy {
    fn from(word: MetricWord) -> Self {
        match word {
            MetricWord::Auto => Self::Auto,
            MetricWord::Count => Self::Count,
            MetricWord::Cpu => Self::Cpu,
            MetricWord::Throughput => Self::Throughput,
        }
    }
}
