//! `deltabench pgbench`.

use crate::arguments::conditions::Conditions;
use crate::arguments::shape::Shape;
use clap::{Args, ValueEnum};
use deltabench_model::work::pgbench::QueryMode;
use deltabench_workload::pgbench::tables::SCALE_MAX;
use std::path::PathBuf;

/// `deltabench pgbench`.
#[derive(Debug, Args)]
pub struct PgbenchArguments {
    /// The base: the server that the others are compared with, for example postgres:17
    pub base: String,
    /// The candidates; without one, the base is measured alone
    pub candidates: Vec<String>,
    /// A first answer within 10 minutes: short visits, 14 blocks
    #[arg(long)]
    pub quick: bool,
    /// What is sent
    #[command(flatten)]
    pub scripts: Scripts,
    /// Concurrent connections; a list makes a cell for each
    #[arg(
        short,
        long = "client",
        alias = "clients",
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1"
    )]
    pub clients: Vec<u32>,
    /// How statements are sent
    #[arg(short = 'M', long, value_enum, default_value_t = ModeWord::Simple)]
    pub protocol: ModeWord,
    /// Open a connection for each transaction and close it again; its time counts
    #[arg(short = 'C', long)]
    pub connect: bool,
    /// A variable of the scripts; may be repeated
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// Open loop: this many transactions per second over all clients of a server
    #[arg(short = 'R', long, value_name = "PER SECOND")]
    pub rate: Option<f64>,
    /// Let each server work this long without a break in each block, one after another, with the checkpoints,
    /// vacuum and growth that come with it; 8 blocks unless you say otherwise
    #[arg(long, value_name = "TIME")]
    pub sustained: Option<String>,
    /// Count transactions that take longer than this; with --rate, skip those that would start later than
    /// this
    #[arg(short = 'L', long, value_name = "MS")]
    pub latency_limit: Option<f64>,
    /// Most tries of a transaction that fails because of serialization or a deadlock; 0: no limit but
    /// --latency-limit
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub max_tries: u32,
    /// The tables
    #[command(flatten, next_help_heading = "Tables")]
    pub tables: TableArguments,
    /// How exactly, and how
    #[command(flatten, next_help_heading = "How it measures")]
    pub shape: Shape,
    /// What is held on all servers
    #[command(flatten, next_help_heading = "Servers")]
    pub conditions: Conditions,
    /// Options of pgbench that have another name here, or no place
    #[command(
        flatten,
        next_help_heading = "Options of pgbench that deltabench refuses, with the reason"
    )]
    pub elsewhere: Elsewhere,
}

/// The tables that scripts work on; they are made as `pgbench -i` makes them.
#[derive(Debug, Args)]
pub struct TableArguments {
    /// Scale factor: each unit is 100,000 accounts, 10 tellers and a branch; 0: no tables of pgbench
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(SCALE_MAX))
    )]
    pub scale: u32,
    /// Share of each page that is filled
    #[arg(short = 'F', long, value_name = "PERCENT", default_value_t = 100)]
    pub fillfactor: u32,
    /// Make foreign keys between the tables
    #[arg(long)]
    pub foreign_keys: bool,
    /// Partitions of pgbench_accounts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub partitions: u32,
    /// Partition pgbench_accounts by range or by hash
    #[arg(long, value_enum, default_value_t = PartitionWord::Range)]
    pub partition_method: PartitionWord,
    /// Make unlogged tables
    #[arg(long)]
    pub unlogged_tables: bool,
    /// The server makes the rows (`pgbench -I G`)
    #[arg(long)]
    pub server_side: bool,
    /// Your own SQL that makes more tables, run after those of pgbench
    #[arg(long, value_name = "FILE")]
    pub init_sql: Option<PathBuf>,
}

/// Which scripts are sent.
#[derive(Debug, Default, Args)]
pub struct Scripts {
    /// A built-in script: tpcb-like, simple-update, select-only, or the beginning of a name; @W is its
    /// weight; may be repeated [default: tpcb-like]
    #[arg(short, long = "builtin", value_name = "NAME[@W]")]
    pub builtins: Vec<String>,
    /// Your own script; may be repeated: all scripts are one workload, and each transaction runs one of them
    /// at random
    #[arg(short, long = "file", value_name = "FILE[@W]")]
    pub files: Vec<String>,
    /// The same as --builtin select-only
    #[arg(short = 'S', long)]
    pub select_only: bool,
    /// The same as --builtin simple-update
    #[arg(short = 'N', long)]
    pub skip_some_updates: bool,
    /// Measure every script as a separate workload
    #[arg(long)]
    pub each: bool,
    /// Treat the scripts as writing although their statements look like reads, for example because a function
    /// writes
    #[arg(long)]
    pub writes: bool,
}

/// Options that are refused.
#[derive(Debug, Default, Args)]
pub struct Elsewhere {
    /// Refused
    #[arg(short = 'T', long, hide = true, value_name = "SECONDS")]
    pub time: Option<String>,
    /// Refused
    #[arg(short = 't', long, hide = true, value_name = "N")]
    pub transactions: Option<String>,
    /// Refused
    #[arg(short = 'i', long, hide = true)]
    pub initialize: bool,
    /// Refused
    #[arg(short = 'I', long, hide = true, value_name = "STEPS")]
    pub init_steps: Option<String>,
    /// Refused
    #[arg(short = 'n', long, hide = true)]
    pub no_vacuum: bool,
    /// Refused
    #[arg(short = 'v', long, hide = true)]
    pub vacuum_all: bool,
    /// Refused
    #[arg(short = 'P', long, hide = true, value_name = "SECONDS")]
    pub progress: Option<String>,
    /// Refused
    #[arg(short = 'r', long, hide = true)]
    pub report_per_command: bool,
    /// Refused
    #[arg(short = 'l', long, hide = true)]
    pub log: bool,
    /// Refused
    #[arg(long, hide = true, value_name = "SEED")]
    pub random_seed: Option<String>,
    /// Refused
    #[arg(long, hide = true, value_name = "NAME")]
    pub show_script: Option<String>,
    /// Refused
    #[arg(long, hide = true, value_name = "NAME")]
    pub tablespace: Option<String>,
    /// Refused
    #[arg(long, hide = true, value_name = "NAME")]
    pub index_tablespace: Option<String>,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeWord {
    /// As text with the values in it.
    Simple,
    /// Parsed, bound and executed every time.
    Extended,
    /// Parsed once on each connection.
    Prepared,
}

impl From<ModeWord> for QueryMode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Simple => Self::Simple,
            ModeWord::Extended => Self::Extended,
            ModeWord::Prepared => Self::Prepared,
        }
    }
}

/// How accounts are partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartitionWord {
    /// By ranges of `aid`.
    Range,
    /// By its hash.
    Hash,
}
