//! Where instructions went, as JSON: `Explain` in `docs/reference/report.schema.json`.

use crate::context::resolved;
use crate::explained::{each, why};
use deltabench_model::explanation::{self, ExplainedCell, Explanation, Line};
use deltabench_model::json::{known, unless_empty};
use deltabench_model::plan::Plan;
use serde_json::{Value, json};

/// All cells as JSON: which cell, and what its `explain` in the report of a run says.
pub fn explained_json(run: &str, cells: &[ExplainedCell], plan: &Plan) -> String {
    let cells = cells.iter().map(|cell| {
        let planned = plan.cell(cell.cell);
        json!({
            "workload": planned.map(|planned| &planned.workload),
            "clients": planned.map(|planned| planned.clients),
            "base": resolved(plan, plan.base()),
            "candidate": resolved(plan, cell.candidate),
            "explain": explain(cell),
        })
    });
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
        "why": why(line, explanation),
        "inner": unless_empty(line.inner.iter().map(|line| place(line, explanation))),
    }))
}
