//! Servers that do not fit in memory together, and servers on the network.

use crate::lab::{Lab, cell, installations, plan, value};
use deltabench_kinds::run_half;
use deltabench_model::endpoint::Endpoint;
use deltabench_model::plan::{DataState, ServerId, Transport};
use deltabench_run::estimate::occupancy;
use deltabench_run::occupancy::Occupancy;
use deltabench_run::schedule::BlockSchedule;
use std::sync::atomic::AtomicBool;

/// `shared_buffers` of which one server fits and three do not, MB.
fn two_fifths_of_memory() -> u64 {
    deltabench_proc::memory::memory_available().unwrap() / (1 << 20) * 2 / 5
}

#[test]
fn servers_too_large_for_each_other_are_rotated_and_keep_their_tables_in_between() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let write = cell("update-index", true, DataState::Fresh);
    let mut plan = plan(&[installation; 3], vec![write.clone()], 1000);
    assert_eq!(
        occupancy(&plan, run_half(&plan.work), &lab.host).unwrap(),
        Occupancy::Together
    );
    let megabytes = two_fifths_of_memory();
    plan.settings = vec![("shared_buffers".to_owned(), format!("{megabytes}MB"))];
    assert_eq!(
        occupancy(&plan, run_half(&plan.work), &lab.host).unwrap(),
        Occupancy::Rotated
    );
    let mut fleet = lab.fleet(&plan, "rotated").unwrap();
    assert_eq!(fleet.occupancy(), Occupancy::Rotated);
    let stop = AtomicBool::new(false);
    fleet.load(&[], &stop, &mut |_| {}).unwrap().unwrap();
    let schedule = BlockSchedule::of(&plan, 0);
    let sum = "SELECT sum(k) FROM sbtest1";
    let mut sums = Vec::new();
    for server in 0..3 {
        let address = fleet.start_one(&schedule, ServerId(server)).unwrap();
        fleet.renew(&schedule, ServerId(server), &write).unwrap();
        value(
            &plan,
            &address,
            &write,
            "UPDATE sbtest1 SET k = 1 RETURNING k",
        );
        fleet.stop_one(&schedule, ServerId(server)).unwrap();
    }
    for server in 0..3 {
        let address = fleet.start_one(&schedule, ServerId(server)).unwrap();
        assert!(fleet.warm(&schedule, ServerId(server), &write).unwrap());
        sums.push(value(&plan, &address, &write, sum));
        fleet.stop_one(&schedule, ServerId(server)).unwrap();
    }
    assert_eq!(sums, ["1000", "1000", "1000"]);
    fleet.dismantle().unwrap();
    plan.settings = vec![("shared_buffers".to_owned(), format!("{}MB", megabytes * 3))];
    let refused = occupancy(&plan, run_half(&plan.work), &lab.host).unwrap_err();
    assert!(refused.error.contains("memory"), "{refused}");
    assert!(lab.is_empty());
}

#[test]
fn clients_come_over_the_network_where_that_is_asked_for_and_set_up_does_not() {
    let lab = Lab::new();
    let installation = installations().pop().unwrap();
    let write = cell("update-index", true, DataState::Fresh);
    let mut plan = plan(&[&installation], vec![write.clone()], 1000);
    plan.transport = Transport::Tls;
    let mut fleet = lab.fleet(&plan, "network").unwrap();
    let stop = AtomicBool::new(false);
    fleet.load(&[], &stop, &mut |_| {}).unwrap().unwrap();
    let schedule = BlockSchedule::of(&plan, 0);
    let address = fleet.start(&schedule).unwrap().remove(0);
    fleet.renew(&schedule, ServerId(0), &write).unwrap();
    assert!(matches!(address.endpoint, Endpoint::Tcp { .. }));
    let ssl = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(value(&plan, &address, &write, ssl), "t");
    fleet.dismantle().unwrap();
}
