//! Student's t: distribution, intervals and tests.

use crate::number::real;
use crate::summary::{mean, sample_sd};
use crate::{Interval, TooFew};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;
use std::cell::RefCell;
use std::collections::HashMap;

/// Quantiles that a thread keeps. An analysis asks for the same few of each cell and block; a million of
/// different ones would take memory for nothing.
const KEPT: usize = 1024;

thread_local! {
    /// Quantiles of the upper half by the bits of their tail and degrees of freedom: computing one takes
    /// eight tails, and simulations spent a quarter of their time on those that they had already had.
    static KNOWN: RefCell<HashMap<(u64, u64), f64>> = RefCell::new(HashMap::new());
}

/// P(T ≤ t) for Student's t with `df` degrees of freedom.
///
/// Shape:  df > 0, need not be whole; t may be infinite.
/// Source: regularised incomplete beta function I_x(df/2, 1/2) at x = df/(df + t²) (Abramowitz & Stegun
///         26.7.1).
///
/// # Panics
/// If `df` is not above zero.
pub fn t_cdf(t: f64, df: f64) -> f64 {
    let tail = upper_tail(t.abs(), df);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// P(T > t) for t ≥ 0: computed as a tail, so that small probabilities keep their digits.
fn upper_tail(t: f64, df: f64) -> f64 {
    assert!(df > 0.0, "degrees of freedom are above zero, not {df}");
    if t.is_nan() {
        return f64::NAN;
    }
    let ratio = (t / df) * t;
    if ratio < 1.0 {
        // Near the centre 1 − x would lose t's digits, so the body is computed and not the tail.
        0.5 - 0.5 * beta_reg(0.5, df / 2.0, ratio / (1.0 + ratio))
    } else {
        // Written so that a huge t gives 0 and not infinity/infinity.
        0.5 * beta_reg(df / 2.0, 0.5, 1.0 / (1.0 + ratio))
    }
}

/// The t with P(T ≤ t) = `p` for `df` degrees of freedom.
///
/// Shape:  0 < p < 1, df > 0 (anything else stops with a message).
/// Source: Newton's method on [`t_cdf`]'s tail, kept inside a bracket, to the limit of `f64`: about 8
///         evaluations.
///
/// # Panics
/// If `p` or `df` is outside its range.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    assert!(
        p > 0.0 && p < 1.0,
        "a probability is between 0 and 1, not {p}"
    );
    let tail = p.min(1.0 - p);
    let magnitude = if tail < 0.5 {
        known_quantile(tail, df)
    } else {
        0.0
    };
    if p < 0.5 { -magnitude } else { magnitude }
}

/// [`upper_quantile`], once for each pair of arguments.
fn known_quantile(tail: f64, df: f64) -> f64 {
    let key = (tail.to_bits(), df.to_bits());
    if let Some(known) = KNOWN.with_borrow(|all| all.get(&key).copied()) {
        return known;
    }
    let found = upper_quantile(tail, df);
    KNOWN.with_borrow_mut(|all| {
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(key, found);
    });
    found
}

/// The t ≥ 0 with P(T > t) = `tail` < 1/2.
fn upper_quantile(tail: f64, df: f64) -> f64 {
    // ln of the density at zero.
    let peak = ln_gamma(f64::midpoint(df, 1.0))
        - ln_gamma(df / 2.0)
        - 0.5 * (df * std::f64::consts::PI).ln();
    let density = |t: f64| (peak - f64::midpoint(df, 1.0) * ((t / df) * t).ln_1p()).exp();
    let (mut low, mut high, mut t) = (0.0_f64, f64::INFINITY, 1.0_f64);
    loop {
        let excess = upper_tail(t, df) - tail;
        if excess > 0.0 {
            low = t;
        } else {
            high = t;
        }
        // The tail is convex, so a step from below never passes the solution; rounding and far tails might.
        let step = t + excess / density(t);
        let next = if step > low && step < high && step < f64::MAX / 4.0 {
            step
        } else if high.is_finite() {
            low + (high - low) / 2.0
        } else {
            2.0 * t
        };
        if (next - t).abs() <= 4.0 * f64::EPSILON * t || t > f64::MAX / 8.0 {
            return next;
        }
        t = next;
    }
}

/// Two-sided interval for the mean of a normal population: mean ± t·sd/√n with n − 1 degrees of freedom.
///
/// Shape:  n ≥ 2 independent values; `level` such as 0.95, between 0 and 1 (anything else stops with a
///         message).
/// Units:  those of the values.
/// Errors: [`TooFew`] for fewer than two values.
/// Source: Student 1908.
///
/// # Panics
/// If `level` is outside 0..1.
pub fn t_interval(values: &[f64], level: f64) -> Result<Interval, TooFew> {
    assert!(
        level > 0.0 && level < 1.0,
        "a confidence level is between 0 and 1, not {level}"
    );
    let (centre, error) = mean_and_error(values)?;
    let half = t_quantile(0.5 + level / 2.0, real(values.len() - 1)) * error;
    Ok(Interval {
        low: centre - half,
        high: centre + half,
    })
}

/// Two-sided p of "the mean is zero", one sample.
///
/// Shape:  n ≥ 2 independent values. Equal values give p = 0, or 1 when all are zero.
/// Errors: [`TooFew`] for fewer than two values.
/// Source: Student 1908; as `scipy.stats.ttest_1samp(values, 0)`, except for equal values, where SciPy
///         gives NaN.
pub fn t_test_p(values: &[f64]) -> Result<f64, TooFew> {
    let (centre, error) = mean_and_error(values)?;
    Ok(two_sided(centre, error, real(values.len() - 1)))
}

