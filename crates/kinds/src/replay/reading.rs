//! What the visits of a replay say: one total a block, and why some statements have no verdict.

use super::mix::MixRecord;
use super::record::VisitRecord;
use deltabench_compare::reading::Unfit;
use deltabench_compare::{Reader, Reading, ReadsToo, Records};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::work::replay::ReplaySetup;

/// Makes a slice of each visit.
pub struct ReplayReader;

impl Reader for ReplayReader {
    fn reads_too(&self) -> ReadsToo {
        ReadsToo {
            records: true,
            ..ReadsToo::default()
        }
    }

    fn read(&self, plan: &Plan, records: &Records<'_>) -> Result<Reading, Problem> {
        let mut reading = Reading::of(records);
        let Some(setup) = plan.work.replay() else {
            return Ok(reading);
        };
        for record in records
            .records
            .iter()
            .filter(|record| record.void.is_none())
        {
            let statement = setup.statements.get(record.cell.index());
            let place = (record.block, record.cell, record.server);
            if let Some(mix) = MixRecord::read(record)? {
                reading.slices.extend(mix.slices(place));
                continue;
            }
            let visit = VisitRecord::read(record)?;
            if let Some((visit, statement)) = visit.zip(statement) {
                reading.slices.extend(visit.slice(place, statement));
            }
        }
        // The loop over blocks looks at slices in their order.
        reading.slices.sort_by_key(|slice| slice.block);
        reading.unfit = unfit(setup);
        Ok(reading)
    }
}

fn unfit(setup: &ReplaySetup) -> Unfit {
    let mut unfit = Unfit::new();
    for (cell, statement) in CellId::each().zip(&setup.statements) {
        for (server, why) in &statement.unfit {
            unfit.insert((cell, ServerId(*server)), why.clone());
        }
    }
    unfit
}
