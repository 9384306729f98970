//! The aged state: what tables look like after the published write phase.
//!
//! Published studies run eight write-heavy workloads for minutes each, so that a faster server ages its
//! tables further. Here each does a number of operations that follows from the number of rows: the same on
//! every server, from the same seed, over one connection, so that all servers end with the same rows. The
//! phase ends as published: VACUUM (ANALYZE) of each table and a checkpoint. The sleep that follows there
//! is a wait until the server is quiet here, at most as long as the published one.

use crate::admin::run;
use crate::load::{check_visibility, clone_fresh, settle_sql};
use crate::site::{SCHEMA, Site, Tables, database_of, login};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_model::endpoint::Endpoint;
use deltabench_model::plan::{DataState, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_observe::CpuMeter;
use deltabench_workload::{Library, mix, settle_seconds};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The write phase: workloads in their published order, and operations of each for each row.
///
/// Source of names and order: [`deltabench_workload::write_phase`]. The published counts follow from a time
/// and so from the server; these are ours, chosen for about half a minute per million rows on a quiet core.
/// Tables and indexes grow by 15 % (14, 17, 18) or 25 % (9.6).
pub const WRITE_PHASE: [(&str, f64); 8] = [
    ("update-inlist", 0.02),
    ("update-index", 0.1),
    ("update-nonindex", 0.1),
    ("update-one", 0.05),
    ("update-zipf", 0.1),
    ("write-only", 0.02),
    ("read-write-10", 0.005),
    ("read-write-100", 0.005),
];

/// The tables that age.
const AGED: Tables = Tables::Kept(DataState::Aged);

/// Operations after which an interruption is noticed.
const PIECE: u64 = 5000;

/// What the seed of the write phase is mixed with: keeps it from any other stream of the run.
const AGING: u64 = u64::from_be_bytes(*b"aging   ");

/// Limit for one operation.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);

/// A server is quiet when it has used less than this share of a core in each of some intervals in a row.
const QUIET_SHARE: f64 = 0.01;
const QUIET_INTERVAL: Duration = Duration::from_millis(250);
const QUIET_INTERVALS: u32 = 4;

/// What one workload of the write phase did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgingStep {
    pub workload: String,
    /// Operations for each row of the tables.
    pub operations_per_row: f64,
    pub operations: u64,
    pub seconds: f64,
}

/// How the aged state was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgingReport {
    /// The write phase, in order.
    pub steps: Vec<AgingStep>,
    /// Vacuum, statistics and checkpoint after it.
    pub vacuum_seconds: f64,
    /// Wait until the server was quiet.
    pub settle_seconds: f64,
    /// Whether it became quiet; otherwise the published sleep was waited out.
    pub quiet: bool,
}

/// Makes the aged state from the fresh one; `None` when `stop` was set meanwhile.
///
/// Errors: whatever the server answered; an operation that failed.
pub(crate) fn age(
    endpoint: &Endpoint,
    postmaster_pid: u32,
    version_num: u32,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Option<AgingReport>, Problem> {
    clone_fresh(endpoint, version_num)?;
    let library = Library::builtin()?;
    let rows = plan.data.rows * u64::from(plan.data.tables);
    let mut steps = Vec::new();
    for (workload, operations_per_row) in WRITE_PHASE {
        let operations = to_u64(operations_per_row * to_f64(rows)).max(1);
        let started = Instant::now();
        if !write(endpoint, &library, workload, operations, plan, stop)? {
            return Ok(None);
        }
        steps.push(AgingStep {
            workload: workload.to_owned(),
            operations_per_row,
            operations,
            seconds: started.elapsed().as_secs_f64(),
        });
    }
    let vacuum = Instant::now();
    let tables = library.get(WRITE_PHASE[0].0)?.table_names(&plan.data);
    let client = &mut Site::own(endpoint.clone()).open(AGED)?;
    for sql in settle_sql(version_num, &tables, true) {
        run(client, &sql)?;
    }
    check_visibility(client, SCHEMA)?;
    let vacuum_seconds = vacuum.elapsed().as_secs_f64();
    let settle = Instant::now();
    let limit = Duration::from_secs(settle_seconds(&plan.data));
    let quiet = wait_until_quiet(postmaster_pid, limit, stop)?;
    Ok(Some(AgingReport {
        steps,
        vacuum_seconds,
        settle_seconds: settle.elapsed().as_secs_f64(),
        quiet,
    }))
}

/// Does the operations of one workload; whether all were done.
fn write(
    endpoint: &Endpoint,
    library: &Library,
    workload: &str,
    operations: u64,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<bool, Problem> {
    let executable = library.get(workload)?.compile(&plan.data)?;
    let failed =
        |error: String| Problem::new(format!("{workload} failed in the write phase")).detail(error);
    // With one connection the rows are the same in the end whatever the server; with more, who comes first
    // would decide.
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[(endpoint.clone(), login(database_of(AGED)))],
        executable: &executable,
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: OPERATION_TIMEOUT,
        rate: None,
    })
    .map_err(|error| failed(error.to_string()))?;
    let key = workload.bytes().map(u64::from).collect::<Vec<_>>();
    let mut done = 0;
    while done < operations {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let request = SliceRequest {
            operations: PIECE.min(operations - done),
            seed: mix(mix(plan.seed, &[AGING, done]), &key),
            first_operation: done,
        };
        let outcome = lane.run_slice(0, request);
        if let Some(error) = outcome.errors.first() {
            return Err(failed(format!(
                "{} (SQLSTATE {})",
                error.first_message, error.sqlstate
            )));
        }
        if outcome.void.is_some() {
            return Err(failed(outcome.void_detail.unwrap_or_default()));
        }
        done += request.operations;
    }
    Ok(true)
}

/// Waits until the server uses no CPU to speak of; whether it came to that.
pub(crate) fn wait_until_quiet(
    postmaster_pid: u32,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<bool, Problem> {
    let mut meter = CpuMeter::open(postmaster_pid).map_err(|error| {
        Problem::new("the CPU time of servers cannot be read on this host")
            .detail(error.to_string())
    })?;
    let deadline = Instant::now() + limit;
    let mut quiet = 0;
    let mut before = (meter.read(), Instant::now());
    while quiet < QUIET_INTERVALS {
        if Instant::now() >= deadline || stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        std::thread::sleep(QUIET_INTERVAL);
        let now = (meter.read(), Instant::now());
        let used = to_f64(now.0.since(&before.0).cpu_ns) / 1e9;
        let share = used / (now.1 - before.1).as_secs_f64();
        quiet = if share < QUIET_SHARE { quiet + 1 } else { 0 };
        before = now;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_phase_is_the_published_one_in_its_order() {
        let names: Vec<&str> = WRITE_PHASE.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, deltabench_workload::write_phase());
    }
}
