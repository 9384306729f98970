//! The Insert Benchmark on a running server: its steps in order, and what is seen of the server meanwhile.
//!
//! A block is one pass of all steps on each server, one server after another
//! ([`pass_order`](crate::schedule::pass_order)); the session carries that out. Steps depend on each other,
//! so a pass that was cut short is begun again.

pub mod outlook;
mod pass;
pub mod setup;
mod sizes;
mod statistics;
mod watch;

pub(crate) use pass::{Pass, SettleEnd, StepEnd, open_passes, steps};
