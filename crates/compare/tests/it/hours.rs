//! Several sessions as one result, and what another hour would say.

use crate::builder::*;
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::{Comparison, HoursFrom, Metric, MetricComparison, Verdict};
use deltabench_compare::{analyse, combine, exit_code, foretell, gate_line};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Gate, GatedMetric, Plan};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_stats::binomial::clopper_pearson;
use std::collections::BTreeSet;

fn gated(gate: Gate) -> Plan {
    let mut plan = plan(vec![cell(1, false)]);
    plan.gate = gate;
    plan
}

/// A session of so many blocks, by its throughput and its CPU per operation.
fn session_of(plan: &Plan, blocks: usize, (speed, cost): (f64, f64)) -> Comparison {
    let (rates, costs) = (around(speed, 0.004, blocks), around(cost, 0.004, blocks));
    let same = around(1.0, 0.004, blocks);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &same,
        costs: &same,
    };
    let number = u32::try_from(blocks).unwrap();
    let slices = slices(number, &[placebo, candidate(&rates, &costs)]);
    analyse(plan, &slices, Vec::new())
}

fn session(plan: &Plan, centre: f64) -> Comparison {
    session_of(plan, 8, (centre, 1.0 / centre))
}

fn together(plan: &Plan, all: &[Comparison]) -> Comparison {
    let mut first = all[0].clone();
    combine(&mut first, all, plan);
    first
}

fn over(plan: &Plan, centres: &[f64]) -> Comparison {
    let all = centres.iter().map(|centre| session(plan, *centre));
    together(plan, &all.collect::<Vec<Comparison>>())
}

#[test]
fn sessions_that_agree_hold_in_another_hour_and_sessions_that_do_not_hold_nowhere() {
    let plan = gated(Gate::default());
    let alike = over(&plan, &[0.950, 0.951, 0.949, 0.950]);
    let cell = only_cell(&alike);
    assert_eq!((cell.verdict, cell.blocks), (Verdict::Regression, 32));
    assert!(cell.reason.starts_with("slower by"), "{}", cell.reason);
    assert!(cell.reason.contains("µs/op ["), "{}", cell.reason);
    // What belongs to blocks is of all sessions, too.
    let blocks: BTreeSet<u32> = cell.series.iter().map(|round| round.block).collect();
    let rated: Vec<u32> = cell.rates.iter().map(|rate| rate.block).collect();
    assert_eq!((blocks.len(), rated.len()), (32, 32));
    assert!(rated.is_sorted_by(|one, next| one < next));
    let one = only_cell(&session(&plan, 0.95)).series.len();
    assert_eq!(cell.series.len(), 4 * one);
    let speed = metric(cell, Metric::Throughput);
    let hours = speed.hours.as_ref().unwrap();
    assert_eq!(
        (hours.from, hours.sessions.len(), hours.verdict),
        (HoursFrom::Sessions(4), 4, Verdict::Regression)
    );
    assert!((speed.ratio.estimate - 0.95).abs() < 1e-4);
    assert!(hours.p < 0.001 && (hours.another.estimate - speed.ratio.estimate).abs() < 1e-12);
    let (mean, next) = (speed.ratio.ci95.unwrap(), hours.another.ci95.unwrap());
    assert!(next.0 < mean.0 && mean.1 < next.1, "{next:?} {mean:?}");
    // Each session by itself is sure; what they differ by is not in their intervals.
    let apart = over(&plan, &[0.90, 0.95, 1.02, 0.96]);
    assert!(session(&plan, 0.95).counts.regression == 1);
    let cell = only_cell(&apart);
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    let speed = metric(cell, Metric::Throughput);
    let hours = speed.hours.as_ref().unwrap();
    assert!((0.03..0.07).contains(&hours.sd), "{}", hours.sd);
    // Blocks of all sessions as one sample would be sure.
    let p = speed.p().unwrap();
    assert!((p - cell.p.unwrap()).abs() < 1e-12 && p > 0.1, "{p}");
    assert_eq!(apart.counts.inconclusive, 1);
}

#[test]
fn sessions_say_what_cpu_says_as_one_run_does() {
    let plan = gated(Gate::default());
    let says = |figures: (f64, f64)| {
        let all = [figures; 4].map(|figures| session_of(&plan, 8, figures));
        let (one, together) = (only_cell(&all[0]), together(&plan, &all));
        let found = only_cell(&together);
        assert_eq!(found.verdict, one.verdict, "{}", found.reason);
        assert!(one.reason.contains("CPU per operation: "), "{}", one.reason);
        found.reason.clone()
    };
    let dearer = says((1.0, 1.1));
    assert!(
        dearer.contains("; CPU per operation: higher by"),
        "{dearer}"
    );
    let denied = says((0.9, 1.0));
    assert!(denied.starts_with("contradicted by CPU: throughput slower"));
    assert!(
        denied.contains("; CPU per operation: no change"),
        "{denied}"
    );
}

