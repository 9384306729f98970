//! Stalls: throughput that a few operations cost, and that the typical operation does not show.

use crate::comparison::{CellComparison, Stalls, Verdict};
use crate::latency::Merged;
use crate::sample::BlockValue;
use crate::thresholds::{STALL_FROM, STALLS_FALSE, STALLS_RELEVANCE, log_delta};
use crate::words;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::units::to_f64;
use deltabench_stats::multiplicity::holm;
use deltabench_stats::skewed::SkewedMean;
use hdrhistogram::Histogram;

/// What the throughput of a pair lost to stalls; `None` where totals and the typical operation moved alike,
/// up to a share of δ, or where no operation was that long.
pub(crate) fn stalls(throughput: &[BlockValue], merged: &Merged, delta: f64) -> Option<Stalls> {
    let apart = throughput
        .iter()
        .map(|value| value.log_ratio - value.typical);
    let apart: Vec<f64> = apart.collect();
    let mean = SkewedMean::new(&apart, 0.0).ok()?;
    if mean.centre.abs() < STALLS_RELEVANCE * log_delta(delta) {
        return None;
    }
    let on_candidate = mean.centre < 0.0;
    let (base, candidate) = merged.of_controls()?;
    let (loser, other) = if on_candidate {
        (&candidate, &base)
    } else {
        (&base, &candidate)
    };
    let found = Slow::worst(loser, other)?;
    Some(Stalls {
        on_candidate,
        one_in: to_f64(loser.len()) / found.of_loser.operations,
        other_one_in: (found.of_other.operations > 0.0)
            .then(|| to_f64(other.len()) / found.of_other.operations),
        milliseconds: found.of_loser.time_ns / found.of_loser.operations / 1e6,
        share_of_time: found.of_loser.time_ns / total(loser),
        p: mean.p(),
        named: false,
    })
}

/// Whether throughput changed with stalls of the side that lost, beyond chance.
pub(crate) fn waits(speed: Verdict, stalls: Stalls) -> bool {
    let loser = match speed {
        Verdict::Regression => true,
        Verdict::Improvement => false,
        _ => return false,
    };
    stalls.p <= STALLS_FALSE && stalls.on_candidate == loser
}

/// Operations of both sides beyond a latency.
struct Slow {
    of_loser: Beyond,
    of_other: Beyond,
}

#[derive(Clone, Copy)]
struct Beyond {
    operations: f64,
    time_ns: f64,
}

impl Slow {
    /// Beyond the latency from which on the loser spends most more on each of its operations than the other.
    fn worst(loser: &Histogram<u64>, other: &Histogram<u64>) -> Option<Self> {
        let p99 = |side: &Histogram<u64>| to_f64(side.value_at_quantile(0.99));
        let mut limit = STALL_FROM * p99(loser).min(p99(other));
        let mut worst: Option<(f64, Self)> = None;
        while limit < to_f64(loser.max()) {
            let (of_loser, of_other) = (beyond(loser, limit), beyond(other, limit));
            let more =
                of_loser.time_ns / to_f64(loser.len()) - of_other.time_ns / to_f64(other.len());
            // Of limits that say the same the highest tells best what it was.
            if more > 0.0 && worst.as_ref().is_none_or(|(most, _)| more >= 0.95 * most) {
                let most = worst.map_or(more, |(most, _)| most.max(more));
                worst = Some((most, Self { of_loser, of_other }));
            }
            limit *= STALL_FROM;
        }
        worst.map(|(_, found)| found)
    }
}

fn beyond(side: &Histogram<u64>, limit: f64) -> Beyond {
    let slow = side
        .iter_recorded()
        .filter(|value| to_f64(value.value_iterated_to()) > limit);
    let start = Beyond {
        operations: 0.0,
        time_ns: 0.0,
    };
    slow.fold(start, |sum, value| Beyond {
        operations: sum.operations + to_f64(value.count_at_value()),
        time_ns: sum.time_ns + to_f64(value.count_at_value()) * to_f64(value.value_iterated_to()),
    })
}

fn total(side: &Histogram<u64>) -> f64 {
    beyond(side, -1.0).time_ns
}

/// Keeps the stalls that are beyond chance among all cells, and those that a cell's reason names.
pub(crate) fn settle(cells: &mut [CellComparison]) {
    let seen = cells
        .iter()
        .map(|cell| cell.stalls.map_or(1.0, |stalls| stalls.p));
    let p = holm(&seen.collect::<Vec<f64>>());
    for (cell, p) in std::iter::zip(cells, p) {
        let kept = |stalls: &Stalls| p <= STALLS_FALSE || stalls.named;
        let fit = cell.verdict != Verdict::Unfit;
        cell.stalls = cell.stalls.filter(|one| fit && kept(one));
    }
}

/// Says what the stalls of these cells are.
pub(crate) fn findings(plan: &Plan, cells: &[CellComparison]) -> Vec<Finding> {
    let said = |cell: &CellComparison| Some(finding(plan, cell, &cell.stalls?));
    cells.iter().filter_map(said).collect()
}

fn finding(plan: &Plan, cell: &CellComparison, stalls: &Stalls) -> Finding {
    let base = "the base".to_owned();
    let (loser, other) = if stalls.on_candidate {
        (&cell.candidate_name, &base)
    } else {
        (&base, &cell.candidate_name)
    };
    let beside = stalls.other_one_in.map_or_else(
        || format!("none on {other}"),
        |one_in| format!("1 in {} on {other}", words::rounded(one_in)),
    );
    let digits = usize::from(stalls.milliseconds < 10.0) + usize::from(stalls.milliseconds < 1.0);
    let text = format!(
        "{}: stalls on {loser}: 1 operation in {} takes {:.digits$} ms, {} of its time; {beside}; \
         totals count them, the typical operation does not show them",
        words::cell(plan, cell),
        words::rounded(stalls.one_in),
        stalls.milliseconds,
        words::percent(stalls.share_of_time),
    );
    Finding::new(FindingKind::Stalls, Severity::Note, text)
}
