//! The cells of the JSON report.

use super::{costs, finite, interval, relative};
use crate::confirmation::ConfirmationStatus;
use crate::context::{CellWarmUp, ReportContext, planned_cell};
use crate::format::{
    BlockSpeed, Cell, Dependence, Detection, Estimates, HostSpeed, Interference, MetricValue,
    Metrics, Published, WarmUp, WarmUpCurve,
};
use crate::published::published;
use crate::withdrawn;
use deltabench_compare::comparison::{
    self, CellComparison, Confirmation, DetectionOutcome, Metric, MetricComparison, Verdict,
};
use deltabench_model::plan::Plan;

/// What cells need besides themselves.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) plan: &'a Plan,
    pub(super) context: &'a ReportContext,
}

impl Cells<'_> {
    pub(super) fn all(self, cells: &[CellComparison]) -> Vec<Cell> {
        cells.iter().map(|cell| self.cell(cell)).collect()
    }

    fn cell(self, cell: &CellComparison) -> Cell {
        let planned = planned_cell(self.plan, cell.cell);
        Cell {
            cell: cell.cell,
            workload: cell.workload.clone(),
            group: cell.group.word(),
            clients: cell.clients,
            state: planned.map(|planned| planned.state.word()),
            rate: planned.and_then(|planned| planned.rate).and_then(finite),
            candidate: cell.candidate_name.clone(),
            verdict: cell.verdict.word(),
            alone: cell.alone.word(),
            reason: cell.reason.clone(),
            delta: finite(cell.delta),
            p: cell.p.and_then(finite),
            p_holm: cell.p_holm.and_then(finite),
            p_bh: cell.p_bh.and_then(finite),
            looks: cell.looks,
            decided_at: cell.decided_at,
            detection: cell.detection.as_ref().map(detection),
            confirmation: cell.confirmation.map(Confirmation::word),
            confirmed: ConfirmationStatus::of(cell).map(ConfirmationStatus::word),
            interval_level: cell.interval_level,
            drifting: cell.drifting.clone(),
            warm_up: self.context.warm_up(cell.cell).map(|w| self.warm_up(w)),
            interference: interference(&cell.interference),
            host_speed: cell.host_speed.as_ref().map(host_speed),
            blocks_to_verdict: cell.blocks_to_verdict,
            minutes_to_verdict: cell.minutes_to_verdict.and_then(finite),
            blocks: cell.blocks,
            rounds: cell.rounds,
            void_rounds: cell.void_rounds,
            base_errors: cell.base_errors,
            candidate_errors: cell.candidate_errors,
            metrics: metrics(&cell.metrics),
            published: published(cell, self.plan).map(|published| Published {
                base: published.base,
                candidate: published.candidate,
                unit: published.unit,
                per_operation: published.per_operation,
            }),
            costs: cell.costs.iter().map(costs::cost).collect(),
            moved: cell.moved.iter().map(costs::moved).collect(),
            explanation: cell.explanation.clone(),
            rates: cell.rates.iter().map(costs::block_rate).collect(),
            latency: cell.latency.as_ref().and_then(costs::latency),
            withdrawn: withdrawn::of_cell(self.context, cell.cell),
        }
    }

    fn warm_up(self, warm_up: &CellWarmUp) -> WarmUp {
        let curves = (0..).zip(&warm_up.us_per_operation);
        WarmUp {
            visits: warm_up.visits,
            steady: warm_up.steady,
            curves: curves
                .map(|(server, curve)| WarmUpCurve {
                    server: self.plan.server_name(server),
                    us_per_op: curve.iter().copied().filter_map(finite).collect(),
                })
                .collect(),
        }
    }
}

fn detection(found: &comparison::Detection) -> Detection {
    let (outcome, blocks_left, fresh_p) = match found.outcome {
        DetectionOutcome::Confirming { blocks_left } => ("confirming", Some(blocks_left), None),
        DetectionOutcome::Recurred { p } => ("recurred", None, finite(p)),
        DetectionOutcome::DidNotRecur { p } => ("did-not-recur", None, finite(p)),
    };
    Detection {
        look: found.look,
        blocks: found.blocks,
        throughput: relative(&found.throughput),
        p: finite(found.p),
        outcome,
        blocks_left,
        fresh_p,
    }
}

fn interference(seen: &comparison::Interference) -> Interference {
    let estimates = |of: &comparison::Estimates| Estimates {
        throughput: relative(&of.throughput),
        server_cpu_us_per_op: of.server_cpu.as_ref().and_then(relative),
    };
    Interference {
        disturbed_rounds: seen.disturbed_rounds,
        contended: seen.contended,
        with_voided: seen.with_voided.as_ref().map(estimates),
        without_voided: seen.without_voided.as_ref().map(estimates),
    }
}

fn host_speed(seen: &comparison::HostSpeed) -> HostSpeed {
    let blocks = seen.blocks.iter();
    let dependence = |of: &comparison::Dependence| {
        Some(Dependence {
            fast: costs::estimate(of.fast.estimate, of.fast.ci95)?,
            slow: costs::estimate(of.slow.estimate, of.slow.ci95)?,
            p: finite(of.p)?,
        })
    };
    HostSpeed {
        slowdown: seen.slowdown,
        blocks: blocks
            .map(|&(block, slowdown)| BlockSpeed { block, slowdown })
            .collect(),
        throughput: seen.throughput.as_ref().and_then(dependence),
        server_cpu_us_per_op: seen.server_cpu.as_ref().and_then(dependence),
    }
}

fn metrics(measured: &[MetricComparison]) -> Metrics {
    let mut metrics = Metrics::default();
    for value in measured {
        let place = match value.metric {
            Metric::Throughput => &mut metrics.throughput,
            Metric::ServerCpuPerOperation => &mut metrics.server_cpu_us_per_op,
            Metric::LatencyP50 => &mut metrics.latency_us_p50,
            Metric::LatencyP99 => &mut metrics.latency_us_p99,
        };
        *place = Some(metric(value));
    }
    metrics
}

fn metric(value: &MetricComparison) -> MetricValue {
    MetricValue {
        unit: value.metric.unit(),
        better: costs::better(value.metric.better()),
        base: finite(value.base),
        candidate: finite(value.candidate),
        ratio: finite(value.ratio.estimate),
        ci95: interval(value.ratio.ci95),
        ci90: interval(value.ratio.ci90),
        verdict: value.verdict.map(Verdict::word),
        block_ratios: value
            .blocks
            .iter()
            .map(|log| log.exp())
            .filter_map(finite)
            .collect(),
    }
}
