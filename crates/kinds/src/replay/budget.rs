//! Where the time goes: to the statements that can move the workload, and of these to the uncertain ones.

use deltabench_compare::impact::ServerTimes;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::replayed::WeightedBy;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::ReplaySetup;
use std::collections::BTreeSet;

/// Measured seconds of a visit on each server at least: a few slices.
pub const LEAST_SECONDS: f64 = 0.12;
/// And at most: more only makes the mean of one restart more exact.
const MOST_SECONDS: f64 = 10.0;
/// Scatter between restarts that is assumed before it is known, as a log.
const ASSUMED_SD: f64 = 0.02;

/// The cells that a block measures: all in the first one, then those that may still move the workload. What
/// failed in the first block has no slice, and is not tried again.
pub fn open_cells(plan: &Plan, setup: &ReplaySetup, block: u32, before: &[Slice]) -> Vec<CellId> {
    let all = CellId::each().take(plan.cells.len());
    if block >= plan.timing.blocks {
        return Vec::new();
    }
    if block == 0 {
        return all.collect();
    }
    let measured: BTreeSet<CellId> = before.iter().map(|slice| slice.cell).collect();
    let candidates = times_of_candidates(plan, before);
    let shares = shares(plan, setup, before);
    let open = |cell: &CellId| {
        let share = shares.get(cell.index()).copied().unwrap_or(0.0);
        let mut candidates = candidates.iter();
        // What the capture does not weigh may matter.
        let is_weighted = setup
            .statements
            .get(cell.index())
            .is_some_and(|one| one.share.is_some());
        measured.contains(cell)
            && !(is_weighted
                && candidates.all(|times| times.hardly_matters(*cell, share, setup.impact)))
    };
    all.filter(open).collect()
}

/// The share of the workload's time on the base that each cell is.
///
/// Without times in the capture it follows from the calls and from what an execution takes here; then all
/// cells together are the workload.
pub fn shares(plan: &Plan, setup: &ReplaySetup, slices: &[Slice]) -> Vec<f64> {
    let share =
        |statement: &deltabench_model::work::replay::TimedStatement| statement.share.unwrap_or(0.0);
    let known: Vec<f64> = setup.statements.iter().map(share).collect();
    if setup.weighted_by == WeightedBy::Time {
        return known;
    }
    let times = ServerTimes::of(plan, slices, plan.base());
    let cells = CellId::each().zip(known);
    let seconds = |(cell, share): (CellId, f64)| share * times.base_seconds(cell).unwrap_or(0.0);
    let seconds: Vec<f64> = cells.map(seconds).collect();
    let sum: f64 = seconds.iter().sum();
    let of = |seconds: &f64| if sum > 0.0 { seconds / sum } else { 0.0 };
    seconds.iter().map(of).collect()
}

/// The times of all candidates.
pub fn times_of_candidates(plan: &Plan, slices: &[Slice]) -> Vec<ServerTimes> {
    let candidates = plan.candidates().into_iter();
    candidates
        .map(|server| ServerTimes::of(plan, slices, server))
        .collect()
}

/// Measured seconds on each server for each of these cells, which share `seconds` by weight and scatter.
///
/// Shape: as many as `cells`, in their order.
pub fn visit_seconds(
    plan: &Plan,
    setup: &ReplaySetup,
    (cells, before): (&[CellId], &[Slice]),
    seconds: f64,
) -> Vec<f64> {
    let shares = shares(plan, setup, before);
    let candidates = times_of_candidates(plan, before);
    let need = |cell: &CellId| {
        let share = shares.get(cell.index()).copied().unwrap_or(0.0);
        let known = candidates.iter().filter_map(|times| times.sd(*cell));
        share * known.fold(ASSUMED_SD, f64::max)
    };
    let needs: Vec<f64> = cells.iter().map(need).collect();
    let sum: f64 = needs.iter().sum();
    let servers = to_f64(count(plan.servers.len()).max(1));
    let of = |need: &f64| {
        let part = if sum > 0.0 {
            need / sum
        } else {
            1.0 / to_f64(count(needs.len()))
        };
        (part * seconds / servers).clamp(LEAST_SECONDS, MOST_SECONDS)
    };
    needs.iter().map(of).collect()
}
