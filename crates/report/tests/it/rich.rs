//! Runs with everything that a page can show, for its size and for browsers: made by rule, the same
//! everywhere.

use crate::fixture::{self, Noise, ratio};
use crate::full::{Full, full};
use deltabench_compare::comparison::{
    BlockRate, CellComparison, Cost, Difference, LatencyCurves, Metric, Moved, Verdict,
};
use deltabench_model::counter::{Mark, SERIES, Sample};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::metric::METRICS;
use deltabench_model::plan::{Cell, CellId, ServerId};
use deltabench_report::CellWarmUp;
use std::collections::BTreeMap;

const START_NS: u64 = 1_763_721_780_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The full run with counters, series, plans that differ, withdrawals, and a patch as second candidate.
pub fn rich() -> Full {
    let mut run = full();
    second_candidate(&mut run);
    let mut noise = Noise(4);
    for cell in run
        .comparison
        .cells
        .iter_mut()
        .chain(&mut run.comparison.placebo_cells)
    {
        observed(cell, &mut noise);
    }
    run.context.samples = samples(600, 4, &mut noise);
    run.context.marks = marks(600);
    run.context.invalidations = vec![Invalidation {
        cell: Some(CellId(2)),
        reason: "another job ran on the host".to_owned(),
        at_unix_ms: 1_763_800_000_000,
    }];
    run.comparison.findings.push(Finding::new(
        FindingKind::PlanDiffers,
        Severity::Confounder,
        "range-covered-si at 1 clients is planned differently: Index Only Scan using k_1 on sbtest1 in base, \
         Bitmap Heap Scan on sbtest1 -> Bitmap Index Scan on k_1 in postgres:18.6",
    ));
    run
}

fn second_candidate(run: &mut Full) {
    let mut third = run.plan.servers[2].clone();
    third.installation.resolved = "path:/opt/patched".to_owned();
    run.plan.servers.push(third);
    let mut noise = Noise(29);
    for mut cell in run.comparison.cells.clone() {
        (cell.candidate, cell.candidate_name) = (ServerId(3), "path:/opt/patched".to_owned());
        let better = cell.workload == "read-only-sum";
        let shift = if better { 0.08 } else { 0.004 * noise.next() };
        let verdict = if better {
            Verdict::Improvement
        } else {
            Verdict::NoChange
        };
        cell.reason = if better {
            "faster by 7 % to 9 %"
        } else {
            "no change beyond ±3 %"
        }
        .to_owned();
        (cell.verdict, cell.alone, cell.detection) = (verdict, verdict, None);
        cell.confirmation = None;
        for metric in &mut cell.metrics {
            let sign = if metric.metric == Metric::Throughput {
                1.0
            } else {
                -1.0
            };
            let moved = (sign * shift).ln_1p() - metric.ratio.estimate.ln();
            metric.blocks.iter_mut().for_each(|log| *log += moved);
            if metric.metric == Metric::Throughput {
                cell.series
                    .iter_mut()
                    .for_each(|round| round.throughput += moved);
            } else if metric.metric == Metric::ServerCpuPerOperation {
                let logs = cell
                    .series
                    .iter_mut()
                    .filter_map(|round| round.server_cpu.as_mut());
                logs.for_each(|log| *log += moved);
            }
            metric.ratio = ratio(sign * shift, 0.01);
            metric.candidate = metric.base * (1.0 + sign * shift);
            metric.verdict = metric.verdict.map(|_| verdict);
        }
        run.comparison.cells.push(cell);
    }
    run.comparison
        .cells
        .sort_by_key(|cell| (cell.cell, cell.candidate));
    run.comparison.counts.improvement = 1;
}

/// A hundred cells with an hour of series: 25 workloads at four numbers of clients.
pub fn large() -> Full {
    let mut run = Full {
        comparison: fixture::comparison(),
        plan: fixture::plan(),
        context: fixture::context(),
    };
    let mut noise = Noise(99);
    let (cells, nothing) = (
        run.comparison.cells.clone(),
        run.comparison.placebo_cells.clone(),
    );
    let planned = run.plan.cells.clone();
    (run.comparison.cells, run.comparison.placebo_cells) = (Vec::new(), Vec::new());
    run.plan.cells = Vec::<Cell>::new();
    let places =
        (0..25_usize).flat_map(|workload| [1_u32, 4, 16, 64].map(|clients| (workload, clients)));
    for (id, (workload, clients)) in CellId::each().zip(places) {
        let like = workload % 8;
        let name = format!("{}-{}", planned[like].workload, workload / 8 + 1);
        for (from, to) in [
            (&cells[like], &mut run.comparison.cells),
            (&nothing[like], &mut run.comparison.placebo_cells),
        ] {
            let mut cell = from.clone();
            (cell.cell, cell.workload, cell.clients) = (id, name.clone(), clients);
            for metric in &mut cell.metrics {
                let more = 0.004 * noise.next();
                metric.base *= f64::from(clients).sqrt();
                metric.candidate *= f64::from(clients).sqrt() * (1.0 + more);
                metric.ratio.estimate *= 1.0 + more;
            }
            observed(&mut cell, &mut noise);
            to.push(cell);
        }
        let mut cell = planned[like].clone();
        (cell.workload, cell.clients) = (name, clients);
        run.plan.cells.push(cell);
        run.context.warm_up.push(CellWarmUp {
            cell: id,
            visits: 16,
            steady: 15,
            us_per_operation: vec![vec![61.0, 52.0, 48.5, 47.1, 47.0]; 3],
        });
    }
    run.comparison.summaries.clear();
    run.comparison.counts.regression = 12;
    run.context.samples = samples(3600, 3, &mut noise);
    run.context.marks = marks(3600);
    run
}

