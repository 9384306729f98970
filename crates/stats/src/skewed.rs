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

/// A mean, its standard error and the skewness of its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SkewedMean {
    /// The mean.
    pub centre: f64,
    error: f64,
    df: f64,
    skewness: f64,
}

impl SkewedMean {
    /// Of independent values whose mean has an error of this skewness (its third central moment over the cube
    /// of its standard deviation; 0 is Student's t).
    ///
    /// Errors: [`TooFew`] for fewer than two values.
    pub fn new(values: &[f64], skewness: f64) -> Result<Self, TooFew> {
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
    pub fn assumed(centre: f64, error: f64, df: f64, skewness: f64) -> Self {
        Self {
            centre,
            error,
            df,
            skewness: skewness.clamp(-SKEWNESS_MOST, SKEWNESS_MOST),
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
            low: self.centre - self.error * t.max(self.back(t).min(t + FARTHEST)),
            high: self.centre - self.error * (-t).min(self.back(-t).max(-t - FARTHEST)),
        }
    }

    /// One-sided p of "the mean is at most zero", by the same rule as the interval. Without any error 0 above
    /// zero, and 1 otherwise.
    pub fn p_above(&self) -> f64 {
        if self.error > 0.0 {
            let t = self.centre / self.error;
            // The inverse of an end's distance: each step of it rises with t.
            t_cdf(-t.min(self.transformed(t).max(t - FARTHEST)), self.df)
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
            skewness: -self.skewness,
            ..*self
        }
    }

    /// Two-sided p of "the mean is zero": below 1 − level exactly if the interval at that level leaves out
    /// zero.
    pub fn p(&self) -> f64 {
        (2.0 * self.p_above().min(self.mirrored().p_above())).min(1.0)
    }

    /// Hall's cubic: nearly as Student's t.
    fn transformed(&self, t: f64) -> f64 {
        let a = self.skewness;
        t + a * (t * t / 3.0 + 1.0 / 6.0) + a * a * t.powi(3) / 27.0
    }

    /// The inverse of [`SkewedMean::transformed`].
    fn back(&self, value: f64) -> f64 {
        let a = self.skewness;
        if a.abs() < 1e-6 {
            value
        } else {
            3.0 / a * ((1.0 + a * (value - a / 6.0)).cbrt() - 1.0)
        }
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
    fn p_says_what_the_interval_says() {
        for skewness in [-0.8, -0.2, 0.0, 0.4, 1.0] {
            for shift in [-0.09, -0.03, -0.012, -0.006, 0.0, 0.004, 0.02, 0.05] {
                let values = VALUES.map(|value| value + shift);
                let found = SkewedMean::new(&values, skewness).unwrap();
                for level in [0.8, 0.9, 0.95, 0.99, 0.999] {
                    let out = !found.interval(level).contains(0.0);
                    assert_eq!(out, found.p() < 1.0 - level, "{skewness} {shift} {level}");
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
