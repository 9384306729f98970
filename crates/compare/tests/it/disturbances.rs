//! Which rounds other load disturbs, and what is done about it.

use crate::builder::*;
use crate::calibration_model::{Model, Simulation, THREE};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Estimates, Metric};
use deltabench_model::plan::Stopping;
use deltabench_model::slice::Slice;
use deltabench_model::units::{to_f64, to_u64};

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

/// Eight blocks of twenty rounds.
const ROUNDS: Model = Model {
    blocks: 8,
    rounds: 20,
    restart: 0.0,
    noise: 0.02,
    drift: 0.0,
    memory: 50.0,
    cpu_noise: None,
};

/// A run with steal in so many rounds of each block, in which the candidate's own noise is multiplied.
fn stolen(of_twenty: u32, noisier: f64) -> Comparison {
    let mut slices = Simulation::new(57).run(ROUNDS, 0.0, &THREE);
    for slice in &mut slices {
        if slice.round < of_twenty {
            slice.steal_ns = Some(slice.duration_ns / 5);
            if slice.server == CANDIDATE {
                let log =
                    noisier * (to_f64(slice.operations) / to_f64(slice.duration_ns) * 1e6).ln();
                slice.duration_ns = to_u64(to_f64(slice.operations) * 1e6 * (-log).exp());
            }
        }
    }
    analyse(&as_run(plan(vec![cell(4, false)])), &slices, Vec::new())
}

/// Half of the width of throughput's interval.
fn width(comparison: &Comparison) -> f64 {
    let found = metric(only_cell(comparison), Metric::Throughput);
    let (low, high) = found.ratio.ci95.unwrap();
    (high / low).ln() / 2.0
}

#[test]
fn no_interval_gets_narrower_because_half_of_the_rounds_are_disturbed() {
    let widths: Vec<f64> = (8..=14).map(|rounds| width(&stolen(rounds, 1.0))).collect();
    println!("{widths:.4?}");
    for rounds in [10, 11, 14] {
        let found = stolen(rounds, 1.0);
        let seen = &only_cell(&found).interference;
        assert_eq!(seen.contended, rounds > 10);
        assert_eq!(seen.left_out, u64::from(8 * rounds), "wider without them");
        let (with, without) = (&seen.with_voided, &seen.without_voided);
        let of = |one: &Option<Estimates>| {
            let (low, high) = one.as_ref().unwrap().throughput.ci95.unwrap();
            (high / low).ln() / 2.0
        };
        assert!(of(without) > of(with) && (width(&found) - of(without)).abs() < 1e-12);
    }
}

#[test]
fn disturbed_rounds_count_where_they_make_the_interval_wider() {
    let found = stolen(14, 10.0);
    let seen = &only_cell(&found).interference;
    assert_eq!((seen.contended, seen.left_out), (true, 0));
    assert_eq!(only_cell(&found).rounds, 160);
    let quarter = stolen(5, 10.0);
    let seen = &only_cell(&quarter).interference;
    assert_eq!((seen.contended, seen.left_out), (false, 40), "few go");
}

#[test]
fn what_is_disturbed_after_the_blocks_of_an_estimate_does_not_make_it_contended() {
    let model = Model {
        blocks: 14,
        ..ROUNDS
    };
    let mut slices = Simulation::new(58).run(model, 0.0, &THREE);
    for slice in slices.iter_mut().filter(|slice| slice.block >= 6) {
        slice.steal_ns = Some(slice.duration_ns / 5);
    }
    let mut plan = as_run(plan(vec![cell(4, false)]));
    plan.timing.blocks = 14;
    plan.stopping = Stopping::Sequential {
        looks: vec![6, 12, 14],
    };
    let found = analyse(&plan, &slices, Vec::new());
    let cell = only_cell(&found);
    assert_eq!(cell.decided_at, Some(1));
    let seen = &cell.interference;
    assert_eq!((seen.disturbed_rounds, seen.contended), (160, false));
}
