//! How well a standard deviation is known.

use statrs::function::gamma::{gamma_lr, gamma_ur};

/// The x with P(X ≤ x) = `p` for a chi-square X with `df` degrees of freedom.
///
/// Shape:  0 < p < 1, df > 0 (anything else stops with a message).
/// Source: regularised incomplete gamma function P(df/2, x/2) (Abramowitz & Stegun 26.4.19), by bisection to
///         the limit of `f64`.
///
/// # Panics
/// If `p` or `df` is outside its range.
pub fn chi_square_quantile(p: f64, df: f64) -> f64 {
    assert!(
        p > 0.0 && p < 1.0,
        "a probability is between 0 and 1, not {p}"
    );
    assert!(df > 0.0, "degrees of freedom are above zero, not {df}");
    // The smaller of both tails is compared, so that neither end loses its digits.
    let below = |x: f64| {
        if x <= 0.0 {
            true
        } else if p < 0.5 {
            gamma_lr(df / 2.0, x / 2.0) < p
        } else {
            gamma_ur(df / 2.0, x / 2.0) > 1.0 - p
        }
    };
    let (mut low, mut high) = (0.0_f64, df.max(1.0));
    while below(high) && high < f64::MAX / 4.0 {
        low = high;
        high *= 2.0;
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high || high < 1e-300 {
            return middle;
        }
        if below(middle) {
            low = middle
        } else {
            high = middle
        }
    }
}

/// The sd that the true one exceeds with probability 1 − `level` only, from a sample sd.
///
/// Shape:  `df` is the number of values less one, above zero; `level` between 0 and 1.
/// Units:  those of `sd`.
/// Source: s·√(df / χ²(1 − level; df)), exact for normal values.
pub fn sd_at_most(sd: f64, df: f64, level: f64) -> f64 {
    sd * (df / chi_square_quantile(1.0 - level, df)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_values_know_their_sd_to_a_factor_of_two() {
        // χ²(0.05; 5) = 1.1455.
        assert!((sd_at_most(1.0, 5.0, 0.95) - (5.0_f64 / 1.145_476).sqrt()).abs() < 1e-5);
        assert!(sd_at_most(1.0, 1000.0, 0.95) < 1.04);
    }

    #[test]
    #[should_panic(expected = "degrees of freedom")]
    fn no_degrees_of_freedom_are_refused() {
        let _ = chi_square_quantile(0.5, 0.0);
    }
}
