//! RocksDB: a database for each target in each block, and a chain of steps that all of them go through in
//! turns.
//!
//! A block begins with a new process and an empty database for each target. A link of the chain that is not
//! measured is carried out on one after another. A measured one is a visit to its cell: all targets begin the
//! step, then rounds follow in which each of them does the same operations, in an order that is drawn for
//! each round; a step that writes has one round, with all of its work. While one works, all others are
//! frozen: what a database owes to its compactions is worked off in its own time. At the end of the block all
//! databases are removed.

mod chain;
mod check;
mod host;
mod outlook;
mod workers;

pub(crate) use chain::{StepVisit, step_order};
pub(crate) use check::{check_request, check_server, check_wishes};
pub use check::{check_targets, in_memory};
pub use outlook::{RocksdbOutlook, outlook};
pub(crate) use workers::{Shop, Stop, Workers, cache_of};
