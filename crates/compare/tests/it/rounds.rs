//! Which rounds count, and what is computed from them.

use crate::builder::*;
use deltabench_compare::comparison::{Metric, MetricComparison, Verdict};
use deltabench_compare::{analyse, exit_code};
use deltabench_model::plan::{CacheState, CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::slice::{Slice, VoidReason};

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

fn of(slices: &mut [Slice], server: ServerId, block: u32, round: u32) -> &mut Slice {
    slices
        .iter_mut()
        .find(|s| (s.server, s.block, s.round) == (server, block, round))
        .unwrap()
}

#[test]
fn a_void_slice_voids_the_round_for_its_own_pairs_only() {
    let rates = around(1.0, 0.01, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &rates,
        costs: &[],
    };
    let mut slices = slices(8, &[placebo, candidate(&rates, &[])]);
    of(&mut slices, CANDIDATE, 0, 1).void = Some(VoidReason::Stalled);
    of(&mut slices, BASE, 3, 2).void = Some(VoidReason::ServerLost);
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let (cell, placebo) = (&comparison.cells[0], &comparison.placebo_cells[0]);
    assert_eq!((cell.rounds, cell.void_rounds, cell.blocks), (30, 2, 8));
    assert_eq!(
        (placebo.rounds, placebo.void_rounds, placebo.blocks),
        (31, 1, 8)
    );
    assert_eq!(cell.series.len(), 30);
    assert!(
        !cell
            .series
            .iter()
            .any(|r| (r.block, r.round) == (0, 1) || (r.block, r.round) == (3, 2))
    );
}

#[test]
fn from_cold_caches_the_first_round_counts_for_what_it_took() {
    let mut slices = Vec::new();
    for (block, round) in (0..6).flat_map(|block| (0..10).map(move |round| (block, round))) {
        slices.push(slice(BASE, block, round, 1000.0, None));
        let rate = if round == 0 { 100.0 } else { 1000.0 };
        slices.push(slice(CANDIDATE, block, round, rate, None));
    }
    let mut plan = plan(vec![cell(1, false)]);
    let ratio = |plan: &Plan| {
        let comparison = analyse(plan, &slices, Vec::new());
        metric(only_cell(&comparison), Metric::Throughput)
            .ratio
            .estimate
    };
    // Ten rounds of one against nine of one and one of ten.
    let paid = 10.0 / 19.0;
    assert!((ratio(&plan) - paid).abs() < 1e-6);
    let comparison = analyse(&plan, &slices, Vec::new());
    let speed = metric(only_cell(&comparison), Metric::Throughput);
    let typical = |speed: &MetricComparison| speed.typical.unwrap().estimate;
    assert!(
        (typical(speed) - 1.0).abs() < 1e-9,
        "one of ten is not typical"
    );
    plan.cache = CacheState::Cold;
    let cold = analyse(&plan, &slices, Vec::new());
    let speed = metric(only_cell(&cold), Metric::Throughput);
    assert!((speed.ratio.estimate - paid).abs() < 1e-6);
    assert!(
        (typical(speed) - paid).abs() < 1e-6,
        "there it is what counts"
    );
    assert!(
        speed.skewness.above() - speed.skewness.below() < 1e-9,
        "first rounds are no draws of one kind"
    );
}

#[test]
fn a_slice_without_operations_or_duration_gives_no_rate_and_is_void() {
    let mut slices = slices(8, &[candidate(&around(1.0, 0.01, 8), &[])]);
    of(&mut slices, CANDIDATE, 0, 0).operations = 0;
    of(&mut slices, BASE, 1, 0).duration_ns = 0;
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    assert_eq!(
        (comparison.cells[0].rounds, comparison.cells[0].void_rounds),
        (30, 2)
    );
}

#[test]
fn a_round_that_was_not_finished_is_neither_counted_nor_void() {
    let mut slices = slices(8, &[candidate(&around(1.0, 0.01, 8), &[])]);
    slices.retain(|s| !(s.server == CANDIDATE && s.block == 7 && s.round == 3));
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    assert_eq!(
        (comparison.cells[0].rounds, comparison.cells[0].void_rounds),
        (31, 0)
    );
}

#[test]
fn a_block_of_two_counted_rounds_has_no_value() {
    let mut slices = slices(
        8,
        &[candidate(&around(1.0, 0.01, 8), &around(1.0, 0.01, 8))],
    );
    slices.retain(|s| !(s.block == 4 && s.round >= 2));
    // Block 5 keeps its throughput but knows CPU in two rounds only.
    of(&mut slices, CANDIDATE, 5, 0).server_cpu_ns = None;
    of(&mut slices, BASE, 5, 1).server_cpu_ns = Some(0);
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!((cell.blocks, cell.rounds), (7, 28));
    assert_eq!(metric(cell, Metric::Throughput).blocks.len(), 7);
    assert_eq!(metric(cell, Metric::ServerCpuPerOperation).blocks.len(), 6);
    assert_eq!(
        cell.series
            .iter()
            .filter(|round| round.server_cpu.is_none())
            .count(),
        2
    );
}

#[test]
fn the_block_value_is_the_ratio_of_totals_and_the_typical_one_a_trimmed_mean() {
    let mut slices = Vec::new();
    for block in 0..6 {
        for (round, rate) in (0..5).zip([100.0, 900.0, 950.0, 1000.0, 9000.0]) {
            slices.push(slice(BASE, block, round, 1000.0, None));
            slices.push(slice(CANDIDATE, block, round, rate, None));
        }
    }
    let comparison = analyse(&plan(vec![cell(4, false)]), &slices, Vec::new());
    let found = metric(only_cell(&comparison), Metric::Throughput);
    let each = [100.0, 900.0, 950.0, 1000.0, 9000.0];
    let total = 5.0 / each.iter().map(|rate| 1000.0 / rate).sum::<f64>();
    let all = found.blocks.iter();
    assert!(
        all.clone().all(|block| close(block.exp(), total)),
        "{all:?}"
    );
    assert!(close(found.ratio.estimate, total));
    let typical = (0.9_f64 * 0.95 * 1.0).cbrt();
    assert!(close(found.typical.unwrap().estimate, typical));
}

#[test]
fn a_difference_in_microseconds_stands_beside_the_ratio() {
    let slices = slices(6, &[candidate(&[0.5; 6], &[1.2; 6])]);
    let found = |clients| {
        let comparison = analyse(&plan(vec![cell(clients, false)]), &slices, Vec::new());
        let more = |of| metric(only_cell(&comparison), of).difference_us.unwrap();
        (
            more(Metric::Throughput),
            more(Metric::ServerCpuPerOperation),
        )
    };
    // 1000 operations a second are 1 ms each for one client, 4 ms for four.
    let (time, cpu) = found(1);
    assert!(close(time.estimate, 1000.0) && close(cpu.estimate, 2.0));
    assert!(
        time.ci95
            .is_some_and(|(low, high)| close(low, 1000.0) && close(high, 1000.0))
    );
    assert!(close(found(4).0.estimate, 4000.0));
    let mut open = plan(vec![cell(1, false)]);
    open.cells[0].rate = Some(1000.0);
    let comparison = analyse(&open, &slices, Vec::new());
    let speed = metric(only_cell(&comparison), Metric::Throughput);
    assert_eq!(speed.difference_us, None, "the rate was asked for");
}

#[test]
fn absolute_values_are_totals_of_the_counted_rounds() {
    let mut slices = slices(6, &[candidate(&[0.5; 6], &[2.0; 6])]);
    // Twice the work at a quarter of the speed: totals weigh by work, not by slice.
    let slow = of(&mut slices, BASE, 0, 0);
    slow.operations *= 2;
    slow.duration_ns *= 8;
    slow.server_cpu_ns = slow.server_cpu_ns.map(|cpu| cpu * 4);
    let comparison = analyse(&plan(vec![cell(4, false)]), &slices, Vec::new());
    let cell = only_cell(&comparison);
    let throughput = metric(cell, Metric::Throughput);
    let first: f64 = 500.0 / 1.1;
    assert!(
        close(throughput.base, 1000.0 * (first / 1000.0).powf(1.0 / 6.0)),
        "{}",
        throughput.base
    );
    assert!(close(throughput.candidate, 500.0));
    let cpu = metric(cell, Metric::ServerCpuPerOperation);
    assert!(
        close(cpu.base, 10.0 * 1.4_f64.powf(1.0 / 6.0)),
        "{}",
        cpu.base
    );
    assert!(close(cpu.candidate, 20.0));
}

#[test]
fn latencies_are_quantiles_of_each_blocks_merged_histogram() {
    let mut slices = slices(6, &[candidate(&[1.0; 6], &[])]);
    for slice in &mut slices {
        let factor = if slice.server == CANDIDATE { 2 } else { 1 };
        // One round of four holds the slow tail, so only the merged histogram has the right p99.
        let slow = if slice.round == 0 { 5_000_000 } else { 100_000 };
        let mut latencies = vec![100_000 * factor; 95];
        latencies.extend([slow * factor; 5]);
        slice.latency_histogram = histogram(&latencies);
    }
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let cell = only_cell(&comparison);
    for (which, base) in [(Metric::LatencyP50, 100.0), (Metric::LatencyP99, 5000.0)] {
        let found = metric(cell, which);
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
        assert!(
            near(found.base, base) && near(found.candidate, 2.0 * base),
            "{found:?}"
        );
        assert!(near(found.ratio.estimate, 2.0));
        assert_eq!((found.verdict, found.blocks.len()), (None, 6));
    }
    let keys: Vec<&str> = cell
        .metrics
        .iter()
        .map(|found| found.metric.key())
        .collect();
    let known = [
        "throughput",
        "latency_us_p50",
        "latency_us_p95",
        "latency_us_p99",
        "latency_us_max",
    ];
    assert_eq!(keys, known, "a percentile needs ten slower operations");
}

#[test]
fn a_broken_histogram_costs_its_block_and_nothing_else() {
    let mut slices = slices(7, &[candidate(&[1.0; 7], &[])]);
    for slice in &mut slices {
        slice.latency_histogram = histogram(&[100_000]);
    }
    of(&mut slices, CANDIDATE, 2, 1)
        .latency_histogram
        .truncate(20);
    of(&mut slices, BASE, 3, 1).latency_histogram = b"not a histogram".to_vec();
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!(metric(cell, Metric::LatencyP50).blocks.len(), 5);
    assert_eq!(metric(cell, Metric::Throughput).blocks.len(), 7);
}

#[test]
fn order_of_slices_and_strangers_change_nothing_and_the_later_of_two_counts() {
    let rates = around(0.97, 0.02, 8);
    let clean = slices(8, &[candidate(&rates, &around(1.02, 0.01, 8))]);
    let plan = plan(vec![cell(1, false)]);
    let expected = analyse(&plan, &clean, Vec::new());
    let mut shuffled: Vec<Slice> = clean.iter().rev().cloned().collect();
    shuffled.push(Slice {
        cell: CellId(77),
        ..slice(CANDIDATE, 0, 0, 1.0, None)
    });
    shuffled.push(slice(ServerId(55), 0, 0, 1.0, None));
    shuffled.insert(0, slice(CANDIDATE, 0, 0, 1.0, None));
    assert_eq!(analyse(&plan, &shuffled, Vec::new()), expected);
}

#[test]
fn failed_operations_are_counted_for_each_side_void_or_not() {
    let mut slices = slices(6, &[candidate(&[1.0; 6], &[])]);
    of(&mut slices, BASE, 0, 0).failed = 2;
    let lost = of(&mut slices, CANDIDATE, 1, 0);
    (lost.failed, lost.void) = (40, Some(VoidReason::NothingDone));
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!((cell.base_errors, cell.candidate_errors), (2, 40));
}

#[test]
fn cells_come_in_order_of_cell_and_candidate_and_none_is_left_out() {
    let mut plan = plan(vec![cell(1, false), cell(4, false)]);
    plan.servers.push(PlannedServer::new(
        Role::Candidate,
        installation("postgres:16.9"),
    ));
    let rates = around(1.0, 0.01, 8);
    let second = Blocks {
        server: ServerId(3),
        rates: &rates,
        costs: &[],
    };
    let slices = slices(8, &[candidate(&rates, &[]), second]);
    let comparison = analyse(&plan, &slices, Vec::new());
    let order: Vec<_> = comparison
        .cells
        .iter()
        .map(|c| (c.cell, c.candidate, c.candidate_name.as_str()))
        .collect();
    assert_eq!(
        order,
        [
            (CellId(0), ServerId(2), "postgres:18.6"),
            (CellId(0), ServerId(3), "postgres:16.9"),
            (CellId(1), ServerId(2), "postgres:18.6"),
            (CellId(1), ServerId(3), "postgres:16.9")
        ]
    );
    let missing = &comparison.cells[2];
    assert_eq!(
        (missing.verdict, missing.reason.as_str()),
        (Verdict::Inconclusive, "nothing measured")
    );
    assert_eq!(
        (missing.blocks, missing.metrics.len(), missing.series.len()),
        (0, 0, 0)
    );
    assert_eq!(
        (comparison.counts.no_change, comparison.counts.inconclusive),
        (2, 2)
    );
    assert_eq!(
        exit_code(&comparison),
        3,
        "what was not measured is not fine"
    );
}

#[test]
fn what_a_server_does_between_its_slices_is_charged_to_it_also_where_the_round_is_left_out() {
    // 10 µs of CPU an operation on both sides, and 1 µs more that the candidate does when it should be idle.
    let mut slices = slices(8, &[candidate(&around(1.0, 0.01, 8), &[1.0; 8])]);
    for slice in &mut slices {
        let operations = slice.operations;
        let us = if slice.server == CANDIDATE { 2000 } else { 0 };
        // All of it in two of four rounds, which have a busy idle server for it.
        let busy = slice.round < 2;
        slice.background_cpu_ns = Some(if busy { us * operations } else { 0 });
        if slice.round == 0 {
            slice.idle_cpu_ns = Some(slice.duration_ns);
        }
    }
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!((cell.rounds, cell.interference.disturbed_rounds), (24, 8));
    let cpu = metric(cell, Metric::ServerCpuPerOperation);
    assert!((cpu.ratio.estimate - 1.1).abs() < 1e-6, "{cpu:?}");
    assert!((cpu.candidate - 11.0).abs() < 1e-6, "{cpu:?}");
    assert!(
        cell.series
            .iter()
            .all(|round| (round.server_cpu.unwrap() - 1.1_f64.ln()).abs() < 1e-6)
    );
    // Runs from before are read as they were.
    for slice in &mut slices {
        slice.background_cpu_ns = None;
    }
    let comparison = analyse(
        &plan(vec![crate::builder::cell(1, false)]),
        &slices,
        Vec::new(),
    );
    let cpu = metric(only_cell(&comparison), Metric::ServerCpuPerOperation);
    assert!((cpu.candidate - 10.0).abs() < 1e-6, "{cpu:?}");
}
