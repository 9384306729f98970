//! pgbench scripts on real servers, where `DELTABENCH_TEST_TREES` or `DELTABENCH_TEST_TARGETS` names some.

use crate::programs::{executable, setup};
use crate::{PATIENCE, slice};
use deltabench_driver::{Client, Lane, LaneSpec, SliceOutcome};
use deltabench_model::work::pgbench::{PgbenchSetup, QueryMode};
use deltabench_testkit::Cluster;
use deltabench_workload::executable::Executable;
use deltabench_workload::pgbench::builtin;

/// One for each tree, the oldest version among them, or for each target.
pub fn clusters(settings: &[&str]) -> Vec<Cluster> {
    match std::env::var_os("DELTABENCH_TEST_TREES") {
        Some(trees) => std::env::split_paths(&trees)
            .map(|tree| Cluster::start(&tree.join("bin"), "", settings))
            .collect(),
        None => Cluster::for_each_target("", settings),
    }
}

fn client(cluster: &Cluster) -> Client {
    Client::connect(&cluster.endpoint(), &cluster.login(), PATIENCE).unwrap()
}

/// pgbench's tables at scale 1.
fn load(client: &mut Client) {
    for sql in [
        "DROP TABLE IF EXISTS pgbench_history, pgbench_tellers, pgbench_accounts, pgbench_branches",
        "CREATE TABLE pgbench_history
         (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
        "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))",
        "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
        "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88))",
        "INSERT INTO pgbench_branches SELECT i, 0 FROM generate_series(1, 1) i",
        "INSERT INTO pgbench_tellers SELECT i, (i - 1) / 10 + 1, 0 FROM generate_series(1, 10) i",
        "INSERT INTO pgbench_accounts
         SELECT i, (i - 1) / 100000 + 1, 0, '' FROM generate_series(1, 100000) i",
        "VACUUM ANALYZE",
    ] {
        client.execute(sql).unwrap();
    }
}

fn number(client: &mut Client, sql: &str) -> i64 {
    let rows = client.query(sql).unwrap();
    rows[0][0].as_deref().unwrap().parse().unwrap()
}

fn run(cluster: &Cluster, executable: &Executable, clients: u32, operations: u64) -> SliceOutcome {
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[(cluster.endpoint(), cluster.login())],
        executable,
        clients,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate: None,
    })
    .unwrap();
    let outcome = slice(&mut lane, operations, 1);
    assert_eq!(outcome.void, None, "{outcome:?}");
    outcome
}

#[test]
fn the_builtin_scripts_do_what_they_say_in_every_mode() {
    for cluster in clusters(&[]) {
        let mut admin = client(&cluster);
        load(&mut admin);
        for mode in QueryMode::ALL {
            for clients in [1, 4] {
                for (name, writes) in [
                    ("tpcb-like", true),
                    ("simple-update", true),
                    ("select", false),
                ] {
                    let script = builtin(name).unwrap();
                    let executable = executable(&setup(mode), &[(&script.source.text, 1)]);
                    let before = number(&mut admin, "SELECT count(*) FROM pgbench_history");
                    let outcome = run(&cluster, &executable, clients, 200);
                    assert_eq!(
                        (outcome.operations, outcome.failed),
                        (200, 0),
                        "{outcome:?}"
                    );
                    assert_eq!(outcome.rows, 200, "{name} selects one row");
                    let after = number(&mut admin, "SELECT count(*) FROM pgbench_history");
                    assert_eq!(after - before, if writes { 200 } else { 0 }, "{name}");
                }
                let mut sum = |sql| number(&mut admin, sql);
                let deltas = sum("SELECT sum(delta) FROM pgbench_history");
                assert_ne!(deltas, 0);
                assert_eq!(sum("SELECT sum(abalance) FROM pgbench_accounts"), deltas);
                // simple-update does not touch these two.
                let tellers = sum("SELECT sum(tbalance) FROM pgbench_tellers");
                assert_eq!(sum("SELECT sum(bbalance) FROM pgbench_branches"), tellers);
                assert_ne!(tellers, 0);
            }
        }
    }
}

#[test]
fn results_sleeps_and_conditions_work_on_real_servers() {
    let script = "\\set n random(1, 5)\nselect :n::int as n, null::text as nothing \\gset a_\n\
                  \\if :a_n = :n\ninsert into t values (:a_n);\n\\else\ninsert into t values (-1);\n\\endif\n\
                  \\sleep 100 us\n";
    for cluster in clusters(&[]) {
        let mut admin = client(&cluster);
        for mode in QueryMode::ALL {
            for clients in [1, 3] {
                admin.execute("DROP TABLE IF EXISTS t").unwrap();
                admin.execute("CREATE TABLE t (n int)").unwrap();
                let outcome = run(
                    &cluster,
                    &executable(&setup(mode), &[(script, 1)]),
                    clients,
                    30,
                );
                assert_eq!(outcome.operations, 30, "{outcome:?}");
                let inserted = "SELECT count(*) FROM t WHERE n BETWEEN 1 AND 5";
                assert_eq!(number(&mut admin, inserted), 30);
            }
        }
    }
}

