//! What the JSON report of a run says of pgbench's scripts: part of that contract
//! ([`deltabench_report::format`]).

use super::text::ScriptResult;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_report::words::finite;
use serde::Serialize;

/// A script of a mix on a server in a cell: everything that was sent, disturbed or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PgbenchScript {
    /// Index of the cell in the plan.
    pub cell: CellId,
    /// The workload.
    pub workload: String,
    /// Clients.
    pub clients: u32,
    /// Index of the server in the plan.
    pub server: ServerId,
    /// Its name.
    pub server_name: String,
    /// The script as pgbench calls it.
    pub script: String,
    /// Its weight.
    pub weight: u32,
    /// Share of all transactions of the cell on this server, failed and skipped ones included.
    pub share: f64,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// These per second of the cell's measured time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    /// Mean latency of those that succeeded, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_average: Option<f64>,
    /// Standard deviation of these latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_stddev: Option<f64>,
    /// Transactions that failed, for whatever reason.
    pub failed: u64,
    /// Of these for serialization, after all tries.
    pub serialization_failures: u64,
    /// Of these for a deadlock, after all tries.
    pub deadlock_failures: u64,
    /// Transactions that were tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Transactions that were due too late and not begun.
    pub skipped: u64,
    /// Transactions that took longer than the latency limit.
    pub late: u64,
}

/// The form of a script in files.
pub(super) fn script(row: &ScriptResult) -> PgbenchScript {
    let tally = &row.tally;
    PgbenchScript {
        cell: row.cell,
        workload: row.workload.clone(),
        clients: row.clients,
        server: row.server_id,
        server_name: row.server.clone(),
        script: row.script.clone(),
        weight: row.weight,
        share: row.share,
        transactions: tally.operations,
        tps: finite(row.tps),
        latency_us_average: row.latency_us.and_then(|(mean, _)| finite(mean)),
        latency_us_stddev: row.latency_us.and_then(|(_, stddev)| finite(stddev)),
        failed: row.failed,
        serialization_failures: tally.serialization_failures,
        deadlock_failures: tally.deadlock_failures,
        retried: tally.retried,
        retries: tally.retries,
        skipped: tally.skipped,
        late: tally.late,
    }
}
