//! `deltabench crosscheck`: the built-in driver against sysbench's packaged scripts, and against pgbench.

mod pgbench;
mod shown;

pub use shown::with_interval;

use crate::arguments::selfcheck::CrosscheckArguments;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, write_json};
use crate::failure::Failure;
use crate::host::swept_host;
use crate::interrupt;
use crate::targets::resolve_servers;
use deltabench_driver::crosscheck::sysbench_version;
use deltabench_model::exit;
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_run::fleet::Host;
use deltabench_selfcheck::crosscheck as selfcheck;
use deltabench_selfcheck::crosscheck::CrosscheckRequest;
use deltabench_selfcheck::crosscheck::json::CrosscheckJson;
use deltabench_selfcheck::crosscheck::packaged::chosen;
use serde::Serialize;

/// Seed of all keys and orders: what is sent is the same every time, so that a difference can be looked at
/// again.
const SEED: u64 = 1;

/// Compares what both sides send and how fast.
pub fn crosscheck(arguments: &CrosscheckArguments, config: &Config) -> Result<u8, Failure> {
    if arguments.pgbench.pgbench {
        return pgbench::crosscheck(arguments, config);
    }
    let sysbench = sysbench_version().map_err(Failure::Refused)?;
    let workloads = chosen(&arguments.only).map_err(Failure::Refused)?;
    check(arguments).map_err(Failure::Refused)?;
    let (host, installation) = resolved(arguments, config)?;
    let request = CrosscheckRequest {
        installation,
        workloads,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        rows: arguments.rows,
        seed: SEED,
    };
    let interrupted = interrupt::flag()?;
    let measured = selfcheck::crosscheck(&request, &host, &interrupted, &mut |text| say(&text));
    let Some(rows) = measured.map_err(Failure::Failed)? else {
        say("interrupted");
        return Ok(exit::INTERRUPTED);
    };
    let found = CrosscheckJson::of(&request, sysbench, &rows);
    publish(&found, arguments, || shown::text(&found))?;
    Ok(if found.differs() { exit::DIFFERENT } else { 0 })
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

/// Refuses what cannot be measured or written.
fn check(arguments: &CrosscheckArguments) -> Result<(), Problem> {
    selfcheck::check(arguments.rounds, arguments.seconds, arguments.rows)?;
    match &arguments.json {
        Some(path) if !is_stdout(path) => check_writable(path),
        _ => Ok(()),
    }
}

/// Prints and writes what was found: JSON where it was asked for, `text` elsewhere.
fn publish(
    found: &impl Serialize,
    arguments: &CrosscheckArguments,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match arguments.json.as_deref() {
        Some(path) if is_stdout(path) => write_json(path, found),
        Some(path) => write_json(path, found).and_then(|()| print_stdout(&text())),
        None => print_stdout(&text()),
    }
}
