//! Candidates against both copies of the base.

use crate::builder::*;
use crate::calibration_model::{Model, QUIET, Simulation, THREE};
use crate::pipeline::sequential;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::thresholds::SECOND_CONTROL_SD;
use deltabench_compare::{analyse, progress};
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::slice::VoidReason;
use deltabench_stats::summary::{mean, sample_sd};

fn two_controls(blocks: u32) -> Plan {
    let mut plan = plan(vec![cell(4, false)]);
    plan.stopping = Stopping::Fixed;
    plan.timing.blocks = blocks;
    plan.two_controls = true;
    plan
}

fn throughput(comparison: &Comparison) -> f64 {
    metric(only_cell(comparison), Metric::Throughput)
        .ratio
        .estimate
}

/// Whether the 95 % interval of throughput lies above 1; `None` if it holds 1.
fn side_of_one(comparison: &Comparison) -> Option<bool> {
    let cell = only_cell(comparison);
    let (low, high) = metric(cell, Metric::Throughput).ratio.ci95.unwrap();
    (low > 1.0 || high < 1.0).then_some(low > 1.0)
}

#[test]
fn a_candidate_is_compared_with_the_mean_of_both_copies_and_the_placebo_with_the_base() {
    let (placebo, ours) = (around(0.96, 0.01, 8), around(0.9, 0.01, 8));
    let sides = [
        Blocks {
            server: PLACEBO,
            rates: &placebo,
            costs: &[1.1; 8],
        },
        candidate(&ours, &[1.2; 8]),
    ];
    let slices = slices(8, &sides);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found}");
    let comparison = analyse(&two_controls(8), &slices, Vec::new());
    near(throughput(&comparison), 0.9 / 0.96_f64.sqrt());
    let cell = only_cell(&comparison);
    let cpu = metric(cell, Metric::ServerCpuPerOperation);
    near(cpu.ratio.estimate, 1.2 / 1.1_f64.sqrt());
    near(cpu.base, 10.0 * 1.1_f64.sqrt());
    near(cpu.candidate, 12.0);
    near(
        cell.series[0].server_cpu.unwrap(),
        (1.2 / 1.1_f64.sqrt()).ln(),
    );
    let placebo = &comparison.placebo_cells[0].metrics[0];
    near(placebo.ratio.estimate, 0.96);
    // Relative to the candidate, the copy of the old base is no copy of the new one.
    let turned = analyse(&two_controls(8).relative_to(CANDIDATE), &slices, Vec::new());
    near(throughput(&turned), 1.0 / 0.9);
    // A run from before is read as it was.
    let mut old = two_controls(8);
    old.two_controls = false;
    near(throughput(&analyse(&old, &slices, Vec::new())), 0.9);
}

