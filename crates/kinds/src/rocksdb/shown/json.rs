//! The figures as the JSON report has them.

use super::format::{
    Rocksdb, RocksdbBlock, RocksdbCacheRatio, RocksdbCaches, RocksdbStep, RocksdbTarget,
};
use crate::rocksdb::{CachePair, RocksdbReport, StepBlock, TargetFigures, TargetStep};
use deltabench_model::plan::Plan;
use deltabench_model::units::seconds;
use deltabench_report::words::{self, finite};
use std::collections::BTreeMap;

/// The figures as indented JSON.
pub(super) fn text(plan: &Plan, report: &RocksdbReport) -> String {
    // Strings, numbers and lists alone: they always have a form in JSON.
    serde_json::to_string_pretty(&rocksdb(plan, report)).unwrap_or_default()
}

fn rocksdb(plan: &Plan, report: &RocksdbReport) -> Rocksdb {
    let steps = report.steps.iter().enumerate().map(|(place, column)| {
        let rows = report.targets.iter();
        RocksdbStep {
            step: column.step.name(),
            threads: column.threads,
            cell: column.cell,
            targets: rows
                .filter_map(|row| Some(target(row, row.steps.get(place)?)))
                .collect(),
        }
    });
    Rocksdb {
        // Numbers, words and lists alone: they always have a form in JSON.
        setup: serde_json::to_value(plan.work.rocksdb()).unwrap_or_default(),
        steps: steps.collect(),
        caches: report
            .caches
            .iter()
            .map(|pair| caches(report, pair))
            .collect(),
    }
}

fn target(row: &TargetFigures, step: &TargetStep) -> RocksdbTarget {
    RocksdbTarget {
        server: row.server,
        target: row.name.clone(),
        role: words::role(row.role),
        version: row.version.clone(),
        throughput: step.throughput.and_then(finite),
        blocks: step.blocks.iter().map(block).collect(),
    }
}

fn block(block: &StepBlock) -> RocksdbBlock {
    RocksdbBlock {
        block: block.block + 1,
        started_unix_ms: block.started_ns / 1_000_000,
        operations: block.operations,
        seconds: seconds(block.duration_ns),
        turns: block.turns.clone(),
        published: published(block),
        figures: block
            .figures
            .iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(key, value)| (key.clone(), *value))
            .collect(),
    }
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

fn caches(report: &RocksdbReport, pair: &CachePair) -> RocksdbCaches {
    let steps = report.steps.iter().zip(&pair.ratios);
    RocksdbCaches {
        target: pair.name.clone(),
        lru: pair.lru,
        hyper_clock: pair.hyper_clock,
        steps: steps
            .filter_map(|(column, ratio)| {
                let ratio = ratio.as_ref()?;
                let ends = words::ci95(ratio);
                Some(RocksdbCacheRatio {
                    cell: column.cell,
                    ratio: finite(ratio.estimate)?,
                    low: ends.map(|(low, _)| low),
                    high: ends.map(|(_, high)| high),
                })
            })
            .collect(),
    }
}