/// One-sided p of "the mean is at most zero", one sample.
///
/// Shape:  as [`t_test_p`]; equal values give 0 above zero, and 1 otherwise.
/// Errors: [`TooFew`] for fewer than two values.
/// Source: Student 1908; as `scipy.stats.ttest_1samp(values, 0, alternative="greater")`.
pub fn t_test_above_p(values: &[f64]) -> Result<f64, TooFew> {
    let (centre, error) = mean_and_error(values)?;
    Ok(if error > 0.0 {
        t_cdf(-centre / error, real(values.len() - 1))
    } else if centre > 0.0 {
        0.0
    } else {
        1.0
    })
}

/// Mean and its standard error.
pub(crate) fn mean_and_error(values: &[f64]) -> Result<(f64, f64), TooFew> {
    match (mean(values), sample_sd(values)) {
        (Some(centre), Some(sd)) => Ok((centre, sd / real(values.len()).sqrt())),
        _ => Err(TooFew {
            have: values.len(),
            need: 2,
        }),
    }
}

pub(crate) fn two_sided(difference: f64, error: f64, df: f64) -> f64 {
    if error > 0.0 {
        (2.0 * upper_tail((difference / error).abs(), df)).min(1.0)
    } else if difference.abs() > 0.0 {
        0.0
    } else {
        1.0
    }
}

/// What Welch's two-sample test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// mean(second) − mean(first).
    pub difference: f64,
    pub interval: Interval,
    /// Degrees of freedom, Welch-Satterthwaite.
    pub df: f64,
    /// Two-sided p of "the means are equal".
    pub p: f64,
}

/// Welch's t for two independent samples with unlike variances.
///
/// It is here to show what "measure A, then B" would have said: that practice breaks its assumption, since
/// samples taken one after the other share drift.
///
/// Shape:  at least two values on each side; `level` between 0 and 1 (anything else stops with a message).
/// Units:  those of the values.
/// Errors: [`TooFew`] if a side has fewer than two values.
/// Source: Welch 1947; as `scipy.stats.ttest_ind(second, first, equal_var=False)`.
///
/// # Panics
/// If `level` is outside 0..1.
pub fn welch(first: &[f64], second: &[f64], level: f64) -> Result<Welch, TooFew> {
    assert!(
        level > 0.0 && level < 1.0,
        "a confidence level is between 0 and 1, not {level}"
    );
    let (mean_first, error_first) = mean_and_error(first)?;
    let (mean_second, error_second) = mean_and_error(second)?;
    let (v1, v2) = (error_first.powi(2), error_second.powi(2));
    let difference = mean_second - mean_first;
    let error = (v1 + v2).sqrt();
    let (n1, n2) = (real(first.len() - 1), real(second.len() - 1));
    // Without any variance the formula is 0/0; the pooled degrees of freedom are its limit for equal
    // variances.
    let df = if error > 0.0 {
        (v1 + v2).powi(2) / (v1.powi(2) / n1 + v2.powi(2) / n2)
    } else {
        n1 + n2
    };
    let half = t_quantile(0.5 + level / 2.0, df) * error;
    Ok(Welch {
        difference,
        interval: Interval {
            low: difference - half,
            high: difference + half,
        },
        df,
        p: two_sided(difference, error, df),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(t_interval(&[1.0], 0.95), Err(TooFew { have: 1, need: 2 }));
        assert_eq!(
            welch(&[1.0, 2.0], &[3.0], 0.95),
            Err(TooFew { have: 1, need: 2 })
        );
        assert_eq!(
            TooFew { have: 1, need: 2 }.to_string(),
            "1 values, 2 needed"
        );
    }

    #[test]
    fn a_quantile_that_is_known_is_the_one_that_was_computed_however_many_there_are() {
        for round in 0..2 {
            for step in 1..=KEPT + 10 {
                let (tail, df) = (0.4 / real(step), real(step % 7 + 1));
                let (known, computed) = (t_quantile(tail, df), -upper_quantile(tail, df));
                assert_eq!(known.to_bits(), computed.to_bits(), "{round} {step}");
            }
        }
        assert!(KNOWN.with_borrow(HashMap::len) <= KEPT);
    }

    #[test]
    fn equal_values_decide_without_variance() {
        assert!(t_test_p(&[0.5, 0.5, 0.5]).is_ok_and(|p| p < 1e-300));
        assert!(t_test_p(&[0.0, 0.0]).is_ok_and(|p| p > 0.999));
        let same = welch(&[1.0, 1.0], &[1.0, 1.0], 0.95);
        assert!(same.is_ok_and(|same| same.p > 0.999 && same.interval.half_width() < 1e-300));
    }

    #[test]
    fn extreme_arguments_stay_probabilities() {
        for df in [0.5, 1.0, 7.0, 1e6] {
            assert!((t_cdf(f64::INFINITY, df) - 1.0).abs() < 1e-15);
            assert!(t_cdf(-1e300, df) >= 0.0);
            assert!((t_cdf(0.0, df) - 0.5).abs() < 1e-15);
        }
        assert!(t_cdf(f64::NAN, 3.0).is_nan());
    }

    #[test]
    #[should_panic(expected = "confidence level")]
    fn a_level_in_percent_is_refused() {
        let _ = t_interval(&[1.0, 2.0], 95.0);
    }
}
