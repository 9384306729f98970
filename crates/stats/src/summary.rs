//! One number for many: means, spread, order statistics.

use crate::number::{floor, real};

/// Arithmetic mean; `None` for no values.
///
/// Units: those of the values.
/// Source: the sum is compensated (Neumaier 1974), so that the result hardly depends on the order.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values) / real(values.len()))
}

/// Sum with the rounding error of each addition carried along.
fn sum(values: &[f64]) -> f64 {
    let mut total = 0.0_f64;
    let mut lost = 0.0_f64;
    for &value in values {
        let next = total + value;
        lost += if total.abs() >= value.abs() {
            (total - next) + value
        } else {
            (value - next) + total
        };
        total = next;
    }
    total + lost
}

/// Sample standard deviation with n − 1 in the denominator; `None` for fewer than two values.
///
/// Units: those of the values.
/// Source: two passes, the second over deviations from the mean, against cancellation.
pub fn sample_sd(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: Vec<f64> = values
        .iter()
        .map(|value| (value - centre).powi(2))
        .collect();
    Some((sum(&squares) / real(values.len() - 1)).sqrt())
}

/// Median: the middle value, or the mean of the middle two; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The `q` quantile, linear between order statistics; `None` for no values.
///
/// Shape:  any order; 0 ≤ q ≤ 1 (anything else stops with a message); q = 0 is the minimum, q = 1 the
///         maximum.
/// Units:  those of the values.
/// Source: Hyndman & Fan 1996, type 7 (the default of R and NumPy): position (n − 1)·q from 0.
///
/// # Panics
/// If `q` is not a share.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    assert!(
        (0.0..=1.0).contains(&q),
        "a quantile is between 0 and 1, not {q}"
    );
    let sorted = sorted(values);
    let position = real(sorted.len().checked_sub(1)?) * q;
    let below = floor(position);
    let low = *sorted.get(below)?;
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    Some(low + (high - low) * (position - position.floor()))
}

/// Mean of what is left after ⌊share·n⌋ values have been cut from *each* end; `None` for no values.
///
/// Shape:  any order; 0 ≤ share < 0.5 (anything else stops with a message). A "20 % trimmed mean" has share
///         0.2: it leaves out up to 40 % of the values. With n·share < 1 nothing is cut: 20 % of 4 values
///         is the plain mean.
/// Units:  those of the values.
/// Source: Tukey; as `scipy.stats.trim_mean(values, share)` and R's `mean(values, trim = share)`. Whole
///         values are cut, no fractions.
///
/// # Panics
/// If `share` is outside 0..0.5.
pub fn trimmed_mean(values: &[f64], share: f64) -> Option<f64> {
    assert!(
        (0.0..0.5).contains(&share),
        "a share cut from each end is at least 0 and below 0.5, not {share}"
    );
    let sorted = sorted(values);
    let cut = floor(real(sorted.len()) * share);
    mean(sorted.get(cut..sorted.len() - cut)?)
}

/// Geometric mean of positive values; `None` for no values or one that is not above zero.
///
/// Units: those of the values.
/// Source: exp of the mean of the logarithms.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Option<Vec<f64>> = values
        .iter()
        .map(|&value| (value > 0.0).then(|| value.ln()))
        .collect();
    mean(&logs?).map(f64::exp)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-12)
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(trimmed_mean(&[], 0.2), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(sample_sd(&[1.0]), None);
    }

    #[test]
    fn trimming_cuts_whole_values_from_each_end() {
        let values = [100.0, 1.0, 2.0, 3.0, -100.0];
        assert!(near(trimmed_mean(&values, 0.2), 2.0));
        assert!(
            near(trimmed_mean(&values, 0.4), 2.0),
            "two from each end leave the median"
        );
        assert!(
            near(trimmed_mean(&values[..4], 0.2), 26.5),
            "a fifth of four is no whole value"
        );
    }

    #[test]
    fn the_mean_of_large_and_small_numbers_keeps_the_small_ones() {
        assert!(near(mean(&[1e16, 1.0, 1.0, -1e16]), 0.5));
    }

    #[test]
    fn a_geometric_mean_needs_positive_values() {
        assert!(near(geometric_mean(&[1.0, 4.0]), 2.0));
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    #[test]
    #[should_panic(expected = "below 0.5")]
    fn half_from_each_end_leaves_nothing_and_is_refused() {
        let _ = trimmed_mean(&[1.0, 2.0], 0.5);
    }
}
