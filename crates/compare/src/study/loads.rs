//! From the block values of one or several loads to a ratio with its interval.

use crate::comparison::{Metric, Ratio, Verdict};
use crate::judge::{decide, gain};
use crate::thresholds::{LEVEL_DIFFERENT, LEVEL_EQUIVALENT, MIN_BLOCKS, log_delta};
use deltabench_stats::Interval;
use deltabench_stats::between::{Between, difference_between, mean_between};
use deltabench_stats::summary::mean;

/// Logarithms of block values, by load.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Loads {
    values: Vec<Vec<f64>>,
}

impl Loads {
    /// Loads without a block are left out.
    pub(super) fn new(values: impl Iterator<Item = Vec<f64>>) -> Self {
        Self {
            values: values.filter(|load| !load.is_empty()).collect(),
        }
    }

    pub(super) fn number(&self) -> usize {
        self.values.len()
    }

    pub(super) fn blocks(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }

    fn slices(&self) -> Vec<&[f64]> {
        self.values.iter().map(Vec::as_slice).collect()
    }

    /// The mean over loads of the mean over blocks; absent without a load.
    pub(super) fn centre(&self) -> Option<f64> {
        let means: Option<Vec<f64>> = self.values.iter().map(|load| mean(load)).collect();
        mean(&means?)
    }

    /// exp of the mean, with an interval that holds between loads where there are several. `within` is the
    /// level of Student's interval that holds inside of a load.
    pub(super) fn ratio(&self, within: f64) -> Option<Ratio> {
        let found = mean_between(&self.slices()).ok();
        Some(ratio(self.centre()?, found.as_ref(), within))
    }

    /// exp of this mean less that of `first`, for loads of different runs.
    pub(super) fn ratio_to(&self, first: &Self, within: f64) -> Option<Ratio> {
        let found = difference_between(&first.slices(), &self.slices()).ok();
        let difference = self.centre()? - first.centre()?;
        Some(ratio(difference, found.as_ref(), within))
    }

    /// What several loads say together by the rules for a fixed number of blocks.
    pub(super) fn judge(&self, metric: Metric, delta: f64, within: f64) -> Judged {
        let Ok(found) = mean_between(&self.slices()) else {
            return Judged::default();
        };
        let [different, equivalent] =
            levels(within).map(|(level, within)| gain(metric, found.interval(level, within)));
        let verdict = if self.blocks() < MIN_BLOCKS {
            Verdict::Inconclusive
        } else {
            decide(different, equivalent, equivalent, log_delta(delta))
        };
        Judged {
            verdict,
            gain95: Some(different),
            p: Some(found.p()),
        }
    }
}

/// What several loads say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// 95 % interval of ln(candidate / base), turned so that below zero is worse.
    pub(super) gain95: Option<Interval>,
    /// Two-sided p of "it is equal".
    pub(super) p: Option<f64>,
}

impl Default for Judged {
    fn default() -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            gain95: None,
            p: None,
        }
    }
}

/// Levels of the 95 % and of the 90 % interval, between loads and within one.
fn levels(within: f64) -> [(f64, f64); 2] {
    [
        (LEVEL_DIFFERENT, within),
        (LEVEL_EQUIVALENT, 2.0 * within - 1.0),
    ]
}

fn ratio(centre: f64, found: Option<&Between>, within: f64) -> Ratio {
    let [ci95, ci90] = levels(within).map(|(level, within)| {
        found.map(|found| {
            let interval = found.interval(level, within);
            (interval.low.exp(), interval.high.exp())
        })
    });
    Ratio {
        estimate: centre.exp(),
        ci95,
        ci90,
    }
}
