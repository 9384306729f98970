//! Do the stated error rates hold? Seeded runs with known truth, through `analyse` itself.

use crate::builder::{as_run, cell, metric, only_cell, plan};
use crate::calibration_model::{Model, NOISY, QUIET, Simulation, THREE};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::{t_test_p, welch};

const DELTA: f64 = 0.03;

/// Four clients: verdicts of throughput alone.
fn plain_plan() -> Plan {
    as_run(plan(vec![cell(4, false)]))
}

fn runs(seed: u64, number: usize, model: Model, effect: f64) -> impl Iterator<Item = Comparison> {
    let mut simulation = Simulation::new(seed);
    let plan = plain_plan();
    (0..number).map(move |_| analyse(&plan, &simulation.run(model, effect, &THREE), Vec::new()))
}

/// At most `rate`, as far as `trials` can tell: the exact 99.9 % interval of the share reaches down to it.
fn at_most(rate: f64, hits: usize, trials: usize) -> bool {
    clopper_pearson(count(hits), count(trials), 0.999).low <= rate
}

fn share(hits: usize, trials: usize) -> f64 {
    to_f64(count(hits)) / to_f64(count(trials))
}

fn flagged(comparison: &Comparison) -> bool {
    matches!(
        only_cell(comparison).verdict,
        Verdict::Regression | Verdict::Improvement
    )
}

#[test]
fn of_equal_servers_at_most_five_in_a_hundred_are_called_different() {
    for (seed, model) in [(11, NOISY), (12, QUIET)] {
        let hits = runs(seed, 4000, model, 0.0).filter(flagged).count();
        println!(
            "A/A, noise {}: {hits} of 4000 called different",
            model.noise
        );
        assert!(at_most(0.05, hits, 4000), "{hits} of 4000");
    }
}

#[test]
fn rounds_as_the_sample_would_call_more_different() {
    // The quieter the slices, the more of what is left is the luck of the start, which rounds share.
    for (seed, model, least) in [(14, NOISY, 0.055), (15, QUIET, 0.3)] {
        let (mut by_rounds, mut by_blocks) = (0, 0);
        for comparison in runs(seed, 4000, model, 0.0) {
            let cell = only_cell(&comparison);
            let rounds: Vec<f64> = cell.series.iter().map(|round| round.throughput).collect();
            by_rounds += usize::from(t_test_p(&rounds).unwrap() < 0.05);
            by_blocks +=
                usize::from(t_test_p(&metric(cell, Metric::Throughput).blocks).unwrap() < 0.05);
        }
        println!(
            "A/A, noise {}: of 4000 p < 0.05 by rounds {by_rounds}, by blocks {by_blocks}",
            model.noise
        );
        assert!(
            at_most(0.05, by_blocks, 4000),
            "blocks: {by_blocks} of 4000"
        );
        assert!(
            !at_most(0.05, by_rounds, 4000) && share(by_rounds, 4000) > least,
            "rounds: {by_rounds} of 4000"
        );
    }
}

#[test]
fn measuring_one_after_the_other_would_call_most_equal_servers_different() {
    // The first half of the base's slices against the second half of its own: there is no difference at
    // all.
    let mut simulation = Simulation::new(13);
    let hits = (0..200).filter(|_| {
        let slices = simulation.run(NOISY, 0.0, &[ServerId(0)]);
        let logs: Vec<f64> = slices
            .iter()
            .map(|s| (to_f64(s.operations) / to_f64(s.duration_ns)).ln())
            .collect();
        let (first, second) = logs.split_at(logs.len() / 2);
        welch(first, second, 0.95).unwrap().p < 0.05
    });
    let hits = hits.count();
    println!("sequential, Welch: {hits} of 200 called different");
    assert!(share(hits, 200) > 0.3, "{hits} of 200");
}