#[test]
fn sessions_that_agree_by_luck_claim_no_more_than_their_blocks() {
    let plan = gated(Gate::default());
    let one = session(&plan, 0.95);
    let speed = |comparison: &Comparison| metric(only_cell(comparison), Metric::Throughput).clone();
    let (alone, found) = (
        speed(&one),
        speed(&together(&plan, &[one.clone(), one.clone()])),
    );
    let half = |ends: (f64, f64)| (ends.1 - ends.0) / 2.0;
    let us = |speed: &MetricComparison| half(speed.difference_us.unwrap().ci95.unwrap());
    // Two sessions halve the variance, and that they are the same adds nothing.
    assert!((us(&found) * 2.0_f64.sqrt() / us(&alone) - 1.0).abs() < 1e-9);
}

#[test]
fn a_first_session_that_does_not_count_is_stood_for_by_the_others() {
    let plan = gated(Gate::default());
    let (first, other) = (session(&plan, 0.5), session(&plan, 0.95));
    let mut found = first.clone();
    found.host_ok = false;
    let unfit = Finding::new(FindingKind::OtherLoad, Severity::Unfit, "somebody compiles");
    found.findings.push(unfit);
    combine(&mut found, std::slice::from_ref(&other), &plan);
    assert_eq!((&found.cells, found.host_ok), (&other.cells, true));
    assert_eq!(found.findings, other.findings);
    assert_eq!(found.summaries, other.summaries);
    assert_eq!(found.placebo, other.placebo);
    let mut alone = first.clone();
    combine(&mut alone, &[], &plan);
    assert_eq!(alone, first);
}

fn asks(another_hour: bool, margin: Option<f64>) -> Gate {
    Gate {
        on: true,
        not_worse_than: margin,
        inconclusive_passes: false,
        another_hour,
        metrics: Vec::new(),
    }
}

#[test]
fn another_hour_is_no_way_around_what_is_open_in_the_measured_ones() {
    let code = |gate: &Gate, blocks, figures: (f64, f64)| {
        let plan = gated(gate.clone());
        let all = [figures; 4].map(|figures| session_of(&plan, blocks, figures));
        let found = together(&plan, &all[..if blocks == 8 { 4 } else { 2 }]);
        exit_code(&found)
    };
    let another = asks(true, None);
    assert_eq!(code(&another, 8, (0.5, 2.0)), 1);
    for margin in [None, Some(0.05)] {
        let few = code(&asks(true, margin), 2, (0.5, 2.0));
        assert_eq!(few, 3, "four blocks are too few");
    }
    assert_eq!(code(&another, 8, (0.9, 1.0)), 3, "CPU says otherwise");
    assert_eq!(code(&another, 8, (1.1, 1.0)), 3, "CPU says otherwise");
    assert_eq!(code(&another, 8, (1.0, 1.1)), 3, "as fast with more CPU");
    assert_eq!(code(&another, 8, (1.0, 1.0)), 0);
    let both = Gate {
        metrics: vec![GatedMetric::Throughput, GatedMetric::Cpu],
        ..another
    };
    assert_eq!(code(&both, 8, (1.0, 1.1)), 1);
}

#[test]
fn a_gate_on_cpu_asks_for_another_hour_too() {
    let code = |another_hour, centres: &[f64]| {
        let metrics = vec![GatedMetric::Cpu];
        let plan = gated(Gate {
            metrics,
            ..asks(another_hour, None)
        });
        exit_code(&over(&plan, centres))
    };
    let apart = [0.92, 0.95, 0.98, 0.95, 0.96];
    assert_eq!([code(false, &apart), code(true, &apart)], [1, 3]);
    assert_eq!([code(false, &[0.95]), code(true, &[0.95])], [1, 3]);
    let alike = [0.95, 0.951, 0.949, 0.95];
    assert_eq!([code(false, &alike), code(true, &alike)], [1, 1]);
    assert_eq!(code(true, &[1.0, 1.001, 0.999, 1.0]), 0);
}

#[test]
fn a_gate_asks_for_the_measured_hours_or_for_another_one() {
    // On average slower beyond doubt; another hour may be equal.
    let centres = [0.92, 0.95, 0.98, 0.95, 0.96];
    let code = |gate: Gate| {
        let plan = gated(gate);
        let found = over(&plan, &centres);
        (exit_code(&found), gate_line(&found, &plan).unwrap())
    };
    let (measured, line) = code(asks(false, None));
    assert_eq!(measured, 1, "{line}");
    let (another, line) = code(asks(true, None));
    assert_eq!(another, 3, "{line}");
    assert!(line.contains("in another hour"), "{line}");
    assert_eq!(code(asks(false, Some(0.08))).0, 0);
    assert_eq!(code(asks(true, Some(0.08))).0, 3);
    assert_eq!(code(asks(true, Some(0.2))).0, 0);
    // Nothing is known of another hour from one session.
    let plan = gated(asks(true, None));
    assert_eq!(exit_code(&session(&plan, 0.5)), 3);
}

