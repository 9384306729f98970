//! Whether a server is warm.

use crate::thresholds::{TREND_P, TREND_SHARE, log_delta};
use deltabench_stats::steady::steady;

/// Whether consecutive warm-up slices of one server have become steady.
///
/// A trend of less than a quarter of δ over the whole length is none; neither is a larger one that chance
/// makes one time in twenty, because on a noisy host nothing shorter than minutes would pass otherwise, and
/// what is left of a drift cancels between servers whose slices take turns.
///
/// Shape: time of an operation in each slice, any unit, in order; fewer than six are never steady.
/// Source: docs/sources/statistics.md#warm-up.
pub fn is_steady(time_per_operation: &[f64], delta: f64) -> bool {
    let logs: Vec<f64> = time_per_operation.iter().map(|time| time.ln()).collect();
    let tolerance = TREND_SHARE * log_delta(delta);
    steady(&logs, tolerance).is_ok_and(|found| {
        let settled = 2 * found.discard <= logs.len();
        found.steady || (settled && found.trend_p > TREND_P)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_curve_is_not_steady_and_a_flat_noisy_one_is() {
        let falling: Vec<f64> = (0..12).map(|n| 30.0 - f64::from(n)).collect();
        assert!(!is_steady(&falling, 0.03));
        let noisy: Vec<f64> = (0..12)
            .map(|n| 30.0 + f64::from((n * 7) % 5) - 2.0)
            .collect();
        assert!(is_steady(&noisy, 0.03));
        assert!(
            !is_steady(&[30.0; 5], 0.03),
            "five values are too few to know"
        );
    }
}
