//! Counts of a run's cells, by runs that count for it.

use crate::lab_of_r;
use deltabench_lab::{analyse, count_name, counted_cells, explained};
use deltabench_model::counts::{CountRecord, Counting};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan, Role, ServerId};
use deltabench_model::profile::{Grower, NodeId};
use deltabench_store::{Found, RunState, Store};
use deltabench_testkit::small_run;

/// Of its cells only the last one of the measured run, on a base and a candidate.
fn counting_plan() -> Plan {
    let mut plan = small_run::plan();
    plan.servers.retain(|server| server.role != Role::Placebo);
    plan.cells.drain(..2);
    plan.observing.counting = Some(Counting::default());
    plan.counts = Some("r".to_owned());
    plan
}

/// Two windows, of which only the first is explained; the second differs half as much from 40 000.
fn count(store: &mut Store, run: &str, server: u32, each: u64) {
    let window = |(window, each): (u32, u64)| CountRecord {
        server: ServerId(server),
        cell: CellId(0),
        start: 0,
        window,
        operations: 100,
        instructions: each * 100,
        of_marks: 0,
        of_clock: 0,
        rows: 100,
        failed: 0,
        beside: None,
    };
    let records = [(0, each), (1, each.midpoint(40_000))].map(window);
    store.add_counts(run, &records).unwrap();
    let mut grower = Grower::new("PostgresMain");
    let node = grower.child(NodeId::ROOT, "exec_execute_message", "postgres");
    grower.take(node, i64::try_from(each * 100).unwrap(), 100);
    let profile = grower.grown().of(100);
    store
        .add_count_profile(run, (ServerId(server), CellId(0)), &profile)
        .unwrap();
}

#[test]
fn counts_for_a_run_are_its_own_and_a_killed_count_is_none() {
    let (_place, mut store, plan) = lab_of_r();
    let first = count_name("r", &[]);
    store
        .create_run(&first, &counting_plan(), RunState::Running, 3)
        .unwrap();
    count(&mut store, &first, 0, 40_000);
    // Killed before the candidate was counted.
    assert!(
        analyse("r", &plan, &store)
            .unwrap()
            .comparison
            .instructions
            .is_none()
    );
    assert_eq!(counted_cells("r", &plan, &store).unwrap(), []);
    let second = count_name("r", &store.counting_for("r").unwrap());
    assert_eq!(second, "r-count-2");
    store
        .create_run(&second, &counting_plan(), RunState::Running, 4)
        .unwrap();
    count(&mut store, &second, 0, 40_000);
    count(&mut store, &second, 1, 44_000);
    store.finish_run(&second, RunState::Finished, 5).unwrap();
    assert_eq!(counted_cells("r", &plan, &store).unwrap(), [CellId(2)]);
    let analysed = analyse("r", &plan, &store).unwrap();
    let comparison = &analysed.comparison;
    let counts = comparison.instructions.as_ref().unwrap();
    assert!(!counts.alone);
    let [counted] = counts.cells.as_slice() else {
        panic!("{counts:?}")
    };
    assert_eq!((counted.cell, counted.candidate), (CellId(2), ServerId(2)));
    assert!((counted.ratio - 1.075).abs() < 1e-9);
    let [told] = analysed.context.explained.as_slice() else {
        panic!("{:?}", analysed.context.explained)
    };
    assert_eq!(told.explanation.total(), (4_000_000, 4_400_000));
    let reason = &comparison.cells[2].reason;
    assert!(
        reason.ends_with("; +7.5 % instructions, most of it in exec_execute_message"),
        "{reason}"
    );
    let found = explained("r", (&plan, comparison, &[]), &store, &[CellId(2)], 12).unwrap();
    assert_eq!(found.len(), 1);
    // `last` is the run that was measured.
    assert_eq!(store.find_any("last").unwrap(), Found::Run("r".to_owned()));
    let withdrawal = Invalidation {
        cell: Some(CellId(0)),
        reason: "another program ran".to_owned(),
        at_unix_ms: 6,
    };
    store.invalidate(&second, &withdrawal).unwrap();
    assert_eq!(counted_cells("r", &plan, &store).unwrap(), []);
    let without = analyse("r", &plan, &store).unwrap();
    assert!(without.comparison.instructions.is_none());
}
