//! The binary as its user has it: real servers, kills, interrupts, refusals.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod crosscheck;
mod lab;
mod refusals;
mod runs;
mod survival;
