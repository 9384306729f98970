//! `deltabench count`.

use super::conditions::Conditions;
use crate::amounts::row_count;
use crate::defaults::COUNTED_ROWS;
use clap::Args;
use std::path::PathBuf;

/// `deltabench count`.
#[derive(Debug, Args)]
pub struct Count {
    /// The base: the server or library that the others are compared with, for example postgres:17 or
    /// rocksdb:7.10.2
    pub base: String,
    /// The candidates, for example postgres:18, path:/opt/pg18 or rocksdb:10.2.1
    #[arg(required = true)]
    pub candidates: Vec<String>,
    /// All 32 sysbench microbenchmarks of the published studies
    #[arg(long, conflicts_with = "only")]
    pub all: bool,
    /// Only these workloads, or steps of RocksDB or the Insert Benchmark [default: the eight quick ones, or
    /// those of your own files; all steps]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// The statements of the Insert Benchmark, step by step; --only names steps
    #[arg(long, conflicts_with_all = ["all", "workloads"])]
    pub insert: bool,
    /// Your own workload file, or a pgbench script (.sql); may be repeated; counted in addition to --only
    #[arg(short = 'f', long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// Exit with code 1 if an operation takes more than this many percent more instructions than on the base;
    /// if it is given, the report also has the line of the gate [default limit: 1%]
    #[arg(long, value_name = "PERCENT")]
    pub not_more_than: Option<String>,
    /// Starts of each server, each on a new copy of the data
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub starts: u32,
    /// Concurrent connections; counting needs exactly one
    #[arg(long, value_name = "N", default_value_t = 1, hide = true)]
    pub clients: u32,
    /// Number of tables
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub tables: u32,
    /// Rows of each table, or keys of RocksDB, for example 200k; more change the counts little and take
    /// longer to load
    #[arg(long, value_name = "N", default_value_t = COUNTED_ROWS, value_parser = row_count)]
    pub rows: u64,
    /// What is held on all servers
    #[command(flatten, next_help_heading = "Servers")]
    pub conditions: Conditions,
}
