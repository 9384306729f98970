//! The Insert Benchmark's steps, on servers that misbehave and on real ones.

mod real;
mod threads;

use crate::PATIENCE;
use deltabench_driver::insert::{InsertPosition, StepOutcome, StepRunner, StepSpec, connections};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::slice::VoidReason;
use deltabench_model::work::insert::{InsertRole, InsertSetup, InsertStep, Pacing, RoleTally};
use deltabench_testkit::{Behaviour, FakeServer, Trouble, small_insert};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A small benchmark.
fn setup(clients: u32) -> InsertSetup {
    InsertSetup {
        clients,
        rows: 2000,
        write_rows: 30_000,
        query_seconds: 2,
        ..small_insert()
    }
}

/// A server and where the benchmark stands on it.
struct Bench {
    endpoint: Endpoint,
    login: Login,
    setup: InsertSetup,
    position: InsertPosition,
    op_timeout: Duration,
    jobs: u32,
}

impl Bench {
    fn new(endpoint: Endpoint, login: Login, setup: InsertSetup) -> Self {
        Self {
            endpoint,
            login,
            setup,
            position: InsertPosition::default(),
            op_timeout: PATIENCE,
            jobs: 1,
        }
    }

    fn connect<'a>(&'a mut self, step: InsertStep, interrupted: &'a AtomicBool) -> StepRunner<'a> {
        StepRunner::connect(StepSpec {
            setup: &self.setup,
            step,
            endpoint: &self.endpoint,
            login: &self.login,
            jobs: self.jobs,
            seed: 42,
            op_timeout: self.op_timeout,
            interrupted,
            position: &mut self.position,
        })
        .unwrap()
    }

    /// One step, with what must hold for every step checked.
    fn step(&mut self, step: InsertStep) -> StepOutcome {
        self.step_after(step, || {}, &AtomicBool::new(false))
    }

    /// The same; something happens between connecting and running.
    fn step_after(
        &mut self,
        step: InsertStep,
        between: impl FnOnce(),
        interrupted: &AtomicBool,
    ) -> StepOutcome {
        let wanted = connections(&self.setup, step);
        let runner = self.connect(step, interrupted);
        let opened = u32::try_from(runner.backend_pids().len()).unwrap();
        assert_eq!(opened, wanted);
        between();
        let outcome = runner.run();
        check(&outcome);
        outcome
    }
}

/// What must hold for every outcome.
fn check(outcome: &StepOutcome) {
    for tally in &outcome.roles {
        let histogram = decoded(tally);
        assert_eq!(histogram.len(), tally.statements, "{:?}", tally.role);
        let errors: u64 = tally.errors.iter().map(|error| error.count).sum();
        assert_eq!(errors, tally.failed, "every failure has its SQLSTATE");
    }
    let of = |role| outcome.roles.iter().find(|tally| tally.role == role);
    let seconds = outcome.seconds.iter();
    let inserted: u64 = seconds.clone().map(|second| second.inserted).sum();
    let deleted: u64 = seconds.clone().map(|second| second.deleted).sum();
    let queries: u64 = seconds.map(|second| second.queries).sum();
    assert_eq!(inserted, of(InsertRole::Insert).unwrap().rows);
    assert_eq!(
        deleted,
        of(InsertRole::Delete).map_or(0, |tally| tally.rows)
    );
    let statements = of(InsertRole::Query).map_or(0, |tally| tally.statements);
    assert_eq!(queries, statements);
    assert!(outcome.void.is_some() == outcome.void_detail.is_some());
    let whole = u64::try_from(outcome.seconds.len()).unwrap();
    assert!(whole >= outcome.duration_ns.div_ceil(1_000_000_000));
}

fn decoded(tally: &RoleTally) -> Histogram<u64> {
    Deserializer::new()
        .deserialize(&mut tally.latency_histogram.as_slice())
        .unwrap()
}

fn role(outcome: &StepOutcome, role: InsertRole) -> &RoleTally {
    let mut roles = outcome.roles.iter();
    roles.find(|tally| tally.role == role).unwrap()
}

fn fake(troubles: Vec<Trouble>) -> FakeServer {
    FakeServer::start(Behaviour {
        rows: 10,
        row_bytes: 4,
        troubles,
        ..Behaviour::default()
    })
}

fn bench_on(server: &FakeServer, clients: u32) -> Bench {
    let (endpoint, login) = server.address();
    Bench::new(endpoint, login, setup(clients))
}

#[test]
fn a_query_without_an_answer_makes_the_step_void_and_is_cancelled() {
    let server = fake(vec![Trouble::Stall { from: 50 }]);
    let mut bench = bench_on(&server, 2);
    bench.op_timeout = Duration::from_millis(200);
    let outcome = bench.step(InsertStep::Range(1));
    assert_eq!(outcome.void, Some(VoidReason::Stalled));
    let detail = outcome.void_detail.clone().unwrap();
    assert!(detail.contains("role query"), "{detail}");
    assert_eq!(role(&outcome, InsertRole::Query).statements, 49);
    assert!(server.was_cancelled(2));
    assert!(server.all_closed());
}

