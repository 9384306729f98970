//! What a run does: the kind of benchmark, with the setup that is its own.

pub mod insert;
pub mod orders;
pub mod pgbench;
pub mod procedure;
pub mod replay;
pub mod rocksdb;

use crate::cell::WorkloadSource;
use crate::id::CellId;
use insert::InsertSetup;
use orders::OrdersSetup;
use pgbench::PgbenchSetup;
use procedure::ProcedureSetup;
use replay::ReplaySetup;
use rocksdb::{RocksdbSetup, RocksdbStep};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The kind of benchmark of a plan. One row for each kind; who asks which one it is belongs to that kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Work {
    /// Statements of workloads, in slices that alternate between the servers.
    Workloads(WorkloadsSetup),
    /// The Insert Benchmark: the cells are its steps, and a block is one pass of all of them on each server,
    /// one server after another.
    Insert(InsertSetup),
    /// RocksDB: the cells are the measured steps of a chain that every target goes through in each block, on
    /// a database of its own; the targets take turns within each step.
    Rocksdb(RocksdbSetup),
    /// Reads of a captured workload with their values: the cells are its statements.
    Replay(ReplaySetup),
    /// Order entry: transactions in the way of TPC-C, in slices as workloads are.
    Orders(OrdersSetup),
    /// The published procedure: the cells are its tests in its order, and a block is one pass of all of them
    /// on each server, one server after another.
    Procedure(ProcedureSetup),
}

/// What workloads need beside their definitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkloadsSetup {
    /// What is done with pgbench; absent where none of its scripts is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbench: Option<PgbenchSetup>,
}

/// What those who judge and report ask of a kind, whatever it is; a row for each in [`Work`].
struct Traits {
    /// What its setup is called where two plans differ in it.
    title: &'static str,
    /// Whether an engine inside processes of ours is measured.
    embedded: bool,
    /// Whether a block is one pass of whole steps on each server.
    passes: bool,
    /// Whether nothing ties what two servers did in a block: their passes are a sample each.
    unpaired: bool,
    /// Whether a block has one total of each server in a cell, made of parts with weights of their own.
    totals: bool,
    /// Whether a workload comes in bursts.
    bursts: fn(&str) -> bool,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            title: "",
            embedded: false,
            passes: false,
            unpaired: false,
            totals: false,
            bursts: |_| false,
        }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self::Workloads(WorkloadsSetup::default())
    }
}

impl Work {
    /// Workloads with the scripts of pgbench among them.
    pub fn scripts(pgbench: Option<PgbenchSetup>) -> Self {
        Self::Workloads(WorkloadsSetup { pgbench })
    }

    fn traits(&self) -> Traits {
        match self {
            Self::Workloads(_) => Traits {
                title: "pgbench",
                ..Traits::default()
            },
            Self::Insert(_) => Traits {
                title: "Insert Benchmark",
                passes: true,
                ..Traits::default()
            },
            Self::Rocksdb(_) => Traits {
                title: "RocksDB",
                embedded: true,
                bursts: |workload| {
                    RocksdbStep::from_name(workload).is_some_and(RocksdbStep::beside_a_writer)
                },
                ..Traits::default()
            },
            Self::Replay(_) => Traits {
                title: "replay",
                totals: true,
                ..Traits::default()
            },
            Self::Orders(_) => Traits {
                title: "orders",
                ..Traits::default()
            },
            Self::Procedure(_) => Traits {
                title: "published procedure",
                passes: true,
                unpaired: true,
                ..Traits::default()
            },
        }
    }

