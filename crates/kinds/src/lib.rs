//! What is special about a benchmark? A room for each kind, and their registration.
//!
//! A kind has two halves. [`run_half`] is what `deltabench-run` needs to measure it: which requests and
//! targets it takes, its cells, what it needs of a host, and one block of it. The loop over all blocks,
//! deadlines, losses and resuming are the same for all and not here. [`reader`] is what is needed to read its
//! records: figures, findings, and what must not be judged.
//!
//! A new kind is a folder here, a row of [`Work`] and a line in [`run_half`] and [`show_half`].

pub mod insert;
pub mod orders;
mod passes;
pub mod pgbench;
pub mod procedure;
pub mod replay;
pub mod rocksdb;
mod settling;
pub mod shown;
mod stored;
pub mod targets;
pub mod workloads;

use deltabench_compare::Reader;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_run::benchmark::Benchmark;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_server::Counter;
use deltabench_store::Store;
use deltabench_store::export::ExportTable;
use shown::{Form, JudgedRun, Show, Shown};

/// Forms of a report that only some kind has, in the order of the help.
pub const FORMS: [Form; 3] = [
    pgbench::shown::FORM,
    insert::shown::FORM,
    rocksdb::shown::FORM,
];

/// Tables of an export that only some kind has.
pub const TABLES: [ExportTable; 3] = insert::shown::TABLES;

/// Findings that only some kind has: the word of each, and what it means.
pub const FINDINGS: [(&str, &str); 23] = [
    (
        "tables-inconsistent",
        "Tables do not hold what the workload promises; the run is unfit.",
    ),
    (
        "sustained-background",
        "What checkpoints and autovacuum did in a pass without a break.",
    ),
    (
        "disturbed-passes",
        "Other load disturbed most slices of a pass, and none was left out.",
    ),
    (
        "pgbench-not-frozen",
        "Rows of pgbench's tables are not frozen on a version, as others have them.",
    ),
    (
        "pgbench-contention",
        "There are fewer branches than clients, so transactions may wait for rows.",
    ),
    (
        "orders-derived",
        "The transactions of order entry are derived from TPC-C, and are none of its results.",
    ),
    (
        "orders-contention",
        "More clients than warehouses work on them, so transactions wait for rows.",
    ),
    (
        "disturbed-steps",
        "Other load disturbed whole steps, and none was left out.",
    ),
    (
        "disturbed-tests",
        "Other load disturbed tests of the published procedure, and none was left out.",
    ),
    (
        "unpaired-runs",
        "Each server ran alone, one after another: drift of the machine is in each ratio.",
    ),
    (
        "compression-differs",
        "Libraries of RocksDB have other compression libraries, or lack one.",
    ),
    (
        "options-left-out",
        "A version of RocksDB does not know an option, and ran without it.",
    ),
    (
        "options-differ",
        "Options of RocksDB differ that nobody set.",
    ),
    (
        "options-differ-harmless",
        "The same of options that hardly change results.",
    ),
    (
        "options-only-in-base",
        "Options of RocksDB that the candidate does not know.",
    ),
    (
        "options-only-in-candidate",
        "Options of RocksDB that the base does not know.",
    ),
    (
        "block-cache-not-as-asked",
        "A target of RocksDB has another block cache than was asked for.",
    ),
    (
        "block-cache-differs",
        "Two targets of RocksDB have unlike block caches.",
    ),
    (
        "fits-in-memory",
        "The data fit into memory, so reads do not reach the disk.",
    ),
    (
        "engine-not-closed",
        "A process of RocksDB did not close its database as it should.",
    ),
    (
        "engine-warning",
        "What the library of RocksDB logged as a warning.",
    ),
    (
        "other-work",
        "Reads of the same keys hit and missed other blocks: it is not the same work.",
    ),
    (
        "lsm-shape-differs",
        "Trees of RocksDB that were read differ in shape.",
    ),
];

/// How the records of a kind are read.
pub fn reader(work: &Work) -> &'static dyn Reader {
    run_half(work).reader()
}

/// The half of a kind that speaks of its runs.
pub fn show_half(work: &Work) -> &'static dyn Show {
    match work {
        Work::Workloads(_) => &workloads::Workloads,
        Work::Insert(_) => &insert::Insert,
        Work::Rocksdb(_) => &rocksdb::Rocksdb,
        Work::Replay(_) => &REPLAY,
        Work::Orders(_) => &orders::Orders,
        Work::Procedure(_) => &procedure::Procedure,
    }
}

/// A replay that is only read.
static REPLAY: replay::Replay = replay::Replay::unloaded();

/// What a kind makes of a run's records; nothing of a count, which has none of its kind.
///
/// Errors: the store, or a record in it, cannot be read.
pub fn shown(judged: &JudgedRun<'_>, store: &Store) -> Result<Shown, Problem> {
    match judged.plan.observing.counting {
        None => show_half(&judged.plan.work).shown(judged, store),
        Some(_) => Ok(Shown::default()),
    }
}

/// The half of a kind that measures.
pub fn run_half(work: &Work) -> &'static dyn Benchmark {
    match work {
        Work::Workloads(_) => &workloads::Workloads,
        Work::Insert(_) => &insert::Insert,
        Work::Rocksdb(_) => &rocksdb::Rocksdb,
        Work::Replay(_) => &REPLAY,
        Work::Orders(_) => &orders::Orders,
        Work::Procedure(_) => &procedure::Procedure,
    }
}

/// Refuses a plan whose instructions cannot be counted.
///
/// Errors: the first thing that is in the way, with a way out.
pub fn check_counted(plan: &Plan) -> Result<(), Problem> {
    deltabench_counting::check(plan)?;
    match &plan.work {
        Work::Workloads(_) | Work::Orders(_) | Work::Insert(_) => Ok(()),
        Work::Procedure(_) => Err(procedure::not_counted()),
        Work::Rocksdb(_) => rocksdb::check_counted(plan),
        Work::Replay(_) => Err(replay::not_counted()),
    }
}

/// Refuses to count cells of a run that measured them, where a count does its own steps in its own order.
///
/// Errors: it is such a run, with the command that counts.
pub fn check_counted_after(work: &Work) -> Result<(), Problem> {
    match work {
        Work::Workloads(_) | Work::Orders(_) => Ok(()),
        Work::Insert(_) => Err(insert::measured_steps()),
        Work::Procedure(_) => Err(procedure::not_counted()),
        Work::Rocksdb(_) => Err(rocksdb::measured_steps()),
        Work::Replay(_) => Err(replay::not_counted()),
    }
}

/// Counts the instructions of all cells of a plan, in a session of its own.
///
/// Errors: anything that makes counting impossible; what was counted before stays in the store.
pub fn count(session: &mut Session<'_>, counter: &Counter) -> Result<SessionEnd, Problem> {
    let plan = session.plan;
    match &plan.work {
        Work::Workloads(_) | Work::Orders(_) => deltabench_counting::count(session, counter),
        Work::Insert(setup) => insert::count(setup, session, counter),
        Work::Rocksdb(setup) => rocksdb::count(setup, session, counter),
        Work::Replay(_) => Err(replay::not_counted()),
        Work::Procedure(_) => Err(procedure::not_counted()),
    }
}

#[cfg(test)]
mod fixture;
