//! A run, judged by its own records.

use crate::records::Records;
use crate::store_problem;
use crate::withdrawal::withdraw;
use crate::{placebos, sampled};
use deltabench_compare::add_counts;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::costs::add_costs;
use deltabench_compare::counts::caveats;
use deltabench_compare::{self as compare, ended_after, host_speed};
use deltabench_kinds::reader;
use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::SampledCell;
use deltabench_store::Store;
use std::collections::BTreeMap;

/// A run, judged by what was measured in it alone.
#[derive(Debug)]
pub struct Judged {
    pub(crate) run: String,
    pub(crate) plan: Plan,
    pub(crate) comparison: Comparison,
    pub(crate) records: Records,
    /// What was counted in visits, and in records that stand for them.
    pub(crate) counters: Vec<VisitCounters>,
}

impl Judged {
    /// Reads the records of a run and judges them by a plan: its own, or one that says δ differently.
    ///
    /// Errors: the store cannot be read.
    pub fn of(run: &str, plan: &Plan, store: &Store) -> Result<Self, Problem> {
        let mut records = Records::read(run, plan, store)?;
        let mut reading = reader(&plan.work).read(plan, &records.of_kind())?;
        records.slices.append(&mut reading.slices);
        let mut judged_by = plan.clone();
        if let Some(blocks) = ended_by_time(&records) {
            judged_by.stopping = ended_after(&plan.stopping, blocks);
        }
        let counters = reading.counters.clone();
        let mut comparison = compare::analyse(&judged_by, &records.slices, reading);
        comparison.findings.extend(core_speeds(&records));
        mark_drifting(&mut comparison, &records);
        add_costs(
            &mut comparison,
            &judged_by,
            &records.slices,
            &counters,
            &records.machines,
        );
        let alone = plan.observing.counting.is_some() && records.slices.is_empty();
        add_counts(&mut comparison, plan, &records.counted.records, alone);
        if comparison.instructions.is_some() {
            comparison
                .findings
                .extend(caveats(plan, &records.builds, alone));
        }
        Ok(Self {
            run: run.to_owned(),
            plan: plan.clone(),
            comparison,
            records,
            counters,
        })
    }

    /// Where the servers' time went, in cells of which it was sampled, in this run or for it.
    ///
    /// Errors: a record that is damaged, a store that cannot be read.
    pub fn sampled(&self, store: &Store) -> Result<Vec<SampledCell>, Problem> {
        sampled::of_run(&self.run, &self.records, &self.plan, store)
    }

    /// The run's name.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The plan that it is judged by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the run says, whatever was said about it since.
    pub fn into_comparison(self) -> Comparison {
        self.comparison
    }

    /// What the run says now: without what was withdrawn of it.
    ///
    /// Errors: the store cannot be read.
    pub fn standing(&self, store: &Store) -> Result<Comparison, Problem> {
        let withdrawn = store.invalidations(&self.run).map_err(store_problem)?;
        let mut comparison = self.comparison.clone();
        withdraw(&mut comparison, &withdrawn);
        Ok(comparison)
    }

    /// Keeps what the run's placebo came to for the ledger, as said on this host at this time (milliseconds
    /// since 1970).
    ///
    /// Errors: the store cannot be written.
    pub fn remember_placebo(
        &self,
        store: &mut Store,
        host: &str,
        unix_ms: i64,
    ) -> Result<(), Problem> {
        let results = placebos::results(&self.comparison, &self.plan, host, unix_ms);
        store
            .add_placebo_results(&self.run, &results)
            .map_err(store_problem)
    }
}

/// The blocks of a run that its time ended, unless it was gone on with since. Its time may have been up in
/// the middle of the next one.
fn ended_by_time(records: &Records) -> Option<u32> {
    let done = records.slices.iter().map(|slice| slice.block + 1).max()?;
    records
        .time_up
        .filter(|blocks| has_ended_after(*blocks, done))
}

/// Whether a run whose time was up after so many blocks has none but the next, which it had begun.
fn has_ended_after(blocks: u32, done: u32) -> bool {
    blocks == done || blocks + 1 == done
}

/// What the looks at the cores before the visits say of the machine.
fn core_speeds(records: &Records) -> Option<Finding> {
    let looks = || records.visits.iter().filter_map(|visit| visit.core_speed);
    let arithmetic: Vec<f64> = looks()
        .map(|look| {
            let [_, usual, _] = look.arithmetic_ns;
            usual
        })
        .collect();
    let memory: Vec<f64> = looks().map(|look| look.memory_ns).collect();
    host_speed::core_speeds(&arithmetic, &memory)
}

/// A cell drifts when most of its visits began before its servers were steady.
fn mark_drifting(comparison: &mut Comparison, records: &Records) {
    let mut visits: BTreeMap<CellId, (usize, usize)> = BTreeMap::new();
    for (cell, warm_up) in records.warm_ups() {
        let (unsteady, all) = visits.entry(cell).or_default();
        *unsteady += usize::from(!warm_up.steady);
        *all += 1;
    }
    for cell in &mut comparison.cells {
        let (unsteady, all) = visits.get(&cell.cell).copied().unwrap_or_default();
        if 2 * unsteady > all {
            cell.drifting = Some(format!(
                "not steady after the longest warm-up in {unsteady} of {all} visits"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::has_ended_after;

    #[test]
    fn time_that_is_up_within_a_block_ends_a_run_and_blocks_after_that_go_on_with_it() {
        assert!(has_ended_after(9, 9) && has_ended_after(9, 10));
        assert!(!has_ended_after(9, 11) && !has_ended_after(9, 8));
    }
}
