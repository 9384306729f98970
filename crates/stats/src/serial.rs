//! Two kinds of values in one series, of which neighbours may be alike.
//!
//! Welch's test takes values as independent. Where those that are near in time are alike, and the kinds come
//! in runs, their means differ more than it expects: with a correlation of 0.5 it finds a difference in 12 of
//! 100 series that have none.

use crate::TooFew;
use crate::number::real;
use crate::student::{mean_and_error, two_sided, welch};

/// The largest correlation that is reckoned with.
const MOST: f64 = 0.9;

/// Whether two kinds of values differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfSeries {
    /// Two-sided p of "both kinds have the same mean".
    pub p: f64,
    /// Correlation of neighbours, less the means of their kinds; 0 where it is negative.
    pub correlation: f64,
}

/// Welch's test for values in the order of time, each with whether it is of the second kind.
///
/// The correlation r of neighbours is that of values around the mean of their kind, less its bias. It makes
/// the variance of the difference w·x larger by Σ w(i) w(j) r^|i−j| / Σ w². Where that is above 1 it counts,
/// and (1 − r) / (1 + r) of the degrees of freedom are left; where kinds take turns it is below, and the test
/// stays Welch's. Twelve values show a correlation only roughly: with one of 0.5 a difference is found at 5 %
/// in 7 % of series whose kinds come in runs (Welch 12 %), and in 11 % where they are the halves (21 %;
/// simulated).
///
/// Errors: [`TooFew`] if a kind has fewer than two values.
/// Source: a series in which each value remembers r of the one before. Bias of the estimate, −(1 + 3r)/n for
///         each mean taken off: Kendall 1954, Biometrika 41, 403. Degrees of freedom: Bayley & Hammersley
///         1946, J. R. Statist. Soc. Suppl. 8, 184.
pub fn welch_of_series(values: &[(bool, f64)]) -> Result<OfSeries, TooFew> {
    let of = |kind: bool| -> Vec<f64> {
        let values = values.iter().filter(|value| value.0 == kind);
        values.map(|value| value.1).collect()
    };
    let (first, second) = (of(false), of(true));
    let found = welch(&first, &second, 0.95)?;
    let ((mean1, error1), (mean2, error2)) = (mean_and_error(&first)?, mean_and_error(&second)?);
    let off = { values.iter() }.map(|value| value.1 - if value.0 { mean2 } else { mean1 });
    let correlation = correlation(&off.collect::<Vec<_>>());
    let (n1, n2) = (real(first.len()), real(second.len()));
    let weights: Vec<f64> = { values.iter() }
        .map(|value| if value.0 { 1.0 / n2 } else { -1.0 / n1 })
        .collect();
    let factor = inflation(&weights, correlation);
    let p = if factor > 1.0 {
        let error = error1.hypot(error2) * factor.sqrt();
        let df = (found.df * (1.0 - correlation) / (1.0 + correlation)).max(1.0);
        two_sided(found.difference, error, df)
    } else {
        found.p
    };
    Ok(OfSeries { p, correlation })
}

/// Of neighbours among values around the means of two kinds, without bias; 0 where it is negative.
fn correlation(off: &[f64]) -> f64 {
    let pairs = off.iter().zip(off.iter().skip(1));
    let along: f64 = pairs.map(|(one, next)| one * next).sum();
    let all: f64 = off.iter().map(|value| value * value).sum();
    if all <= 0.0 {
        return 0.0;
    }
    let seen = along / all;
    (seen + 2.0 * (1.0 + 3.0 * seen) / real(off.len())).clamp(0.0, MOST)
}

/// Variance of a weighted sum of such a series over that of one of independent values.
fn inflation(weights: &[f64], correlation: f64) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    // What the values before the current one add: each step back takes the correlation once more.
    let mut before = 0.0;
    for weight in weights {
        before *= correlation;
        sum += weight * (weight + 2.0 * before);
        squares += weight * weight;
        before += weight;
    }
    sum / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve values: those of the second kind in the second half, or every other one.
    fn series(values: [f64; 12], in_turns: bool) -> Vec<(bool, f64)> {
        let kind = |at: usize| if in_turns { at % 2 == 1 } else { at >= 6 };
        values
            .into_iter()
            .enumerate()
            .map(|(at, value)| (kind(at), value))
            .collect()
    }

    const DRIFTING: [f64; 12] = [0.0, 0.2, 0.1, 0.3, 0.5, 0.4, 0.6, 0.9, 0.8, 0.6, 0.5, 0.7];

    fn alternate(from: usize) -> Vec<f64> {
        DRIFTING.into_iter().skip(from).step_by(2).collect()
    }

    #[test]
    fn neighbours_that_are_alike_make_halves_less_different_and_turns_no_more() {
        let halves = series(DRIFTING, false);
        let found = welch_of_series(&halves).unwrap();
        let (first, second) = (&DRIFTING[..6], &DRIFTING[6..]);
        let plain = welch(first, second, 0.95).unwrap();
        assert!(found.correlation > 0.3, "{found:?}");
        assert!(
            plain.p < 0.01 && found.p > 3.0 * plain.p,
            "{found:?} {plain:?}"
        );
        let turns = welch_of_series(&series(DRIFTING, true)).unwrap();
        assert!(turns.correlation > 0.5 && turns.p > 0.5, "{turns:?}");
        let plain = welch(&alternate(0), &alternate(1), 0.95).unwrap();
        assert!((turns.p - plain.p).abs() < 1e-12, "{turns:?} {plain:?}");
    }

    #[test]
    fn without_correlation_it_is_welchs() {
        let values = [
            0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9,
        ];
        let found = welch_of_series(&series(values, false)).unwrap();
        let plain = welch(&values[..6], &values[6..], 0.95).unwrap();
        assert!(found.correlation.abs() < 1e-12 && (found.p - plain.p).abs() < 1e-12);
        let same = welch_of_series(&series([1.0; 12], true)).unwrap();
        assert!(same.p > 0.999 && same.correlation.abs() < 1e-12);
        assert_eq!(
            welch_of_series(&[(false, 0.0), (true, 1.0), (true, 2.0)]),
            Err(TooFew { have: 1, need: 2 })
        );
    }

    #[test]
    fn the_variance_of_a_sum_is_that_of_its_correlations() {
        let weights = [0.5, 0.5, -0.5, -0.5];
        let r: f64 = 0.5;
        // Pairs one apart: + − with signs (+, −, +); two apart: (−, −); three apart: (−).
        let by_hand = 1.0 + 2.0 * 0.25 * (r - r + r - 2.0 * r.powi(2) - r.powi(3));
        assert!((inflation(&weights, r) - by_hand).abs() < 1e-12);
        let weights = [0.25, 0.25, 0.25, -0.25, -0.25, -0.25];
        let direct: f64 = (0..6)
            .flat_map(|i| (0..6).map(move |j: usize| (i, j)))
            .map(|(i, j)| weights[i] * weights[j] * r.powi(i32::try_from(i.abs_diff(j)).unwrap()))
            .sum();
        assert!((inflation(&weights, r) - direct / 0.375).abs() < 1e-12);
    }
}
