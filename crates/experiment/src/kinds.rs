//! Tables of an experiment file that belong to one kind of benchmark.
//!
//! A new one is a file here, a field of [`Kinds`] and its rows in `TABLES`, and in `SIZES` or `SCALED`.

mod insert;
mod orders;
mod pgbench;
mod rocksdb;

use deltabench_document::Section;
use deltabench_model::problem::Problem;
use deltabench_model::work::{self, rocksdb::BLOCK_CACHE};
pub use insert::Insert;
pub(crate) use insert::is_in_turns;
pub use orders::Orders;
pub(crate) use pgbench::{DEFAULT_SCALE, scales};
pub use pgbench::{Pgbench, ScaleFactor, ScriptMix, ScriptName};
pub use rocksdb::Rocksdb;
pub(crate) use rocksdb::{check_targets, of_servers};
use std::ops::RangeInclusive;

/// The tables with their keys.
pub(crate) const TABLES: [(&str, &[&str]); 5] = [
    ("pgbench", &pgbench::KEYS),
    ("pgbench.scripts", &pgbench::MIX_KEYS),
    ("insert", &insert::KEYS),
    ("orders", &orders::KEYS),
    ("rocksdb", &rocksdb::KEYS),
];

/// A factor of the tables' size that may be a share of the memory: an axis of parts.
pub(crate) struct Scaled {
    pub(crate) table: &'static str,
    /// The key, which is the axis too.
    pub(crate) key: &'static str,
    /// Numbers that may be written.
    pub(crate) range: RangeInclusive<i64>,
    /// What holds where nothing is written.
    pub(crate) default: ScaleFactor,
}

/// The tables with such a factor; the first stands for files that have none of them.
pub(crate) const SCALED: [Scaled; 2] = [
    Scaled {
        table: "pgbench",
        key: "scale",
        range: pgbench::SCALE,
        default: DEFAULT_SCALE,
    },
    Scaled {
        table: "orders",
        key: "warehouses",
        range: orders::WAREHOUSES,
        default: orders::DEFAULT_WAREHOUSES,
    },
];

/// How large the data are: an axis of parts.
pub(crate) struct Size {
    pub(crate) table: &'static str,
    /// The key, which is the axis too.
    pub(crate) key: &'static str,
    /// What may be written.
    pub(crate) range: RangeInclusive<i64>,
    /// What holds where nothing is written.
    pub(crate) default: u64,
}

/// The sizes of benchmarks that stand in place of workloads.
pub(crate) const SIZES: [Size; 2] = [
    Size {
        table: "insert",
        key: "rows",
        range: insert::ROWS,
        default: work::insert::ROWS,
    },
    Size {
        table: "rocksdb",
        key: "keys",
        range: rocksdb::KEY_COUNT,
        default: work::rocksdb::KEYS,
    },
];

/// What a file says of the kinds that have a table of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Kinds {
    /// pgbench's tables and scripts, measured beside `workloads`.
    pub pgbench: Option<Pgbench>,
    /// The Insert Benchmark, instead of workloads.
    pub insert: Option<Insert>,
    /// RocksDB, instead of workloads.
    pub rocksdb: Option<Rocksdb>,
    /// Order entry, instead of workloads but at their clients.
    pub orders: Option<Orders>,
}

impl Kinds {
    /// Reads all of the tables.
    ///
    /// Errors: whatever is wrong with them, and what has no meaning beside them.
    pub(crate) fn read(root: &Section<'_>) -> Result<Self, Problem> {
        let rocksdb = rocksdb::rocksdb(root)?;
        let insert = insert::insert(root)?;
        let orders = orders::orders(root)?;
        let pgbench = pgbench::pgbench(root)?;
        Ok(Self {
            pgbench,
            insert,
            rocksdb,
            orders,
        })
    }

    /// Whether something is measured beside workloads, which need not be there then.
    pub(crate) fn beside(&self) -> bool {
        self.pgbench.is_some() || self.orders.is_some()
    }

    /// Clients, or threads, of what is measured in place of workloads; absent: workloads are.
    pub(crate) fn instead(&self) -> Option<Vec<u32>> {
        let insert = self.insert.as_ref().map(|insert| vec![insert.clients]);
        insert.or_else(|| Some(self.rocksdb.as_ref()?.threads.clone()))
    }

    /// Refuses sizes of sysbench's tables that nothing uses.
    ///
    /// Errors: `[data]` beside scripts alone.
    pub(crate) fn check_data(&self, root: &Section<'_>, workloads: bool) -> Result<(), Problem> {
        match root.value("data") {
            Some((_, at)) if self.beside() && !workloads => {
                let what = "[data] has the sizes of sysbench's tables, and no workload uses them";
                Err(root
                    .problem_at(at, what)
                    .hint("the size of pgbench's tables is `scale` of [pgbench]"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a file measures an embedded engine: its targets are no servers.
pub(crate) fn is_embedded(root: &Section<'_>) -> bool {
    root.value("rocksdb").is_some()
}

/// What tells a server apart that has such a value on an axis.
pub(crate) fn mark(axis: &str, value: &str) -> String {
    match axis {
        // Its words say what they are.
        BLOCK_CACHE => value.to_owned(),
        _ => format!("{axis}={value}"),
    }
}
