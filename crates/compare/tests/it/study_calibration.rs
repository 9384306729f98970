//! Do the intervals and verdicts of study tables hold? Seeded runs with known truth.

use crate::builder::{BASE, metric};
use crate::calibration_model::Simulation;
use crate::study_model::*;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_model::plan::{Cell, Plan, ServerId};
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::clopper_pearson;

/// Share of studies in which the interval of a figure holds the truth.
fn coverage(
    trials: u32,
    mut plans: impl FnMut() -> Vec<Plan>,
    law: impl Fn(usize, ServerId, &Cell) -> (f64, f64),
    (seed, noise): (u64, Noise),
    (title, column, truth): (&str, &str, f64),
) -> f64 {
    let mut random = Simulation::new(seed);
    let mut held = 0;
    for _ in 0..trials {
        let plans = plans();
        let comparisons: Vec<Comparison> = plans
            .iter()
            .enumerate()
            .map(|(at, plan)| {
                run(&mut random, plan, noise, |server, cell| {
                    law(at, server, cell)
                })
            })
            .collect();
        let study = tables_of(&of(&plans, &comparisons));
        let found = figure(table(&study, title), "point-query", column);
        let (low, high) = found.ratio.ci95.unwrap();
        held += u64::from(low <= truth && truth <= high);
    }
    to_f64(held) / f64::from(trials)
}

#[test]
fn intervals_of_scaleup_and_of_other_runs_hold_the_truth_as_often_as_they_say() {
    let clients = plan_of(&["b"], cells(&WORKLOADS[..1], &[1, 4]));
    let scaled = |_: usize, _: ServerId, cell: &Cell| (1000.0 * f64::from(cell.clients), 10.0);
    let single = plan_of(&["b"], cells(&WORKLOADS[..1], &[4]));
    let storage = |_: usize| {
        vec![
            on_storage(&single, 1, "slow", None),
            on_storage(&single, 2, "fast", None),
        ]
    };
    let faster = |at: usize, server: ServerId, _: &Cell| {
        let machine = if at.is_multiple_of(2) { 1000.0 } else { 3000.0 };
        (machine * if server == BASE { 1.0 } else { 0.95 }, 10.0)
    };
    let repeated = |number: usize| {
        let one = storage(0);
        (0..2 * number)
            .map(|at| one[at % 2].clone())
            .collect::<Vec<_>>()
    };
    let lucky = Noise { load: 0.02, ..CALM };
    let speed = ("throughput of b relative to storage slow", "fast", 3.0);
    let cross = ("throughput of b relative to a, over", "fast", 1.0);
    let found = [
        (
            "scaleup",
            coverage(
                1500,
                || vec![clients.clone()],
                scaled,
                (41, CALM),
                ("throughput of b relative to 1", "4", 4.0),
            ),
        ),
        (
            "storage",
            coverage(1500, || storage(0), faster, (42, CALM), speed),
        ),
        (
            "ratio of ratios",
            coverage(1500, || storage(0), faster, (43, CALM), cross),
        ),
        (
            "3 loads each, storage",
            coverage(800, || repeated(3), faster, (44, lucky), speed),
        ),
        (
            "3 loads each, ratio of ratios",
            coverage(800, || repeated(3), faster, (45, lucky), cross),
        ),
    ];
    for (what, share) in found {
        println!("{what}: {share:.3}");
        assert!((0.93..=0.975).contains(&share), "{what}: {share}");
    }
    let alone = coverage(800, || storage(0), faster, (46, lucky), cross);
    println!("one load each, where loads differ: {alone:.3}");
    assert!(alone < 0.6, "one load cannot know: {alone}");
}

#[test]
fn equal_servers_are_rarely_called_different_by_several_loads_and_often_by_one() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[4]));
    let noise = Noise { load: 0.02, ..CALM };
    let mut random = Simulation::new(47);
    let plans = vec![plan.clone(); 3];
    let (mut together, mut alone, mut intervals, mut trials) = (0, 0, 0, 0);
    for _ in 0..250 {
        let comparisons: Vec<Comparison> = (0..3)
            .map(|_| run(&mut random, &plan, noise, equal))
            .collect();
        let study = tables_of(&of(&plans, &comparisons));
        let different = |verdict| matches!(verdict, Verdict::Regression | Verdict::Improvement);
        for (at, (workload, _)) in WORKLOADS[..2].iter().enumerate() {
            let found = figure(&study.tables[0], workload, "b").verdict.unwrap();
            together += u64::from(different(found));
            let first = &comparisons[0].cells[at];
            alone += u64::from(different(first.verdict));
            let (low, high) = metric(first, Metric::Throughput).ratio.ci95.unwrap();
            intervals += u64::from(1.0 < low || high < 1.0);
            trials += 1;
        }
    }
    println!(
        "of {trials} called different: by three loads {together}, by the first alone {alone} \
         (placebo heeded), by its interval {intervals}"
    );
    assert!(clopper_pearson(together, trials, 0.999).low <= 0.05);
    assert!(intervals > trials / 2 && alone > together);
}
