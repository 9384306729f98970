//! What can be measured: `targets`, `fetch`, `workloads`, `configs`.

use clap::{Args, Subcommand};

/// `deltabench targets`.
#[derive(Debug, Args)]
pub struct Targets {
    /// Every prebuilt point release, not only the newest of each major
    #[arg(long)]
    pub all: bool,
}

/// `deltabench fetch`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// What to download, for example postgres:17 postgres:18 rocksdb:10.2.1
    #[arg(required = true)]
    pub targets: Vec<String>,
}

/// `deltabench workloads`.
#[derive(Debug, Args)]
pub struct Workloads {
    /// What to show; without it all are listed
    #[command(subcommand)]
    pub what: Option<WorkloadsCommand>,
}

/// `deltabench workloads …`.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// The definition of a workload and a sample of its SQL with real parameters
    Show {
        /// Name of the workload
        name: String,
    },
}

/// `deltabench configs`.
#[derive(Debug, Args)]
pub struct ConfigsArguments {
    /// The configuration to show, or a .conf file; without it all are listed
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
    /// Show the configuration as adapted to this server
    #[arg(long, value_name = "TARGET", requires = "name")]
    pub target: Option<String>,
}
