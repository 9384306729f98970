//! The plan that measures the differences of a run again.

use deltabench_compare::comparison::{CellComparison, Comparison, Metric};
use deltabench_model::plan::{Cell, CellId, Gate, Plan, Stopping};
use deltabench_model::units::count;
use deltabench_workload::mix;
use std::collections::HashSet;

/// Largest change that is measured again to be confirmed: larger ones are beyond what a session's luck makes.
/// Source: docs/sources/statistics.md#fresh-loads.
const CONFIRM_UP_TO: f64 = 0.05;

/// Blocks of a confirmation.
const CONFIRM_BLOCKS: u32 = 12;

/// Makes the seed of a confirmation another one than that of its run.
const CONFIRM_SEED: u64 = 0xc0_4f_19;

/// The plan that measures the small regressions and improvements of a finished run again; `None` if there are
/// none.
///
/// Everything that luck may sit in is drawn anew: the load, directories, ports, the size of the environment,
/// every order and key. `earlier`: confirmations of the run that were measured before and withdrawn.
pub fn confirmation(
    run: &str,
    plan: &Plan,
    comparison: &Comparison,
    earlier: usize,
) -> Option<Plan> {
    let small = |cell: &&CellComparison| {
        let throughput = cell.metric(Metric::Throughput);
        let estimate = throughput.map_or(1.0, |value| value.ratio.estimate);
        cell.verdict.is_change() && (estimate - 1.0).abs() <= CONFIRM_UP_TO
    };
    let wanted: HashSet<CellId> = comparison
        .cells
        .iter()
        .filter(small)
        .map(|cell| cell.cell)
        .collect();
    let cells: Vec<Cell> = CellId::each()
        .zip(&plan.cells)
        .filter(|(id, _)| wanted.contains(id))
        .map(|(_, cell)| cell.clone())
        .collect();
    if cells.is_empty() {
        return None;
    }
    let mut again = plan.clone();
    // The question is the first run's: noise must not choose a wider δ in which the loss would vanish.
    let delta = comparison.cells.iter().filter(small).map(|cell| cell.delta);
    again.delta = delta.fold(plan.delta, f64::min);
    again.delta_from_noise = false;
    again.cells = cells;
    let seed = match earlier {
        0 => mix(plan.seed, &[CONFIRM_SEED]),
        earlier => mix(plan.seed, &[CONFIRM_SEED, count(earlier)]),
    };
    again.seed = seed >> 11;
    again.timing.blocks = CONFIRM_BLOCKS;
    again.timing.deadline_seconds = None;
    again.stopping = Stopping::Fixed;
    again.gate = Gate::default();
    // Nobody reads counts for it.
    again.observing.counted_after = None;
    again.observing.sensitivity = false;
    again.observing.confirmed_after = None;
    again.confirms = Some(run.to_owned());
    // Of a run from before it: what lies in the pages of the installed file would only recur.
    again.own_executables = true;
    Some(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_compare::analyse;
    use deltabench_model::counts::CountedAfter;
    use deltabench_model::plan::ServerId;
    use deltabench_model::slice::Slice;
    use deltabench_testkit::small_run::bare_slice;

    /// Throughput of the candidate in each cell, base and placebo at 1.
    const RATES: [f64; 5] = [0.96, 0.9, 1.0, 0.97, 1.04];

    fn slice(server: ServerId, cell: CellId, block: u32, round: u32) -> Slice {
        let rate = match server {
            ServerId(2) => RATES[cell.index()],
            _ => 1.0,
        };
        // Blocks differ by 0.2 %, or nothing would have an interval.
        let luck = f64::from((block + server.0) % 2) * 0.002;
        Slice {
            server,
            cell,
            block,
            round,
            duration_ns: deltabench_model::units::to_u64(4e7 * (1.0 + luck) / rate),
            operations: 1000,
            position: server.0,
            rows: 1000,
            ..bare_slice()
        }
    }

    #[test]
    fn small_differences_are_measured_again_with_everything_drawn_anew() {
        let mut plan = plan_of(&["a", "a", "b"], 5);
        plan.delta = 0.05;
        plan.delta_from_noise = true;
        plan.own_executables = false;
        plan.timing.deadline_seconds = Some(60.0);
        plan.observing.counted_after = Some(CountedAfter::Changed);
        plan.observing.confirmed_after = Some(0);
        plan.observing.sensitivity = true;
        plan.gate.on = true;
        let places = (0..8).flat_map(|block| (0..5).map(move |round| (block, round)));
        let slices: Vec<Slice> = places
            .flat_map(|(block, round)| {
                (0..5).flat_map(move |cell| {
                    (0..3).map(move |server| slice(ServerId(server), CellId(cell), block, round))
                })
            })
            .collect();
        let comparison = analyse(&plan, &slices, Vec::new());
        assert_eq!(comparison.counts.regression, 3);
        let again = confirmation("20260101-first", &plan, &comparison, 0).unwrap();
        let once_more = confirmation("20260101-first", &plan, &comparison, 1).unwrap();
        assert_ne!(again.seed, once_more.seed);
        let clients: Vec<u32> = again.cells.iter().map(|cell| cell.clients).collect();
        assert_eq!(
            clients,
            [1, 4, 5],
            "neither what is equal nor what lost a tenth"
        );
        assert_ne!(again.seed, plan.seed);
        assert_eq!(again.confirms.as_deref(), Some("20260101-first"));
        assert_eq!(
            (again.stopping, again.timing.blocks),
            (Stopping::Fixed, CONFIRM_BLOCKS)
        );
        assert_eq!(again.timing.deadline_seconds, None);
        assert_eq!(again.observing.counted_after, None);
        assert_eq!(again.observing.confirmed_after, None);
        assert!(!again.observing.sensitivity);
        assert_eq!(again.gate, Gate::default());
        assert!(again.own_executables);
        // The first run's δ, which was the smallest step: noise is not asked again.
        assert!(!again.delta_from_noise && (again.delta - 0.02).abs() < 1e-12);
        let equal = analyse(&plan, &[], Vec::new());
        assert_eq!(confirmation("20260101-first", &plan, &equal, 0), None);
    }
}
