//! What the tests say, for who judges and reports.

use super::record::{TestRecord, tests};
use deltabench_compare::interference::disturbed;
use deltabench_compare::{Reader, Reading, ReadsToo, Records};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;

/// Tests that a finding names before it counts the rest.
const NAMED: usize = 6;

/// Each test on a server is a slice; those that other load disturbed are named, and none is left out.
pub struct ProcedureReader;

impl Reader for ProcedureReader {
    fn reads_too(&self) -> ReadsToo {
        ReadsToo {
            records: true,
            ..ReadsToo::default()
        }
    }

    fn read(&self, plan: &Plan, records: &Records<'_>) -> Result<Reading, Problem> {
        let tests = tests(records.records)?;
        let mut reading = Reading::of(records);
        reading.findings.extend(disturbances(plan, &tests));
        let good = tests
            .iter()
            .filter(|test| test.void.is_none() && test.operations > 0);
        reading.counters.extend(good.map(TestRecord::counters));
        reading.slices = tests.iter().map(TestRecord::slice).collect();
        Ok(reading)
    }
}

/// The tests that other load disturbed, in one finding.
fn disturbances(plan: &Plan, tests: &[TestRecord]) -> Option<Finding> {
    let all: Vec<&TestRecord> = tests.iter().filter(|test| test.void.is_none()).collect();
    let is_hit = |test: &&&TestRecord| disturbed(std::iter::once(&test.slice()));
    let hit: Vec<&&TestRecord> = all.iter().filter(is_hit).collect();
    let name = |test: &&&TestRecord| {
        let cell = plan.cell(test.cell);
        let workload = cell.map_or("?", |cell| cell.workload.as_str());
        let server = plan.server_name(test.server);
        format!("{workload} on {server} in pass {}", test.block + 1)
    };
    let names: Vec<String> = hit.iter().take(NAMED).map(name).collect();
    let more = match hit.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!hit.is_empty()).then(|| {
        let text = format!(
            "other load disturbed {} of {} tests, and none was left out: {}{more}",
            hit.len(),
            all.len(),
            names.join(", ")
        );
        Finding::new(FindingKind::own("disturbed-tests"), Severity::Note, text)
    })
}
