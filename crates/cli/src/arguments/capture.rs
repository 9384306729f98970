//! `deltabench capture`.

use clap::Args;
use std::path::PathBuf;

/// `deltabench capture`.
#[derive(Debug, Args)]
pub struct CaptureArguments {
    /// The server's log: jsonlog, csvlog or text, plain or packed by gzip; several files in any order, or a
    /// directory; `-` is stdin
    #[arg(long = "log", value_name = "FILE", required_unless_present = "statements", num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// `pg_stat_statements` of the same server as CSV with a header: exact calls and times. Without a log
    /// `deltabench replay` makes up the values
    #[arg(long, value_name = "FILE")]
    pub statements: Option<PathBuf>,
    /// Write the capture here, readable for you only
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Share of the executions in the log, for example 0.01 or 1%: log_statement_sample_rate [default: as the
    /// log says, else all]
    #[arg(long, value_name = "RATE")]
    pub sample_rate: Option<String>,
    /// Executions of at least this time are all in the log, for example 250ms or 2s:
    /// log_min_duration_statement [default: as the log says, else none]
    #[arg(long, value_name = "TIME")]
    pub always_above: Option<String>,
    /// Most values to keep of each statement: a quarter from its slowest 1 % of executions
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(4..=10_000))]
    pub tuples: u32,
    /// Seed of the choice of values
    #[arg(long, value_name = "N", default_value_t = crate::afterwards::SEED)]
    pub seed: u64,
    /// The search_path of sessions that set none in the log, and of statements that are not in it
    #[arg(long, value_name = "PATH")]
    pub search_path: Option<String>,
    /// Replace values by others of their shape, for plans (replay --plans-only), not for times. Names, single
    /// characters, years, units and lengths stay: read "Without values" in the guide before you pass it on
    #[arg(long, requires = "logs")]
    pub redact: bool,
    /// Write the numbers as JSON here; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
