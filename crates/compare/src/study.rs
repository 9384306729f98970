//! The tables of a study: several runs, or one with many servers and client counts, along their axes.
//!
//! Nothing is measured here: the figures come from the comparisons of the runs, arranged as published reports
//! arrange them, each with its interval. What one run judged keeps its verdict; what several loads of the
//! data say together gets one by the same rules, from an interval that holds between loads.
//!
//! Design decision: a table never mixes what was measured side by side with what was not. Servers are columns
//! of one run, paired round by round; client numbers are paired by block; sizes, devices and machines
//! are different runs, so their tables come twice: absolute throughput, which has everything in it that
//! differs between two runs, and the ratio of ratios, in which what both sides of a run share cancels.

use crate::absolute::CellResult;
use crate::comparison::{Comparison, Metric, Ratio, Verdict};
use crate::segments::Segment;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Group, Plan};
use deltabench_model::problem::Problem;

mod across;
mod collect;
mod differences;
mod figures;
mod grids;
mod notes;
mod places;
mod scaleup;
mod servers;
mod spreads;
mod via;

pub use via::via_verdict;

/// One run of a study.
#[derive(Debug, Clone, Copy)]
pub struct StudyRun<'a> {
    /// Its name in the lab.
    pub run: &'a str,
    pub plan: &'a Plan,
    pub comparison: &'a Comparison,
    /// What its servers did in absolute numbers ([`crate::absolute::results`]); may be empty: then there are
    /// no latencies in its grids.
    pub results: &'a [CellResult],
    /// The machine it ran on, in a few words: the same words mean the same machine.
    pub host: &'a str,
    /// When it was first measured, milliseconds since 1970; absent where that is not known.
    pub began_unix_ms: Option<i64>,
    /// What was withdrawn of it, whether or not the comparison says so already.
    pub withdrawn: &'a [Invalidation],
    /// Servers that were not measured in it: columns that earlier runs stand for.
    pub via: &'a [ViaColumn],
}

/// A server that earlier runs stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct ViaColumn {
    /// With where it comes from: `postgres:15.10 via 17.11 (3 occasions)`.
    pub name: String,
    /// As tables call it where a run measured it: then this column is not shown.
    pub server: String,
    pub figures: Vec<ViaFigure>,
    /// The runs that have it.
    pub measured: Vec<Measured>,
}

/// When and where something was measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measured {
    /// Milliseconds since 1970; absent where that is not known.
    pub began_unix_ms: Option<i64>,
    pub run: String,
    /// The execution of an experiment that the run is a part of.
    pub execution: Option<String>,
    /// The machine, as [`StudyRun::host`].
    pub host: String,
}

/// What earlier runs say of it in a cell of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ViaFigure {
    pub cell: CellId,
    pub metric: Metric,
    /// Relative to the base, with the interval in which one more run of it would lie.
    pub ratio: Ratio,
    /// Absent where too little is behind it to judge it.
    pub verdict: Option<Verdict>,
    /// Earlier runs behind it.
    pub occasions: u32,
}

/// What the columns of a table stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The servers of a run: versions, builds, configurations, settings.
    Servers,
    Clients,
    /// Values of what only another run can vary (rows, memory, storage), by its name in
    /// [`deltabench_model::plan::ExperimentPart::coordinates`].
    Part,
    Host,
}

/// Everything a report shows about a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Name of the experiment, or of several; of the first run where there is none.
    pub name: String,
    /// The tables, in the order of the page.
    pub tables: Vec<StudyTable>,
    /// What workloads do over numbers of clients, in absolute numbers.
    pub grids: Vec<Grid>,
    /// Average, median, minimum, maximum and deviation of each group, for the tables along
    /// [`Axis::Servers`].
    pub spreads: Vec<GroupSpread>,
    /// What a reader must know before comparing figures: what confounds, what is missing.
    pub notes: Vec<String>,
}

