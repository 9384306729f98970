//! The slow end of latency, stalls, and a gate on them.

use crate::builder::*;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_compare::gate::{GateResult, gate_line, gate_reasons, gate_results};
use deltabench_compare::tails::has_longer_tail;
use deltabench_compare::{analyse, combine, exit_code};
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::{Gate, GatedMetric, Plan, Stopping};
use deltabench_model::slice::Slice;

const US: u64 = 1_000;

/// Eight blocks of eight rounds of 5,000 operations of 100 µs, a little different from block to block, with
/// `slow` operations of the candidate that take `slow_us`.
fn slices_with(slow: impl Fn(u32) -> usize, slow_us: u64) -> Vec<Slice> {
    let mut slices = Vec::new();
    for (block, round) in (0..8).flat_map(|block| (0..8).map(move |round| (block, round))) {
        for (number, server) in (0..).zip([BASE, PLACEBO, CANDIDATE]) {
            let each = (100 + u64::from((block * 7 + number * 3 + round) % 3)) * US;
            let mut latencies: Vec<u64> = (0..5_000).map(|at| each + at % 10 * US).collect();
            if server == CANDIDATE {
                let slow = slow(block);
                latencies
                    .iter_mut()
                    .take(slow)
                    .for_each(|one| *one = slow_us * US);
            }
            let mut one = slice(server, block, round, 1000.0, None);
            one.operations = 5_000;
            one.duration_ns = latencies.iter().sum();
            one.latency_histogram = histogram(&latencies);
            slices.push(one);
        }
    }
    slices
}

fn planned(gate: Gate) -> Plan {
    let mut plan = plan(vec![cell(4, true)]);
    plan.delta = 0.05;
    plan.gate = gate;
    plan
}

fn found(slices: &[Slice]) -> Comparison {
    analyse(&planned(Gate::default()), slices, Vec::new())
}

fn verdict(comparison: &Comparison, of: Metric) -> Option<Verdict> {
    metric(only_cell(comparison), of).verdict
}

#[test]
fn a_longer_tail_is_a_verdict_of_its_own_and_stands_in_the_reason() {
    // 1.6 % of operations take 150 µs: 0.7 % of the time, and p99 a third longer.
    let comparison = found(&slices_with(|_| 80, 150));
    let cell = only_cell(&comparison);
    assert_eq!(cell.verdict, Verdict::NoChange, "{}", cell.reason);
    for quantile in [Metric::LatencyP99, Metric::LatencyP999, Metric::LatencyMax] {
        assert_eq!(
            verdict(&comparison, quantile),
            Some(Verdict::Regression),
            "{quantile:?}"
        );
    }
    assert_eq!(
        verdict(&comparison, Metric::LatencyP95),
        Some(Verdict::NoChange)
    );
    assert_eq!(
        verdict(&comparison, Metric::LatencyP50),
        None,
        "it moves with throughput"
    );
    assert!(
        cell.reason.contains("; p99 latency higher by 3"),
        "{}",
        cell.reason
    );
    assert!(!cell.reason.contains("p95"), "{}", cell.reason);
    assert!(has_longer_tail(cell));
}

#[test]
fn tails_of_several_sessions_have_their_own_delta_and_are_said_once() {
    let plan = planned(Gate::default());
    let over = |sessions: &[Comparison]| {
        let mut all = sessions[0].clone();
        combine(&mut all, sessions, &plan);
        all
    };
    // p99 is 8 % longer: beyond the δ of throughput, within that of tails.
    let longer = |us| found(&slices_with(|_| 80, us));
    let little = over(&[longer(118), longer(119), longer(118)]);
    assert_eq!(
        verdict(&little, Metric::LatencyP99),
        Some(Verdict::NoChange)
    );
    let told = |comparison: &Comparison| {
        let reason = &only_cell(comparison).reason;
        assert_eq!(only_cell(comparison).verdict, Verdict::NoChange, "{reason}");
        reason.matches("p99 latency higher by 3").count()
    };
    let much = [longer(150), longer(151), longer(150)];
    assert_eq!(told(&over(&much)), 1);
    let mut without = much[0].clone();
    without.cells.clear();
    assert_eq!(told(&over(&[much[0].clone(), without])), 1);
}

