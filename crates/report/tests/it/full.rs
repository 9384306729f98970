//! The same run, planned with looks and a gate on a host with other load: every fact that a report can show.

use crate::fixture::{self, ratio};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Confirmation, Dependence, Detection, DetectionOutcome, Estimates,
    HostSpeed, Interference, Ratio, Recurrence, Verdict, VerdictCounts,
};
use deltabench_compare::ledger::{Entry, coverage};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CellId, DataState, Gate, Plan, PublishedRate, Stopping, Transport};
use deltabench_report::{CellWarmUp, LedgerLine, ReportContext};

pub struct Full {
    pub comparison: Comparison,
    pub plan: Plan,
    pub context: ReportContext,
}

pub fn full() -> Full {
    Full {
        comparison: comparison(),
        plan: plan(),
        context: context(),
    }
}

fn looks() -> Stopping {
    Stopping::Sequential {
        looks: vec![6, 9, 13, 16],
    }
}

fn gate() -> Gate {
    Gate {
        on: true,
        not_worse_than: None,
        inconclusive_passes: false,
        metrics: Vec::new(),
        another_hour: false,
    }
}

fn comparison() -> Comparison {
    let mut comparison = fixture::comparison();
    comparison.stopping = looks();
    comparison.gate = gate();
    for (place, cell) in comparison.cells.iter_mut().enumerate() {
        let p = 0.004 + 0.11 * f64::from(u32::try_from(place).unwrap());
        (cell.p, cell.p_holm, cell.p_bh) =
            (Some(p), Some((8.0 * p).min(1.0)), Some((1.7 * p).min(1.0)));
        (cell.looks, cell.decided_at) = (2, Some(2));
        change(cell);
    }
    for cell in &mut comparison.placebo_cells {
        (cell.looks, cell.decided_at) = (4, Some(4));
    }
    comparison.findings.push(Finding::new(
        FindingKind::Contended,
        Severity::Note,
        "contended: other load disturbed more than half of the rounds of update-nonindex at 1 client; none \
         was left out",
    ));
    comparison.counts = VerdictCounts {
        regression: 1,
        improvement: 0,
        no_change: 4,
        inconclusive: 3,
        unfit: 0,
    };
    comparison
}

fn change(cell: &mut CellComparison) {
    match (cell.workload.as_str(), cell.clients) {
        ("point-query", 1) => {
            cell.delta = 0.02;
            cell.reason = "no change beyond ±2 %".to_owned();
        }
        ("point-query", _) => {
            cell.drifting =
                Some("not steady after the longest warm-up in 9 of 16 visits".to_owned());
        }
        ("range-notcovered-pk", _) => found(
            cell,
            1,
            6,
            DetectionOutcome::DidNotRecur { p: 0.31 },
            Verdict::Inconclusive,
            "found slower at look 1, did not recur: fresh blocks no change beyond ±3 %",
        ),
        ("range-covered-si", _) => {
            found(
                cell,
                2,
                9,
                DetectionOutcome::Recurred { p: 0.0004 },
                Verdict::Regression,
                "slower by 4.6 % to 6.4 %, beyond ±3 % (look 2, recurred)",
            );
            cell.confirmation = Some(Confirmation::Recurred);
            let ratio = |estimate, ci95| Ratio {
                estimate,
                ci95: Some(ci95),
                ci90: None,
            };
            cell.recurrence = Some(Recurrence {
                outcome: Confirmation::Recurred,
                p: 2e-6,
                again: ratio(0.949, (0.938, 0.961)),
                together: ratio(0.947, (0.939, 0.955)),
                seconds_later: Some(7200.0),
            });
            (cell.p, cell.p_holm, cell.p_bh) = (Some(2e-5), Some(1.6e-4), Some(1.6e-4));
        }
        ("read-only-sum", _) => {
            found(
                cell,
                3,
                13,
                DetectionOutcome::Confirming { blocks_left: 3 },
                Verdict::Inconclusive,
                "throughput -0.1 % to +2.3 % shows neither a change nor equality within ±3 %; found faster \
                 at look 3, 3 more blocks to confirm it",
            );
            cell.decided_at = None;
            (cell.blocks_to_verdict, cell.minutes_to_verdict) = (Some(3), Some(1.4));
        }
        ("update-nonindex", _) => {
            cell.interference = Interference {
                disturbed_rounds: 260,
                left_out: 0,
                contended: true,
                with_voided: None,
                without_voided: None,
            };
            let side = |estimate: f64| Ratio {
                estimate,
                ci95: Some((estimate - 0.01, estimate + 0.01)),
                ci90: None,
            };
            cell.host_speed = Some(HostSpeed {
                slowdown: 1.4,
                blocks: vec![(0, 1.0), (1, 1.4)],
                throughput: Some(Dependence {
                    fast: side(0.99),
                    slow: side(0.97),
                    p: 0.001,
                    correlation: 0.2,
                }),
                server_cpu: None,
                throughput_moves: 0.01,
                server_cpu_moves: 0.0,
            });
        }
        ("update-index", _) => disturbed(cell),
        _ => {}
    }
}

