//! The work of a slice as earlier visits of a run found it.

use super::connected::{SliceWork, fitting};
use super::{ROUNDS_MIN, Scouted};
use deltabench_compare::took_turns;
use deltabench_model::plan::{CacheState, CellId, Plan};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, seconds, to_f64};
use deltabench_workload::executable::Executable;

impl Scouted {
    /// The work that makes a slice of the wanted length on the base, from what its operations took in the
    /// visits before: the median of all their slices. So a visit need not find it again, which takes longer
    /// than several rounds.
    ///
    /// Shape: `None` in the first visit of a cell, and where the work does not follow from the time of an
    ///        operation: with a schedule, a fixed number of operations, rows that are used up, cold caches.
    pub fn learned(
        plan: &Plan,
        cell_id: CellId,
        executable: &Executable,
        slices: &[Slice],
    ) -> Option<Self> {
        let cell = plan.cell(cell_id)?;
        let fixed = executable.slice_operations.is_some() || executable.operations_max.is_some();
        if plan.cache == CacheState::Cold || cell.rate.is_some() || fixed {
            return None;
        }
        let base = plan.base();
        let good = slices.iter().filter(|slice| {
            let counts = slice.void.is_none() && slice.operations > 0;
            slice.cell == cell_id && slice.server == base && counts
        });
        let mut each: Vec<f64> = good
            .map(|slice| seconds(slice.duration_ns) / to_f64(slice.operations))
            .collect();
        if count(each.len()) < ROUNDS_MIN {
            return None;
        }
        let wanted = f64::from(plan.timing.slice_ms) / 1e3;
        let clients = u64::from(cell.clients);
        each.sort_by(f64::total_cmp);
        let median = *each.get(each.len() / 2)?;
        let work = fitting(wanted, clients, median, u64::MAX);
        let work = SliceWork {
            in_turns: took_turns(slices.iter().filter(|slice| slice.cell == cell_id)),
            ..work
        };
        Some(Self { work, done: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::plan::ServerId;
    use deltabench_model::slice::VoidReason;
    use deltabench_testkit::small_run;
    use deltabench_workload::Library;

    #[test]
    fn later_visits_know_the_work_of_a_slice() {
        let mut plan = small_run::plan();
        plan.timing.slice_ms = 40;
        let library = Library::builtin().unwrap();
        let executables = crate::executables::compile(&plan, &library).unwrap();
        let of = |plan: &Plan, slices: &[Slice]| {
            let found = Scouted::learned(plan, CellId(0), &executables[0], slices);
            found.map(|found| (found.work.operations, found.done))
        };
        // 20 µs an operation on the base, but for one slice that was disturbed.
        let slice = |server: u32, round: u32| Slice {
            server: ServerId(server),
            round,
            started_ns: 1_000_000_000 * u64::from(1 + round),
            operations: 1000,
            duration_ns: if round == 2 { 900_000_000 } else { 20_000_000 },
            ..small_run::bare_slice()
        };
        let slices: Vec<Slice> = (0..6).map(|round| slice(0, round)).collect();
        assert_eq!(of(&plan, &slices), Some((2000, 0)));
        assert_eq!(of(&plan, &slices[..4]), None, "too few");
        let others: Vec<Slice> = (0..6).map(|round| slice(1, round)).collect();
        assert_eq!(of(&plan, &others), None, "other servers");
        let changed = |change: fn(&mut Slice)| {
            let mut all = slices.clone();
            all.iter_mut().for_each(change);
            of(&plan, &all)
        };
        let elsewhere = changed(|slice| slice.cell = CellId(1));
        assert_eq!(elsewhere, None, "another cell");
        let void = changed(|slice| slice.void = Some(VoidReason::Stalled));
        assert_eq!(void, None, "what did not count");
        let turns = |slices: &[Slice]| {
            Scouted::learned(&plan, CellId(0), &executables[0], slices)
                .unwrap()
                .work
                .in_turns
        };
        assert_eq!(turns(&slices), None, "one server");
        let both = |started_ns: u64| {
            let second = Slice {
                started_ns,
                ..slice(1, 0)
            };
            [slices.clone(), vec![second]].concat()
        };
        assert_eq!(turns(&both(slices[0].started_ns)), Some(true));
        assert_eq!(turns(&both(slices[0].started_ns + 1)), Some(false));
        plan.cache = CacheState::Cold;
        assert_eq!(of(&plan, &slices), None);
        plan.cache = CacheState::default();
        plan.cells[0].rate = Some(100.0);
        assert_eq!(of(&plan, &slices), None);
    }
}
