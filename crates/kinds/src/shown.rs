//! What a kind shows of a run: before it is measured, and beside the verdicts.

use deltabench_compare::Records;
use deltabench_compare::absolute::CellResult;
use deltabench_compare::comparison::Comparison;
use deltabench_model::figures::Figures;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use deltabench_store::export::{ExportRow, ExportTable};
use std::fmt::Debug;

/// The half of a kind that speaks of its runs.
pub trait Show: Sync {
    /// What a block of it is, in a line.
    fn block(&self, plan: &Plan) -> String;

    /// How large its data are, in a few words.
    fn data(&self, plan: &Plan) -> String;

    /// What it makes of a run's records.
    ///
    /// Errors: the store, or a record in it, cannot be read.
    fn shown(&self, judged: &JudgedRun<'_>, store: &Store) -> Result<Shown, Problem>;
}

/// What a kind makes of a run's records.
#[derive(Debug, Default)]
pub struct Shown {
    /// Its figures, for every form of the report.
    pub figures: Figures,
    /// What its own tables of an export are made of; absent for kinds without such.
    pub exported: Option<Box<dyn Exported>>,
}

/// What is exported of a run beside the tables of all kinds.
pub trait Exported: Debug {
    /// The rows of the kind's tables, for a run of this name.
    fn rows(&self, run: &str) -> Vec<(ExportTable, Vec<ExportRow>)>;
}

/// Writes a report with a line for each so many seconds.
pub type WithProgress = fn(&Plan, &[CellResult], f64) -> String;

/// A form of a report that only some kind has.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Refuses a plan that has no such form.
    pub check: fn(&Plan) -> Result<(), Problem>,
    /// The same with a line for each so many seconds; absent where there are no such lines.
    pub with_progress: Option<WithProgress>,
}

/// A run that was judged.
#[derive(Debug, Clone, Copy)]
pub struct JudgedRun<'a> {
    pub run: &'a str,
    pub plan: &'a Plan,
    pub records: Records<'a>,
    pub comparison: &'a Comparison,
    /// What its servers did in absolute numbers; empty where no report shows it.
    pub results: &'a [CellResult],
    /// Cores of the machine of the first server, if known.
    pub cores: Option<u32>,
}
