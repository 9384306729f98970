//! Where a ratio lies on an axis: shared by the bar of the terminal and the plots of the page.

use crate::words;
use deltabench_compare::comparison::{Comparison, Metric, Ratio};
use deltabench_model::units::{count, index, to_f64, to_u64};

/// Ends that an axis may have, as shares on either side of equal.
const LIMITS: [f64; 12] = [
    0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75, 1.0,
];

/// Beyond this, intervals are cut at the axis' ends: one wild cell must not flatten all others.
const LARGEST: f64 = 1.0;

/// Half the length of the axis, as a share: the smallest round one that holds all intervals and twice δ.
pub(crate) fn axis_limit(comparison: &Comparison) -> f64 {
    let judged = [Metric::Throughput, Metric::ServerCpuPerOperation];
    let farthest = comparison
        .cells
        .iter()
        .flat_map(|cell| {
            judged
                .iter()
                .filter_map(|metric| words::metric(cell, *metric))
        })
        .flat_map(|metric| {
            let (low, high) = words::ci95(&metric.ratio)
                .unwrap_or((metric.ratio.estimate, metric.ratio.estimate));
            [(low - 1.0).abs(), (high - 1.0).abs()]
        })
        .chain([2.0 * largest_delta(comparison)])
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    LIMITS
        .into_iter()
        .find(|limit| *limit >= farthest)
        .unwrap_or(LARGEST)
}

/// The largest δ that a cell is judged by.
fn largest_delta(comparison: &Comparison) -> f64 {
    let own = comparison.cells.iter().map(|cell| cell.delta);
    own.reduce(f64::max).unwrap_or(comparison.delta)
}

/// Half the height of the strips of rounds, as a share: holds 98 of 100 rounds.
pub(crate) fn round_limit(comparison: &Comparison) -> f64 {
    let rounds = comparison.cells.iter().flat_map(|cell| &cell.series);
    let mut sizes: Vec<f64> = rounds
        .flat_map(|round| [Some(round.throughput), round.server_cpu])
        .flatten()
        .map(|log| log.exp_m1().abs())
        .filter(|size| size.is_finite())
        .collect();
    sizes.sort_by(f64::total_cmp);
    let wanted = sizes
        .get(sizes.len() * 98 / 100)
        .copied()
        .unwrap_or(0.0)
        .max(2.0 * largest_delta(comparison));
    LIMITS
        .into_iter()
        .find(|limit| *limit >= wanted)
        .unwrap_or(LARGEST)
}

/// Position of a ratio on an axis from 1 - limit to 1 + limit, 0 to 1; cut at the ends.
pub(crate) fn position(ratio: f64, limit: f64) -> f64 {
    (0.5 + (ratio - 1.0) / (2.0 * limit)).clamp(0.0, 1.0)
}

/// The ticks of an axis, as ratios: equal, half-way, ends.
pub(crate) fn ticks(limit: f64) -> [f64; 5] {
    [
        1.0 - limit,
        1.0 - limit / 2.0,
        1.0,
        1.0 + limit / 2.0,
        1.0 + limit,
    ]
}

/// An interval drawn with characters: `├─●─┤`, with │ at equal and, where there is a δ, ┊ at ±δ; ‹ and ›
/// where it is cut.
pub(crate) fn text_bar(ratio: &Ratio, delta: Option<f64>, limit: f64, width: usize) -> String {
    let last = width.saturating_sub(1);
    let column = |value: f64| index(to_u64(position(value, limit) * to_f64(count(last))));
    let mut bar = vec![' '; width];
    let mut put = |at: usize, sign: char| {
        if let Some(place) = bar.get_mut(at) {
            *place = sign;
        }
    };
    if let Some(delta) = delta {
        put(column(1.0 / (1.0 + delta)), '┊');
        put(column(1.0 + delta), '┊');
    }
    put(column(1.0), '│');
    if let Some((low, high)) = words::ci95(ratio) {
        let (from, to) = (column(low), column(high));
        (from..=to).for_each(|at| put(at, '─'));
        put(from, if low < 1.0 - limit { '‹' } else { '├' });
        put(to, if high > 1.0 + limit { '›' } else { '┤' });
    }
    put(column(ratio.estimate), '●');
    bar.into_iter().collect()
}

/// An interval drawn with characters, for a list of cells that are still measured: `├─●─┤`, with │ at equal
/// and ┊ at ±δ; ‹ and › where it is cut.
///
/// Units: `delta` is a share; the axis goes from 1 - `limit` to 1 + `limit`.
pub fn interval_bar(ratio: &Ratio, delta: f64, limit: f64, width: usize) -> String {
    text_bar(ratio, Some(delta), limit, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_interval_equal_and_delta() {
        let ratio = Ratio {
            estimate: 0.96,
            ci95: Some((0.94, 0.98)),
            ci90: None,
        };
        assert_eq!(
            text_bar(&ratio, Some(0.03), 0.1, 21),
            "    ├─●─┤ │  ┊       "
        );
        let wild = Ratio {
            estimate: 2.0,
            ci95: Some((0.5, 3.0)),
            ci90: None,
        };
        assert_eq!(
            text_bar(&wild, Some(0.03), 0.1, 21),
            "‹───────────────────●"
        );
    }

    #[test]
    fn positions_never_leave_the_axis() {
        assert!(
            [0.0, 0.9, 1.0, 1.1, 99.0]
                .iter()
                .all(|r| (0.0..=1.0).contains(&position(*r, 0.1)))
        );
    }
}
