//! The figures as the JSON report has them (`docs/reference/report.schema.json`).

use crate::insert::{
    BUCKETS, INSERT_METRICS, InsertReport, PassFigures, Quartile, RelativeStep, ResponseTimes,
    ServerFigures, StepFigures, is_published,
};
use deltabench_model::json::{known, unless_empty};
use deltabench_model::plan::Plan;
use deltabench_model::units::seconds;
use deltabench_report::words::{self, finite};
use serde_json::{Value, json};

pub(super) fn insert(plan: &Plan, report: &InsertReport) -> Value {
    let steps = report.steps.iter().enumerate().map(|(place, column)| {
        let rows = report.servers.iter();
        let servers = rows.filter_map(|row| Some(server(row, row.steps.get(place)?)));
        known(json!({
            "step": column.name,
            "cell": column.cell,
            "unit": column.unit,
            "background_target": column.target,
            "servers": servers.collect::<Value>(),
        }))
    });
    let settled = report.settled.iter().map(|one| {
        json!({
            "server": one.server,
            "pass": one.pass + 1,
            "vacuum_seconds": one.vacuum_seconds,
            "checkpoint_seconds": one.checkpoint_seconds,
            "seconds": one.seconds,
        })
    });
    let metrics = INSERT_METRICS.iter().map(|metric| {
        json!({
            "key": metric.key,
            "unit": metric.unit,
            "published": is_published(metric),
            "meaning": metric.meaning,
        })
    });
    known(json!({
        "setup": known(json!(plan.work.insert())),
        "passes_planned": report.passes_planned,
        "passes_needed": report.passes_needed,
        "steps": steps.collect::<Value>(),
        "settled": unless_empty(settled),
        "notes": report.notes,
        "metrics": metrics.collect::<Value>(),
    }))
}

fn server(row: &ServerFigures, figures: &StepFigures) -> Value {
    let throughput = figures.throughput;
    let ends = throughput.and_then(|spread| spread.ci95);
    let background = figures.service.map(|service| {
        json!({"rate": service.rate, "met": service.met, "short_passes": service.short_passes})
    });
    known(json!({
        "server": row.name,
        "role": words::role(row.role),
        "throughput": throughput.map(|spread| spread.mean),
        "throughput_low": ends.map(|(low, _)| low),
        "throughput_high": ends.map(|(_, high)| high),
        "quartile": figures.quartile.map(Quartile::word),
        "relative": figures.relative.as_ref().map(relative),
        "background": background,
        "metrics": metrics(&figures.metrics),
        "response": unless_empty(figures.response.iter().map(response)),
        "passes": figures.passes.iter().map(pass).collect::<Value>(),
    }))
}

fn relative(relative: &RelativeStep) -> Value {
    let ends = relative.ratio.as_ref().and_then(words::ci95);
    known(json!({
        "ratio": relative.ratio.and_then(|ratio| finite(ratio.estimate)),
        "low": ends.map(|(low, _)| low),
        "high": ends.map(|(_, high)| high),
        "verdict": relative.verdict.word(),
        "reason": relative.reason,
        "passes": relative.passes,
        "quotable": relative.quotable,
    }))
}

/// By key in the order of the alphabet; what is not known is not there.
fn metrics(values: &[Option<f64>]) -> Value {
    let all = INSERT_METRICS.iter().zip(values);
    let known = all.filter_map(|(metric, value)| Some((metric.key, (*value)?)));
    json!(known.collect::<std::collections::BTreeMap<_, _>>())
}

fn response(times: &ResponseTimes) -> Value {
    let names = BUCKETS.iter().map(|(name, _)| *name).chain(["gt"]);
    let percent: Vec<(&str, f64)> = names.zip(times.percent.iter().copied()).collect();
    json!({
        "role": times.role.word(),
        "statements": times.statements,
        "percent": percent,
        "percentiles_us": times.percentiles_us,
        "max_us": times.max_us,
        "max_service_us": times.max_service_us,
    })
}

fn pass(pass: &PassFigures) -> Value {
    known(json!({
        "pass": pass.pass + 1,
        "position": pass.position + 1,
        "started_unix_ms": pass.started_ns / 1_000_000,
        "seconds": seconds(pass.duration_ns),
        "throughput": pass.throughput,
        "background": pass.background,
        "disturbed": pass.disturbed,
        "void": pass.void,
        "metrics": metrics(&pass.metrics),
    }))
}