/// Rows of workloads, columns along an axis, figures relative to one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyTable {
    pub axis: Axis,
    /// The name of the axis: `server`, `clients`, `storage`, `host`.
    pub axis_name: String,
    /// One line, for example `throughput relative to postgres:14.0, 4 clients, storage gp3-3000`.
    pub title: String,
    pub metric: Metric,
    /// What does the work of its rows: `client` or `thread`.
    pub worker: &'static str,
    /// Where this table stands on the other axes, for example `("clients", "4")`.
    pub coordinates: Vec<(String, String)>,
    pub columns: Vec<Column>,
    /// Which of them the figures are relative to: its own are exactly 1.
    pub base: usize,
    /// Whether the figures are ratios of ratios: candidate / base at a column, over candidate / base at the
    /// base column.
    pub of_ratios: bool,
    /// A row for each workload, in the order of the plan.
    pub rows: Vec<StudyRow>,
    /// What is to be said of this table.
    pub notes: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    /// What a month of it costs, where a storage profile says so.
    pub cost_per_month: Option<f64>,
    /// When and where it was measured, oldest first: of columns that were not all measured at one time.
    pub measured: Vec<Measured>,
}

/// A workload in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyRow {
    /// Workload, with what else tells rows apart: `point-query`, `point-query, postgres:18.6`.
    pub name: String,
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
    /// In a table of ratios of ratios: candidate / base at this column.
    pub relative: Option<Ratio>,
    /// The verdict of the run on it, or of all runs behind it together; absent where nobody judged this
    /// comparison. [`Verdict::Unfit`] also there, where what it was made from is unfit or withdrawn.
    pub verdict: Option<Verdict>,
    /// Runs behind it, each with a load of its own; with several the interval holds between them. For a
    /// comparison of different runs the smaller number of both sides.
    pub repetitions: u32,
    /// Scaleup / clients, for [`Axis::Clients`].
    pub efficiency: Option<f64>,
    /// CPU per operation relative to the base column, for [`Axis::Clients`].
    pub cpu: Option<Ratio>,
    /// Context switches per operation relative to the base column, for [`Axis::Clients`].
    pub switches: Option<Ratio>,
    /// Operations per second for each unit of monthly cost, where the column has a price.
    pub per_cost: Option<f64>,
}

/// A workload over numbers of clients: a row for each, a column for each server or machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// What the columns are: [`Axis::Servers`] or [`Axis::Host`].
    pub axis: Axis,
    /// The name of the axis: `server` or `host`.
    pub axis_name: String,
    /// One line; no other grid of the study has it.
    pub title: String,
    /// The workload, as the rows of tables call it.
    pub workload: String,
    /// What its rows count: `client` or `thread`.
    pub worker: &'static str,
    pub group: Group,
    /// Where the grid stands on the other axes, for example `("scale", "10")`.
    pub coordinates: Vec<(String, String)>,
    /// The rows: numbers of clients, rising.
    pub clients: Vec<u32>,
    /// Those of them that share cores with the server in another way than the largest: no line joins both.
    pub apart: Vec<u32>,
    /// Where client and server ran, in words; absent for one number of clients, and where no plan decides it.
    pub placement: Option<String>,
    /// The columns; figures are relative to the first.
    pub columns: Vec<GridColumn>,
}

impl Study {
    /// What does the work of all its tables: as theirs where all are alike, else `client`.
    pub fn worker(&self) -> &'static str {
        one_worker(self.tables.iter().map(|table| table.worker))
    }
}

/// The word for what does the work of all of these.
fn one_worker(mut workers: impl Iterator<Item = &'static str>) -> &'static str {
    match workers.next() {
        Some(first) if workers.all(|other| other == first) => first,
        _ => "client",
    }
}

/// A server or a machine in a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridColumn {
    pub name: String,
    /// One for each number of clients; absent where nothing was measured.
    pub points: Vec<Option<GridPoint>>,
    /// Where its throughput grows, is flat or drops.
    pub segments: Vec<Segment>,
}

/// What a server did at a number of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridPoint {
    /// Operations, or transactions, per second.
    pub throughput: Absolute,
    /// Values behind its interval: blocks, or loads of the data where there are several.
    pub samples: u32,
    /// Relative to the first column; absent for that itself.
    pub relative: Option<Ratio>,
    /// As in [`Figure::verdict`].
    pub verdict: Option<Verdict>,
    /// Mean latency, microseconds. The latencies are geometric means over blocks and loads.
    pub average_us: Option<Absolute>,
    /// Median latency.
    pub p50_us: Option<Absolute>,
    /// 95th percentile.
    pub p95_us: Option<Absolute>,
    /// 99th percentile.
    pub p99_us: Option<Absolute>,
    /// Runs behind it, each with a load of its own.
    pub repetitions: u32,
}

