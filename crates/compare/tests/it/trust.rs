//! Placebo, host and exit code.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, Verdict};
use deltabench_compare::{analyse, exit_code};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CellId, Role};

/// Candidate and placebo with these block values in one cell.
fn compare(candidate_rates: &[f64], placebo_rates: &[f64], findings: Vec<Finding>) -> Comparison {
    let placebo = Blocks {
        server: PLACEBO,
        rates: placebo_rates,
        costs: &[],
    };
    let slices = slices(8, &[placebo, candidate(candidate_rates, &[])]);
    analyse(&plan(vec![cell(4, false)]), &slices, findings)
}

#[test]
fn a_placebo_that_is_off_makes_its_cell_unfit() {
    let comparison = compare(&around(0.94, 0.01, 8), &around(0.98, 0.01, 8), Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!(cell.verdict, Verdict::Unfit);
    let reason =
        "placebo is off by -2.0 % (p = 0.0011); not trusted: slower by 5.2 % to 6.8 %, beyond ±3 %";
    assert!(cell.reason.starts_with(reason), "{}", cell.reason);
    assert_eq!(
        comparison.placebo_cells[0].verdict,
        Verdict::NoChange,
        "the placebo keeps its own verdict"
    );
    assert_eq!(
        (comparison.counts.unfit, comparison.counts.regression),
        (1, 0)
    );
    assert_eq!(exit_code(&comparison), 4);
}

#[test]
fn a_placebo_that_is_off_by_little_or_by_chance_is_no_reason() {
    // Significant, but a fifth of δ; and far off, but no more than its noise.
    for placebo in [around(0.994, 0.002, 8), around(0.96, 0.06, 8)] {
        let comparison = compare(&around(0.94, 0.01, 8), &placebo, Vec::new());
        assert_eq!(only_cell(&comparison).verdict, Verdict::Regression);
        assert_eq!(exit_code(&comparison), 1);
    }
}

#[test]
fn among_many_cells_one_placebo_is_off_by_chance() {
    let unfit = |cells: u32| {
        let mut all = Vec::new();
        for number in 0..cells {
            let placebo = around(if number == 0 { 0.98 } else { 1.0 }, 0.013, 8);
            let placebo = Blocks {
                server: PLACEBO,
                rates: &placebo,
                costs: &[],
            };
            let mut of_cell = slices(8, &[placebo, candidate(&around(0.94, 0.01, 8), &[])]);
            let id = CellId::each()
                .nth(usize::try_from(number).unwrap())
                .unwrap();
            of_cell.iter_mut().for_each(|slice| slice.cell = id);
            all.extend(of_cell);
        }
        let cells = (0..cells).map(|_| cell(4, false)).collect();
        analyse(&plan(cells), &all, Vec::new()).counts.unfit
    };
    assert_eq!((unfit(1), unfit(2), unfit(32)), (1, 1, 0));
}

#[test]
fn what_is_open_stays_open_when_the_placebo_is_off() {
    let comparison = compare(&around(1.0, 0.1, 8), &around(0.98, 0.01, 8), Vec::new());
    assert_eq!(only_cell(&comparison).verdict, Verdict::Inconclusive);
}

#[test]
fn an_unfit_host_takes_every_verdict_back() {
    let finding = Finding::new(
        FindingKind::own("host-busy"),
        Severity::Unfit,
        "other load took half of the CPU",
    );
    let comparison = compare(&around(0.94, 0.01, 8), &around(1.0, 0.01, 8), vec![finding]);
    assert!(!comparison.host_ok);
    assert_eq!(only_cell(&comparison).verdict, Verdict::Unfit);
    assert!(
        only_cell(&comparison)
            .reason
            .starts_with("host unfit; not trusted: slower by")
    );
    assert_eq!(exit_code(&comparison), 4);

    let finding = Finding::new(FindingKind::CompilerDiffers, Severity::Confounder, "…");
    assert!(compare(&around(1.0, 0.01, 8), &around(1.0, 0.01, 8), vec![finding]).host_ok);
}

#[test]
fn the_placebo_summary_is_a_t_interval_over_joint_block_means() {
    let mut slices = Vec::new();
    // Two cells whose offsets cancel in every block: jointly the placebo is equal to the base, to the
    // digit.
    for (cell, sign) in [(0, 1.0), (1, -1.0)] {
        for (block, offset) in (0..6).zip([0.05, 0.01, -0.02, 0.04, 0.06, 0.03]) {
            for round in 0..3 {
                for (server, rate) in [(BASE, 1000.0), (PLACEBO, 1000.0 * f64::exp(sign * offset))]
                {
                    let mut slice = slice(server, block, round, rate, None);
                    slice.cell = CellId(cell);
                    slices.push(slice);
                }
            }
        }
    }
    let comparison = analyse(
        &plan(vec![cell(4, false), cell(8, false)]),
        &slices,
        Vec::new(),
    );
    let placebo = comparison.placebo.unwrap();
    let (low, high) = placebo.throughput.ci95.unwrap();
    assert!(
        (placebo.throughput.estimate - 1.0).abs() < 1e-7 && high - low < 1e-6,
        "{placebo:?}"
    );
    assert_eq!((placebo.cells, placebo.server_cpu), (2, None));
    assert_eq!(comparison.placebo_cells.len(), 2);
}

#[test]
fn a_placebo_called_different_is_flagged() {
    let comparison = compare(&around(1.0, 0.01, 8), &around(0.9, 0.01, 8), Vec::new());
    let placebo = comparison.placebo.unwrap();
    assert_eq!((placebo.flagged, placebo.cells), (1, 1));
    assert_eq!(comparison.placebo_cells[0].candidate_name, "placebo");
    let comparison = compare(&around(1.0, 0.01, 8), &around(1.0, 0.01, 8), Vec::new());
    assert_eq!(comparison.placebo.unwrap().flagged, 0);
}

#[test]
fn without_a_placebo_there_is_no_summary_and_verdicts_stand() {
    let mut plan = plan(vec![cell(4, false)]);
    plan.servers[1].role = Role::Candidate;
    let slices = slices(8, &[candidate(&around(0.9, 0.01, 8), &[])]);
    let comparison = analyse(&plan, &slices, Vec::new());
    assert_eq!(
        (comparison.placebo, comparison.placebo_cells.len()),
        (None, 0)
    );
    assert_eq!(comparison.cells[1].verdict, Verdict::Regression);
}

#[test]
fn the_exit_code_is_the_first_of_its_table_that_applies() {
    use Verdict::{Improvement, Inconclusive, NoChange, Regression, Unfit};
    let good = compare(&around(1.0, 0.01, 8), &around(1.0, 0.01, 8), Vec::new());
    let with = |verdicts: &[Verdict], host_ok: bool| {
        let mut comparison = good.clone();
        let cell = good.cells[0].clone();
        comparison.cells = verdicts
            .iter()
            .map(|&verdict| deltabench_compare::comparison::CellComparison {
                verdict,
                ..cell.clone()
            })
            .collect();
        comparison.host_ok = host_ok;
        exit_code(&comparison)
    };
    assert_eq!(with(&[NoChange, Improvement], true), 0);
    assert_eq!(with(&[NoChange, Regression, Inconclusive, Unfit], true), 1);
    assert_eq!(with(&[NoChange, Inconclusive, Unfit], true), 3);
    assert_eq!(
        with(&[NoChange, Unfit], true),
        3,
        "one cell without an answer is not fine"
    );
    assert_eq!(with(&[Unfit, Unfit], true), 4);
    assert_eq!(
        with(&[Regression, NoChange], false),
        4,
        "numbers of an unfit host prove no loss"
    );
    assert_eq!(with(&[], true), 0, "a server on its own, measured");
    let nothing = analyse(&plan(vec![cell(1, false)]), &[], Vec::new());
    assert_eq!(exit_code(&nothing), 5);
    assert_eq!(
        (nothing.placebo.is_none(), nothing.counts.inconclusive),
        (true, 1)
    );
}
