//! Against real servers, where `DELTABENCH_TEST_TARGETS` names some.

use super::{Bench, check, role, setup};
use crate::PATIENCE;
use deltabench_driver::Client;
use deltabench_driver::insert::{StepOutcome, StepRunner, StepSpec, TurnFigures, Turns};
use deltabench_model::slice::VoidReason;
use deltabench_model::work::insert::{InsertRole, InsertStep, LARGE_BATCH, Pacing};
use deltabench_testkit::Cluster;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn bench_on(cluster: &Cluster, clients: u32) -> Bench {
    Bench::new(cluster.endpoint(), cluster.login(), setup(clients))
}

/// The last one of the servers, for what does not depend on the version.
fn newest() -> Option<Cluster> {
    Cluster::for_each_target("", &[]).pop()
}

fn client(cluster: &Cluster) -> Client {
    Client::connect(&cluster.endpoint(), &cluster.login(), PATIENCE).unwrap()
}

fn text(client: &mut Client, sql: &str) -> String {
    client.query(sql).unwrap()[0][0].clone().unwrap()
}

fn number(client: &mut Client, sql: &str) -> u64 {
    text(client, sql).parse().unwrap()
}

fn rows(client: &mut Client, table: u32) -> u64 {
    number(client, &format!("SELECT count(*) FROM pi{table}"))
}

/// A step with a rate whose first table nobody can write to for its first seconds.
fn step_behind_lock(bench: &mut Bench, mut admin: Client, seconds: &str) -> StepOutcome {
    let never = AtomicBool::new(false);
    let held = format!("SELECT pg_sleep({seconds}); COMMIT");
    std::thread::scope(|scope| {
        let between = || {
            let lock = "BEGIN; LOCK TABLE pi1 IN SHARE MODE";
            admin.execute(lock).unwrap();
            scope.spawn(move || admin.execute(&held).unwrap());
        };
        bench.step_after(InsertStep::Range(1000), between, &never)
    })
}

/// Everything in a table.
fn content(client: &mut Client, table: u32) -> String {
    let all = "string_agg(t::text, ',' ORDER BY transactionid)";
    text(client, &format!("SELECT md5({all}) FROM pi{table} t"))
}

#[test]
fn all_steps_do_what_they_are_to_and_every_server_has_the_same_rows_in_the_end() {
    let mut contents: Vec<Vec<String>> = Vec::new();
    for (cluster, jobs) in Cluster::for_each_target("", &[])
        .iter()
        .zip([2, 1].into_iter().cycle())
    {
        let mut admin = client(cluster);
        let mut bench = bench_on(cluster, 2);
        // Every second server: they have the same rows for any number of threads.
        bench.jobs = jobs;
        let load = bench.step(InsertStep::LoadRows);
        assert_eq!((load.operations, load.void), (40, None));
        assert_eq!(load.roles.len(), 1);
        assert_eq!([rows(&mut admin, 1), rows(&mut admin, 2)], [2000, 2000]);
        let index = bench.step(InsertStep::Index);
        assert_eq!((index.operations, index.void), (1, None));
        let indexes = "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'pi_'";
        assert_eq!(number(&mut admin, indexes), 8);
        assert_eq!(index.clients.len(), 2);
        for (step, batches, look_ups) in [
            (InsertStep::WriteMany, 2 * 480, 2),
            (InsertStep::WriteFew, 2 * 1200, 4),
        ] {
            let outcome = bench.step(step);
            let (insert, delete) = (
                role(&outcome, InsertRole::Insert),
                role(&outcome, InsertRole::Delete),
            );
            assert_eq!((outcome.operations, &outcome.void), (batches, &None));
            assert_eq!((insert.statements, delete.statements), (batches, batches));
            assert_eq!((insert.rows, outcome.short_deletes), (delete.rows, 0));
            assert_eq!(outcome.look_ups.count, look_ups);
            assert_eq!([rows(&mut admin, 1), rows(&mut admin, 2)], [2100, 2100]);
            assert_eq!(bench.position.rows(), [2100, 2100]);
        }
        for step in [InsertStep::Range(100), InsertStep::Point(100)] {
            let outcome = bench.step(step);
            let query = role(&outcome, InsertRole::Query);
            assert_eq!(outcome.void, None);
            assert_eq!(role(&outcome, InsertRole::Insert).rows, 400);
            assert_eq!(role(&outcome, InsertRole::Delete).rows, 400);
            assert_eq!(outcome.operations, query.statements);
            // Some ask for the end of a domain or for ids in a gap.
            assert!(query.rows <= 10 * query.statements && query.rows > 3 * query.statements);
            assert_eq!(outcome.clients.len(), 2);
        }
        contents.push((1..=2).map(|table| content(&mut admin, table)).collect());
    }
    assert!(
        contents.windows(2).all(|pair| pair[0] == pair[1]),
        "{contents:?}"
    );
    assert!(contents.iter().all(|tables| tables[0] != tables[1]));
}