#[test]
fn earlier_pairs_of_the_host_widen_one_session_to_another_hour() {
    let plan = gated(Gate::default());
    let mut found = session(&plan, 0.95);
    // Two comparisons that were repeated, one of them twice: three pairs, 2 % apart.
    let set = |figures: &[f64]| {
        let blocks = |figure: &f64| vec![figure - 0.001, figure + 0.001];
        figures.iter().map(blocks).collect::<Vec<_>>()
    };
    let sets = vec![set(&[0.0, 0.02]), set(&[0.10, 0.12, 0.14]), set(&[0.3])];
    foretell(&mut found, |_, metric| match metric {
        Metric::Throughput => sets.clone(),
        _ => Vec::new(),
    });
    let cell = only_cell(&found);
    assert_eq!(
        cell.verdict,
        Verdict::Regression,
        "the verdict is this hour's"
    );
    let hours = metric(cell, Metric::Throughput).hours.as_ref().unwrap();
    assert_eq!(hours.from, HoursFrom::EarlierPairs(3));
    assert_eq!(hours.verdict, Verdict::Inconclusive);
    assert!(hours.another.ci95.unwrap().1 > 1.0);
    assert!(metric(cell, Metric::ServerCpuPerOperation).hours.is_none());
}

#[test]
fn another_hour_is_no_narrower_than_the_measured_one() {
    // Stalls of the candidate, whose blocks say so by their rounds alone.
    let rates = around(0.978, 0.006, 6);
    let mut slices = slices(6, &[candidate(&rates, &[])]);
    for one in slices.iter_mut().filter(|one| one.server == CANDIDATE) {
        let more = if one.round == 3 { 0.03 } else { -0.01 };
        one.duration_ns = to_u64(to_f64(one.duration_ns) * (1.0 + more));
    }
    let mut plan = gated(asks(true, Some(0.03)));
    plan.cells = vec![cell(4, false)];
    let mut found = analyse(&plan, &slices, Vec::new());
    // Thirty earlier runs that agreed to the digit.
    foretell(&mut found, |_, _| {
        vec![vec![vec![-0.0151, -0.0149, -0.0152, -0.0148]; 30]]
    });
    let cell = only_cell(&found);
    let speed = metric(cell, Metric::Throughput);
    let hours = speed.hours.as_ref().unwrap();
    let (here, another) = (speed.ratio.ci90.unwrap(), hours.another.ci90.unwrap());
    assert!(
        another.0 <= here.0 && another.1 >= here.1,
        "{here:?} {another:?}"
    );
    assert!(hours.p >= cell.p_of(Metric::Throughput).unwrap());
    assert!(
        here.0 < 0.97,
        "a loss of 3 % is open in this hour, {here:?}"
    );
    assert!(gate_line(&found, &plan).unwrap().starts_with("gate open"));
}

/// Equal servers whose ratio has a luck of its own in each hour: whole sessions through the shipped code.
#[test]
fn equal_servers_are_rarely_called_different_over_sessions_and_another_hour_holds() {
    let plan = gated(Gate::default());
    let mut random = Simulation::new(44);
    let (mut different, mut alone, mut held) = (0, 0, 0);
    let number = runs(800);
    for _ in 0..number {
        let mut one = || {
            let hour = 0.0073 * random.normal();
            let rates: Vec<f64> = (0..8)
                .map(|_| (hour + 0.006 * random.normal()).exp())
                .collect();
            analyse(&plan, &slices(8, &[candidate(&rates, &[])]), Vec::new())
        };
        let all: Vec<Comparison> = (0..4).map(|_| one()).collect();
        let next = one();
        let first = together(&plan, &all);
        let p = |comparison: &Comparison| only_cell(comparison).p.unwrap();
        different += u64::from(p(&first) <= 0.05);
        alone += u64::from(p(&all[0]) <= 0.05);
        let hours = metric(only_cell(&first), Metric::Throughput).hours.clone();
        let (low, high) = hours.unwrap().another.ci95.unwrap();
        let says = metric(only_cell(&next), Metric::Throughput).ratio.estimate;
        held += u64::from((low..=high).contains(&says));
    }
    println!(
        "equal servers, sd 0.73 % from hour to hour, of {number}: p < 5 % in {different} over four sessions, \
         in {alone} by the first; another session lies in the interval in {held}"
    );
    assert!(clopper_pearson(different, number, 0.999).low <= 0.05);
    assert!(clopper_pearson(held, number, 0.999).high >= 0.95);
    assert!(alone > 4 * different, "one session knows nothing of hours");
}