#[test]
fn equal_tails_are_no_change_and_say_nothing() {
    let comparison = found(&slices_with(|_| 0, 100));
    for quantile in deltabench_compare::tails::TAILS {
        assert_eq!(
            verdict(&comparison, quantile),
            Some(Verdict::NoChange),
            "{quantile:?}"
        );
    }
    assert!(!only_cell(&comparison).reason.contains("p99"));
    assert!(!has_longer_tail(only_cell(&comparison)));
    assert!(only_cell(&comparison).stalls.is_none());
}

#[test]
fn quantiles_without_ten_slower_operations_are_not_judged() {
    let mut slices = slices_with(|_| 0, 100);
    // 120 operations a block: six beyond p95.
    for one in &mut slices {
        let latencies: Vec<u64> = (0..15).map(|at| (100 + at) * US).collect();
        one.operations = 15;
        one.duration_ns = latencies.iter().sum();
        one.latency_histogram = histogram(&latencies);
    }
    let comparison = found(&slices);
    let cell = only_cell(&comparison);
    assert_eq!(verdict(&comparison, Metric::LatencyP99), None);
    let known = |of| cell.metrics.iter().any(|one| one.metric == of);
    assert!(!known(Metric::LatencyP95) && !known(Metric::LatencyP999));
    assert!(known(Metric::LatencyMax));
}

#[test]
fn stalls_say_what_they_were() {
    // One operation in 5,000 takes 40 ms: 8 µs on each of 105.
    let comparison = found(&slices_with(|_| 1, 40_000));
    let cell = only_cell(&comparison);
    assert_eq!(cell.verdict, Verdict::Regression, "{}", cell.reason);
    assert!(cell.reason.contains(" µs/op ["), "{}", cell.reason);
    // Stalls in every slice alike are what a typical slice is.
    assert!(cell.stalls.is_none());
    // In every eighth slice eight times as many: the typical slice has none.
    let mut slices = slices_with(|_| 8, 40_000);
    let quiet = slices_with(|_| 0, 0);
    for (one, quiet) in slices.iter_mut().zip(quiet) {
        if (one.round + one.block) % 8 != 0 {
            *one = quiet;
        }
    }
    let comparison = found(&slices);
    let cell = only_cell(&comparison);
    assert_eq!(cell.verdict, Verdict::Regression, "{}", cell.reason);
    let stalls = cell.stalls.unwrap();
    assert!(stalls.on_candidate && stalls.other_one_in.is_none());
    assert!((stalls.one_in - 5_000.0).abs() < 1e-6, "{stalls:?}");
    assert!((stalls.milliseconds - 40.0).abs() < 0.1, "{stalls:?}");
    assert!(
        (stalls.share_of_time - 8.0 / 113.5).abs() < 0.003,
        "{stalls:?}"
    );
    let told = comparison
        .findings
        .iter()
        .find(|one| one.kind == FindingKind::Stalls);
    let text = &told.unwrap().text;
    assert!(
        text.contains("1 operation in 5,000 takes 40 ms, 7.0 % of its time; none on the base"),
        "{text}"
    );
}

/// Stalls of the candidate in every eighth slice, `slow` operations there of 40 ms. Its other operations take
/// this share more, and all of them this much CPU; on the others it is 100 µs.
fn stalling(slow: usize, more: f64, cpu_us: u64) -> Vec<Slice> {
    stalling_by(|_| slow, more, cpu_us)
}

