//! Options of every command.

use clap::Args;
use std::path::PathBuf;

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Directory that keeps the results
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "deltabench-lab"
    )]
    pub lab: PathBuf,
    /// Directory that keeps downloaded servers [default: /var/cache/deltabench for root, else the user's
    /// cache]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Never use the network
    #[arg(long, global = true)]
    pub offline: bool,
}
