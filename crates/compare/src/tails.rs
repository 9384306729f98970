//! The slow end of latency: p95, p99, p99.9 and the longest operation, judged with a δ of their own.
//!
//! Throughput and p99 may move apart: a server that is as fast and stalls now and then is worse for its
//! users. Quantiles of a closed loop also move with throughput, so they are no second proof of that.

use crate::comparison::{CellComparison, Metric, MetricComparison, Ratio, Verdict};
use crate::judge::judge;
use crate::levels::Levels;
use crate::sample::Values;
use crate::thresholds::{LISTED_FALSE, TAIL_DELTA};
use crate::words;
use deltabench_stats::multiplicity::benjamini_hochberg;

/// The quantiles that are judged.
pub const TAILS: [Metric; 4] = [
    Metric::LatencyP95,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::LatencyMax,
];

/// What a quantile of one cell says alone, at the levels of the cell.
pub(crate) fn verdict(metric: Metric, found: &MetricComparison, levels: Levels) -> Verdict {
    let values = Values::plain(found.blocks.clone());
    judge(metric, &values, TAIL_DELTA, levels, "block").verdict
}

/// Corrects the verdicts of all cells' quantiles for their number, and says in a cell's reason what changed:
/// once, also of a cell that was settled before.
pub(crate) fn settle(cells: &mut [CellComparison]) {
    let judged = |cell: &CellComparison| cell.metrics.iter().filter(is_judged).count();
    let family: usize = cells.iter().map(judged).sum();
    let mut p = Vec::with_capacity(family);
    for cell in cells.iter() {
        let metrics = cell.metrics.iter().filter(is_judged);
        p.extend(metrics.map(|metric| cell.p_of(metric.metric).unwrap_or(1.0)));
    }
    let mut listed = benjamini_hochberg(&p).into_iter();
    for cell in cells {
        let said = told(cell).unwrap_or_default();
        for metric in cell
            .metrics
            .iter_mut()
            .filter(|metric| is_judged(&&**metric))
        {
            let different = metric.verdict.is_some_and(Verdict::is_change);
            if listed.next().is_some_and(|p| p > LISTED_FALSE) && different {
                metric.verdict = Some(Verdict::Inconclusive);
            }
        }
        // Where throughput changed, latency had to; where not, nobody must have to find that in a column.
        if cell.verdict == Verdict::NoChange {
            let known = cell.reason.strip_suffix(said.as_str());
            let bare = known.and_then(|reason| reason.strip_suffix("; "));
            let bare = bare.unwrap_or(&cell.reason).to_owned();
            cell.reason = match told(cell) {
                Some(told) => format!("{bare}; {told}"),
                None => bare,
            };
        }
    }
}

/// Whether any quantile of latency got longer in a cell whose throughput did not change.
pub fn has_longer_tail(cell: &CellComparison) -> bool {
    let mut judged = cell.metrics.iter().filter(is_judged);
    cell.verdict == Verdict::NoChange
        && judged.any(|metric| metric.verdict == Some(Verdict::Regression))
}

fn is_judged(metric: &&MetricComparison) -> bool {
    TAILS.contains(&metric.metric) && metric.verdict.is_some()
}

/// The quantiles that changed: `p99 latency higher by 30 % to 61 %`; `None` for none.
fn told(cell: &CellComparison) -> Option<String> {
    let changed = cell.metrics.iter().filter(is_judged);
    let changed = changed.filter(|metric| metric.verdict.is_some_and(Verdict::is_change));
    let texts = changed.filter_map(|metric| Some((metric.metric, ends(&metric.ratio)?)));
    let texts = texts.map(|(metric, ends)| format!("{} {ends}", metric.info().words));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// By how much a ratio is off, from the near end of its interval to the far one: `higher by 30 % to 61 %`.
pub(crate) fn ends(ratio: &Ratio) -> Option<String> {
    let (low, high) = ratio.ci95?;
    let (word, near, far) = if ratio.estimate > 1.0 {
        ("higher", low, high)
    } else {
        ("lower", high, low)
    };
    Some(format!(
        "{word} by {} to {}",
        words::percent(words::distance(near)),
        words::percent(words::distance(far)),
    ))
}
