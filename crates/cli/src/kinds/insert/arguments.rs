//! `deltabench insert`.

use crate::arguments::conditions::Conditions;
use clap::{Args, ValueEnum};
use deltabench_model::work::insert::Pacing;

/// `deltabench insert`.
#[derive(Debug, Args)]
pub struct InsertArguments {
    /// The side that the others are compared with, for example postgres:17
    pub base: String,
    /// The sides in question; without one the base is measured alone, with its placebo
    pub candidates: Vec<String>,
    /// Everything scaled down: 1 client, 400k rows, steps of 20 s, 3 passes. It says how long that takes
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
    /// Rows that each client inserts and deletes per second beside its queries; a range and a point step for
    /// each
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "100,500,1000",
        conflicts_with = "steps"
    )]
    pub rates: Vec<u32>,
    /// Seconds of each step of queries, if the rate is kept [default: 120, with --quick 20]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Only these steps, in order, for example l.i0,l.x,qr100,qp100
    #[arg(long, value_name = "STEP,STEP", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// One table for all clients instead of one for each
    #[arg(long)]
    pub shared_table: bool,
    /// How rates are kept [default: spread, with --published burst]
    #[arg(long, value_enum)]
    pub pacing: Option<PacingWord>,
    /// A session that holds a transaction open so long, again and again, for example 60s
    #[arg(long, value_name = "TIME")]
    pub long_transaction: Option<String>,
    /// Least seconds of vacuum, checkpoint and wait before the queries [default: 60 and 1 for each million
    /// rows, at most 1200; with --quick 10]
    #[arg(long, value_name = "SECONDS")]
    pub settle_seconds: Option<u32>,
    /// Passes of all steps on each server; an interval needs 2, a verdict 6 [default: 6, with --quick 3]
    #[arg(long, value_name = "N")]
    pub passes: Option<u32>,
    /// Do not measure the base twice: a third of the time saved, and false alarms are not seen
    #[arg(long)]
    pub no_placebo: bool,
    /// The smallest change that matters [default: 2 % to 5 %, for each step what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// End before a pass on all servers that would end past this time, for example 4h, set-up included; one
    /// is measured in any case
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Say what would be done, how long it takes and what room it needs, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// What is held on all servers
    #[command(flatten)]
    pub conditions: Conditions,
}

/// How rates are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PacingWord {
    /// Statements at a constant distance; what is late is made up.
    Spread,
    /// As published: all of a second's statements at its start, and a late second is never made up.
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
