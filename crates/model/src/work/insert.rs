//! The Insert Benchmark: what its steps do, and what is counted in one.
//!
//! Source: docs/sources/insert-benchmark.md.

use crate::slice::ErrorCount;
use serde::{Deserialize, Serialize};

/// Rows that each client loads where nothing is said.
pub const ROWS: u64 = 4_000_000;
/// Rows that each client then inserts in the two steps that write.
pub const WRITE_ROWS: u64 = 1_000_000;
/// Seconds of a step of queries then.
pub const QUERY_SECONDS: u32 = 120;
/// Rates of the steps of queries then, background rows per second of each client.
pub const RATES: [u32; 3] = [100, 500, 1000];

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
    pub fn batch(self) -> u32 {
        match self {
            Self::LoadRows | Self::Index => LOAD_BATCH,
            Self::WriteMany | Self::Range(_) | Self::Point(_) => LARGE_BATCH,
            Self::WriteFew => SMALL_BATCH,
        }
    }

    /// Rows per second that each client is to insert beside its queries; absent for steps without queries.
    pub fn rate(self) -> Option<u32> {
        match self {
            Self::Range(rate) | Self::Point(rate) => Some(rate),
            _ => None,
        }
    }

    /// Whether queries are what it measures.
    pub fn queries(self) -> bool {
        self.rate().is_some()
    }

    /// The published order: the load, the writes, then range and point queries at rising rates.
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
    /// Ranges of the key that each table is cut into, each a partition; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub partitions: u32,
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
    /// Turns that each step is cut into, the other servers frozen meanwhile; 0: none, one server runs all
    /// steps after another.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u32,
}

/// For serde.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl InsertSetup {
    /// Rows of the first load that are in each partition of a table; as published all later ones are in the
    /// last. Absent without partitions.
    pub fn rows_per_partition(&self) -> Option<u64> {
        let loaded = self.loaded_rows() / u64::from(self.tables().max(1));
        loaded.checked_div(u64::from(self.partitions))
    }

    /// Number of tables.
    pub fn tables(&self) -> u32 {
        if self.shared_table { 1 } else { self.clients }
    }

    /// Rows that all clients together load.
    pub fn loaded_rows(&self) -> u64 {
        self.rows.saturating_mul(u64::from(self.clients))
    }

    /// Rows that each client inserts in a step; for steps of queries at their rate.
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

    /// Batches of each client in a turn of a step: equally many in all but the last, and whole seconds of a
    /// burst. Absent for a step that is not cut.
    pub fn batches_of_turn(&self, step: InsertStep) -> Option<u64> {
        if self.turns == 0 || step == InsertStep::Index {
            return None;
        }
        let batch = u64::from(step.batch());
        let batches = self.rows_of(step).div_ceil(batch);
        let each = batches.div_ceil(u64::from(self.turns)).max(1);
        match (step.rate(), self.pacing) {
            (Some(rate), Pacing::Burst) => {
                Some(each.next_multiple_of(u64::from(rate).div_ceil(batch).max(1)))
            }
            _ => Some(each),
        }
    }

    /// Operations of a step in published units, for one operation of ours.
    ///
    /// Shape: an operation of `l.i*` is an insert statement and counts its rows; that of `l.x` is the whole
    /// step and counts all indexed rows; that of a step of queries is a query.
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
    Insert,
    /// Deletes the oldest rows.
    Delete,
    Query,
}

impl InsertRole {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Insert, Self::Delete, Self::Query];

    /// The word in files and tables.
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
    pub role: InsertRole,
    pub statements: u64,
    /// Rows inserted, deleted or returned by them.
    pub rows: u64,
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
    pub errors: Vec<ErrorCount>,
}

/// One second of a step, all clients together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InsertSecond {
    pub inserted: u64,
    pub deleted: u64,
    pub queries: u64,
    /// Longest response of an insert that ended in it, microseconds; 0 where none did.
    pub max_insert_us: u64,
    /// Longest response of a delete.
    pub max_delete_us: u64,
    /// Longest response of a query.
    pub max_query_us: u64,
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

    #[test]
    fn rows_of_the_steps_are_as_published() {
        let setup = InsertSetup {
            clients: 20,
            shared_table: false,
            partitions: 0,
            rows: 200_000_000,
            write_rows: 5_000_000,
            query_seconds: 1800,
            steps: InsertStep::published(&[100, 500, 1000]),
            pacing: Pacing::Burst,
            settle_seconds: None,
            long_transaction_seconds: None,
            turns: 0,
        };
        assert_eq!(setup.rows_of(InsertStep::WriteMany), 4_000_000);
        assert_eq!(setup.rows_of(InsertStep::WriteFew), 1_000_000);
        assert_eq!(setup.rows_of(InsertStep::Point(1000)), 1_800_000);
        assert_eq!(setup.settle_seconds(), 1200);
        assert_eq!(setup.steps.len(), 10);
    }
}
