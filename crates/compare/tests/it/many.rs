//! Many cells and candidates: adjusted p, the listing, the gate, geometric means, and a δ of each cell's own.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::gate::gate_reasons;
use deltabench_compare::{analyse, exit_code, gate_line};
use deltabench_model::plan::{CellId, Gate, Group, Plan, PlannedServer, Role, Stopping};
use deltabench_model::slice::Slice;
use deltabench_stats::student::{t_interval, t_test_p};

/// Cells of four clients with these candidate values, eight blocks, fixed.
fn compare(plan: &Plan, cells: &[Vec<f64>]) -> Comparison {
    analyse(plan, &slices_of_cells(cells), Vec::new())
}

fn many(cells: usize) -> Plan {
    plan(vec![cell(4, false); cells])
}

/// Eight values whose p is 3 % or so, all of it slower.
fn weak() -> Vec<f64> {
    around(0.95, 0.053, 8)
}

#[test]
fn what_holds_alone_and_not_among_many_is_not_listed() {
    let equal = around(1.0, 0.01, 8);
    let alone = compare(&many(1), &[weak()]);
    assert_eq!(alone.cells[0].verdict, Verdict::Regression);
    let mut cells = vec![equal; 7];
    cells.push(weak());
    let comparison = compare(&many(8), &cells);
    let found = &comparison.cells[7];
    assert_eq!(
        (found.verdict, found.alone),
        (Verdict::Inconclusive, Verdict::Regression)
    );
    assert!(found.reason.contains("; alone p = 0.0"), "{}", found.reason);
    assert!(
        found.reason.ends_with("not among 8 comparisons"),
        "{}",
        found.reason
    );
    assert_eq!(comparison.counts.regression, 0);
    // Beside seven clear ones it is listed: one in twenty of the eight may be false.
    let mut cells = vec![around(0.9, 0.01, 8); 7];
    cells.push(weak());
    let comparison = compare(&many(8), &cells);
    assert_eq!(comparison.counts.regression, 8);
    let p = &comparison.cells[7];
    assert!(p.p_bh.unwrap() <= p.p_holm.unwrap() && p.p_bh.unwrap() < 0.05);
}

#[test]
fn candidates_are_part_of_the_family() {
    let mut plan = many(2);
    for _ in 0..3 {
        let second = plan.servers[2].clone();
        plan.servers.push(PlannedServer {
            role: Role::Candidate,
            ..second
        });
    }
    let rates = weak();
    let p = t_test_p(&rates.iter().map(|rate| rate.ln()).collect::<Vec<_>>()).unwrap();
    let slices = slices(8, &[candidate(&rates, &[])]);
    let comparison = analyse(&plan, &slices, Vec::new());
    assert_eq!(comparison.cells.len(), 8, "two cells, four candidates");
    let found = &comparison.cells[0];
    assert!((found.p.unwrap() - p).abs() < 1e-6);
    // The others have no data yet and count: the family does not grow while a run goes on.
    assert!((found.p_holm.unwrap() - 8.0 * found.p.unwrap()).abs() < 1e-9);
    assert!((found.p_bh.unwrap() - 8.0 * found.p.unwrap()).abs() < 1e-9);
    assert_eq!(comparison.cells[1].p_holm, None);
}

#[test]
fn the_placebo_is_a_family_of_its_own() {
    let rates = weak();
    let placebo = Blocks {
        server: PLACEBO,
        rates: &rates,
        costs: &[],
    };
    let mut plan = many(1);
    plan.servers.push(plan.servers[2].clone());
    let comparison = analyse(&plan, &slices(8, &[placebo]), Vec::new());
    let found = &comparison.placebo_cells[0];
    assert_eq!(found.p, found.p_holm);
}

fn with_gate(plan: &Plan, gate: Gate) -> Plan {
    Plan {
        gate,
        ..plan.clone()
    }
}

