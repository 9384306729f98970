//! Estimates that are known only because they were called different.

use crate::thresholds::LEVEL_DIFFERENT;
use deltabench_stats::normal::{normal_density, normal_tail};
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::student::t_quantile;

/// An estimate of the difference that was found, turned so that it was found above zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub(crate) centre: f64,
    pub(crate) error: f64,
    pub(crate) df: f64,
}

impl Estimate {
    pub(crate) fn of(mean: &SkewedMean) -> Option<Self> {
        (mean.error() > 0.0).then(|| Self {
            centre: mean.centre,
            error: mean.error(),
            df: mean.df(),
        })
    }
}

/// What is left of a mean that was called different at this level, without that selection: the estimate of
/// maximum conditional likelihood, not beyond zero; `None` for one without an error.
pub(crate) fn left_of(mean: &SkewedMean, level: f64) -> Option<f64> {
    let sign = mean.centre.signum();
    let found = Estimate {
        centre: mean.centre.abs(),
        ..Estimate::of(mean)?
    };
    let left = Selected::new(found, level).solved(|_| (0.0, 0.0));
    Some(sign * left.centre.max(0.0))
}

/// An estimate that is known only because its interval left out zero: a normal value, cut off below the
/// half-width of that interval.
///
/// Source: the conditional likelihood of a significant estimate (Zhong & Prentice 2008, "Bias-reduced
/// estimators and confidence intervals for odds ratios in genome-wide association studies", eq. 2).
pub(crate) struct Selected {
    estimate: Estimate,
    /// The smallest value that would have been called different, in standard errors.
    least: f64,
}

impl Selected {
    pub(crate) fn new(estimate: Estimate, level: f64) -> Self {
        let least = t_quantile(0.5 + level / 2.0, estimate.df);
        Self { estimate, least }
    }

    /// Mean excess of a value above `least`, in standard errors, if `truth` is the mean: the inverse Mills
    /// ratio.
    fn excess(&self, truth: f64) -> f64 {
        let below = self.least - truth / self.estimate.error;
        let tail = normal_tail(below);
        if tail > 1e-300 {
            normal_density(below) / tail
        } else {
            below
        }
    }

    /// Slope of the conditional log-likelihood at a truth, and what it knows of it.
    fn slope(&self, truth: f64) -> (f64, f64) {
        let Estimate { centre, error, .. } = self.estimate;
        let (excess, below) = (self.excess(truth), self.least - truth / error);
        let slope = ((centre - truth) / error - excess) / error;
        let known = (1.0 - excess * (excess - below)).clamp(1e-6, 1.0);
        (slope, known / error.powi(2))
    }

    /// The common estimate of this one and one that nothing has selected, by maximum conditional likelihood.
    pub(crate) fn with(&self, other: Estimate) -> Estimate {
        self.solved(|truth| {
            let weight = other.error.powi(-2);
            ((other.centre - truth) * weight, weight)
        })
        .with_df(self.estimate.df.min(other.df))
    }

    /// Whether the other excludes what is left of this one without its selection.
    pub(crate) fn is_denied_by(&self, other: Estimate) -> bool {
        let left = self.solved(|_| (0.0, 0.0));
        let error = left.error.hypot(other.error);
        let df = self.estimate.df.min(other.df);
        left.centre - other.centre > t_quantile(0.5 + LEVEL_DIFFERENT / 2.0, df) * error
    }

    /// The truth at which the slopes of this likelihood and `more` cancel; both fall everywhere.
    fn solved(&self, more: impl Fn(f64) -> (f64, f64)) -> Estimate {
        let Estimate { centre, error, df } = self.estimate;
        let slope = |truth: f64| self.slope(truth).0 + more(truth).0;
        let (mut low, mut high) = (centre - 40.0 * error, centre);
        while slope(high) > 0.0 {
            high += (high - low).abs();
        }
        while slope(low) < 0.0 && low > centre - 1e6 * error {
            low -= (high - low).abs();
        }
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if slope(middle) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let known = self.slope(low).1 + more(low).1;
        Estimate {
            centre: low,
            error: known.sqrt().recip(),
            df,
        }
    }
}

impl Estimate {
    fn with_df(self, df: f64) -> Self {
        Self { df, ..self }
    }
}
