//! The binary as its user has it: real servers, kills, interrupts, refusals.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod agent;
mod costs;
mod crosscheck;
mod experiments;
mod lab;
mod records;
mod refusals;
mod runs;
mod survival;
