//! pgbench scripts on a server that answers as a test says.

use crate::puppet::{Puppet, Reply};
use crate::{PATIENCE, decoded, slice};
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, WireError};
use deltabench_model::plan::WorkloadSource;
use deltabench_model::slice::VoidReason;
use deltabench_model::work::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_workload::executable::Executable;
use deltabench_workload::pgbench::Program;
use std::time::{Duration, Instant};

/// A way to send scripts.
pub fn setup(mode: QueryMode) -> PgbenchSetup {
    PgbenchSetup {
        tables: PgbenchTables::default(),
        mixes: Vec::new(),
        mode,
        variables: vec![("given".to_owned(), "7".to_owned())],
        max_tries: 1,
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    }
}

/// Scripts with their weights.
pub fn executable(setup: &PgbenchSetup, scripts: &[(&str, u32)]) -> Executable {
    let scripts = scripts.iter().map(|(text, weight)| PgbenchScript {
        source: WorkloadSource {
            file: "script.sql".to_owned(),
            text: (*text).to_owned(),
        },
        weight: *weight,
    });
    let mix = PgbenchMix {
        name: "mix".to_owned(),
        scripts: scripts.collect(),
    };
    let mut executable = Executable::single("mix", Vec::new(), Vec::new(), 1);
    executable.program = Some(Program::parse(setup, &mix).unwrap());
    executable
}

fn lane(server: &Puppet, executable: &Executable, clients: u32, rate: Option<f64>) -> Lane {
    Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable,
        clients,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate,
    })
    .unwrap()
}

/// One operation of a script, and what the server executed for it.
fn once(
    setup: &PgbenchSetup,
    script: &str,
    piece: usize,
    play: fn(&str) -> Reply,
) -> (SliceOutcome, Vec<String>) {
    let server = Puppet::start(piece, play);
    let mut lane = lane(&server, &executable(setup, &[(script, 1)]), 1, None);
    server.log();
    let outcome = slice(&mut lane, 1, 1);
    (outcome, server.log())
}

const EXTENDED: [QueryMode; 2] = [QueryMode::Extended, QueryMode::Prepared];

/// Every column is `a` and has its row's number.
fn rows(sql: &str) -> Reply {
    const VALUES: [&str; 3] = ["1", "2", "3"];
    let (_, count) = sql.split_once("rows ").unwrap_or(("", "0"));
    let count = count[..1].parse().unwrap();
    let rows = VALUES.iter().take(count).map(|value| vec![Some(*value)]);
    Reply::Rows(vec!["a"], rows.collect())
}

#[test]
fn each_mode_sends_the_values_of_variables_its_way() {
    let script = "\\set x :given * 6\nselect :x, 1::int, :x;\n";
    for (mode, expected) in [
        (QueryMode::Simple, vec!["select 42, 1::int, 42"]),
        (
            QueryMode::Extended,
            vec!["select $1, 1::int, $2 [42] [42]", "sync"],
        ),
        (
            QueryMode::Prepared,
            vec!["select $1, 1::int, $2 [42] [42]", "sync"],
        ),
    ] {
        for piece in [1, 7, 10_000] {
            let (outcome, log) = once(&setup(mode), script, piece, |_| Reply::Done);
            assert_eq!((outcome.operations, &outcome.void), (1, &None), "{mode:?}");
            assert_eq!(log, expected, "{mode:?}");
        }
    }
}

#[test]
fn the_only_row_of_a_gset_is_in_variables_afterwards_however_it_is_cut() {
    let script = "select rows 1\\gset p_\nselect :p_a;\n";
    for mode in QueryMode::ALL {
        for piece in [1, 2, 3, 5, 10_000] {
            let (outcome, log) = once(&setup(mode), script, piece, rows);
            assert_eq!(outcome.operations, 1, "{:?}", outcome.errors);
            assert_eq!(outcome.rows, 1);
            let last = log.iter().rfind(|sql| *sql != "sync").unwrap();
            assert!(
                ["select 1", "select $1 [1]"].contains(&last.as_str()),
                "{last}"
            );
        }
    }
}

