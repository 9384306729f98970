//! The binary as its user has it: real servers, kills, interrupts, refusals.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod action;
mod agent;
mod bisecting;
mod bisecting_by_time;
mod bisecting_commits;
mod capturing;
mod checks;
mod costs;
mod counting;
mod crosscheck;
mod experiment_benchmarks;
mod experiments;
mod fleet;
mod fleet_slurm;
mod insert;
mod lab;
mod labs;
mod orders;
mod pgbench;
mod records;
mod refusals;
mod replaying;
mod replaying_as_is;
mod replaying_directory;
mod replaying_made_up;
mod replaying_times;
mod replaying_writes;
mod rocksdb;
mod runs;
mod sampling;
mod schema;
mod survival;
