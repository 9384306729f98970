//! The driver against servers that stall, die and lie, and against real ones.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod builtin;
mod fresh;
mod insert;
mod interleaved;
mod paced;
mod pgbench;
mod programs;
mod puppet;
mod real;
mod slices;
mod start_up;
mod threads;
mod troubles;
mod tuples;

use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::slice::ScriptTally;
use deltabench_testkit::FakeServer;
use deltabench_workload::executable::{Executable, Slot, Statement, Step, TableChoice, Value};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::time::Duration;

/// Far more than anything here takes, so that a slow machine fails no test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Point look-ups on two tables, with a text parameter.
pub fn look_up() -> Executable {
    let sql = |table: u32| format!("SELECT c FROM t{table} WHERE id = $1 AND c <> $2");
    let slots = vec![Slot::BigInt, Slot::Text(11)];
    let values = vec![
        Value::Uniform {
            low: 1,
            high: 1_000_000,
            count: 1,
        },
        Value::Digits {
            groups: 2,
            width: 5,
        },
    ];
    let statements = (1..=2).map(|table| Statement::prepared(sql(table), slots.clone()));
    let step = Step {
        statements: vec![0, 1],
        table: TableChoice::Draw,
        values,
    };
    Executable::single("look-up", statements.collect(), vec![step], 2)
}

/// BEGIN, an update, COMMIT.
pub fn transaction() -> Executable {
    let statement = |sql: &str, slots| Statement::prepared(sql, slots);
    let step = |statement, values| Step {
        statements: vec![statement],
        table: TableChoice::Keep,
        values,
    };
    let key = Value::Uniform {
        low: 1,
        high: 100,
        count: 1,
    };
    let statements = vec![
        statement("BEGIN", vec![]),
        statement("UPDATE t SET k = k + 1 WHERE id = $1", vec![Slot::BigInt]),
        statement("COMMIT", vec![]),
    ];
    let steps = vec![step(0, vec![]), step(1, vec![key]), step(2, vec![])];
    Executable::single("transaction", statements, steps, 1)
}

/// A lane over fake servers.
pub fn lane(
    servers: &[&FakeServer],
    executable: &Executable,
    clients: u32,
    op_timeout: Duration,
) -> Lane {
    let servers: Vec<_> = servers.iter().map(|server| server.address()).collect();
    Lane::connect(&LaneSpec {
        servers: &servers,
        executable,
        clients,
        jobs: 1,
        cores: &[],
        op_timeout,
        rate: None,
    })
    .unwrap()
}

/// One slice on the only server, with what must hold for every slice checked.
pub fn slice(lane: &mut Lane, operations: u64, seed: u64) -> SliceOutcome {
    slice_on(lane, 0, operations, seed)
}

/// The same on one of several servers.
pub fn slice_on(lane: &mut Lane, server: usize, operations: u64, seed: u64) -> SliceOutcome {
    let request = SliceRequest {
        operations,
        seed,
        first_operation: 0,
    };
    let outcome = lane.run_slice(server, request);
    assert_eq!(
        decoded(&outcome).len(),
        outcome.operations,
        "the histogram holds the operations that succeeded"
    );
    let of_scripts =
        |count: fn(&ScriptTally) -> u64| outcome.scripts.iter().map(count).sum::<u64>();
    let skipped = of_scripts(|tally| tally.skipped);
    if !outcome.scripts.is_empty() {
        assert_eq!(of_scripts(|tally| tally.operations), outcome.operations);
        let failures = of_scripts(|tally| {
            tally.serialization_failures + tally.deadlock_failures + tally.other_failures
        });
        assert_eq!(failures, outcome.failed, "{outcome:?}");
    }
    let done = outcome.operations + outcome.failed + skipped;
    assert!(done <= operations, "no more than asked for");
    if outcome.void.is_none() {
        assert_eq!(
            done, operations,
            "operations and failed add up to what was asked for"
        );
        assert_eq!(outcome.void_detail, None);
    } else {
        assert!(outcome.void_detail.is_some() || outcome.operations == 0);
    }
    let errors: u64 = outcome.errors.iter().map(|error| error.count).sum();
    assert!(
        outcome.void.is_some() || errors == outcome.failed,
        "every failure has its SQLSTATE"
    );
    assert!(decoded(&outcome).max() <= outcome.duration_ns + outcome.duration_ns / 100);
    outcome
}

/// The histogram as a reader of the record gets it.
pub fn decoded(outcome: &SliceOutcome) -> Histogram<u64> {
    Deserializer::new()
        .deserialize(&mut outcome.latency_histogram.as_slice())
        .unwrap()
}
