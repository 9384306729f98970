//! Servers that stall, die, lie and fail.

use crate::{PATIENCE, decoded, lane, look_up, slice, slice_on, transaction};
use deltabench_model::slice::VoidReason;
use deltabench_testkit::{Behaviour, FakeServer, Trouble};
use std::time::{Duration, Instant};

const CLIENTS: [u32; 2] = [1, 4];

fn server(trouble: Trouble) -> FakeServer {
    FakeServer::start(Behaviour {
        rows: 1,
        row_bytes: 10,
        troubles: vec![trouble],
        ..Behaviour::default()
    })
}

#[test]
fn a_server_that_stalls_is_noticed_in_time_and_can_be_reconnected() {
    for clients in CLIENTS {
        // The ten before it are answered in time on a busy machine too.
        let limit = Duration::from_secs(1);
        let stalling = server(Trouble::Stall { from: 11 });
        let healthy = FakeServer::start(Behaviour::default());
        let mut lane = lane(&[&stalling, &healthy], &look_up(), clients, limit);
        let started = Instant::now();
        let outcome = slice(&mut lane, 100, 1);
        let took = started.elapsed();
        assert_eq!(outcome.void, Some(VoidReason::Stalled));
        assert!(took >= limit && took < PATIENCE, "{took:?}");
        assert_eq!(
            (outcome.operations, outcome.failed),
            (10, u64::from(clients)),
            "unanswered ones count as failed"
        );
        assert!(!lane.is_usable(0) && lane.backend_pids(0).is_empty());
        assert!(stalling.all_closed());
        assert!(stalling.was_cancelled(usize::try_from(clients).unwrap()));
        let mut cancels = stalling.record().cancels;
        cancels.sort_unstable();
        let pids: Vec<u32> = (1..=clients).collect();
        assert_eq!(cancels, pids, "the server is told to give up");
        assert_eq!(
            slice(&mut lane, 5, 1).void,
            Some(VoidReason::ServerLost),
            "nothing is sent without connections"
        );
        assert_eq!(
            slice_on(&mut lane, 1, 5, 1).operations,
            5,
            "the other server goes on"
        );
        lane.reconnect(0).unwrap();
        assert!(lane.is_usable(0));
    }
}

#[test]
fn one_stalled_connection_among_busy_ones_is_noticed() {
    let limit = Duration::from_millis(500);
    let freeze = Trouble::Freeze {
        at: 3,
        pause: PATIENCE,
    };
    let freezing = server(freeze);
    let mut lane = lane(&[&freezing], &look_up(), 4, limit);
    // Far more than the others can do within the limit.
    let outcome = slice(&mut lane, 100_000_000, 1);
    assert_eq!(outcome.void, Some(VoidReason::Stalled));
    assert!(outcome.operations > 2 && outcome.failed == 4);
}

#[test]
fn a_frozen_moment_shows_in_the_highest_latency_and_only_there() {
    for clients in CLIENTS {
        let pause = Duration::from_millis(250);
        let freezing = server(Trouble::Freeze { at: 50, pause });
        let outcome = slice(
            &mut lane(&[&freezing], &look_up(), clients, PATIENCE),
            200,
            1,
        );
        let histogram = decoded(&outcome);
        assert_eq!(outcome.operations, 200);
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap();
        assert!(histogram.max() >= pause_ns, "{}", histogram.max());
        assert!(outcome.duration_ns >= pause_ns);
        assert!(histogram.value_at_quantile(0.5) < pause_ns / 2);
    }
}

#[test]
fn a_server_that_dies_makes_the_slice_void() {
    for clients in CLIENTS {
        let dying = server(Trouble::Die { at: 21 });
        let mut lane = lane(&[&dying], &look_up(), clients, PATIENCE);
        let outcome = slice(&mut lane, 1000, 1);
        assert_eq!(outcome.void, Some(VoidReason::ServerLost));
        assert!(
            outcome.operations + u64::from(clients) > 20
                && outcome.failed >= 1
                && outcome.failed <= u64::from(clients)
        );
        assert!(!lane.is_usable(0));
    }
}

#[test]
fn a_terminated_backend_is_reported_with_its_reason() {
    for clients in CLIENTS {
        let outcome = slice(
            &mut lane(
                &[&server(Trouble::Terminate { at: 5 })],
                &look_up(),
                clients,
                PATIENCE,
            ),
            100,
            1,
        );
        assert_eq!(outcome.void, Some(VoidReason::ServerLost));
        assert_eq!(outcome.errors.len(), 1);
        assert_eq!(
            (outcome.errors[0].sqlstate.as_str(), outcome.errors[0].count),
            ("57P01", 1)
        );
        assert!(outcome.void_detail.unwrap().contains("administrator"));
    }
}

