//! What the script of a study's page draws from: its form belongs to this version's script alone.

use super::super::data::number::{Interval, Number, interval};
use super::super::data::{
    VALUE_DIGITS, VERDICTS, VerdictHead, better, metric_name, verdict_head, words_unit,
};
use super::super::grids::{self, GridData};
use crate::study::words as study_words;
use crate::words;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Figure, Study, StudyTable};
use serde::Serialize;

#[derive(Serialize)]
struct Page {
    groups: Vec<(&'static str, &'static str)>,
    verdicts: Vec<VerdictHead>,
    tables: Vec<TableData>,
    grids: Vec<GridData>,
}

#[derive(Serialize)]
struct TableData {
    axis: &'static str,
    axis_name: String,
    title: String,
    metric: &'static str,
    metric_name: &'static str,
    unit: String,
    better: &'static str,
    base: usize,
    of_ratios: bool,
    coordinates: Vec<(String, String)>,
    columns: Vec<(String, Option<Number>)>,
    rows: Vec<RowData>,
}

#[derive(Serialize)]
struct RowData {
    name: String,
    group: &'static str,
    figures: Vec<Option<FigureData>>,
}

/// Ratio, absolute, verdict, repetitions; where there are any efficiency, CPU, ratio of the run, per cost.
#[derive(Serialize)]
struct FigureData(
    Option<Interval>,
    Option<Number>,
    Option<&'static str>,
    u32,
    Option<Number>,
    Option<Interval>,
    Option<Interval>,
    Option<Number>,
);

/// The value, ready to stand inside a script element.
pub(super) fn json(study: &Study) -> String {
    super::super::embedded(&Page {
        groups: words::GROUPS
            .map(|group| {
                (
                    group.word(),
                    study_words::group_heading(study.worker(), Some(group)),
                )
            })
            .to_vec(),
        verdicts: VERDICTS.into_iter().map(verdict_head).collect(),
        tables: study.tables.iter().map(table).collect(),
        grids: grids::data(&study.grids),
    })
}

fn table(table: &StudyTable) -> TableData {
    let columns = table.columns.iter().map(|column| {
        let cost = column.cost_per_month.and_then(value);
        (column.name.clone(), cost)
    });
    let rows = table.rows.iter().map(|row| RowData {
        name: row.name.clone(),
        group: row.group.word(),
        figures: (0..table.columns.len())
            .map(|column| study_words::figure(row, column).map(figure))
            .collect(),
    });
    TableData {
        axis: study_words::axis(table.axis),
        axis_name: table.axis_name.clone(),
        title: table.title.clone(),
        metric: table.metric.key(),
        metric_name: metric_name(table.metric),
        unit: words_unit(table.metric.unit()),
        better: better(table.metric.better()),
        base: table.base,
        of_ratios: table.of_ratios,
        coordinates: table.coordinates.clone(),
        columns: columns.collect(),
        rows: rows.collect(),
    }
}

fn figure(figure: &Figure) -> FigureData {
    FigureData(
        interval(&figure.ratio),
        value(figure.absolute),
        figure.verdict.map(Verdict::word),
        figure.repetitions,
        figure.efficiency.and_then(value),
        figure.cpu.as_ref().and_then(interval),
        figure.relative.as_ref().and_then(interval),
        figure.per_cost.and_then(value),
    )
}

fn value(value: f64) -> Option<Number> {
    Number::new(value, VALUE_DIGITS)
}
