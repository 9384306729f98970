//! How much two versions differ, and how sure that is.

use crate::Measured;
use deltabench_stats::between::{Between, mean_between};
use deltabench_stats::student::{t_cdf, t_quantile};

/// Levels of the intervals: for "different", and for "equal".
const LEVELS: (f64, f64) = (0.95, 0.90);

/// A log-ratio with how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    pub value: f64,
    /// The interval that decides about "different".
    pub ci95: (f64, f64),
    /// The interval that decides about "equal".
    pub ci90: (f64, f64),
    /// Two-sided p of "it is zero".
    pub p: f64,
    /// Standard error.
    pub error: f64,
}

impl Difference {
    pub(crate) fn of(value: f64, error: f64, df: f64) -> Self {
        let interval = |level: f64| {
            let half = t_quantile(0.5 + level / 2.0, df) * error;
            (value - half, value + half)
        };
        Self {
            value,
            ci95: interval(LEVELS.0),
            ci90: interval(LEVELS.1),
            p: match error > 0.0 {
                true => 2.0 * t_cdf(-(value / error).abs(), df),
                false => 1.0,
            },
            error,
        }
    }

    /// `times`: how many times the p of blocks counts ([`Measured::times`]).
    pub(crate) fn between(mean: &Between, times: f64) -> Self {
        let interval = |level: f64| {
            let found = mean.interval(level, 1.0 - (1.0 - level) / times);
            (found.low, found.high)
        };
        Self {
            value: mean.estimate,
            ci95: interval(LEVELS.0),
            ci90: interval(LEVELS.1),
            p: mean.p_scaled(times),
            error: mean.error(),
        }
    }
}

impl Measured {
    /// Version `to` relative to `from` by the blocks of this run: it holds for its hour. `None` if one is
    /// missing, or there are no two blocks.
    pub fn difference(&self, from: usize, to: usize) -> Option<Difference> {
        let blocks = self.contrast(from, to).filter(|all| all.len() > 1)?;
        let mean = mean_between(&[&blocks]).ok()?;
        Some(Difference::between(&mean, self.times))
    }
}
