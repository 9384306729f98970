//! What a ratio is a ratio of: where client and server ran while it was measured.

use crate::conditions::Conditions;
use crate::context::ReportContext;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric};
use deltabench_compare::words::microseconds;
use deltabench_model::plan::{Placement, Plan};
use std::collections::BTreeSet;

/// Beyond this change of throughput, as a share, the report names the placement.
///
/// Found by us: +39 % with the client on the server's core and +8 % with it on a core of its own, for the
/// same 11 to 14 µs that the server saved.
const LARGE: f64 = 0.10;

/// Cells that are named at most.
const NAMED: usize = 3;

/// Where client and server of a cell ran; absent where the plan does not decide it.
pub(crate) fn of_cell(cell: &CellComparison, plan: &Plan) -> Option<Placement> {
    plan.placed(plan.cell(cell.cell)?)
}

/// Of the cells whose throughput changed by more than a tenth: where they were measured, and the difference
/// that does not depend on it.
pub(crate) fn large_changes(comparison: &Comparison, plan: &Plan) -> Option<String> {
    let mut large: Vec<(f64, &CellComparison)> = { comparison.cells.iter() }
        .filter_map(|cell| Some((distance(cell)?, cell)))
        .collect();
    large.sort_by(|a, b| b.0.total_cmp(&a.0));
    let placements = [Placement::SameCore, Placement::Split, Placement::Free];
    let texts = placements.into_iter().filter_map(|placement| {
        let here: Vec<&CellComparison> = { large.iter() }
            .map(|(_, cell)| *cell)
            .filter(|cell| of_cell(cell, plan) == Some(placement))
            .collect();
        let named = here.iter().take(NAMED).map(|cell| named(cell, plan));
        let named: Vec<String> = named.collect();
        let more = match here.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "measured with the client {} (another placement may give another ratio, but about the same \
             difference in µs/op): {}{more}",
            placement.words(),
            named.join(", ")
        );
        (!named.is_empty()).then_some(text)
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// How far throughput changed, on the log scale, where that is much.
fn distance(cell: &CellComparison) -> Option<f64> {
    let ratio = words::metric(cell, Metric::Throughput)?.ratio.estimate;
    let large = cell.verdict.is_change() && (ratio - 1.0).abs() > LARGE;
    large.then(|| ratio.ln().abs())
}

/// `update-index at 1 client -14 µs/op [-15, -13]`.
fn named(cell: &CellComparison, plan: &Plan) -> String {
    let mut text = Conditions::new(plan).name(cell);
    if plan.candidates().len() > 1 {
        text = format!("{text} on {}", cell.candidate_name);
    }
    let difference = words::metric(cell, Metric::Throughput).and_then(|speed| speed.difference_us);
    difference.map_or(text.clone(), |difference| {
        format!("{text} {}", microseconds(&difference))
    })
}

/// Where client and server ran over several numbers of clients, one sentence each; none where the text has
/// the grids, which say it themselves.
pub(crate) fn over_clients(context: &ReportContext) -> BTreeSet<String> {
    let grids = context
        .grids
        .iter()
        .filter(|_| !context.figures.grids_in_text);
    grids.filter_map(|grid| grid.placement.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::analyse;
    use deltabench_model::plan::Pins;
    use deltabench_testkit::small_run::{plan, slices};

    #[test]
    fn a_change_of_more_than_a_tenth_names_where_it_was_measured_and_what_carries_over() {
        let mut plan = plan();
        let note = |plan: &Plan, shares| {
            let comparison = analyse(plan, &slices(shares), Vec::new());
            large_changes(&comparison, plan)
        };
        assert_eq!(note(&plan, [0.95, 1.0, 0.92]), None);
        let text = note(&plan, [0.8, 0.7, 0.95]).unwrap();
        let (one, four) = text.split_once("; measured with").unwrap();
        let start = "measured with the client on the server's core (another placement may give another \
                     ratio, but about the same difference in µs/op): point-query at 1 client +";
        assert!(one.starts_with(start) && one.contains(" µs/op ["), "{one}");
        assert!(four.starts_with(" the client on its own core"), "{four}");
        assert!(four.contains("point-query at 4 clients"), "{four}");
        plan.pins = Some(Pins {
            server: vec![0],
            client: vec![1],
        });
        assert_eq!(
            note(&plan, [0.8, 0.7, 0.95]),
            None,
            "the report names the cores"
        );
    }
}
