//! Rounds in which something else kept a server off its core.

use crate::builder::*;
use deltabench_compare::analyse;
use deltabench_compare::comparison::Comparison;
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::{Pins, Placement};
use deltabench_model::slice::Slice;

const MS: u64 = 1_000_000;

/// Twelve blocks of ten rounds; a slice takes 40 ms, 10 of them the client's.
fn slices_with(change: impl Fn(&mut Slice)) -> Vec<Slice> {
    let mut slices = Vec::new();
    for (block, round) in (0..12).flat_map(|block| (0..10).map(move |round| (block, round))) {
        for server in [BASE, PLACEBO, CANDIDATE] {
            let mut one = slice(server, block, round, 1000.0, None);
            one.operations = 1000;
            one.duration_ns = 40 * MS;
            one.client_cpu_ns = 10 * MS;
            one.server_cpu_ns = Some(30 * MS);
            one.run_queue_wait_ns = Some(10 * MS);
            change(&mut one);
            slices.push(one);
        }
    }
    slices
}

fn disturbed(change: impl Fn(&mut Slice)) -> u64 {
    found(change, |_| {}).cells[0].interference.disturbed_rounds
}

fn found(
    change: impl Fn(&mut Slice),
    plan_change: impl Fn(&mut deltabench_model::plan::Plan),
) -> Comparison {
    let mut plan = plan(vec![cell(1, false)]);
    plan.placement_single = Placement::SameCore;
    plan_change(&mut plan);
    analyse(&plan, &slices_with(change), Vec::new())
}

/// In one round of each block something else has the core for half of a slice, of each server in turn.
fn kept_off(slice: &mut Slice) {
    let servers = [BASE, PLACEBO, CANDIDATE];
    if slice.round == 4 && slice.server == servers[usize::try_from(slice.block % 3).unwrap()] {
        slice.duration_ns = 80 * MS;
        slice.run_queue_wait_ns = Some(45 * MS);
    }
}

#[test]
fn rounds_of_a_slow_core_count() {
    let slow = |slice: &mut Slice| {
        if slice.round == slice.block % 10 {
            slice.client_cpu_ns = 13 * MS;
            slice.server_cpu_ns = Some(40 * MS);
            slice.duration_ns = 53 * MS;
        }
    };
    assert_eq!(disturbed(slow), 0);
}

#[test]
fn only_servers_on_the_clients_core_are_asked_what_they_waited_for() {
    let asked = |change: fn(&mut deltabench_model::plan::Plan)| {
        found(kept_off, change).cells[0]
            .interference
            .disturbed_rounds
    };
    assert_eq!(asked(|_| {}), 12);
    assert_eq!(asked(|plan| plan.placement_single = Placement::Split), 0);
    assert_eq!(asked(|plan| plan.cells[0].rate = Some(100.0)), 0);
    assert_eq!(
        asked(|plan| {
            plan.pins = Some(Pins {
                server: vec![0],
                client: vec![1],
            });
        }),
        0
    );
}

#[test]
fn load_on_other_cores_disturbs_only_where_nobody_knows_who_had_the_servers_core() {
    let load = |slice: &mut Slice| {
        if slice.round == 2 {
            slice.foreign_cpu_ns = Some(30 * MS);
        }
    };
    assert_eq!(disturbed(load), 0);
    let unknown = |slice: &mut Slice| {
        load(slice);
        slice.run_queue_wait_ns = None;
    };
    assert_eq!(disturbed(unknown), 12);
    let split = |plan: &mut deltabench_model::plan::Plan| plan.placement_single = Placement::Split;
    assert_eq!(
        found(load, split).cells[0].interference.disturbed_rounds,
        12
    );
}

#[test]
fn a_server_that_sleeps_is_not_disturbed_and_one_that_is_kept_off_its_core_is() {
    let asleep = |slice: &mut Slice| {
        if slice.round == 4 && slice.server == CANDIDATE {
            slice.duration_ns = 80 * MS;
        }
    };
    assert_eq!(disturbed(asleep), 0, "its own wait");
    assert_eq!(disturbed(kept_off), 12);
    // Behind a process of its own, while it also sleeps: nobody else shows that.
    let own = |slice: &mut Slice| {
        if slice.round == 4 && slice.server == CANDIDATE {
            slice.duration_ns = 80 * MS;
            slice.run_queue_wait_ns = Some(45 * MS);
        }
    };
    // Six blocks can tell that; what the first ones left out is little.
    assert_eq!(disturbed(own), 5);
    let comparison = found(own, |_| {});
    assert_eq!(comparison.cells[0].blocks, 12);
}

#[test]
fn processes_that_are_busy_on_other_cores_are_told_and_disturb_nothing() {
    let told = |comparison: &Comparison| -> Vec<String> {
        let all = comparison.findings.iter();
        let own = all.filter(|finding| finding.kind == FindingKind::Neighbours);
        own.map(|finding| finding.text.clone()).collect()
    };
    // Half of a core on average, 0 and 0.9 in two blocks of twelve.
    let busy = |slice: &mut Slice| {
        let share = match slice.block {
            0 => 0,
            1 => 90,
            _ => 51,
        };
        slice.foreign_cpu_ns = Some(slice.duration_ns / 100 * share);
    };
    let comparison = found(busy, |_| {});
    assert_eq!(comparison.cells[0].interference.disturbed_rounds, 0);
    let [text] = &told(&comparison)[..] else {
        panic!("{:?}", comparison.findings)
    };
    let said = "other processes used 0.50 cores on average, 0.00 to 0.90 from block to block";
    assert!(text.contains(said), "{text}");
    let little = |slice: &mut Slice| slice.foreign_cpu_ns = Some(slice.duration_ns / 11);
    assert!(told(&found(little, |_| {})).is_empty());
    // Where it disturbs rounds, that says it.
    let other_core = found(busy, |plan| plan.placement_single = Placement::Split);
    assert!(other_core.cells[0].interference.disturbed_rounds > 0);
    assert!(told(&other_core).is_empty());
}
