//! `deltabench count`.

use super::conditions::Conditions;
use crate::defaults::COUNTED_ROWS;
use clap::Args;
use std::path::PathBuf;

/// `deltabench count`.
#[derive(Debug, Args)]
pub struct Count {
    /// The side that the others are compared with, for example postgres:17
    pub base: String,
    /// The sides in question, for example postgres:18 or path:/opt/pg18
    #[arg(required = true)]
    pub candidates: Vec<String>,
    /// All 32 sysbench microbenchmarks of the published studies
    #[arg(long, conflicts_with = "only")]
    pub all: bool,
    /// Only these workloads [default: the eight quick ones, or those of your own files]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// A workload file of your own, or a script for pgbench (.sql); may be repeated, and is counted beside
    /// --only
    #[arg(short = 'f', long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// A gate: fail where an operation takes more instructions than this beyond the base [default: 1% decides
    /// what is a regression, and there is no gate]
    #[arg(long, value_name = "PERCENT")]
    pub not_more_than: Option<String>,
    /// Starts of each server, each on a copy of the data of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub starts: u32,
    /// Concurrent connections: counts are of one
    #[arg(long, value_name = "N", default_value_t = 1, hide = true)]
    pub clients: u32,
    /// Tables
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub tables: u32,
    /// Rows of each table: what an operation does hardly depends on it, and the counter needs time for each
    #[arg(long, value_name = "N", default_value_t = COUNTED_ROWS)]
    pub rows: u64,
    /// What is held on all servers
    #[command(flatten)]
    pub conditions: Conditions,
}
