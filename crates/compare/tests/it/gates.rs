//! Each rule of the gate and of exit codes, where it alone decides.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::{add_counts, analyse, combine, exit_code, gate_line};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::GatedMetric::{Cpu, P99, Throughput};
use deltabench_model::plan::{Gate, GatedMetric, Plan, Stopping};
use deltabench_model::slice::Slice;

/// A gate, with a margin if one is given.
fn gate(margin: Option<f64>) -> Gate {
    Gate {
        on: margin.is_none(),
        not_worse_than: margin,
        ..Gate::default()
    }
}

/// A plan of so many cells of four clients under this gate.
fn gated(cells: usize, gate: Gate) -> Plan {
    Plan {
        gate,
        ..plan(vec![cell(4, false); cells])
    }
}

/// What the plan's cells come to, by throughput in eight blocks.
fn compared(plan: &Plan, cells: &[Vec<f64>]) -> Comparison {
    analyse(plan, &slices_of_cells(cells), Vec::new())
}

#[test]
fn what_is_listed_and_does_not_hold_in_the_whole_family_fails_no_gate() {
    // Four gains, one loss with a p of 3 %, one equal cell: the listing takes that p 6/5 times, the gate
    // twice.
    let mut cells = vec![around(1.1, 0.01, 8); 4];
    cells.extend([around(0.95, 0.053, 8), around(1.0, 0.01, 8)]);
    let with = |gate: Gate| {
        let plan = gated(6, gate);
        let found = compared(&plan, &cells);
        let code = exit_code(&found);
        (gate_line(&found, &plan), code, found.cells[4].clone())
    };
    let (line, code, cell) = with(Gate::default());
    assert_eq!((line, code), (None, 1));
    assert_eq!(cell.verdict, Verdict::Regression);
    assert!(cell.p_bh.unwrap() <= 0.05 && cell.p_holm.unwrap() > 0.05);
    let (line, code, _) = with(gate(None));
    assert_eq!(code, 3);
    assert_eq!(
        line.unwrap(),
        "gate open: none of 6 cells is shown to be slower; 1 without an answer"
    );
}

/// The exit code of one cell by its throughput, with a δ and a margin, and with a look after eight blocks.
fn with_margin((centre, spread): (f64, f64), (delta, margin): (f64, f64), look: bool) -> u8 {
    let mut plan = gated(1, gate(Some(margin)));
    plan.delta = delta;
    if look {
        plan.stopping = Stopping::Sequential { looks: vec![8] };
    }
    exit_code(&compared(&plan, &[around(centre, spread, 8)]))
}

#[test]
fn with_looks_equal_within_the_margin_passes_and_equal_within_a_wider_delta_does_not() {
    // The 95 % interval reaches 3.2 % down and the 90 % one 2.9 %: within ±3 %, and that is the margin.
    assert_eq!(with_margin((0.985, 0.019), (0.03, 0.03), true), 0);
    // A loss of 1.5 % is none beyond ±10 %. Whether it is one beyond 2 % nobody knows.
    assert_eq!(with_margin((0.985, 0.01), (0.10, 0.02), true), 3);
    assert_eq!(with_margin((0.985, 0.01), (0.10, 0.11), true), 0);
    // A loss of 5 %, and none beyond 10 %.
    assert_eq!(with_margin((0.95, 0.01), (0.03, 0.10), true), 0);
    // Where nothing was looked at before, the 90 % interval decides: it ends at -1.9 %, the other one at
    // -2.1 %.
    assert_eq!(with_margin((0.99, 0.0125), (0.03, 0.02), false), 0);
    assert_eq!(with_margin((0.99, 0.0125), (0.03, 0.02), true), 3);
}

/// A session of eight blocks with a placebo.
fn session(plan: &Plan, (speed, cost): (f64, f64)) -> Comparison {
    let (rates, costs) = (around(speed, 0.004, 8), around(cost, 0.004, 8));
    let same = around(1.0, 0.004, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &same,
        costs: &same,
    };
    let slices = slices(8, &[placebo, candidate(&rates, &costs)]);
    analyse(plan, &slices, Vec::new())
}

fn over(plan: &Plan, figures: &[(f64, f64)]) -> Comparison {
    let all: Vec<Comparison> = figures.iter().map(|one| session(plan, *one)).collect();
    let mut first = all[0].clone();
    combine(&mut first, &all, plan);
    first
}

#[test]
fn a_loss_beyond_the_margin_in_another_hour_fails_and_one_that_may_be_less_is_open() {
    let code = |margin, figures: [f64; 4]| {
        let plan = gated(
            1,
            Gate {
                another_hour: true,
                ..gate(Some(margin))
            },
        );
        exit_code(&over(&plan, &figures.map(|speed| (speed, 1.0 / speed))))
    };
    let slower = [0.90, 0.901, 0.899, 0.90];
    assert_eq!(code(0.05, slower), 1);
    assert_eq!(code(0.12, slower), 0);
    assert_eq!(code(0.10, slower), 3);
    // Slower by 10 % on average, beyond doubt. One more hour may be as fast.
    assert_eq!(code(0.05, [0.84, 0.96, 0.85, 0.95]), 3);
}

