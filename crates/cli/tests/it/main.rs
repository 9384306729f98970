//! The binary as its user has it: real servers, kills, interrupts, refusals.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod costs;
mod crosscheck;
mod lab;
mod records;
mod refusals;
mod runs;
mod survival;
