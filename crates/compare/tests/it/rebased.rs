//! The same slices relative to another server than the run was planned with.

use crate::builder::*;
use deltabench_compare::analyse;
use deltabench_compare::comparison::{CellComparison, Metric, Verdict};
use deltabench_model::plan::{Role, ServerId};

fn ratio(cell: &CellComparison) -> f64 {
    metric(cell, Metric::Throughput).ratio.estimate
}

#[test]
fn another_base_turns_the_ratio_round_and_the_placebo_stays_with_its_original() {
    let planned = plan(vec![cell(1, false)]);
    let (slower, costlier) = (around(0.8, 0.01, 8), around(1.25, 0.01, 8));
    let equal = around(1.0, 0.01, 8);
    let placebo = Blocks {
        server: PLACEBO,
        rates: &equal,
        costs: &equal,
    };
    let slices = slices(8, &[placebo, candidate(&slower, &costlier)]);
    let before = analyse(&planned, &slices, Vec::new());
    let plan = planned.relative_to(CANDIDATE);
    let after = analyse(&plan, &slices, Vec::new());
    let cell = only_cell(&after);
    assert_eq!((cell.candidate, cell.verdict), (BASE, Verdict::Improvement));
    assert!((ratio(cell) * ratio(only_cell(&before)) - 1.0).abs() < 1e-9);
    // Against the new base it would be 25 % faster, and no verdict would be trusted.
    let placebos = |found: &[CellComparison]| found.iter().map(ratio).collect::<Vec<_>>();
    let unchanged = placebos(&before.placebo_cells);
    assert_eq!(placebos(&after.placebo_cells), unchanged);
    assert!((unchanged[0] - 1.0).abs() < 0.01, "{unchanged:?}");
    assert!(after.host_ok);
}

#[test]
fn a_plan_relative_to_its_own_base_is_itself() {
    let mut planned = plan(vec![cell(1, false)]);
    assert_eq!(planned.relative_to(BASE), planned);
    assert_eq!(planned.relative_to(CANDIDATE).relative_to(BASE), planned);
    // With equal targets the placebo copies both.
    planned.servers[CANDIDATE.index()] = planned.servers[BASE.index()].clone();
    planned.servers[CANDIDATE.index()].role = Role::Candidate;
    assert_eq!(planned.compared_with(PLACEBO), BASE);
    assert_eq!(
        planned.relative_to(CANDIDATE).compared_with(PLACEBO),
        CANDIDATE
    );
    assert_eq!(planned.compared_with(ServerId(9)), BASE);
}
