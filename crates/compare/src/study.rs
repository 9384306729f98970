//! The tables of a study: several runs, or one with many servers and client counts, along their axes.
//!
//! Nothing is measured or judged again here: the figures come from the comparisons of the runs, arranged as
//! published reports arrange them, each with its interval.

use crate::comparison::{Comparison, Metric, Ratio, Verdict};
use deltabench_model::plan::{Group, Plan};

/// One run of a study.
#[derive(Debug, Clone, Copy)]
pub struct StudyRun<'a> {
    /// Its name in the lab.
    pub run: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// What it says.
    pub comparison: &'a Comparison,
    /// The machine it ran on, in a few words: the same words mean the same machine.
    pub host: &'a str,
}

/// What the columns of a table stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The servers of a run: versions, builds, configurations, settings.
    Servers,
    /// Numbers of clients.
    Clients,
    /// Values of what only another run can vary (rows, memory, storage), by its name in
    /// [`deltabench_model::plan::ExperimentPart::coordinates`].
    Part,
    /// Machines.
    Host,
}

/// Everything a report shows about a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Name of the experiment; of the first run where there is none.
    pub name: String,
    /// The tables, in the order of the page.
    pub tables: Vec<Table>,
    /// Average, median, minimum, maximum and deviation of each group, for the tables along
    /// [`Axis::Servers`].
    pub spreads: Vec<GroupSpread>,
    /// What a reader must know before comparing figures: what confounds, what is missing.
    pub notes: Vec<String>,
}

/// Rows of workloads, columns along an axis, figures relative to one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What the columns are.
    pub axis: Axis,
    /// The name of the axis: `server`, `clients`, `storage`, `host`.
    pub axis_name: String,
    /// One line, for example `throughput relative to postgres:14.0, 4 clients, storage gp3-3000`.
    pub title: String,
    /// What is shown.
    pub metric: Metric,
    /// Where this table stands on the other axes, for example `("clients", "4")`.
    pub coordinates: Vec<(String, String)>,
    /// The columns.
    pub columns: Vec<Column>,
    /// Which of them is 1; absent where no column is the base of a figure (ratios of ratios to the first host
    /// still name it).
    pub base: usize,
    /// A row for each workload, in the order of the plan.
    pub rows: Vec<Row>,
    /// What is to be said of this table.
    pub notes: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// What a month of it costs, where a storage profile says so.
    pub cost_per_month: Option<f64>,
}

/// A workload in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Workload, with what else tells rows apart: `point-query`, `point-query, postgres:18.6`.
    pub name: String,
    /// Its family.
    pub group: Group,
    /// One for each column; absent where nothing was measured.
    pub figures: Vec<Option<Figure>>,
}

/// A figure of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Relative to the base column, with its interval; exactly 1 without one for the base itself.
    pub ratio: Ratio,
    /// In the unit of the table's metric.
    pub absolute: f64,
    /// The verdict of the run on it; absent where it did not judge this comparison.
    pub verdict: Option<Verdict>,
    /// Runs behind it, each with a load of its own; with several the interval holds between them.
    pub repetitions: u32,
    /// Scaleup / clients, for [`Axis::Clients`].
    pub efficiency: Option<f64>,
    /// CPU per operation relative to the base column, for [`Axis::Clients`].
    pub cpu: Option<Ratio>,
    /// Operations a second for each unit of money a month, where the column has a price.
    pub per_cost: Option<f64>,
}

/// How published tables sum up the relative throughput of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpread {
    /// Title of the table it sums up.
    pub table: String,
    /// The group; absent for all rows.
    pub group: Option<Group>,
    /// One for each column of that table; absent where it has no figure.
    pub columns: Vec<Option<Spread>>,
}

/// Of the relative throughputs of a group's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Rows.
    pub count: u32,
    /// Arithmetic mean.
    pub average: f64,
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation of the sample; absent with fewer than two rows.
    pub stddev: Option<f64>,
    /// Geometric mean with its interval, where one run holds all the rows.
    pub geometric: Option<Ratio>,
}

/// The colour bands of published tables: at or below this is red.
pub const BAND_LOW: f64 = 0.95;

/// At or above this is green; between them grey.
pub const BAND_HIGH: f64 = 1.05;
