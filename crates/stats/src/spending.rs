//! Looking more than once without more false alarms: error spending.
//!
//! A plan looks at growing data at fractions τ of its largest amount. A spending function says how much of
//! the error α may be used up by then; from it follow the nominal levels at which each look tests.

use crate::normal::{normal_density, normal_quantile, normal_tail, upper_quantile};
use crate::number::real;

/// Share of a two-sided α that may be spent by `fraction`: little early, nearly all at the end.
///
/// Shape:  0 < alpha < 1, 0 < fraction ≤ 1 (anything else stops with a message); α at 1.
/// Source: Lan & DeMets 1983, the function like O'Brien & Fleming: 2 − 2Φ(z(1−α/2)/√τ);
///         docs/sources/statistics.md#looking-early.
///
/// # Panics
/// If an argument is outside its range.
pub fn obrien_fleming(alpha: f64, fraction: f64) -> f64 {
    check(alpha, fraction);
    2.0 * normal_tail(normal_quantile(1.0 - alpha / 2.0) / fraction.sqrt())
}

/// Share of α that may be spent by `fraction`: α·τ^`exponent`.
///
/// Shape:  as [`obrien_fleming`]; exponent > 0: 1 spends evenly, larger ones later.
/// Source: Kim & DeMets 1987.
///
/// # Panics
/// If an argument is outside its range.
pub fn power_family(alpha: f64, exponent: f64, fraction: f64) -> f64 {
    check(alpha, fraction);
    alpha * fraction.powf(exponent)
}

fn check(alpha: f64, fraction: f64) {
    assert!(
        alpha > 0.0 && alpha < 1.0,
        "an error is between 0 and 1, not {alpha}"
    );
    assert!(
        fraction > 0.0 && fraction <= 1.0,
        "a fraction is above 0 and at most 1, not {fraction}"
    );
}

/// Which crossings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Upwards only.
    One,
    /// Both ways; levels are those of two-sided tests.
    Two,
}

/// The nominal level of each look, so that the chance to have crossed by look k is `spent[k]`.
///
/// Shape:  one (fraction, spent) for each look; fractions rise and lie in 0..=1, spent does not fall and is
///         below 1. The result has as many levels.
/// Source: recursive integration, Armitage, McPherson & Rowe 1969, with Simpson's rule on 161 points between
///         the boundaries. Exact for normal increments of known variance. Applying the levels to p of
///         Student's t is the significance-level approach (Jennison & Turnbull 2000, 3.3): close, not exact;
///         how close is simulated in `compare`.
///
/// # Panics
/// If fractions do not rise.
pub fn nominal_levels(looks: &[(f64, f64)], sides: Sides) -> Vec<f64> {
    let mut levels = Vec::with_capacity(looks.len());
    let mut before: Option<Walk> = None;
    let mut spent_before = 0.0;
    for &(fraction, spent) in looks {
        let step = (spent - spent_before).max(1e-300);
        let z = match &before {
            None => upper_quantile(step / share(sides)),
            Some(walk) => {
                assert!(walk.fraction < fraction, "fractions rise");
                walk.boundary(fraction, step, sides)
            }
        };
        levels.push(share(sides) * normal_tail(z));
        before = Some(Walk::after(before.as_ref(), fraction, z, sides));
        spent_before = spent.max(spent_before);
    }
    levels
}

fn share(sides: Sides) -> f64 {
    match sides {
        Sides::One => 1.0,
        Sides::Two => 2.0,
    }
}

/// Points of the grid less one; even, for Simpson's rule.
const GRID: usize = 160;
/// No density is left beyond so many standard deviations.
const FAR: f64 = 8.0;

/// The density, at a look, of a Brownian motion that has not crossed.
struct Walk {
    fraction: f64,
    /// Value, and density times the weight of Simpson's rule.
    points: Vec<(f64, f64)>,
}

