//! The mean of values that are skewed: rare stalls on one side make most values good and a few very bad.
//!
//! Student's interval of such values is too short on the side of the rare ones: with stalls in a few of many
//! slices it holds the truth in 87 to 93 of 100 runs, not in 95. Hall's transformation corrects that side and
//! shortens the other. Its skewness is an estimate, and where it is only luck the shortened side is wrong. So
//! the interval here is the wider of both on each side: it never claims more than Student's.
//!
//! The transformation is a cubic that is flat at 3 standard errors over the skewness. Its inverse runs away
//! near there (with a skewness of 0.5 from 2.2 standard errors to 9), which says nothing about the values. So
//! an end lies at most `FARTHEST` standard errors beyond Student's.

use crate::number::real;
use crate::student::{t_cdf, t_quantile};
use crate::summary::{mean, sample_sd};
use crate::{Interval, TooFew};

/// Standard errors by which an end lies beyond Student's at most.
///
/// With fewer the interval holds the truth in less than 95 of 100 runs where stalls come about five times in
/// a run; with more it is only wider (docs/measuring.md#totals).
const FARTHEST: f64 = 1.4;

/// Skewness that is corrected for at most, either way. From there on, at all levels in use, `FARTHEST`
/// decides.
const SKEWNESS_MOST: f64 = 0.5;

/// How skewed the error of a mean is: its third central moment over the cube of its standard deviation.
///
/// Where two sources tell it and they may disagree, each side of an interval allows for the one that makes it
/// longer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Skewness {
    /// Of the side below, zero or less.
    below: f64,
    /// Of the side above, zero or more.
    above: f64,
}

impl Skewness {
    /// Of one source. What is no number is no skewness.
    pub fn of(skewness: f64) -> Self {
        let known = if skewness.is_finite() { skewness } else { 0.0 };
        Self {
            below: known.min(0.0),
            above: known.max(0.0),
        }
    }

    /// Of two sources.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            below: self.below.min(other.below),
            above: self.above.max(other.above),
        }
    }

    /// Of the side below, zero or less.
    pub fn below(self) -> f64 {
        self.below
    }

    /// Of the side above, zero or more.
    pub fn above(self) -> f64 {
        self.above
    }

    /// Of the mean times this.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::of(self.below * factor).or(Self::of(self.above * factor))
    }
}

/// Skewness of the mean of `values`, each of one draw against the mean of two others, where all three have
/// one distribution but for a shift: its luck counts once, and that of the two half each, so that it does not
/// cancel. `apart` is half of what the two are apart, in the order of `values`.
///
/// With z a value less their mean and h its part of `apart`, the third central moment is the mean of
/// z³/4 − 9/4 z h²: 3/4 of the third moment of a draw, from the k-statistic of the three draws. Normal draws
/// show a skewness of 1.22 / √n by chance, so that much is taken off.
///
/// Shape:  without a second, that is `apart` all zero, and for fewer than three values there is none.
/// Source: k-statistics, Fisher 1929, of three draws.
pub fn of_starts(values: &[f64], apart: &[f64]) -> Skewness {
    let n = real(values.len());
    let two = apart.iter().any(|half| half.abs() > 0.0);
    let known = mean(values).zip(sample_sd(values));
    let Some((centre, sd)) = known.filter(|_| two && values.len() >= 3) else {
        return Skewness::default();
    };
    let off = |value: &f64| value - centre;
    let cubes: f64 = values.iter().map(|value| off(value).powi(3)).sum();
    let mixed = std::iter::zip(values, apart).map(|(value, half)| off(value) * half.powi(2));
    let third =
        cubes / 4.0 * n / ((n - 1.0) * (n - 2.0)) - 9.0 / 4.0 * mixed.sum::<f64>() / (n - 1.0);
    let found = third / sd.powi(3);
    let certain = (found.abs() - NORMAL_SD / n.sqrt()).max(0.0);
    Skewness::of(certain.copysign(found) / n.sqrt())
}

/// Standard deviation of what [`of_starts`] finds in n blocks of normal draws, times √n. Three normal draws
/// of variance σ² have a k-statistic k₃ of variance 9 σ⁶; a value has 3/4 of it, over (3/2 σ²)^1.5.
const NORMAL_SD: f64 = 1.22;

impl From<f64> for Skewness {
    fn from(skewness: f64) -> Self {
        Self::of(skewness)
    }
}

/// A mean, its standard error and the skewness of its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SkewedMean {
    /// The mean.
    pub centre: f64,
    error: f64,
    df: f64,
    skewness: Skewness,
}

impl SkewedMean {
    /// Of independent values whose mean has an error of this skewness; 0 is Student's t.
    ///
    /// Errors: [`TooFew`] for fewer than two values.
    pub fn new(values: &[f64], skewness: impl Into<Skewness>) -> Result<Self, TooFew> {
        let (Some(centre), Some(sd)) = (mean(values), sample_sd(values)) else {
            return Err(TooFew {
                have: values.len(),
                need: 2,
            });
        };
        let error = sd / real(values.len()).sqrt();
        Ok(Self::assumed(
            centre,
            error,
            real(values.len() - 1),
            skewness,
        ))
    }