#[test]
fn intervals_hold_the_true_effect_as_often_as_they_say() {
    let model = Model {
        cpu_noise: Some(0.02),
        ..NOISY
    };
    let (mut throughput, mut cpu, mut trials) = (0, 0, 0);
    for (seed, effect) in [(21, -0.05_f64), (22, -0.01), (23, 0.0), (24, 0.08)] {
        for comparison in runs(seed, 500, model, effect) {
            let cell = only_cell(&comparison);
            let holds = |which, truth: f64| {
                let (low, high) = metric(cell, which).ratio.ci95.unwrap();
                usize::from(low <= truth.exp() && truth.exp() <= high)
            };
            throughput += holds(Metric::Throughput, effect);
            cpu += holds(Metric::ServerCpuPerOperation, -effect);
            trials += 1;
        }
    }
    println!(
        "coverage of 95 %: throughput {}, CPU {}",
        share(throughput, trials),
        share(cpu, trials)
    );
    for covered in [throughput, cpu] {
        assert!(
            (0.93..=0.97).contains(&share(covered, trials)),
            "{covered} of {trials}"
        );
    }
}

#[test]
fn a_change_of_exactly_delta_is_called_no_change_at_most_five_times_in_a_hundred() {
    // More blocks than elsewhere, so that the equivalence test has the power to be wrong.
    for (seed, model) in [
        (
            31,
            Model {
                blocks: 16,
                ..NOISY
            },
        ),
        (32, QUIET),
    ] {
        for effect in [DELTA.ln_1p(), -DELTA.ln_1p()] {
            let equal = runs(seed, 1500, model, effect);
            let equal = equal
                .filter(|run| only_cell(run).verdict == Verdict::NoChange)
                .count();
            println!(
                "effect of exactly δ, noise {}: {equal} of 1500 called no change",
                model.noise
            );
            assert!(at_most(0.05, equal, 1500), "{equal} of 1500");
        }
    }
}

#[test]
fn verdicts_are_found_where_the_design_says_so() {
    // (true change, least share of the right verdict) on the quiet model, 12 blocks.
    let model = Model {
        blocks: 12,
        ..QUIET
    };
    let cases = [
        (0.0, Verdict::NoChange, 0.95),
        (0.95_f64.ln(), Verdict::Regression, 0.95),
        (0.93_f64.ln(), Verdict::Regression, 0.99),
        (1.06_f64.ln(), Verdict::Improvement, 0.98),
    ];
    for (seed, (effect, verdict, least)) in (41..).zip(cases) {
        let right = runs(seed, 200, model, effect)
            .filter(|run| only_cell(run).verdict == verdict)
            .count();
        println!(
            "true ratio {:.3}: {right} of 200 {}",
            effect.exp(),
            verdict.word()
        );
        assert!(
            share(right, 200) >= least,
            "{right} of 200 {}",
            verdict.word()
        );
    }
}

#[test]
fn a_placebo_seldom_spoils_a_good_run_and_is_seldom_flagged() {
    let mut simulation = Simulation::new(51);
    let plan = as_run(plan(vec![cell(1, false)]));
    let (mut unfit, mut flags, mut covered, mut different) = (0, 0, 0, 0);
    for _ in 0..600 {
        let model = Model {
            cpu_noise: Some(0.02),
            ..NOISY
        };
        let comparison = analyse(&plan, &simulation.run(model, 0.0, &THREE), Vec::new());
        let placebo = comparison.placebo.as_ref().unwrap();
        let (low, high) = placebo.throughput.ci95.unwrap();
        unfit += usize::from(only_cell(&comparison).verdict == Verdict::Unfit);
        different += usize::from(flagged(&comparison));
        flags += usize::try_from(placebo.flagged).unwrap();
        covered += usize::from(low <= 1.0 && 1.0 <= high);
    }
    println!(
        "600 runs: unfit {unfit}, placebo flagged {flags}, candidate flagged {different}, covered {covered}"
    );
    assert!(at_most(0.01, unfit, 600), "unfit {unfit}");
    assert!(at_most(0.05, flags, 600) && at_most(0.05, different, 600));
    assert!(
        (0.92..=0.98).contains(&share(covered, 600)),
        "joint interval {covered}"
    );
}
