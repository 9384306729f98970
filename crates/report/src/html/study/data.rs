//! What the script of a study's page draws from: its form belongs to this version's script alone.

use super::super::data::number::{Number, VALUE_DIGITS, interval};
use super::super::data::{VERDICTS, metric_name, verdict_head, words_unit};
use super::super::grids;
use crate::study::words as study_words;
use crate::words;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Figure, Study, StudyTable};
use serde_json::{Value, json};

/// The value, ready to stand inside a script element.
pub(super) fn text(study: &Study) -> String {
    let groups = words::GROUPS.map(|group| {
        let heading = study_words::group_heading(study.worker(), Some(group));
        (group.word(), heading)
    });
    super::super::embedded(&json!({
        "groups": groups,
        "verdicts": VERDICTS.map(verdict_head),
        "tables": study.tables.iter().map(table).collect::<Value>(),
        "grids": grids::data(&study.grids),
    }))
}

fn table(table: &StudyTable) -> Value {
    let columns = table.columns.iter().map(|column| {
        let cost = column.cost_per_month.and_then(value);
        json!([column.name, cost])
    });
    let rows = table.rows.iter().map(|row| {
        let figures: Vec<Option<Value>> = (0..table.columns.len())
            .map(|column| study_words::figure(row, column).map(figure))
            .collect();
        json!({"name": row.name, "group": row.group.word(), "figures": figures})
    });
    json!({
        "axis": study_words::axis(table.axis),
        "axis_name": table.axis_name,
        "title": table.title,
        "metric": table.metric.key(),
        "metric_name": metric_name(table.metric),
        "unit": words_unit(table.metric.unit()),
        "better": table.metric.better().word(),
        "base": table.base,
        "of_ratios": table.of_ratios,
        "coordinates": table.coordinates,
        "columns": columns.collect::<Value>(),
        "rows": rows.collect::<Value>(),
    })
}

/// Ratio, absolute, verdict, repetitions; where there are any efficiency, CPU, ratio of the run, per cost,
/// context switches.
fn figure(figure: &Figure) -> Value {
    json!([
        interval(&figure.ratio),
        value(figure.absolute),
        figure.verdict.map(Verdict::word),
        figure.repetitions,
        figure.efficiency.and_then(value),
        figure.cpu.as_ref().and_then(interval),
        figure.relative.as_ref().and_then(interval),
        figure.per_cost.and_then(value),
        figure.switches.as_ref().and_then(interval),
    ])
}

fn value(value: f64) -> Option<Number> {
    Number::new(value, VALUE_DIGITS)
}
