//! Slices in, comparison out.

use crate::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, RoundRatio, Verdict, VerdictCounts,
};
use crate::judge::{Judgement, judge};
use crate::latency::Latencies;
use crate::pairing::{Index, Pairing};
use crate::placebo::Joint;
use crate::sample::{BlockValue, compare_metric, log_ratios, server_cpu, throughput};
use crate::thresholds::{MIN_BLOCKS, PLACEBO_P, PLACEBO_RELEVANCE, log_delta};
use crate::words;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::count;
use deltabench_stats::student::t_test_p;
use deltabench_stats::summary::mean;

/// Compares every candidate, and the placebo, with the base in every cell of the plan.
///
/// It can be called on the slices of a run that is not finished: every answer is about what is there. A
/// cell without data is inconclusive, never left out.
///
/// Shape:  slices in any order; slices of cells or servers that the plan does not have are ignored. The
///         result is ordered by cell, then by candidate. The same slices give the same result to the bit.
/// Units:  as in [`CellComparison`]. `ratio` is the trimmed paired estimate and is the one to quote; `base`
///         and `candidate` are plain totals of the same rounds, so their quotient is near `ratio` but not
///         equal to it.
/// Source: measurement.md 3.0, 3.2, 3.7, 3.8; the formulas are in docs/measuring.md.
#[must_use]
pub fn analyse(plan: &Plan, slices: &[Slice], findings: Vec<Finding>) -> Comparison {
    let host_ok = findings
        .iter()
        .all(|finding| finding.severity != Severity::Unfit);
    let index = Index::new(slices);
    let mut placebo_cells = Vec::new();
    let mut cells = Vec::new();
    let mut joint = Joint::default();
    for (id, cell) in (0..).zip(&plan.cells) {
        let side = |server| Side::new(plan, &index, id, cell, server);
        let placebo = plan.placebo().map(side);
        let suspicion = placebo
            .as_ref()
            .and_then(|placebo| suspect(&placebo.throughput, plan.delta));
        for candidate in plan.candidates() {
            cells.push(trust(
                side(candidate).comparison,
                suspicion.as_deref(),
                host_ok,
            ));
        }
        if let Some(placebo) = placebo {
            joint.add(&placebo.throughput, &placebo.server_cpu);
            placebo_cells.push(placebo.comparison);
        }
    }
    Comparison {
        delta: plan.delta,
        counts: counts(&cells),
        placebo: joint.summary(&placebo_cells),
        cells,
        placebo_cells,
        host_ok,
        findings,
    }
}

/// One server against the base in one cell, before the placebo has been asked.
struct Side {
    comparison: CellComparison,
    throughput: Vec<BlockValue>,
    server_cpu: Vec<BlockValue>,
}

impl Side {
    fn new(plan: &Plan, index: &Index<'_>, id: CellId, cell: &Cell, server: ServerId) -> Self {
        let pairing = index.pair(id, plan.base(), server);
        let throughput = throughput(&pairing);
        let server_cpu = server_cpu(&pairing);
        let speed = judge(Metric::Throughput, &log_ratios(&throughput), plan.delta);
        let cost = (!server_cpu.is_empty()).then(|| {
            judge(
                Metric::ServerCpuPerOperation,
                &log_ratios(&server_cpu),
                plan.delta,
            )
        });
        let (verdict, reason) = cell_verdict(cell, pairing.blocks.len(), &speed, cost.as_ref());
        let latency = Latencies::new(&pairing);
        let metrics = [
            judged(Metric::Throughput, &throughput, Some(&speed)),
            judged(Metric::ServerCpuPerOperation, &server_cpu, cost.as_ref()),
            judged(Metric::LatencyP50, &latency.p50, None),
            judged(Metric::LatencyP99, &latency.p99, None),
        ];
        let comparison = CellComparison {
            cell: id,
            workload: cell.workload.clone(),
            group: cell.group,
            clients: cell.clients,
            candidate: server,
            candidate_name: plan.server_name(server),
            verdict,
            reason,
            blocks: u32::try_from(count(pairing.blocks.len())).unwrap_or(u32::MAX),
            rounds: pairing.rounds(),
            void_rounds: pairing.void_rounds,
            metrics: metrics.into_iter().flatten().collect(),
            series: series(&pairing),
            base_errors: pairing.base_errors,
            candidate_errors: pairing.candidate_errors,
        };
        Self {
            comparison,
            throughput,
            server_cpu,
        }
    }
}

fn judged(
    metric: Metric,
    values: &[BlockValue],
    judgement: Option<&Judgement>,
) -> Option<MetricComparison> {
    let comparison = compare_metric(metric, values)?;
    Some(MetricComparison {
        verdict: judgement.map(|judgement| judgement.verdict),
        ..comparison
    })
}

