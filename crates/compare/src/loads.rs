//! From the block values of one or several loads to a ratio with its interval.

use crate::comparison::{Metric, Ratio, Verdict};
use crate::judge::{Judgement, decide, gain, told};
use crate::levels::scale;
use crate::placebo::Suspicion;
use crate::thresholds::{LEVEL_DIFFERENT, LEVEL_EQUIVALENT, MIN_BLOCKS, log_delta};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::Interval;
use deltabench_stats::between::{Between, difference_between, mean_between};
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;

/// Logarithms of block values, by load.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Loads {
    values: Vec<Vec<f64>>,
}

impl Loads {
    /// Loads without a block are left out.
    pub(crate) fn new(values: impl Iterator<Item = Vec<f64>>) -> Self {
        Self {
            values: values.filter(|load| !load.is_empty()).collect(),
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn blocks(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }

    fn slices(&self) -> Vec<&[f64]> {
        self.values.iter().map(Vec::as_slice).collect()
    }

    /// The mean over loads of the mean over blocks; absent without a load.
    pub(crate) fn centre(&self) -> Option<f64> {
        let means: Option<Vec<f64>> = self.values.iter().map(|load| mean(load)).collect();
        mean(&means?)
    }

    /// exp of the mean, with an interval that holds between loads where there are several. `within` is the
    /// level of Student's interval that holds inside of a load.
    pub(crate) fn ratio(&self, within: f64) -> Option<Ratio> {
        let found = mean_between(&self.slices()).ok();
        Some(ratio(self.centre()?, found.as_ref(), within))
    }

    /// exp of this mean less that of `first`, for loads of different runs.
    pub(crate) fn ratio_to(&self, first: &Self, within: f64) -> Option<Ratio> {
        let found = difference_between(&first.slices(), &self.slices()).ok();
        let difference = self.centre()? - first.centre()?;
        Some(ratio(difference, found.as_ref(), within))
    }

    /// What several loads say together by the rules for a fixed number of blocks.
    pub(crate) fn judge(&self, metric: Metric, delta: f64, within: f64) -> Judged {
        let Some(found) = self.between() else {
            return Judged::default();
        };
        Judged::of((&found, self.blocks()), metric, delta, within)
    }

    /// The mean over loads on the log scale; absent with too few values.
    pub(crate) fn between(&self) -> Option<Between> {
        mean_between(&self.slices()).ok()
    }

    /// What loads of a placebo that are off together have against verdicts, by the rule for one run: `share`
    /// of its offset is in a candidate's ratio.
    pub(crate) fn suspicion(&self, share: f64, delta: f64) -> Option<Suspicion> {
        let judged = self.judge(Metric::Throughput, delta, LEVEL_DIFFERENT);
        Suspicion::of(judged.p?, (self.centre()?, share), self.blocks(), delta)
    }
}

/// What several loads say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    /// 95 % interval of ln(candidate / base), turned so that below zero is worse.
    pub(crate) gain95: Option<Interval>,
    /// Two-sided p of "it is equal".
    pub(crate) p: Option<f64>,
}

impl Judged {
    /// The rules for a fixed number of blocks on a mean over loads, or on what one more load would say, from
    /// so many blocks.
    pub(crate) fn of(
        (found, blocks): (&Between, usize),
        metric: Metric,
        delta: f64,
        within: f64,
    ) -> Self {
        let ends = levels(within).map(|(level, within)| found.interval(level, within));
        let p = found.p_scaled(scale(within));
        Self::by(ends, blocks, (metric, delta), p)
    }

    /// The same by a ratio's own intervals, of which this is the p.
    pub(crate) fn of_ratio(
        ratio: &Ratio,
        blocks: usize,
        (metric, delta): (Metric, f64),
        p: f64,
    ) -> Self {
        let logs = |(low, high): (f64, f64)| Interval {
            low: low.ln(),
            high: high.ln(),
        };
        let ends = ratio.ci95.zip(ratio.ci90);
        ends.map_or_else(Self::default, |(ci95, ci90)| {
            Self::by([ci95, ci90].map(logs), blocks, (metric, delta), p)
        })
    }

    /// The same in words, as a judgement of one run says it.
    pub(crate) fn told(&self, metric: Metric, delta: f64) -> Judgement {
        Judgement {
            verdict: self.verdict,
            reason: told(metric, self.verdict, self.gain95, delta),
            gain95: self.gain95,
            missing: None,
        }
    }

    fn by(ends: [Interval; 2], blocks: usize, (metric, delta): (Metric, f64), p: f64) -> Self {
        let [different, equivalent] = ends.map(|ends| gain(metric, ends));
        Self {
            verdict: if blocks >= MIN_BLOCKS {
                decide(different, equivalent, equivalent, log_delta(delta))
            } else {
                Verdict::Inconclusive
            },
            gain95: Some(different),
            p: Some(p),
        }
    }
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

/// exp of a centre, with the intervals of what is known of it.
pub(crate) fn ratio(centre: f64, found: Option<&Between>, within: f64) -> Ratio {
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

/// The mean over loads, as wide as they scatter and at least as wide as what they say of themselves.
pub(crate) fn pooled(loads: &[Ratio]) -> Option<Ratio> {
    if let [one] = loads {
        return Some(*one);
    }
    let logs: Vec<f64> = loads.iter().map(|load| load.estimate.ln()).collect();
    let centre = mean(&logs)?;
    let interval = |level: f64, of: fn(&Ratio) -> Option<(f64, f64)>| {
        let halves = loads.iter().filter_map(of);
        let halves = halves.map(|(low, high)| (high / low).ln() / 2.0);
        let (low, high) = around(&logs, halves, level)?;
        Some((low.exp(), high.exp()))
    };
    Some(Ratio {
        estimate: centre.exp(),
        ci95: interval(LEVEL_DIFFERENT, |load| load.ci95),
        ci90: interval(LEVEL_EQUIVALENT, |load| load.ci90),
    })
}

/// The interval of a mean over loads: as wide as they scatter, and at least as wide as these half-widths of
/// theirs say together; `None` for a single one.
pub(crate) fn around(
    values: &[f64],
    halves: impl Iterator<Item = f64>,
    level: f64,
) -> Option<(f64, f64)> {
    let between = t_interval(values, level).ok()?;
    let squares: f64 = halves.map(|half| half.powi(2)).sum();
    let half = (between.half_width()).max(squares.sqrt() / to_f64(count(values.len())));
    let centre = mean(values)?;
    Some((centre - half, centre + half))
}
