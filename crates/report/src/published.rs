//! Throughput as published studies count it.

use crate::words;
use deltabench_compare::comparison::{CellComparison, Metric};
use deltabench_model::plan::{Plan, PublishedRate};

/// The published figures of a cell: throughput times a constant, so its ratio is the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Published {
    /// On the base; absent when not known.
    pub(crate) base: Option<f64>,
    /// On the candidate; absent likewise.
    pub(crate) candidate: Option<f64>,
    pub(crate) unit: String,
    /// Published units of one operation.
    pub(crate) per_operation: f64,
}

impl Published {
    /// Whether it is anything but operations per second under another name.
    pub(crate) fn differs(&self) -> bool {
        (self.per_operation - 1.0).abs() > f64::EPSILON
            || self.unit != PublishedRate::default().unit
    }

    /// `110240 → 104180 queries/s (16 for each operation)`.
    pub(crate) fn words(&self) -> String {
        let known =
            |value: Option<f64>| value.map_or_else(|| words::UNKNOWN.to_owned(), words::number);
        let count = if (self.per_operation - 1.0).abs() < f64::EPSILON {
            String::new()
        } else {
            let text = words::number(self.per_operation);
            let short = text.strip_suffix(".00").or(text.strip_suffix(".0"));
            format!(" ({} for each operation)", short.unwrap_or(&text))
        };
        format!(
            "{} → {} {}{count}",
            known(self.base),
            known(self.candidate),
            self.unit
        )
    }
}

/// What published studies would print for a cell; `None` where throughput is not known.
pub(crate) fn published(cell: &CellComparison, plan: &Plan) -> Option<Published> {
    let rate = &plan.cell(cell.cell)?.published;
    let throughput = words::metric(cell, Metric::Throughput)?;
    let figure = |value: f64| Some(value * rate.per_operation).filter(|figure| figure.is_finite());
    Some(Published {
        base: figure(throughput.base),
        candidate: figure(throughput.candidate),
        unit: rate.unit.clone(),
        per_operation: rate.per_operation,
    })
}
