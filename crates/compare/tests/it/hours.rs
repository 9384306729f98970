//! Several sessions as one result, and what another hour would say.

use crate::builder::*;
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::{
    Comparison, HoursFrom, Metric, MetricComparison, Ratio, Verdict,
};
use deltabench_compare::gate::gate_reasons;
use deltabench_compare::sensitivity::{Depends, sensitive};
use deltabench_compare::{
    Earlier, EarlierRun, Repeated, analyse, combine, exit_code, foretell, gate_line,
};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Gate, GatedMetric, Plan, Stopping, Varied};
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_stats::binomial::clopper_pearson;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub fn gated(gate: Gate) -> Plan {
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

pub fn session(plan: &Plan, centre: f64) -> Comparison {
    session_of(plan, 8, (centre, 1.0 / centre))
}

fn together(plan: &Plan, all: &[Comparison]) -> Comparison {
    let mut first = all[0].clone();
    combine(&mut first, all, plan);
    first
}

pub fn over(plan: &Plan, centres: &[f64]) -> Comparison {
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
    // One load each is what several sessions are for.
    let mut second = other.clone();
    let loads = Finding::new(FindingKind::LoadsDiffer, Severity::Note, "its own load");
    second.findings.push(loads);
    combine(&mut found, &[second], &plan);
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
    let found = session(&plan, 0.5);
    assert_eq!(exit_code(&found), 3);
    let reasons = |found: &Comparison| gate_reasons(found).concat().join("; ");
    assert_eq!(reasons(&found), "no answer in another hour");
    let plan = gated(asks(false, Some(0.05)));
    assert_eq!(
        reasons(&over(&plan, &[0.92, 0.95, 0.98, 0.95, 0.96])),
        "a loss of more than 5 % is neither shown nor excluded"
    );
}

/// Runs of one comparison, by their figures; each is of an hour of its own.
fn runs_of(figures: &[f64]) -> Vec<EarlierRun> {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    let run = |figure: &f64| EarlierRun {
        hour: NUMBER.fetch_add(1, Ordering::Relaxed),
        blocks: vec![figure - 0.001, figure + 0.001],
    };
    figures.iter().map(run).collect()
}

#[test]
fn earlier_runs_of_the_host_widen_one_session_to_another_hour() {
    let plan = gated(Gate::default());
    let mut found = session(&plan, 0.95);
    // Two comparisons that were repeated, one of them twice: three repetitions, 4 % apart.
    let sets = [&[0.0, 0.04][..], &[0.10, 0.14, 0.18], &[0.3]];
    foretell(&mut found, |_, metric| match metric {
        Metric::Throughput => Earlier {
            cell: sets.map(runs_of).to_vec(),
            ..Earlier::default()
        },
        _ => Earlier::default(),
    });
    let cell = only_cell(&found);
    assert_eq!(
        cell.verdict,
        Verdict::Regression,
        "the verdict is this hour's"
    );
    let speed = metric(cell, Metric::Throughput);
    let hours = speed.hours.as_ref().unwrap();
    assert_eq!(hours.from, HoursFrom::Host(3));
    assert_eq!(hours.verdict, Verdict::Inconclusive);
    assert!(hours.another.ci95.unwrap().1 > 1.0);
    assert!((hours.long_run.estimate - speed.ratio.estimate).abs() < 1e-12);
    let cost = metric(cell, Metric::ServerCpuPerOperation).hours.as_ref();
    assert_eq!(cost.unwrap().from, HoursFrom::Prior);
    assert!(hours.assumed && cost.unwrap().assumed);
}

/// A session of one client in which base and candidate make so many switches for each operation. An operation
/// takes the base 1 ms and 10 us of CPU, the candidate half of both.
fn switching(plan: &Plan, (base, candidate): (u64, u64)) -> Comparison {
    let (same, half) = (around(1.0, 0.001, 8), around(0.5, 0.001, 8));
    let double = around(2.0, 0.001, 8);
    let sides = [(PLACEBO, &same, &same), (CANDIDATE, &double, &half)];
    let sides = sides.map(|(server, rates, costs)| Blocks {
        server,
        rates,
        costs,
    });
    let mut slices = slices(8, &sides);
    for slice in &mut slices {
        let each = if slice.server == CANDIDATE {
            candidate
        } else {
            base
        };
        slice.switches = Some(each * slice.operations);
    }
    analyse(plan, &slices, Vec::new())
}

/// The standard deviation between hours of such a session after earlier runs, and whether it is assumed.
fn between_hours(
    (clients, rate): (u32, Option<f64>),
    switches: (u64, u64),
    of: Metric,
    earlier: &Earlier,
) -> (f64, bool) {
    let mut plan = gated(Gate::default());
    plan.cells = vec![cell(clients, false)];
    plan.cells[0].rate = rate;
    let mut found = switching(&plan, switches);
    foretell(&mut found, |_, _| earlier.clone());
    let hours = metric(only_cell(&found), of).hours.as_ref().unwrap();
    (hours.sd, hours.assumed)
}

#[test]
fn another_hour_is_wider_where_one_side_switches_more_often_between_processes() {
    let (speed, cpu) = (Metric::Throughput, Metric::ServerCpuPerOperation);
    let one = |switches, of, earlier: &Earlier| between_hours((1, None), switches, of, earlier);
    let nothing = Earlier::default();
    // Switches on both sides alike say nothing, however far the sides are apart.
    for of in [speed, cpu] {
        assert!((one((8, 8), of, &nothing).0 - 0.005).abs() < 1e-9);
    }
    // Eight more are 12 us of 1 ms and of 0.5 ms.
    let time = 0.012 * 2.0_f64.sqrt();
    let found = one((9, 1), speed, &nothing).0;
    assert!((found - 0.005_f64.hypot(time)).abs() < 1e-5, "{found}");
    // And 8 us of 10 and of 5 us of CPU, but no more than a quarter of the difference.
    let most = 0.25 * 2.0_f64.ln();
    let found = one((9, 1), cpu, &nothing).0;
    assert!((found - 0.005_f64.hypot(most)).abs() < 1e-4, "{found}");
    // Nobody has seen it with more clients, and a schedule is kept at any price.
    for other in [(4, None), (1, Some(1000.0))] {
        let found = between_hours(other, (9, 1), speed, &nothing).0;
        assert!((found - 0.005).abs() < 1e-9, "{other:?}: {found}");
    }
}

#[test]
fn what_switches_cost_in_another_hour_stays_an_assumption_and_gives_way_to_what_was_measured() {
    let one = |switches, earlier: &Earlier| {
        between_hours((1, None), switches, Metric::Throughput, earlier)
    };
    let cell = |number: usize| repeated(&[runs_of(&[0.0, 1e-3 * to_f64(count(1 + number))])]);
    let mut earlier = Earlier {
        others: (0..12).map(cell).collect(),
        ..Earlier::default()
    };
    let (learned, assumed) = one((1, 1), &earlier);
    assert!(!assumed, "twelve other cells have repetitions");
    let (more, assumed) = one((9, 1), &earlier);
    let time = 0.012 * 2.0_f64.sqrt();
    assert!(
        (more - learned.hypot(time)).abs() < 1e-5,
        "{learned} {more}"
    );
    assert!(assumed);
    // Eleven other hours of this very comparison, which is twice as fast.
    earlier.pair = runs_of(&[2.0_f64.ln(); 11]);
    let (measured, _) = one((1, 1), &earlier);
    let (less, _) = one((9, 1), &earlier);
    let left = time * (4.0_f64 / 15.0).sqrt();
    assert!(
        (less - measured.hypot(left)).abs() < 1e-5,
        "{measured} {less}"
    );
}

#[test]
fn unsteady_hours_move_a_ratio_more_and_a_large_difference_in_proportion() {
    let (speed, cpu) = (Metric::Throughput, Metric::ServerCpuPerOperation);
    let one = |switches, of, earlier: &Earlier| between_hours((1, None), switches, of, earlier);
    let unsteady = Earlier {
        is_unsteady: true,
        ..Earlier::default()
    };
    // The candidate takes half of the time, and of the CPU.
    let share = 0.05 * 2.0_f64.ln();
    for of in [speed, cpu] {
        let (found, assumed) = one((8, 8), of, &unsteady);
        assert!((found - 0.009_f64.hypot(share)).abs() < 1e-9, "{found}");
        assert!(assumed);
    }
    // What switches cost is a part of the difference: the larger one counts.
    let found = one((9, 1), speed, &unsteady).0;
    assert!((found - 0.009_f64.hypot(share)).abs() < 1e-9, "{found}");
    // Where hours are learned from other cells, it still widens. But nothing is in doubt for it: else a large
    // loss would answer no gate, and a small one would.
    let cell = |number: usize| repeated(&[runs_of(&[0.0, 1e-3 * to_f64(count(1 + number))])]);
    let learned = |is_unsteady| Earlier {
        others: (0..12).map(cell).collect(),
        is_unsteady,
        ..Earlier::default()
    };
    let (steady, is_assumed) = one((1, 1), speed, &learned(false));
    assert!(!is_assumed);
    let (found, is_assumed) = one((1, 1), speed, &learned(true));
    assert!(
        (found - steady.hypot(share)).abs() < 1e-5,
        "{steady} {found}"
    );
    assert!(!is_assumed);
}

#[test]
fn nothing_is_assumed_of_slow_quantiles() {
    let mut found = session(&gated(Gate::default()), 0.95);
    found.cells[0].metrics[0].metric = Metric::LatencyP99;
    foretell(&mut found, |_, _| Earlier::default());
    assert!(found.cells[0].metrics[0].hours.is_none());
    let known = Earlier {
        cell: vec![runs_of(&[0.0, 0.04])],
        ..Earlier::default()
    };
    foretell(&mut found, |_, _| known.clone());
    let hours = found.cells[0].metrics[0].hours.as_ref().unwrap();
    assert_eq!(hours.from, HoursFrom::Host(1));
}

#[test]
fn the_same_comparison_in_other_hours_is_one_result_and_other_cells_say_how_hours_differ() {
    let plan = gated(Gate::default());
    let with = |earlier: &Earlier| {
        let mut found = session(&plan, 0.95);
        foretell(&mut found, |_, _| earlier.clone());
        let speed = metric(only_cell(&found), Metric::Throughput).clone();
        (speed.ratio, speed.hours.unwrap())
    };
    let mut known = Earlier {
        pair: runs_of(&[-0.03, -0.02]),
        ..Earlier::default()
    };
    let (_, own) = with(&known);
    assert_eq!(own.from, HoursFrom::Pair(3));
    let mean = (0.95_f64.ln() - 0.05) / 3.0;
    assert!((own.long_run.estimate.ln() - mean).abs() < 1e-4);
    let half = |ratio: Ratio| (ratio.ci95.unwrap().1 / ratio.estimate).ln();
    assert!(
        (half(own.another) / half(own.long_run) - 2.0).abs() < 1e-2,
        "√(1 + 3), and a little because this run is less precise"
    );
    // Of three cells whose repetitions agree this one is no exception, nor of three that do not.
    let others = |apart: f64| {
        let cell = || {
            (0..4)
                .map(|_| runs_of(&[0.1, 0.1 + apart]))
                .collect::<Vec<_>>()
        };
        let cells = (0..3).map(|_| repeated(&cell()));
        cells.collect::<Vec<_>>()
    };
    known.pair.clear();
    known.others = others(0.001);
    let (here, alike) = with(&known);
    assert_eq!(alike.from, HoursFrom::Host(12));
    known.others = others(0.05);
    let (_, unlike) = with(&known);
    assert!(2.0 * half(alike.another) < half(unlike.another));
    assert!(half(alike.another) >= half(here));
    // Two others are too few to know how cells differ, also with this one.
    known.others.truncate(2);
    assert_eq!(with(&known).1.from, HoursFrom::Prior);
    known.cell = vec![runs_of(&[0.1, 0.15])];
    assert_eq!(with(&known).1.from, HoursFrom::Host(1));
}

#[test]
fn what_is_only_assumed_of_another_hour_passes_no_gate() {
    for figure in [0.5, 1.0] {
        let plan = gated(asks(true, None));
        let mut found = session(&plan, figure);
        foretell(&mut found, |_, _| Earlier::default());
        let speed = metric(only_cell(&found), Metric::Throughput);
        let hours = speed.hours.as_ref().unwrap();
        assert!(hours.assumed && hours.from == HoursFrom::Prior);
        assert_eq!(hours.verdict, only_cell(&found).verdict);
        assert_eq!(exit_code(&found), 3);
    }
}

#[test]
fn a_gate_stays_open_while_an_assumption_takes_part() {
    // Repetitions that agree with a run of this figure, of the same comparison.
    let code = |figure: f64, earlier: usize| {
        let plan = gated(asks(true, None));
        let mut found = session(&plan, figure);
        let near = (0..earlier).map(|at| figure.ln() + 1e-4 * to_f64(count(at)));
        let known = Earlier {
            pair: runs_of(&near.collect::<Vec<f64>>()),
            ..Earlier::default()
        };
        foretell(&mut found, |_, _| known.clone());
        let speed = metric(only_cell(&found), Metric::Throughput);
        let hours = speed.hours.as_ref().unwrap();
        let verdict = hours.verdict;
        assert_eq!(
            hours.from,
            HoursFrom::Pair(u32::try_from(earlier).unwrap() + 1)
        );
        (hours.assumed, verdict, exit_code(&found))
    };
    // Whatever it says: it is 4 degrees of freedom by assumption, and 1 to 3 by repetitions.
    for earlier in 1..=3 {
        let [slower, alike] = [0.5, 1.0].map(|figure| code(figure, earlier));
        assert_eq!(slower, (true, Verdict::Regression, 3));
        assert_eq!((alike.0, alike.2), (true, 3));
    }
    assert_eq!(code(0.5, 4), (false, Verdict::Regression, 1));
    assert_eq!(code(1.0, 4), (false, Verdict::NoChange, 0));
}

#[test]
fn a_margin_that_is_open_in_the_measured_hour_does_not_pass_in_another_one() {
    let plan = gated(asks(true, Some(0.03)));
    let mut found = session(&plan, 1.0);
    foretell(&mut found, |_, _| Earlier {
        pair: runs_of(&[0.0, 1e-4, 0.0, 1e-4]),
        ..Earlier::default()
    });
    assert_eq!(exit_code(&found), 0);
    // With looks the stricter level decides here, and it reaches below the margin.
    found.stopping = Stopping::Sequential { looks: vec![8] };
    found.cells[0].verdict = Verdict::Inconclusive;
    found.cells[0].metrics[0].ratio.ci95 = Some((0.96, 1.01));
    assert_eq!(exit_code(&found), 3);
}

#[test]
fn a_ratio_that_depends_on_a_condition_says_if_an_assumption_takes_part() {
    let plan = gated(Gate::default());
    let depends = |earlier: &[f64], there: f64| {
        let mut own = session(&plan, 0.7);
        foretell(&mut own, |_, _| Earlier {
            pair: runs_of(earlier),
            ..Earlier::default()
        });
        let there = session(&plan, there);
        let found = sensitive(only_cell(&own), only_cell(&there), Varied::Tcp);
        found.unwrap().depends
    };
    let same = 0.7_f64.ln();
    let measured = [same, same + 1e-3, same, same];
    assert_eq!(depends(&[same], 0.95), Depends::AsAssumed);
    assert_eq!(depends(&measured, 0.95), Depends::Yes);
    // Two loads and hours may do as much: that was measured, or it is only assumed.
    assert_eq!(depends(&[same], 0.7), Depends::NotShown);
    assert_eq!(depends(&[same], 0.708), Depends::Unknown);
    assert_eq!(depends(&measured, 0.7), Depends::NotShown);
}

#[test]
fn what_a_condition_does_is_no_surer_than_the_run_under_it() {
    let plan = gated(Gate::default());
    let same = 0.7_f64.ln();
    let width = |noise: f64| {
        let mut own = session(&plan, 0.7);
        foretell(&mut own, |_, _| Earlier {
            pair: runs_of(&[same, same + 0.03, same - 0.03, same]),
            ..Earlier::default()
        });
        let (rates, costs) = (around(0.7, noise, 8), around(1.0 / 0.7, noise, 8));
        let there = analyse(&plan, &slices(8, &[candidate(&rates, &costs)]), Vec::new());
        let found = sensitive(only_cell(&own), only_cell(&there), Varied::Tcp).unwrap();
        let (low, high) = found.against.ci95.unwrap();
        high - low
    };
    // Hours scatter by 2 %, the mean of eight noisy blocks by as much.
    let (quiet, noisy) = (width(0.004), width(0.06));
    assert!(noisy > 1.2 * quiet, "{quiet} {noisy}");
}

#[test]
fn blocks_of_sessions_have_numbers_of_their_own() {
    let plan = gated(Gate::default());
    let speed = metric(only_cell(&session(&plan, 0.95)), Metric::Throughput).clone();
    assert_eq!(speed.numbers, (0..8).collect::<Vec<u32>>());
    let sessions = over(&plan, &[0.95, 0.96]);
    let numbers = &metric(only_cell(&sessions), Metric::Throughput).numbers;
    assert_eq!(*numbers, (0..16).collect::<Vec<u32>>());
}

#[test]
fn another_hour_is_of_a_run_as_long_as_this_one() {
    let plan = gated(Gate::default());
    let with = |figure: f64, earlier: &[f64]| {
        let mut found = session_of(&plan, 6, (figure, 1.0 / figure));
        foretell(&mut found, |_, _| Earlier {
            pair: runs_of(earlier)
                .into_iter()
                .map(|run| EarlierRun {
                    blocks: run.blocks.repeat(24),
                    ..run
                })
                .collect(),
            ..Earlier::default()
        });
        let speed = metric(only_cell(&found), Metric::Throughput).clone();
        (speed.ratio, speed.hours.unwrap())
    };
    // Five long runs that agree, and this short one.
    let same = [0.95_f64.ln(); 5];
    let (here, hours) = with(0.95, &same);
    let half = |ratio: Ratio| (ratio.ci95.unwrap().1 / ratio.estimate).ln();
    assert!(half(hours.another) >= half(here));
    assert!(
        half(hours.long_run) < 0.7 * half(here),
        "six runs know more"
    );
    // This hour says that it is faster, the other five that it is slower: nobody knows of another.
    let (here, hours) = with(1.02, &[-0.05, -0.0501, -0.0499, -0.05, -0.05]);
    let (low, high) = hours.another.ci95.unwrap();
    assert!(here.ci95.unwrap().0 > 1.0 && low < 1.0 && high >= here.ci95.unwrap().1);
    assert_eq!(
        (hours.verdict, hours.p.to_bits()),
        (Verdict::Inconclusive, 1.0_f64.to_bits())
    );
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
    foretell(&mut found, |_, _| Earlier {
        cell: vec![runs_of(&[-0.015; 60])],
        ..Earlier::default()
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

/// How a cell scattered, by its comparisons.
fn repeated(comparisons: &[Vec<EarlierRun>]) -> Arc<Repeated> {
    let comparisons = comparisons.iter().map(|runs| {
        let runs = runs.iter();
        runs.map(|run| (run.hour, run.blocks.as_slice())).collect()
    });
    Arc::new(Repeated::of(comparisons))
}

/// What a run of eight cells, or of four candidates in one, found again in one other hour.
fn repeated_once(cells: usize) -> Vec<Vec<Vec<EarlierRun>>> {
    let found = |hour: usize, cell: usize| EarlierRun {
        hour,
        blocks: [-1.0, 1.0]
            .map(|side| 1e-3 * side + 1e-5 * to_f64(count(cell + hour)))
            .to_vec(),
    };
    let of = |cell: usize| vec![vec![found(1, cell), found(2, cell)]];
    (0..cells).map(of).collect()
}

#[test]
fn a_run_that_was_measured_again_is_one_hour_however_many_cells_and_candidates_it_has() {
    let plan = gated(asks(true, None));
    let with = |earlier: Earlier| {
        let mut found = session(&plan, 0.5);
        foretell(&mut found, |_, _| earlier.clone());
        let speed = metric(only_cell(&found), Metric::Throughput).clone();
        let hours = speed.hours.unwrap();
        (hours.from, hours.assumed, exit_code(&found))
    };
    let cells = Earlier {
        others: { repeated_once(8).into_iter() }
            .map(|cell| repeated(&cell))
            .collect(),
        ..Earlier::default()
    };
    assert_eq!(with(cells), (HoursFrom::Host(1), true, 3));
    let candidates = Earlier {
        cell: repeated_once(4).concat(),
        ..Earlier::default()
    };
    assert_eq!(with(candidates), (HoursFrom::Host(1), true, 3));
    // Nor do two candidates that were one build make a repetition.
    let twice = Earlier {
        cell: vec![vec![repeated_once(1)[0][0][0].clone(); 2]],
        ..Earlier::default()
    };
    assert_eq!(with(twice), (HoursFrom::Prior, true, 3));
    // The same of runs that have nothing in common is four.
    let apart = Earlier {
        cell: (0..4).map(|_| runs_of(&[0.0, 1e-5])).collect(),
        ..Earlier::default()
    };
    assert_eq!(with(apart), (HoursFrom::Host(4), false, 1));
}

/// Hours that move all cells of a host alike: eight cells, of which a run measured each so often, and then
/// this cell, which may have been in these runs or not.
#[test]
fn another_hour_holds_where_all_cells_have_one_luck() {
    let plan = gated(Gate::default());
    let base = session(&plan, 1.0);
    let mut random = Simulation::new(45);
    for (repeats, sd, is_own) in [(1, 0.005, false), (5, 0.01, false), (5, 0.01, true)] {
        let number = runs(1500);
        let mut held = 0;
        for _ in 0..number {
            let lucks: Vec<f64> = (0..repeats + 3).map(|_| sd * random.normal()).collect();
            let mut measured = |hour: usize| EarlierRun {
                hour,
                blocks: { 0..8 }
                    .map(|_| lucks[hour] + 0.003 * random.normal())
                    .collect(),
            };
            // Hour 0 is now, the last one another.
            let mut earlier = || (1..=repeats + 1).map(&mut measured).collect::<Vec<_>>();
            let known = Earlier {
                others: (0..8).map(|_| repeated(&[earlier()])).collect(),
                pair: if is_own { earlier() } else { Vec::new() },
                ..Earlier::default()
            };
            let [now, next] = [0, repeats + 2].map(|hour| measured(hour).blocks);
            let mut found = base.clone();
            found.cells[0].metrics[0].blocks = now;
            foretell(&mut found, |_, _| known.clone());
            let hours = found.cells[0].metrics[0].hours.as_ref().unwrap();
            let (low, high) = hours.another.ci95.unwrap();
            let figure = (next.iter().sum::<f64>() / 8.0).exp();
            held += u64::from((low..=high).contains(&figure));
        }
        let share = to_f64(held) / to_f64(number);
        println!("{repeats} hours of eight cells with one luck of {sd}, own {is_own}: {share:.3}");
        assert!(share >= 0.94, "{share} after {repeats}");
    }
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
