//! `archive`: what leaves the store, and comes back.

use clap::Args;

/// `deltabench archive`.
#[derive(Debug, Args)]
pub struct ArchiveArguments {
    /// Runs or experiments, or the beginning of a name, or `last`
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// Every finished run that ended so long ago, for example 90d or 12h
    #[arg(long, value_name = "TIME", conflicts_with = "runs")]
    pub older: Option<String>,
    /// Take these archived runs back into the store
    #[arg(long, conflicts_with_all = ["older", "check"])]
    pub restore: bool,
    /// Read every sealed file of the lab and say which cannot be used
    #[arg(long, conflicts_with_all = ["older", "runs"])]
    pub check: bool,
    /// Say what would move and what that gains; nothing is written
    #[arg(long, conflicts_with = "check")]
    pub dry_run: bool,
}

/// `deltabench list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// What each run takes on disk, the largest first, and what `archive` would move
    #[arg(long)]
    pub sizes: bool,
}
