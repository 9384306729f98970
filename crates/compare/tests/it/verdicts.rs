//! The table of docs/sources/statistics.md#verdict, through `analyse`.

use crate::builder::*;
use deltabench_compare::comparison::{CellComparison, Metric, Verdict};
use deltabench_compare::words::microseconds;
use deltabench_compare::{analyse, costs_more, exit_code, gate_line};

/// The candidate's only cell with these block values, eight blocks.
fn judge(clients: u32, writes: bool, rates: &[f64], costs: &[f64]) -> CellComparison {
    let slices = slices(8, &[candidate(rates, costs)]);
    only_cell(&analyse(
        &plan(vec![cell(clients, writes)]),
        &slices,
        Vec::new(),
    ))
    .clone()
}

/// Verdict and reason by throughput alone.
fn by_throughput(centre: f64, spread: f64) -> (Verdict, String) {
    let cell = judge(4, false, &around(centre, spread, 8), &[]);
    (cell.verdict, cell.reason)
}

#[test]
fn each_row_of_the_table_has_its_word_and_its_reason() {
    // With eight blocks of ±s the 95 % half-width is 0.894·s and the 90 % one 0.716·s.
    let cases = [
        (
            0.95,
            0.01,
            Verdict::Regression,
            "slower by 4.1 % to 5.8 %, beyond ±3 %",
        ),
        (0.96, 0.03, Verdict::Regression, "slower by 1.4 % to 6.5 %"),
        (1.00, 0.02, Verdict::NoChange, "no change beyond ±3 %"),
        (
            0.985,
            0.01,
            Verdict::NoChange,
            "no change beyond ±3 % (measurably slower by 1.5 %)",
        ),
        (
            1.015,
            0.01,
            Verdict::NoChange,
            "no change beyond ±3 % (measurably faster by 1.5 %)",
        ),
        (1.04, 0.03, Verdict::Improvement, "faster by 1.2 % to 6.8 %"),
        (
            1.06,
            0.01,
            Verdict::Improvement,
            "faster by 5.1 % to 7.0 %, beyond ±3 %",
        ),
    ];
    for (centre, spread, verdict, reason) in cases {
        let found = by_throughput(centre, spread);
        assert_eq!(found.0, verdict, "{centre} ±{spread}");
        let changed = verdict != Verdict::NoChange;
        let told = found.1.strip_prefix(reason);
        let told = told.unwrap_or_else(|| panic!("{centre} ±{spread}: {}", found.1));
        assert_eq!(
            changed,
            told.ends_with(']') && told.contains(" µs/op ["),
            "{told}"
        );
    }
}

#[test]
fn a_cell_without_a_change_has_its_microseconds_too() {
    let rates = around(0.985, 0.01, 8);
    let cell = judge(4, false, &rates, &around(1.01, 0.004, 8));
    assert_eq!(cell.verdict, Verdict::NoChange);
    let more = |of| microseconds(&metric(&cell, of).difference_us.unwrap());
    // 1000 operations a second of four clients are 4 ms each: 4000 / 0.985 are 61 more.
    assert_eq!(more(Metric::Throughput), "+61 µs/op [+25, +97]");
    // 1 % of 10 µs, and 0.894 · 0.4 % of it either way.
    let cpu = more(Metric::ServerCpuPerOperation);
    assert_eq!(cpu, "+0.100 µs/op [+0.064, +0.136]");
}

#[test]
fn what_is_neither_is_inconclusive_and_says_what_it_takes() {
    let (verdict, reason) = by_throughput(0.995, 0.06);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert_eq!(
        reason,
        "throughput ±5.5 % is too wide for ±3 %; needs about 13 more blocks"
    );

    let (verdict, reason) = by_throughput(0.98, 0.028);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert_eq!(
        reason,
        "throughput -4.4 % to +0.5 % shows neither a change nor equality within ±3 %; \
         needs about 3 more blocks"
    );

    let (_, reason) = by_throughput(0.999, 3.0);
    assert!(reason.ends_with("needs more than 80 blocks"), "{reason}");
}

#[test]
fn fewer_than_six_blocks_give_no_verdict_however_clear() {
    for (blocks, needs) in [
        (1, "needs 5 more blocks (a verdict takes 6)"),
        (5, "needs 1 more block (a verdict takes 6)"),
    ] {
        let slices = slices(blocks, &[candidate(&[0.5, 0.49, 0.51, 0.5, 0.5], &[])]);
        let comparison = analyse(&plan(vec![cell(4, false)]), &slices, Vec::new());
        let cell = only_cell(&comparison);
        assert_eq!(
            (cell.verdict, cell.reason.as_str()),
            (Verdict::Inconclusive, needs)
        );
        assert_eq!(
            metric(cell, Metric::Throughput).ratio.ci95.is_some(),
            blocks > 1
        );
    }
    let slices = slices(6, &[candidate(&[0.5, 0.49, 0.51, 0.5, 0.5, 0.5], &[])]);
    assert_eq!(
        analyse(&plan(vec![cell(4, false)]), &slices, Vec::new())
            .counts
            .regression,
        1
    );
}