/// Counters, curves and rates as a run would have observed them.
fn observed(cell: &mut CellComparison, noise: &mut Noise) {
    let Some(throughput) = cell.metrics.first().cloned() else {
        return;
    };
    let change = throughput.ratio.estimate - 1.0;
    cell.rates = (0..)
        .zip(&throughput.blocks)
        .map(|(block, log)| {
            let base = throughput.base * (1.0 + 0.02 * noise.next());
            BlockRate {
                block,
                base,
                candidate: base * log.exp(),
                server_cpu_us: None,
                switches: None,
            }
        })
        .collect();
    let percentiles: Vec<f64> = (0..40)
        .map(|step| 100.0 * (1.0 - 10_f64.powf(-f64::from(step) / 10.0)))
        .collect();
    let mean = 1e6 / throughput.base;
    let base_us: Vec<f64> = (0..40)
        .map(|step| mean * (0.7 + 0.04 * f64::from(step) + 0.003 * f64::from(step).powi(2)))
        .collect();
    let candidate_us = base_us.iter().map(|us| us * (1.0 - change)).collect();
    cell.latency = Some(LatencyCurves {
        percentiles,
        base_us,
        candidate_us,
    });
    let counted = METRICS.iter().skip(4).map(|info| info.key);
    let costs = counted.chain(["wait:IO:DataFileRead", "wait:LWLock:WALInsert"]);
    cell.costs = costs.map(|key| cost(key, change, noise)).collect();
    if matches!(cell.verdict, Verdict::Regression | Verdict::Improvement) {
        cell.moved = vec![Moved {
            key: "user_cpu_us_per_op".to_owned(),
            surprise: 7.4,
            p: 0.0003,
            text: "user CPU +5.6 % [+5.1, +6.2]".to_owned(),
        }];
        cell.explanation = Some(
            "user CPU +5.6 % [+5.1, +6.2], 7 times what the placebo moves; system CPU, switches and I/O did \
             not move"
                .to_owned(),
        );
    }
}

fn cost(key: &str, change: f64, noise: &mut Noise) -> Cost {
    let base = 10.0 + 8.0 * noise.next().abs();
    let nothing = key.contains("major_faults") || key.contains("temp");
    let shift = if key == "user_cpu_us_per_op" {
        -change
    } else {
        0.01 * noise.next()
    };
    let base = if nothing { 0.0 } else { base };
    Cost {
        key: key.to_owned(),
        base,
        candidate: base * (1.0 + shift),
        difference: Difference {
            estimate: base * shift,
            ci95: Some((base * (shift - 0.01), base * (shift + 0.01))),
        },
        ratio: (!nothing).then(|| ratio(shift, 0.01)),
        blocks: fixture::BLOCKS,
    }
}

fn samples(seconds: u32, servers: u32, noise: &mut Noise) -> Vec<Sample> {
    let mut wave = |second: u32, place: u32| {
        let slow = f64::from(second) / (60.0 + 7.0 * f64::from(place));
        (40.0 + 20.0 * slow.sin() + 9.0 * noise.next()).max(0.0)
    };
    let sample = |second: u32| {
        let mut values = BTreeMap::new();
        for (place, info) in (0..).zip(SERIES) {
            if info.key.starts_with("server_") {
                for server in 0..servers {
                    values.insert(
                        format!("{}@{server}", info.key),
                        wave(second, place + server),
                    );
                }
            } else {
                values.insert(info.key.to_owned(), wave(second, place));
            }
        }
        Sample {
            at_ns: START_NS + u64::from(second) * SECOND_NS,
            over_ns: SECOND_NS,
            values,
        }
    };
    (0..seconds).map(sample).collect()
}

fn marks(seconds: u64) -> Vec<Mark> {
    let mark = |second: u64, server, kind: &str, text: String| Mark {
        at_ns: START_NS + second * SECOND_NS,
        server,
        kind: kind.to_owned(),
        text,
    };
    let mut marks: Vec<Mark> = (0..16)
        .map(|block| {
            mark(
                seconds * block / 16,
                None,
                "block",
                format!("block {} starts", block + 1),
            )
        })
        .collect();
    marks.extend((1..6).map(|n| {
        mark(
            seconds * n / 6,
            Some(ServerId(2)),
            "checkpoint",
            "timed, 212 buffers".to_owned(),
        )
    }));
    marks.push(mark(
        seconds / 2 + 7,
        Some(ServerId(0)),
        "autovacuum",
        "sbtest1: 1200 dead rows".to_owned(),
    ));
    marks.sort_by_key(|mark| mark.at_ns);
    marks
}
