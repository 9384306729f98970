//! Each kind of benchmark: published figures against values worked out by hand, and the verdicts on them.

// Clippy knows test functions, not the helpers that they share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

// The plans and slices of `compare`'s own tests; not every test binary needs all of them.
#[allow(dead_code)]
#[path = "../../../compare/tests/it/builder.rs"]
mod builder;
#[allow(dead_code)]
#[path = "../../../compare/tests/it/calibration_model.rs"]
mod calibration_model;
mod findings;
mod insert;
mod insert_model;
mod insert_servers;
mod insert_turns_model;
// Fleets of real servers, from `DELTABENCH_TEST_TREES`, as in the tests of `deltabench-run`.
#[allow(dead_code)]
#[path = "../../../run/tests/it/lab.rs"]
mod lab;
mod orders_servers;
mod pgbench_servers;
mod ping;
mod replay;
mod replay_mix;
mod rocksdb;
mod sustained;

use deltabench_compare::Records;
use deltabench_compare::comparison::Comparison;
use deltabench_model::plan::Plan;

/// A run, judged as live progress and reports judge it.
fn judged(plan: &Plan, records: &Records<'_>) -> Comparison {
    let reading = deltabench_kinds::reader(&plan.work)
        .read(plan, records)
        .unwrap();
    deltabench_compare::analyse(plan, records.slices, reading)
}
