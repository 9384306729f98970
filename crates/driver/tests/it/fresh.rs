//! Operations that open a connection each.

use crate::{PATIENCE, decoded, lane, look_up, slice, slice_on};
use deltabench_driver::{Lane, LaneSpec};
use deltabench_model::slice::VoidReason;
use deltabench_testkit::{Behaviour, FakeServer, Trouble};
use deltabench_workload::executable::Executable;
use std::time::Duration;

fn reconnecting() -> Executable {
    Executable {
        reconnects: true,
        ..look_up()
    }
}

fn server(troubles: Vec<Trouble>) -> FakeServer {
    FakeServer::start(Behaviour {
        rows: 2,
        row_bytes: 10,
        troubles,
        ..Behaviour::default()
    })
}

#[test]
fn each_operation_opens_a_connection_and_closes_it_before_the_slice_ends() {
    for clients in [1, 3] {
        let server = server(Vec::new());
        let mut lane = lane(&[&server], &reconnecting(), clients, PATIENCE);
        assert!(server.all_closed(), "no connection is kept");
        for (nth, operations) in [(1, 1), (2, 40)] {
            let before = server.record();
            let outcome = slice(&mut lane, operations, nth);
            assert_eq!((outcome.operations, outcome.failed), (operations, 0));
            assert_eq!((outcome.rows, outcome.void), (2 * operations, None));
            assert!(server.all_closed());
            let after = server.record();
            let opened = after.start_ups.len() - before.start_ups.len();
            assert_eq!(u64::try_from(opened).unwrap(), operations);
            assert_eq!(
                after.goodbyes,
                u64::try_from(after.start_ups.len()).unwrap()
            );
        }
    }
}

#[test]
fn the_operations_are_those_of_connections_that_stay_whatever_the_number_of_clients() {
    let sent = |executable: &Executable, clients| {
        let server = server(Vec::new());
        slice(&mut lane(&[&server], executable, clients, PATIENCE), 30, 7);
        let mut binds = server.record().binds;
        binds.sort();
        binds
    };
    let kept = sent(&look_up(), 1);
    assert_eq!(kept.len(), 30);
    for clients in [1, 4] {
        assert_eq!(sent(&reconnecting(), clients), kept);
    }
}

#[test]
fn a_latency_has_the_opening_in_it() {
    let pause = Duration::from_millis(5);
    let server = FakeServer::start(Behaviour {
        start_up_pause: pause,
        ..Behaviour::default()
    });
    let mut lane = lane(&[&server], &reconnecting(), 1, PATIENCE);
    let shortest = decoded(&slice(&mut lane, 10, 1)).min();
    assert!(
        u128::from(shortest) > pause.as_nanos() * 99 / 100,
        "{shortest} ns"
    );
}

#[test]
fn a_server_that_stalls_or_dies_makes_the_slice_void_and_can_be_used_again_if_it_lives() {
    let stalled = server(vec![Trouble::Stall { from: 5 }]);
    let limit = Duration::from_millis(200);
    let mut one = lane(&[&stalled], &reconnecting(), 2, limit);
    let outcome = slice(&mut one, 20, 1);
    assert_eq!(outcome.void, Some(VoidReason::Stalled));
    assert!(outcome.operations < 5);
    assert!(!one.is_usable(0));

    let fine = server(Vec::new());
    let dead = server(vec![Trouble::Die { at: 3 }]);
    let mut both = lane(&[&fine, &dead], &reconnecting(), 1, PATIENCE);
    assert_eq!(
        slice_on(&mut both, 1, 20, 1).void,
        Some(VoidReason::ServerLost)
    );
    assert!(!both.is_usable(1));
    assert_eq!(slice_on(&mut both, 0, 20, 1).operations, 20);
}

#[test]
fn a_rate_is_refused() {
    let server = server(Vec::new());
    let refused = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &reconnecting(),
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: PATIENCE,
        rate: Some(10.0),
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("a connection for each operation"), "{error}");
}
