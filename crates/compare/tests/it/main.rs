//! The whole way from slices to verdicts, on slices that are made up and on servers that are real.

// Clippy knows test functions, not the helpers that they share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod builder;
mod calibration;
mod calibration_model;
mod confirm;
mod costs;
mod costs_model;
mod curves;
mod disturbances;
mod fairness;
mod host_speed;
mod insert;
mod insert_model;
mod many;
mod pgbench;
mod pipeline;
mod rocksdb;
mod rounds;
mod segments;
mod stopping;
mod study;
mod study_calibration;
mod study_model;
mod trust;
mod verdicts;