#[test]
fn deletes_follow_inserts_within_eight_batches() {
    if let Some(cluster) = newest() {
        let mut bench = bench_on(&cluster, 2);
        bench.setup.write_rows = 50_000;
        bench.step(InsertStep::LoadRows);
        let outcome = bench.step(InsertStep::WriteMany);
        let (mut inserted, mut deleted) = (0, 0);
        for second in &outcome.seconds {
            inserted += second.inserted;
            deleted += second.deleted;
            // Of each of two clients.
            let apart = u64::from(LARGE_BATCH) * 8 * 2;
            assert!(
                u64::abs_diff(inserted, deleted) <= apart,
                "{:?}",
                outcome.seconds
            );
        }
        assert_eq!((inserted, deleted), (80_000, 80_000));
    }
}

#[test]
fn of_a_table_in_partitions_later_rows_are_in_the_last_and_all_steps_work() {
    if let Some(cluster) = newest() {
        let mut admin = client(&cluster);
        let mut bench = bench_on(&cluster, 1);
        bench.setup.partitions = 4;
        let mut each = |part: u32| number(&mut admin, &format!("SELECT count(*) FROM pi1_p{part}"));
        bench.step(InsertStep::LoadRows);
        // Keys begin at 1, ranges at 0.
        assert_eq!([0, 1, 2, 3].map(&mut each), [499, 500, 500, 501]);
        for step in [
            InsertStep::Index,
            InsertStep::WriteMany,
            InsertStep::Range(1000),
            InsertStep::Point(1000),
        ] {
            let outcome = bench.step(step);
            assert_eq!(outcome.void, None, "{step:?}");
            assert_eq!(outcome.short_deletes, 0, "{step:?}");
        }
        assert_eq!([0, 1, 2].map(&mut each), [0; 3], "the oldest are gone");
        assert_eq!(each(3), bench.position.rows()[0]);
    }
}

#[test]
fn clients_can_share_a_table() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        let mut bench = bench_on(&cluster, 3);
        bench.setup.shared_table = true;
        bench.setup.write_rows = 10_000;
        bench.step(InsertStep::LoadRows);
        assert_eq!(rows(&mut admin, 1), 6000);
        let index = bench.step(InsertStep::Index);
        assert_eq!((index.operations, index.clients.len()), (1, 1));
        assert_eq!(rows(&mut admin, 1), 6300);
        let mut left = 6300;
        // Deletes of all clients together are counted until the next look-up.
        for (step, wanted, look_ups) in [
            (InsertStep::WriteMany, 24_000, 1),
            (InsertStep::WriteFew, 6000, 2),
        ] {
            let outcome = bench.step(step);
            let inserted = role(&outcome, InsertRole::Insert).rows;
            let deleted = role(&outcome, InsertRole::Delete).rows;
            assert_eq!((inserted, &outcome.void), (wanted, &None));
            assert_eq!(outcome.look_ups.count, look_ups);
            // Sequences leave gaps, in which two clients may look for the same rows.
            assert!(deleted == inserted || outcome.short_deletes > 0);
            assert!(deleted > inserted * 2 / 3, "{deleted} of {inserted}");
            left = left + inserted - deleted;
            assert_eq!(
                (rows(&mut admin, 1), bench.position.rows()),
                (left, &[left][..])
            );
        }
        let outcome = bench.step(InsertStep::Point(100));
        assert!(outcome.void.is_none() && outcome.operations > 0);
    }
}

