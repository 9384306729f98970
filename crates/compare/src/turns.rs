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
    let may = CellId::each()
        .zip(&plan.cells)
        .filter(|(_, cell)| plan.interleaves(cell));
    let in_turns = may.filter(|(id, _)| {
        let of_cell = slices.iter().filter(|slice| slice.cell == *id);
        took_turns(of_cell) == Some(true)
    });
    let in_turns: Vec<String> = in_turns
        .map(|(_, cell)| words::workload_at(plan, &cell.workload, cell.clients))
        .collect();
    let text = format!(
        "{}: operations are long, so all servers had theirs under way at once and worked in turns of {} ms; \
         context switches and run-queue waits contain those of the turns",
        words::first_of(&in_turns),
        plan.timing.slice_ms,
    );
    (!in_turns.is_empty()).then(|| Finding::new(FindingKind::Turns, Severity::Note, text))
}

/// Whether the servers of a cell took turns: the slices of a round then begin together, and those of another
/// round later. `None` where no round has slices of two servers, or nobody knows when they began.
///
/// Shape: slices of one cell, in any order.
pub fn took_turns<'a>(slices: impl IntoIterator<Item = &'a Slice>) -> Option<bool> {
    let mut rounds: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for slice in slices.into_iter().filter(|slice| slice.started_ns > 0) {
        let round = rounds.entry((slice.block, slice.round)).or_default();
        round.push(slice.started_ns);
    }
    let several = rounds.values().filter(|begun| begun.len() > 1);
    let together: Vec<Option<u64>> = several.map(|begun| all_equal(begun)).collect();
    let known: BTreeSet<u64> = together.iter().copied().flatten().collect();
    (!together.is_empty()).then_some(known.len() == together.len())
}

fn all_equal(values: &[u64]) -> Option<u64> {
    let first = values.first()?;
    values.iter().all(|value| value == first).then_some(*first)
}