#[test]
fn more_cpu_per_operation_is_worse() {
    let cell = judge(4, false, &around(1.0, 0.01, 8), &around(1.06, 0.01, 8));
    assert_eq!(
        metric(&cell, Metric::ServerCpuPerOperation).verdict,
        Some(Verdict::Regression)
    );
    let cell = judge(4, false, &around(1.0, 0.01, 8), &around(0.94, 0.01, 8));
    assert_eq!(
        metric(&cell, Metric::ServerCpuPerOperation).verdict,
        Some(Verdict::Improvement)
    );
    assert_eq!(cell.verdict, Verdict::NoChange, "throughput decides");
    assert!(
        cell.reason
            .starts_with("no change beyond ±3 %; CPU per operation: lower by"),
        "{}",
        cell.reason
    );
}

#[test]
fn a_gate_does_not_pass_what_is_as_fast_at_a_higher_price() {
    let (same, dearer) = (around(1.0, 0.01, 8), around(1.06, 0.01, 8));
    let slices = slices(8, &[candidate(&same, &dearer)]);
    let mut plan = plan(vec![cell(4, false)]);
    let comparison = analyse(&plan, &slices, Vec::new());
    assert_eq!(
        exit_code(&comparison),
        0,
        "without a gate throughput is the question"
    );
    assert!(costs_more(&comparison.cells[0]));
    plan.gate.on = true;
    let comparison = analyse(&plan, &slices, Vec::new());
    assert_eq!(exit_code(&comparison), 3);
    assert_eq!(
        gate_line(&comparison, &plan).unwrap(),
        "gate open: none of 1 cells is shown to be slower; 1 as fast with more CPU per operation"
    );
}

#[test]
fn cpu_that_contradicts_throughput_of_one_reading_client_takes_the_verdict_back() {
    let slower = around(0.92, 0.01, 8);
    let unchanged = around(1.001, 0.01, 8);
    let cell = judge(1, false, &slower, &unchanged);
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    assert_eq!(
        cell.reason,
        "contradicted by CPU: throughput slower by 7.2 % to 8.8 %, beyond ±3 %; \
         CPU per operation: no change beyond ±3 %"
    );
    assert_eq!(
        metric(&cell, Metric::Throughput).verdict,
        Some(Verdict::Regression),
        "alone it says so"
    );

    let cheaper = around(0.92, 0.01, 8);
    assert_eq!(
        judge(1, false, &slower, &cheaper).verdict,
        Verdict::Inconclusive
    );
    assert_eq!(
        judge(1, false, &around(1.08, 0.01, 8), &unchanged).verdict,
        Verdict::Inconclusive
    );
    // Several clients wait for each other and commits wait for the disk: no contradiction there.
    assert_eq!(
        judge(4, false, &slower, &unchanged).verdict,
        Verdict::Regression
    );
    assert_eq!(
        judge(1, true, &slower, &unchanged).verdict,
        Verdict::Regression
    );
}

#[test]
fn cpu_that_agrees_or_does_not_know_leaves_the_verdict() {
    let slower = around(0.95, 0.01, 8);
    assert_eq!(
        judge(1, false, &slower, &around(1.05, 0.01, 8)).verdict,
        Verdict::Regression
    );
    assert_eq!(
        judge(1, false, &slower, &around(1.0, 0.2, 8)).verdict,
        Verdict::Regression
    );
    assert_eq!(judge(1, false, &slower, &[]).verdict, Verdict::Regression);
    // −3.4 % and +2.4 % lie on both sides of δ and are one finding all the same.
    let cell = judge(1, false, &around(0.966, 0.01, 8), &around(1.024, 0.005, 8));
    assert_eq!(
        metric(&cell, Metric::ServerCpuPerOperation).verdict,
        Some(Verdict::NoChange)
    );
    assert_eq!(cell.verdict, Verdict::Regression);
}

#[test]
fn decided_cpu_is_told_when_throughput_is_open() {
    let cell = judge(1, false, &around(0.995, 0.06, 8), &around(1.0, 0.01, 8));
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    assert_eq!(
        cell.reason,
        "throughput ±5.5 % is too wide for ±3 %; needs about 13 more blocks; \
         CPU per operation: no change beyond ±3 %"
    );
    let cell = judge(1, false, &around(0.995, 0.06, 8), &around(1.07, 0.01, 8));
    assert!(
        cell.reason
            .ends_with("CPU per operation: higher by 6.0 % to 8.0 %, beyond ±3 %"),
        "{}",
        cell.reason
    );
}

#[test]
fn exchanging_the_sides_mirrors_the_verdict() {
    for centre in [0.93, 0.955, 0.9703, 0.9709, 0.985, 1.0, 1.02, 1.0300, 1.05] {
        for spread in [0.002, 0.01, 0.03, 0.08] {
            let (there, _) = by_throughput(centre, spread);
            let (back, _) = by_throughput(1.0 / centre, spread);
            let mirrored = match back {
                Verdict::Regression => Verdict::Improvement,
                Verdict::Improvement => Verdict::Regression,
                other => other,
            };
            assert_eq!(there, mirrored, "{centre} ±{spread}");
        }
    }
}