#[test]
fn a_late_second_is_made_up_or_missed_as_the_pacing_says() {
    if let Some(cluster) = newest() {
        for pacing in [Pacing::Spread, Pacing::Burst] {
            let mut admin = client(&cluster);
            admin.execute("DROP TABLE IF EXISTS pi1").unwrap();
            let mut bench = bench_on(&cluster, 1);
            bench.setup.pacing = pacing;
            bench.setup.rows = 10_000;
            bench.step(InsertStep::LoadRows);
            let outcome = step_behind_lock(&mut bench, admin, "2.5");
            let insert = role(&outcome, InsertRole::Insert);
            assert_eq!((outcome.void.clone(), insert.statements), (None, 40));
            // The first was due at once.
            let lag_ns = insert.schedule_lag_ns.unwrap();
            assert!(lag_ns > 2_000_000_000, "{lag_ns}");
            match pacing {
                Pacing::Spread => assert_eq!(insert.missed, 0),
                Pacing::Burst => assert!(insert.missed >= 25, "{}", insert.missed),
            }
            let slowest_us = outcome
                .seconds
                .iter()
                .map(|second| second.max_insert_us)
                .max();
            assert!(slowest_us > Some(1_000_000), "{slowest_us:?}");
            assert!(insert.max_service_ns > 1_000_000_000);
        }
    }
}

#[test]
fn a_step_that_cannot_keep_its_rate_is_cut_short_and_counts() {
    if let Some(cluster) = newest() {
        let mut bench = bench_on(&cluster, 1);
        bench.setup.query_seconds = 1;
        bench.step(InsertStep::LoadRows);
        let outcome = step_behind_lock(&mut bench, client(&cluster), "5");
        assert!(outcome.cut_short && outcome.void.is_none());
        assert!(outcome.duration_ns > 4_000_000_000);
        let insert = role(&outcome, InsertRole::Insert);
        assert_eq!(
            insert.statements, 8,
            "those that had been issued, and no more"
        );
        assert!(outcome.operations > 0, "queries went on");
    }
}

