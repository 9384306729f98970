//! Where instructions went, as JSON: `Explain` in `docs/reference/report.schema.json`.

use super::costs::estimate;
use super::with;
use crate::context::resolved;
use crate::explained::{each, why};
use crate::sampled::counts;
use deltabench_model::explanation::{self, ExplainedCell, Explanation, Line, TimeChange};
use deltabench_model::json::{known, unless_empty};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::sampled::{FunctionTime, SampledCell, SampledTime};
use serde_json::{Value, json};

/// All cells as JSON: which cell, and what its `explain` and `sampled` in the report of a run say.
pub fn explained_json(
    run: &str,
    (cells, times): (&[ExplainedCell], &[SampledCell]),
    plan: &Plan,
) -> String {
    let place = |(cell, candidate): (CellId, ServerId)| {
        let planned = plan.cell(cell);
        let explained = cells
            .iter()
            .find(|one| (one.cell, one.candidate) == (cell, candidate));
        let time = times
            .iter()
            .find(|one| (one.cell, one.candidate) == (cell, candidate));
        known(json!({
            "workload": planned.map(|planned| &planned.workload),
            "clients": planned.map(|planned| planned.clients),
            "base": resolved(plan, plan.base()),
            "candidate": resolved(plan, candidate),
            "explain": explained.map(explain),
            "sampled": time.map(sampled),
        }))
    };
    let mut places: Vec<(CellId, ServerId)> = cells
        .iter()
        .map(|cell| (cell.cell, cell.candidate))
        .collect();
    for time in times {
        if !places.contains(&(time.cell, time.candidate)) {
            places.push((time.cell, time.candidate));
        }
    }
    let cells = places.into_iter().map(place);
    super::indented(&json!({
        "format": "deltabench.explain",
        "version": 1,
        "run": run,
        "cells": cells.collect::<Value>(),
    }))
}

pub(super) fn explain(cell: &ExplainedCell) -> Value {
    let explanation = &cell.explanation;
    let (base, candidate) = explanation.total();
    let counts = explanation.functions;
    known(json!({
        "unit": "instructions per operation",
        "base": each(base, explanation),
        "candidate": each(candidate, explanation),
        "accounted": explanation.accounted(),
        "functions": {"all": counts.all, "differ": counts.differ, "slightly": counts.slightly},
        "lines": explanation.lines.iter().map(|line| place(line, explanation)).collect::<Value>(),
        "notes": unless_empty(cell.notes.iter().map(|note| json!(note))),
    }))
}

/// Sampled time of both sides, nanoseconds of an operation.
fn time(change: &TimeChange) -> Value {
    let difference = change.candidate_ns - change.base_ns;
    json!({
        "base_ns": change.base_ns,
        "candidate_ns": change.candidate_ns,
        "difference_ns": estimate(difference, Some((change.low_ns, change.high_ns))),
    })
}

/// What was sampled of a cell.
pub(super) fn sampled(cell: &SampledCell) -> Value {
    let judged = &cell.time;
    let functions = |functions: &[FunctionTime]| -> Value {
        let one = |function: &FunctionTime| {
            let more = [
                ("name", json!(function.name)),
                ("p", json!(function.p)),
                ("different", json!(function.is_different())),
            ];
            with(time(&function.change), more)
        };
        functions.iter().map(one).collect()
    };
    let called = |time: &SampledTime| {
        let (different, of) = counts(time);
        json!({"different": different, "of": of})
    };
    known(json!({
        "blocks": judged.blocks,
        "base_samples": judged.samples.0,
        "candidate_samples": judged.samples.1,
        "rate": cell.rate,
        "biased": cell.biased,
        "complete": judged.complete,
        "lost": cell.lost,
        "cost": cell.cost,
        "unseen_ns": judged.unseen_ns,
        "placebo": cell.placebo.as_ref().map(called),
        "itself": functions(&judged.own),
        "with_calls": functions(&judged.inclusive),
    }))
}

fn place(line: &Line, explanation: &Explanation) -> Value {
    let of = |value| each(value, explanation);
    known(json!({
        "place": match line.place {
            explanation::Place::Path => "path",
            explanation::Place::Itself => "itself",
            explanation::Place::Everywhere => "everywhere",
            explanation::Place::EverywhereWithCalls => "everywhere-with-calls",
        },
        "path": line.names,
        "with": unless_empty(line.with.iter().map(|name| json!(name))),
        "base": of(line.base),
        "candidate": of(line.candidate),
        "difference": of(line.difference()),
        "base_calls": of(line.base_calls),
        "candidate_calls": of(line.candidate_calls),
        "time": line.time.as_ref().zip(line.agreement()).map(|(change, said)| {
            with(time(change), [("agreement", json!(said.word()))])
        }),
        "why": why(line, explanation),
        "inner": unless_empty(line.inner.iter().map(|line| place(line, explanation))),
    }))
}
