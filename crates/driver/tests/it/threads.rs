//! Several threads on one server: the same operations, counted once, ended together.

use crate::programs::{executable, setup};
use crate::puppet::{Puppet, Reply};
use crate::{PATIENCE, decoded, look_up, slice, transaction};
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::slice::VoidReason;
use deltabench_model::work::pgbench::QueryMode;
use deltabench_testkit::{Behaviour, FakeServer, Trouble};
use deltabench_workload::executable::Executable;
use proptest::prelude::*;
use std::time::Duration;

/// How a lane with threads is to be.
#[derive(Debug, Clone, Copy)]
struct Shape {
    clients: u32,
    jobs: u32,
    rate: Option<f64>,
}

const FOUR_BY_TWO: Shape = Shape {
    clients: 4,
    jobs: 2,
    rate: None,
};

fn threaded(server: &FakeServer, executable: &Executable, shape: Shape, limit: Duration) -> Lane {
    Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable,
        clients: shape.clients,
        jobs: shape.jobs,
        cores: &[],
        op_timeout: limit,
        rate: shape.rate,
    })
    .unwrap()
}

/// What a server was sent in two slices, in no order.
fn sent(executable: &Executable, shape: Shape, operations: u64) -> Vec<Vec<u8>> {
    let server = FakeServer::start(Behaviour {
        rows: 1,
        row_bytes: 8,
        ..Behaviour::default()
    });
    let mut lane = threaded(&server, executable, shape, PATIENCE);
    for first_operation in [0, operations] {
        let request = SliceRequest {
            operations,
            seed: 7 + first_operation,
            first_operation,
        };
        let outcome = lane.run_slice(0, request);
        assert_eq!((outcome.operations, &outcome.void), (operations, &None));
        assert_eq!(decoded(&outcome).len(), operations);
        assert_eq!(outcome.rows % operations, 0);
    }
    let mut binds = server.record().binds;
    binds.sort();
    binds
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_number_of_threads_sends_the_same_operations(
        clients in 1_u32..9,
        jobs in 2_u32..6,
        operations in 1_u64..200,
        rate in proptest::option::of(5_000.0..50_000.0),
        whole in any::<bool>(),
    ) {
        let executable = if whole { transaction() } else { look_up() };
        let one = sent(&executable, Shape { clients: 1, jobs: 1, rate: None }, operations);
        let many = sent(&executable, Shape { clients, jobs, rate }, operations);
        prop_assert_eq!(one, many);
    }
}

#[test]
fn each_thread_has_its_clients_and_all_of_them_work() {
    // Long against what a busy machine adds: one after the other would take four times as long.
    let pause = Duration::from_millis(100);
    let server = FakeServer::start(Behaviour {
        pause,
        ..Behaviour::default()
    });
    let mut lane = threaded(&server, &look_up(), FOUR_BY_TWO, PATIENCE);
    assert_eq!(lane.backend_pids(0).len(), 4);
    let parts = format!("{lane:?}").matches("Part {").count();
    assert_eq!(parts, 2, "one set of connections for each thread");
    let outcome = slice(&mut lane, 40, 1);
    assert_eq!(outcome.operations, 40);
    assert!(
        outcome.duration_ns >= 1_000_000_000,
        "ten after one another on each of four connections: {}",
        outcome.duration_ns
    );
    let all = u64::try_from(pause.as_nanos()).unwrap() * 40;
    assert!(
        outcome.duration_ns < all,
        "not one after the other: {}",
        outcome.duration_ns
    );
}

#[test]
fn the_calling_thread_may_use_its_cores_again_afterwards() {
    let cores = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"));
        line.unwrap().to_owned()
    };
    let before = cores();
    let server = FakeServer::start(Behaviour::default());
    let jobs = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    let all: Vec<usize> = (0..256).collect();
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &look_up(),
        clients: jobs,
        jobs,
        cores: all.get(..usize::try_from(jobs).unwrap()).unwrap(),
        op_timeout: PATIENCE,
        rate: None,
    })
    .unwrap();
    assert_eq!(slice(&mut lane, 50, 1).operations, 50);
    assert_eq!(cores(), before);
}

#[test]
fn a_thread_whose_only_connection_stands_still_is_noticed_while_others_go_on() {
    let limit = Duration::from_millis(500);
    let freezing = FakeServer::start(Behaviour {
        troubles: vec![Trouble::Freeze {
            at: 3,
            pause: PATIENCE,
        }],
        ..Behaviour::default()
    });
    let shape = Shape {
        clients: 2,
        ..FOUR_BY_TWO
    };
    let mut lane = threaded(&freezing, &look_up(), shape, limit);
    // Far more than the other can do within the limit.
    let outcome = slice(&mut lane, 100_000_000, 1);
    assert_eq!(outcome.void, Some(VoidReason::Stalled));
    assert!(outcome.operations > 2 && (1..=2).contains(&outcome.failed));
    assert!(!lane.is_usable(0));
}

