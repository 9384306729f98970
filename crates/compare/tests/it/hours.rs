//! Several sessions as one result, and what another hour would say.

use crate::builder::*;
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::{Comparison, HoursFrom, Metric, Verdict};
use deltabench_compare::{analyse, combine, exit_code, foretell, gate_line};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Gate, Plan};
use deltabench_stats::binomial::clopper_pearson;

fn gated(gate: Gate) -> Plan {
    let mut plan = plan(vec![cell(1, false)]);
    plan.gate = gate;
    plan
}

fn session(plan: &Plan, centre: f64, findings: Vec<Finding>) -> Comparison {
    let rates = around(centre, 0.004, 8);
    let same = around(1.0, 0.004, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &same,
        costs: &same,
    };
    let costs: Vec<f64> = rates.iter().map(|rate| 1.0 / rate).collect();
    analyse(
        plan,
        &slices(8, &[placebo, candidate(&rates, &costs)]),
        findings,
    )
}

fn over(plan: &Plan, centres: &[f64]) -> Comparison {
    let all: Vec<Comparison> = centres
        .iter()
        .map(|centre| session(plan, *centre, Vec::new()))
        .collect();
    let mut first = all[0].clone();
    combine(&mut first, &all[1..], plan);
    first
}

#[test]
fn sessions_that_agree_hold_in_another_hour_and_sessions_that_do_not_hold_nowhere() {
    let plan = gated(Gate::default());
    let alike = over(&plan, &[0.950, 0.951, 0.949, 0.950]);
    let cell = only_cell(&alike);
    assert_eq!((cell.verdict, cell.blocks), (Verdict::Regression, 32));
    assert!(cell.reason.starts_with("slower by"), "{}", cell.reason);
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
    assert!(session(&plan, 0.95, Vec::new()).counts.regression == 1);
    let cell = only_cell(&apart);
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    let hours = metric(cell, Metric::Throughput).hours.as_ref().unwrap();
    assert!((0.03..0.07).contains(&hours.sd), "{}", hours.sd);
    assert_eq!(apart.counts.inconclusive, 1);
}

#[test]
fn a_session_of_an_unfit_host_says_nothing_and_a_single_one_stays_as_it_is() {
    let plan = gated(Gate::default());
    let first = session(&plan, 0.95, Vec::new());
    let unfit = Finding::new(FindingKind::OtherLoad, Severity::Unfit, "somebody compiles");
    let other = session(&plan, 1.3, vec![unfit]);
    let mut found = first.clone();
    combine(&mut found, &[other], &plan);
    assert_eq!(found.cells, first.cells);
    assert!(found.host_ok && found.findings.len() == 1);
    let mut alone = first.clone();
    combine(&mut alone, &[], &plan);
    assert_eq!(alone, first);
}

#[test]
fn a_gate_asks_for_the_measured_hours_or_for_another_one() {
    let asks = |another_hour, margin| Gate {
        on: true,
        not_worse_than: margin,
        inconclusive_passes: false,
        another_hour,
        metrics: Vec::new(),
    };
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
    assert_eq!(exit_code(&session(&plan, 0.5, Vec::new())), 3);
}

#[test]
fn earlier_pairs_of_the_host_widen_one_session_to_another_hour() {
    let plan = gated(Gate::default());
    let mut found = session(&plan, 0.95, Vec::new());
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

/// Equal servers whose ratio has a luck of its own in each hour: whole sessions through the shipped code.
#[test]
fn equal_servers_are_rarely_called_different_over_sessions_and_another_hour_holds() {
    const RUNS: u64 = 800;
    let plan = gated(Gate::default());
    let mut random = Simulation::new(44);
    let (mut different, mut alone, mut held) = (0, 0, 0);
    for _ in 0..RUNS {
        let mut one = || {
            let hour = 0.0073 * random.normal();
            let rates: Vec<f64> = (0..8)
                .map(|_| (hour + 0.006 * random.normal()).exp())
                .collect();
            analyse(&plan, &slices(8, &[candidate(&rates, &[])]), Vec::new())
        };
        let all: Vec<Comparison> = (0..4).map(|_| one()).collect();
        let next = one();
        let mut first = all[0].clone();
        combine(&mut first, &all[1..], &plan);
        let p = |comparison: &Comparison| only_cell(comparison).p.unwrap();
        different += u64::from(p(&first) <= 0.05);
        alone += u64::from(p(&all[0]) <= 0.05);
        let hours = metric(only_cell(&first), Metric::Throughput).hours.clone();
        let (low, high) = hours.unwrap().another.ci95.unwrap();
        let says = metric(only_cell(&next), Metric::Throughput).ratio.estimate;
        held += u64::from((low..=high).contains(&says));
    }
    println!(
        "equal servers, sd 0.73 % from hour to hour, of {RUNS}: p < 5 % in {different} over four sessions, \
         in {alone} by the first; another session lies in the interval in {held}"
    );
    assert!(clopper_pearson(different, RUNS, 0.999).low <= 0.05);
    assert!(clopper_pearson(held, RUNS, 0.999).high >= 0.95);
    assert!(alone > 4 * different, "one session knows nothing of hours");
}
