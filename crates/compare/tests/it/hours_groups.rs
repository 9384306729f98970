//! Geometric means over sessions of which one lacks a cell.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, GroupSummary, Metric};
use deltabench_compare::{analyse, combine};
use deltabench_model::plan::{CellId, Group, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_stats::summary::geometric_mean;

/// Two cells that read and did not change, and one that writes and is twice as fast.
const SPEEDS: [f64; 3] = [1.0, 1.0, 2.0];

/// A session of eight blocks without the cell that it `lacks`.
fn session(plan: &Plan, lacks: Option<usize>) -> Comparison {
    let of_cell = |place: usize| -> Vec<Slice> {
        let (same, rates) = (around(1.0, 0.004, 8), around(SPEEDS[place], 0.004, 8));
        let placebo = Blocks {
            server: PLACEBO,
            rates: &same,
            costs: &same,
        };
        let of_cell = slices(8, &[placebo, candidate(&rates, &same)]).into_iter();
        let cell = CellId(u32::try_from(place).unwrap());
        of_cell.map(|slice| Slice { cell, ..slice }).collect()
    };
    let cells = (0..SPEEDS.len()).filter(|place| lacks != Some(*place));
    let slices: Vec<Slice> = cells.flat_map(of_cell).collect();
    analyse(plan, &slices, Vec::new())
}

fn over(lacks: [Option<usize>; 4]) -> Comparison {
    let plan = as_run(plan(vec![cell(4, false), cell(4, false), cell(4, true)]));
    let all = lacks.map(|lacks| session(&plan, lacks));
    let mut first = all[0].clone();
    combine(&mut first, &all, &plan);
    first
}

fn mean_of(comparison: &Comparison, group: Option<Group>) -> Option<&GroupSummary> {
    let mut summaries = comparison.summaries.iter();
    summaries.find(|one| one.group == group && one.candidate == ServerId(2))
}

#[test]
fn a_mean_is_over_the_cells_that_all_sessions_have() {
    let whole = over([None; 4]);
    let all = mean_of(&whole, None).unwrap();
    assert_eq!((all.cells, all.of), (3, 3));
    assert!((all.throughput.estimate.powi(3) - 2.0).abs() < 1e-6);
    for lacks in 0..4 {
        let mut each = [None; 4];
        each[lacks] = Some(2);
        let found = over(each);
        // The cell itself has three sessions, and its verdict.
        let speed = metric(&found.cells[2], Metric::Throughput);
        assert!((speed.ratio.estimate - 2.0).abs() < 1e-6);
        let all = mean_of(&found, None).unwrap();
        assert_eq!((all.cells, all.of), (2, 3), "in session {lacks}");
        let shown: Vec<f64> = { found.cells[..2].iter() }
            .map(|cell| metric(cell, Metric::Throughput).ratio.estimate)
            .collect();
        let wanted = geometric_mean(&shown).unwrap();
        assert!((all.throughput.estimate - wanted).abs() < 1e-9);
        let (low, high) = all.throughput.ci95.unwrap();
        assert!(low > 0.99 && high < 1.01, "{low} {high}");
        assert!((all.server_cpu.unwrap().estimate - 1.0).abs() < 1e-9);
        // No cell of its group is in all sessions.
        assert_eq!(mean_of(&found, Some(Group::Write)), None);
        let reads = mean_of(&found, Some(Group::Point)).unwrap();
        assert_eq!((reads.cells, reads.of), (2, 2));
        let placebo = found.placebo.as_ref().unwrap();
        assert_eq!((placebo.cells, placebo.flagged), (3, 0));
    }
}

#[test]
fn a_group_that_the_first_session_lacks_in_part_is_shown() {
    let found = over([Some(0), None, None, None]);
    let reads = mean_of(&found, Some(Group::Point)).unwrap();
    assert_eq!((reads.cells, reads.of), (1, 2));
    let all = mean_of(&found, None).unwrap();
    assert_eq!((all.cells, all.of), (2, 3));
    assert!((all.throughput.estimate.powi(2) - 2.0).abs() < 1e-6);
}
