//! The binary as its user has it: real servers, kills, interrupts, refusals.

mod lab;
mod refusals;
mod runs;
mod survival;
