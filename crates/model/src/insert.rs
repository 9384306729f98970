//! The Insert Benchmark: what its steps do, and what one of them came to on one server.
//!
//! Source: docs/sources/insert-benchmark.md.

use crate::cell::{CellId, ServerId};
use crate::slice::{ErrorCount, Slice, VoidReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows of one insert, and of one delete, in the first load.
pub const LOAD_BATCH: u32 = 100;
/// Rows of one insert, and of one delete, while there are many in a transaction.
pub const LARGE_BATCH: u32 = 50;
/// Rows of one insert, and of one delete, while there are few in a transaction.
pub const SMALL_BATCH: u32 = 5;
/// A step of queries has failed if it gets less than this share of its background rate.
pub const SLA_SHARE: f64 = 0.95;

/// One step of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "step", content = "rate")]
pub enum InsertStep {
    /// `l.i0`: tables made and rows inserted in the order of the key; no secondary indexes, no deletes.
    LoadRows,
    /// `l.x`: the three secondary indexes.
    Index,
    /// `l.i1`: inserts of 50 rows with deletes at the same rate.
    WriteMany,
    /// `l.i2`: inserts of 5 rows with deletes at the same rate.
    WriteFew,
    /// `qr100`: range queries beside so many inserted and deleted rows per second of each client.
    Range(u32),
    /// `qp100`: point queries beside so many inserted and deleted rows per second of each client.
    Point(u32),
}

impl InsertStep {
    /// The published name: `l.i0`, `qr100`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::LoadRows => "l.i0".to_owned(),
            Self::Index => "l.x".to_owned(),
            Self::WriteMany => "l.i1".to_owned(),
            Self::WriteFew => "l.i2".to_owned(),
            Self::Range(rate) => format!("qr{rate}"),
            Self::Point(rate) => format!("qp{rate}"),
        }
    }

    /// The step of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let rate = |text: &str| text.parse().ok().filter(|rate| *rate > 0);
        match name {
            "l.i0" => Some(Self::LoadRows),
            "l.x" => Some(Self::Index),
            "l.i1" => Some(Self::WriteMany),
            "l.i2" => Some(Self::WriteFew),
            _ => match name.split_at_checked(2)? {
                ("qr", text) => rate(text).map(Self::Range),
                ("qp", text) => rate(text).map(Self::Point),
                _ => None,
            },
        }
    }

    /// Rows that one insert of this step has.
    #[must_use]
    pub fn batch(self) -> u32 {
        match self {
            Self::LoadRows | Self::Index => LOAD_BATCH,
            Self::WriteMany | Self::Range(_) | Self::Point(_) => LARGE_BATCH,
            Self::WriteFew => SMALL_BATCH,
        }
    }

    /// Rows per second that each client is to insert beside its queries; absent for steps without queries.
    #[must_use]
    pub fn rate(self) -> Option<u32> {
        match self {
            Self::Range(rate) | Self::Point(rate) => Some(rate),
            _ => None,
        }
    }

    /// Whether queries are what it measures.
    #[must_use]
    pub fn queries(self) -> bool {
        self.rate().is_some()
    }

    /// The published order: the load, the writes, then range and point queries at rising rates.
    #[must_use]
    pub fn published(rates: &[u32]) -> Vec<Self> {
        let mut steps = vec![Self::LoadRows, Self::Index, Self::WriteMany, Self::WriteFew];
        for &rate in rates {
            steps.push(Self::Range(rate));
            steps.push(Self::Point(rate));
        }
        steps
    }
}

/// How a background rate is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Statements at a constant distance; what was late is made up.
    #[default]
    Spread,
    /// As published: all of a second's statements at its start, and a late second is never made up.
    Burst,
}

impl Pacing {
    /// The word in files and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Burst => "burst",
        }
    }
}

/// The sizes of the benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InsertSetup {
    /// Clients. Each is a connection that inserts, one that deletes and one that queries.
    pub clients: u32,
    /// Whether all clients share one table instead of one for each.
    pub shared_table: bool,
    /// Rows that each client loads in `l.i0`.
    pub rows: u64,
    /// Rows that each client inserts in `l.i1` and `l.i2`: four fifths and one fifth.
    pub write_rows: u64,
    /// Seconds of each step of queries, if the background rate is kept: it ends after the rows of so many.
    pub query_seconds: u32,
    /// The steps, in order. The tables are settled before the first step of queries.
    pub steps: Vec<InsertStep>,
    /// How background rates are kept.
    pub pacing: Pacing,
    /// Least seconds of settling (vacuum, checkpoint, wait); absent: as published.
    pub settle_seconds: Option<u32>,
    /// A session that holds a transaction open so long, again and again; absent: none.
    pub long_transaction_seconds: Option<u32>,
}

impl InsertSetup {
    /// Number of tables.
    #[must_use]
    pub fn tables(&self) -> u32 {
        if self.shared_table { 1 } else { self.clients }
    }

    /// Rows that all clients together load.
    #[must_use]
    pub fn loaded_rows(&self) -> u64 {
        self.rows.saturating_mul(u64::from(self.clients))
    }

    /// Rows that each client inserts in a step; for steps of queries at their rate.
    #[must_use]
    pub fn rows_of(&self, step: InsertStep) -> u64 {
        match step {
            InsertStep::LoadRows => self.rows,
            InsertStep::Index => u64::from(step.batch()),
            InsertStep::WriteMany => self.write_rows - self.write_rows / 5,
            InsertStep::WriteFew => self.write_rows / 5,
            InsertStep::Range(rate) | InsertStep::Point(rate) => {
                u64::from(rate) * u64::from(self.query_seconds)
            }
        }
    }

