//! How sure is a share that was counted.

use crate::Interval;
use crate::number::real_u64;
use statrs::function::beta::beta_reg;

/// Exact two-sided interval for the probability behind `successes` out of `trials`.
///
/// Shape:  successes ≤ trials; `level` between 0 and 1 (anything else stops with a message). 0 of n has low
///         end 0, n of n has high end 1, and 0 of 0 is the whole of 0..1. Coverage is at least `level`.
/// Source: Clopper & Pearson 1934, through the beta distribution: low = B(α/2; k, n−k+1), high = B(1−α/2;
///         k+1, n−k).
///
/// # Panics
/// If there are more successes than trials, or `level` is outside 0..1.
pub fn clopper_pearson(successes: u64, trials: u64, level: f64) -> Interval {
    assert!(
        level > 0.0 && level < 1.0,
        "a confidence level is between 0 and 1, not {level}"
    );
    assert!(
        successes <= trials,
        "{successes} successes out of {trials} trials"
    );
    of_parts(real_u64(successes), real_u64(trials - successes), level)
}

/// The same for so many successes and failures, which need not be whole.
pub(crate) fn of_parts(successes: f64, failures: f64, level: f64) -> Interval {
    let tail = (1.0 - level) / 2.0;
    let low = if successes > 0.0 {
        beta_quantile(tail, successes, failures + 1.0)
    } else {
        0.0
    };
    let high = if failures > 0.0 {
        beta_quantile(1.0 - tail, successes + 1.0, failures)
    } else {
        1.0
    };
    Interval { low, high }
}

/// Two-sided p of "both kinds are equally likely" after `first` of one and `second` of the other.
///
/// Shape:  1 when there are none.
/// Source: exact binomial (sign) test; as `scipy.stats.binomtest(first, first + second)`.
pub fn symmetry_p(first: u64, second: u64) -> f64 {
    if first == second {
        return 1.0;
    }
    // P(X ≥ k) = I_½(k, n − k + 1) for n trials at ½.
    let (more, fewer) = (first.max(second), first.min(second));
    (2.0 * beta_reg(real_u64(more), real_u64(fewer + 1), 0.5)).min(1.0)
}

/// The x with I_x(a, b) = p, by bisection to the limit of `f64`.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    loop {
        let middle = f64::midpoint(low, high);
        // Below 1e-300 nothing is left to decide, and halving on would walk through the subnormal numbers.
        if middle <= low || middle >= high || high < 1e-300 {
            return middle;
        }
        if beta_reg(a, b, middle) < p {
            low = middle
        } else {
            high = middle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_of_three_hundred_is_below_one_percent_on_one_side() {
        // The rule of three, 3/n: one-sided 95 % is the high end of the two-sided 90 % interval.
        let interval = clopper_pearson(0, 300, 0.90);
        assert!((interval.high - 0.00994).abs() < 0.0001, "{interval:?}");
        assert!(interval.low.abs() < 1e-300);
    }

    #[test]
    fn no_trials_say_nothing() {
        assert_eq!(
            clopper_pearson(0, 0, 0.95),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
    }

    #[test]
    #[should_panic(expected = "2 successes out of 1 trials")]
    fn more_successes_than_trials_are_refused() {
        let _ = clopper_pearson(2, 1, 0.95);
    }
}
