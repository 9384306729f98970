//! `deltabench run` and `init`.

use super::conditions::Servers;
use clap::Args;
use deltabench_experiment::REPETITIONS_MAX;
use std::path::PathBuf;

/// `deltabench run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The experiment file; `deltabench init` writes one with comments
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Use the scale of this name from the file, for example tiny, small or paper
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Only these: a workload, or server=NAME, clients=N, rows=N, memory=SIZE, storage=NAME, repetition=N;
    /// `*` matches anything
    #[arg(long, value_name = "WHAT,WHAT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Measure each part so many times, on new data each time; a fleet may use a host for each [default: the
    /// file's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=REPETITIONS_MAX))]
    pub repetitions: Option<u32>,
    /// Seed of all random choices of the first part [default: the file's, or from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what would be measured and how long it would take, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run: what it takes on another machine, for example cores=8,memory=32GB,disk=2TB [default:
    /// this machine]
    #[arg(long = "for", value_name = "MACHINE", requires = "dry_run")]
    pub machine: Option<String>,
    /// Leave out the pilot, which measures for half a minute and says how long answers will take; a run of at
    /// most 10 minutes has none
    #[arg(long)]
    pub no_pilot: bool,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `deltabench extend`.
#[derive(Debug, Args)]
pub struct ExtendArguments {
    /// The execution of an experiment, or the beginning of its name, or `last`
    #[arg(value_name = "EXECUTION", default_value = "last")]
    pub execution: String,
    /// The server to add, for example postgres:18.7
    #[arg(long, value_name = "TARGET")]
    pub with: String,
    /// Measure all servers of the execution again, and use no earlier run
    #[arg(long)]
    pub remeasure: bool,
    /// Print what would be measured, what earlier runs stand for and how long it would take, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Leave out the pilot
    #[arg(long)]
    pub no_pilot: bool,
    /// How servers run here
    #[command(flatten, next_help_heading = "On this machine")]
    pub servers: Servers,
}

/// `deltabench init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE", default_value = "experiment.toml")]
    pub file: PathBuf,
}