#[test]
fn a_gset_without_exactly_one_row_fails_the_operation_and_only_that() {
    for mode in QueryMode::ALL {
        for (count, told) in [(0, "got 0"), (2, "got 2")] {
            let script = format!("select rows {count}\\gset\nselect :a;\n");
            for clients in [1, 3] {
                let server = Puppet::start(10_000, rows);
                let executable = executable(&setup(mode), &[(&script, 1), ("select 1;", 1)]);
                let outcome = slice(&mut lane(&server, &executable, clients, None), 40, 1);
                assert_eq!(outcome.void, None);
                let [error] = outcome.errors.as_slice() else {
                    panic!("{:?}", outcome.errors)
                };
                assert_eq!(error.sqlstate, "PB002");
                assert!(error.first_message.contains(told), "{error:?}");
                assert_eq!(outcome.scripts[0].other_failures, outcome.failed);
                assert_eq!(outcome.scripts[1].operations, outcome.operations);
                assert!(outcome.operations > 0 && outcome.failed > 0);
            }
        }
    }
}

#[test]
fn several_statements_of_one_query_have_several_results() {
    let script = "select rows 2 \\; nothing \\; select rows 1 \\gset\nselect :a;\n";
    let play = |sql: &str| {
        if sql == "nothing" {
            Reply::Done
        } else {
            rows(sql)
        }
    };
    for piece in [1, 10_000] {
        let (outcome, log) = once(&setup(QueryMode::Simple), script, piece, play);
        assert_eq!(
            (outcome.operations, outcome.rows),
            (1, 3),
            "{:?}",
            outcome.errors
        );
        assert_eq!(
            log,
            ["select rows 2", "nothing", "select rows 1", "select 1"]
        );
        // The last one must have the row, and here it has none.
        let (outcome, _) = once(
            &setup(QueryMode::Simple),
            "select rows 1 \\; nothing \\gset\n",
            piece,
            play,
        );
        assert_eq!(outcome.errors[0].sqlstate, "PB002");
    }
}

#[test]
fn an_aset_takes_the_last_row_of_every_result_that_has_one() {
    let script = "select rows 3 \\; select rows 0 \\aset x_\nselect :x_a;\n";
    let (outcome, log) = once(&setup(QueryMode::Simple), script, 1, rows);
    assert_eq!(
        (outcome.operations, outcome.rows),
        (1, 3),
        "{:?}",
        outcome.errors
    );
    assert_eq!(log.last().unwrap(), "select 3");
}

#[test]
fn a_pipeline_is_sent_at_its_end_and_read_in_order() {
    let script = "\\startpipeline\n\\set x 1\nselect rows 1, :x;\n\\set x 2\nselect rows 2, :x;\n\
                  \\syncpipeline\n\\syncpipeline\nselect rows 3, :x;\n\\endpipeline\nselect rows 1;\n";
    for mode in EXTENDED {
        for piece in [1, 10_000] {
            let (outcome, log) = once(&setup(mode), script, piece, rows);
            assert_eq!(
                (outcome.operations, outcome.rows),
                (1, 7),
                "{:?}",
                outcome.errors
            );
            let expected = [
                "select rows 1, $1 [1]",
                "select rows 2, $1 [2]",
                "sync",
                "sync",
                "select rows 3, $1 [2]",
                "sync",
                "select rows 1",
                "sync",
            ];
            assert_eq!(log, expected);
        }
    }
}

#[test]
fn after_an_error_in_a_pipeline_the_rest_is_skipped_to_the_sync_and_the_operation_fails() {
    let script = "\\startpipeline\nselect rows 1;\nfail;\nselect rows 2;\n\\syncpipeline\n\
                  select rows 3;\n\\endpipeline\nnever;\n";
    let play = |sql: &str| {
        if sql == "fail" {
            Reply::Fail("22012")
        } else {
            rows(sql)
        }
    };
    for mode in EXTENDED {
        for clients in [1, 2] {
            let server = Puppet::start(3, play);
            let executable = executable(&setup(mode), &[(script, 1), ("select rows 1;", 1)]);
            let mut lane = lane(&server, &executable, clients, None);
            server.log();
            let outcome = slice(&mut lane, 30, 3);
            assert_eq!(outcome.void, None, "{:?}", outcome.void_detail);
            assert_eq!(outcome.errors[0].sqlstate, "22012");
            assert_eq!(outcome.errors[0].count, outcome.scripts[0].other_failures);
            assert_eq!(outcome.scripts[0].operations, 0);
            assert_eq!(
                outcome.rows,
                4 * outcome.failed + outcome.operations,
                "what stands after the sync is executed"
            );
            let log = server.log();
            assert!(
                !log.iter()
                    .any(|sql| sql == "never" || sql == "select rows 2")
            );
        }
    }
}

