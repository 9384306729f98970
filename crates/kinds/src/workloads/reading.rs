//! What the slices of passes without a break say of the host.

use deltabench_compare::interference::disturbed;
use deltabench_compare::{Reader, Reading, Records};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use std::collections::BTreeMap;

/// Slices say everything; of passes, whose slices all count, it tells which were disturbed.
pub struct WorkloadsReader;

impl Reader for WorkloadsReader {
    fn read(&self, plan: &Plan, records: &Records<'_>) -> Result<Reading, Problem> {
        let mut reading = Reading::of(records);
        if plan.timing.sustained {
            reading.findings.extend(disturbances(plan, records.slices));
        }
        Ok(reading)
    }
}

/// The passes in which other load disturbed more than half of the slices.
fn disturbances(plan: &Plan, slices: &[Slice]) -> Option<Finding> {
    let mut passes: BTreeMap<(CellId, u32, ServerId), (u32, u32)> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice.void.is_none()) {
        let place = (slice.cell, slice.block, slice.server);
        let (hit, all) = passes.entry(place).or_default();
        *all += 1;
        *hit += u32::from(disturbed(std::iter::once(slice)));
    }
    let number = passes.len();
    let texts: Vec<String> = passes
        .into_iter()
        .filter(|(_, (hit, all))| 2 * hit > *all)
        .map(|((cell, block, server), _)| {
            let cell = plan.cell(cell);
            let name = cell.map_or("", |cell| cell.workload.as_str());
            format!(
                "{name} on {} in block {}",
                plan.server_name(server),
                block + 1
            )
        })
        .collect();
    (!texts.is_empty()).then(|| {
        let text = format!(
            "other load disturbed more than half of the slices in {} of {number} passes, and none was \
             left out: {}",
            texts.len(),
            texts.join("; ")
        );
        Finding::new(FindingKind::own("disturbed-passes"), Severity::Confounder, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan_of;
    use deltabench_testkit::small_run::bare_slice;

    #[test]
    fn passes_that_others_disturbed_are_named_and_slices_in_turn_are_not() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let slice = |server: u32, round: u32, foreign_tenths: u64| {
            let bare = bare_slice();
            Slice {
                server: ServerId(server),
                round,
                duration_ns: 1_000_000_000,
                foreign_cpu_ns: Some(foreign_tenths * 100_000_000),
                ..bare
            }
        };
        let slices: Vec<Slice> = (0..4)
            .flat_map(|round| [slice(0, round, 0), slice(2, round, 8)])
            .collect();
        let found = |plan: &Plan| {
            let records = Records {
                slices: &slices,
                ..Records::default()
            };
            WorkloadsReader.read(plan, &records).unwrap().findings
        };
        assert_eq!(found(&plan), []);
        plan.timing.sustained = true;
        let told = found(&plan).remove(0);
        assert!(told.text.contains("1 of 2 passes"), "{}", told.text);
        assert!(told.text.contains("on b in block"), "{}", told.text);
    }
}
