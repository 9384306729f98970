//! `deltabench replay`.

use super::conditions::Checksums;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What a replay does with writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Writes {
    /// Committed on a new copy for each statement in each block
    Copy,
    /// Only explained
    Explain,
}

/// Which values statements are replayed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Values {
    /// Those of the capture; reads without any get values from the tables of the base
    MadeUp,
    /// Those of the capture only
    Captured,
}

/// `deltabench replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The statements: a capture of `deltabench capture`, a file of statements (.sql), or a directory of such
    /// files
    pub capture: PathBuf,
    /// The base: the server that the others are compared with, for example postgres:17, or
    /// dsn:postgres://USER@HOST/DATABASE for a server that has the tables
    pub base: String,
    /// The candidates, for example postgres:18 or path:/opt/pg18; dsn:… if the base is one
    #[arg(required = true)]
    pub candidates: Vec<String>,
    /// The tables: a plain dump of pg_dump, also .gz and .zst; other dumps if pg_restore is in the PATH; or
    /// datadir:DIR, a stopped data directory, which is copied. Servers that already run (dsn:…) have them
    #[arg(long, value_name = "DUMP|datadir:DIR")]
    pub data: Option<PathBuf>,
    /// The database of a data directory [default: that of the capture, or the only one]
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Compare plans, errors and results, and measure no time
    #[arg(long)]
    pub plans_only: bool,
    /// Time of measuring, about, after plans and results
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        conflicts_with = "plans_only"
    )]
    pub budget: String,
    /// Restarts of all servers, at most; a verdict needs 6
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "plans_only",
          value_parser = clap::value_parser!(u32).range(2..=100))]
    pub blocks: u32,
    /// A statement that moves the workload by less than this at the far end of its interval does not matter,
    /// and is not measured on
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "0.1%",
        conflicts_with = "plans_only"
    )]
    pub impact: String,
    /// The smallest change that matters [default: 2 % to 5 %, for each statement what its placebo's noise
    /// allows]
    #[arg(long, value_name = "PERCENT", conflicts_with = "plans_only")]
    pub delta: Option<String>,
    /// Measure also all statements at once, drawn by their calls, with so many clients
    #[arg(long, value_name = "CLIENTS", conflicts_with = "plans_only",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub mix: Option<u32>,
    /// Find out whether the planner makes a statement with another plan slower: bring the plan of the base
    /// back with settings, and measure that, too
    #[arg(long)]
    pub why: bool,
    /// Only explain statements; execute none
    #[arg(long)]
    pub no_execute: bool,
    /// Execute reads that call volatile functions of the database, too; and writes where triggers may reach
    /// other machines
    #[arg(long)]
    pub allow_functions: bool,
    /// What is done with reads whose values are not in the capture: values are made up, or they are left out
    #[arg(long, value_enum, default_value_t = Values::MadeUp)]
    pub values: Values,
    /// What is done with writes and locks: committed on a copy of the tables, or only explained
    #[arg(long, value_enum, default_value_t = Writes::Copy)]
    pub writes: Writes,
    /// Largest database that is copied for writes; those of a larger one are only explained [default: 4GB]
    #[arg(long, value_name = "SIZE")]
    pub copy_limit: Option<String>,
    /// How often each server draws statistics: several draws show the plans that depend on luck [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub draws: Option<u32>,
    /// Time of day of the servers: that of the machine (`now`), of the end of the capture (`capture`), or one
    /// such as '2026-11-23 13:00 UTC' [default: that of the capture, if a statement asks for the time]
    #[arg(long, value_name = "now|capture|TIME")]
    pub clock: Option<String>,
    /// Limit of a statement
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub timeout: String,
    /// List what would be sent, and to which servers; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Compare a target with itself on purpose (an A/A run)
    #[arg(long, help_heading = "Servers")]
    pub same_target: bool,
    /// A setting of every server; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", help_heading = "Servers")]
    pub settings: Vec<String>,
    /// Configuration of every server: a .conf file, such as that of production, or a name from `deltabench
    /// configs` [default: the server's own settings]
    #[arg(long = "config", value_name = "NAME|FILE", help_heading = "Servers")]
    pub configuration: Option<String>,
    /// A setting of the candidates only; may be repeated
    #[arg(
        long = "candidate-set",
        value_name = "NAME=VALUE",
        help_heading = "Servers"
    )]
    pub candidate_settings: Vec<String>,
    /// Configuration of the candidates only
    #[arg(
        long = "candidate-config",
        value_name = "NAME|FILE",
        help_heading = "Servers"
    )]
    pub candidate_configuration: Option<String>,
    /// Data checksums of the servers
    #[arg(long, value_enum, default_value_t = Checksums::Default, help_heading = "Servers")]
    pub checksums: Checksums,
    /// Unprivileged user that runs the servers when deltabench is root [default: postgres, else nobody; for
    /// datadir: the first of nobody, postgres and daemon that cannot change the directory]
    #[arg(long, value_name = "USER", help_heading = "On this machine")]
    pub server_user: Option<String>,
    /// Directory for data directories and sockets, which are removed at the end [default: in the lab, for
    /// root in /var/tmp]
    #[arg(long, value_name = "DIR", help_heading = "On this machine")]
    pub cluster_dir: Option<PathBuf>,
    /// Write the JSON report here; `-` is stdout [default: in the lab directory]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the HTML report here [default: in the lab directory]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
}
