//! What a visit to the mix is on one server, as it is stored.

use crate::stored;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::to_f64;
use serde::{Deserialize, Serialize};

/// The word of these records in the store.
const KIND: &str = "replay-mix";

/// A visit on one server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MixRecord {
    pub slices: Vec<MixSlice>,
    /// SQLSTATE of what ended the visit, on whichever server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// That server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_on: Option<ServerId>,
}

/// So many statements in a row, by all clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixSlice {
    pub round: u32,
    pub position: u32,
    /// Nanoseconds since the Unix epoch.
    pub started_ns: u64,
    pub duration_ns: u64,
    /// Statements that succeeded.
    pub operations: u64,
    /// Statements that another client was in the way of.
    pub failed: u64,
    pub rows: u64,
    /// CPU of all processes of the server, nanoseconds; absent where the host cannot tell.
    pub server_cpu_ns: Option<u64>,
    /// Of each that succeeded, nanoseconds, as a serialized hdrhistogram (V2).
    pub latency_histogram: Vec<u8>,
}

impl MixRecord {
    /// A visit that was measured.
    pub fn of(slices: Vec<MixSlice>) -> Self {
        Self {
            slices,
            ..Self::default()
        }
    }

    /// One that ended with this SQLSTATE.
    pub fn failed(sqlstate: String, server: Option<ServerId>) -> Self {
        Self {
            failed: Some(sqlstate),
            failed_on: server,
            ..Self::default()
        }
    }

    /// For the store.
    ///
    /// Errors: numbers that JSON cannot hold.
    pub fn record(&self, place: (u32, CellId, ServerId)) -> Result<Record, Problem> {
        let void = self.failed.is_some().then_some(VoidReason::NothingDone);
        stored::record(KIND, self, place, void)
    }

    /// A stored one; absent for a record of another kind.
    ///
    /// Errors: it is damaged.
    pub fn read(record: &Record) -> Result<Option<Self>, Problem> {
        stored::value(KIND, record)
    }

    /// What its slices took.
    pub fn seconds(&self) -> f64 {
        let slices = self.slices.iter();
        slices.map(|slice| to_f64(slice.duration_ns) / 1e9).sum()
    }

    /// Its slices; none if it failed.
    pub fn slices(
        &self,
        (block, cell, server): (u32, CellId, ServerId),
    ) -> impl Iterator<Item = Slice> {
        self.slices.iter().map(move |slice| Slice {
            server,
            cell,
            block,
            round: slice.round,
            position: slice.position,
            connection: 0,
            started_ns: slice.started_ns,
            duration_ns: slice.duration_ns,
            operations: slice.operations,
            failed: slice.failed,
            rows: slice.rows,
            server_cpu_ns: slice.server_cpu_ns,
            run_queue_wait_ns: None,
            client_cpu_ns: 0,
            foreign_cpu_ns: None,
            steal_ns: None,
            idle_cpu_ns: None,
            background_cpu_ns: None,
            probe_ns: None,
            probing_ns: None,
            switches: None,
            cpu_pressure_ns: None,
            schedule_lag_ns: None,
            latency_histogram: slice.latency_histogram.clone(),
            scripts: Vec::new(),
            errors: Vec::new(),
            void: None,
            void_detail: None,
        })
    }
}
