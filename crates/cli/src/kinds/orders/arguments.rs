//! `deltabench orders`.

use crate::arguments::conditions::Conditions;
use crate::arguments::shape::Shape;
use crate::kinds::pgbench::arguments::ModeWord;
use clap::{Args, ValueEnum};
use deltabench_model::work::orders::OrdersForm;

/// `deltabench orders`.
#[derive(Debug, Args)]
pub struct OrdersArguments {
    /// The base: the server that the others are compared with, for example postgres:17
    pub base: String,
    /// The candidates; without one, the base is measured alone
    pub candidates: Vec<String>,
    /// A first answer within 10 minutes: short visits, 14 blocks
    #[arg(long)]
    pub quick: bool,
    /// Warehouses, 104 MB each; or half-memory or twice-memory, of what a server has [default: 4, 2 with
    /// --quick]
    #[arg(short, long, value_name = "N")]
    pub warehouses: Option<String>,
    /// Who does the steps of a transaction: the client, statement by statement, or a function in the server
    #[arg(long, value_enum, default_value_t = FormWord::Statements)]
    pub form: FormWord,
    /// Only these: mix, new-order, payment, order-status, delivery, stock-level
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Concurrent connections; a list makes a cell for each; at most 10 for each warehouse
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
    #[arg(short = 'M', long, value_enum, default_value_t = ModeWord::Prepared)]
    pub protocol: ModeWord,
    /// Let each server work this long without a break in each block, one after another, with the checkpoints,
    /// vacuum and growth that come with it; 8 blocks of the mix unless you say otherwise
    #[arg(long, value_name = "TIME")]
    pub sustained: Option<String>,
    /// Open loop: this many transactions per second over all clients of a server
    #[arg(short = 'R', long, value_name = "PER SECOND", conflicts_with = "pace")]
    pub rate: Option<f64>,
    /// Open loop at the pace of the specification's keying and think times, this many times as fast: at 1,
    /// each client begins a transaction every 21 seconds on average
    #[arg(long, value_name = "TIMES")]
    pub pace: Option<f64>,
    /// Count transactions that take longer than this; with --rate, skip those that would start later than
    /// this
    #[arg(short = 'L', long, value_name = "MS")]
    pub latency_limit: Option<f64>,
    /// Most tries of a transaction that fails because of a deadlock; each try has the same numbers
    #[arg(long, value_name = "N", default_value_t = deltabench_kinds::orders::setup::MAX_TRIES,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tries: u32,
    /// Make the foreign keys of the specification
    #[arg(long)]
    pub foreign_keys: bool,
    /// How exactly, and how
    #[command(flatten, next_help_heading = "How it measures")]
    pub shape: Shape,
    /// What is held on all servers
    #[command(flatten, next_help_heading = "Servers")]
    pub conditions: Conditions,
}

/// Where the transactions are programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormWord {
    /// The client sends each statement.
    Statements,
    /// The client calls a PL/pgSQL function.
    Functions,
}

impl From<FormWord> for OrdersForm {
    fn from(word: FormWord) -> Self {
        match word {
            FormWord::Statements => Self::Statements,
            FormWord::Functions => Self::Functions,
        }
    }
}