    /// Its standard error.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// A mean with this standard error, known from values with so many degrees of freedom.
    pub fn assumed(centre: f64, error: f64, df: f64, skewness: impl Into<Skewness>) -> Self {
        let skewness = skewness.into();
        Self {
            centre,
            error,
            df,
            skewness: Skewness {
                below: skewness.below.max(-SKEWNESS_MOST),
                above: skewness.above.min(SKEWNESS_MOST),
            },
        }
    }

    /// Two-sided interval for the mean: on each side the wider one of Student's and Hall's, and at most
    /// `FARTHEST` standard errors beyond Student's.
    ///
    /// Shape:  `level` between 0 and 1 (anything else stops with a message).
    /// Source: Hall 1992, J. R. Statist. Soc. B 54, 221-228, the transformation by a cubic; the t
    ///         quantile in the place of the bootstrap's.
    ///
    /// # Panics
    /// If `level` is outside 0..1.
    pub fn interval(&self, level: f64) -> Interval {
        assert!(
            level > 0.0 && level < 1.0,
            "a confidence level is between 0 and 1, not {level}"
        );
        let t = t_quantile(0.5 + level / 2.0, self.df);
        Interval {
            low: self.centre - self.error * farther(t, self.skewness.below),
            high: self.centre + self.error * farther(t, -self.skewness.above),
        }
    }

    /// One-sided p of "the mean is at most zero", by the same rule as the interval. Without any error 0 above
    /// zero, and 1 otherwise.
    pub fn p_above(&self) -> f64 {
        if self.error > 0.0 {
            let t = self.centre / self.error;
            t_cdf(-nearer(t, self.skewness.below), self.df)
        } else if self.centre > 0.0 {
            0.0
        } else {
            1.0
        }
    }

    /// Its degrees of freedom.
    pub fn df(&self) -> f64 {
        self.df
    }

    /// The mean of the values plus this.
    pub(crate) fn shifted(&self, by: f64) -> Self {
        Self {
            centre: self.centre + by,
            ..*self
        }
    }

    /// The mean of the values times −1.
    pub(crate) fn mirrored(&self) -> Self {
        Self {
            centre: -self.centre,
            skewness: self.skewness.times(-1.0),
            ..*self
        }
    }

    /// Two-sided p of "the mean is zero": below 1 − level exactly if the interval at that level leaves out
    /// zero.
    pub fn p(&self) -> f64 {
        (2.0 * self.p_above().min(self.mirrored().p_above())).min(1.0)
    }
}

/// Standard errors from the mean to its end below, where Student's is `t`.
fn farther(t: f64, skewness: f64) -> f64 {
    t.max(back(t, skewness).min(t + FARTHEST))
}

/// The inverse of [`farther`]: each step of it rises with t.
fn nearer(t: f64, skewness: f64) -> f64 {
    t.min(transformed(t, skewness).max(t - FARTHEST))
}

/// Hall's cubic: nearly as Student's t.
fn transformed(t: f64, skewness: f64) -> f64 {
    let a = skewness;
    t + a * (t * t / 3.0 + 1.0 / 6.0) + a * a * t.powi(3) / 27.0
}

