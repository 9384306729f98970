//! What a reader should know of what was measured with order entry.

use super::setup::transaction_of;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::work::orders::OrdersSetup;
use deltabench_workload::orders::scripts::Transaction;

/// Orders of a warehouse that wait for delivery after the load: 900 in each of 10 districts. A delivery takes
/// one of each district.
const DELIVERIES: f64 = 900.0;

/// Deliveries per second of one client: more than any server of 2026 was seen to do.
const DELIVERIES_PER_SECOND: f64 = 3000.0;

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
    [
        Some(derived),
        contention(plan, setup),
        exhausted(plan, setup),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// More clients than warehouses: payments of one warehouse wait for each other.
fn contention(plan: &Plan, setup: &OrdersSetup) -> Option<Finding> {
    let most = plan.cells.iter().filter(|cell| cell.writes);
    let most = most.map(|cell| cell.clients).max()?;
    (most > setup.warehouses).then(|| {
        let text = format!(
            "up to {most} clients work on {} warehouses: transactions wait for each other's rows, and \
             deltabench measures that too; --warehouses {most} or more makes it rare",
            setup.warehouses
        );
        Finding::new(FindingKind::own("orders-contention"), Severity::Note, text)
    })
}

/// Deliveries alone may run out of orders in a visit.
fn exhausted(plan: &Plan, setup: &OrdersSetup) -> Option<Finding> {
    let alone = |workload: &str| transaction_of(workload) == Some(Transaction::Delivery);
    plan.cells.iter().find(|cell| alone(&cell.workload))?;
    let seconds = plan.timing.visit_seconds + plan.timing.warmup_seconds;
    let wanted = seconds * DELIVERIES_PER_SECOND / DELIVERIES;
    (f64::from(setup.warehouses) < wanted).then(|| {
        let text = format!(
            "{} warehouses have {} orders per district for deliveries; a visit of {seconds:.1} s can use \
             them up, and a delivery that finds none does less work. --warehouses {:.0} is enough for any \
             server, and the mix is not affected",
            setup.warehouses,
            DELIVERIES,
            wanted.ceil()
        );
        Finding::new(FindingKind::own("orders-undelivered"), Severity::Note, text)
    })
}
