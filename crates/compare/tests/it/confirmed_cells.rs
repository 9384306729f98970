//! Whose second measurement counts for a cell, and what both together say.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, Confirmation, Verdict};
use deltabench_compare::{analyse, confirm};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_stats::student::t_quantile;

/// A plan of twelve blocks that confirms another run, or not.
fn twelve(confirms: bool, mut plan: Plan) -> Plan {
    plan.confirms = confirms.then(|| "20260101-first".to_owned());
    plan.timing.blocks = 12;
    plan
}

/// Twelve blocks of one cell with this mean change and this half-width of its 95 % interval.
fn with_interval(confirms: bool, change: f64, half: f64) -> Comparison {
    let sd = half / t_quantile(0.975, 11.0) * 12.0_f64.sqrt();
    // Values at ±a have the sd a·√(12/11).
    let spread = sd * (11.0_f64 / 12.0).sqrt();
    let plan = twelve(confirms, plan(vec![cell(4, false)]));
    let rates = around(change.exp(), spread, 12);
    analyse(&plan, &slices(12, &[candidate(&rates, &[])]), Vec::new())
}

/// Both candidates of a run in two workloads at equal clients, by throughput: cell by cell.
fn of_two(confirms: bool, rates: [[f64; 2]; 2]) -> Comparison {
    let mut cells = vec![cell(4, false); 2];
    cells[1].workload = "range-covered".to_owned();
    let mut plan = plan(cells);
    plan.servers.push(plan.servers[2].clone());
    let plan = twelve(confirms, plan);
    let mut all = Vec::new();
    for (cell, of_cell) in (0..).zip(rates) {
        let rates = of_cell.map(|centre| around(centre, 0.01, 12));
        let sides = [CANDIDATE, ServerId(3)];
        let sides: Vec<Blocks> = std::iter::zip(sides, &rates)
            .map(|(server, rates)| Blocks {
                server,
                rates,
                costs: &[],
            })
            .collect();
        all.extend(slices(12, &sides).into_iter().map(|slice| Slice {
            cell: CellId(cell),
            ..slice
        }));
    }
    analyse(&plan, &all, Vec::new())
}

#[test]
fn a_cell_is_confirmed_by_its_own_workload_and_candidate_alone() {
    let first = of_two(false, [[0.94; 2]; 2]);
    assert_eq!(first.counts.regression, 4);
    let alone = |recurs: (usize, usize)| {
        let mut rates = [[1.0; 2]; 2];
        rates[recurs.0][recurs.1] = 0.94;
        let mut found = first.clone();
        confirm(&mut found, &of_two(true, rates), None);
        let outcomes = found.cells.iter().map(|cell| {
            let recurred = cell.confirmation == Some(Confirmation::Recurred);
            assert!(recurred || cell.confirmation == Some(Confirmation::DidNotRecur));
            (cell.workload.clone(), cell.candidate, recurred)
        });
        let recurred: Vec<_> = outcomes.filter(|found| found.2).collect();
        let workload = ["point-query", "range-covered"][recurs.0].to_owned();
        let candidate = [CANDIDATE, ServerId(3)][recurs.1];
        assert_eq!(recurred, [(workload, candidate, true)]);
    };
    for recurs in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        alone(recurs);
    }
}

#[test]
fn both_runs_together_have_the_interval_of_their_common_mean_on_the_side_of_the_change() {
    let together = |first: f64, again: f64| {
        let mut found = with_interval(false, first, 0.004);
        confirm(&mut found, &with_interval(true, again, 0.004), None);
        found.cells[0].recurrence.clone().unwrap().together
    };
    // Far beyond what selects it, the first counts for as much as it says: 5 %, by errors of one size.
    let (slower, faster) = (together(-0.052, -0.048), together(0.052, 0.048));
    let half = |level: f64| {
        let (t, plain) = (|level: f64| t_quantile(0.5 + level / 2.0, 11.0), 0.95);
        0.004 * t(level) / t(plain) / 2.0_f64.sqrt()
    };
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 2e-5, "{found} {expected}");
    for (both, centre) in [(slower, -0.05), (faster, 0.05)] {
        near(both.estimate.ln(), centre);
        for (ends, level) in [(both.ci95, 0.95), (both.ci90, 0.90)] {
            let (low, high) = ends.unwrap();
            near(low.ln(), centre - half(level));
            near(high.ln(), centre + half(level));
        }
    }
}

#[test]
fn a_second_run_of_an_unfit_host_or_with_an_unfit_cell_says_nothing() {
    let outcome = |change: fn(&mut Comparison)| {
        let mut found = with_interval(false, -0.06, 0.006);
        let mut again = with_interval(true, 0.0, 0.006);
        change(&mut again);
        confirm(&mut found, &again, None);
        (found.cells[0].confirmation.unwrap(), found.cells[0].verdict)
    };
    let refuted = (Confirmation::DidNotRecur, Verdict::Inconclusive);
    assert_eq!(outcome(|_| {}), refuted);
    let stays = (Confirmation::Open, Verdict::Regression);
    assert_eq!(outcome(|again| again.host_ok = false), stays);
    assert_eq!(
        outcome(|again| again.cells[0].verdict = Verdict::Unfit),
        stays
    );
}
