//! What a reader should know of what was measured with order entry.

use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::work::orders::OrdersSetup;
use deltabench_report::words;

/// What a reader should know, from the plan alone.
pub(super) fn findings(plan: &Plan) -> Vec<Finding> {
    let Some(setup) = plan.work.orders() else {
        return Vec::new();
    };
    let derived = Finding::new(
        FindingKind::own("orders-derived"),
        Severity::Note,
        "the transactions are derived from the published specification of TPC-C; the figures are not \
         comparable with published results of TPC-C (tpmC)",
    );
    std::iter::once(derived)
        .chain(contention(plan, setup))
        .collect()
}

/// More clients than warehouses: payments of one warehouse wait for each other.
fn contention(plan: &Plan, setup: &OrdersSetup) -> Option<Finding> {
    let most = plan.cells.iter().filter(|cell| cell.writes);
    let most = most.map(|cell| cell.clients).max()?;
    (most > setup.warehouses).then(|| {
        let text = format!(
            "up to {most} clients work on {}: transactions wait for each other's rows, and \
             deltabench measures that too; --warehouses {most} or more makes it rare",
            words::plural(u64::from(setup.warehouses), "warehouse")
        );
        Finding::new(FindingKind::own("orders-contention"), Severity::Note, text)
    })
}