#[test]
fn a_round_counts_if_both_copies_have_it() {
    let (equal, ours) = (around(1.0, 0.01, 8), around(0.9, 0.01, 8));
    let placebo = Blocks {
        server: PLACEBO,
        rates: &equal,
        costs: &[],
    };
    let mut slices = slices(8, &[placebo, candidate(&ours, &[])]);
    let of_placebo = |slices: &mut Vec<deltabench_model::slice::Slice>, block, round| {
        let place = |slice: &deltabench_model::slice::Slice| {
            (slice.server, slice.block, slice.round) == (PLACEBO, block, round)
        };
        slices.iter().position(place).unwrap()
    };
    let void = of_placebo(&mut slices, 3, 1);
    slices[void].void = Some(VoidReason::Stalled);
    let gone = of_placebo(&mut slices, 4, 2);
    slices.remove(gone);
    let comparison = analyse(&two_controls(8), &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!((cell.blocks, cell.rounds, cell.void_rounds), (8, 30, 1));
}

#[test]
fn two_copies_say_more_than_one_and_intervals_keep_their_promise() {
    let model = Model {
        cpu_noise: Some(0.01),
        ..QUIET
    };
    let mut simulation = Simulation::new(2611);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (mut held, mut called, runs) = (0_u32, 0_u32, 1500);
    for _ in 0..runs {
        let slices = simulation.run(model, -0.02, &THREE);
        let plan = two_controls(model.blocks);
        let mut old = plan.clone();
        old.two_controls = false;
        let comparison = analyse(&plan, &slices, Vec::new());
        let (low, high) = metric(only_cell(&comparison), Metric::Throughput)
            .ratio
            .ci95
            .unwrap();
        held += u32::from((low..=high).contains(&(-0.02_f64).exp()));
        let equal = simulation.run(model, 0.0, &THREE);
        let equal = analyse(&plan, &equal, Vec::new());
        called += u32::from(side_of_one(&equal).is_some());
        two.push(throughput(&comparison).ln());
        one.push(throughput(&analyse(&old, &slices, Vec::new())).ln());
    }
    let narrower = sample_sd(&two).unwrap() / sample_sd(&one).unwrap();
    println!(
        "{runs} runs: sd {narrower:.3} of one control's, held {held}, {called} equal ones leave out 1"
    );
    assert!((narrower - SECOND_CONTROL_SD).abs() < 0.04, "{narrower}");
    assert!((mean(&two).unwrap() + 0.02).abs() < 0.001);
    assert!(f64::from(held) > 0.93 * f64::from(runs), "{held}");
    assert!(
        (0.02..0.08).contains(&(f64::from(called) / f64::from(runs))),
        "{called}"
    );
}

#[test]
fn fewer_blocks_decide() {
    let mut simulation = Simulation::new(2612);
    let model = Model {
        blocks: 24,
        ..QUIET
    };
    let mut needed = [0_u32; 2];
    for _ in 0..60 {
        let slices = simulation.run(model, 0.0, &THREE);
        for (place, two) in [false, true].into_iter().enumerate() {
            let mut plan = sequential(two_controls(24));
            plan.delta = 0.01;
            plan.two_controls = two;
            let decided = (1..=24).find(|&blocks| {
                let part: Vec<_> = slices
                    .iter()
                    .filter(|s| s.block < blocks)
                    .cloned()
                    .collect();
                progress(&plan, &part)[0] == deltabench_compare::CellProgress::Decided
            });
            needed[place] += decided.unwrap_or(24);
        }
    }
    println!("blocks of 60 equal cells until a verdict: {needed:?}");
    assert!(
        f64::from(needed[1]) < 0.95 * f64::from(needed[0]),
        "{needed:?}"
    );
}

/// Two controls halve the skewness of one server's starts on the base's side only, so false answers lean to
/// one side: where slow starts are rare, to "faster". Both sides together keep their rate.
#[test]
fn rare_slow_starts_lean_false_answers_to_one_side() {
    let mut simulation = Simulation::new(2613);
    let (blocks, runs) = (12_u32, 1500);
    let mut found = [[0_u32; 2]; 2];
    for _ in 0..runs {
        let mut starts = || -> Vec<f64> {
            let luck = (0..blocks).map(|_| {
                let slow = f64::from(u8::from(simulation.uniform() < 0.1));
                (0.003 * simulation.normal() - 0.03 * slow).exp()
            });
            luck.collect()
        };
        let (base, placebo, ours) = (starts(), starts(), starts());
        let relative = |of: &[f64]| -> Vec<f64> {
            std::iter::zip(of, &base)
                .map(|(one, base)| one / base)
                .collect()
        };
        let (placebo, ours) = (relative(&placebo), relative(&ours));
        let side = Blocks {
            server: PLACEBO,
            rates: &placebo,
            costs: &[],
        };
        let slices = slices(blocks, &[side, candidate(&ours, &[])]);
        for (place, two) in [false, true].into_iter().enumerate() {
            let mut plan = two_controls(blocks);
            plan.two_controls = two;
            let comparison = analyse(&plan, &slices, Vec::new());
            if let Some(faster) = side_of_one(&comparison) {
                found[place][usize::from(faster)] += 1;
            }
        }
    }
    println!(
        "{runs} equal runs, intervals that leave out 1 as (slower, faster): one control {:?}, two {:?}",
        found[0], found[1]
    );
    for sides in found {
        let all = f64::from(sides[0] + sides[1]) / f64::from(runs);
        assert!(all < 0.08, "{all}");
    }
    assert!(found[1][1] > found[1][0], "{found:?}");
}
