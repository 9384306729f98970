//! What an operation takes more or less on the candidate, in microseconds. It stands beside each ratio,
//! because it carries over to another client or placement.

use crate::{withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Difference, Metric};
use deltabench_compare::words::microseconds;
use deltabench_model::plan::Plan;

/// The metrics whose ratio every form has, with what their difference is one of.
const METRICS: [(Metric, &str); 2] = [
    (Metric::Throughput, "time"),
    (Metric::ServerCpuPerOperation, "CPU"),
];

/// The unit after a difference.
const UNIT: &str = " µs/op";

/// The difference with its interval: `+0.62 µs/op [+0.40, +0.84]`. Throughput of an open loop has none, and
/// nothing is told where the ratio is not, either.
pub(crate) fn written(cell: &CellComparison, metric: Metric, plan: &Plan) -> Option<String> {
    let is_withheld =
        metric == Metric::Throughput && withheld::of_cell(plan, cell.blocks).is_some();
    if is_withheld || METRICS.iter().all(|(known, _)| *known != metric) {
        return None;
    }
    difference(cell, metric).map(|difference| microseconds(&difference))
}

/// The same for a column whose head has the unit: `+0.62 [+0.40, +0.84]`, `-` for none.
pub(crate) fn in_column(cell: &CellComparison, metric: Metric, plan: &Plan) -> String {
    written(cell, metric, plan).map_or_else(|| "-".to_owned(), |text| text.replacen(UNIT, "", 1))
}

/// Whether some cell has one.
pub(crate) fn any(comparison: &Comparison, metric: Metric, plan: &Plan) -> bool {
    let mut cells = comparison.cells.iter();
    cells.any(|cell| written(cell, metric, plan).is_some())
}

/// Both in one line: `time +0.62 µs/op [+0.40, +0.84], CPU +0.41 µs/op [+0.30, +0.52]`.
pub(crate) fn both(cell: &CellComparison, plan: &Plan) -> Option<String> {
    let texts = METRICS
        .into_iter()
        .filter_map(|(metric, of)| Some(format!("{of} {}", written(cell, metric, plan)?)));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A reason in which that of CPU follows the difference of time: `-12 µs/op [-14, -11], CPU -9 [-10, -8]`.
pub(crate) fn with_cpu(reason: &str, cell: &CellComparison, plan: &Plan) -> String {
    let time = difference(cell, Metric::Throughput).map(|by| microseconds(&by));
    let cpu = written(cell, Metric::ServerCpuPerOperation, plan);
    match time.zip(cpu) {
        Some((time, cpu)) => {
            let both = format!("{time}, CPU {}", cpu.replacen(UNIT, "", 1));
            reason.replacen(&time, &both, 1)
        }
        None => reason.to_owned(),
    }
}

/// Verdict and reason in one phrase, without the difference with which the reason of a change ends: it has a
/// place of its own.
pub(crate) fn judged_without(cell: &CellComparison) -> String {
    let said = difference(cell, Metric::Throughput).map(|by| format!("; {}", microseconds(&by)));
    let reason = said.map_or_else(
        || cell.reason.clone(),
        |said| cell.reason.replacen(&said, "", 1),
    );
    words::phrase(cell.verdict, &reason)
}

fn difference(cell: &CellComparison, metric: Metric) -> Option<Difference> {
    let found = words::metric(cell, metric)?.difference_us?;
    found.estimate.is_finite().then_some(found)
}
