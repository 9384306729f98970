//! RocksDB in a report: targets by step, one block cache against the other, what a step did, and the report
//! that `db_bench`'s scripts write.

mod figures;
mod json;
mod tables;
mod tsv;
mod words;

use super::{Rocksdb, rocksdb_report};
use crate::shown::{Form, JudgedRun, Show, Shown};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::Store;
pub use figures::figures;

/// The file that `db_bench`'s scripts write.
pub const FORM: Form = Form {
    name: "rocksdb",
    about: "report.tsv of the scripts around db_bench: a row for each target, step and block of RocksDB",
    check: tsv::check_rocksdb,
    with_progress: None,
};

impl Show for Rocksdb {
    fn block(&self, plan: &Plan) -> String {
        let setup = plan.work.rocksdb();
        let (workload, seconds) =
            setup.map_or(("", 0), |setup| (setup.workload.word(), setup.seconds));
        format!(
            "{} blocks of {workload}, {seconds} s of each timed step on each target, in turns of {} ms",
            plan.timing.blocks, plan.timing.slice_ms
        )
    }

    fn data(&self, plan: &Plan) -> String {
        format!("{} keys", plan.data.rows)
    }

    fn shown(&self, judged: &JudgedRun<'_>, _: &Store) -> Result<Shown, Problem> {
        let JudgedRun {
            run,
            plan,
            records,
            comparison,
            ..
        } = *judged;
        let report = rocksdb_report(plan, records.slices, records.counters, comparison);
        let figures = report.map(|report| figures(run, plan, &report));
        Ok(Shown {
            figures: figures.unwrap_or_default(),
            ..Shown::default()
        })
    }
}
