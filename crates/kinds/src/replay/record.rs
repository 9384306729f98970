//! What a visit to a statement is on one server, as it is stored.

use crate::stored;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::replay::TimedStatement;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The word of these records in the store.
const KIND: &str = "replay-visit";

/// A visit on one server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VisitRecord {
    pub tuples: Vec<TupleTimes>,
    pub slices: Vec<SliceTimes>,
    /// Rows of all executions.
    pub rows: u64,
    /// The same with the plans of the base, in a session with other settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_plan: Option<Box<VisitRecord>>,
    /// SQLSTATE of what ended the visit, on whichever server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// That server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_on: Option<ServerId>,
}

/// A tuple in a visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TupleTimes {
    /// Its place in the statement of the capture.
    pub place: u32,
    pub executions: u64,
    /// Of all executions, nanoseconds.
    pub total_ns: u64,
    /// Mean of an execution: the trimmed mean over rounds, nanoseconds.
    pub typical_ns: f64,
}

/// A slice: a drawn order of some tuples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceTimes {
    /// Nanoseconds since the Unix epoch.
    pub started_ns: u64,
    pub duration_ns: u64,
    pub executions: u64,
}

/// The visits that have a record of all these servers. They are stored one by one, and who was killed between
/// two of them has left a part, which says nothing.
pub fn whole_visits(records: &[Record], servers: usize) -> BTreeSet<(u32, CellId)> {
    let mut found: BTreeMap<(u32, CellId), usize> = BTreeMap::new();
    for record in records {
        *found.entry((record.block, record.cell)).or_default() += 1;
    }
    found.retain(|_, stored| *stored == servers);
    found.into_keys().collect()
}

impl VisitRecord {
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

    /// Executions of all tuples.
    pub fn executions(&self) -> u64 {
        self.tuples.iter().map(|tuple| tuple.executions).sum()
    }

    /// What its slices took.
    pub fn seconds(&self) -> f64 {
        let slices = self.slices.iter();
        let own: f64 = slices.map(|slice| to_f64(slice.duration_ns) / 1e9).sum();
        own + self.old_plan.as_ref().map_or(0.0, |old| old.seconds())
    }

    /// Mean nanoseconds of an execution, over the workload's tuples: each weighs as many executions as it
    /// stands for. Absent without a tuple.
    pub fn mean_ns(&self, statement: &TimedStatement, wanted: impl Fn(u32) -> bool) -> Option<f64> {
        let weight = |place: u32| {
            let mut tuples = statement.tuples.iter();
            tuples
                .find(|tuple| tuple.place == place)
                .map(|tuple| tuple.weight)
        };
        let known = self.tuples.iter().filter(|tuple| wanted(tuple.place));
        let weighted = known.filter_map(|tuple| Some((weight(tuple.place)?, tuple.typical_ns)));
        let (weights, times) = weighted.fold((0.0, 0.0), |(weights, times), (weight, ns)| {
            (weights + weight, times + weight * ns)
        });
        (weights > 0.0).then(|| times / weights)
    }

    /// The slice that stands for the visit: the mean of the workload's tuples, for as many executions.
    pub fn slice(
        &self,
        (block, cell, server): (u32, CellId, ServerId),
        statement: &TimedStatement,
    ) -> Option<Slice> {
        let executions = self.executions();
        let mean = self.mean_ns(statement, |_| true)?;
        Some(Slice {
            server,
            cell,
            block,
            round: 0,
            position: 0,
            connection: 0,
            started_ns: self.slices.first().map_or(0, |slice| slice.started_ns),
            duration_ns: to_u64(mean * to_f64(executions)).max(1),
            operations: executions,
            failed: 0,
            rows: self.rows,
            server_cpu_ns: None,
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
            latency_histogram: Vec::new(),
            scripts: Vec::new(),
            errors: Vec::new(),
            void: None,
            void_detail: None,
        })
    }
}
