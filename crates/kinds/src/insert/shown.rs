//! The Insert Benchmark in a report: absolute throughput, relative throughput, background inserts, response
//! times and the metrics line, as published reports lay them out, with the verdicts.

mod csv;
mod exported;
mod figures;
mod json;
mod tables;
mod words;

use super::{Insert, Settled, insert_report, steps};
use crate::shown::{Form, JudgedRun, Show, Shown};
use deltabench_model::fact;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::{Store, StoreError};
pub(crate) use exported::TABLES;
pub use figures::figures;
use std::collections::BTreeMap;

/// Rows for spreadsheets.
pub const FORM: Form = Form {
    name: "steps",
    about: "A row for each server, step and pass of the Insert Benchmark",
    check: csv::check_steps,
    with_progress: None,
};

impl Show for Insert {
    fn block(&self, plan: &Plan) -> String {
        let setup = plan.work.insert();
        let (written, loaded) = setup.map_or((0, 0), |setup| (setup.write_rows, setup.rows));
        let order = match setup.map_or(0, |setup| setup.turns) {
            0 => "one server after another".to_owned(),
            turns => format!("all servers at once, in {turns} turns of each step"),
        };
        format!(
            "{} passes of these steps on each server, {order}; each client writes {written} rows in \
             addition to the {loaded} that it loads",
            plan.timing.blocks
        )
    }

    fn data(&self, plan: &Plan) -> String {
        format!("{} x {}", plan.data.tables, plan.data.rows)
    }

    fn shown(&self, judged: &JudgedRun<'_>, store: &Store) -> Result<Shown, Problem> {
        let plan = judged.plan;
        let steps = steps(judged.records.records)?;
        let report = insert_report(plan, &steps, judged.comparison, judged.cores);
        let Some(mut report) = report else {
            return Ok(Shown::default());
        };
        report.settled = settled(judged.run, store).map_err(Problem::from)?;
        Ok(Shown {
            figures: figures(plan, &report),
            exported: Some(Box::new(report)),
        })
    }
}

/// What settling took in each pass. Of a pass that was begun again the last time counts.
fn settled(run: &str, store: &Store) -> Result<Vec<Settled>, StoreError> {
    let mut passes = BTreeMap::new();
    for found in store.facts::<fact::Settled>(run)? {
        let (Some(server), Some(pass)) = (found.server, found.block) else {
            continue;
        };
        let settled = Settled {
            server,
            pass,
            vacuum_seconds: found.fact.vacuum_seconds,
            checkpoint_seconds: found.fact.checkpoint_seconds,
            seconds: found.fact.seconds,
        };
        passes.insert((pass, server), settled);
    }
    Ok(passes.into_values().collect())
}
