//! Slices of several servers that are under way at the same time.

use crate::{PATIENCE, decoded, lane, look_up, transaction};
use deltabench_driver::{Lane, SliceOutcome, SliceRequest, Stops};
use deltabench_model::slice::VoidReason;
use deltabench_testkit::{Behaviour, FakeServer, Trouble};
use std::time::{Duration, Instant};

const TURN: Duration = Duration::from_millis(2);

/// What was done at the ends of turns, in order.
#[derive(Debug, Default)]
struct Log(Vec<(&'static str, usize)>);

impl Stops for Log {
    fn go_on(&mut self, server: usize) {
        self.0.push(("goes on", server));
    }

    fn stop(&mut self, server: usize) -> Instant {
        self.0.push(("stops", server));
        Instant::now()
    }

    fn over(&mut self, server: usize, _: u64) {
        self.0.push(("over", server));
    }
}

impl Log {
    /// Turns of a server that ended before its slice.
    fn stops(&self, server: usize) -> usize {
        let stopped = |entry: &&(&str, usize)| **entry == ("stops", server);
        self.0.iter().filter(stopped).count()
    }

    /// Checks that no server works in the turn of another, and that none is left stopped.
    fn check(&self) {
        let mut entries = self.0.iter().peekable();
        let mut stopped = std::collections::BTreeSet::new();
        while let Some((what, server)) = entries.next() {
            assert_eq!(*what, "goes on", "{self:?}");
            stopped.remove(server);
            if entries
                .next_if(|entry| **entry == ("stops", *server))
                .is_some()
            {
                stopped.insert(*server);
            }
            assert_eq!(entries.next(), Some(&("over", *server)), "{self:?}");
        }
        assert!(stopped.is_empty(), "{self:?}");
    }
}

fn server(troubles: Vec<Trouble>) -> FakeServer {
    FakeServer::start(Behaviour {
        rows: 2,
        row_bytes: 8,
        troubles,
        ..Behaviour::default()
    })
}

/// Answers the first execution after so many milliseconds.
fn late(milliseconds: u64) -> FakeServer {
    let pause = Duration::from_millis(milliseconds);
    server(vec![Trouble::Freeze { at: 1, pause }])
}

fn round(lane: &mut Lane, servers: &[usize], operations: u64) -> (Vec<SliceOutcome>, Log) {
    let request = SliceRequest {
        operations,
        seed: 7,
        first_operation: 0,
    };
    let mut log = Log::default();
    let outcomes = lane.run_interleaved(servers, request, TURN, &mut log);
    log.check();
    (outcomes, log)
}

/// Operations, and why a slice does not count.
fn ends(outcomes: &[SliceOutcome]) -> Vec<(u64, Option<VoidReason>)> {
    let end = |outcome: &SliceOutcome| (outcome.operations, outcome.void.clone());
    outcomes.iter().map(end).collect()
}

#[test]
fn all_servers_do_all_operations_and_their_times_leave_out_those_of_others() {
    for executable in [look_up(), transaction()] {
        let servers = [late(60), late(0), late(40)];
        let mut lane = lane(&servers.each_ref(), &executable, 1, PATIENCE);
        let began = Instant::now();
        let (outcomes, log) = round(&mut lane, &[2, 0, 1], 3);
        let passed = u64::try_from(began.elapsed().as_nanos()).unwrap();
        assert_eq!(outcomes.len(), 3);
        for outcome in &outcomes {
            assert_eq!((outcome.operations, outcome.failed), (3, 0));
            assert_eq!(outcome.void, None);
            assert!(outcome.client_cpu_ns > 0);
            let latencies = decoded(outcome);
            assert_eq!(latencies.len(), 3);
            assert!(latencies.max() <= outcome.duration_ns + outcome.duration_ns / 100);
        }
        let all: u64 = outcomes.iter().map(|outcome| outcome.duration_ns).sum();
        assert!(all <= passed, "{all} of {passed}");
        assert_eq!(log.0.first(), Some(&("goes on", 2)), "in the order given");
        assert!(log.stops(0) > 1 && log.stops(2) > 1, "{log:?}");
        let sorted = |server: &FakeServer| {
            let mut binds = server.record().binds;
            binds.sort();
            binds
        };
        assert_eq!(sorted(&servers[0]), sorted(&servers[1]), "the same work");
        assert_eq!(sorted(&servers[0]), sorted(&servers[2]), "the same work");
        assert!(
            outcomes
                .iter()
                .all(|outcome| outcome.rows == outcomes[0].rows)
        );
    }
}

#[test]
fn a_server_that_is_lost_costs_the_others_nothing() {
    let servers = [late(20), server(vec![Trouble::Die { at: 1 }]), late(30)];
    let mut lane = lane(&servers.each_ref(), &look_up(), 1, PATIENCE);
    let (outcomes, _) = round(&mut lane, &[0, 1, 2], 2);
    let found = ends(&outcomes);
    let lost = Some(VoidReason::ServerLost);
    assert_eq!(found, [(2, None), (0, lost.clone()), (2, None)]);
    assert!(!lane.is_usable(1));
    let (outcomes, log) = round(&mut lane, &[1, 2], 1);
    let found = ends(&outcomes);
    assert_eq!(found, [(0, lost), (1, None)]);
    assert!(log.0.iter().all(|(_, server)| *server == 2), "{log:?}");
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_limit_of_its_own_time() {
    let limit = Duration::from_millis(100);
    let servers = [server(vec![Trouble::Stall { from: 1 }]), late(20)];
    let mut lane = lane(&servers.each_ref(), &look_up(), 1, limit);
    let (outcomes, _) = round(&mut lane, &[0, 1], 1);
    assert_eq!(outcomes[0].void, Some(VoidReason::Stalled));
    assert!(outcomes[0].duration_ns >= 100_000_000, "{outcomes:?}");
    assert_eq!(ends(&outcomes)[1], (1, None));
}

#[test]
fn errors_of_a_server_are_counted_and_a_sequence_that_is_used_up_is_told() {
    let failing = Trouble::Fail {
        every: 2,
        sqlstate: "22012",
    };
    let servers = [server(vec![failing]), late(0)];
    let mut executable = look_up();
    executable.operations_max = Some(10);
    let mut lane = lane(&servers.each_ref(), &executable, 1, PATIENCE);
    let (outcomes, _) = round(&mut lane, &[0, 1], 10);
    assert_eq!((outcomes[0].operations, outcomes[0].failed), (5, 5));
    assert_eq!((outcomes[1].operations, outcomes[1].failed), (10, 0));
    let (outcomes, log) = round(&mut lane, &[0, 1], 11);
    assert!(log.0.is_empty());
    for outcome in outcomes {
        assert_eq!(outcome.void, Some(VoidReason::NothingDone));
        assert!(outcome.void_detail.unwrap().contains("used up"));
    }
}
