//! A study as JSON.

use super::context::{StudyContext, StudyRunFacts};
use super::format::{
    STUDY_FORMAT, StudyAbsolute, StudyColumn, StudyCounts, StudyFigure, StudyGrid, StudyGridColumn,
    StudyGridPoint, StudyReport, StudyRowJson, StudyRun, StudySegment, StudySpread,
    StudySpreadColumn, StudyTableJson,
};
use super::lead::{counts, extremes, sentence};
use super::words as study_words;
use crate::json::{JsonVersion, Names, interval, relative, upgraded};
use crate::words::finite;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{
    Absolute, Figure, Grid, GridColumn, GroupSpread, Study, StudyRow, StudyTable,
};
use deltabench_model::plan::Group;
use deltabench_model::units::count;

/// The JSON report (see [`super::format`]), indented, with a line break at the end.
pub(super) fn json(version: JsonVersion, study: &Study, context: &StudyContext) -> String {
    // Only maps with keys that are not strings and failing writers make this fail; there is neither.
    let mut text = serde_json::to_string_pretty(&report(study, context)).unwrap_or_default();
    text.push('\n');
    match version {
        JsonVersion::One => text,
        // It refers to nothing by its place in a plan.
        JsonVersion::Two => upgraded(&text, &Names::default()),
    }
}

fn report(study: &Study, context: &StudyContext) -> StudyReport {
    let verdicts = counts(study);
    StudyReport {
        format: STUDY_FORMAT.0,
        version: STUDY_FORMAT.1,
        name: study.name.clone(),
        execution: context.execution.clone(),
        about: context.about.clone(),
        source: context.source.clone(),
        scale: context.scale.clone(),
        summary: sentence(study),
        extremes: extremes(study),
        deltabench_version: context.deltabench_version.clone(),
        command: context.command.clone(),
        counts: StudyCounts {
            regression: verdicts.regression,
            improvement: verdicts.improvement,
            no_change: verdicts.no_change,
            inconclusive: verdicts.open,
            unfit: verdicts.unfit,
        },
        notes: study.notes.clone(),
        tables: study.tables.iter().map(table).collect(),
        grids: json_grids(&study.grids),
        spreads: study.spreads.iter().map(spread).collect(),
        runs: context.runs.iter().map(run).collect(),
    }
}

fn table(table: &StudyTable) -> StudyTableJson {
    let columns = table.columns.iter().map(|column| StudyColumn {
        name: column.name.clone(),
        cost_per_month: column.cost_per_month.and_then(finite),
    });
    StudyTableJson {
        axis: study_words::axis(table.axis),
        axis_name: table.axis_name.clone(),
        title: table.title.clone(),
        metric: table.metric.key(),
        unit: table.metric.unit(),
        coordinates: pairs(&table.coordinates),
        columns: columns.collect(),
        base: count(table.base),
        of_ratios: table.of_ratios,
        rows: table.rows.iter().map(row).collect(),
        notes: table.notes.clone(),
    }
}

/// Grids in the form of the contract.
pub(crate) fn json_grids(grids: &[Grid]) -> Vec<StudyGrid> {
    let all = grids.iter().map(|grid| StudyGrid {
        axis: study_words::axis(grid.axis),
        axis_name: grid.axis_name.clone(),
        title: grid.title.clone(),
        workload: grid.workload.clone(),
        group: grid.group.word(),
        coordinates: pairs(&grid.coordinates),
        columns: grid
            .columns
            .iter()
            .map(|column| grid_column(&grid.clients, column))
            .collect(),
    });
    all.collect()
}

fn grid_column(clients: &[u32], column: &GridColumn) -> StudyGridColumn {
    let absolute = |value: Absolute| {
        Some(StudyAbsolute {
            value: finite(value.estimate)?,
            ci95: interval(value.ci95),
        })
    };
    let points = clients.iter().zip(&column.points);
    let points = points.filter_map(|(&clients, point)| {
        let point = point.as_ref()?;
        Some(StudyGridPoint {
            clients,
            throughput: absolute(point.throughput)?,
            relative: point.relative.as_ref().and_then(relative),
            verdict: point.verdict.map(Verdict::word),
            latency_us_average: point.average_us.and_then(absolute),
            latency_us_p50: point.p50_us.and_then(absolute),
            latency_us_p95: point.p95_us.and_then(absolute),
            latency_us_p99: point.p99_us.and_then(absolute),
            repetitions: point.repetitions,
        })
    });
    let segments = column.segments.iter().map(|segment| StudySegment {
        slope: segment.slope.word(),
        from: segment.from,
        to: segment.to,
        ratio: segment.ratio,
    });
    StudyGridColumn {
        name: column.name.clone(),
        points: points.collect(),
        segments: segments.collect(),
        segments_text: deltabench_compare::segments::words(&column.segments),
    }
}

fn row(row: &StudyRow) -> StudyRowJson {
    StudyRowJson {
        name: row.name.clone(),
        group: row.group.word(),
        figures: study_words::figures(row)
            .map(|(column, one)| figure(column, one))
            .collect(),
    }
}

fn figure(column: usize, figure: &Figure) -> StudyFigure {
    StudyFigure {
        column: count(column),
        ratio: figure.ratio.estimate,
        ci95: interval(figure.ratio.ci95),
        absolute: finite(figure.absolute),
        relative: figure.relative.as_ref().and_then(relative),
        verdict: figure.verdict.map(Verdict::word),
        repetitions: figure.repetitions,
        efficiency: figure.efficiency.and_then(finite),
        cpu: figure.cpu.as_ref().and_then(relative),
        per_cost: figure.per_cost.and_then(finite),
    }
}

fn spread(spread: &GroupSpread) -> StudySpread {
    let columns = spread
        .columns
        .iter()
        .enumerate()
        .filter_map(|(column, of)| {
            let of = of.as_ref()?;
            Some(StudySpreadColumn {
                column: count(column),
                count: of.count,
                average: finite(of.average),
                median: finite(of.median),
                min: finite(of.min),
                max: finite(of.max),
                stddev: of.stddev.and_then(finite),
                geometric: of.geometric.as_ref().and_then(relative),
            })
        });
    StudySpread {
        table: spread.table.clone(),
        group: spread.group.map(Group::word),
        columns: columns.collect(),
    }
}

fn run(run: &StudyRunFacts) -> StudyRun {
    StudyRun {
        run: run.run.clone(),
        state: run.state.clone(),
        part: run.part.map(|(part, _)| part),
        of: run.part.map(|(_, of)| of),
        repetition: (run.repetition > 0).then_some(run.repetition),
        coordinates: pairs(&run.coordinates),
        host: run.host.clone(),
        withdrawn: run.withdrawn.clone(),
    }
}

fn pairs(list: &[(String, String)]) -> Vec<[String; 2]> {
    list.iter()
        .map(|(name, value)| [name.clone(), value.clone()])
        .collect()
}