/// The figures are those of the six blocks after the look, if these were measured.
fn found(
    cell: &mut CellComparison,
    look: u32,
    blocks: u32,
    outcome: DetectionOutcome,
    verdict: Verdict,
    reason: &str,
) {
    (cell.verdict, cell.alone, cell.reason) = (verdict, verdict, reason.to_owned());
    (cell.looks, cell.decided_at) = (look, Some(look));
    cell.detection = Some(Detection {
        look,
        blocks,
        throughput: ratio(-0.062, 0.012),
        p: 0.0009,
        outcome,
    });
    if !matches!(outcome, DetectionOutcome::Confirming { .. }) {
        let blocks = usize::try_from(blocks).unwrap();
        for metric in &mut cell.metrics {
            metric.blocks = metric.blocks[blocks..blocks + 6].to_vec();
        }
    }
}

/// An open cell with a burst of other load in its last blocks.
fn disturbed(cell: &mut CellComparison) {
    let before = cell.series.len();
    cell.series
        .retain(|round| round.block < 12 || !(6..17).contains(&round.round));
    let disturbed = u64::try_from(before - cell.series.len()).unwrap();
    cell.rounds -= disturbed;
    (
        cell.decided_at,
        cell.blocks_to_verdict,
        cell.minutes_to_verdict,
    ) = (None, Some(12), Some(6.3));
    let estimates = |change: f64, cpu: f64| {
        Some(Estimates {
            throughput: ratio(change, 0.045),
            server_cpu: Some(ratio(cpu, 0.0225)),
        })
    };
    cell.interference = Interference {
        disturbed_rounds: disturbed,
        left_out: disturbed,
        contended: false,
        with_voided: estimates(-0.031, 0.007),
        without_voided: estimates(-0.014, 0.006),
    };
}

fn plan() -> Plan {
    let mut plan = fixture::plan();
    plan.stopping = looks();
    plan.gate = gate();
    plan.delta_from_noise = true;
    plan.transport = Transport::Tls;
    for cell in &mut plan.cells {
        match cell.workload.as_str() {
            "update-index" => cell.state = DataState::Aged,
            "hot-points" => cell.rate = Some(500.0),
            "read-only-sum" => {
                cell.published = PublishedRate {
                    per_operation: 16.0,
                    unit: "queries/s".to_owned(),
                };
            }
            _ => {}
        }
    }
    plan
}

fn context() -> ReportContext {
    let mut context = fixture::context();
    let placebos: Vec<Entry> = (0..100)
        .map(|at| Entry {
            run: format!("r{}", at % 20),
            workload: "scan".to_owned(),
            verdict: Verdict::NoChange,
            throughput_p: Some(if at < 81 { 0.5 } else { 0.01 }),
            server_cpu_p: Some(f64::from(at) / 100.0),
        })
        .collect();
    context.ledger = Some(LedgerLine {
        flagged: 2,
        total: 312,
        upper_bound: 0.0199,
        coverage: coverage(&placebos),
    });
    let curve = |start: f64, end: f64| -> Vec<f64> {
        (0..14)
            .map(|round| end + (start - end) * (-0.6 * f64::from(round)).exp())
            .collect()
    };
    let warm_up = |cell: u32, steady| CellWarmUp {
        cell: CellId(cell),
        visits: 16,
        steady,
        us_per_operation: vec![curve(61.0, 44.2), curve(58.0, 44.4), curve(70.0, 44.9)],
    };
    context.warm_up = (0..8)
        .map(|cell| warm_up(cell, if cell == 1 { 7 } else { 16 }))
        .collect();
    context
}