#[test]
fn a_thread_that_is_through_is_not_taken_for_one_that_stands_still() {
    let limit = Duration::from_millis(1800);
    let server = FakeServer::start(Behaviour {
        pause: Duration::from_millis(1000),
        ..Behaviour::default()
    });
    let shape = Shape {
        clients: 2,
        ..FOUR_BY_TWO
    };
    let mut lane = threaded(&server, &look_up(), shape, limit);
    // Three answers of 1 s: the thread that gets one of them begins nothing for 2 s.
    let outcome = slice(&mut lane, 3, 1);
    assert_eq!(
        (outcome.operations, &outcome.void),
        (3, &None),
        "{outcome:?}"
    );
}

#[test]
fn a_server_that_dies_loses_the_slice_of_all_threads_and_can_be_reconnected() {
    for trouble in [Trouble::Die { at: 21 }, Trouble::Terminate { at: 21 }] {
        let dying = FakeServer::start(Behaviour {
            troubles: vec![trouble.clone()],
            ..Behaviour::default()
        });
        let mut lane = threaded(&dying, &look_up(), FOUR_BY_TWO, PATIENCE);
        let outcome = slice(&mut lane, 10_000_000, 1);
        assert_eq!(outcome.void, Some(VoidReason::ServerLost), "{outcome:?}");
        assert!(outcome.operations + 4 > 20 && (1..=4).contains(&outcome.failed));
        assert!(!lane.is_usable(0));
        if matches!(trouble, Trouble::Terminate { .. }) {
            let found = outcome
                .errors
                .iter()
                .find(|error| error.sqlstate == "57P01");
            assert_eq!(found.map(|error| error.count), Some(1), "{outcome:?}");
            lane.reconnect(0).unwrap();
            assert_eq!(slice(&mut lane, 10, 1).operations, 10);
        }
    }
}

#[test]
fn a_lost_connection_ends_the_slice_of_threads_that_wait_for_its_locks() {
    // From the 22nd on nothing is answered, as if all waited for what the terminated one has locked.
    let dying = FakeServer::start(Behaviour {
        troubles: vec![Trouble::Stall { from: 22 }, Trouble::Terminate { at: 21 }],
        ..Behaviour::default()
    });
    let mut lane = threaded(&dying, &look_up(), FOUR_BY_TWO, PATIENCE);
    let outcome = slice(&mut lane, 1000, 1);
    assert_eq!(outcome.void, Some(VoidReason::ServerLost), "{outcome:?}");
    assert_eq!(outcome.errors[0].sqlstate, "57P01");
}

#[test]
fn errors_of_all_threads_are_counted_by_sqlstate() {
    let failing = FakeServer::start(Behaviour {
        troubles: vec![Trouble::Fail {
            every: 4,
            sqlstate: "40P01",
        }],
        ..Behaviour::default()
    });
    let mut lane = threaded(&failing, &transaction(), FOUR_BY_TWO, PATIENCE);
    let outcome = slice(&mut lane, 400, 1);
    assert_eq!((outcome.operations, outcome.failed), (300, 100));
    assert_eq!(outcome.errors.len(), 1);
    assert_eq!(outcome.errors[0].count, 100);
}

fn scripts(jobs: u32, rate: Option<f64>) -> SliceOutcome {
    let server = Puppet::start(10_000, |_| Reply::Done);
    let scripts = executable(
        &setup(QueryMode::Prepared),
        &[("select 1;", 1), ("select 2;", 3)],
    );
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[server.address()],
        executable: &scripts,
        clients: 4,
        jobs,
        cores: &[],
        op_timeout: PATIENCE,
        rate,
    })
    .unwrap();
    slice(&mut lane, 200, 5)
}

#[test]
fn transactions_are_counted_by_script_over_all_threads() {
    let by_script = |outcome: &SliceOutcome| -> Vec<u64> {
        outcome
            .scripts
            .iter()
            .map(|tally| tally.operations)
            .collect()
    };
    let one = by_script(&scripts(1, None));
    assert_eq!(one.iter().sum::<u64>(), 200);
    assert!(
        one.iter().all(|count| *count > 20),
        "both are drawn: {one:?}"
    );
    for (jobs, rate) in [(2, None), (4, None), (3, Some(20_000.0))] {
        assert_eq!(by_script(&scripts(jobs, rate)), one, "{jobs} threads");
    }
}

#[test]
fn a_frozen_thread_does_not_hold_up_the_schedule_of_the_others() {
    // One of four connections stands still for 1 s; 400 operations are due meanwhile, and the other three
    // can do them. Only the one that was sent there is late, and what a busy machine keeps for half a second.
    let freezing = FakeServer::start(Behaviour {
        troubles: vec![Trouble::Freeze {
            at: 100,
            pause: Duration::from_secs(1),
        }],
        ..Behaviour::default()
    });
    let shape = Shape {
        rate: Some(400.0),
        ..FOUR_BY_TWO
    };
    let mut lane = threaded(&freezing, &look_up(), shape, PATIENCE);
    let outcome = slice(&mut lane, 800, 1);
    assert_eq!((outcome.operations, &outcome.void), (800, &None));
    let latencies = decoded(&outcome);
    assert!(latencies.max() >= 1_000_000_000, "{}", latencies.max());
    let late = latencies.count_between(500_000_000, u64::MAX);
    assert!(late < 10, "those due meanwhile went elsewhere: {late}");
    assert!(
        outcome.duration_ns >= 1_995_000_000,
        "{}",
        outcome.duration_ns
    );
    assert!(outcome.schedule_lag_ns.is_some());
}
