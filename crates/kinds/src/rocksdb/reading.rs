//! What the records of a run say beside its slices.

use super::findings;
use deltabench_compare::{Reader, Reading, ReadsToo, Records};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;

/// Adds the findings that only what was measured can show.
pub struct RocksdbReader;

impl Reader for RocksdbReader {
    fn reads_too(&self) -> ReadsToo {
        ReadsToo {
            counters: true,
            ..ReadsToo::default()
        }
    }

    fn read(&self, plan: &Plan, records: &Records<'_>) -> Result<Reading, Problem> {
        let mut reading = Reading::of(records);
        let found = findings::findings(plan, records.slices, records.counters);
        reading.findings.extend(found);
        Ok(reading)
    }
}
