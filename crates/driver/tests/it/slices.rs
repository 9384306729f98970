//! What a slice counts, and what it sends.

use crate::{PATIENCE, decoded, lane, look_up, slice, slice_on, transaction};
use deltabench_driver::{Lane, LaneSpec, WireError};
use deltabench_model::endpoint::Endpoint;
use deltabench_testkit::{Behaviour, FakeServer, Trouble};
use deltabench_workload::executable::Executable;

fn rows(rows: u64, row_bytes: usize) -> Behaviour {
    Behaviour {
        rows,
        row_bytes,
        ..Behaviour::default()
    }
}

#[test]
fn a_slice_does_exactly_what_it_is_asked_and_counts_the_rows() {
    for clients in [1, 4] {
        let server = FakeServer::start(rows(3, 20));
        let mut lane = lane(&[&server], &look_up(), clients, PATIENCE);
        for operations in [0, 1, 2, 3, 100] {
            let before = server.executions();
            let outcome = slice(&mut lane, operations, 1);
            assert_eq!((outcome.operations, outcome.failed), (operations, 0));
            assert_eq!(outcome.rows, 3 * operations);
            assert_eq!(outcome.void, None);
            assert_eq!(server.executions() - before, operations);
            assert!(operations == 0 || outcome.client_cpu_ns > 0);
        }
    }
}

#[test]
fn one_client_probes_its_core_if_it_is_asked_to() {
    let server = FakeServer::start(rows(3, 20));
    for (clients, asked) in [(1, true), (1, false), (4, true)] {
        let mut lane = lane(&[&server], &look_up(), clients, PATIENCE);
        if asked {
            lane.probe_core().unwrap();
        }
        for operations in [0, 1, 200] {
            let before = server.executions();
            let outcome = slice(&mut lane, operations, 1);
            assert_eq!(server.executions() - before, operations);
            let expected = asked && clients == 1;
            assert_eq!(outcome.probe_ns.is_some(), expected, "{clients} {asked}");
            assert_eq!(outcome.probing_ns > 0, expected, "{clients} {asked}");
            assert!(outcome.all_client_cpu_ns() >= outcome.probing_ns);
        }
    }
}

#[test]
fn every_server_gets_the_same_operations_for_the_same_seed_whatever_its_speed() {
    for executable in [look_up(), transaction()] {
        for clients in [1, 4] {
            let quick = FakeServer::start(rows(1, 8));
            let troubles = vec![
                Trouble::Freeze {
                    at: 5,
                    pause: std::time::Duration::from_millis(20),
                },
                Trouble::Chatter,
            ];
            let slow = FakeServer::start(Behaviour {
                pieces: Some(3),
                troubles,
                ..rows(1, 8)
            });
            let mut lane = lane(&[&quick, &slow], &executable, clients, PATIENCE);
            slice_on(&mut lane, 0, 60, 42);
            slice_on(&mut lane, 1, 60, 42);
            let sorted = |server: &FakeServer| {
                let mut binds = server.record().binds;
                binds.sort();
                binds
            };
            assert_eq!(sorted(&quick), sorted(&slow));
            let before = quick.record().binds;
            slice_on(&mut lane, 0, 60, 43);
            assert_ne!(
                quick.record().binds[before.len()..],
                before,
                "another seed, other parameters"
            );
        }
    }
}

#[test]
fn one_client_sends_the_stream_in_order_and_uses_both_tables() {
    let servers = [FakeServer::start(rows(1, 8)), FakeServer::start(rows(1, 8))];
    let mut lane = lane(&[&servers[0], &servers[1]], &look_up(), 1, PATIENCE);
    slice_on(&mut lane, 0, 50, 7);
    slice_on(&mut lane, 1, 50, 7);
    let binds = servers[0].record().binds;
    assert_eq!(binds, servers[1].record().binds);
    for name in [b"0000", b"0001"] {
        assert!(binds.iter().any(|bind| &bind[1..5] == name));
    }
    assert!(
        binds.windows(2).all(|pair| pair[0] != pair[1]),
        "every operation draws anew"
    );
}

