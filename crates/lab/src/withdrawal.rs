//! What is left of runs and cells that somebody withdrew.

use deltabench_compare::comparison::{CellComparison, Comparison, Verdict};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_report::ConfirmationWithdrawn;

/// Makes a comparison say what its withdrawals leave of it: a cell that is withdrawn, alone or with its whole
/// run, has no verdict that may be used.
///
/// It becomes unfit, and not absent: exit code and gate then follow from the rules for unfit cells. A run
/// withdrawn as a whole, or in all of its cells, ends with 4; one with a withdrawn cell ends with 1 if
/// another cell fails, else with 3, and its gate stays open: withdrawing the cell that failed is no way to
/// pass.
pub(crate) fn withdraw(comparison: &mut Comparison, invalidations: &[Invalidation]) {
    for cell in &mut comparison.cells {
        if !is_withdrawn(invalidations, cell.cell) {
            continue;
        }
        // Reports say themselves that it is withdrawn, and why.
        cell.reason = format!("not trusted: {}", cell.reason);
        let counts = &mut comparison.counts;
        let counted = match cell.verdict {
            Verdict::Regression => &mut counts.regression,
            Verdict::Improvement => &mut counts.improvement,
            Verdict::NoChange => &mut counts.no_change,
            Verdict::Inconclusive => &mut counts.inconclusive,
            Verdict::Unfit => &mut counts.unfit,
        };
        *counted = counted.saturating_sub(1);
        counts.unfit += 1;
        cell.verdict = Verdict::Unfit;
    }
}

/// Leaves out the cells of a confirming run, or of a later session, that are withdrawn: they say nothing.
pub(crate) fn leave_out(comparison: &mut Comparison, invalidations: &[Invalidation]) {
    let counts = |cell: &CellComparison| !is_withdrawn(invalidations, cell.cell);
    comparison.cells.retain(counts);
    comparison.placebo_cells.retain(counts);
}

/// What the reports of the confirmed run say about the withdrawals of its confirming run.
pub(crate) fn of_confirmation(
    run: &str,
    plan: &Plan,
    invalidations: &[Invalidation],
) -> Vec<ConfirmationWithdrawn> {
    let of = |one: &Invalidation| ConfirmationWithdrawn {
        run: run.to_owned(),
        cell: one.cell.map(|id| {
            plan.cell(id)
                .map_or_else(|| "a cell that is not in the plan".to_owned(), cell_label)
        }),
        reason: one.reason.clone(),
        at_unix_ms: one.at_unix_ms,
    };
    invalidations.iter().map(of).collect()
}

/// Whether a cell is withdrawn, alone or with its whole run.
pub(crate) fn is_withdrawn(invalidations: &[Invalidation], cell: CellId) -> bool {
    invalidations
        .iter()
        .any(|one| one.cell.is_none_or(|withdrawn| withdrawn == cell))
}

/// The plan's name of a cell, as it is written to withdraw it.
pub fn cell_label(cell: &Cell) -> String {
    format!("{}@{}", cell.workload, cell.clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::{analyse, exit_code, gate_line};
    use deltabench_testkit::small_run::{plan, slices};

    fn withdrawn(cell: Option<CellId>) -> Invalidation {
        Invalidation {
            cell,
            reason: "a backup ran".to_owned(),
            at_unix_ms: 5,
        }
    }

    /// The candidate is slower in the first cell only.
    fn comparison(gate: bool) -> (Plan, Comparison) {
        let mut plan = plan();
        plan.gate.on = gate;
        let comparison = analyse(&plan, &slices([0.9, 1.0, 1.0]), Vec::new());
        (plan, comparison)
    }

    #[test]
    fn a_withdrawn_run_is_unfit_whatever_it_said() {
        let (_, mut comparison) = comparison(false);
        assert_eq!(exit_code(&comparison), 1);
        withdraw(&mut comparison, &[withdrawn(None)]);
        assert_eq!(exit_code(&comparison), 4);
        assert_eq!(
            (comparison.counts.regression, comparison.counts.unfit),
            (0, 3)
        );
        for cell in &comparison.cells {
            assert!(cell.reason.starts_with("not trusted: "), "{}", cell.reason);
        }
    }

    #[test]
    fn withdrawing_the_cell_that_failed_leaves_the_gate_open() {
        let (plan, mut comparison) = comparison(true);
        assert_eq!(exit_code(&comparison), 1);
        withdraw(&mut comparison, &[withdrawn(Some(CellId(0)))]);
        assert_eq!(exit_code(&comparison), 3);
        let line = gate_line(&comparison, &plan).unwrap();
        assert!(
            line.starts_with("gate open") && line.ends_with("1 not trusted"),
            "{line}"
        );
        assert_eq!(
            (comparison.counts.no_change, comparison.counts.unfit),
            (2, 1)
        );
    }

    #[test]
    fn a_loss_elsewhere_still_counts() {
        let (_, mut comparison) = comparison(true);
        withdraw(&mut comparison, &[withdrawn(Some(CellId(2)))]);
        assert_eq!(exit_code(&comparison), 1);
    }

    #[test]
    fn a_confirming_run_says_nothing_about_its_withdrawn_cells() {
        let (_, mut comparison) = comparison(false);
        leave_out(&mut comparison, &[withdrawn(Some(CellId(1)))]);
        let left: Vec<CellId> = comparison.cells.iter().map(|cell| cell.cell).collect();
        assert_eq!(left, [0, 2].map(CellId));
        leave_out(&mut comparison, &[withdrawn(None)]);
        assert!(comparison.cells.is_empty());
    }
}
