//! `deltabench insert`.

use crate::arguments::conditions::Conditions;
use crate::arguments::shape::{JobsWord, jobs};
use clap::{Args, ValueEnum};
use deltabench_model::work::insert::Pacing;

/// `deltabench insert`.
#[derive(Debug, Args)]
pub struct InsertArguments {
    /// The base: the server that the others are compared with, for example postgres:17
    pub base: String,
    /// The candidates; without one, the base is measured alone, with its placebo
    pub candidates: Vec<String>,
    /// A small benchmark: 1 client, 400k rows, steps of 20 s, 3 passes; it prints how long that takes
    #[arg(long, conflicts_with = "published")]
    pub quick: bool,
    /// Sizes and pacing of a published study
    #[arg(long, value_enum, value_name = "SIZES")]
    pub published: Option<PublishedWord>,
    /// Clients; each has a connection that inserts, one that deletes and one that queries [default: 1]
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Rows that each client loads, for example 20M [default: 4M, with --quick 400k]
    #[arg(long, value_name = "N")]
    pub rows: Option<String>,
    /// Rows that each client inserts and deletes in l.i1 (four fifths) and l.i2 (one fifth) [default: 1M,
    /// with --quick 200k]
    #[arg(long, value_name = "N")]
    pub write_rows: Option<String>,
    /// Rows per second that each client inserts and deletes during its queries; each rate gets a range step
    /// and a point step
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "100,500,1000",
        conflicts_with = "steps"
    )]
    pub rates: Vec<u32>,
    /// Seconds of each query step if the server keeps up with the rate [default: 120, with --quick 20]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Only these steps, in order, for example l.i0,l.x,qr100,qp100
    #[arg(long, value_name = "STEP,STEP", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// One table for all clients instead of one for each
    #[arg(long)]
    pub shared_table: bool,
    /// Cut each table into this many ranges of its key (from version 11); published: 8
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub partitions: u32,
    /// How the client spreads its inserts and deletes over a second [default: spread, with --published burst]
    #[arg(long, value_enum)]
    pub pacing: Option<PacingWord>,
    /// Threads of the client: a number, or auto for one per four clients on at most a third of the cores; one
    /// with --shared-table [default: auto]
    #[arg(short = 'j', long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<JobsWord>,
    /// An extra session that holds a transaction open for this long, again and again, for example 60s
    #[arg(long, value_name = "TIME")]
    pub long_transaction: Option<String>,
    /// Shortest time of vacuum, checkpoint and wait before the queries, seconds [default: 60 and 1 for each
    /// million rows, at most 1200; with --quick 10]
    #[arg(long, value_name = "SECONDS")]
    pub settle_seconds: Option<u32>,
    /// Passes of all steps on each server; an interval needs 2, a verdict 6 [default: 6, with --quick 3]
    #[arg(long, value_name = "N")]
    pub passes: Option<u32>,
    /// Cut each step into this many turns: all servers are there at once, one works at a time, and the others
    /// are frozen; memory and disk must hold all of them
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub turns: u32,
    /// Leave out the second copy of the base: it saves a third of the time, but the run cannot show false
    /// alarms
    #[arg(long)]
    pub no_placebo: bool,
    /// The smallest change that matters [default: 2 % to 5 %, for each step what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// Start no pass that would end after this time with the set-up, for example 4h; one pass is always
    /// measured
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Print what would be measured, how long it would take and how much disk it needs, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// What is held on all servers
    #[command(flatten, next_help_heading = "Servers")]
    pub conditions: Conditions,
}

/// How rates are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PacingWord {
    /// At equal distances; the client catches up after a delay.
    Spread,
    /// As published: all statements of a second at its start; lost time is not made up.
    Burst,
}

impl From<PacingWord> for Pacing {
    fn from(word: PacingWord) -> Self {
        match word {
            PacingWord::Spread => Self::Spread,
            PacingWord::Burst => Self::Burst,
        }
    }
}

/// Sizes of published studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PublishedWord {
    /// 1 client, 20M rows, 50M written, steps of 30 minutes: in memory on a small server.
    SmallCached,
    /// 1 client, 800M rows, 5M written, steps of 30 minutes: larger than the memory of a small server.
    SmallIo,
    /// 20 clients with 200M rows each, 5M written each, steps of 30 minutes.
    Large,
}
