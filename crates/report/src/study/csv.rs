//! The figures of a study for spreadsheets.

use super::words as study_words;
use crate::grids::Value;
use crate::table::{comma_separated, flat, number, optional};
use crate::words;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{Figure, Grid, GridColumn, GridPoint, Study, StudyRow, StudyTable};

/// The columns; new ones come last, so that numbers of columns keep their meaning.
const HEADER: [&str; 31] = [
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
    "switches_ratio",
    "switches_ci95_low",
    "switches_ci95_high",
    "per_cost",
    "cost_per_month",
    "relative",
    "relative_ci95_low",
    "relative_ci95_high",
    "absolute_ci95_low",
    "absolute_ci95_high",
];

/// Comma-separated values (RFC 4180, line breaks as LF): a header, then a line for each figure, the base's
/// included.
///
/// Units: `absolute` as the column `unit` says; ratios are relative to the base column; `coordinates` are
///        `name=value`, parted by `;`. What is not known or does not apply is an empty field.
pub(super) fn csv(study: &Study) -> String {
    let mut lines = Vec::new();
    for table in &study.tables {
        for row in &table.rows {
            let figures = study_words::figures(row);
            lines.extend(figures.map(|(column, figure)| line(study, table, row, column, figure)));
        }
    }
    lines.extend(study.grids.iter().flat_map(|grid| grid_lines(study, grid)));
    comma_separated(&flat(&HEADER, lines))
}

/// A line for each value at each number of clients: their axis is `grid`, the clients are a coordinate.
fn grid_lines(study: &Study, grid: &Grid) -> Vec<Vec<String>> {
    let columns = grid.columns.iter().flat_map(|column| {
        let points = grid.clients.iter().zip(&column.points);
        points.filter_map(move |(clients, point)| Some((column, *clients, point.as_ref()?)))
    });
    let lines = columns.flat_map(|(column, clients, point)| {
        let values = Value::ALL.into_iter();
        values.filter_map(move |value| grid_line(study, grid, column, (clients, point, value)))
    });
    lines.collect()
}

/// A value of a point; nothing where it has none.
fn grid_line(
    study: &Study,
    grid: &Grid,
    column: &GridColumn,
    (clients, point, value): (u32, &GridPoint, Value),
) -> Option<Vec<String>> {
    let absolute = value.of(point)?;
    let throughput = value == Value::Throughput;
    let relative = point.relative.filter(|_| throughput);
    let ends = relative.as_ref().and_then(words::ci95);
    let verdict = point.verdict.filter(|_| throughput);
    let others = grid.coordinates.iter();
    let coordinates: Vec<String> = std::iter::once(format!("clients={clients}"))
        .chain(others.map(|(axis, value)| format!("{axis}={value}")))
        .collect();
    let base = grid.columns.first().map_or("", |column| &column.name);
    let mut line = vec![
        study.name.clone(),
        grid.title.clone(),
        "grid".to_owned(),
        grid.axis_name.clone(),
        coordinates.join(";"),
        value.key().to_owned(),
        value.unit().to_owned(),
        grid.workload.clone(),
        grid.group.word().to_owned(),
        column.name.clone(),
        base.to_owned(),
        optional(relative.map(|ratio| ratio.estimate)),
        optional(ends.map(|(low, _)| low)),
        optional(ends.map(|(_, high)| high)),
        number(absolute.estimate),
        verdict.map_or("", Verdict::word).to_owned(),
        point.repetitions.to_string(),
    ];
    let own = absolute.ci95.unzip();
    line.resize(HEADER.len() - 2, String::new());
    line.extend([optional(own.0), optional(own.1)]);
    Some(line)
}

fn line(
    study: &Study,
    table: &StudyTable,
    row: &StudyRow,
    column: usize,
    figure: &Figure,
) -> Vec<String> {
    let head = table.columns.get(column);
    let coordinates: Vec<String> = table
        .coordinates
        .iter()
        .map(|(axis, value)| format!("{axis}={value}"))
        .collect();
    let ends = words::ci95(&figure.ratio);
    let [cpu, relative] = [&figure.cpu, &figure.relative].map(Option::as_ref);
    let switches_ends = figure.switches.as_ref().and_then(words::ci95);
    let (cpu_ends, relative_ends) = (cpu.and_then(words::ci95), relative.and_then(words::ci95));
    vec![
        study.name.clone(),
        table.title.clone(),
        study_words::axis(table.axis).to_owned(),
        table.axis_name.clone(),
        coordinates.join(";"),
        table.metric.key().to_owned(),
        table.metric.unit().to_owned(),
        row.name.clone(),
        row.group.word().to_owned(),
        head.map_or_else(String::new, |head| head.name.clone()),
        study_words::base_name(table).to_owned(),
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
        optional(figure.switches.map(|switches| switches.estimate)),
        optional(switches_ends.map(|(low, _)| low)),
        optional(switches_ends.map(|(_, high)| high)),
        optional(figure.per_cost),
        optional(head.and_then(|head| head.cost_per_month)),
        optional(relative.map(|relative| relative.estimate)),
        optional(relative_ends.map(|(low, _)| low)),
        optional(relative_ends.map(|(_, high)| high)),
        String::new(),
        String::new(),
    ]
}
