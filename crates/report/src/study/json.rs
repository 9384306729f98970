//! A study as JSON: what its fields mean is said in `docs/reference/study.schema.json`.

use super::context::{StudyContext, StudyRunFacts};
use super::lead::{counts, extremes, sentence};
use super::words as study_words;
use crate::json::interval::{interval, relative};
use crate::json::version2::{JsonVersion, Names, written};
use crate::words::finite;
use deltabench_compare::comparison::Verdict;
use deltabench_compare::study::{
    Absolute, Figure, Grid, GridColumn, GridPoint, GroupSpread, SpreadOf, Study, StudyRow,
    StudyTable,
};
use deltabench_model::json::{known, unless_blank, unless_empty};
use serde_json::{Value, json};

/// The JSON report, indented, with a line break at the end.
pub(super) fn json(version: JsonVersion, study: &Study, context: &StudyContext) -> String {
    // It refers to nothing by its place in a plan.
    written(version, report(study, context), &Names::default())
}

fn report(study: &Study, context: &StudyContext) -> Value {
    let verdicts = counts(study);
    let strings = |list: Vec<String>| unless_empty(list.into_iter().map(Value::String));
    known(json!({
        "format": "deltabench.study",
        "version": 1,
        "name": study.name,
        "execution": unless_blank(&context.execution),
        "about": context.about,
        "source": context.source,
        "scale": context.scale,
        "summary": sentence(study),
        "extremes": strings(extremes(study)),
        "deltabench_version": context.deltabench_version,
        "command": strings(context.command.clone()),
        "counts": json!({
            "regression": verdicts.regression,
            "improvement": verdicts.improvement,
            "no-change": verdicts.no_change,
            "inconclusive": verdicts.open,
            "unfit": verdicts.unfit,
        }),
        "notes": study.notes,
        "tables": study.tables.iter().map(table).collect::<Value>(),
        "grids": unless_empty(json_grids(&study.grids)),
        "spreads": study.spreads.iter().map(spread).collect::<Value>(),
        "runs": context.runs.iter().map(run).collect::<Value>(),
    }))
}

fn table(table: &StudyTable) -> Value {
    let columns = table.columns.iter().map(|column| {
        let cost = column.cost_per_month.and_then(finite);
        let measured = column.measured.iter().map(|one| {
            known(json!({
                "began_unix_ms": one.began_unix_ms,
                "run": one.run,
                "execution": one.execution,
                "host": one.host,
            }))
        });
        known(json!({
            "name": column.name,
            "cost_per_month": cost,
            "measured": unless_empty(measured),
        }))
    });
    let notes = table.notes.iter().map(|note| json!(note));
    known(json!({
        "axis": study_words::axis(table.axis),
        "axis_name": table.axis_name,
        "title": table.title,
        "metric": table.metric.key(),
        "unit": table.metric.unit(),
        "coordinates": table.coordinates,
        "columns": columns.collect::<Value>(),
        "base": table.base,
        "of_ratios": table.of_ratios,
        "rows": table.rows.iter().map(row).collect::<Value>(),
        "notes": unless_empty(notes),
    }))
}

/// Grids in the form of the contract.
pub(crate) fn json_grids(grids: &[Grid]) -> impl Iterator<Item = Value> {
    grids.iter().map(|grid| {
        let columns = grid.columns.iter();
        let columns = columns.map(|column| grid_column(&grid.clients, column));
        known(json!({
            "axis": study_words::axis(grid.axis),
            "axis_name": grid.axis_name,
            "title": grid.title,
            "workload": grid.workload,
            "group": grid.group.word(),
            "coordinates": grid.coordinates,
            "apart": unless_empty(grid.apart.iter().map(|clients| json!(clients))),
            "placement": grid.placement,
            "columns": columns.collect::<Value>(),
        }))
    })
}

fn grid_column(clients: &[u32], column: &GridColumn) -> Value {
    let points = clients.iter().zip(&column.points);
    let points = points.filter_map(|(clients, point)| grid_point(*clients, point.as_ref()?));
    let segments = column.segments.iter().map(|segment| {
        json!({
            "slope": segment.slope.word(),
            "from": segment.from,
            "to": segment.to,
            "ratio": segment.ratio,
        })
    });
    json!({
        "name": column.name,
        "points": points.collect::<Value>(),
        "segments": segments.collect::<Value>(),
        "segments_text": deltabench_compare::segments::words(&column.segments),
    })
}

fn grid_point(clients: u32, point: &GridPoint) -> Option<Value> {
    let absolute = |of: Absolute| {
        let value = finite(of.estimate)?;
        Some(known(json!({"value": value, "ci95": interval(of.ci95)})))
    };
    Some(known(json!({
        "clients": clients,
        "throughput": absolute(point.throughput)?,
        "relative": point.relative.as_ref().and_then(relative),
        "verdict": point.verdict.map(Verdict::word),
        "latency_us_average": point.average_us.and_then(absolute),
        "latency_us_p50": point.p50_us.and_then(absolute),
        "latency_us_p95": point.p95_us.and_then(absolute),
        "latency_us_p99": point.p99_us.and_then(absolute),
        "repetitions": point.repetitions,
    })))
}

fn row(row: &StudyRow) -> Value {
    let figures = study_words::figures(row).map(|(column, one)| figure(column, one));
    json!({"name": row.name, "group": row.group.word(), "figures": figures.collect::<Value>()})
}

fn figure(column: usize, figure: &Figure) -> Value {
    known(json!({
        "column": column,
        "ratio": figure.ratio.estimate,
        "ci95": interval(figure.ratio.ci95),
        "absolute": finite(figure.absolute),
        "relative": figure.relative.as_ref().and_then(relative),
        "verdict": figure.verdict.map(Verdict::word),
        "repetitions": figure.repetitions,
        "efficiency": figure.efficiency.and_then(finite),
        "cpu": figure.cpu.as_ref().and_then(relative),
        "switches": figure.switches.as_ref().and_then(relative),
        "per_cost": figure.per_cost.and_then(finite),
    }))
}

fn spread(spread: &GroupSpread) -> Value {
    let columns = spread.columns.iter().enumerate();
    let columns = columns.filter_map(|(column, of)| {
        let of = of.as_ref()?;
        Some(known(json!({
            "column": column,
            "count": of.count,
            "average": finite(of.average),
            "median": finite(of.median),
            "min": finite(of.min),
            "max": finite(of.max),
            "stddev": of.stddev.and_then(finite),
            "geometric": of.geometric.as_ref().and_then(relative),
        })))
    });
    known(json!({
        "table": spread.table,
        "group": match spread.of {
            SpreadOf::Group(group) => Some(group.word()),
            SpreadOf::Ranges => Some("ranges"),
            SpreadOf::All => None,
        },
        "columns": columns.collect::<Value>(),
    }))
}

fn run(run: &StudyRunFacts) -> Value {
    known(json!({
        "run": run.run,
        "state": unless_blank(&run.state),
        "part": run.part.map(|(part, _)| part),
        "of": run.part.map(|(_, of)| of),
        "group": run.group.map(|(group, _)| group),
        "groups": run.group.map(|(_, of)| of),
        "repetition": (run.repetition > 0).then_some(run.repetition),
        "coordinates": run.coordinates,
        "host": unless_blank(&run.host),
        "began_unix_ms": run.began_unix_ms,
        "withdrawn": run.withdrawn,
    }))
}
