//! What the times of the mix say of each candidate.

use super::mix::members;
use super::plan::MIX;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::replayed::{MixTime, ReplayedMix, TimeRatio, TimeVerdict};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::{ReplaySetup, TimedStatement, report_place};

/// The mix of a replay; absent without one, and before anything of it was measured. `controls` are the copies
/// of the base that candidates are compared with.
pub fn mixed(
    setup: &ReplaySetup,
    comparison: &Comparison,
    (slices, controls): (&[Slice], Vec<ServerId>),
) -> Option<ReplayedMix> {
    let clients = setup.mix?;
    let cell = CellId::each().nth(setup.statements.len())?;
    let of = |cells: &[CellComparison], controls: &[ServerId]| -> Vec<MixTime> {
        let its = cells.iter().filter(|found| found.cell == cell);
        its.filter_map(|found| time(found, (slices, controls)))
            .collect()
    };
    let members = members(setup);
    let calls = |statement: &TimedStatement| to_f64(statement.calls);
    let all: f64 = setup.statements.iter().map(calls).sum();
    let its = members
        .iter()
        .filter_map(|place| setup.statements.get(*place));
    let its: f64 = its.map(calls).sum();
    let candidates = of(&comparison.cells, &controls);
    // The placebo is compared with the base alone.
    let base = controls.get(..1).unwrap_or_default();
    (!candidates.is_empty()).then(|| ReplayedMix {
        name: MIX.to_owned(),
        clients,
        statements: count(members.len()),
        of: count(setup.statements.len()),
        share_of_calls: if all > 0.0 { its / all } else { 0.0 },
        candidates,
        placebo: of(&comparison.placebo_cells, base).pop(),
    })
}

/// Share of the statements of the mix that failed on some servers.
fn failed(slices: &[Slice], cell: CellId, servers: &[ServerId]) -> f64 {
    let its = slices.iter();
    let its = its.filter(|slice| slice.cell == cell && servers.contains(&slice.server));
    let (failed, done) = its.fold((0, 0), |(failed, done), slice| {
        (failed + slice.failed, done + slice.operations)
    });
    match failed + done {
        0 => 0.0,
        all => to_f64(failed) / to_f64(all),
    }
}

fn time(found: &CellComparison, (slices, controls): (&[Slice], &[ServerId])) -> Option<MixTime> {
    let metric = |wanted: Metric| found.metrics.iter().find(|metric| metric.metric == wanted);
    let ratio = |wanted: Metric| {
        let ratio = &metric(wanted)?.ratio;
        Some(TimeRatio {
            estimate: ratio.estimate,
            low: ratio.ci95.map(|(low, _)| low),
            high: ratio.ci95.map(|(_, high)| high),
        })
    };
    let speed = metric(Metric::Throughput)?;
    Some(MixTime {
        server: report_place(found.candidate.index()),
        verdict: match found.verdict {
            Verdict::Regression => TimeVerdict::Slower,
            Verdict::Improvement => TimeVerdict::Faster,
            Verdict::NoChange => TimeVerdict::NoChange,
            Verdict::Inconclusive => TimeVerdict::Inconclusive,
            Verdict::Unfit => TimeVerdict::Unfit,
        },
        why: (found.verdict == Verdict::Unfit).then(|| found.reason.clone()),
        delta: found.delta,
        throughput: ratio(Metric::Throughput)?,
        base_per_second: speed.base,
        candidate_per_second: speed.candidate,
        cpu: ratio(Metric::ServerCpuPerOperation),
        p99: ratio(Metric::LatencyP99),
        base_failed: failed(slices, found.cell, controls),
        failed: failed(slices, found.cell, &[found.candidate]),
        blocks: found.blocks,
    })
}
