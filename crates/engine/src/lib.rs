//! An embedded engine at work: its library, the process that works it, its steps.
//!
//! A library is never loaded into deltabench itself. Each target has a worker: a process of our own binary
//! that loads the library, opens a database and does on order what a step asks for, in turns. Between its
//! turns a worker is frozen, with its flushes and compactions: what it owes is worked off in its own time and
//! never in another target's. A library that crashes takes its worker with it and nothing else.
//!
//! A `db_bench` of the user's is driven by its command line instead: a turn is a whole step of it.

mod db_bench;
mod engine;
mod keys;
mod library;
mod options;
mod process;
mod protocol;
mod spec;
pub mod stats_text;
#[cfg(test)]
mod testing;
mod work;

pub use engine::Engine;
pub use protocol::{Answer, OpenOrder, Opened, Order, StepOrder, TurnOrder, Turned};
pub use spec::{EngineError, EngineSpec, Prepared, counts_dir};
pub use work::{FINISH_CPU_NS, WorkerError, work};