#[test]
fn several_results_and_pipelines_work_on_real_servers() {
    let combined = "select 1 as x \\; select 2 as y where false \\; select 3 as z, 4 as zz \\aset r_\n\
                    select :r_x + :r_z + :r_zz as sum \\gset\n\\if :sum <> 8\nselect 1/0;\n\\endif\n";
    let pipeline =
        "\\startpipeline\nbegin;\nselect 1;\n\\syncpipeline\nselect 2;\ncommit;\n\\endpipeline\n";
    let broken = "\\startpipeline\nselect 1;\nselect 1/0;\nselect 2;\n\\endpipeline\n";
    for cluster in clusters(&[]) {
        for clients in [1, 3] {
            let combined = executable(&setup(QueryMode::Simple), &[(combined, 1)]);
            let outcome = run(&cluster, &combined, clients, 20);
            assert_eq!((outcome.operations, outcome.rows), (20, 60), "{outcome:?}");
            for mode in [QueryMode::Extended, QueryMode::Prepared] {
                let both = executable(&setup(mode), &[(pipeline, 1), (broken, 1)]);
                let outcome = run(&cluster, &both, clients, 40);
                let [whole, failing] = outcome.scripts.as_slice() else {
                    panic!("{outcome:?}")
                };
                assert_eq!(
                    (whole.other_failures, failing.operations),
                    (0, 0),
                    "{outcome:?}"
                );
                assert_eq!(outcome.rows, 2 * whole.operations + failing.other_failures);
                assert_eq!(outcome.errors[0].sqlstate, "22012");
            }
        }
    }
}

#[test]
fn serialization_failures_and_deadlocks_are_tried_until_nothing_is_lost() {
    let serializable = "begin isolation level repeatable read;\n\
                        select k from t where id = 1 \\gset\nupdate t set k = :k + 1 where id = 1;\nend;\n";
    let deadlock = "\\set first random(1, 2)\n\\set second 3 - :first\nbegin;\n\
                    update t set k = k + 1 where id = :first;\n\
                    update t set k = k + 1 where id = :second;\nend;\n";
    for cluster in clusters(&["deadlock_timeout=5ms"]) {
        let mut admin = client(&cluster);
        for mode in QueryMode::ALL {
            for (script, operations, added) in [(serializable, 200, 200), (deadlock, 100, 200)] {
                admin.execute("DROP TABLE IF EXISTS t").unwrap();
                admin
                    .execute("CREATE TABLE t (id int PRIMARY KEY, k int)")
                    .unwrap();
                admin
                    .execute("INSERT INTO t VALUES (1, 0), (2, 0)")
                    .unwrap();
                let setup = PgbenchSetup {
                    max_tries: 10_000,
                    shared_names: false,
                    reconnects: false,
                    ..setup(mode)
                };
                let outcome = run(&cluster, &executable(&setup, &[(script, 1)]), 4, operations);
                assert_eq!(
                    (outcome.operations, outcome.failed),
                    (operations, 0),
                    "{outcome:?}"
                );
                assert!(outcome.scripts[0].retries >= outcome.scripts[0].retried);
                assert!(
                    outcome.scripts[0].retries > 0 || script == deadlock,
                    "four clients at one row collide: {outcome:?}"
                );
                assert_eq!(
                    number(&mut admin, "SELECT sum(k) FROM t"),
                    added,
                    "{mode:?}"
                );
            }
        }
    }
}

#[test]
fn a_pipeline_larger_than_all_buffers_ends() {
    // More than a megabyte each way: whoever only sent would wait for a server that only sends.
    let mut script = "\\startpipeline\n".to_owned();
    for number in 0..300 {
        script += &format!(
            "select repeat('x', 400), '{}', {number};\n",
            "y".repeat(400)
        );
    }
    script += "\\endpipeline\n";
    for cluster in clusters(&[]) {
        let executable = executable(&setup(QueryMode::Extended), &[(&script, 1)]);
        for clients in [1, 2] {
            let outcome = run(&cluster, &executable, clients, 2);
            assert_eq!((outcome.operations, outcome.rows), (2, 600), "{outcome:?}");
        }
    }
}

#[test]
fn a_table_that_is_missing_where_nothing_goes_hinders_nobody() {
    let conditional =
        "\\set x 1\n\\if :x = 2\nselect * from nowhere_at_all;\n\\endif\nselect :x::int;\n";
    let never = "select * from nowhere_at_all;\n";
    for cluster in clusters(&[]) {
        let scripts = [(conditional, 1), (never, 0)];
        let executable = executable(&setup(QueryMode::Prepared), &scripts);
        let outcome = run(&cluster, &executable, 1, 10);
        assert_eq!((outcome.operations, outcome.rows), (10, 10), "{outcome:?}");
    }
}