    /// Operations of a step in published units, for one operation of ours.
    ///
    /// Shape: an operation of `l.i*` is an insert statement and counts its rows; that of `l.x` is the whole
    /// step and counts all indexed rows; that of a step of queries is a query.
    #[must_use]
    pub fn published_per_operation(&self, step: InsertStep) -> f64 {
        match step {
            InsertStep::LoadRows | InsertStep::WriteMany | InsertStep::WriteFew => {
                f64::from(step.batch())
            }
            InsertStep::Index => {
                let added = u64::from(step.batch()) * u64::from(self.clients);
                crate::units::to_f64(self.loaded_rows().saturating_add(added))
            }
            InsertStep::Range(_) | InsertStep::Point(_) => 1.0,
        }
    }

    /// Seconds of settling.
    #[must_use]
    pub fn settle_seconds(&self) -> u64 {
        match self.settle_seconds {
            Some(seconds) => u64::from(seconds),
            None => (60 + self.loaded_rows() / 1_000_000).min(1200),
        }
    }
}

/// What a connection of a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InsertRole {
    /// Inserts rows.
    Insert,
    /// Deletes the oldest rows.
    Delete,
    /// Queries.
    Query,
}

impl InsertRole {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Insert, Self::Delete, Self::Query];

    /// The word in files and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Query => "query",
        }
    }
}

/// What all connections of one role did in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleTally {
    /// Which role.
    pub role: InsertRole,
    /// Statements that succeeded.
    pub statements: u64,
    /// Rows inserted, deleted or returned by them.
    pub rows: u64,
    /// Statements that failed.
    pub failed: u64,
    /// Tries beyond the first, after a serialization failure or a deadlock.
    pub retries: u64,
    /// Latency of each succeeded statement in nanoseconds, as a serialized hdrhistogram (V2). With a rate it
    /// counts from the scheduled start.
    pub latency_histogram: Vec<u8>,
    /// Time from sending to the answer of the slowest, nanoseconds.
    pub max_service_ns: u64,
    /// With a rate: the longest that a statement was sent after its scheduled start, nanoseconds.
    pub schedule_lag_ns: Option<u64>,
    /// With a rate: statements that were never sent because a second was late and is not made up.
    pub missed: u64,
    /// Errors, by SQLSTATE.
    pub errors: Vec<ErrorCount>,
}

/// One second of a step, all clients together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InsertSecond {
    /// Rows inserted.
    pub inserted: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Queries.
    pub queries: u64,
    /// Longest response of an insert that ended in it, microseconds; 0 where none did.
    pub max_insert_us: u64,
    /// Longest response of a delete.
    pub max_delete_us: u64,
    /// Longest response of a query.
    pub max_query_us: u64,
}

/// One step on one server in one block. Raw: written once, never edited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Which server.
    pub server: ServerId,
    /// Which cell: the step.
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
    /// CPU of the client, nanoseconds.
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
    /// What moved, as [`crate::counter::VisitCounters::values`] (so `wal_bytes` is WAL written); with it
    /// `checkpoints`, `autovacuums`, `autoanalyzes` (how many ended in the step), `insert_cpu_ns`,
    /// `delete_cpu_ns`, `query_cpu_ns` (CPU of the backends of a role), `short_deletes` (that removed another
    /// number of rows than asked) and `cut_short` (1 for a step that was ended because it could not keep its
    /// rate). And gauges at the end: `database_bytes`, `table_bytes`, `index_bytes`, `dead_rows`,
    /// `wal_dir_bytes`, `data_dir_bytes`, `largest_rss_bytes` (the most seen of any process).
    pub values: BTreeMap<String, f64>,
    /// Why it does not count; absent for a good step.
    pub void: Option<VoidReason>,
    /// The facts behind `void`, for people.
    pub void_detail: Option<String>,
}

impl StepRecord {
    /// The tally of a role, if the step has it.
    #[must_use]
    pub fn role(&self, role: InsertRole) -> Option<&RoleTally> {
        self.roles.iter().find(|tally| tally.role == role)
    }

    /// The role whose statements are the step's operations.
    #[must_use]
    pub fn primary(&self) -> Option<&RoleTally> {
        self.role(InsertRole::Query)
            .or_else(|| self.role(InsertRole::Insert))
    }

    /// The step as a slice: what is compared.
    ///
    /// Shape: without a histogram for a step that is one operation, as `l.x` is: the statements in it are not
    ///        what it measures.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_by_its_name() {
        for step in InsertStep::published(&[100, 1000]) {
            assert_eq!(InsertStep::from_name(&step.name()), Some(step));
        }
        for name in ["l.i3", "qr", "qr0", "qp-1", "q", "é"] {
            assert_eq!(InsertStep::from_name(name), None, "{name}");
        }
    }

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
            server: 0,
            cell: 0,
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
    fn rows_of_the_steps_are_as_published() {
        let setup = InsertSetup {
            clients: 20,
            shared_table: false,
            rows: 200_000_000,
            write_rows: 5_000_000,
            query_seconds: 1800,
            steps: InsertStep::published(&[100, 500, 1000]),
            pacing: Pacing::Burst,
            settle_seconds: None,
            long_transaction_seconds: None,
        };
        assert_eq!(setup.rows_of(InsertStep::WriteMany), 4_000_000);
        assert_eq!(setup.rows_of(InsertStep::WriteFew), 1_000_000);
        assert_eq!(setup.rows_of(InsertStep::Point(1000)), 1_800_000);
        assert_eq!(setup.settle_seconds(), 1200);
        assert_eq!(setup.steps.len(), 10);
    }
}
