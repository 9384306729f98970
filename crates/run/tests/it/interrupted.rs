//! Statements of set-up work end when the user interrupts.

use crate::lab::{Lab, cell, executables, installations, plan};
use crate::remote::Theirs;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{DataState, Plan, WorkloadSource};
use std::sync::atomic::{AtomicBool, Ordering};

/// Its table takes two minutes, and then has too many rows.
const SLOW: &str = r#"
format = "deltabench.workload"
version = 1
name = "slow"
group = "point"
label = "1"
writes = false
description = "Reads a row."
source = "a test"

[[table]]
name = "slow"
create = "CREATE TABLE {table} (id bigint NOT NULL)"
rows = "rows"
fill = "INSERT INTO {table} SELECT i FROM pg_sleep(120), generate_series(0, {rows}) AS i"

[[step]]
sql = "SELECT id FROM slow"
"#;

fn slow(installation: &Installation) -> Plan {
    let cells = vec![cell("slow", false, DataState::Fresh)];
    let mut plan = plan(&[installation; 2], cells, 10);
    plan.workloads.push(WorkloadSource {
        file: "slow.toml".to_owned(),
        text: SLOW.to_owned(),
    });
    plan
}

/// Interrupts when loading begins; without an end of the statement the table is refused.
fn ends_early(plan: &Plan, lab: &Lab) {
    let mut fleet = lab.fleet(plan, "ended").unwrap();
    let stop = AtomicBool::new(false);
    let mut begun = |_| stop.store(true, Ordering::Relaxed);
    let readbacks = fleet.load(&executables(plan), &stop, &mut begun);
    assert_eq!(readbacks.unwrap(), None);
    fleet.dismantle().unwrap();
    assert!(lab.is_empty());
}

#[test]
fn a_server_of_ours_ends_with_the_statement_that_loads_it() {
    let lab = Lab::new();
    for installation in installations() {
        ends_early(&slow(&installation), &lab);
    }
}

#[test]
fn a_statement_that_loads_a_server_of_others_is_cancelled() {
    let lab = Lab::new();
    let theirs = Theirs::start(&installations().pop().unwrap());
    ends_early(&slow(&theirs.installation()), &lab);
    assert!(theirs.ours().is_empty(), "its schemas are dropped");
}
