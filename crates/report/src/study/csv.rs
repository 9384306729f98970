//! The figures of a study for spreadsheets.

use super::words as study_words;
use crate::csv::{field, number, optional};
use crate::words;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Figure, Row, Study, Table};

/// The columns; new ones come last, so that numbers of columns keep their meaning.
const HEADER: [&str; 26] = [
    "study",
    "table",
    "axis",
    "axis_name",
    "coordinates",
    "metric",
    "unit",
    "row",
    "group",
    "column",
    "base_column",
    "ratio",
    "ci95_low",
    "ci95_high",
    "absolute",
    "verdict",
    "repetitions",
    "efficiency",
    "cpu_ratio",
    "cpu_ci95_low",
    "cpu_ci95_high",
    "per_cost",
    "cost_per_month",
    "relative",
    "relative_ci95_low",
    "relative_ci95_high",
];

/// Comma-separated values (RFC 4180, line breaks as LF): a header, then a line for each figure, the base's
/// included.
///
/// Units: `absolute` as the column `unit` says; ratios are relative to the base column; `coordinates` are
///        `name=value`, parted by `;`. What is not known or does not apply is an empty field.
pub(super) fn csv(study: &Study) -> String {
    let mut text = format!("{}\n", HEADER.join(","));
    for table in &study.tables {
        for row in &table.rows {
            for (column, figure) in study_words::figures(row) {
                text.push_str(&line(study, table, row, column, figure).join(","));
                text.push('\n');
            }
        }
    }
    text
}

fn line(study: &Study, table: &Table, row: &Row, column: usize, figure: &Figure) -> Vec<String> {
    let head = table.columns.get(column);
    let coordinates: Vec<String> = table
        .coordinates
        .iter()
        .map(|(axis, value)| format!("{axis}={value}"))
        .collect();
    let ends = words::ci95(&figure.ratio);
    let [cpu, relative] = [&figure.cpu, &figure.relative].map(Option::as_ref);
    let (cpu_ends, relative_ends) = (cpu.and_then(words::ci95), relative.and_then(words::ci95));
    vec![
        field(&study.name),
        field(&table.title),
        study_words::axis(table.axis).to_owned(),
        field(&table.axis_name),
        field(&coordinates.join(";")),
        table.metric.key().to_owned(),
        table.metric.unit().to_owned(),
        field(&row.name),
        row.group.word().to_owned(),
        head.map_or_else(String::new, |head| field(&head.name)),
        field(study_words::base_name(table)),
        number(figure.ratio.estimate),
        optional(ends.map(|(low, _)| low)),
        optional(ends.map(|(_, high)| high)),
        number(figure.absolute),
        figure.verdict.map_or("", Verdict::word).to_owned(),
        figure.repetitions.to_string(),
        optional(figure.efficiency),
        optional(cpu.map(|cpu| cpu.estimate)),
        optional(cpu_ends.map(|(low, _)| low)),
        optional(cpu_ends.map(|(_, high)| high)),
        optional(figure.per_cost),
        optional(head.and_then(|head| head.cost_per_month)),
        optional(relative.map(|relative| relative.estimate)),
        optional(relative_ends.map(|(low, _)| low)),
        optional(relative_ends.map(|(_, high)| high)),
    ]
}
