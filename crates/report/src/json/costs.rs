//! Costs, rates and latency of a cell in the JSON report.

use super::{finite, interval};
use deltabench_compare::comparison::{Better, BlockRate, Cost, LatencyCurves, Moved};
use deltabench_model::json::known;
use deltabench_model::metric::unit;
use serde_json::{Value, json};

pub(super) fn cost(cost: &Cost) -> Value {
    let (unit, good) = unit(&cost.key);
    let ratio = cost.ratio.as_ref();
    known(json!({
        "key": cost.key,
        "unit": unit,
        "better": good.map(Better::word),
        "base": finite(cost.base),
        "candidate": finite(cost.candidate),
        "difference": estimate(cost.difference.estimate, cost.difference.ci95),
        "ratio": ratio.and_then(|ratio| estimate(ratio.estimate, ratio.ci95)),
        "blocks": cost.blocks,
    }))
}

pub(super) fn estimate(value: f64, ci95: Option<(f64, f64)>) -> Option<Value> {
    Some(known(
        json!({"estimate": finite(value)?, "ci95": interval(ci95)}),
    ))
}

pub(super) fn moved(moved: &Moved) -> Value {
    known(json!({
        "key": moved.key,
        "surprise": finite(moved.surprise),
        "p": finite(moved.p),
        "text": moved.text,
    }))
}

pub(super) fn block_rate(rate: &BlockRate) -> Value {
    known(json!({
        "block": rate.block,
        "base": finite(rate.base),
        "candidate": finite(rate.candidate),
        "server_cpu_us": interval(rate.server_cpu_us),
    }))
}

/// Points that are numbers on both sides; absent where there is none.
pub(super) fn latency(curves: &LatencyCurves) -> Option<Value> {
    let sides = std::iter::zip(&curves.base_us, &curves.candidate_us);
    let points: Vec<[f64; 3]> = std::iter::zip(&curves.percentiles, sides)
        .map(|(percentile, (base, candidate))| [*percentile, *base, *candidate])
        .filter(|point| point.iter().all(|value| value.is_finite()))
        .collect();
    let list = |of: fn(&[f64; 3]) -> f64| points.iter().map(of).collect::<Value>();
    (!points.is_empty()).then(|| {
        json!({
            "percentiles": list(|[at, _, _]| *at),
            "base_us": list(|[_, base, _]| *base),
            "candidate_us": list(|[_, _, candidate]| *candidate),
        })
    })
}
