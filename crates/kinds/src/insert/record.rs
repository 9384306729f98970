//! What one step came to on one server, as it is stored.

use crate::stored;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::work::insert::{InsertRole, InsertSecond, RoleTally};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the records of steps are called in a store.
const KIND: &str = "insert-step";

/// One step on one server in one block. Raw: written once, never edited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    pub server: ServerId,
    pub cell: CellId,
    /// Block: one pass of all steps on every server, from 0.
    pub block: u32,
    /// Place of this server's pass in the block, from 0.
    pub position: u32,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// First send to last answer, nanoseconds.
    pub duration_ns: u64,
    /// Operations of the step: insert statements, queries, or 1 for the indexes.
    pub operations: u64,
    /// CPU of all processes of the server, nanoseconds.
    pub server_cpu_ns: Option<u64>,
    /// Time those processes waited for a core, nanoseconds.
    pub run_queue_wait_ns: Option<u64>,
    /// Times that a process of the server was given a core.
    pub switches: Option<u64>,
    pub client_cpu_ns: u64,
    /// Busy time of the host less server and client, nanoseconds.
    pub foreign_cpu_ns: Option<u64>,
    /// Time stolen by the hypervisor, nanoseconds.
    pub steal_ns: Option<u64>,
    /// Time in which some task of the host waited for a core, nanoseconds.
    pub cpu_pressure_ns: Option<u64>,
    /// By role; roles that the step does not have are not in it.
    pub roles: Vec<RoleTally>,
    /// Every second from the start; the last one may be cut short.
    pub seconds: Vec<InsertSecond>,
    /// Rows per second that each client kept up over the step: inserted, or queries in steps that have them.
    pub clients: Vec<f64>,
    /// What moved, as [`deltabench_model::counter::VisitCounters`] (so `wal_bytes` is WAL written); with it
    /// `checkpoints`, `autovacuums`, `autoanalyzes` (how many ended in the step), `insert_cpu_ns`,
    /// `delete_cpu_ns`, `query_cpu_ns` (CPU of the backends of a role), `short_deletes` (that removed another
    /// number of rows than asked) and `cut_short` (1 for a step that was ended because it could not keep its
    /// rate). And gauges at the end: `database_bytes`, `table_bytes`, `index_bytes`, `dead_rows`,
    /// `wal_dir_bytes`, `data_dir_bytes`, `largest_rss_bytes` (the most seen of any process).
    pub values: BTreeMap<String, f64>,
    /// The turns that the step was cut into, in order; none where it was not cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<StepTurn>,
    /// Why it does not count; absent for a good step.
    pub void: Option<VoidReason>,
    /// The facts behind `void`, for people.
    pub void_detail: Option<String>,
}

/// One turn of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTurn {
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// First send to last answer, nanoseconds.
    pub duration_ns: u64,
    /// As in the step.
    pub operations: u64,
    /// CPU of the server's processes that were seen, nanoseconds.
    pub server_cpu_ns: Option<u64>,
}

impl StepRecord {
    /// The step as a store keeps it.
    ///
    /// Errors: a value that cannot be written.
    pub fn record(&self) -> Result<Record, Problem> {
        let place = (self.block, self.cell, self.server);
        stored::record(KIND, self, place, self.void.clone())
    }

    /// The tally of a role, if the step has it.
    pub fn role(&self, role: InsertRole) -> Option<&RoleTally> {
        self.roles.iter().find(|tally| tally.role == role)
    }

    /// The role whose statements are the step's operations.
    pub fn primary(&self) -> Option<&RoleTally> {
        self.role(InsertRole::Query)
            .or_else(|| self.role(InsertRole::Insert))
    }

