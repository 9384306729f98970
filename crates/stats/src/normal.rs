//! The normal distribution.

use statrs::function::erf::erfc;
use statrs::function::gamma::gamma_ur;

/// P(Z > z) for a standard normal Z.
///
/// Shape:  any z, infinite too.
/// Source: Q(1/2, z²/2)/2 with the regularised incomplete gamma function (Abramowitz & Stegun 26.2.30),
///         computed as a tail, so that small probabilities keep their digits.
pub fn normal_tail(z: f64) -> f64 {
    // Beyond, the tail is below the smallest f64.
    let x = z.abs().min(40.0).powi(2) / 2.0;
    let tail = if x > 0.0 { 0.5 * gamma_ur(0.5, x) } else { 0.5 };
    if z < 0.0 { 1.0 - tail } else { tail }
}

/// [`normal_tail`] in a fraction of its time, for sums of thousands of tails. It is right to nine digits
/// after the point, [`normal_tail`] to fourteen.
///
/// Source: P(Z > z) = erfc(z/√2)/2 (Abramowitz & Stegun 26.2.29), with rational approximations of erfc.
pub(crate) fn quick_tail(z: f64) -> f64 {
    0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The z with P(Z ≤ z) = `p`.
///
/// Shape:  0 < p < 1 (anything else stops with a message).
/// Source: bisection on [`normal_tail`] to the limit of `f64`, as in [`crate::student::t_quantile`].
///
/// # Panics
/// If `p` is outside its range.
pub fn normal_quantile(p: f64) -> f64 {
    assert!(
        p > 0.0 && p < 1.0,
        "a probability is between 0 and 1, not {p}"
    );
    let magnitude = upper_quantile(p.min(1.0 - p));
    if p < 0.5 { -magnitude } else { magnitude }
}

/// The z ≥ 0 with P(Z > z) = `tail` ≤ 1/2; keeps its digits for the smallest tails.
pub(crate) fn upper_quantile(tail: f64) -> f64 {
    // P(Z > 39) is below the smallest f64.
    let (mut low, mut high) = (0.0_f64, 39.0_f64);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if normal_tail(middle) > tail {
            low = middle
        } else {
            high = middle
        }
    }
}

/// Density of a standard normal at `z`.
pub fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_zero_and_both_sides_mirror() {
        assert!(normal_quantile(0.5).abs() < 1e-15);
        assert!((normal_quantile(0.975) + normal_quantile(0.025)).abs() < 1e-12);
        assert!((normal_tail(f64::NEG_INFINITY) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_quick_tail_is_the_other_to_nine_digits() {
        for step in -800..=800 {
            let z = f64::from(step) / 100.0;
            let (quick, tail) = (quick_tail(z), normal_tail(z));
            assert!((quick - tail).abs() <= 1e-9, "{z}: {quick} {tail}");
        }
        // As Python's math.erfc gives it.
        assert!((quick_tail(1.06) - 0.144_572_299_663_909_6).abs() <= 1e-9);
        assert!((normal_tail(1.06) - 0.144_572_299_663_909_6).abs() <= 1e-14);
        assert!(quick_tail(f64::INFINITY) <= 0.0 && quick_tail(f64::NEG_INFINITY) >= 1.0);
    }

    #[test]
    #[should_panic(expected = "between 0 and 1")]
    fn certainty_has_no_quantile() {
        let _ = normal_quantile(1.0);
    }
}
