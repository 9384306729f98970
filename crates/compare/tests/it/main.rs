//! The whole way from slices to verdicts, on slices that are made up and on servers that are real.

// Clippy knows test functions, not the helpers that they share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod absolute;
mod builder;
mod calibration;
mod calibration_model;
mod clear;
mod confirm;
mod confirmed_cells;
mod costs;
mod costs_model;
mod counts;
mod curves;
mod disturbances;
mod early;
mod fairness;
mod gates;
mod host_speed;
mod hours;
mod hours_groups;
mod ledger;
mod many;
mod other_speeds;
mod pipeline;
mod probes;
mod rebased;
mod rounds;
mod second_control;
mod segments;
mod settling;
mod slow_hours;
mod stalls;
mod stopping;
mod study;
mod study_calibration;
mod study_model;
mod study_parts;
mod study_sessions;
#[cfg(test)]
mod study_times;
mod tails;
mod trust;
mod turns;
mod verdicts;
mod witness;
