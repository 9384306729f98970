//! What the steps say beside their slices: service levels that were missed, and other load.

use super::record::StepRecord;
use super::record::steps;
use super::{NAMED, service};
use deltabench_compare::interference::disturbed;
use deltabench_compare::{Reader, Reading, ReadsToo, Records};
use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;

/// Withholds the verdict on steps whose service level a side has missed, and names those that other load
/// disturbed: none is left out.
pub struct InsertReader;

impl Reader for InsertReader {
    fn reads_too(&self) -> ReadsToo {
        ReadsToo {
            records: true,
            ..ReadsToo::default()
        }
    }

    fn read(&self, plan: &Plan, records: &Records<'_>) -> Result<Reading, Problem> {
        let steps = steps(records.records)?;
        let mut reading = Reading::of(records);
        if let Some(setup) = plan.work.insert() {
            reading.findings.extend(disturbances(plan, &steps));
            reading.unfit = service::missed(plan, setup, &steps);
        }
        reading.counters.extend(counters(&steps));
        reading.slices = steps.iter().map(StepRecord::slice).collect();
        Ok(reading)
    }
}

/// What was counted in each good step.
fn counters(steps: &[StepRecord]) -> Vec<VisitCounters> {
    let good = steps
        .iter()
        .filter(|step| step.void.is_none() && step.operations > 0);
    good.map(|step| VisitCounters {
        server: step.server,
        cell: step.cell,
        block: step.block,
        operations: step.operations,
        values: step.values.clone(),
    })
    .collect()
}

/// By the rule for slices: steal and foreign CPU, never what was measured.
pub(super) fn is_disturbed(record: &StepRecord) -> bool {
    disturbed(std::iter::once(&Slice {
        latency_histogram: Vec::new(),
        errors: Vec::new(),
        ..record.slice()
    }))
}

/// The steps that other load disturbed, in one finding.
fn disturbances(plan: &Plan, steps: &[StepRecord]) -> Option<Finding> {
    let all = steps.iter().filter(|step| step.void.is_none());
    let hit: Vec<&StepRecord> = all.clone().filter(|step| is_disturbed(step)).collect();
    let cell = |step: &StepRecord| {
        let planned = plan.cell(step.cell);
        planned
            .map_or("?", |cell| cell.workload.as_str())
            .to_owned()
    };
    let names: Vec<String> = hit
        .iter()
        .take(NAMED)
        .map(|step| {
            format!(
                "{} on {} in pass {}",
                cell(step),
                plan.server_name(step.server),
                step.block + 1
            )
        })
        .collect();
    let more = hit.len().saturating_sub(names.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!hit.is_empty()).then(|| {
        let text = format!(
            "other load disturbed {} of {} steps, and none was left out: {}{more}",
            hit.len(),
            all.count(),
            names.join(", ")
        );
        Finding::new(FindingKind::own("disturbed-steps"), Severity::Note, text)
    })
}
