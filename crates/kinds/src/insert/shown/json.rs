//! The figures as the JSON report has them.

use super::format::{
    Insert, InsertBackground, InsertMetric, InsertPass, InsertRelative, InsertResponse,
    InsertServer, InsertSettled, InsertStep,
};
use crate::insert::{
    BUCKETS, INSERT_METRICS, InsertReport, PassFigures, Quartile, RelativeStep, ResponseTimes,
    ServerFigures, Settled, StepFigures,
};
use deltabench_model::plan::Plan;
use deltabench_model::units::seconds;
use deltabench_report::words;
use std::collections::BTreeMap;

/// The figures as indented JSON.
pub(super) fn text(plan: &Plan, report: &InsertReport) -> String {
    // Strings, numbers and lists alone: they always have a form in JSON.
    serde_json::to_string_pretty(&insert(plan, report)).unwrap_or_default()
}

fn insert(plan: &Plan, report: &InsertReport) -> Insert {
    let steps = report.steps.iter().enumerate().map(|(place, column)| {
        let rows = report.servers.iter();
        let servers = rows.filter_map(|row| Some(server(row, row.steps.get(place)?)));
        InsertStep {
            step: column.name.clone(),
            cell: column.cell,
            unit: column.unit,
            background_target: column.target,
            servers: servers.collect(),
        }
    });
    let metric = |metric: &crate::insert::InsertMetric| InsertMetric {
        key: metric.key,
        unit: metric.unit,
        published: metric.published,
        meaning: metric.meaning,
    };
    Insert {
        setup: setup(plan),
        passes_planned: report.passes_planned,
        passes_needed: report.passes_needed,
        steps: steps.collect(),
        settled: report.settled.iter().map(settled).collect(),
        notes: report.notes.clone(),
        metrics: INSERT_METRICS.iter().map(metric).collect(),
    }
}

fn settled(one: &Settled) -> InsertSettled {
    InsertSettled {
        server: one.server,
        pass: one.pass + 1,
        vacuum_seconds: one.vacuum_seconds,
        checkpoint_seconds: one.checkpoint_seconds,
        seconds: one.seconds,
    }
}

/// What was asked for, without what was not.
fn setup(plan: &Plan) -> serde_json::Value {
    // Numbers, words and lists alone: they always have a form in JSON.
    let mut value = serde_json::to_value(plan.work.insert()).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    value
}

fn server(row: &ServerFigures, figures: &StepFigures) -> InsertServer {
    let throughput = figures.throughput;
    let ends = throughput.and_then(|spread| spread.ci95);
    InsertServer {
        server: row.name.clone(),
        role: words::role(row.role),
        throughput: throughput.map(|spread| spread.mean),
        throughput_low: ends.map(|(low, _)| low),
        throughput_high: ends.map(|(_, high)| high),
        quartile: figures.quartile.map(Quartile::word),
        relative: figures.relative.as_ref().map(relative),
        background: figures.service.map(|service| InsertBackground {
            rate: service.rate,
            met: service.met,
            short_passes: service.short_passes,
        }),
        metrics: metrics(&figures.metrics),
        response: figures.response.iter().map(response).collect(),
        passes: figures.passes.iter().map(pass).collect(),
    }
}

fn relative(relative: &RelativeStep) -> InsertRelative {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let ends = relative.ratio.as_ref().and_then(words::ci95);
    InsertRelative {
        ratio: relative.ratio.and_then(|ratio| finite(ratio.estimate)),
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        verdict: relative.verdict.word(),
        reason: relative.reason.clone(),
        passes: relative.passes,
        quotable: relative.quotable,
    }
}

fn metrics(values: &[Option<f64>]) -> BTreeMap<&'static str, f64> {
    let all = INSERT_METRICS.iter().zip(values);
    all.filter_map(|(metric, value)| Some((metric.key, (*value)?)))
        .collect()
}

fn response(times: &ResponseTimes) -> InsertResponse {
    let names = BUCKETS.iter().map(|(name, _)| *name).chain(["gt"]);
    InsertResponse {
        role: times.role.word(),
        statements: times.statements,
        percent: names.zip(times.percent.iter().copied()).collect(),
        percentiles_us: times.percentiles_us.clone(),
        max_us: times.max_us,
        max_service_us: times.max_service_us,
    }
}

fn pass(pass: &PassFigures) -> InsertPass {
    InsertPass {
        pass: pass.pass + 1,
        position: pass.position + 1,
        started_unix_ms: pass.started_ns / 1_000_000,
        seconds: seconds(pass.duration_ns),
        throughput: pass.throughput,
        background: pass.background,
        disturbed: pass.disturbed,
        void: pass.void.clone(),
        metrics: metrics(&pass.metrics),
    }
}
