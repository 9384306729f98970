//! What the Insert Benchmark says: the tables of published studies, and the verdicts that they lack.
//!
//! A pass of all steps on a server gives one figure for each step; passes are the sample. They are judged as
//! any comparison is, and [`InsertReader`] withholds the verdict where a server missed its service level: who
//! inserts less than was asked has had less to do. [`insert_report`] puts the published figures beside that.
//! Void steps are in no figure.

mod baton;
mod benchmark;
mod blocks;
mod colour;
mod counted;
mod figures;
mod metrics;
mod notes;
pub mod outlook;
pub(crate) mod pass;
mod progress;
mod quartile;
mod reading;
mod record;
mod report;
mod response;
mod service;
pub mod setup;
pub mod shown;
mod sizes;
mod statistics;
mod stretched;
mod turns;
pub(crate) mod watch;

pub use benchmark::Insert;
pub use counted::{count, measured_steps};
pub use figures::insert_report;
pub use metrics::{INSERT_METRICS, is_published};
pub use quartile::{Quartile, ShareColour};
pub use reading::InsertReader;
pub use record::{StepRecord, StepTurn, steps};
pub use report::{
    InsertReport, PassFigures, RelativeStep, ServerFigures, Settled, Spread, StepColumn,
    StepFigures,
};
pub use response::{BUCKETS, PERCENTILES, ResponseTimes};
pub use service::Service;

/// Steps that a finding or a note names before it counts the rest.
const NAMED: usize = 6;