#[test]
fn a_serialization_failure_is_rolled_back_and_tried_again_with_the_same_values() {
    let script = "\\set x random(1, 1000000)\nBEGIN;\nupdate :x;\nCOMMIT;\n";
    for mode in QueryMode::ALL {
        for (sqlstate, clients) in [("40001", 1), ("40P01", 1), ("40001", 3)] {
            let mut calls = 0;
            // The first two of every three fail.
            let server = Puppet::start(10_000, move |_| {
                calls += 1;
                if calls % 3 == 0 {
                    Reply::Done
                } else {
                    Reply::Fail(sqlstate)
                }
            });
            let setup = PgbenchSetup {
                max_tries: 100,
                shared_names: false,
                reconnects: false,
                ..setup(mode)
            };
            let mut lane = lane(&server, &executable(&setup, &[(script, 1)]), clients, None);
            server.log();
            let outcome = slice(&mut lane, 10, 5);
            assert_eq!((outcome.operations, outcome.failed), (10, 0));
            assert_eq!(outcome.errors, []);
            let tally = &outcome.scripts[0];
            assert_eq!(tally.retries, 20, "{tally:?}");
            assert!((1..=10).contains(&tally.retried));
            let log: Vec<String> = server
                .log()
                .into_iter()
                .filter(|sql| sql != "sync")
                .collect();
            assert_eq!(log.iter().filter(|sql| *sql == "ROLLBACK").count(), 20);
            if clients == 1 {
                assert_eq!(tally.retried, 10);
                for tries in log.chunks(9) {
                    let expected = [
                        "BEGIN", &tries[1], "ROLLBACK", "BEGIN", &tries[1], "ROLLBACK", "BEGIN",
                        &tries[1], "COMMIT",
                    ];
                    assert_eq!(tries, expected);
                }
            }
        }
    }
}

#[test]
fn tries_end_at_their_number_or_at_the_latency_limit_and_other_errors_are_not_tried_again() {
    for clients in [1, 2] {
        let tried = |setup: &PgbenchSetup, sqlstate: &'static str, operations| {
            let server = Puppet::start(10_000, move |_| {
                std::thread::sleep(Duration::from_millis(1));
                Reply::Fail(sqlstate)
            });
            let mut lane = lane(
                &server,
                &executable(setup, &[("update;", 1)]),
                clients,
                None,
            );
            let outcome = slice(&mut lane, operations, 1);
            assert_eq!(outcome.void, Some(VoidReason::NothingDone));
            assert_eq!(outcome.failed, operations);
            outcome
        };
        let three = PgbenchSetup {
            max_tries: 3,
            shared_names: false,
            reconnects: false,
            ..setup(QueryMode::Simple)
        };
        let tally = &tried(&three, "40P01", 5).scripts[0];
        assert_eq!(
            (tally.deadlock_failures, tally.retried, tally.retries),
            (5, 5, 10)
        );
        let tally = &tried(&three, "23505", 5).scripts[0];
        assert_eq!(
            (tally.other_failures, tally.retried, tally.retries),
            (5, 0, 0)
        );
        let by_time = PgbenchSetup {
            max_tries: 0,
            shared_names: false,
            reconnects: false,
            latency_limit_ms: Some(500.0),
            ..setup(QueryMode::Simple)
        };
        let outcome = tried(&by_time, "40001", 2);
        let tally = &outcome.scripts[0];
        assert_eq!((tally.serialization_failures, tally.retried), (2, 2));
        assert!(
            tally.retries > 2 && outcome.duration_ns > 500_000_000,
            "{tally:?}"
        );
    }
}