const GATE: Gate = Gate {
    on: true,
    not_worse_than: None,
    inconclusive_passes: false,
    metrics: Vec::new(),
    another_hour: false,
};

#[test]
fn the_gate_asks_of_the_whole_family_what_the_listing_asks_on_average() {
    let mut cells = vec![around(0.9, 0.01, 8); 4];
    cells.extend([around(0.955, 0.04, 8), weak()]);
    let open = many(6);
    let gated = with_gate(&open, GATE);
    let comparison = compare(&gated, &cells);
    assert_eq!(comparison.counts.regression, 6, "listed");
    assert!(
        comparison.cells[5].p_holm.unwrap() <= 0.05,
        "four are far below"
    );
    assert_eq!(exit_code(&comparison), 1);
    assert_eq!(gate_line(&compare(&open, &cells), &open), None);
    // One weak among equal ones fails neither; without a gate it is inconclusive and exits so too.
    let equal = vec![around(1.0, 0.01, 8); 5];
    let cells: Vec<_> = equal.iter().cloned().chain([weak()]).collect();
    for plan in [&open, &gated] {
        assert_eq!(exit_code(&compare(plan, &cells)), 3);
    }
    let passes = with_gate(
        &open,
        Gate {
            inconclusive_passes: true,
            metrics: Vec::new(),
            another_hour: false,
            ..GATE
        },
    );
    let comparison = compare(&passes, &cells);
    assert_eq!(exit_code(&comparison), 0);
    assert_eq!(
        gate_line(&comparison, &passes).unwrap(),
        "gate passed: none of 6 cells is shown to be slower; 1 without an answer, which passes"
    );
    let comparison = compare(&gated, &[around(0.9, 0.01, 8), around(1.0, 0.01, 8)]);
    // The weak one of the first six is listed there, and here nothing is said twice.
    assert!(gate_reasons(&comparison).concat().is_empty());
    assert_eq!(
        gate_line(&comparison, &gated).unwrap(),
        "gate failed: slower in 1 of 6 cells (point-query at 4 clients); 4 without an answer"
    );
}

#[test]
fn not_worse_than_passes_what_excludes_the_loss_and_fails_what_shows_it() {
    let margin = |margin: f64, passes: bool| Gate {
        on: false,
        not_worse_than: Some(margin),
        inconclusive_passes: passes,
        metrics: Vec::new(),
        another_hour: false,
    };
    let cases = [
        // (centre, spread, margin, exit code): with eight blocks the one-sided bound is 0.716·spread away.
        (0.99, 0.01, 0.02, 0),
        (0.95, 0.01, 0.10, 0),
        (1.05, 0.05, 0.02, 0),
        (0.95, 0.01, 0.02, 1),
        (0.99, 0.03, 0.02, 3),
        (0.98, 0.0001, 0.02, 3),
    ];
    for (centre, spread, loss, code) in cases {
        let rates = around(centre, spread, 8);
        let plan = with_gate(&many(1), margin(loss, false));
        assert_eq!(
            exit_code(&compare(&plan, std::slice::from_ref(&rates))),
            code,
            "{centre} ±{spread}"
        );
        let plan = with_gate(&many(1), margin(loss, true));
        let expected = if code == 3 { 0 } else { code };
        assert_eq!(exit_code(&compare(&plan, &[rates])), expected);
    }
    let plan = with_gate(&many(2), margin(0.02, false));
    let comparison = compare(&plan, &[around(0.95, 0.01, 8), around(0.99, 0.03, 8)]);
    assert_eq!(
        gate_line(&comparison, &plan).unwrap(),
        "gate failed: slower by more than 2 % in 1 of 2 cells (point-query at 4 clients); \
         1 without an answer"
    );
    let few = analyse(&plan, &slices(3, &[candidate(&[1.0; 3], &[])]), Vec::new());
    assert_eq!(exit_code(&few), 3, "three blocks exclude nothing");
}

