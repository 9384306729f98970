//! What do we prove about ourselves?
//!
//! - [`crosscheck`]: the built-in driver sends what sysbench's packaged scripts and pgbench send, as often
//!   and as fast.
//! - [`selfbench`]: its client costs less CPU than theirs, and the one-second series costs next to nothing.
//! - [`calibrate`]: runs whose truth is known are judged as they should be.
//! - [`practice`]: one server after the other, as is usual, calls equal servers different more often.
//!
//! Servers are those of a run ([`deltabench_run::fleet`]), one at a time. What was found is plain data with
//! the shape of its JSON; printing it is for the caller. What decides stands in
//! [`deltabench_compare::thresholds`].

pub mod calibrate;
pub mod crosscheck;
pub mod practice;
mod ratio;
pub mod selfbench;
mod server;

pub use ratio::MeanRatio;