    /// The step as a slice: what is compared.
    ///
    /// Shape: without a histogram for a step that is one operation, as `l.x` is: the statements in it are not
    ///        what it measures.
    pub fn slice(&self) -> Slice {
        let primary = self.primary();
        let whole = self.operations <= 1 && self.role(InsertRole::Query).is_none();
        Slice {
            server: self.server,
            cell: self.cell,
            block: self.block,
            round: 0,
            position: self.position,
            connection: 0,
            started_ns: self.started_ns,
            duration_ns: self.duration_ns,
            operations: self.operations,
            failed: primary.map_or(0, |tally| tally.failed),
            rows: primary.map_or(0, |tally| tally.rows),
            server_cpu_ns: self.server_cpu_ns,
            run_queue_wait_ns: self.run_queue_wait_ns,
            client_cpu_ns: self.client_cpu_ns,
            foreign_cpu_ns: self.foreign_cpu_ns,
            steal_ns: self.steal_ns,
            idle_cpu_ns: None,
            background_cpu_ns: None,
            probe_ns: None,
            probing_ns: None,
            switches: self.switches,
            cpu_pressure_ns: self.cpu_pressure_ns,
            schedule_lag_ns: primary.and_then(|tally| tally.schedule_lag_ns),
            latency_histogram: primary
                .filter(|_| !whole)
                .map(|tally| tally.latency_histogram.clone())
                .unwrap_or_default(),
            scripts: Vec::new(),
            errors: primary
                .map(|tally| tally.errors.clone())
                .unwrap_or_default(),
            void: self.void.clone(),
            void_detail: self.void_detail.clone(),
        }
    }
}

/// The steps among the records of a run.
///
/// Errors: one that this version cannot read.
pub fn steps(records: &[Record]) -> Result<Vec<StepRecord>, Problem> {
    let steps = records.iter().map(|record| stored::value(KIND, record));
    steps.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operations: u64, roles: &[InsertRole]) -> StepRecord {
        let tally = |role: &InsertRole| RoleTally {
            role: *role,
            statements: 1,
            rows: 100,
            failed: 0,
            retries: 0,
            latency_histogram: vec![1, 2, 3],
            max_service_ns: 1,
            schedule_lag_ns: None,
            missed: 0,
            errors: Vec::new(),
        };
        StepRecord {
            server: ServerId(0),
            cell: CellId(0),
            block: 0,
            position: 0,
            started_ns: 0,
            duration_ns: 1,
            operations,
            server_cpu_ns: None,
            run_queue_wait_ns: None,
            switches: None,
            client_cpu_ns: 0,
            foreign_cpu_ns: None,
            steal_ns: None,
            cpu_pressure_ns: None,
            roles: roles.iter().map(tally).collect(),
            seconds: Vec::new(),
            clients: Vec::new(),
            values: BTreeMap::new(),
            turns: Vec::new(),
            void: None,
            void_detail: None,
        }
    }

    #[test]
    fn a_step_that_is_one_operation_has_no_latency_of_its_statements() {
        use InsertRole::{Delete, Insert, Query};
        assert!(record(1, &[Insert]).slice().latency_histogram.is_empty());
        assert_eq!(record(2, &[Insert]).slice().latency_histogram, [1, 2, 3]);
        let queries = record(1, &[Insert, Delete, Query]).slice();
        assert_eq!(queries.latency_histogram, [1, 2, 3]);
    }

    #[test]
    fn a_step_comes_back_from_its_record_and_other_records_are_no_steps() {
        let step = StepRecord {
            block: 3,
            clients: vec![0.1, 1e9],
            values: [("wal_bytes".to_owned(), 0.1)].into(),
            void: Some(VoidReason::Stalled),
            ..record(7, &[InsertRole::Insert])
        };
        let kept = step.record().unwrap();
        assert_eq!((kept.block, &kept.void), (3, &Some(VoidReason::Stalled)));
        let other = Record {
            kind: "another".to_owned(),
            ..kept.clone()
        };
        assert_eq!(steps(&[other, kept.clone()]).unwrap(), [step]);
        let broken = Record {
            payload: "{}".to_owned(),
            ..kept
        };
        assert!(steps(&[broken]).is_err());
    }
}
