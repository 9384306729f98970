//! Ratios and intervals in JSON; what is not a number is left out.

use crate::words::finite;
use deltabench_compare::comparison::Ratio;
use deltabench_model::json::known;
use serde_json::{Value, json};

pub(crate) fn relative(ratio: &Ratio) -> Option<Value> {
    let estimate = finite(ratio.estimate)?;
    Some(known(
        json!({"ratio": estimate, "ci95": interval(ratio.ci95)}),
    ))
}

pub(crate) fn interval(ends: Option<(f64, f64)>) -> Option<[f64; 2]> {
    let (low, high) = ends?;
    Some([finite(low)?, finite(high)?])
}