#[test]
fn a_gate_on_cpu_needs_both_the_measured_and_another_hour_to_be_fine() {
    let plan = gated(
        1,
        Gate {
            another_hour: true,
            metrics: vec![Cpu],
            ..gate(None)
        },
    );
    let costs = [1.0, 1.03, 0.97, 1.02, 0.98, 1.0, 1.02, 0.98];
    let found = over(&plan, &costs.map(|cost| (1.0, cost)));
    let cpu = metric(only_cell(&found), Metric::ServerCpuPerOperation);
    let hours = cpu.hours.as_ref().unwrap().verdict;
    assert_eq!(
        (cpu.verdict, hours),
        (Some(Verdict::NoChange), Verdict::Inconclusive)
    );
    assert_eq!(exit_code(&found), 3);
}

#[test]
fn more_cpu_is_a_price_where_cpu_is_not_asked_for_itself() {
    let with = |gate: Gate, cost| {
        let plan = gated(1, gate);
        let costs = around(cost, 0.01, 8);
        let slices = slices(8, &[candidate(&around(1.0, 0.01, 8), &costs)]);
        let found = analyse(&plan, &slices, Vec::new());
        (exit_code(&found), gate_line(&found, &plan).unwrap())
    };
    let code = |metrics: &[GatedMetric], cost| {
        let metrics = metrics.to_vec();
        with(
            Gate {
                metrics,
                ..gate(None)
            },
            cost,
        )
    };
    let lenient = Gate {
        inconclusive_passes: true,
        ..gate(None)
    };
    assert_eq!(
        with(lenient, 1.06).1,
        "gate passed: none of 1 cells is shown to be slower; 1 as fast with more CPU per operation"
    );
    assert_eq!(code(&[Throughput], 1.06).0, 3);
    let (failed, line) = code(&[Throughput, Cpu], 1.06);
    assert_eq!(failed, 1);
    assert_eq!(
        line,
        "gate failed: slower or higher in CPU in 1 of 1 cells (point-query at 4 clients)"
    );
    let (passed, line) = code(&[Throughput, Cpu], 1.0);
    assert_eq!((passed, line.contains("more CPU")), (0, false), "{line}");
}

/// What counts alone come to, of a candidate with so many instructions for each of the base; the
/// starts of each differ by 0.01 %.
fn counted(gate: Gate, ratios: &[f64]) -> (u8, Option<String>) {
    let plan = gated(ratios.len(), gate);
    let mut records = Vec::new();
    for (cell, ratio) in (0..).zip(ratios) {
        records.extend(starts(BASE, cell, 1e5));
        records.extend(starts(CANDIDATE, cell, 1e5 * ratio));
    }
    let mut found = analyse(&plan, &[], Vec::new());
    add_counts(&mut found, &plan, &records, true);
    (exit_code(&found), gate_line(&found, &plan))
}

#[test]
fn a_count_is_gated_by_its_own_verdicts_whatever_else_the_gate_asks() {
    let wide = Gate {
        another_hour: true,
        metrics: vec![Cpu, P99],
        ..gate(None)
    };
    let margin = gate(Some(0.05));
    for asked in [gate(None), wide, margin] {
        // No blocks, no hours and no p: and no cell is without an answer.
        assert_eq!(counted(asked.clone(), &[1.0, 0.9]).0, 0, "{asked:?}");
        assert_eq!(counted(asked.clone(), &[1.0, 1.2]).0, 1, "{asked:?}");
    }
    // A count always has a limit. It is a gate only where one was asked for.
    for asked in [Gate::default(), gate(Some(0.05))] {
        assert_eq!(counted(asked, &[1.2]), (1, None));
    }
    let (_, line) = counted(
        Gate {
            on: true,
            ..gate(Some(0.05))
        },
        &[1.2, 1.0],
    );
    let line = line.unwrap();
    assert!(
        line.starts_with("gate failed: more than 5 % more instructions in 1 of 2 cells"),
        "{line}"
    );
    // Too near to 1 % for an answer, and not for want of blocks.
    let lenient = Gate {
        inconclusive_passes: true,
        ..gate(None)
    };
    assert_eq!(counted(lenient, &[1.0101]).0, 0);
    assert_eq!(counted(gate(None), &[1.0101]).0, 3);
}

#[test]
fn a_server_on_its_own_is_measured_if_any_cell_is_and_its_host_is_fit() {
    let mut plan = plan(vec![cell(1, false), cell(2, false)]);
    plan.servers.truncate(2);
    let same = around(1.0, 0.01, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &same,
        costs: &[],
    };
    let slices = slices(8, &[placebo]);
    let unfit = Finding::new(FindingKind::own("host-busy"), Severity::Unfit, "busy");
    let code =
        |slices: &[Slice], findings: Vec<Finding>| exit_code(&analyse(&plan, slices, findings));
    assert_eq!(code(&slices, Vec::new()), 0, "one of its two cells");
    assert_eq!(code(&slices, vec![unfit]), 4);
    assert_eq!(code(&[], Vec::new()), 5);
}
