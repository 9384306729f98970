//! The cells of the JSON report.

use super::explain::{explain, sampled};
use super::{costs, finite, interval, relative, with};
use crate::confirmation::ConfirmationStatus;
use crate::context::{CellWarmUp, ReportContext};
use crate::counts;
use crate::placed;
use crate::published::published;
use crate::withdrawn;
use deltabench_compare::comparison::{
    CellComparison, Confirmation, Dependence, Detection, DetectionOutcome, Estimates, HostSpeed,
    Hours, Interference, Metric, MetricComparison, Probed, Recurrence, Stalls, Verdict,
};
use deltabench_compare::{CountedCell, InstructionCounts};
use deltabench_model::json::{known, unless_empty};
use deltabench_model::metric::Better;
use deltabench_model::plan::{Placement, Plan, ServerId};
use serde_json::{Value, json};

/// What cells need besides themselves.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) plan: &'a Plan,
    pub(super) context: &'a ReportContext,
    pub(super) counts: Option<&'a InstructionCounts>,
}

impl Cells<'_> {
    pub(super) fn all(self, cells: &[CellComparison]) -> Value {
        cells.iter().map(|cell| self.cell(cell)).collect()
    }

    fn cell(self, cell: &CellComparison) -> Value {
        let planned = self.plan.cell(cell.cell);
        let value = json!({
            "cell": cell.cell,
            "workload": cell.workload,
            "group": cell.group.word(),
            "clients": cell.clients,
            "state": planned.map(|planned| planned.state.word()),
            "rate": planned.and_then(|planned| planned.rate).and_then(finite),
            "candidate": cell.candidate_name,
            "verdict": cell.verdict.word(),
            "alone": cell.alone.word(),
            "reason": cell.reason,
            "delta": finite(cell.delta),
            "p": cell.p.and_then(finite),
            "p_holm": cell.p_holm.and_then(finite),
            "p_bh": cell.p_bh.and_then(finite),
            "looks": cell.looks,
            "decided_at": cell.decided_at,
            "detection": cell.detection.as_ref().map(detection),
            "confirmation": cell.confirmation.map(Confirmation::word),
            "confirmed": ConfirmationStatus::of(cell).map(ConfirmationStatus::word),
            "interval_level": cell.interval_level,
            "drifting": cell.drifting,
            "warm_up": self.context.warm_up(cell.cell).map(|w| self.warm_up(w)),
            "interference": interference(&cell.interference),
            "stalls": cell.stalls.as_ref().map(stalls),
            "host_speed": cell.host_speed.as_ref().map(host_speed),
            "blocks_to_verdict": cell.blocks_to_verdict,
            "minutes_to_verdict": cell.minutes_to_verdict.and_then(finite),
            "blocks": cell.blocks,
            "rounds": cell.rounds,
            "void_rounds": cell.void_rounds,
            "base_errors": cell.base_errors,
            "candidate_errors": cell.candidate_errors,
            "metrics": self.metrics(cell),
            "published": published(cell, self.plan).map(|published| known(json!({
                "base": published.base,
                "candidate": published.candidate,
                "unit": published.unit,
                "per_operation": published.per_operation,
            }))),
            "costs": unless_empty(cell.costs.iter().map(costs::cost)),
            "moved": unless_empty(cell.moved.iter().map(costs::moved)),
            "explanation": cell.explanation,
            "explain": self.context.explained(cell.cell, cell.candidate).map(explain),
            "rates": unless_empty(cell.rates.iter().map(costs::block_rate)),
            "latency": cell.latency.as_ref().and_then(costs::latency),
            "withdrawn": withdrawn::of_cell(self.context, cell.cell),
        });
        let sampled = self.context.sampled(cell.cell, cell.candidate).map(sampled);
        let placement = placed::of_cell(cell, self.plan).map(Placement::word);
        let recurrence = cell.recurrence.as_ref().map(recurrence);
        let more = [
            ("sampled", sampled.unwrap_or_default()),
            ("placement", json!(placement)),
            ("recurrence", recurrence.unwrap_or_default()),
        ];
        // The macro takes no more fields than it has.
        known(with(value, more))
    }

    /// By key, those that were measured or counted.
    fn metrics(self, cell: &CellComparison) -> Value {
        let of = |wanted: Metric| {
            let value = cell.metrics.iter().rfind(|value| value.metric == wanted)?;
            Some((wanted.key().to_owned(), metric(value)))
        };
        let counts = self
            .counts
            .and_then(|counts| counts.of_cell(cell.cell, cell.candidate));
        let counted = counts.map(|found| (counts::KEY.to_owned(), counted(found)));
        let measured = Metric::ALL.into_iter().filter_map(of);
        Value::Object(measured.chain(counted).collect())
    }

    fn warm_up(self, warm_up: &CellWarmUp) -> Value {
        let curves = ServerId::each().zip(&warm_up.us_per_operation);
        let curves = curves.map(|(server, curve)| {
            let us = curve.iter().copied().filter_map(finite);
            json!({"server": self.plan.server_name(server), "us_per_op": us.collect::<Value>()})
        });
        json!({
            "visits": warm_up.visits,
            "steady": warm_up.steady,
            "curves": curves.collect::<Value>(),
        })
    }
}

