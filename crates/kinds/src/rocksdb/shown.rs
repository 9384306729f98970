//! RocksDB in a report: targets by step, one block cache against the other, what a step did, and the report
//! that `db_bench`'s scripts write.

mod figures;
mod json;
mod tables;
mod tsv;
mod words;

pub use figures::figures;
pub use tsv::check_rocksdb;
