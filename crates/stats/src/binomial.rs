//! How sure is a share that was counted.

use crate::Interval;
use crate::number::real_u64;
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;

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

/// Halvings after which nothing is left of a bracket.
const HALVINGS: u32 = 1100;

/// A step of this share of what x is away from its nearer end is the last one: each has twice as many right
/// digits as the one before, and those of I end soon after.
const LAST_STEP: f64 = 1e-10;

/// The x with I_x(a, b) = p.
///
/// Source: Newton's method kept inside a bracket, to the limit of `f64`: about 8 evaluations.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let peak = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let density = |x: f64| (peak + (a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p()).exp();
    let (mut low, mut high, mut x) = (0.0_f64, 1.0_f64, a / (a + b));
    for _ in 0..HALVINGS {
        let excess = beta_reg(a, b, x) - p;
        if excess < 0.0 {
            low = x
        } else {
            high = x
        }
        let newton = x - excess / density(x);
        let last = (LAST_STEP * x.min(1.0 - x)).max(4.0 * f64::EPSILON * x);
        if (newton - x).abs() <= last {
            return newton.min(1.0);
        }
        // Without a slope, or out of the bracket, the middle is next.
        let is_inside = newton > low && newton < high;
        x = if is_inside {
            newton
        } else {
            f64::midpoint(low, high)
        };
        // Below 1e-300 nothing is left to decide, nor between neighbours.
        if high < 1e-300 || x <= low || x >= high {
            return x;
        }
    }
    x
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

    #[test]
    fn a_quantile_is_that_of_halving_the_bracket_to_its_end() {
        let halved = |p: f64, a: f64, b: f64| {
            let (mut low, mut high) = (0.0_f64, 1.0_f64);
            loop {
                let middle = f64::midpoint(low, high);
                if middle <= low || middle >= high || high < 1e-300 {
                    return middle;
                }
                if beta_reg(a, b, middle) < p {
                    low = middle
                } else {
                    high = middle
                }
            }
        };
        let sizes = [1e-3, 0.3, 1.0, 2.0, 7.5, 100.0, 3e3, 2e5];
        for (a, b) in sizes.iter().flat_map(|a| sizes.map(|b| (*a, b))) {
            for p in [1e-6, 0.01, 0.025, 0.05, 0.5, 0.95, 0.975, 0.999] {
                let (found, wanted) = (beta_quantile(p, a, b), halved(p, a, b));
                let near = (found - wanted).abs() <= 1e-10 * wanted.min(1.0 - wanted).max(1e-5);
                // Where the distribution is flat many x have this p, to all digits that are known.
                let as_good = (beta_reg(a, b, found) - beta_reg(a, b, wanted)).abs() < 1e-12;
                assert!(near || as_good, "{p} {a} {b}: {found:e} {wanted:e}");
            }
        }
    }
}