#[test]
fn a_lost_connection_makes_the_step_void_with_its_reason() {
    for (trouble, reason) in [
        (Trouble::Die { at: 30 }, "closed the connection"),
        (Trouble::Terminate { at: 30 }, "administrator"),
        (
            Trouble::Lie {
                at: 30,
                bytes: b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            },
            "invalid answer",
        ),
    ] {
        let server = fake(vec![trouble]);
        let outcome = bench_on(&server, 1).step(InsertStep::Point(1000));
        assert_eq!(outcome.void, Some(VoidReason::ServerLost));
        let detail = outcome.void_detail.unwrap();
        assert!(detail.contains(reason), "{detail}");
        assert_eq!(outcome.operations, 29);
    }
}

#[test]
fn what_may_succeed_another_time_is_sent_again_and_other_failures_are_counted() {
    let fail = |every, sqlstate| Trouble::Fail { every, sqlstate };
    let server = fake(vec![fail(10, "40001"), fail(25, "42P01")]);
    let mut bench = bench_on(&server, 1);
    bench.setup.query_seconds = 1;
    let outcome = bench.step(InsertStep::Range(1000));
    assert_eq!(outcome.void, None);
    let query = role(&outcome, InsertRole::Query);
    assert!(query.retries > 0 && query.failed > 0 && query.statements > 0);
    assert_eq!(
        query.statements + query.failed + query.retries,
        server.executions()
    );
    assert_eq!(query.errors.len(), 1, "{:?}", query.errors);
    assert_eq!(query.errors[0].sqlstate, "42P01");
}

#[test]
fn a_server_that_fails_everything_ends_the_step() {
    let server = fake(vec![Trouble::Fail {
        every: 1,
        sqlstate: "42501",
    }]);
    let mut bench = bench_on(&server, 1);
    bench.setup.query_seconds = 1800;
    let outcome = bench.step(InsertStep::Range(1000));
    assert_eq!(outcome.void, Some(VoidReason::NothingDone));
    assert_eq!(outcome.operations, 0);
    assert_eq!(role(&outcome, InsertRole::Query).failed, 100);
    assert!(outcome.void_detail.unwrap().contains("42501"));
}

#[test]
fn an_interrupted_step_ends_at_once_and_says_so() {
    let server = fake(vec![Trouble::Stall { from: 1 }]);
    let mut bench = bench_on(&server, 2);
    bench.setup.query_seconds = 1800;
    let interrupted = AtomicBool::new(false);
    let started = Instant::now();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.executions() == 0 {
                std::thread::yield_now();
            }
            interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        bench.step_after(InsertStep::Range(100), || {}, &interrupted)
    });
    assert!(outcome.interrupted && outcome.void.is_none());
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_server_with_room_gets_the_rate_in_either_pacing() {
    for pacing in [Pacing::Spread, Pacing::Burst] {
        let server = fake(vec![]);
        let mut bench = bench_on(&server, 3);
        bench.setup.pacing = pacing;
        let outcome = bench.step(InsertStep::Range(200));
        let insert = role(&outcome, InsertRole::Insert);
        let delete = role(&outcome, InsertRole::Delete);
        // Two seconds of four batches for each of three clients.
        assert_eq!((insert.statements, delete.statements), (24, 24));
        assert!(!outcome.cut_short);
        assert!(
            outcome.duration_ns >= 1_900_000_000,
            "{}",
            outcome.duration_ns
        );
        assert_eq!(outcome.clients.len(), 3);
        assert!(insert.schedule_lag_ns.is_some() && delete.schedule_lag_ns.is_some());
        assert_eq!(role(&outcome, InsertRole::Query).schedule_lag_ns, None);
        assert_eq!(
            outcome.look_ups.count, 3,
            "the oldest key of each table, once"
        );
    }
}

#[test]
fn the_newest_key_is_looked_up_after_every_hundred_queries_on_a_connection_that_stays() {
    let server = fake(vec![]);
    let mut bench = bench_on(&server, 1);
    bench.setup.query_seconds = 1;
    let outcome = bench.step(InsertStep::Point(1000));
    let queries = role(&outcome, InsertRole::Query).statements;
    // One before the step, and none after the last query unless it was due.
    let looked_up = 1 + queries.saturating_sub(1) / 100;
    let asked = server.record().queries;
    let newest = asked.iter().filter(|sql| sql.contains("max(")).count();
    assert!(queries > 100);
    let newest = u64::try_from(newest).unwrap();
    assert!(
        (looked_up..=looked_up + 1).contains(&newest),
        "{newest} for {queries}"
    );
    assert_eq!(outcome.look_ups.count, newest + 1);
    assert_eq!(server.record().start_ups.len(), 4);
}
