//! What the placebos of a host say of its false alarms and of its intervals.

use crate::context::ReportContext;
use crate::words;
use deltabench_compare::comparison::Metric;
use deltabench_compare::ledger::Coverage;
use deltabench_compare::thresholds::LEVEL_DIFFERENT;
use deltabench_model::json::unless_empty;
use serde_json::{Value, json};

/// The false alarms of all runs on this host.
pub(crate) fn false_alarms(context: &ReportContext) -> Option<String> {
    let ledger = context.ledger.as_ref().filter(|ledger| ledger.total > 0)?;
    let bound = if ledger.upper_bound.is_finite() {
        format!(" (at most {:.1} %)", 100.0 * ledger.upper_bound)
    } else {
        String::new()
    };
    Some(format!(
        "false alarms on this host so far: {} of {}{bound}",
        ledger.flagged,
        words::plural(ledger.total, "placebo cell")
    ))
}

/// That intervals of this host hold the truth less often than they say; `None` if that may be chance.
pub(crate) fn too_narrow(context: &ReportContext) -> Option<String> {
    narrow_words(&context.ledger.as_ref()?.coverage)
}

/// `throughput: the 95 % intervals contained 0 in 81 of 100 placebo cells of 20 runs [72, 88]: intervals on
/// this host are too narrow`, of the intervals that are printed; `None` if that may be chance.
pub fn narrow_words(coverage: &[Coverage]) -> Option<String> {
    let printed = { coverage.iter() }.filter(|row| row.level >= LEVEL_DIFFERENT);
    let told = printed.filter(|row| row.is_too_low()).map(|row| {
        format!(
            "{}: the {:.0} % intervals contained 0 in {} of {} of {} [{:.0}, {:.0}]",
            metric_word(row.metric),
            100.0 * row.level,
            row.held,
            words::plural(row.cells, "placebo cell"),
            words::plural(row.runs, "run"),
            100.0 * row.ci95.low,
            100.0 * row.ci95.high
        )
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty())
        .then(|| format!("{}: intervals on this host are too narrow", told.join("; ")))
}

/// A judged metric in words.
pub fn metric_word(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::ServerCpuPerOperation => "CPU per operation",
        other => other.key(),
    }
}

/// How often intervals of placebos hold 0, for JSON; absent where that is not known.
pub fn coverage_json(coverage: &[Coverage]) -> Option<Value> {
    unless_empty(coverage.iter().map(|row| {
        json!({
            "metric": row.metric.key(),
            "level": row.level,
            "cells": row.cells,
            "runs": row.runs,
            "held": row.held,
            "share_ci95": [row.ci95.low, row.ci95.high],
            "too_narrow": row.is_too_low(),
        })
    }))
}
