//! Carry out a plan: blocks, rounds, restarts, resume.
//!
//! The only crate that composes acquire, server, workload, driver, observe and store. A run is: clusters made
//! and loaded, then restart blocks; in a block every cell is visited once, in random order, for a few seconds
//! of slices that alternate between the servers. All orders come from the plan's seed ([`schedule`]); every
//! visit is durable when it ends, so a killed run goes on where it was.

pub mod admin;
pub mod aging;
mod build;
pub mod clock;
pub mod estimate;
pub mod events;
pub mod executables;
pub mod facts;
pub mod fleet;
pub mod host;
pub mod limits;
pub mod load;
pub mod occupancy;
pub mod pilot;
pub mod planning;
pub mod readback;
pub mod remote;
pub mod request;
pub mod schedule;
pub mod session;
pub mod site;
pub mod visit;

pub use session::benchmark;
