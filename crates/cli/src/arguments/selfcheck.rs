//! What is asked about host and program: `doctor`, `calibrate`, `crosscheck`, `selfbench`.

use super::conditions::Servers;
use crate::amounts::row_count;
use crate::defaults::{QUICK_BLOCKS, QUICK_ROWS, VISIT_SECONDS};
use crate::kinds::pgbench::arguments::ModeWord;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `deltabench doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Seconds during which deltabench watches what else runs
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub seconds: f64,
    /// Server of the pilot, which compares it with itself for half a minute and says how long answers take
    /// here
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Leave out the pilot: look at the host only
    #[arg(long)]
    pub no_pilot: bool,
    /// Write JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `deltabench calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArguments {
    /// The server that is compared with itself
    #[arg(default_value = "postgres:18")]
    pub target: String,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub runs: u32,
    /// Make the candidate this much slower: it burns CPU in each statement
    #[arg(long, value_name = "PERCENT")]
    pub inject: Option<String>,
    /// Workloads; the CPU to burn is measured on the first one
    #[arg(
        long,
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = "point-query"
    )]
    pub only: Vec<String>,
    /// Most restart blocks of each run
    #[arg(long, value_name = "N", default_value_t = QUICK_BLOCKS)]
    pub blocks: u32,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = QUICK_ROWS, value_parser = row_count)]
    pub rows: u64,
    /// End each run after this time, for example 10m
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// The smallest change that matters [default: 2 % to 5 %, for each cell what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// Seed of the first run; the others follow from it [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `deltabench crosscheck`.
#[derive(Debug, Args)]
pub struct CrosscheckArguments {
    /// Server to run against
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Only these workloads [default: all]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Rounds of each workload; both sides run once in each
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub rounds: u32,
    /// Seconds of each side in a round, about
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    pub seconds: f64,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = row_count)]
    pub rows: u64,
    /// pgbench instead of sysbench
    #[command(flatten)]
    pub pgbench: PgbenchOptions,
    /// Write JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// What is compared with pgbench.
#[derive(Debug, Args)]
pub struct PgbenchOptions {
    /// Compare with pgbench: its built-in scripts (--only takes their names) and the tables of `pgbench -i`
    #[arg(long, conflicts_with = "rows")]
    pub pgbench: bool,
    /// With --pgbench: how statements are sent [default: all three]
    #[arg(
        long,
        value_enum,
        value_name = "MODE,MODE",
        value_delimiter = ',',
        requires = "pgbench"
    )]
    pub protocol: Vec<ModeWord>,
    /// With --pgbench: concurrent connections; a list makes a row for each [default: 1]
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        requires = "pgbench",
        value_parser = clap::value_parser!(u32).range(1..=80)
    )]
    pub client: Vec<u32>,
    /// With --pgbench: scale factor of the tables [default: 1]
    #[arg(
        long,
        value_name = "N",
        requires = "pgbench",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub scale: Option<u32>,
}

/// Seconds of a run of a client, or of a slice: up to an hour.
///
/// Errors: no number, or one that is out of range.
fn run_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "write a number between 0.01 and 3600".to_owned())
}

/// `deltabench selfbench`.
#[derive(Debug, Args)]
pub struct Selfbench {
    /// What to measure
    #[command(subcommand)]
    pub what: SelfbenchCommand,
}

/// `deltabench selfbench …`.
#[derive(Debug, Subcommand)]
pub enum SelfbenchCommand {
    /// Client CPU per operation and throughput against sysbench and pgbench, as paired ratios
    Client(SelfbenchClient),
    /// Operations per second of several threads of the client against one, where the server answers at once
    Threads(SelfbenchThreads),
    /// How often each method calls identical servers different: sysbench on A then on B, and deltabench
    Verdict(SelfbenchVerdict),
    /// What the one-second series costs: throughput with and without it, as a paired ratio
    Collecting(SelfbenchCollecting),
}

/// `deltabench selfbench client`.
#[derive(Debug, Args)]
pub struct SelfbenchClient {
    /// Server to run against
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Concurrent connections; a list makes a row for each
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1,4,16,64",
        value_parser = clap::value_parser!(u32).range(1..=90)
    )]
    pub clients: Vec<u32>,
    /// Threads of deltabench's client; several are compared with one, too
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1,2",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub jobs: Vec<u32>,
    /// Paired rounds of each row
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Seconds of each client in a round
    #[arg(long, value_name = "SECONDS", default_value_t = VISIT_SECONDS, value_parser = run_seconds)]
    pub seconds: f64,
    /// Print JSON to this file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `deltabench selfbench threads`.
#[derive(Debug, Args)]
pub struct SelfbenchThreads {
    /// Threads; a list makes a row for each. Each thread needs a core
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "2",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub jobs: Vec<u32>,
    /// Paired rounds of each row
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Seconds of each of the two in a round
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = run_seconds)]
    pub seconds: f64,
}

/// `deltabench selfbench verdict`.
#[derive(Debug, Args)]
pub struct SelfbenchVerdict {
    /// The server that is compared with itself
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Pairs of identical servers
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Seconds of sysbench on each server; deltabench gets twice that for both, with loading
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub seconds: u32,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = QUICK_ROWS, value_parser = row_count)]
    pub rows: u64,
    /// Write JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `deltabench selfbench collecting`.
#[derive(Debug, Args)]
pub struct SelfbenchCollecting {
    /// Server to run against
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Pairs of slices
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Seconds of a slice
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = run_seconds)]
    pub seconds: f64,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}
