//! The full run with what each operation cost, what moved, latency, marks and withdrawals.

use crate::fixture::ratio;
use crate::full::{Full, full};
use deltabench_compare::comparison::{
    BlockRate, CellComparison, Cost, Difference, LatencyCurves, Metric, Moved,
};
use deltabench_model::counter::Mark;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Group, ServerId};

/// Nothing withdrawn.
pub fn costed() -> Full {
    let mut full = full();
    let comparison = &mut full.comparison;
    for cell in comparison
        .cells
        .iter_mut()
        .chain(&mut comparison.placebo_cells)
    {
        add(cell);
    }
    let slower = &mut comparison.cells[4];
    slower.moved = vec![
        Moved {
            key: "user_cpu_us_per_op".to_owned(),
            surprise: 14.2,
            p: 0.000_02,
            text: "user CPU +5.9 % [+5.3, +6.5]".to_owned(),
        },
        Moved {
            key: "minor_faults_per_op".to_owned(),
            surprise: f64::INFINITY,
            p: 0.001,
            text: "page faults 0 → 0.31 per operation".to_owned(),
        },
    ];
    slower.explanation = Some(
        "+5.7 % CPU per operation, all of it user time; same reads, same context switches"
            .to_owned(),
    );
    full.context.marks = vec![
        Mark {
            at_ns: 1_763_721_781_000_000_000,
            server: None,
            kind: "block".to_owned(),
            text: "block 1".to_owned(),
        },
        Mark {
            at_ns: 1_763_721_799_250_000_000,
            server: Some(ServerId(2)),
            kind: "checkpoint".to_owned(),
            text: "wrote 1182 buffers in 4.2 s".to_owned(),
        },
    ];
    full
}

/// One cell withdrawn.
pub fn withdrawn_cell() -> Full {
    let mut full = costed();
    full.context.invalidations = vec![Invalidation {
        cell: Some(CellId(4)),
        reason: "the disk was full, see <ticket> \"17\"".to_owned(),
        at_unix_ms: 1_763_800_000_000,
    }];
    full
}

/// All of it withdrawn.
pub fn withdrawn_run() -> Full {
    let mut full = withdrawn_cell();
    full.context.invalidations.push(Invalidation {
        cell: None,
        reason: "somebody else used the machine".to_owned(),
        at_unix_ms: 1_763_800_060_000,
    });
    full
}

fn add(cell: &mut CellComparison) {
    let throughput = &cell.metrics[0];
    assert_eq!(throughput.metric, Metric::Throughput);
    let (base, change) = (throughput.base, throughput.ratio.estimate - 1.0);
    let us = 1e6 * f64::from(cell.clients) / base;
    let writes = cell.group == Group::Write;
    cell.rates = (0..)
        .zip(&throughput.blocks)
        .map(|(block, log): (u32, &f64)| {
            let base = base * (1.0 + 0.004 * f64::from(block % 5));
            BlockRate {
                block,
                base,
                candidate: base * log.exp(),
                server_cpu_us: Some((11.5, 11.75)),
                switches: None,
            }
        })
        .collect();
    let percentiles = vec![50.0, 90.0, 99.0, 99.9];
    let curve = |by: f64| -> Vec<f64> {
        let at = [0.95, 1.4, 2.1, 6.0];
        at.iter().map(|at| at * us * by).collect()
    };
    cell.latency = Some(LatencyCurves {
        percentiles,
        base_us: curve(1.0),
        candidate_us: curve(1.0 - change),
    });
    let throughput = cell.metric(Metric::Throughput);
    cell.cost_rates = throughput.map(|found| (found.base, found.candidate));
    cell.costs = vec![
        cost(
            "machine_cpu_percent_per_op",
            45.0 * us / 1e6,
            -change,
            0.004,
        ),
        cost("context_switches_per_op", 1.02, 0.001, 0.003),
        nothing("reads_per_op"),
        nothing("read_kb_per_op"),
        if writes {
            cost("write_kb_per_op", 1.31, 0.02, 0.09)
        } else {
            sometimes("write_kb_per_op", 0.0008)
        },
        cost("user_cpu_us_per_op", 0.6 * us, -1.05 * change, 0.006),
        cost("blocks_hit_per_op", 4.0, 0.0, 0.000_01),
        cost("wait:IO:DataFileRead", 0.3, 0.1, 0.4),
    ];
}

fn cost(key: &str, base: f64, change: f64, half: f64) -> Cost {
    let ratio = ratio(change, half);
    let (low, high) = ratio.ci95.unwrap();
    Cost {
        key: key.to_owned(),
        base,
        candidate: base * (1.0 + change),
        difference: Difference {
            estimate: base * change,
            ci95: Some((base * (low - 1.0), base * (high - 1.0))),
        },
        ratio: Some(ratio),
        blocks: 16,
    }
}

/// Never on either side.
fn nothing(key: &str) -> Cost {
    Cost {
        key: key.to_owned(),
        base: 0.0,
        candidate: 0.0,
        difference: Difference {
            estimate: 0.0,
            ci95: Some((0.0, 0.0)),
        },
        ratio: None,
        blocks: 16,
    }
}

/// In some blocks only, so that there is no ratio.
fn sometimes(key: &str, base: f64) -> Cost {
    Cost {
        key: key.to_owned(),
        base,
        candidate: 1.4 * base,
        difference: Difference {
            estimate: 0.4 * base,
            ci95: Some((-0.7 * base, 1.5 * base)),
        },
        ratio: None,
        blocks: 16,
    }
}