/// An absolute figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Absolute {
    /// exp of the mean of logarithms.
    pub estimate: f64,
    /// Its 95 % interval: over blocks, or between loads where there are several. What servers of one block
    /// share is in it, so that two of them may overlap although their ratio is not 1.
    pub ci95: Option<(f64, f64)>,
}

/// How published tables sum up the relative throughput of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpread {
    /// Title of the table it sums up.
    pub table: String,
    /// The rows of the table that it sums up.
    pub of: SpreadOf,
    /// One for each column of that table; absent where it has no figure.
    pub columns: Vec<Option<Spread>>,
}

/// Rows that published tables sum up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadOf {
    /// One group.
    Group(Group),
    /// All range queries: the row `range` of published tables, which list ranges in two tables and sum them
    /// up in one.
    Ranges,
    All,
}

impl SpreadOf {
    /// All of them, in the order of reports.
    pub const EACH: [Self; 6] = [
        Self::Group(Group::Point),
        Self::Group(Group::Range),
        Self::Group(Group::RangeAgg),
        Self::Ranges,
        Self::Group(Group::Write),
        Self::All,
    ];

    /// Whether it sums up rows of a group.
    #[must_use]
    pub fn has(self, group: Group) -> bool {
        match self {
            Self::Group(one) => one == group,
            Self::Ranges => matches!(group, Group::Range | Group::RangeAgg),
            Self::All => true,
        }
    }
}

/// Of the figures of a group's rows; those that are unfit are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub count: u32,
    /// Arithmetic mean.
    pub average: f64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Standard deviation of the sample; absent with fewer than two rows.
    pub stddev: Option<f64>,
    /// Geometric mean with its interval, where each run behind the column has all the rows.
    pub geometric: Option<Ratio>,
}

/// The grids of a run on its own.
///
/// Errors: none that a run can have alone.
pub fn grids_of(run: StudyRun<'_>) -> Result<Vec<Grid>, Problem> {
    let plan = Plan {
        confirms: None,
        counts: None,
        samples: None,
        session: None,
        sensitivity: None,
        ..run.plan.clone()
    };
    let alone = StudyRun { plan: &plan, ..run };
    study(&[alone]).map(|study| study.grids)
}

/// The tables of these runs: for each place the servers (throughput, CPU per operation) and the scaleup of
/// each server, then the axes along which runs differ, hosts last.
///
/// Runs in the same place are repetitions: their figures are pooled over loads of the data. Runs that belong
/// to others ([`Plan::part_of`]) are left out, and a note names them. A repetition that was withdrawn, or
/// whose host was unfit, is left out; where nothing else is left the figure is shown as unfit. One whose
/// placebo was off stays in: that is the luck of a load, which the interval between loads is there for, and
/// leaving it out would leave those that happen to agree. The placebos are pooled too, and judge the whole.
///
/// Shape:  in any order; tables follow the parts of the experiment, hosts the order given. The same runs give
///         the same study to the bit.
/// Errors: no run; a run twice; runs of different bases; runs in the same place that did not do the same
///         work.
/// Source: docs/measuring.md, "Tables of a study".
pub fn study(runs: &[StudyRun<'_>]) -> Result<Study, Problem> {
    let places = places::Places::new(runs)?;
    let sets = collect::sets(&places);
    let mut tables = Vec::new();
    let mut spreads = Vec::new();
    for set in &sets {
        for (table, sums) in servers::tables(&places, set) {
            tables.push(table);
            spreads.extend(sums);
        }
        tables.extend(scaleup::tables(&places, set));
    }
    tables.extend(across::tables(&places, &sets));
    let grids = grids::grids(&places, &sets, &tables);
    let notes = notes::of_study(&places, &sets, &tables);
    let measured = places.runs.iter().map(|(run, _)| run);
    let all: Vec<&StudyRun<'_>> = measured.chain(&places.unmeasured).collect();
    let names = distinct(all.iter().filter_map(|run| {
        let part = run.plan.experiment.as_ref()?;
        Some(part.experiment.as_str())
    }));
    let name = match names.as_slice() {
        [] => all.first().map_or("", |run| run.run).to_owned(),
        names => names.join(" and "),
    };
    Ok(Study {
        name,
        tables,
        grids,
        spreads,
        notes,
    })
}

/// Values in the order of their first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for value in values {
        if !known.contains(&value) {
            known.push(value);
        }
    }
    known
}
