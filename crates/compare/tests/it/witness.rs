//! Rounds that the client's own CPU, or a server kept off its core, shows to be disturbed.

use crate::builder::*;
use deltabench_compare::analyse;
use deltabench_compare::comparison::Comparison;
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

/// The core is a third slower in one round of each block.
fn slow_core(slice: &mut Slice) {
    if slice.round == slice.block % 10 {
        slice.client_cpu_ns = 13 * MS;
        slice.server_cpu_ns = Some(40 * MS);
        slice.duration_ns = 53 * MS;
    }
}

#[test]
fn a_client_that_needs_more_cpu_than_usual_tells_of_a_slow_core() {
    assert_eq!(disturbed(|_| {}), 0);
    assert_eq!(disturbed(slow_core), 12);
    // 4 % is within the client's own scatter.
    let little = |slice: &mut Slice| {
        if slice.round == 3 {
            slice.client_cpu_ns += 400_000;
        }
    };
    assert_eq!(disturbed(little), 0);
}

#[test]
fn only_a_client_on_the_servers_core_is_asked() {
    let asked = |change: fn(&mut deltabench_model::plan::Plan)| {
        found(slow_core, change).cells[0]
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
fn what_one_server_alone_does_to_the_client_leaves_nothing_out() {
    // The candidate costs the client more in one of ten slices: whatever it is, it belongs to the candidate.
    let of_candidate = |slice: &mut Slice| {
        if slice.server == CANDIDATE {
            slow_core(slice);
        }
    };
    // Six blocks can tell that; what the first ones left out is little.
    let rounds = disturbed(of_candidate);
    assert_eq!(rounds, 5);
    let comparison = found(of_candidate, |_| {});
    assert_eq!(comparison.cells[0].blocks, 12);
    let longer = |slice: &mut Slice| {
        if slice.server == CANDIDATE && slice.round < 3 {
            slice.client_cpu_ns = 13 * MS;
        }
    };
    assert_eq!(disturbed(longer), 3, "three a block are told sooner");
}

#[test]
fn a_server_that_sleeps_is_not_disturbed_and_one_that_is_kept_off_its_core_is() {
    let asleep = |slice: &mut Slice| {
        if slice.round == 4 && slice.server == CANDIDATE {
            slice.duration_ns = 80 * MS;
        }
    };
    assert_eq!(disturbed(asleep), 0, "its own wait");
    let kept_off = |slice: &mut Slice| {
        slice.duration_ns = 80 * MS;
        slice.run_queue_wait_ns = Some(45 * MS);
    };
    let any = |slice: &mut Slice| {
        let servers = [BASE, PLACEBO, CANDIDATE];
        if slice.round == 4 && slice.server == servers[usize::try_from(slice.block % 3).unwrap()] {
            kept_off(slice);
        }
    };
    assert_eq!(disturbed(any), 12);
    // Behind a process of its own, while it also sleeps: nobody else shows that.
    let own = |slice: &mut Slice| {
        if slice.round == 4 && slice.server == CANDIDATE {
            kept_off(slice);
        }
    };
    assert_eq!(disturbed(own), 5);
}
