//! Which rounds other load disturbs, and what is done about it.

use crate::builder::*;
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_model::slice::Slice;

/// Placebo and candidate with no difference, eight blocks of four rounds, after a change to some slices.
fn with(change: impl Fn(&mut Slice)) -> Comparison {
    let rates = around(1.0, 0.01, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &rates,
        costs: &[],
    };
    let mut slices = slices(8, &[placebo, candidate(&rates, &[])]);
    for slice in &mut slices {
        // 100 s of builder time would hide any tick; slices of 40 ms are what a run has.
        slice.duration_ns /= 2500;
        slice.operations /= 2500;
        slice.server_cpu_ns = slice.server_cpu_ns.map(|cpu| cpu / 2500);
        change(slice);
    }
    analyse(&plan(vec![cell(4, false)]), &slices, Vec::new())
}

/// Rounds voided when one slice of one server in one round shows this.
fn voided(change: impl Fn(&mut Slice)) -> u64 {
    let comparison = with(|slice| {
        if (slice.server, slice.block, slice.round) == (PLACEBO, 2, 1) {
            change(slice);
        }
    });
    comparison.cells[0].interference.disturbed_rounds
}

const MS: u64 = 1_000_000;

#[test]
fn each_kind_of_interference_voids_its_round_and_the_clocks_own_error_does_not() {
    // A round of three slices of 40 ms: 120 ms.
    assert_eq!(
        voided(|slice| slice.steal_ns = Some(10 * MS)),
        1,
        "one tick of steal"
    );
    assert_eq!(voided(|slice| slice.steal_ns = Some(0)), 0);
    assert_eq!(
        voided(|slice| slice.foreign_cpu_ns = Some(20 * MS)),
        0,
        "two ticks"
    );
    assert_eq!(voided(|slice| slice.foreign_cpu_ns = Some(40 * MS)), 1);
    assert_eq!(
        voided(|slice| slice.idle_cpu_ns = Some(900_000)),
        0,
        "a few wake-ups"
    );
    assert_eq!(
        voided(|slice| slice.idle_cpu_ns = Some(2 * MS)),
        1,
        "a busy idle server"
    );
    assert_eq!(
        voided(|slice| slice.duration_ns *= 3),
        0,
        "outcomes are not looked at"
    );
}

#[test]
fn the_round_is_judged_as_a_whole_and_voided_for_every_pair() {
    // 14 ms in each of three slices is 42 ms in the round; no slice alone shows it.
    let comparison = with(|slice| {
        if (slice.block, slice.round) == (2, 1) {
            slice.foreign_cpu_ns = Some(14 * MS);
        }
    });
    for side in [&comparison.cells[0], &comparison.placebo_cells[0]] {
        assert_eq!(side.interference.disturbed_rounds, 1);
        assert_eq!((side.rounds, side.void_rounds, side.blocks), (31, 0, 8));
        assert!(
            !side
                .series
                .iter()
                .any(|round| (round.block, round.round) == (2, 1))
        );
    }
}

#[test]
fn estimates_with_and_without_the_voided_rounds_are_both_there() {
    // Disturbed rounds in which the candidate lost a fifth.
    let comparison = with(|slice| {
        if slice.round == 1 {
            slice.foreign_cpu_ns = Some(40 * MS);
            if slice.server == CANDIDATE {
                slice.duration_ns = slice.duration_ns * 5 / 4;
            }
        }
    });
    let cell = only_cell(&comparison);
    let found = &cell.interference;
    assert_eq!((found.disturbed_rounds, found.contended), (8, false));
    let (with, without) = (found.with_voided.unwrap(), found.without_voided.unwrap());
    let printed = metric(cell, Metric::Throughput).ratio;
    assert_eq!(
        without.throughput, printed,
        "what is printed leaves them out"
    );
    assert!((printed.estimate - 1.0).abs() < 1e-6);
    // The same work in four rounds, one of them a quarter longer.
    assert!((with.throughput.estimate - 4.0 / 4.25).abs() < 1e-6);
    assert!(comparison.findings.is_empty());
    let quiet = with_nothing();
    assert_eq!(quiet.cells[0].interference, Default::default());
}

#[test]
fn short_rounds_are_judged_and_left_out_with_their_neighbours() {
    // Rounds of three slices of 20 ms: two of them make 120 ms, in which the host's ticks say something.
    let halved = |change: &dyn Fn(&mut Slice)| {
        let comparison = with(|slice| {
            slice.duration_ns /= 2;
            slice.operations /= 2;
            change(slice);
        });
        comparison.cells[0].interference.disturbed_rounds
    };
    let one_round = |slice: &Slice| (slice.block, slice.round) == (2, 1);
    let steal = |slice: &mut Slice| {
        if one_round(slice) && slice.server == PLACEBO {
            slice.steal_ns = Some(10 * MS);
        }
    };
    assert_eq!(halved(&steal), 2, "rounds 0 and 1");
    // A third of a core shows in no round alone: 18 ms, of which 20 ms may be the clock's.
    let third = |slice: &mut Slice| slice.foreign_cpu_ns = Some(6 * MS);
    assert_eq!(halved(&third), 32, "all");
    let once = |slice: &mut Slice| {
        if one_round(slice) {
            third(slice);
        }
    };
    assert_eq!(halved(&once), 0, "half of the pair");
}

fn with_nothing() -> Comparison {
    with(|_| {})
}

#[test]
fn where_most_rounds_are_disturbed_all_stay_in_and_it_is_said() {
    let comparison = with(|slice| {
        if slice.round != 3 {
            slice.steal_ns = Some(20 * MS);
        }
    });
    let cell = only_cell(&comparison);
    assert_eq!((cell.rounds, cell.blocks), (32, 8));
    assert_eq!(
        (
            cell.interference.disturbed_rounds,
            cell.interference.contended
        ),
        (24, true)
    );
    assert!(
        cell.interference.without_voided.is_none(),
        "one round is no block value"
    );
    let finding = &comparison.findings[0];
    assert_eq!(finding.kind, "contended");
    assert!(
        finding
            .text
            .ends_with("rounds of point-query at 4 clients; none was left out")
    );
    assert!(comparison.host_ok);
    // Exactly half may go.
    let half = with(|slice| {
        if slice.round == 0 || (slice.round == 1 && slice.block % 2 == 0) || slice.block == 7 {
            slice.steal_ns = Some(20 * MS);
        }
    });
    assert!(!half.cells[0].interference.contended);
}