#[test]
fn a_statement_that_waits_too_long_is_a_stall_and_given_up() {
    if let Some(cluster) = newest() {
        let mut admin = client(&cluster);
        let mut bench = bench_on(&cluster, 1);
        bench.step(InsertStep::LoadRows);
        admin
            .execute("BEGIN; LOCK TABLE pi1 IN SHARE MODE")
            .unwrap();
        bench.op_timeout = Duration::from_millis(500);
        let outcome = bench.step(InsertStep::WriteMany);
        assert_eq!(outcome.void, Some(VoidReason::Stalled));
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO pi1%' \
                       AND state = 'active'";
        // Not in the transaction that holds the lock: it keeps what it saw of others at first.
        let mut watch = client(&cluster);
        let limit = Instant::now() + PATIENCE;
        while number(&mut watch, waiting) > 0 {
            assert!(Instant::now() < limit, "the server was asked to give up");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn indexes_that_cannot_be_made_make_the_step_void() {
    if let Some(cluster) = newest() {
        let mut bench = bench_on(&cluster, 1);
        bench.step(InsertStep::LoadRows);
        client(&cluster)
            .execute("CREATE INDEX pi1_registersegment ON pi1 (price)")
            .unwrap();
        let outcome = bench.step(InsertStep::Index);
        assert_eq!(outcome.void, Some(VoidReason::NothingDone));
        assert_eq!(outcome.operations, 0);
        let detail = outcome.void_detail.unwrap();
        assert!(
            detail.contains("pi1") && detail.contains("42P07"),
            "{detail}"
        );
    }
}

#[test]
fn a_table_that_is_there_already_is_never_touched() {
    if let Some(cluster) = newest() {
        let mut admin = client(&cluster);
        admin
            .execute("CREATE TABLE pi2 AS SELECT 1 AS mine")
            .unwrap();
        let mut bench = bench_on(&cluster, 2);
        let never = AtomicBool::new(false);
        let refused = StepRunner::connect(StepSpec {
            setup: &bench.setup,
            step: InsertStep::LoadRows,
            endpoint: &bench.endpoint,
            login: &bench.login,
            jobs: 1,
            seed: 1,
            op_timeout: PATIENCE,
            interrupted: &never,
            position: &mut bench.position,
        });
        assert_eq!(refused.unwrap_err().sqlstate(), Some("42P07"));
        assert_eq!(rows(&mut admin, 2), 1);
    }
}

#[test]
fn long_transactions_are_held_and_committed_beside_the_rest() {
    if let Some(cluster) = newest() {
        let mut bench = bench_on(&cluster, 1);
        bench.setup.long_transaction_seconds = Some(1);
        bench.setup.query_seconds = 3;
        bench.step(InsertStep::LoadRows);
        let began = Instant::now();
        let outcome = bench.step(InsertStep::Range(100));
        assert_eq!(outcome.void, None);
        // Each takes a second; a busy machine makes the step longer, and there may be more.
        let most = began.elapsed().as_secs();
        let found = outcome.long_transactions;
        assert!((1..=most).contains(&found), "{found} in {most} s");
    }
}

#[test]
fn in_turns_a_step_does_the_same_and_no_time_passes_between_them() {
    let Some(cluster) = newest() else {
        return;
    };
    let mut bench = bench_on(&cluster, 2);
    bench.step(InsertStep::LoadRows);
    bench.step(InsertStep::Index);
    // Longer than a busy machine keeps a batch waiting that is due.
    let pause = Duration::from_secs(1);
    let never = AtomicBool::new(false);
    // 480 batches of each client; 4 batches of each in 2 s.
    for (step, batches, turns, jobs) in [
        (InsertStep::WriteMany, 100, 5, 1),
        (InsertStep::Range(100), 1, 4, 2),
    ] {
        bench.jobs = jobs;
        let mut ends: Vec<TurnFigures> = Vec::new();
        let mut between = |turn: &TurnFigures| {
            ends.push(*turn);
            std::thread::sleep(pause);
            true
        };
        let runner = bench.connect(step, &never);
        let started = Instant::now();
        let turned = Turns {
            batches,
            between: &mut between,
        };
        let outcome = runner.run_and_then(Some(turned), |_| {});
        let took = started.elapsed();
        check(&outcome);
        assert_eq!((&outcome.void, ends.len()), (&None, turns - 1));
        let paused = pause * u32::try_from(turns - 1).unwrap();
        let counted = Duration::from_nanos(outcome.duration_ns);
        assert!(counted + paused <= took, "{counted:?} {paused:?} {took:?}");
        for (nth, end) in (1..).zip(&ends) {
            let [inserted, deleted, _] = end.statements;
            assert_eq!(
                [inserted, deleted],
                [2 * nth * batches; 2],
                "of both clients"
            );
        }
        assert!(
            ends.windows(2)
                .all(|pair| pair[0].ended_ns < pair[1].ended_ns)
        );
        if step.queries() {
            let late = role(&outcome, InsertRole::Insert).schedule_lag_ns.unwrap();
            assert!(u128::from(late) < pause.as_nanos(), "{late} ns");
            assert!(counted > Duration::from_millis(1400), "{counted:?}");
        }
    }
}