#[test]
fn tries_without_any_end_are_refused() {
    let server = Puppet::start(10_000, |_| Reply::Done);
    let mut endless = executable(&setup(QueryMode::Simple), &[("select 1;", 1)]);
    endless.program.as_mut().unwrap().max_tries = 0;
    let refused = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &endless,
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate: None,
    });
    assert!(matches!(refused, Err(WireError::Workload { .. })));
}

#[test]
fn a_sleep_counts_as_latency_and_holds_nobody_else_up() {
    let script = "select 1;\n\\sleep 1500 ms\nselect 2;\n";
    for (clients, rate) in [(1, None), (8, None), (8, Some(1000.0))] {
        let server = Puppet::start(10_000, |_| Reply::Done);
        let executable = executable(&setup(QueryMode::Prepared), &[(script, 1)]);
        let mut lane = Lane::connect(&LaneSpec {
            servers: &[server.address()],
            executable: &executable,
            clients,
            jobs: 1,
            cores: &[],
            // A rest is no stall.
            op_timeout: Duration::from_secs(1),
            rate,
        })
        .unwrap();
        let outcome = slice(&mut lane, u64::from(clients), 1);
        assert_eq!(
            (outcome.operations, &outcome.void),
            (u64::from(clients), &None)
        );
        assert!(
            decoded(&outcome).min() >= 1_499_000_000,
            "{}",
            decoded(&outcome).min()
        );
        if clients == 8 {
            assert!(
                outcome.duration_ns < 8 * 1_500_000_000,
                "eight rest at once: {}",
                outcome.duration_ns
            );
        }
        assert!(outcome.client_cpu_ns < outcome.duration_ns / 2);
        let tally = &outcome.scripts[0];
        assert!(
            tally.latency_sum_us >= 1_499_000.0 * f64::from(clients),
            "{tally:?}"
        );
    }
}

#[test]
fn a_server_that_stalls_while_another_client_rests_is_noticed() {
    let server = Puppet::start(10_000, |sql| match sql {
        "hang" => Reply::Hang(3 * PATIENCE),
        _ => Reply::Done,
    });
    let rests = "\\sleep 1 ms\nselect 1;\n";
    let executable = executable(&setup(QueryMode::Simple), &[(rests, 50), ("hang;", 1)]);
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &executable,
        clients: 4,
        jobs: 1,
        cores: &[],
        op_timeout: Duration::from_millis(500),
        rate: None,
    })
    .unwrap();
    let started = Instant::now();
    let outcome = slice(&mut lane, 1_000_000, 1);
    assert_eq!(outcome.void, Some(VoidReason::Stalled));
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_script_that_sends_nothing_is_done_at_once() {
    for (clients, rate) in [(1, None), (4, None), (2, Some(1e6))] {
        let server = Puppet::start(10_000, |_| Reply::Done);
        let executable = executable(&setup(QueryMode::Simple), &[("\\set x 1 + 1\n", 1)]);
        let outcome = slice(&mut lane(&server, &executable, clients, rate), 100_000, 1);
        assert_eq!((outcome.operations, outcome.rows), (100_000, 0));
    }
}

#[test]
fn a_mistake_in_an_expression_fails_the_operation_and_leaves_no_transaction_open() {
    let script = "BEGIN;\n\\set x 1 / (:given - 7)\nselect :x;\nCOMMIT;\n";
    for mode in QueryMode::ALL {
        let server = Puppet::start(10_000, |_| Reply::Done);
        let executable = executable(&setup(mode), &[(script, 1), ("select 1;", 1)]);
        let outcome = slice(&mut lane(&server, &executable, 1, None), 20, 1);
        assert!(outcome.failed > 0 && outcome.operations > 0);
        assert_eq!(outcome.errors[0].sqlstate, "PB001");
        let message = &outcome.errors[0].first_message;
        assert!(message.contains("division by zero"), "{message}");
        let rollbacks = server.log().iter().filter(|sql| *sql == "ROLLBACK").count();
        assert_eq!(u64::try_from(rollbacks).unwrap(), outcome.failed);
    }
}

