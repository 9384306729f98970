//! The tables of RocksDB, in every form: targets by step, one block cache against the other, what a step did,
//! and the report that `db_bench`'s scripts write.

pub mod format;
mod json;
mod markdown;
mod terminal;
mod tsv;
pub(crate) mod words;

pub(crate) use json::rocksdb as json_of;
pub(crate) use markdown::sections;
pub(crate) use terminal::lines;
pub use tsv::{check_rocksdb, rocksdb_tsv};