    /// The setup as far as the work of one cell depends on it, whatever is measured beside it.
    pub fn of_cell(&self, cell: CellId) -> Cow<'_, Self> {
        match self {
            Self::Replay(setup) => Cow::Owned(Self::Replay(setup.of_cell(cell))),
            other => Cow::Borrowed(other),
        }
    }

    /// Whether a block has one total of each server in a cell, made of parts with weights of their own.
    pub fn gives_totals(&self) -> bool {
        self.traits().totals
    }

    /// Whether the work is done by the targets themselves, in processes that deltabench starts: no server, no
    /// client, no SQL.
    pub fn is_embedded(&self) -> bool {
        self.traits().embedded
    }

    /// Whether a workload comes in bursts that belong to it: beside a writer of an engine a flush, with the
    /// compaction that it brings on, falls into one turn of eight or so.
    pub fn comes_in_bursts(&self, workload: &str) -> bool {
        (self.traits().bursts)(workload)
    }

    /// What the numbers of a cell's clients count: `client`, or `thread` where there are no clients.
    pub fn worker(&self) -> &'static str {
        if self.is_embedded() {
            "thread"
        } else {
            "client"
        }
    }

    /// What is compared: `server`, or `target` where there are no servers.
    pub fn subject(&self) -> &'static str {
        if self.is_embedded() {
            "target"
        } else {
            "server"
        }
    }

    /// What its setup is called where two plans differ in it.
    pub fn title(&self) -> &'static str {
        self.traits().title
    }

    /// Whether it has scripts, of which reports show absolute numbers.
    pub fn has_scripts(&self) -> bool {
        self.pgbench().is_some()
    }

    /// Whether a workload is a mix of its scripts.
    pub fn has_script(&self, workload: &str) -> bool {
        self.pgbench().is_some_and(|setup| setup.has(workload))
    }

    /// The texts of its scripts, and of what fills their tables.
    pub fn texts(&self) -> impl Iterator<Item = &WorkloadSource> {
        let init = self.pgbench().and_then(|setup| setup.tables.init.as_ref());
        self.script_sources().chain(init)
    }

    /// The texts of its scripts.
    pub fn script_sources(&self) -> impl Iterator<Item = &WorkloadSource> {
        let mixes = self.pgbench().into_iter().flat_map(|setup| &setup.mixes);
        let scripts = mixes.flat_map(|mix| &mix.scripts);
        scripts.map(|script| &script.source)
    }

    /// The scale factor of its tables, where they have one.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Self::Orders(setup) => Some(setup.warehouses),
            _ => Some(self.pgbench()?.tables.scale),
        }
    }

    /// Whether a block is one pass of whole steps on each server, one server after another.
    pub fn has_passes(&self) -> bool {
        self.traits().passes
    }

    /// Whether nothing ties what two servers did in a block: they ran one after another, for hours, so no
    /// drift of the machine cancels out, and an interval is that of two samples.
    pub fn is_unpaired(&self) -> bool {
        self.traits().unpaired
    }

    /// What is repeated for an interval: `block`, or `pass`.
    pub fn repeat(&self) -> &'static str {
        if self.has_passes() { "pass" } else { "block" }
    }

    /// The same on tables that are no larger than the work needs: what an operation does hardly depends on
    /// it.
    #[must_use]
    pub fn on_small_tables(mut self) -> Self {
        match &mut self {
            Self::Workloads(WorkloadsSetup {
                pgbench: Some(setup),
            }) => setup.tables.scale = setup.tables.scale.min(1),
            Self::Orders(setup) => setup.resize(1),
            _ => {}
        }
        self
    }

    /// Operations that the tables have for a workload which uses them up; absent: any number.
    pub fn operations_max(&self, workload: &str) -> Option<u64> {
        self.orders()?.operations_max(workload)
    }

    /// Scripts in the language of pgbench, if there are any.
    pub fn pgbench(&self) -> Option<&PgbenchSetup> {
        match self {
            Self::Workloads(setup) => setup.pgbench.as_ref(),
            Self::Orders(setup) => Some(&setup.scripts),
            _ => None,
        }
    }

    /// Order entry, if that is what is done.
    pub fn orders(&self) -> Option<&OrdersSetup> {
        match self {
            Self::Orders(setup) => Some(setup),
            _ => None,
        }
    }

    /// The Insert Benchmark's setup, if that is what is done.
    pub fn insert(&self) -> Option<&InsertSetup> {
        match self {
            Self::Insert(setup) => Some(setup),
            _ => None,
        }
    }

    /// The published procedure's setup, if that is what is done.
    pub fn procedure(&self) -> Option<&ProcedureSetup> {
        match self {
            Self::Procedure(setup) => Some(setup),
            _ => None,
        }
    }

    /// What a replay measures, if that is what is done.
    pub fn replay(&self) -> Option<&ReplaySetup> {
        match self {
            Self::Replay(setup) => Some(setup),
            _ => None,
        }
    }

    /// The chain of RocksDB, if that is what is done.
    pub fn rocksdb(&self) -> Option<&RocksdbSetup> {
        match self {
            Self::Rocksdb(setup) => Some(setup),
            _ => None,
        }
    }
}