#[test]
fn nonsense_is_noticed_without_hang_or_panic() {
    let lies: [&[u8]; 10] = [
        b"\0\0\0\0\0\0\0\0\0\0",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"D\xff\xff\xff\xff",
        b"D\0\0\0\x01",
        b"2\0\0\0\x04C\x7f\xff\xff\xff",
        b"2\0\0\0\x05\0",
        b"E\x7f\xff\xff\xff",
        b"2\0\0\0\x04C\0\0\0\x09DONE\0Z\0\0\0\x05X",
        b"Z\0\0\0\x05I",
        b"2\0\0\0\x04C\0\0\0\x09DONE\0Z\0\0\0\x05I2\0\0\0\x04C\0\0\0\x09DONE\0Z\0\0\0\x05I",
    ];
    for lie in lies {
        for clients in CLIENTS {
            let lying = server(Trouble::Lie {
                at: 9,
                bytes: lie.to_vec(),
            });
            let mut lane = lane(&[&lying], &look_up(), clients, PATIENCE);
            let outcome = slice(&mut lane, 1000, 1);
            assert_eq!(
                outcome.void,
                Some(VoidReason::ServerLost),
                "{}",
                lie.escape_ascii()
            );
            assert!(outcome.operations + u64::from(clients) > 8 && outcome.operations < 1000);
            assert!(outcome.void_detail.unwrap().contains("invalid answer"));
        }
    }
}

#[test]
fn an_answer_without_its_end_is_a_stall() {
    for clients in CLIENTS {
        let lying = server(Trouble::NotReady { at: 9 });
        let outcome = slice(
            &mut lane(&[&lying], &look_up(), clients, Duration::from_millis(200)),
            20,
            1,
        );
        assert_eq!(outcome.void, Some(VoidReason::Stalled));
    }
}

#[test]
fn each_operation_has_the_time_limit_for_itself() {
    let pause = Duration::from_millis(150);
    let slow = FakeServer::start(Behaviour {
        pause,
        ..Behaviour::default()
    });
    for clients in CLIENTS {
        let mut lane = lane(&[&slow], &look_up(), clients, Duration::from_secs(1));
        let outcome = slice(&mut lane, 10 * u64::from(clients), 1);
        assert_eq!(outcome.void, None);
        assert!(outcome.duration_ns > 1_000_000_000);
    }
}

#[test]
fn errors_are_counted_by_sqlstate_and_do_not_end_the_slice() {
    for clients in CLIENTS {
        let failing = FakeServer::start(Behaviour {
            rows: 1,
            troubles: vec![
                Trouble::Fail {
                    every: 10,
                    sqlstate: "40001",
                },
                Trouble::Fail {
                    every: 25,
                    sqlstate: "23505",
                },
            ],
            ..Behaviour::default()
        });
        let outcome = slice(
            &mut lane(&[&failing], &look_up(), clients, PATIENCE),
            100,
            1,
        );
        assert_eq!(
            (outcome.operations, outcome.failed, outcome.void),
            (88, 12, None)
        );
        let mut errors: Vec<_> = outcome
            .errors
            .iter()
            .map(|error| (error.sqlstate.as_str(), error.count))
            .collect();
        errors.sort_unstable();
        assert_eq!(
            errors,
            [("23505", 2), ("40001", 10)],
            "100, 50 are both: the first trouble wins"
        );
        assert_eq!(outcome.errors[0].first_message, "as asked");
        assert_eq!(
            failing.record().queries,
            [""; 0],
            "there was no transaction to roll back"
        );
    }
}

#[test]
fn a_failed_transaction_is_rolled_back_before_the_next_operation() {
    for clients in CLIENTS {
        let failing = server(Trouble::Fail {
            every: 4,
            sqlstate: "40P01",
        });
        let outcome = slice(
            &mut lane(&[&failing], &transaction(), clients, PATIENCE),
            40,
            1,
        );
        assert_eq!(
            (outcome.operations, outcome.failed, outcome.void),
            (30, 10, None)
        );
        assert_eq!(failing.record().queries, ["ROLLBACK"; 10]);
        assert_eq!(
            failing.executions(),
            3 * 30 + 2 * 10,
            "no COMMIT after an error"
        );
    }
}

#[test]
fn a_slice_in_which_everything_fails_is_void_but_keeps_its_connections() {
    let failing = server(Trouble::Fail {
        every: 1,
        sqlstate: "42P01",
    });
    let mut lane = lane(&[&failing], &look_up(), 1, PATIENCE);
    let outcome = lane.run_slice(
        0,
        deltabench_driver::SliceRequest {
            operations: 5,
            seed: 1,
            first_operation: 0,
        },
    );
    assert_eq!((outcome.operations, outcome.failed), (0, 5));
    assert_eq!(outcome.void, Some(VoidReason::NothingDone));
    assert!(lane.is_usable(0));
}