/// The inverse of [`transformed`].
fn back(value: f64, skewness: f64) -> f64 {
    let a = skewness;
    if a.abs() < 1e-6 {
        value
    } else {
        3.0 / a * ((1.0 + a * (value - a / 6.0)).cbrt() - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student::{t_interval, t_test_above_p, t_test_p};

    const VALUES: [f64; 8] = [0.01, -0.02, 0.03, 0.005, 0.012, -0.004, 0.02, 0.008];

    #[test]
    fn without_skewness_it_is_students() {
        let found = SkewedMean::new(&VALUES, 0.0).unwrap();
        for level in [0.5, 0.9, 0.95, 0.99] {
            let (ours, student) = (found.interval(level), t_interval(&VALUES, level).unwrap());
            assert!((ours.low - student.low).abs() < 1e-12);
            assert!((ours.high - student.high).abs() < 1e-12);
        }
        assert!((found.p() - t_test_p(&VALUES).unwrap()).abs() < 1e-12);
        assert!((found.p_above() - t_test_above_p(&VALUES).unwrap()).abs() < 1e-12);
    }

    #[test]
    fn the_side_of_the_rare_values_is_longer_and_the_other_no_shorter() {
        let student = t_interval(&VALUES, 0.95).unwrap();
        for skewness in [-5.0, -0.3, 0.3, 5.0] {
            let found = SkewedMean::new(&VALUES, skewness).unwrap().interval(0.95);
            assert!(found.low <= student.low && found.high >= student.high);
            let (below, above) = (student.low - found.low, found.high - student.high);
            assert_eq!(below > above, skewness < 0.0, "{skewness}: {below} {above}");
        }
    }

    #[test]
    fn more_skewness_makes_its_side_no_shorter_and_more_distance_makes_p_smaller() {
        let t = |df: f64, level: f64| t_quantile(0.5 + level / 2.0, df);
        for df in [5.0, 7.0, 11.0, 23.0] {
            for level in [0.9, 0.95, 0.97, 0.991] {
                let below = |skewness| {
                    -SkewedMean::assumed(0.0, 1.0, df, skewness)
                        .interval(level)
                        .low
                };
                let each: Vec<f64> = (0..40).map(|at| below(-0.05 * f64::from(at))).collect();
                assert!(each.is_sorted(), "{df} {level}: {each:?}");
                assert!(
                    each.iter()
                        .all(|end| *end <= t(df, level) + FARTHEST + 1e-12)
                );
            }
            for skewness in [-0.2, -0.5, -1.0] {
                let p = |t| SkewedMean::assumed(t, 1.0, df, skewness).p();
                let each: Vec<f64> = (4..30).map(|at| p(0.25 * f64::from(at))).collect();
                let falls = each.windows(2).all(|pair| pair[1] < 0.97 * pair[0]);
                assert!(falls, "{df} {skewness}: {each:?}");
            }
        }
    }

    #[test]
    fn of_two_sources_each_side_takes_the_one_that_makes_it_longer() {
        let interval = |skewness| SkewedMean::new(&VALUES, skewness).unwrap().interval(0.95);
        let (down, up) = (Skewness::of(-0.3), Skewness::of(0.2));
        let both = interval(down.or(up));
        assert_eq!(both.low.to_bits(), interval(down).low.to_bits());
        assert_eq!(both.high.to_bits(), interval(up).high.to_bits());
        assert_eq!(down.or(Skewness::of(-0.1)), down);
        assert_eq!(
            down.or(up).times(-1.0),
            Skewness::of(0.3).or(Skewness::of(-0.2))
        );
        assert_eq!(Skewness::of(f64::NAN), Skewness::default());
    }

    #[test]
    fn the_luck_of_starts_is_known_from_all_three() {
        // In turn one of twelve starts of each is slow; nothing else differs.
        let slow = |of: usize| -> Vec<f64> {
            (0..12)
                .map(|at| {
                    if at == of {
                        -0.03
                    } else {
                        0.001 * real(at % 3)
                    }
                })
                .collect()
        };
        let found = |ours: &[f64], one: &[f64], two: &[f64]| {
            let each = || std::iter::zip(ours, std::iter::zip(one, two));
            let values: Vec<f64> = each().map(|(c, (b, p))| c - (b + p) / 2.0).collect();
            let apart: Vec<f64> = each().map(|(_, (b, p))| (p - b) / 2.0).collect();
            of_starts(&values, &apart)
        };
        let steady = slow(99);
        // A slow start of a copy tells it as well as one of our own.
        for (ours, one, two) in [(1, 4, 7), (1, 4, 99), (99, 4, 99), (99, 99, 7)] {
            let skewness = found(&slow(ours), &slow(one), &slow(two));
            assert!(skewness.below() < -0.05, "{skewness:?}");
            assert!(skewness.above().abs() < 1e-12);
        }
        let mirrored = |of: &[f64]| of.iter().map(|value| -value).collect::<Vec<f64>>();
        let plain = found(&slow(1), &slow(4), &slow(7));
        let turned = found(
            &mirrored(&slow(1)),
            &mirrored(&slow(4)),
            &mirrored(&slow(7)),
        );
        assert!((plain.below() + turned.above()).abs() < 1e-12);
        // Without a slow start, without a second copy and of two blocks there is none.
        let alone = of_starts(&slow(1), &[0.0; 12]);
        let few = of_starts(&slow(1)[..2], &[0.1, 0.2]);
        for none in [found(&steady, &steady, &steady), alone, few] {
            assert_eq!(none, Skewness::default());
        }
    }

    #[test]
    fn p_says_what_the_interval_says() {
        let one = [-0.8, -0.2, 0.0, 0.4, 1.0].map(Skewness::of);
        let both = Skewness::of(-0.3).or(Skewness::of(0.2));
        for skewness in one.into_iter().chain([both]) {
            for shift in [-0.09, -0.03, -0.012, -0.006, 0.0, 0.004, 0.02, 0.05] {
                let values = VALUES.map(|value| value + shift);
                let found = SkewedMean::new(&values, skewness).unwrap();
                for level in [0.8, 0.9, 0.95, 0.99, 0.999] {
                    let out = !found.interval(level).contains(0.0);
                    assert_eq!(out, found.p() < 1.0 - level, "{skewness:?} {shift} {level}");
                }
            }
        }
    }

    #[test]
    fn equal_values_and_too_few() {
        let same = SkewedMean::new(&[0.5; 3], 0.7).unwrap();
        assert!(same.p_above() < 1e-12 && same.p() < 1e-12);
        assert_eq!(
            same.interval(0.95),
            Interval {
                low: 0.5,
                high: 0.5
            }
        );
        assert!(SkewedMean::new(&[0.0; 3], 0.0).unwrap().p() > 0.999);
        assert_eq!(
            SkewedMean::new(&[1.0], 0.0),
            Err(TooFew { have: 1, need: 2 })
        );
    }
}
