//! `deltabench run` and `init`.

use super::conditions::Servers;
use clap::Args;
use std::path::PathBuf;

/// `deltabench run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The experiment file; `deltabench init` writes one to start from
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Lay the file's section of this name over it, for example tiny, small or paper
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Only these: a workload, or server=NAME, clients=N, rows=N, memory=SIZE, storage=NAME, repetition=N;
    /// `*` stands for anything
    #[arg(long, value_name = "WHAT,WHAT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Seed of every order, key and draw of the first part [default: the file's, or from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what would be done and how long it would take, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not measure first how long an answer will take
    #[arg(long)]
    pub no_pilot: bool,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
}

/// `deltabench init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The file to write; it must not be there
    #[arg(value_name = "FILE", default_value = "experiment.toml")]
    pub file: PathBuf,
}
