//! What one test came to on one server, as it is stored.

use crate::stored;
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::{ErrorCount, Slice, VoidReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the records of tests are called in a store.
const KIND: &str = "procedure-test";

/// One test on one server in one block. Raw: written once, never edited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TestRecord {
    pub(super) server: ServerId,
    pub(super) cell: CellId,
    /// Block: one pass of all tests on every server, from 0.
    pub(super) block: u32,
    /// Place of this server's pass in the block, from 0.
    pub(super) position: u32,
    /// Start, nanoseconds since the Unix epoch.
    pub(super) started_ns: u64,
    /// Time in which operations were under way, nanoseconds.
    pub(super) duration_ns: u64,
    pub(super) operations: u64,
    pub(super) failed: u64,
    /// Rows that came back.
    pub(super) rows: u64,
    /// CPU of all processes of the server, ended ones included, nanoseconds.
    pub(super) server_cpu_ns: Option<u64>,
    /// Time those processes waited for a core, nanoseconds.
    pub(super) run_queue_wait_ns: Option<u64>,
    /// Times that a process of the server was given a core.
    pub(super) switches: Option<u64>,
    pub(super) client_cpu_ns: u64,
    /// Busy time of the host less server and client, nanoseconds.
    pub(super) foreign_cpu_ns: Option<u64>,
    /// Time stolen by the hypervisor, nanoseconds.
    pub(super) steal_ns: Option<u64>,
    /// Time in which some task of the host waited for a core, nanoseconds.
    pub(super) cpu_pressure_ns: Option<u64>,
    /// Latencies, as those of a slice.
    pub(super) latency_histogram: Vec<u8>,
    pub(super) errors: Vec<ErrorCount>,
    /// Operations of about each second, with the nanoseconds that they took, in order.
    pub(super) seconds: Vec<(u64, u64)>,
    /// What was counted of the server, as [`VisitCounters`].
    pub(super) values: BTreeMap<String, f64>,
    /// Seconds of the load before the pass.
    pub(super) load_seconds: f64,
    /// Why it does not count; absent for a good test.
    pub(super) void: Option<VoidReason>,
    /// The facts behind `void`, for people.
    pub(super) void_detail: Option<String>,
}

impl TestRecord {
    /// The test as a store keeps it.
    ///
    /// Errors: a value that cannot be written.
    pub(super) fn record(&self) -> Result<Record, Problem> {
        let place = (self.block, self.cell, self.server);
        stored::record(KIND, self, place, self.void.clone())
    }

    /// The test as a slice: what is compared.
    pub(super) fn slice(&self) -> Slice {
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
            failed: self.failed,
            rows: self.rows,
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
            schedule_lag_ns: None,
            latency_histogram: self.latency_histogram.clone(),
            scripts: Vec::new(),
            errors: self.errors.clone(),
            void: self.void.clone(),
            void_detail: self.void_detail.clone(),
        }
    }

    /// What was counted in it.
    pub(super) fn counters(&self) -> VisitCounters {
        VisitCounters {
            server: self.server,
            cell: self.cell,
            block: self.block,
            operations: self.operations,
            values: self.values.clone(),
        }
    }
}

/// The tests among the records of a run; of a pass that was begun again the last time counts.
///
/// Errors: one that this version cannot read.
pub(super) fn tests(records: &[Record]) -> Result<Vec<TestRecord>, Problem> {
    let mut found: BTreeMap<(u32, CellId, ServerId), TestRecord> = BTreeMap::new();
    for record in records {
        if let Some(test) = stored::value::<TestRecord>(KIND, record)? {
            found.insert((test.block, test.cell, test.server), test);
        }
    }
    Ok(found.into_values().collect())
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn of_a_pass_that_was_begun_again_the_last_time_counts() {
        let test = |operations| TestRecord {
            server: ServerId(1),
            cell: CellId(2),
            block: 0,
            position: 0,
            started_ns: 5,
            duration_ns: 7,
            operations,
            failed: 0,
            rows: 0,
            server_cpu_ns: Some(3),
            run_queue_wait_ns: None,
            switches: None,
            client_cpu_ns: 0,
            foreign_cpu_ns: None,
            steal_ns: None,
            cpu_pressure_ns: None,
            latency_histogram: vec![1, 2],
            errors: Vec::new(),
            seconds: vec![(operations, 7)],
            values: [("wal_bytes".to_owned(), 0.5)].into(),
            load_seconds: 1.5,
            void: None,
            void_detail: None,
        };
        let stored = [test(10), test(20)].map(|test| test.record().unwrap());
        let other = Record {
            kind: "another".to_owned(),
            ..stored[0].clone()
        };
        let found = tests(&[stored[0].clone(), other, stored[1].clone()]).unwrap();
        assert_eq!(found, [test(20)]);
        assert_eq!(
            (found[0].slice().operations, found[0].slice().round),
            (20, 0)
        );
        let broken = Record {
            payload: "{}".to_owned(),
            ..stored[0].clone()
        };
        assert!(tests(&[broken]).is_err());
    }
}