#[test]
fn statements_are_prepared_with_explicit_types_on_every_connection() {
    let server = FakeServer::start(rows(1, 8));
    let lane = lane(&[&server], &look_up(), 2, PATIENCE);
    let record = server.record();
    assert_eq!(
        record.statements["0001"],
        (
            "SELECT c FROM t2 WHERE id = $1 AND c <> $2".into(),
            vec![20, 1043]
        )
    );
    assert_eq!(record.start_ups.len(), 2);
    assert_eq!(lane.backend_pids(0).len(), 2);
    drop(lane);
    assert!(server.all_closed());
    assert_eq!(server.record().goodbyes, 2);
}

#[test]
fn answers_in_tiny_pieces_and_huge_answers_count_the_same() {
    let pieces = [
        (1, 2, 30),
        (7, 5, 100),
        (8192, 40, 9000),
        (1 << 20, 3, 200_000),
    ];
    for (piece, count, row_bytes) in pieces {
        for clients in [1, 3] {
            let behaviour = Behaviour {
                pieces: Some(piece),
                troubles: vec![Trouble::Chatter],
                ..rows(count, row_bytes)
            };
            let server = FakeServer::start(behaviour);
            let outcome = slice(&mut lane(&[&server], &look_up(), clients, PATIENCE), 12, 1);
            assert_eq!(
                (outcome.operations, outcome.rows),
                (12, 12 * count),
                "pieces of {piece}"
            );
        }
    }
}

#[test]
fn a_transaction_is_one_operation_of_several_round_trips() {
    for clients in [1, 4] {
        let server = FakeServer::start(rows(1, 8));
        let outcome = slice(
            &mut lane(&[&server], &transaction(), clients, PATIENCE),
            20,
            1,
        );
        assert_eq!((outcome.operations, outcome.rows), (20, 20));
        assert_eq!(server.executions(), 60);
        assert_eq!(server.record().queries, [""; 0], "nothing to roll back");
    }
}

#[test]
fn an_operation_that_leaves_its_transaction_open_is_a_failure() {
    let mut open = transaction();
    open.steps.pop();
    for clients in [1, 2] {
        let server = FakeServer::start(rows(0, 0));
        let outcome = slice(&mut lane(&[&server], &open, clients, PATIENCE), 4, 1);
        assert_eq!((outcome.operations, outcome.failed), (0, 4));
        assert_eq!(outcome.errors[0].sqlstate, "25001");
        assert_eq!(server.record().queries, ["ROLLBACK"; 4]);
    }
}

#[test]
fn latencies_of_one_slice_do_not_leak_into_the_next() {
    let server = FakeServer::start(rows(1, 8));
    let mut lane = lane(&[&server], &look_up(), 1, PATIENCE);
    assert_eq!(decoded(&slice(&mut lane, 30, 1)).len(), 30);
    assert_eq!(decoded(&slice(&mut lane, 10, 2)).len(), 10);
}

#[test]
fn a_workload_that_cannot_be_sent_is_refused_by_name() {
    let server = FakeServer::start(rows(1, 8));
    let refused = |change: fn(&mut Executable)| {
        let mut executable = look_up();
        change(&mut executable);
        let servers = [server.address()];
        let spec = LaneSpec {
            servers: &servers,
            executable: &executable,
            clients: 1,
            jobs: 1,
            cores: &[],
            op_timeout: PATIENCE,
            rate: None,
        };
        Lane::connect(&spec).unwrap_err().to_string()
    };
    assert!(refused(|it| it.steps.clear()).contains("no steps"));
    assert!(refused(|it| it.steps[0].statements.clear()).contains("no statement"));
    assert!(refused(|it| it.steps[0].statements.push(9)).contains("statement 9"));
    assert!(refused(|it| it.statements[1].slots.truncate(1)).contains("differ"));
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let server = FakeServer::start(rows(1, 8));
    let nowhere = Endpoint::Unix {
        directory: "/nonexistent".into(),
        port: 1,
    };
    let servers = [server.address(), (nowhere, server.login())];
    let spec = LaneSpec {
        servers: &servers,
        executable: &look_up(),
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate: None,
    };
    match Lane::connect(&spec).unwrap_err() {
        WireError::At {
            server: 1,
            endpoint,
            ..
        } => assert!(endpoint.contains("/nonexistent")),
        other => panic!("{other}"),
    }
    assert!(
        server.all_closed(),
        "the connections made so far are closed"
    );
}