fn series(pairing: &Pairing<'_>) -> Vec<RoundRatio> {
    let rounds = pairing
        .blocks
        .iter()
        .flat_map(|block| block.rounds.iter().map(move |round| (block.block, round)));
    rounds
        .map(|(block, round)| RoundRatio {
            block,
            round: round.round,
            throughput: round.throughput(),
            server_cpu: round.server_cpu(),
        })
        .collect()
}

/// The verdict of throughput, unless CPU per operation says otherwise.
fn cell_verdict(
    cell: &Cell,
    blocks: usize,
    speed: &Judgement,
    cost: Option<&Judgement>,
) -> (Verdict, String) {
    if blocks == 0 {
        return (Verdict::Inconclusive, "nothing measured".to_owned());
    }
    let Some(cost) = cost else {
        return (speed.verdict, speed.reason.clone());
    };
    let both = format!("{}; CPU per operation: {}", speed.reason, cost.reason);
    match speed.verdict {
        Verdict::Regression | Verdict::Improvement
            if cpu_bound(cell) && contradicts(speed, cost) =>
        {
            (
                Verdict::Inconclusive,
                format!("contradicted by CPU: throughput {both}"),
            )
        }
        Verdict::Inconclusive if cost.verdict != Verdict::Inconclusive => {
            (Verdict::Inconclusive, both)
        }
        _ => (speed.verdict, speed.reason.clone()),
    }
}

/// Whether throughput and CPU per operation must tell the same story.
///
/// One client has at most one process at work, and a read that finds its pages in memory does not wait.
/// Commits wait for the disk, and several clients wait for each other, so there throughput may move without
/// CPU.
fn cpu_bound(cell: &Cell) -> bool {
    cell.clients == 1 && !cell.writes
}

/// Whether CPU per operation denies what throughput claims: the opposite direction, or no change beyond ±δ.
///
/// "No change" is no denial when it is measurably in the same direction and both intervals overlap: −3.2 %
/// [−3.4, −3.0] and +2.8 % [+2.6, +3.1] are one finding on both sides of a threshold.
fn contradicts(speed: &Judgement, cost: &Judgement) -> bool {
    let opposite = match speed.verdict {
        Verdict::Regression => Verdict::Improvement,
        _ => Verdict::Regression,
    };
    if cost.verdict != Verdict::NoChange {
        return cost.verdict == opposite;
    }
    let (Some(speed), Some(cost)) = (speed.gain95, cost.gain95) else {
        return true;
    };
    let same_direction = !cost.contains(0.0) && (cost.low > 0.0) == (speed.low > 0.0);
    let overlap = cost.low <= speed.high && speed.low <= cost.high;
    !(same_direction && overlap)
}

/// Why a cell's placebo forbids a verdict; `None` if it does not.
///
/// A wide placebo is no reason: its noise is in the candidate's own interval too, which then is
/// inconclusive by itself, or is far from zero in spite of it.
fn suspect(placebo: &[BlockValue], delta: f64) -> Option<String> {
    let logs = log_ratios(placebo);
    let (p, centre) = (t_test_p(&logs).ok()?, mean(&logs)?);
    let unfit = logs.len() >= MIN_BLOCKS
        && p < PLACEBO_P
        && centre.abs() > PLACEBO_RELEVANCE * log_delta(delta);
    unfit.then(|| {
        let p = if p < 0.0001 {
            "p < 0.0001".to_owned()
        } else {
            format!("p = {p:.4}")
        };
        format!("placebo is off by {} ({p})", words::signed(centre.exp_m1()))
    })
}

/// Withholds the verdict where the placebo or the host forbids it. What is inconclusive stays so.
fn trust(mut cell: CellComparison, suspicion: Option<&str>, host_ok: bool) -> CellComparison {
    let why = if host_ok {
        suspicion
    } else {
        Some("host unfit")
    };
    if let Some(why) = why.filter(|_| cell.verdict != Verdict::Inconclusive) {
        cell.verdict = Verdict::Unfit;
        cell.reason = format!("{why}; not trusted: {}", cell.reason);
    }
    cell
}

fn counts(cells: &[CellComparison]) -> VerdictCounts {
    let mut counts = VerdictCounts::default();
    for cell in cells {
        match cell.verdict {
            Verdict::Regression => counts.regression += 1,
            Verdict::Improvement => counts.improvement += 1,
            Verdict::NoChange => counts.no_change += 1,
            Verdict::Inconclusive => counts.inconclusive += 1,
            Verdict::Unfit => counts.unfit += 1,
        }
    }
    counts
}