#[test]
fn a_transaction_left_open_is_an_error_of_the_script() {
    let server = Puppet::start(10_000, |_| Reply::Done);
    let executable = executable(&setup(QueryMode::Simple), &[("BEGIN;\nselect 1;\n", 1)]);
    let outcome = slice(&mut lane(&server, &executable, 1, None), 3, 1);
    assert_eq!(
        (outcome.failed, outcome.errors[0].sqlstate.as_str()),
        (3, "25001")
    );
    assert_eq!(
        server.log().iter().filter(|sql| *sql == "ROLLBACK").count(),
        3
    );
}

#[test]
fn what_is_due_later_than_the_latency_limit_is_skipped_and_counted() {
    for clients in [1, 2] {
        let server = Puppet::start(10_000, |_| {
            std::thread::sleep(Duration::from_millis(10));
            Reply::Done
        });
        let limited = PgbenchSetup {
            latency_limit_ms: Some(30.0),
            ..setup(QueryMode::Simple)
        };
        let executable = executable(&limited, &[("select 1;", 1), ("select 2;", 1)]);
        let outcome = slice(
            &mut lane(&server, &executable, clients, Some(1000.0)),
            300,
            1,
        );
        assert_eq!((outcome.failed, &outcome.void), (0, &None));
        let count = |of: fn(&deltabench_model::slice::ScriptTally) -> u64| -> u64 {
            outcome.scripts.iter().map(of).sum()
        };
        let (skipped, late) = (count(|tally| tally.skipped), count(|tally| tally.late));
        assert_eq!(outcome.operations + skipped, 300);
        // 300 are due in 0.3 s, in which each client can do 30 at most, and a few more after that.
        assert!(
            (1..=40 * u64::from(clients)).contains(&outcome.operations),
            "{outcome:?}"
        );
        // It can begin up to 30 ms late and then take 10.
        assert!(late > 0 && late <= outcome.operations);
        let log = server.log().len();
        assert_eq!(
            u64::try_from(log).unwrap(),
            outcome.operations,
            "skipped: not sent"
        );
        assert!(outcome.scripts.iter().all(|tally| tally.skipped > 0));
    }
}

#[test]
fn servers_of_different_speed_do_the_same_operations_also_where_some_are_skipped() {
    let sent = |pause: u64, latency_limit_ms, rate| {
        let server = Puppet::start(10_000, move |_| {
            std::thread::sleep(Duration::from_millis(pause));
            Reply::Done
        });
        let limited = PgbenchSetup {
            latency_limit_ms,
            ..setup(QueryMode::Simple)
        };
        let script = "\\set x random(1, 1000000000)\nselect :x;\n";
        let executable = executable(&limited, &[(script, 1)]);
        slice(&mut lane(&server, &executable, 1, rate), 60, 9);
        server.log()
    };
    let (all, some) = (sent(0, None, None), sent(10, Some(15.0), Some(500.0)));
    assert!(some.len() < all.len(), "{} {}", some.len(), all.len());
    assert!(some.iter().all(|sql| all.contains(sql)));
}

#[test]
fn what_a_script_creates_itself_is_prepared_when_it_is_there() {
    let script = "create;\nunknown 42P01;\n";
    let server = Puppet::start(10_000, |_| Reply::Done);
    let executable = executable(&setup(QueryMode::Prepared), &[(script, 1)]);
    let mut lane = lane(&server, &executable, 1, None);
    let outcome = slice(&mut lane, 5, 1);
    assert_eq!(
        (outcome.operations, outcome.failed),
        (5, 0),
        "{:?}",
        outcome.errors
    );
    // Without anything that creates it, it is a mistake that is told before anything is measured.
    let server = Puppet::start(10_000, |_| Reply::Done);
    let refused = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &self::executable(&setup(QueryMode::Prepared), &[("unknown 42P01;\n", 1)]),
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate: None,
    });
    assert_eq!(refused.unwrap_err().sqlstate(), Some("42P01"));
}

#[test]
fn copy_is_told_and_not_waited_for() {
    for clients in [1, 2] {
        let server = Puppet::start(10_000, |_| Reply::CopyIn);
        let executable = executable(&setup(QueryMode::Simple), &[("select 1;", 1)]);
        let outcome = slice(&mut lane(&server, &executable, clients, None), 5, 1);
        assert_eq!(outcome.void, Some(VoidReason::ServerLost));
        assert!(outcome.void_detail.unwrap().contains("COPY"));
    }
}
