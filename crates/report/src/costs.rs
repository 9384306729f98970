//! What each operation cost: the published table of counters, with intervals.

mod table;

pub use table::costs_table;
pub(crate) use table::{blocks, legend, names};

use crate::words;
use deltabench_compare::comparison::{CellComparison, Difference, Metric, Ratio};
use deltabench_model::plan::Plan;

/// The columns of the published table: head and key, in its order.
const PUBLISHED: [(&str, &str); 6] = [
    ("cpu/o", MACHINE_CPU),
    ("cs/o", "context_switches_per_op"),
    ("r/o", "reads_per_op"),
    ("rKB/o", "read_kb_per_op"),
    ("wKB/o", "write_kb_per_op"),
    ("o/s", "throughput"),
];

/// The columns for RocksDB, whose published reports have no such table.
const ENGINE: [(&str, &str); 8] = [
    ("cpu us/o", "server_cpu_us_per_op"),
    ("written KB/o", "process_written_kb_per_op"),
    ("compw KB/o", "compaction_write_kb_per_op"),
    ("comp cpu us/o", "compaction_cpu_us_per_op"),
    ("stall us/o", "stall_us_per_op"),
    ("bc miss/o", "block_cache_misses_per_op"),
    ("cmp/o", "key_comparisons_per_op"),
    ("o/s", "throughput"),
];

/// The columns of a plan's table of costs.
pub(crate) fn columns(plan: &Plan) -> &'static [(&'static str, &'static str)] {
    if plan.work.is_embedded() {
        &ENGINE
    } else {
        &PUBLISHED
    }
}

/// Divided by the published rate already.
const MACHINE_CPU: &str = "machine_cpu_percent_per_op";

/// Not for an operation of ours.
const UNDIVIDED: [&str; 3] = [MACHINE_CPU, "read_await_ms", "write_await_ms"];

/// One figure of the published table on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// On the base, for a published unit of work.
    pub(crate) base: f64,
    pub(crate) candidate: f64,
    /// candidate / base; absent where one of them may be 0.
    pub(crate) ratio: Option<Ratio>,
    /// candidate - base; absent for throughput, which always has a ratio.
    pub(crate) difference: Option<Difference>,
}

/// A figure of the published table: per published unit of work (a query; a thousand rows of a scan), which
/// changes no ratio. `None` where it is not known.
///
/// Source: docs/sources/sysbench-microbenchmarks.md#costs: every counter is divided by the rate that
///         is printed as `o/s`.
pub(crate) fn figure(cell: &CellComparison, plan: &Plan, key: &str) -> Option<Figure> {
    let units = units(cell, plan);
    if key == Metric::Throughput.key() {
        let throughput = words::metric(cell, Metric::Throughput)?;
        return finite(Figure {
            base: throughput.base * units,
            candidate: throughput.candidate * units,
            ratio: Some(throughput.ratio),
            difference: None,
        });
    }
    let cost = cell.costs.iter().find(|cost| cost.key == key)?;
    let by = if UNDIVIDED.contains(&key) { 1.0 } else { units };
    let difference = cost.difference;
    finite(Figure {
        base: cost.base / by,
        candidate: cost.candidate / by,
        ratio: cost.ratio.filter(|ratio| ratio.estimate.is_finite()),
        difference: Some(Difference {
            estimate: difference.estimate / by,
            ci95: difference.ci95.map(|(low, high)| (low / by, high / by)),
        }),
    })
}

/// On one side: per second what `report --costs` has for each operation, and what `iostat` says of the
/// device. The rate is that of the blocks which the costs are from: the judged one may be of fresh blocks or
/// of several sessions, and times a cost of others it is the rate of nothing.
///
/// Units: as their heads say; `cpu/s` is percent of all cores, as `vmstat` has it.
/// Source: docs/sources/sysbench-microbenchmarks.md#costs: the rate is the cost times the published rate.
pub(crate) fn per_second(
    cell: &CellComparison,
    plan: &Plan,
    side: fn(&Figure) -> f64,
) -> Vec<(&'static str, f64)> {
    let of = |key: &str| figure(cell, plan, key).as_ref().map(side);
    let speed = rates(cell, plan).as_ref().map(side);
    let rate = |key: &str| Some(of(key)? * speed?);
    let each = |part: &str, requests: &str| {
        let requests = of(requests).filter(|requests| *requests > 0.0)?;
        Some(of(part)? / requests)
    };
    let all = [
        ("r/s", rate("reads_per_op")),
        ("rMB/s", rate("read_kb_per_op").map(|kb| kb / 1024.0)),
        ("rareqsz KB", each("read_kb_per_op", "reads_per_op")),
        ("rawait ms", of("read_await_ms")),
        ("w/s", rate("writes_per_op")),
        ("wMB/s", rate("write_kb_per_op").map(|kb| kb / 1024.0)),
        ("wareqsz KB", each("write_kb_per_op", "writes_per_op")),
        ("wawait ms", of("write_await_ms")),
        ("cs/s", rate("context_switches_per_op")),
        ("cpu/s %", rate(MACHINE_CPU)),
    ];
    let known = |(name, value): (&'static str, Option<f64>)| Some((name, value?));
    all.into_iter().filter_map(known).collect()
}

/// Published units per second in the blocks of a cell's costs.
fn rates(cell: &CellComparison, plan: &Plan) -> Option<Figure> {
    let (base, candidate) = cell.cost_rates?;
    let units = units(cell, plan);
    finite(Figure {
        base: base * units,
        candidate: candidate * units,
        ratio: None,
        difference: None,
    })
}

/// Published units of an operation.
fn units(cell: &CellComparison, plan: &Plan) -> f64 {
    plan.cell(cell.cell)
        .map_or(1.0, |cell| cell.published.per_operation)
}

fn finite(figure: Figure) -> Option<Figure> {
    (figure.base.is_finite() && figure.candidate.is_finite()).then_some(figure)
}
