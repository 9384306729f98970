//! What is special about each kind of benchmark: how its records are read, and its figures.
//!
//! Every kind is one folder here and one row of [`reader`]. Nothing below knows one.

pub mod insert;
pub mod pgbench;
pub mod rocksdb;
pub mod workloads;

use deltabench_compare::Reader;
use deltabench_model::work::Work;

/// How the records of a kind are read.
#[must_use]
pub fn reader(work: &Work) -> &'static dyn Reader {
    match work {
        Work::Workloads(_) => &workloads::WorkloadsReader,
        Work::Insert(_) => &insert::InsertReader,
        Work::Rocksdb(_) => &rocksdb::RocksdbReader,
    }
}
