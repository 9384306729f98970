//! What was measured, for good: an append-only SQLite file in the lab directory.
//!
//! A run's plan is stored first. Slices are appended while a visit to a cell is under way, inside one open
//! transaction, so that nothing waits for the disk between two slices. The commit at the end of the visit is
//! durable (`synchronous = full`); a process killed at any moment loses the visit in flight and nothing else.
//! Nothing is ever updated or deleted; triggers in the file see to it. The bulk of a finished run may move
//! to a sealed file, and is read there. Deriving numbers from slices is not done here. `docs/store.md`
//! describes the tables. [`export`] writes plain tables for others.

mod annotations;
mod archived;
mod bisections;
mod bulk;
mod content;
mod counts;
mod derived;
mod error;
pub mod export;
mod finished;
mod kept;
mod kill_points;
mod ledger;
mod lock;
mod merge;
mod migrations;
mod observed;
mod occasions;
mod opened;
mod read_only;
mod records;
mod rows;
mod runs;
mod sealed_run;
mod sizes;
mod stamps;
mod store;
mod triage;
mod units;
mod visits;
mod withdrawals;

pub use annotations::{AnchorChange, Annotation, AnnotationKind};
pub use derived::DERIVED_NAME;
pub use error::{FREE_SPACE, StoreError};
pub use finished::FinishedRun;
pub use kept::Kept;
pub use ledger::{LedgerLine, PlaceboResult, RecordedRatio};
pub use lock::{LOCK_NAME, RunLock};
pub use merge::{Merged, Sealed};
pub use opened::SealedRun;
pub use runs::{Found, Reached, RunState, RunSummary, STOPPED};
pub use sizes::{RunSize, Sizes};
pub use stamps::RunStamp;
pub use store::{FILE_NAME, Recorded, Store};
pub use triage::{Triage, TriageState};
pub use units::{Execution, UnitEvent, UnitRow};
