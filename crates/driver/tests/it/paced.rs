//! Open loops: latency counts from the schedule, nothing is skipped, waiting costs nothing.

use crate::{PATIENCE, decoded, look_up, slice, transaction};
use deltabench_driver::{Lane, LaneSpec, WireError};
use deltabench_testkit::{Behaviour, FakeServer, Trouble};
use deltabench_workload::executable::Executable;
use std::time::Duration;

fn paced(server: &FakeServer, executable: &Executable, clients: u32, rate: f64) -> Lane {
    Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable,
        clients,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate: Some(rate),
    })
    .unwrap()
}

/// Coordinated omission, the case of the frozen second: 1000 operations per second are asked for, and the
/// server answers nothing for one of two seconds.
///
/// Of the 2000 operations, 1000 are due while it is frozen; the one that is due t before the end of the
/// freeze takes at least t. So at least n operations take longer than 1 s - n ms: 20 (p99) more than 980 ms,
/// 200 (p90) more than 800 ms, 600 (p70) more than 400 ms. A loop that counts from when it could send sees
/// as many slow operations as it has connections.
#[test]
fn a_frozen_second_shows_in_every_operation_that_was_due_in_it() {
    for clients in [1, 8] {
        let freeze = Trouble::FreezeAll {
            at: 500,
            pause: Duration::from_secs(1),
        };
        let server = FakeServer::start(Behaviour {
            troubles: vec![freeze],
            ..Behaviour::default()
        });
        let outcome = slice(&mut paced(&server, &look_up(), clients, 1000.0), 2000, 1);
        assert_eq!((outcome.operations, &outcome.void), (2000, &None));
        let histogram = decoded(&outcome);
        for (quantile, least_ms) in [(0.99, 975), (0.9, 795), (0.7, 395)] {
            let found = histogram.value_at_quantile(quantile);
            assert!(
                found >= least_ms * 1_000_000,
                "p{quantile} with {clients} clients: {found} ns"
            );
        }
        assert!(
            outcome.duration_ns >= 1_999_000_000,
            "the schedule is kept where the server is quick"
        );
    }
}

#[test]
fn a_schedule_is_kept_at_a_constant_distance_and_without_burning_a_core() {
    for clients in [1, 4] {
        let server = FakeServer::start(Behaviour::default());
        let outcome = slice(&mut paced(&server, &look_up(), clients, 500.0), 101, 1);
        assert_eq!(outcome.operations, 101);
        assert!(
            outcome.duration_ns >= 200_000_000,
            "the last of 101 is due after 0.2 s: {}",
            outcome.duration_ns
        );
        assert!(
            outcome.client_cpu_ns < outcome.duration_ns / 2,
            "it sleeps until something is due: {outcome:?}"
        );
        assert!(outcome.schedule_lag_ns.is_some());
    }
}

#[test]
fn a_rate_above_what_the_server_can_do_is_worked_off_late_and_whole() {
    let server = FakeServer::start(Behaviour {
        pause: Duration::from_millis(2),
        ..Behaviour::default()
    });
    let outcome = slice(&mut paced(&server, &look_up(), 2, 100_000.0), 100, 1);
    assert_eq!((outcome.operations, &outcome.void), (100, &None));
    let slowest = decoded(&outcome).max();
    assert!(
        slowest >= 98_000_000,
        "50 after one another on each connection, from when they were due: {slowest}"
    );
}

#[test]
fn waiting_for_a_rare_operation_is_no_stall() {
    let server = FakeServer::start(Behaviour::default());
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &look_up(),
        clients: 2,
        jobs: 1,
        cores: &[],
        op_timeout: Duration::from_millis(500),
        rate: Some(1.0),
    })
    .unwrap();
    let outcome = slice(&mut lane, 2, 1);
    assert_eq!((outcome.operations, outcome.void), (2, None));
    assert!(
        outcome.duration_ns >= 2_000_000_000,
        "the second one's time too"
    );
}

#[test]
fn transactions_and_their_failures_keep_the_schedule_too() {
    let server = FakeServer::start(Behaviour {
        troubles: vec![Trouble::Fail {
            every: 4,
            sqlstate: "40P01",
        }],
        ..Behaviour::default()
    });
    let outcome = slice(&mut paced(&server, &transaction(), 2, 4000.0), 40, 1);
    assert_eq!((outcome.operations, outcome.failed), (30, 10));
    assert_eq!(server.record().queries, ["ROLLBACK"; 10]);
}

#[test]
fn a_closed_loop_has_no_schedule_to_be_late_on() {
    let server = FakeServer::start(Behaviour::default());
    let mut lane = crate::lane(&[&server], &look_up(), 2, PATIENCE);
    let outcome = slice(&mut lane, 10, 1);
    assert_eq!(outcome.schedule_lag_ns, None);
}

#[test]
fn a_rate_that_is_none_is_refused() {
    let server = FakeServer::start(Behaviour::default());
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = Lane::connect(&LaneSpec {
            servers: &[server.address()],
            executable: &look_up(),
            clients: 1,
            jobs: 1,
            cores: &[],
            op_timeout: PATIENCE,
            rate: Some(rate),
        });
        assert!(matches!(refused, Err(WireError::Workload { .. })), "{rate}");
    }
}