#[test]
fn a_loss_beyond_the_margin_is_shown_more_strictly_where_a_width_ended_the_cell() {
    // One-sided p of a loss of no more than 2 % is 4 %, and 7 % with what a stop at a width takes.
    let rates = around(0.98 * (-0.0078_f64).exp(), 0.01, 8);
    let gate = Gate {
        on: false,
        not_worse_than: Some(0.02),
        ..GATE
    };
    let code = |stopping| {
        let plan = Plan {
            stopping,
            ..with_gate(&many(1), gate.clone())
        };
        exit_code(&compare(&plan, std::slice::from_ref(&rates)))
    };
    assert_eq!(code(Stopping::Fixed), 1);
    assert_eq!(code(Stopping::Precision { half_width: 0.05 }), 3);
}

#[test]
fn what_had_no_chance_of_an_answer_passes_no_gate() {
    // A candidate that is 50 times slower fits three blocks into the time, and no verdict.
    let lenient = Gate {
        inconclusive_passes: true,
        ..GATE
    };
    let plan = with_gate(&many(1), lenient);
    let slow = analyse(&plan, &slices(3, &[candidate(&[0.02; 3], &[])]), Vec::new());
    assert_eq!(exit_code(&slow), 3);
    assert_eq!(
        gate_line(&slow, &plan).unwrap(),
        "gate open: none of 1 cells is shown to be slower; 1 with fewer blocks than an answer needs (6), \
         which do not pass"
    );
    // Nor does a run that is not finished.
    let equal = vec![around(1.0, 0.01, 8)];
    let mut half = compare(&plan, &equal);
    assert_eq!(exit_code(&half), 0);
    half.unfinished = true;
    assert_eq!(exit_code(&half), 3);
    let line = gate_line(&half, &plan).unwrap();
    assert!(
        line.starts_with("gate open:") && line.ends_with("; the run is not finished"),
        "{line}"
    );
}

#[test]
fn geometric_means_know_that_cells_share_blocks() {
    let mut plan = many(3);
    plan.cells[2].group = Group::Write;
    // Two cells that move together from block to block: their mean is as uncertain as one of them.
    let noise = around(1.0, 0.02, 8);
    let times = |factor: f64| noise.iter().map(|rate| rate * factor).collect::<Vec<_>>();
    let comparison = compare(&plan, &[times(0.9), times(0.92), times(1.0)]);
    let names: Vec<_> = comparison
        .summaries
        .iter()
        .map(|s| (s.group, s.cells, s.of))
        .collect();
    assert_eq!(
        names,
        [
            (Some(Group::Point), 2, 2),
            (Some(Group::Write), 1, 1),
            (None, 3, 3)
        ]
    );
    let point = comparison.summaries[0].throughput;
    assert!((point.estimate - f64::sqrt(0.9 * 0.92)).abs() < 1e-6);
    let logs: Vec<f64> = noise
        .iter()
        .map(|rate| (rate * point.estimate).ln())
        .collect();
    let expected = t_interval(&logs, 0.95).unwrap();
    let (low, high) = point.ci95.unwrap();
    assert!((low.ln() - expected.low).abs() < 1e-6 && (high.ln() - expected.high).abs() < 1e-6);
    // Cells that move against each other cancel.
    let against: Vec<f64> = noise.iter().map(|rate| 0.92 / rate).collect();
    let comparison = compare(&plan, &[times(0.9), against, times(1.0)]);
    let (low, high) = comparison.summaries[0].throughput.ci95.unwrap();
    assert!((high / low).ln() < 1e-6);
}

