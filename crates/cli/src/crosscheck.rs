//! `deltabench crosscheck`: the built-in driver against sysbench's packaged scripts, and against pgbench.

mod finding;
mod pgbench;
mod shown;

use crate::arguments::selfcheck::CrosscheckArguments;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, write_file};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::interrupt;
use crate::targets::resolve_servers;
use deltabench_driver::crosscheck::sysbench_version;
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_run::crosscheck::packaged::chosen;
use deltabench_run::crosscheck::{CrosscheckRequest, crosscheck as measure};
use deltabench_run::fleet::Host;
use finding::{Finding, MARGIN, Row};
use serde::Serialize;

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.crosscheck", 1);

/// Seed of all keys and orders: what is sent is the same every time, so that a difference can be looked at
/// again.
const SEED: u64 = 1;

/// Fewest rows: the largest range that is part of a table at all.
const ROWS_MIN: u64 = 1000;

/// What it exits with when SQL or counts differ.
const DIFFERENT: u8 = 1;

/// What is printed and written.
#[derive(Debug, Serialize)]
struct Table {
    format: &'static str,
    version: u32,
    target: String,
    sysbench: String,
    table_rows: u64,
    rounds: u32,
    seed: u64,
    margin: f64,
    rows: Vec<Row>,
}

/// Compares what both sides send and how fast.
pub fn crosscheck(arguments: &CrosscheckArguments, config: &Config) -> Result<u8, Failure> {
    if arguments.pgbench.pgbench {
        return pgbench::crosscheck(arguments, config);
    }
    let sysbench = sysbench_version().map_err(Failure::Refused)?;
    let workloads = chosen(&arguments.only).map_err(Failure::Refused)?;
    check(arguments).map_err(Failure::Refused)?;
    let (host, installation) = resolved(arguments, config)?;
    let target = installation.resolved.clone();
    let request = CrosscheckRequest {
        installation,
        workloads,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        rows: arguments.rows,
        seed: SEED,
    };
    let interrupted = interrupt::flag()?;
    let measured = measure(&request, &host, &interrupted, &mut |text| say(&text));
    let Some(rows) = measured.map_err(Failure::Failed)? else {
        say("interrupted");
        return Ok(interrupt::STATUS);
    };
    let table = Table {
        format: FORMAT.0,
        version: FORMAT.1,
        target,
        sysbench,
        table_rows: request.rows,
        rounds: request.rounds,
        seed: SEED,
        margin: MARGIN,
        rows: rows.iter().map(Row::of).collect(),
    };
    write_out(&table, arguments, || shown::text(&table))?;
    let differs = table.rows.iter().any(Row::differs);
    Ok(if differs { DIFFERENT } else { 0 })
}

/// Where servers live, and the one to run against.
fn resolved(
    arguments: &CrosscheckArguments,
    config: &Config,
) -> Result<(Host, Installation), Failure> {
    let host = swept_host(&arguments.servers, config)?;
    let spec = arguments.target.parse().map_err(Failure::Refused)?;
    let installations = resolve_servers(&[spec], config).map_err(Failure::Refused)?;
    match installations.into_iter().next() {
        Some(installation) => Ok((host, installation)),
        None => Err(Failure::Refused(Problem::new("no target given"))),
    }
}

/// Refuses what cannot be measured.
fn check(arguments: &CrosscheckArguments) -> Result<(), Problem> {
    if arguments.rounds < 2 {
        return Err(Problem::new("an interval needs at least two rounds").hint("use --rounds 2"));
    }
    if !(arguments.seconds > 0.0 && arguments.seconds <= 60.0) {
        return Err(
            Problem::new(format!("--seconds {} cannot be", arguments.seconds))
                .hint("use more than 0 and at most 60"),
        );
    }
    if arguments.rows < ROWS_MIN || i32::try_from(arguments.rows).is_err() {
        return Err(Problem::new(format!("--rows {} cannot be", arguments.rows))
            .detail("sysbench's ids are 32-bit integers, and its ranges have up to 10000 of them")
            .hint(format!("use {ROWS_MIN} or more")));
    }
    match &arguments.json {
        Some(path) if !is_stdout(path) => check_writable(path),
        _ => Ok(()),
    }
}

/// Prints and writes what was found: JSON where it was asked for, `text` elsewhere.
fn write_out(
    found: &impl Serialize,
    arguments: &CrosscheckArguments,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(found).map_err(|error| {
        Failure::Failed(
            Problem::new("the result cannot be written as JSON").detail(error.to_string()),
        )
    })?;
    match arguments.json.as_deref() {
        Some(path) if is_stdout(path) => print_stdout(&json),
        Some(path) => write_file(path, &json).and_then(|()| print_stdout(&text())),
        None => print_stdout(&text()),
    }
}

impl Table {
    /// What was measured of each workload that has a script.
    fn findings(&self) -> impl Iterator<Item = (&Row, &Finding)> {
        self.rows
            .iter()
            .filter_map(|row| row.finding.as_ref().map(|finding| (row, finding)))
    }
}
