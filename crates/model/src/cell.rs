//! What is measured: cells, the servers that they are measured on by number, and the files that define them.

use serde::{Deserialize, Serialize};

/// The family a workload is reported with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Point look-ups.
    Point,
    /// Ranges without aggregation.
    Range,
    /// Ranges with aggregation, sorting or several statements.
    RangeAgg,
    Write,
}

impl Group {
    /// The word used in files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Range => "range",
            Self::RangeAgg => "range-agg",
            Self::Write => "write",
        }
    }
}

/// The state of the tables that a cell starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataState {
    /// Just loaded, vacuumed and settled.
    #[default]
    Fresh,
    /// After the published write phase at fixed work, then vacuumed and settled.
    Aged,
}

impl DataState {
    /// The word used in files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Aged => "aged",
        }
    }
}

/// How published studies count the work of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRate {
    /// Published units of one operation: 16 statements of a transaction, 1000 thousands of rows of a scan.
    /// Throughput in ops/s times this is the published figure.
    pub per_operation: f64,
    /// The published unit: `queries/s`, or `krows/s` of one client for scans.
    pub unit: String,
}

impl Default for PublishedRate {
    fn default() -> Self {
        Self {
            per_operation: 1.0,
            unit: "queries/s".to_owned(),
        }
    }
}

/// A workload step at a number of clients: one row of the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the workload, for example `point-query`.
    pub workload: String,
    /// Family for the report.
    pub group: Group,
    /// Concurrent connections for each server.
    pub clients: u32,
    /// Whether it changes data: such cells have tables of their own, restored before each block.
    pub writes: bool,
    /// SQL statements per operation, transaction control included, as published studies count them.
    pub statements_per_operation: u32,
    /// What its tables have been through before.
    #[serde(default)]
    pub state: DataState,
    /// Operations per second that are scheduled (open loop); absent for a closed loop.
    #[serde(default)]
    pub rate: Option<f64>,
    /// How published studies count it.
    #[serde(default)]
    pub published: PublishedRate,
    /// Whether each operation has a connection of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnects: bool,
}

/// A workload file of the user's, kept with the plan so that the run can be resumed and read without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSource {
    /// How problems call it.
    pub file: String,
    pub text: String,
}
