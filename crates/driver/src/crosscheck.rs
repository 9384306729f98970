//! The scripts that come with sysbench, run as they are, and our own client doing the same.
//!
//! Nothing of a script is changed: what it does is what people have who install the package. Its options
//! are ours: uniform keys, because sysbench 1.0 draws skewed ones unless told otherwise, and a fixed number
//! of events on one thread, because then its seed fixes every parameter.

pub mod pgbench;

use crate::lane::{Lane, LaneSpec};
use crate::peer::{
    Peer, PeerOutcome, Scratch, cannot, finish, on_cores, session, sysbench_connection,
};
use crate::slice::SliceRequest;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::problem::Problem;
use deltabench_workload::executable::Executable;
use std::io;
use std::process::Command;
use std::time::Duration;

/// Patience with one operation.
const OP_TIMEOUT: Duration = Duration::from_secs(60);

/// Largest seed that sysbench takes.
const SEED_MAX: u64 = 0x7fff_ffff;

/// One run of a packaged script on table `sbtest1`, on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptRun<'a> {
    /// Its name, without `.lua`: `oltp_point_select`.
    pub script: &'a str,
    /// Its options beside those that all runs have, for example `("range_size", 100)`; later ones win.
    pub options: &'a [(&'a str, u64)],
    /// Rows of `sbtest1`.
    pub rows: u64,
    pub events: u64,
    pub seed: u64,
    /// Cores it may use; none means all.
    pub affinity: &'a [usize],
}

impl ScriptRun<'_> {
    /// What is typed after `sysbench` to have the same events again, without the connection.
    pub fn arguments(&self) -> Vec<String> {
        let mut options = vec![("tables", 1), ("table_size", self.rows)];
        for (name, value) in self.options {
            options.retain(|(known, _)| known != name);
            options.push((name, *value));
        }
        let mut arguments = vec![self.script.to_owned(), "--rand-type=uniform".to_owned()];
        // 0 would be the time of day.
        arguments.push(format!("--rand-seed={}", self.seed % SEED_MAX + 1));
        arguments.push("--threads=1".to_owned());
        arguments.push(format!("--events={}", self.events));
        let spelled = options
            .iter()
            .map(|(name, value)| format!("--{name}={value}"));
        arguments.extend(spelled);
        arguments.push("run".to_owned());
        arguments
    }
}

/// Runs a packaged script; its client CPU is that of the whole process, start-up included.
///
/// Errors: sysbench is not installed, has no such script, fails, or prints something unknown.
pub fn run_script(
    run: &ScriptRun<'_>,
    endpoint: &Endpoint,
    login: &Login,
) -> Result<PeerOutcome, Problem> {
    let mut command = Command::new(Peer::Sysbench.installed()?);
    command
        .args(sysbench_connection(endpoint, login))
        .args(run.arguments());
    session(&mut command, login);
    let word = Peer::Sysbench.word();
    let scratch = Scratch::new().map_err(|error| cannot(word, &error))?;
    let outcome = finish(Peer::Sysbench, command, &scratch, run.affinity)?;
    if outcome.operations != run.events {
        return Err(
            Problem::new("sysbench did not do the requested work").detail(format!(
                "{}: {} events instead of {}",
                run.script, outcome.operations, run.events
            )),
        );
    }
    Ok(outcome)
}

/// The version of sysbench that is installed, as it says it: `sysbench 1.0.20`.
///
/// Errors: it is not installed, or does not run.
pub fn sysbench_version() -> Result<String, Problem> {
    let word = Peer::Sysbench.word();
    let said = Command::new(Peer::Sysbench.installed()?)
        .arg("--version")
        .output()
        .map_err(|error| cannot(word, &error))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// One run of our own client.
#[derive(Debug, Clone, Copy)]
pub struct OwnRun<'a> {
    pub executable: &'a Executable,
    pub clients: u32,
    /// Threads of the client.
    pub jobs: u32,
    pub operations: u64,
    pub seed: u64,
    /// Cores it may use; none means all.
    pub affinity: &'a [usize],
}

/// Runs our own client over new connections; its CPU is that of the threads that send and receive, without
/// connecting and preparing.
///
/// Errors: no connection, an operation that fails, no answer within a minute.
pub fn run_own_client(
    run: &OwnRun<'_>,
    endpoint: &Endpoint,
    login: &Login,
) -> Result<PeerOutcome, Problem> {
    let work = || {
        own_slice(
            &mut own_lane(run, endpoint, login)?,
            run.operations,
            run.seed,
        )
    };
    on_cores(run.affinity, work).map_err(|error| cannot("our own client", &error))
}

/// Opens the connections of our own client.
pub(crate) fn own_lane(run: &OwnRun<'_>, endpoint: &Endpoint, login: &Login) -> io::Result<Lane> {
    let lane = LaneSpec {
        servers: &[(endpoint.clone(), login.clone())],
        executable: run.executable,
        clients: run.clients,
        jobs: run.jobs,
        cores: run.affinity,
        op_timeout: OP_TIMEOUT,
        rate: None,
    };
    Lane::connect(&lane).map_err(io::Error::other)
}

/// A slice of our own client; an operation that fails is an error.
pub(crate) fn own_slice(lane: &mut Lane, operations: u64, seed: u64) -> io::Result<PeerOutcome> {
    let request = SliceRequest {
        operations,
        seed,
        first_operation: 0,
    };
    let outcome = lane.run_slice(0, request);
    if outcome.void.is_some() || outcome.failed > 0 {
        let first = outcome
            .errors
            .first()
            .map(|error| format!("{} (SQLSTATE {})", error.first_message, error.sqlstate));
        let detail = outcome.void_detail.or(first).unwrap_or_default();
        return Err(io::Error::other(detail));
    }
    Ok(PeerOutcome {
        operations: outcome.operations,
        duration_ns: outcome.duration_ns,
        client_cpu_ns: outcome.client_cpu_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_script_replaces_the_one_that_all_runs_have() {
        let run = ScriptRun {
            script: "oltp_update_non_index",
            options: &[("table_size", 1)],
            rows: 5000,
            events: 20,
            seed: SEED_MAX,
            affinity: &[],
        };
        assert_eq!(
            run.arguments().join(" "),
            "oltp_update_non_index --rand-type=uniform --rand-seed=1 --threads=1 --events=20 --tables=1 \
             --table_size=1 run"
        );
    }
}
