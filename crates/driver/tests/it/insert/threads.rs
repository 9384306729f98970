//! Several threads in a step: the same statements, counted once, ended together.

use super::{Bench, bench_on, check, fake, role};
use crate::PATIENCE;
use deltabench_driver::insert::{TurnFigures, Turns};
use deltabench_model::slice::VoidReason;
use deltabench_model::work::insert::{InsertRole, InsertStep};
use deltabench_testkit::{FakeServer, Trouble};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a server was sent of tables, in no order, and what was inserted into each.
fn sent(clients: u32, jobs: u32, write_rows: u64) -> (Vec<String>, Vec<u64>) {
    let server = fake(vec![]);
    let mut bench = bench_on(&server, clients);
    bench.jobs = jobs;
    bench.setup.rows = 1000;
    bench.setup.write_rows = write_rows;
    for step in [InsertStep::LoadRows, InsertStep::WriteFew] {
        let outcome = bench.step(step);
        assert_eq!((&outcome.void, outcome.interrupted), (&None, false));
        assert_eq!(outcome.clients.len(), usize::try_from(clients).unwrap());
        let batches = u64::from(clients) * bench.setup.rows_of(step) / u64::from(step.batch());
        assert_eq!(outcome.operations, batches);
    }
    let mut queries = server.record().queries;
    queries.sort();
    (queries, bench.position.rows().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn any_number_of_threads_sends_the_same_statements(
        clients in 1_u32..7,
        jobs in 2_u32..9,
        write_rows in 1_u64..5,
    ) {
        let one = sent(clients, 1, 500 * write_rows);
        let many = sent(clients, jobs, 500 * write_rows);
        prop_assert!(one.0.iter().any(|sql| sql.starts_with("DELETE FROM pi1 ")));
        prop_assert_eq!(one, many);
    }
}

/// A bench with a rate on a server with five clients and three threads.
fn five_by_three(server: &FakeServer) -> Bench {
    let mut bench = bench_on(server, 5);
    bench.jobs = 3;
    bench
}

#[test]
fn threads_keep_the_rate_and_each_client_has_what_it_did_in_its_place() {
    let server = fake(vec![]);
    let mut bench = five_by_three(&server);
    bench.setup.query_seconds = 1;
    let outcome = bench.step(InsertStep::Range(500));
    // One second of ten batches for each of five clients.
    assert_eq!(role(&outcome, InsertRole::Insert).statements, 50);
    assert_eq!(role(&outcome, InsertRole::Delete).statements, 50);
    assert!((900_000_000..4_000_000_000).contains(&outcome.duration_ns));
    assert_eq!((outcome.clients.len(), outcome.look_ups.count), (5, 5));
    let queries = role(&outcome, InsertRole::Query).statements;
    assert_eq!(outcome.operations, queries);
    let seconds = f64::from(u32::try_from(outcome.duration_ns / 1_000_000).unwrap()) / 1e3;
    let each: f64 = outcome.clients.iter().sum();
    let all = f64::from(u32::try_from(queries).unwrap()) / seconds;
    assert!((each / all - 1.0).abs() < 0.1, "{each} and {all}");
    let used = Duration::from_nanos(outcome.client_cpu_ns);
    assert!(used > Duration::ZERO && used < 3 * Duration::from_nanos(outcome.duration_ns));
}

#[test]
fn threads_rest_together_at_the_end_of_a_turn() {
    let server = fake(vec![]);
    let mut bench = five_by_three(&server);
    bench.setup.write_rows = 3000;
    let never = AtomicBool::new(false);
    let resting = AtomicBool::new(false);
    let mut ends: Vec<TurnFigures> = Vec::new();
    let mut between = |turn: &TurnFigures| {
        ends.push(*turn);
        resting.store(true, Ordering::Relaxed);
        let before = server.record().queries.len();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            server.record().queries.len(),
            before,
            "nothing is sent meanwhile"
        );
        true
    };
    let started = Instant::now();
    // 48 batches of each client.
    let turns = Turns {
        batches: 10,
        between: &mut between,
    };
    let runner = bench.connect(InsertStep::WriteMany, &never);
    let outcome = runner.run_and_then(Some(turns), |_| {});
    check(&outcome);
    assert_eq!((&outcome.void, ends.len()), (&None, 4));
    let took = Duration::from_nanos(outcome.duration_ns);
    assert!(
        took + Duration::from_millis(80) <= started.elapsed(),
        "{took:?}"
    );
    for (nth, pair) in (1..).zip(ends.windows(2)) {
        let [inserted, deleted, _] = pair[0].statements;
        assert_eq!([inserted, deleted], [5 * nth * 10; 2], "of all clients");
        assert!(pair[0].ended_ns < pair[1].ended_ns);
        assert!(pair[0].client_cpu_ns < pair[1].client_cpu_ns);
    }
    assert_eq!(outcome.operations, 5 * 48);
}

#[test]
fn no_turn_after_the_last_one_that_may_begin() {
    let server = fake(vec![]);
    let mut bench = five_by_three(&server);
    let never = AtomicBool::new(false);
    let mut between = |_: &TurnFigures| false;
    let turns = Turns {
        batches: 10,
        between: &mut between,
    };
    let runner = bench.connect(InsertStep::WriteMany, &never);
    let outcome = runner.run_and_then(Some(turns), |_| {});
    assert!(outcome.interrupted && outcome.void.is_none());
    assert_eq!(role(&outcome, InsertRole::Insert).statements, 50);
}

#[test]
fn what_ends_one_thread_ends_all_soon() {
    let server = fake(vec![Trouble::Die { at: 30 }]);
    let mut bench = five_by_three(&server);
    bench.setup.query_seconds = 1800;
    let started = Instant::now();
    let outcome = bench.step(InsertStep::Range(100));
    assert_eq!(outcome.void, Some(VoidReason::ServerLost));
    assert!(
        outcome
            .void_detail
            .unwrap()
            .contains("closed the connection")
    );
    assert!(started.elapsed() < PATIENCE);
    assert!(server.all_closed());
}

#[test]
fn an_interruption_ends_all_threads() {
    let server = fake(vec![Trouble::Stall { from: 1 }]);
    let mut bench = five_by_three(&server);
    bench.setup.query_seconds = 1800;
    let interrupted = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.executions() == 0 {
                std::thread::yield_now();
            }
            interrupted.store(true, Ordering::Relaxed);
        });
        bench.step_after(InsertStep::Range(100), || {}, &interrupted)
    });
    assert!(outcome.interrupted && outcome.void.is_none());
    assert!(server.all_closed());
}
