//! The kinds of benchmark as users ask for them: commands, and tables of an experiment file.
//!
//! A new kind is a folder here, a row of [`Command`] with a line in [`measure`], and a line in [`request_of`]
//! where experiment files have a table for it.

mod chain;
mod factor;
pub mod insert;
pub mod orders;
pub mod outlook;
pub mod pgbench;
mod procedure;
pub mod rocksdb;
mod sustained;
pub mod workloads;

use crate::arguments::count::Count;
use crate::config::Config;
use crate::failure::{EXIT_CODES, Failure};
use crate::ready::{Ready, Sides};
use clap::Subcommand;
use deltabench_experiment::{Experiment, Part};
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_run::planning::Request;
use deltabench_workload::Library;
use insert::arguments::InsertArguments;
use orders::arguments::OrdersArguments;
use pgbench::arguments::PgbenchArguments;
use rocksdb::arguments::RocksdbArguments;
use std::path::Path;
use workloads::arguments::Compare;

/// The commands that measure.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare servers: which workloads got slower, by how much, with error bars
    #[command(after_help = format!(
        "Example: deltabench compare postgres:17 postgres:18 --quick\n\n{EXIT_CODES}"
    ))]
    Compare(Box<Compare>),
    /// Compare servers with pgbench's scripts: your own files or the built-in ones, on tables as `pgbench -i`
    /// makes them
    #[command(
        after_help = "Example: deltabench pgbench postgres:17 postgres:18 -c 1,4 -b select-only\n         \
                      deltabench pgbench postgres:17 postgres:18 -f my.sql@3 -b simple-update@1"
    )]
    Pgbench(Box<PgbenchArguments>),
    /// Compare servers with the Insert Benchmark: load, indexes, writes, then queries during a fixed rate of
    /// inserts and deletes
    #[command(
        after_help = "Example: deltabench insert postgres:17 postgres:18 --quick\n         \
                      deltabench insert postgres:17 postgres:18 --rows 20M --passes 6 --dry-run"
    )]
    Insert(Box<InsertArguments>),
    /// Compare versions of RocksDB, or its block caches, with the steps of db_bench in alternating turns
    #[command(
        after_help = "Example: deltabench rocksdb rocksdb:6.29.5 rocksdb:10.2.1 --quick\n         \
                      deltabench rocksdb rocksdb:10.2.1 --block-cache lru,hyper-clock --threads 1,4"
    )]
    Rocksdb(Box<RocksdbArguments>),
    /// Compare servers with order entry: five transactions derived from TPC-C, each alone and as a mix
    #[command(
        after_help = "Example: deltabench orders postgres:17 postgres:18 --quick\n         \
                      deltabench orders postgres:17 postgres:18 --warehouses 10 -c 1,8 --form functions"
    )]
    Orders(Box<OrdersArguments>),
}

/// Measures what was asked for.
pub fn measure(command: Command, config: &Config) -> Result<u8, Failure> {
    match command {
        Command::Compare(arguments) => workloads::compare(*arguments, config),
        Command::Pgbench(arguments) => pgbench::pgbench(*arguments, config),
        Command::Insert(arguments) => insert::insert(*arguments, config),
        Command::Rocksdb(arguments) => rocksdb::rocksdb(&arguments, config),
        Command::Orders(arguments) => orders::orders(*arguments, config),
    }
}

/// A count that can be carried out here; `request` has what all counts have in common.
pub fn ready_to_count(
    arguments: &Count,
    request: Request,
    config: &Config,
) -> Result<Ready, Failure> {
    if rocksdb::count::is_meant(arguments) {
        return rocksdb::count::ready(arguments, request, config);
    }
    let request = match arguments.insert {
        true => insert::count::request(arguments, request).map_err(Failure::Refused)?,
        false => request,
    };
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    Ready::of(request, &sides, config)
}

/// The request of one part of an experiment. `directory` is that of the experiment's file: what the file
/// names is relative to it.
///
/// Errors: files that cannot be read, workloads and parameters that are not there, shares, sizes and times
/// that mean nothing.
pub fn request_of(
    experiment: &Experiment,
    part: &Part,
    seed: u64,
    directory: &Path,
    library: &Library,
) -> Result<Request, Problem> {
    let mut request =
        workloads::experiment::request_of(experiment, part, seed, directory, library)?;
    pgbench::experiment::apply(experiment, part, directory, &mut request)?;
    insert::experiment::apply(experiment, part, &mut request);
    rocksdb::experiment::apply(experiment, part, &mut request);
    orders::experiment::apply(experiment, part, &mut request)?;
    procedure::apply(experiment, library, &mut request)?;
    sustained::of_experiment(experiment, request)
}

/// The coordinates of a part, with the value that a word of its file got.
pub fn coordinates(part: &Part, work: &Work) -> Vec<(String, String)> {
    factor::coordinates(part, work.scale())
}
