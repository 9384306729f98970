//! What is drawn anew, so that no server and no cell has a place of its own.

use crate::lab::{cell, plan};
use deltabench_model::plan::{CellId, DataState, Plan};
use deltabench_run::schedule::{BlockSchedule, VisitSchedule, insert_turn_order, parameters};
use deltabench_testkit::installations::installed;
use std::collections::BTreeSet;

const BLOCKS: u32 = 100;

/// Base, placebo and a candidate, and three cells.
fn three() -> Plan {
    let (base, candidate) = (installed("a"), installed("b"));
    let cells = ["point-query", "scan", "update-index"];
    let cells = cells.map(|name| cell(name, false, DataState::Fresh));
    plan(&[&base, &base, &candidate], cells.to_vec(), 1000)
}

/// How many different ones there are over many blocks.
fn different<T: Ord>(of: impl Fn(u32) -> T) -> usize {
    (0..BLOCKS).map(of).collect::<BTreeSet<T>>().len()
}

#[test]
fn every_order_of_starts_of_ports_and_of_cells_comes_in_some_block() {
    let plan = three();
    let block = |block| BlockSchedule::of(&plan, block);
    assert_eq!(different(|number| block(number).start_order), 6);
    assert_eq!(different(|number| block(number).ports), 6);
    assert_eq!(different(|number| block(number).cells), 6);
    // Each by itself: or the server that starts first would always have the first port.
    let both = |number| (block(number).start_order, block(number).ports);
    assert!(different(both) > 20);
}

#[test]
fn cells_of_a_block_have_rotations_of_their_own_and_every_core_is_used() {
    let plan = three();
    let visit = |block, cell: u32| {
        let planned = &plan.cells[usize::try_from(cell).unwrap()];
        VisitSchedule::of(&plan, block, CellId(cell), planned, &[0, 1, 2, 3])
    };
    let rotation = |block, cell| visit(block, cell).rotation;
    let alike = (0..BLOCKS).filter(|block| rotation(*block, 0) == rotation(*block, 1));
    // One in six by chance.
    assert!((5..40).contains(&alike.count()));
    assert_eq!(different(|block| visit(block, 0).server_cores), 4);
    let same = |block| visit(block, 0).server_cores == visit(block, 1).server_cores;
    assert!((0..BLOCKS).any(|block| !same(block)));
}

#[test]
fn no_two_rounds_of_a_run_have_the_same_parameters() {
    let plan = three();
    let places = (0..20).flat_map(|block| (0..3).map(move |cell| (block, cell)));
    let rounds = places.flat_map(|place| (0..20).map(move |round| (place, round)));
    let seeds: BTreeSet<u64> = rounds
        .map(|((block, cell), round)| parameters(&plan, block, CellId(cell), round))
        .collect();
    assert_eq!(seeds.len(), 20 * 3 * 20);
}

#[test]
fn turns_of_the_insert_benchmark_are_drawn_and_not_only_rotated() {
    let plan = three();
    let first = |block| insert_turn_order(&plan, block, CellId(0), 0);
    assert_eq!(different(first), 6);
}
