//! Development only: a server that behaves as badly as a test wants, and small real ones.
//!
//! Not used by the product. Code here may panic: it runs inside tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions
)]

pub mod cluster;
pub mod fake;
pub mod installations;
pub mod kinds;
pub mod labs;
pub mod ledger;
pub mod small_run;
pub mod untested;
pub mod year;

pub use cluster::Cluster;
pub use fake::{Authentication, Behaviour, FakeServer, Record, Trouble};
pub use installations::{installations, whole_installation};
pub use kinds::{small_insert, small_replay};
pub use ledger::ledger_lines;
pub use untested::not_tested;
