//! The JSON report of a study: its own types, the contract with scripts.
//!
//! Fields may be added; none is renamed or changes its meaning without a new [`STUDY_FORMAT`] version. What
//! is not known is left out, never null, 0 or NaN. Ratios are relative to the base column: 1.0 is equal.

use crate::format::Relative;
use serde::Serialize;

/// Name and version of the JSON report of a study as these types have it; version 2 is made of it.
pub const STUDY_FORMAT: (&str, u32) = ("deltabench.study", 1);

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyReport {
    /// Always [`STUDY_FORMAT`]`.0`.
    pub format: &'static str,
    /// Always [`STUDY_FORMAT`]`.1`.
    pub version: u32,
    /// Name of the experiment.
    pub name: String,
    /// Name of this execution of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub execution: String,
    /// What the experiment says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Who published the study that it reproduces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The scale it was carried out at; absent: as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// The result in one line.
    pub summary: String,
    /// What got slower and faster most, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extremes: Vec<String>,
    /// Version of deltabench that made the report.
    pub deltabench_version: String,
    /// The command that makes it again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// How often each verdict was given on throughput in the tables of servers.
    pub counts: StudyCounts,
    /// What must be known before figures are compared: what confounds, what is missing.
    pub notes: Vec<String>,
    /// The tables, in the order of the page.
    pub tables: Vec<StudyTableJson>,
    /// Workloads over numbers of clients, in absolute numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<StudyGrid>,
    /// How published tables sum up groups.
    pub spreads: Vec<StudySpread>,
    /// The runs behind it.
    pub runs: Vec<StudyRun>,
}

/// How often each verdict was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StudyCounts {
    /// Slower beyond chance.
    pub regression: u64,
    /// Faster beyond chance.
    pub improvement: u64,
    /// Shown equal within ±delta.
    #[serde(rename = "no-change")]
    pub no_change: u64,
    /// Without an answer, or not judged.
    pub inconclusive: u64,
    /// Not to be trusted.
    pub unfit: u64,
}

/// Rows of workloads, columns along an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyTableJson {
    /// What the columns are: `servers`, `clients`, `part` (values of what only another run can vary) or
    /// `host`.
    pub axis: &'static str,
    /// The name of the axis: `server`, `clients`, `storage`, `host`, …
    pub axis_name: String,
    /// One line; unique in the report.
    pub title: String,
    /// What is shown: `throughput`, `server_cpu_us_per_op`, …
    pub metric: &'static str,
    /// Unit of [`StudyFigure::absolute`].
    pub unit: &'static str,
    /// Where the table stands on the other axes: name and value.
    pub coordinates: Vec<[String; 2]>,
    /// The columns.
    pub columns: Vec<StudyColumn>,
    /// Place of the column that is 1, from 0.
    pub base: u64,
    /// Whether the figures are ratios of ratios: candidate / base at a column, over that at the base column.
    pub of_ratios: bool,
    /// A row for each workload.
    pub rows: Vec<StudyRowJson>,
    /// What is to be said of this table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyColumn {
    /// Its head.
    pub name: String,
    /// What a month of it costs, in the currency of the storage profile's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_month: Option<f64>,
}

/// A workload in a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyRowJson {
    /// Workload, with what else tells rows apart.
    pub name: String,
    /// `point`, `range`, `range-agg` or `write`.
    pub group: &'static str,
    /// The figures that there are, in the order of the columns.
    pub figures: Vec<StudyFigure>,
}

/// A figure of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyFigure {
    /// Place of its column, from 0.
    pub column: u64,
    /// Relative to the base column; 1 for the base itself.
    pub ratio: f64,
    /// 95 % interval of the ratio; between runs where there are several repetitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// In the unit of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute: Option<f64>,
    /// In a table of ratios of ratios: candidate / base at this column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<Relative>,
    /// `regression`, `improvement`, `no-change`, `inconclusive` or `unfit`; absent where it was not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// Runs behind it, each with a load of its own.
    pub repetitions: u32,
    /// Tables over clients: ratio / (clients / clients of the base), 1 is linear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<f64>,
    /// Tables over clients: CPU per operation relative to the base column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Relative>,
    /// Operations a second for each unit of money a month, where the column has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_cost: Option<f64>,
}

/// A workload over numbers of clients, in absolute numbers: a column for each server or machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyGrid {
    /// What the columns are: `servers` or `host`.
    pub axis: &'static str,
    /// The name of the axis: `server` or `host`.
    pub axis_name: String,
    /// One line; unique among the grids of the report.
    pub title: String,
    /// The workload.
    pub workload: String,
    /// `point`, `range`, `range-agg` or `write`.
    pub group: &'static str,
    /// Where the grid stands on the other axes: name and value.
    pub coordinates: Vec<[String; 2]>,
    /// The columns; figures are relative to the first.
    pub columns: Vec<StudyGridColumn>,
}

/// A server or a machine in a grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyGridColumn {
    /// Its head.
    pub name: String,
    /// What was measured, by rising numbers of clients.
    pub points: Vec<StudyGridPoint>,
    /// Where throughput is linear, growing, flat or dropping; empty for fewer than two points.
    pub segments: Vec<StudySegment>,
    /// The same in words.
    pub segments_text: String,
}

/// What a server did at a number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyGridPoint {
    /// Clients.
    pub clients: u32,
    /// Operations, or transactions, per second.
    pub throughput: StudyAbsolute,
    /// Throughput relative to the first column; absent for that itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<Relative>,
    /// As in [`StudyFigure::verdict`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// Mean latency, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_average: Option<StudyAbsolute>,
    /// Median latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_p50: Option<StudyAbsolute>,
    /// 95th percentile of latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_p95: Option<StudyAbsolute>,
    /// 99th percentile of latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_p99: Option<StudyAbsolute>,
    /// Runs behind it, each with a load of its own.
    pub repetitions: u32,
}

/// An absolute figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyAbsolute {
    /// Geometric mean over blocks and loads.
    pub value: f64,
    /// 95 % interval; between runs where there are several repetitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

/// A part of a line of throughput over clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudySegment {
    /// `linear`, `growing`, `flat`, `dropping` or `cannot-tell`.
    pub slope: &'static str,
    /// The number of clients where it begins.
    pub from: u32,
    /// Where it ends.
    pub to: u32,
    /// Throughput at its end / at the end of the segment before (of the first: at its beginning).
    pub ratio: f64,
}

/// How the ratios of a group are spread, column by column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudySpread {
    /// [`StudyTableJson::title`] of the table that it sums up.
    pub table: String,
    /// `point`, `range`, `range-agg` or `write`; absent for all rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// The columns that have figures.
    pub columns: Vec<StudySpreadColumn>,
}

/// Of the ratios of a group's rows in one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudySpreadColumn {
    /// Place of the column, from 0.
    pub column: u64,
    /// Rows.
    pub count: u32,
    /// Arithmetic mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<f64>,
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// Smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Standard deviation of the sample; absent with fewer than two rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stddev: Option<f64>,
    /// Geometric mean with its interval, where one run holds all the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geometric: Option<Relative>,
}

/// A run of the study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StudyRun {
    /// Its name in the lab.
    pub run: String,
    /// How far it has come.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Which part of the experiment, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// Of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// Which repetition of these coordinates, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition: Option<u32>,
    /// Where it stands on the axes of the experiment: name and value.
    pub coordinates: Vec<[String; 2]>,
    /// The machine, in a few words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Why it is withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
}