#[test]
fn a_mean_of_cells_of_unlike_lengths_is_never_narrower_than_by_the_shortest() {
    let slices_of = |id: u32, blocks: u32, rates: &[f64]| {
        let slices = slices(blocks, &[candidate(rates, &[])]);
        slices
            .into_iter()
            .map(move |slice| Slice {
                cell: CellId(id),
                ..slice
            })
            .collect::<Vec<_>>()
    };
    let rates = around(1.0, 0.02, 24);
    let all = [slices_of(0, 24, &rates), slices_of(1, 6, &rates)].concat();
    let comparison = analyse(&many(2), &all, Vec::new());
    let whole = comparison.summaries.last().unwrap();
    let width = |(low, high): (f64, f64)| (high / low).ln();
    let of = |cell: usize| {
        let found = metric(&comparison.cells[cell], Metric::Throughput);
        width(found.ratio.ci95.unwrap())
    };
    let found = width(whole.throughput.ci95.unwrap());
    assert!(
        of(0) < found && found < of(1),
        "{} {found} {}",
        of(0),
        of(1)
    );
}

#[test]
fn delta_from_noise_is_the_smallest_step_that_the_plan_resolves_and_follows_no_candidate() {
    let mut plan = many(1);
    plan.delta = 0.05;
    plan.delta_from_noise = true;
    let delta = |spread: f64, rates: &[f64]| {
        let noise = around(1.0, spread, 8);
        let placebo = Blocks {
            server: PLACEBO,
            rates: &noise,
            costs: &[],
        };
        let comparison = analyse(
            &plan,
            &slices(8, &[placebo, candidate(rates, &[])]),
            Vec::new(),
        );
        assert!((comparison.delta - 0.05).abs() < 1e-12, "the plan's stays");
        only_cell(&comparison).delta
    };
    for rates in [around(1.0, 0.01, 8), around(0.8, 0.1, 8)] {
        // sd of the first six is 1.095·spread, its upper limit 1.46 times that; × 3.31/√8.
        let found: Vec<f64> = [0.003, 0.008, 0.012, 0.02, 0.2]
            .iter()
            .map(|&spread| delta(spread, &rates))
            .collect();
        assert_eq!(found, [0.02, 0.02, 0.03, 0.05, 0.05]);
    }
    plan.delta_from_noise = false;
    let comparison = compare(&plan, &[around(1.0, 0.01, 8)]);
    assert!((only_cell(&comparison).delta - 0.05).abs() < 1e-12);
    plan.delta_from_noise = true;
    let comparison = compare(&plan, &[around(1.0, 0.01, 8)]);
    assert!(
        (only_cell(&comparison).delta - 0.05).abs() < 1e-12,
        "without a placebo"
    );
}

#[test]
fn a_delta_from_noise_is_never_wider_than_the_margin_of_the_gate() {
    let mut plan = many(1);
    plan.delta = 0.05;
    plan.delta_from_noise = true;
    let noise = around(1.0, 0.02, 8);
    let placebo = || Blocks {
        server: PLACEBO,
        rates: &noise,
        costs: &[],
    };
    let slices = slices(8, &[placebo(), candidate(&noise, &[])]);
    let delta = |plan: &_| only_cell(&analyse(plan, &slices, Vec::new())).delta;
    assert!((delta(&plan) - 0.05).abs() < 1e-12);
    plan.gate.not_worse_than = Some(0.02);
    assert!((delta(&plan) - 0.02).abs() < 1e-12);
}

#[test]
fn a_delta_from_noise_is_no_finer_than_the_width_at_which_measuring_stops() {
    let mut plan = many(1);
    plan.delta_from_noise = true;
    plan.timing.blocks = 100;
    let quiet = around(1.0, 0.002, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &quiet,
        costs: &[],
    };
    let slices = slices(8, &[placebo, candidate(&quiet, &[])]);
    for (half_width, delta) in [(0.005, 0.02), (0.01, 0.02), (0.02, 0.03), (0.03, 0.05)] {
        plan.delta = 0.05;
        plan.stopping = Stopping::Precision { half_width };
        let comparison = analyse(&plan, &slices, Vec::new());
        let found = only_cell(&comparison).delta;
        assert!((found - delta).abs() < 1e-12, "±{half_width}: {found}");
    }
}
