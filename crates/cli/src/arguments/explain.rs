//! `deltabench explain`.

use super::conditions::Conditions;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `deltabench explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The run, or the beginning of its name, or `last`; or a base and a candidate to count now
    #[arg(value_name = "RUN|BASE CANDIDATE")]
    pub what: Vec<String>,
    /// A cell of the run, at all numbers of clients or at one; may be repeated [default: the cells that
    /// changed, at most 4, the worst first]
    #[arg(long = "cell", value_name = "NAME[@CLIENTS]")]
    pub cells: Vec<String>,
    /// With a base and a candidate: only these workloads
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// With a base and a candidate: your own workload file, or a pgbench script (.sql)
    #[arg(short = 'f', long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// Most lines of each cell
    #[arg(long, value_name = "N", default_value_t = 12,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,
    /// Also sample in which functions the servers' time goes, in a separate run
    #[arg(long)]
    pub sample: bool,
    /// Samples per second and core
    #[arg(long, value_name = "PER SECOND", default_value_t = 997, requires = "sample",
        value_parser = clap::value_parser!(u32).range(50..=4000))]
    pub rate: u32,
    /// Time of sampling for each cell
    #[arg(long, value_name = "TIME", default_value = "3m", requires = "sample")]
    pub budget: String,
    /// Sample even on Linux 6.16 and 6.17, which can hang during it
    #[arg(long, requires = "sample")]
    pub force: bool,
    /// Form of the explanation
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub format: ExplainFormat,
    /// Write it here instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What is held on the servers, where they are counted now
    #[command(flatten, next_help_heading = "Servers")]
    pub conditions: Conditions,
}

/// Form of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For a terminal.
    Text,
    /// For a pull request.
    Markdown,
    /// The cells, each with its explanation as in the JSON report of a run.
    Json,
}
