//! CPU that the verdict on CPU per operation does not contain: that of processes which come and go.

use crate::comparison::{CellComparison, Cost};
use crate::thresholds::SHORT_LIVED_SHARE;
use crate::words;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;

/// A finding for each cell and candidate of which a side used much of it.
///
/// A meter of CPU knows the processes that exist when a visit connects: the backends, the main process, and
/// those that live as long as the server (checkpointer, background writer, WAL writer, autovacuum launcher,
/// I/O workers). It does not meet the workers of autovacuum and of parallel queries.
pub(super) fn findings(plan: &Plan, cells: &[CellComparison]) -> Vec<Finding> {
    let told = cells.iter().filter_map(|cell| finding(plan, cell));
    told.collect()
}

fn finding(plan: &Plan, cell: &CellComparison) -> Option<Finding> {
    let cost = |key: &str| cell.costs.iter().find(|cost| cost.key == key);
    let (short, cpu) = (
        cost("short_lived_cpu_us_per_op")?,
        cost("server_cpu_us_per_op")?,
    );
    let share = |of: fn(&Cost) -> f64| of(short) / of(cpu);
    let (base, candidate) = (share(|cost| cost.base), share(|cost| cost.candidate));
    let much = base.max(candidate) >= SHORT_LIVED_SHARE;
    much.then(|| {
        let text = format!(
            "{}: CPU per operation lacks the processes that started or ended during the visits \
             (autovacuum, parallel workers): {} of it on the base, {} on {}; user and system CPU \
             contain them",
            words::cell(plan, cell),
            words::percent(base),
            words::percent(candidate),
            cell.candidate_name,
        );
        Finding::new(FindingKind::ShortLivedCpu, Severity::Note, text)
    })
}
