//! The figures as the JSON report has them (`docs/reference/report.schema.json`).

use crate::rocksdb::{CachePair, RocksdbReport, StepBlock, TargetFigures, TargetStep};
use deltabench_model::json::{known, unless_empty};
use deltabench_model::plan::Plan;
use deltabench_model::units::seconds;
use deltabench_report::words::{self, finite};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn rocksdb(plan: &Plan, report: &RocksdbReport) -> Value {
    let steps = report.steps.iter().enumerate().map(|(place, column)| {
        let rows = report.targets.iter();
        let targets = rows.filter_map(|row| Some(target(row, row.steps.get(place)?)));
        json!({
            "step": column.step.name(),
            "threads": column.threads,
            "cell": column.cell,
            "targets": targets.collect::<Value>(),
        })
    });
    let caches = report.caches.iter().map(|pair| caches(report, pair));
    known(json!({
        "setup": plan.work.rocksdb(),
        "steps": steps.collect::<Value>(),
        "caches": unless_empty(caches),
    }))
}

fn target(row: &TargetFigures, step: &TargetStep) -> Value {
    known(json!({
        "server": row.server,
        "target": row.name,
        "role": words::role(row.role),
        "version": row.version,
        "throughput": step.throughput.and_then(finite),
        "blocks": step.blocks.iter().map(block).collect::<Value>(),
    }))
}

fn block(block: &StepBlock) -> Value {
    let figures = block.figures.iter().filter(|(_, value)| value.is_finite());
    json!({
        "block": block.block + 1,
        "started_unix_ms": block.started_ns / 1_000_000,
        "operations": block.operations,
        "seconds": seconds(block.duration_ns),
        "turns": block.turns,
        "published": published(block),
        "figures": figures.collect::<BTreeMap<_, _>>(),
    })
}

fn published(block: &StepBlock) -> BTreeMap<&'static str, f64> {
    let latency = block.latency;
    let all = [
        ("ops_sec", block.throughput()),
        ("mb_sec", block.megabytes_per_second()),
        ("usec_op", block.us_per_operation()),
        ("w_amp", block.published_write_amplification()),
        ("c_mbps", block.compaction_megabytes_per_second()),
        (
            "stall_percent",
            block.stalled_share().map(|share| 100.0 * share),
        ),
        ("uptime_seconds", block.uptime_seconds()),
        ("p50", latency.map(|times| times.p50)),
        ("p99", latency.map(|times| times.p99)),
        ("p99.9", latency.map(|times| times.p99_9)),
        ("p99.99", latency.map(|times| times.p99_99)),
        ("pmax", latency.map(|times| times.max)),
    ];
    let known = all.into_iter();
    known
        .filter_map(|(key, value)| Some((key, finite(value?)?)))
        .collect()
}

fn caches(report: &RocksdbReport, pair: &CachePair) -> Value {
    let steps = report.steps.iter().zip(&pair.ratios);
    let steps = steps.filter_map(|(column, ratio)| {
        let ratio = ratio.as_ref()?;
        let ends = words::ci95(ratio);
        Some(known(json!({
            "cell": column.cell,
            "ratio": finite(ratio.estimate)?,
            "low": ends.map(|(low, _)| low),
            "high": ends.map(|(_, high)| high),
        })))
    });
    json!({
        "target": pair.name,
        "lru": pair.lru,
        "hyper_clock": pair.hyper_clock,
        "steps": steps.collect::<Value>(),
    })
}
