//! Cells whose servers had a long operation under way together and worked in turns.

use crate::words;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::slice::Slice;
use std::collections::{BTreeMap, BTreeSet};

/// Says which cells of a run were measured in turns, if any: their meters contain what stopping costs.
///
/// Source: docs/decisions/0067-long-operations-in-turns.md.
pub(crate) fn finding(plan: &Plan, slices: &[Slice]) -> Option<Finding> {
    let in_turns = cells_in_turns(plan, slices);
    let named = in_turns.iter().filter_map(|id| plan.cell(*id));
    let named: Vec<String> = named
        .map(|cell| words::workload_at(plan, &cell.workload, cell.clients))
        .collect();
    let text = format!(
        "{}: an operation takes longer than a slice, so all servers had theirs under way at once and worked \
         in turns of {} ms; context switches and run-queue waits contain those of the turns",
        words::first_of(&named),
        plan.timing.slice_ms,
    );
    (!named.is_empty()).then(|| Finding::new(FindingKind::Turns, Severity::Note, text))
}

/// Cells that could take turns, with a round of long operations that began together.
fn cells_in_turns(plan: &Plan, slices: &[Slice]) -> BTreeSet<CellId> {
    let mut began: BTreeMap<(CellId, u32, u32), u64> = BTreeMap::new();
    let may = |id: CellId| plan.cell(id).is_some_and(|cell| plan.interleaves(cell));
    let mut found = BTreeSet::new();
    let slice_ns = u64::from(plan.timing.slice_ms) * 1_000_000;
    let long = |slice: &&Slice| slice.duration_ns >= slice.operations.saturating_mul(slice_ns);
    let known = slices.iter().filter(|slice| slice.started_ns > 0);
    for slice in known.filter(long) {
        let round = (slice.cell, slice.block, slice.round);
        match began.insert(round, slice.started_ns) {
            Some(other) if other == slice.started_ns && may(slice.cell) => {
                found.insert(slice.cell);
            }
            _ => {}
        }
    }
    found
}