fn detection(found: &Detection) -> Value {
    let (outcome, blocks_left, fresh_p) = match found.outcome {
        DetectionOutcome::Confirming { blocks_left } => ("confirming", Some(blocks_left), None),
        DetectionOutcome::Recurred { p } => ("recurred", None, finite(p)),
        DetectionOutcome::DidNotRecur { p } => ("did-not-recur", None, finite(p)),
    };
    known(json!({
        "look": found.look,
        "blocks": found.blocks,
        "throughput": relative(&found.throughput),
        "p": finite(found.p),
        "outcome": outcome,
        "blocks_left": blocks_left,
        "fresh_p": fresh_p,
    }))
}

fn recurrence(found: &Recurrence) -> Value {
    known(json!({
        "p": finite(found.p),
        "again": relative(&found.again),
        "together": relative(&found.together),
        "seconds_later": found.seconds_later.and_then(finite),
    }))
}

fn interference(seen: &Interference) -> Value {
    let estimates = |of: &Estimates| {
        known(json!({
            "throughput": relative(&of.throughput),
            "server_cpu_us_per_op": of.server_cpu.as_ref().and_then(relative),
        }))
    };
    known(json!({
        "disturbed_rounds": seen.disturbed_rounds,
        "left_out_rounds": seen.left_out,
        "contended": seen.contended,
        "with_voided": seen.with_voided.as_ref().map(estimates),
        "without_voided": seen.without_voided.as_ref().map(estimates),
    }))
}

fn stalls(found: &Stalls) -> Value {
    known(json!({
        "on_candidate": found.on_candidate,
        "one_in": finite(found.one_in),
        "other_one_in": found.other_one_in.and_then(finite),
        "milliseconds": finite(found.milliseconds),
        "share_of_time": finite(found.share_of_time),
        "p": finite(found.p),
    }))
}

fn host_speed(seen: &HostSpeed) -> Value {
    let dependence = |of: &Dependence| {
        Some(json!({
            "fast": costs::estimate(of.fast.estimate, of.fast.ci95)?,
            "slow": costs::estimate(of.slow.estimate, of.slow.ci95)?,
            "p": finite(of.p)?,
            "correlation": finite(of.correlation)?,
        }))
    };
    let blocks = seen.blocks.iter();
    let blocks = blocks.map(|(block, slowdown)| json!({"block": block, "slowdown": slowdown}));
    known(json!({
        "slowdown": seen.slowdown,
        "blocks": blocks.collect::<Value>(),
        "throughput": seen.throughput.as_ref().and_then(dependence),
        "server_cpu_us_per_op": seen.server_cpu.as_ref().and_then(dependence),
    }))
}

fn metric(value: &MetricComparison) -> Value {
    let ratios = value.blocks.iter().map(|log| log.exp()).filter_map(finite);
    known(json!({
        "unit": value.metric.unit(),
        "better": value.metric.better().word(),
        "base": finite(value.base),
        "candidate": finite(value.candidate),
        "ratio": finite(value.ratio.estimate),
        "ci95": interval(value.ratio.ci95),
        "ci90": interval(value.ratio.ci90),
        "typical": value.typical.as_ref().and_then(relative),
        "probes": value.probed.as_ref().map(probed),
        "difference_us": value.difference_us.and_then(|by| costs::estimate(by.estimate, by.ci95)),
        "verdict": value.verdict.map(Verdict::word),
        "block_ratios": ratios.collect::<Value>(),
        "sessions": value.hours.as_ref().and_then(sessions),
        "another_hour": value.hours.as_ref().map(another_hour),
    }))
}

fn probed(found: &Probed) -> Value {
    known(json!({
        "as_timed": relative(&found.timed),
        "scatter": found.scatter.and_then(finite),
        "beside": relative(&found.beside),
        "p": found.p.and_then(finite),
    }))
}

fn sessions(hours: &Hours) -> Option<Value> {
    unless_empty(hours.sessions.iter().filter_map(relative))
}

fn another_hour(hours: &Hours) -> Value {
    known(json!({
        "ci95": interval(hours.another.ci95),
        "ci90": interval(hours.another.ci90),
        "long_run": relative(&hours.long_run),
        "verdict": hours.verdict.word(),
        "p": finite(hours.p),
        "from": hours.from.word(),
        "number": hours.from.number(),
        "assumed": hours.assumed.then_some(true),
        "slow_hours": hours.by_slow_hours.then_some(true),
        "sd": finite(hours.sd),
    }))
}

/// In the form of a metric; its ratios are of starts.
fn counted(found: &CountedCell) -> Value {
    let ratios = found.by_start.iter().copied().filter_map(finite);
    known(json!({
        "unit": counts::UNIT,
        "better": Better::Lower.word(),
        "base": finite(found.base.per_op),
        "candidate": finite(found.counted.per_op),
        "ratio": finite(found.ratio),
        "verdict": found.verdict.word(),
        "block_ratios": ratios.collect::<Value>(),
    }))
}
