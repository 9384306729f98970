//! `deltabench compare`.

use crate::amounts::row_count;
use crate::arguments::conditions::Conditions;
use crate::arguments::shape::Shape;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `deltabench compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The base: the server that the others are compared with, for example postgres:17
    pub base: String,
    /// The candidates, for example postgres:18 or path:/opt/pg18
    #[arg(required = true)]
    pub candidates: Vec<String>,
    /// A first answer within 10 minutes: small tables, short visits, 14 blocks
    #[arg(long)]
    pub quick: bool,
    /// All 32 sysbench microbenchmarks of the published studies
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    pub all: bool,
    /// Number of tables
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub tables: u32,
    /// Rows of each table, for example 6M [default: 200000 with --quick, else 1000000]
    #[arg(long, value_name = "N", value_parser = row_count)]
    pub rows: Option<u64>,
    /// Concurrent connections; a list makes a cell for each
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    pub clients: Vec<u32>,
    /// Only these workloads [default: the eight quick ones, or those of your own files]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Your own workload file, or a pgbench script (.sql); may be repeated; measured in addition to --only
    #[arg(long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// State of the tables: as loaded, or after the published write phase
    #[arg(long, value_enum, default_value_t = StateWord::Fresh)]
    pub state: StateWord,
    /// Order of the cells: random, with new tables for cells that write, or one after another as published
    #[arg(long, value_enum, default_value_t = OrderWord::Drawn)]
    pub order: OrderWord,
    /// Open loop: this many operations per second over all clients of a server
    #[arg(long, value_name = "PER SECOND")]
    pub rate: Option<f64>,
    /// Let each server work this long without a break in each block, one after another, with the checkpoints,
    /// vacuum and growth that come with it; 8 blocks unless you say otherwise; name the workloads
    #[arg(long, value_name = "TIME")]
    pub sustained: Option<String>,
    /// How exactly, and how
    #[command(flatten, next_help_heading = "How it measures")]
    pub shape: Shape,
    /// What is held on all servers
    #[command(flatten, next_help_heading = "Servers")]
    pub conditions: Conditions,
}

/// State of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StateWord {
    /// Just loaded.
    Fresh,
    /// After the published write phase at fixed work.
    Aged,
}

/// Order of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderWord {
    /// Drawn again for each block.
    Drawn,
    /// As in the published scripts.
    Published,
}