/// The same with so many slow operations in each block.
fn stalling_by(slow: impl Fn(u32) -> usize, more: f64, cpu_us: u64) -> Vec<Slice> {
    let mut slices = slices_with(slow, 40_000);
    let quiet = slices_with(|_| 0, 0);
    for (one, quiet) in slices.iter_mut().zip(quiet) {
        if (one.round + one.block) % 8 != 0 {
            *one = quiet;
        }
        let on_candidate = one.server == CANDIDATE;
        if on_candidate {
            one.duration_ns += deltabench_model::units::to_u64(more * 5e8);
        }
        let each = if on_candidate { cpu_us } else { 100 };
        one.server_cpu_ns = Some(one.operations * each * US);
    }
    slices
}

/// One client that only reads: there CPU per operation has to move with throughput.
fn read_alone() -> Plan {
    let mut plan = planned(Gate::default());
    plan.cells = vec![cell(1, false)];
    plan
}

#[test]
fn stalls_that_cost_no_cpu_are_not_contradicted_by_it() {
    let comparison = analyse(&read_alone(), &stalling(8, 0.0, 100), Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!(cell.verdict, Verdict::Regression, "{}", cell.reason);
    assert!(cell.stalls.is_some());
    assert!(
        cell.reason.contains(", because of stalls of the candidate"),
        "{}",
        cell.reason
    );
}

#[test]
fn small_stalls_do_not_excuse_a_loss_that_cpu_denies() {
    // The typical operation takes 30 % more on 10 % less CPU; 3 % more are stalls.
    let comparison = analyse(&read_alone(), &stalling(4, 0.3, 90), Vec::new());
    let cell = only_cell(&comparison);
    assert!(cell.stalls.is_some());
    assert_eq!(cell.verdict, Verdict::Inconclusive, "{}", cell.reason);
    let told = cell
        .reason
        .starts_with("contradicted by CPU: throughput slower by");
    assert!(
        told && !cell.reason.contains("because of stalls"),
        "{}",
        cell.reason
    );
}

/// Unlike stalls in each block: beyond chance in this cell, and not among forty.
fn uneven(block: u32) -> usize {
    [8, 2, 8, 3, 12, 2, 10, 4][usize::try_from(block).unwrap()]
}

/// The only measured cell of so many, and what findings say of stalls.
fn first_of(cells: usize, slices: &[Slice]) -> (CellComparison, bool) {
    let mut plan = read_alone();
    plan.cells = vec![cell(1, false); cells];
    let comparison = analyse(&plan, slices, Vec::new());
    let told = { comparison.findings.iter() }.any(|one| one.kind == FindingKind::Stalls);
    (comparison.cells[0].clone(), told)
}

#[test]
fn stalls_that_no_reason_names_have_to_hold_among_all_cells() {
    // The typical operation takes 30 % more, with as much more CPU: no verdict needs the stalls.
    let slices = stalling_by(uneven, 0.3, 130);
    let (alone, told) = first_of(1, &slices);
    let p = alone.stalls.unwrap().p;
    assert!(told && (0.05 / 40.0..0.05).contains(&p), "{p}");
    let (among, told) = first_of(40, &slices);
    assert_eq!(among.verdict, Verdict::Regression, "{}", among.reason);
    assert!(
        !among.reason.contains("because of stalls"),
        "{}",
        among.reason
    );
    assert!(among.stalls.is_none() && !told);
}

#[test]
fn stalls_that_a_reason_names_are_told_whatever_became_of_the_verdict() {
    let slices = stalling_by(uneven, 0.0, 100);
    let (alone, _) = first_of(1, &slices);
    assert_eq!(alone.verdict, Verdict::Regression, "{}", alone.reason);
    let (among, told) = first_of(40, &slices);
    assert_eq!(among.verdict, Verdict::Inconclusive, "{}", among.reason);
    for said in [", because of stalls of the candidate", "not among 40"] {
        assert!(among.reason.contains(said), "{}", among.reason);
    }
    assert!(among.stalls.is_some_and(|stalls| stalls.named) && told);
}

#[test]
fn what_the_last_look_overstates_is_said_after_the_stalls() {
    let mut plan = read_alone();
    plan.stopping = Stopping::Sequential { looks: vec![8] };
    let more = |block| if block % 2 == 0 { 12 + block } else { 0 };
    let slices = stalling_by(|block| usize::try_from(more(block)).unwrap(), 0.0, 100);
    let comparison = analyse(&plan, &slices, Vec::new());
    let reason = &only_cell(&comparison).reason;
    let (before, note) = reason
        .split_once("; found at the last look, where sizes are too large on average: ")
        .unwrap_or_else(|| panic!("{reason}"));
    assert!(
        before.contains(", because of stalls of the candidate; +"),
        "{reason}"
    );
    assert!(note.ends_with(" without that"), "{reason}");
}

#[test]
fn stalls_of_a_placebo_have_to_hold_among_all_placebos() {
    let placebo = |slices: Vec<Slice>| -> Vec<Slice> {
        let other = |one: Slice| Slice {
            server: match one.server {
                CANDIDATE => PLACEBO,
                PLACEBO => CANDIDATE,
                base => base,
            },
            ..one
        };
        slices.into_iter().map(other).collect()
    };
    // In one block of eight: beyond a third of δ, and p far from 5 %.
    let mut slices = stalling(16, 0.0, 100);
    slices.retain(|one| one.block != 0);
    let loud = stalling(64, 0.0, 100);
    let quiet = stalling(0, 0.0, 100);
    let chance = loud.into_iter().zip(quiet);
    let chance = chance.map(|(loud, quiet)| if quiet.block == 0 { loud } else { quiet });
    let of_placebo = |slices: Vec<Slice>| {
        let found = analyse(&planned(Gate::default()), &placebo(slices), Vec::new());
        let told = found
            .findings
            .iter()
            .any(|one| one.kind == FindingKind::Stalls);
        (found.placebo_cells[0].stalls.is_some(), told)
    };
    assert_eq!(
        of_placebo(slices),
        (true, false),
        "shown with its cell, and nowhere else"
    );
    assert_eq!(of_placebo(chance.collect()), (false, false));
}

#[test]
fn a_tail_has_the_level_of_the_interval_that_is_printed() {
    // p99 of each block, microseconds, so that p lies between 3 and 5 %: the printed 97 % interval holds 1.
    let blocks = [126, 126, 111, 146, 109, 146, 113, 116];
    let mut slices = slices_with(|_| 0, 100);
    for one in slices.iter_mut().filter(|one| one.server == CANDIDATE) {
        let slow = blocks[usize::try_from(one.block).unwrap()];
        let latencies: Vec<u64> = (0..5_000)
            .map(|at| if at < 80 { slow } else { 100 } * US)
            .collect();
        one.latency_histogram = histogram(&latencies);
    }
    let found = |stopping| {
        let mut plan = planned(Gate::default());
        plan.stopping = stopping;
        let comparison = analyse(&plan, &slices, Vec::new());
        let cell = only_cell(&comparison);
        let tail = metric(cell, Metric::LatencyP99);
        let holds = tail
            .ratio
            .ci95
            .is_some_and(|(low, high)| low < 1.0 && 1.0 < high);
        (
            tail.verdict.unwrap(),
            holds,
            cell.p_of(Metric::LatencyP99).unwrap(),
        )
    };
    let (verdict, holds, p) = found(Stopping::Fixed);
    assert_eq!((verdict, holds), (Verdict::Regression, false));
    let (verdict, holds, scaled) = found(Stopping::Precision { half_width: 0.05 });
    assert_eq!((verdict, holds), (Verdict::Inconclusive, true));
    assert!(p < 0.05 && scaled > 0.05, "{p} {scaled}");
}

#[test]
fn a_gate_asks_for_what_it_is_told_to() {
    let slices = slices_with(|_| 80, 150);
    let result = |metrics: &[GatedMetric]| {
        let plan = planned(Gate {
            on: true,
            metrics: metrics.to_vec(),
            ..Gate::default()
        });
        let comparison = analyse(&plan, &slices, Vec::new());
        (
            gate_results(&comparison)[0],
            gate_line(&comparison, &plan).unwrap(),
        )
    };
    assert_eq!(result(&[]).0, GateResult::Passed);
    assert_eq!(
        result(&[GatedMetric::Throughput, GatedMetric::P95]).0,
        GateResult::Passed
    );
    let (failed, line) = result(&[GatedMetric::Throughput, GatedMetric::P99]);
    assert_eq!(failed, GateResult::Failed);
    assert!(
        line.starts_with("gate failed: slower or higher in p99 latency in 1 of 1 cells"),
        "{line}"
    );
    // Nobody knows its CPU.
    let (unknown, line) = result(&[GatedMetric::Cpu]);
    assert_eq!(unknown, GateResult::Unknown);
    assert!(line.ends_with("; 1 without a known CPU"), "{line}");
}

#[test]
fn what_a_block_has_too_few_operations_for_passes_no_gate() {
    // A candidate so slow that a block has 400 operations: p99.9 has no figure, however many blocks there
    // are.
    let mut slices = slices_with(|_| 0, 100);
    for one in &mut slices {
        let each = if one.server == CANDIDATE { 200 } else { 100 };
        one.latency_histogram = histogram(&[each * US; 50]);
        (one.operations, one.duration_ns) = (50, 50 * each * US);
    }
    let asked = |metrics: &[GatedMetric]| {
        let plan = planned(Gate {
            on: true,
            inconclusive_passes: true,
            metrics: metrics.to_vec(),
            ..Gate::default()
        });
        let found = analyse(&plan, &slices, Vec::new());
        let line = gate_line(&found, &plan).unwrap();
        (
            exit_code(&found),
            line,
            gate_reasons(&found).concat().join("; "),
        )
    };
    let (code, line, reasons) = asked(&[GatedMetric::P999]);
    assert_eq!(code, 3, "{line}");
    assert_eq!(
        line,
        "gate open: none of 1 cells is shown to be higher in p99.9 latency; \
         1 without a known p99.9 latency (too few operations in a block), which do not pass"
    );
    assert_eq!(
        reasons,
        "p99.9 latency unknown (too few operations in a block)"
    );
    // What is known fails it all the same, and is named.
    let (code, line, reasons) = asked(&[GatedMetric::P95, GatedMetric::P999]);
    assert_eq!(code, 1, "{line}");
    assert!(reasons.starts_with("p95 latency higher by "), "{reasons}");
}

#[test]
fn a_cell_that_is_open_in_its_tail_is_not_open_for_its_price() {
    // As fast with 6 % more CPU; p99 says nothing.
    let blocks = [90, 140, 70, 150, 80, 145, 75, 110];
    let mut slices = slices_with(|_| 0, 100);
    for one in &mut slices {
        let mut cpu = one.duration_ns / 2;
        if one.server == CANDIDATE {
            cpu += cpu * 6 / 100;
            let slow = blocks[usize::try_from(one.block).unwrap()];
            let of = |at| if at < 80 { slow } else { 100 } * US;
            let latencies: Vec<u64> = (0..5_000).map(of).collect();
            one.latency_histogram = histogram(&latencies);
        }
        one.server_cpu_ns = Some(cpu);
    }
    let line = |metrics: &[GatedMetric]| {
        let plan = planned(Gate {
            on: true,
            metrics: metrics.to_vec(),
            ..Gate::default()
        });
        let found = analyse(&plan, &slices, Vec::new());
        let line = gate_line(&found, &plan).unwrap();
        line.split_once("; ").unwrap().1.to_owned()
    };
    let (price, answer) = (
        "1 as fast with more CPU per operation",
        "1 without an answer",
    );
    assert_eq!(line(&[]), price);
    assert_eq!(line(&[GatedMetric::P99]), answer);
    assert_eq!(line(&[GatedMetric::Throughput, GatedMetric::P99]), answer);
    assert_eq!(line(&[GatedMetric::Throughput, GatedMetric::P95]), price);
}