impl Walk {
    fn after(before: Option<&Self>, fraction: f64, z: f64, sides: Sides) -> Self {
        let scale = fraction.sqrt();
        let high = z.min(FAR) * scale;
        let low = if sides == Sides::Two {
            -high
        } else {
            -FAR * scale
        };
        let width = (high - low) / real(GRID);
        let points = (0..=GRID).map(|i| {
            let value = low + width * real(i);
            let weight = match i {
                0 | GRID => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let density = match before {
                None => normal_density(value / scale) / scale,
                Some(walk) => walk.density(fraction, value),
            };
            (value, density * weight * width / 3.0)
        });
        Self {
            fraction,
            points: points.collect(),
        }
    }

    fn density(&self, fraction: f64, value: f64) -> f64 {
        let step = (fraction - self.fraction).sqrt();
        let parts = self
            .points
            .iter()
            .map(|(from, mass)| mass * normal_density((value - from) / step));
        parts.sum::<f64>() / step
    }

    /// The z at `fraction` that is first crossed there with probability `spend`.
    fn boundary(&self, fraction: f64, spend: f64, sides: Sides) -> f64 {
        let step = (fraction - self.fraction).sqrt();
        let crossed = |z: f64| {
            let edge = z * fraction.sqrt();
            let parts = self.points.iter().map(|(from, mass)| {
                let up = normal_tail((edge - from) / step);
                let down = match sides {
                    Sides::One => 0.0,
                    Sides::Two => normal_tail((edge + from) / step),
                };
                mass * (up + down)
            });
            parts.sum::<f64>()
        };
        let (mut low, mut high) = (if sides == Sides::Two { 0.0 } else { -FAR }, FAR);
        // The integral is good to seven digits, so more halving gains nothing.
        for _ in 0..34 {
            let middle = f64::midpoint(low, high);
            if crossed(middle) > spend {
                low = middle
            } else {
                high = middle
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five equal looks.
    fn five(spent: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (1..=5)
            .map(|look| f64::from(look) / 5.0)
            .map(|fraction| (fraction, spent(fraction)))
            .collect()
    }

    fn boundaries(looks: &[(f64, f64)], sides: Sides) -> Vec<f64> {
        nominal_levels(looks, sides)
            .into_iter()
            .map(|level| normal_quantile(1.0 - level / share(sides)))
            .collect()
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        for (found, expected) in std::iter::zip(found, expected) {
            assert!((found - expected).abs() < 2e-4, "{found} {expected}");
        }
    }

    #[test]
    fn one_look_tests_at_the_level_itself() {
        for sides in [Sides::One, Sides::Two] {
            let levels = nominal_levels(&[(1.0, 0.05)], sides);
            assert!((levels[0] - 0.05).abs() < 1e-9);
        }
    }

    #[test]
    fn boundaries_are_those_of_the_literature() {
        // Reboussin, DeMets, Kim & Lan 2000 (program ld98), α = 5 % two-sided, five equal looks: Pocock's
        // function α·ln(1 + (e − 1)τ), and O'Brien & Fleming's with α/2 on each side.
        let pocock = five(|tau| 0.05 * (1.0 + (std::f64::consts::E - 1.0) * tau).ln());
        assert_near(
            &boundaries(&pocock, Sides::Two),
            &[2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
        );
        let each_side = five(|tau| 2.0 * obrien_fleming(0.025, tau));
        assert_near(
            &boundaries(&each_side, Sides::Two),
            &[4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
        );
    }

    #[test]
    fn all_of_the_error_is_spent_at_the_end_and_little_before() {
        assert!((obrien_fleming(0.05, 1.0) - 0.05).abs() < 1e-12);
        assert!(obrien_fleming(0.05, 0.25) < 1e-4);
        assert!((power_family(0.05, 2.0, 0.5) - 0.0125).abs() < 1e-12);
    }

    #[test]
    #[should_panic(expected = "fractions rise")]
    fn a_look_at_the_same_data_is_refused() {
        let _ = nominal_levels(&[(0.5, 0.01), (0.5, 0.02)], Sides::One);
    }
}
