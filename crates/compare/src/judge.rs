//! From an interval to a verdict (docs/sources/statistics.md#verdict).

use crate::comparison::{Better, Metric, Verdict};
use crate::levels::Levels;
use crate::sample::Values;
use crate::thresholds::{
    FORECAST_LIMIT, FORECAST_TIMES, LEVEL_DIFFERENT, LEVEL_EQUIVALENT, MIN_BLOCKS, log_delta,
};
use crate::words;
use deltabench_model::units::{count, to_f64};
use deltabench_stats::Interval;
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::sample_sd;

/// What the block values of one metric say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// In words, for example `slower by 3.4 % to 5.1 %`.
    pub(crate) reason: String,
    /// 95 % interval of ln(candidate / base), turned so that below zero is worse; absent with fewer than
    /// two blocks.
    pub(crate) gain95: Option<Interval>,
    /// Blocks that it might still take, where that is a number.
    pub(crate) missing: Option<usize>,
}

/// Log-ratios turned so that below zero is worse.
pub(crate) fn gains(metric: Metric, values: &Values) -> Values {
    values.times(sign(metric))
}

/// An interval of log-ratios turned so that below zero is worse.
pub(crate) fn gain(metric: Metric, logs: Interval) -> Interval {
    if sign(metric) > 0.0 {
        logs
    } else {
        Interval {
            low: -logs.high,
            high: -logs.low,
        }
    }
}

fn sign(metric: Metric) -> f64 {
    if metric.better() == Better::Higher {
        1.0
    } else {
        -1.0
    }
}

/// The verdict that the block values of `metric` alone give.
///
/// Totals decide. "No change" is said only if the typical operation has not changed either: a stall more and
/// a faster operation may cancel each other.
///
/// Of an open cell the reason says how many more are needed of what the plan repeats ([`Work::repeat`]).
///
/// [`Work::repeat`]: deltabench_model::work::Work::repeat
pub(crate) fn judge(
    metric: Metric,
    values: &Values,
    delta: f64,
    levels: Levels,
    repeat: &str,
) -> Judgement {
    let gains = gains(metric, values);
    let blocks = gains.logs.len();
    let Some(total) = gains.mean() else {
        return Judgement {
            verdict: Verdict::Inconclusive,
            reason: needs(&gains, delta, levels, repeat),
            gain95: None,
            missing: missing(&gains, delta, levels),
        };
    };
    let ci95 = levels.interval(&total);
    let wording = Wording::of(metric, delta);
    let open = |reason, missing| Judgement {
        verdict: Verdict::Inconclusive,
        reason,
        gain95: Some(ci95),
        missing,
    };
    if blocks < MIN_BLOCKS {
        let missing = missing(&gains, delta, levels);
        return open(needs(&gains, delta, levels, repeat), missing);
    }
    let typical = gains.of_typical();
    let verdict = look(&total, delta, levels);
    let reason = match verdict {
        Verdict::Regression | Verdict::Improvement => wording.changed(ci95),
        Verdict::NoChange => {
            match typical.filter(|typical| look(typical, delta, levels) != Verdict::NoChange) {
                None => wording.equal(ci95, total.centre),
                Some(typical) => {
                    let reason = wording.only_total(&typical, levels);
                    let typical = Values::plain(gains.typical);
                    return open(reason, missing(&typical, delta, levels));
                }
            }
        }
        _ => {
            let known = typical.and_then(|typical| wording.typical(&typical, delta, levels));
            let reason = format!(
                "{}; {}",
                wording.open(ci95),
                needs(&gains, delta, levels, repeat)
            );
            let reason = known.map_or_else(|| reason.clone(), |known| format!("{reason}; {known}"));
            return open(reason, missing(&gains, delta, levels));
        }
    };
    Judgement {
        verdict,
        reason,
        gain95: Some(ci95),
        missing: None,
    }
}

/// What the intervals of a mean say, turned so that below zero is worse.
fn look(mean: &SkewedMean, delta: f64, levels: Levels) -> Verdict {
    decide(
        mean.interval(levels.different),
        mean.interval(levels.equivalent),
        mean.interval(LEVEL_EQUIVALENT),
        log_delta(delta),
    )
}

/// A judgement that waits for `what`, on these block values: never a verdict, whatever they look like.
pub(crate) fn waiting(metric: Metric, values: &Values, delta: f64, what: &str) -> Judgement {
    let gains = gains(metric, values);
    let gain95 = gains.mean().map(|mean| mean.interval(LEVEL_DIFFERENT));
    Judgement {
        verdict: Verdict::Inconclusive,
        reason: match gain95.filter(|_| gains.logs.len() >= MIN_BLOCKS) {
            Some(ci95) => format!("{}; {what}", Wording::of(metric, delta).open(ci95)),
            None => what.to_owned(),
        },
        gain95,
        missing: missing(&gains, delta, Levels::FIXED),
    }
}

/// A verdict in words, with the 95 % interval of gains that it rests on; δ as a share.
pub(crate) fn told(
    metric: Metric,
    verdict: Verdict,
    gain95: Option<Interval>,
    delta: f64,
) -> String {
    let wording = Wording {
        metric,
        delta,
        sign: sign(metric),
    };
    match (verdict, gain95) {
        (_, None) => "nothing measured".to_owned(),
        (Verdict::Regression | Verdict::Improvement, Some(ci95)) => wording.changed(ci95),
        (Verdict::NoChange, Some(ci95)) => wording.equal(ci95, f64::midpoint(ci95.low, ci95.high)),
        (_, Some(ci95)) => wording.open(ci95),
    }
}

/// The table of docs/sources/statistics.md#verdict, in the order that makes its rows disjoint.
///
/// "Not inside ±δ" in its second row is read as the 90 % interval, as in the third and fourth: what the
/// equivalence test calls equal is never also called slower. A change that is real but shown to be below δ
/// is therefore no change.
///
/// Where a look tests "equal" more strictly than by the 90 % interval, what lies between is neither equal nor
/// slower: it stays open.
pub(crate) fn decide(
    different: Interval,
    equivalent: Interval,
    ci90: Interval,
    delta: f64,
) -> Verdict {
    if within(equivalent, delta) {
        Verdict::NoChange
    } else if within(ci90, delta) {
        Verdict::Inconclusive
    } else if different.high < 0.0 {
        Verdict::Regression
    } else if different.low > 0.0 {
        Verdict::Improvement
    } else {
        Verdict::Inconclusive
    }
}

fn within(interval: Interval, delta: f64) -> bool {
    interval.low > -delta && interval.high < delta
}

/// Turns intervals of gains back into what the reader knows: percent of the metric.
struct Wording {
    metric: Metric,
    delta: f64,
    sign: f64,
}

impl Wording {
    fn of(metric: Metric, delta: f64) -> Self {
        Self {
            metric,
            delta,
            sign: sign(metric),
        }
    }

    /// What is known of the typical operation where totals are open: that it changed.
    fn typical(&self, typical: &SkewedMean, delta: f64, levels: Levels) -> Option<String> {
        let verdict = look(typical, delta, levels);
        let ci95 = typical.interval(levels.printed);
        verdict
            .is_change()
            .then(|| format!("the typical operation is {}", self.changed(ci95)))
    }

    /// Totals are equal, and the typical operation is not shown to be.
    fn only_total(&self, typical: &SkewedMean, levels: Levels) -> String {
        let limit = words::threshold(self.delta);
        let known = self.typical(typical, self.delta, levels);
        let known = known.unwrap_or_else(|| "the typical operation may differ by more".to_owned());
        format!("totals within ±{limit}, but {known}")
    }

    /// The ends as ratios candidate / base, smaller distance from 1 first.
    fn ends(&self, gain: Interval) -> (f64, f64) {
        let (a, b) = ((self.sign * gain.low).exp(), (self.sign * gain.high).exp());
        if words::distance(a) <= words::distance(b) {
            (a, b)
        } else {
            (b, a)
        }
    }

    fn direction(&self, worse: bool) -> &'static str {
        match (self.metric.better(), worse) {
            (Better::Higher, true) => "slower",
            (Better::Higher, false) => "faster",
            (Better::Lower, true) => "higher",
            (Better::Lower, false) => "lower",
        }
    }

    fn changed(&self, ci95: Interval) -> String {
        let (near, far) = self.ends(ci95);
        let size = format!(
            "{} by {} to {}",
            self.direction(ci95.high < 0.0),
            words::percent(words::distance(near)),
            words::percent(words::distance(far)),
        );
        let delta = log_delta(self.delta);
        let material = ci95.high < -delta || ci95.low > delta;
        if material {
            format!("{size}, beyond ±{}", words::threshold(self.delta))
        } else {
            size
        }
    }

    fn equal(&self, ci95: Interval, centre: f64) -> String {
        let equal = format!("no change beyond ±{}", words::threshold(self.delta));
        if ci95.contains(0.0) {
            return equal;
        }
        let size = words::percent(words::distance((self.sign * centre).exp()));
        format!(
            "{equal} (measurably {} by {size})",
            self.direction(ci95.high < 0.0)
        )
    }

    fn open(&self, ci95: Interval) -> String {
        let name = if self.metric == Metric::Throughput {
            "throughput"
        } else {
            "CPU per operation"
        };
        let limit = words::threshold(self.delta);
        let (a, b) = (
            (self.sign * ci95.low).exp() - 1.0,
            (self.sign * ci95.high).exp() - 1.0,
        );
        let (low, high) = (words::signed(a.min(b)), words::signed(a.max(b)));
        if !ci95.contains(0.0) {
            // Fixed plans never come here: they look once.
            format!("{name} {low} to {high} is beyond chance for one look, not for several")
        } else if ci95.half_width() > log_delta(self.delta) {
            format!(
                "{name} ±{} is too wide for ±{limit}",
                words::percent(ci95.half_width().exp_m1())
            )
        } else {
            format!("{name} {low} to {high} shows neither a change nor equality within ±{limit}")
        }
    }
}

/// The number of blocks that might still decide; absent beyond [`forecast_limit`].
fn missing(gains: &Values, delta: f64, levels: Levels) -> Option<usize> {
    let have = gains.logs.len();
    let least = MIN_BLOCKS.saturating_sub(have).max(1);
    let Some(sd) = sample_sd(&gains.logs) else {
        return Some(least);
    };
    let total = forecast(gains, sd, log_delta(delta), levels)?;
    Some(total.saturating_sub(have).max(least))
}

/// `needs about N more blocks`, from what is known so far.
fn needs(gains: &Values, delta: f64, levels: Levels, repeat: &str) -> String {
    let have = gains.logs.len();
    let short = MIN_BLOCKS.saturating_sub(have);
    match missing(gains, delta, levels) {
        None => format!(
            "needs more than {} {}",
            forecast_limit(have),
            words::several(repeat)
        ),
        Some(missing) if missing == short => format!(
            "needs {} (a verdict takes {MIN_BLOCKS})",
            words::more(short, repeat)
        ),
        Some(missing) => format!("needs about {}", words::more(missing, repeat)),
    }
}

/// Blocks in all beyond which a forecast from `have` of them gives no number.
fn forecast_limit(have: usize) -> usize {
    FORECAST_LIMIT.min(FORECAST_TIMES * have.max(MIN_BLOCKS))
}

/// Total number of blocks that would decide, if estimate, sd and skewness stay as they are; `None` beyond
/// [`forecast_limit`].
///
/// Either answer will do: the 95 % interval leaves zero out, or the 90 % interval fits into ±δ. As estimates
/// move, about half of all cells will need more.
/// Source: without skewness B = ⌈t²·sd²/h²⌉ (docs/sources/statistics.md#blocks), t with B − 1 degrees of
/// freedom.
fn forecast(gains: &Values, sd: f64, delta: f64, levels: Levels) -> Option<usize> {
    let have = gains.logs.len();
    first_enough(have, forecast_limit(have), |blocks| {
        gains.of_blocks(blocks, sd).is_some_and(|mean| {
            !mean.interval(levels.different).contains(0.0)
                || within(mean.interval(levels.equivalent), delta)
        })
    })
}

/// The smallest number of blocks from `have` on whose half-width is below `half`.
pub(crate) fn blocks_for(level: f64, sd: f64, half: f64, have: usize) -> Option<usize> {
    first_enough(have, FORECAST_LIMIT, |blocks| {
        let t = t_quantile(0.5 + level / 2.0, to_f64(count(blocks - 1)));
        t * sd / to_f64(count(blocks)).sqrt() < half
    })
}

/// The smallest number of blocks from `have` on that is enough, up to `limit`.
fn first_enough(have: usize, limit: usize, enough: impl Fn(usize) -> bool) -> Option<usize> {
    // Intervals become shorter with every block, so the first that is enough can be bisected.
    let (mut short, mut first) = (have.max(MIN_BLOCKS).checked_sub(1)?, limit);
    if first <= short || !enough(first) {
        return None;
    }
    while first - short > 1 {
        let middle = short + (first - short) / 2;
        if enough(middle) {
            first = middle;
        } else {
            short = middle;
        }
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_stats::skewed::Skewness;

    const DELTA: f64 = 0.03;

    fn judged(metric: Metric, logs: &[f64]) -> Judgement {
        judge(
            metric,
            &Values::plain(logs.to_vec()),
            DELTA,
            Levels::FIXED,
            "block",
        )
    }

    #[test]
    fn no_change_needs_totals_and_the_typical_operation() {
        let values = Values {
            logs: vec![0.001, -0.002, 0.0, 0.002, -0.001, 0.0],
            typical: vec![0.05, 0.051, 0.049, 0.05, 0.052, 0.048],
            skewness: Skewness::default(),
        };
        let found = judge(Metric::Throughput, &values, DELTA, Levels::FIXED, "block");
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert_eq!(
            found.reason,
            "totals within ±3 %, but the typical operation is faster by 5.0 % to 5.3 %, beyond ±3 %"
        );
    }

    #[test]
    fn a_skewed_total_is_open_and_says_what_is_known_of_the_typical_operation() {
        let values = Values {
            logs: vec![-0.05, -0.3, -0.04, -0.05, 0.05, -0.05],
            typical: vec![-0.05, -0.051, -0.049, -0.05, -0.052, -0.048],
            skewness: Skewness::of(-0.8),
        };
        let found = judge(Metric::Throughput, &values, DELTA, Levels::FIXED, "block");
        assert_eq!(found.verdict, Verdict::Inconclusive);
        let known = "the typical operation is slower by 4.7 % to 5.0 %, beyond ±3 %";
        assert!(found.reason.ends_with(known), "{}", found.reason);
    }

    #[test]
    fn the_rows_of_the_table_are_tried_in_order() {
        let verdict = |low95: f64, low90: f64, high90: f64, high95: f64| {
            let interval = |low, high| Interval { low, high };
            let ci90 = interval(low90, high90);
            decide(interval(low95, high95), ci90, ci90, DELTA)
        };
        assert_eq!(verdict(-0.06, -0.055, -0.045, -0.04), Verdict::Regression);
        assert_eq!(verdict(-0.06, -0.05, -0.02, -0.01), Verdict::Regression);
        assert_eq!(
            verdict(-0.031, -0.029, -0.005, -0.001),
            Verdict::NoChange,
            "the 90 % interval decides"
        );
        assert_eq!(verdict(-0.03, -0.02, 0.02, 0.03), Verdict::NoChange);
        assert_eq!(verdict(0.001, 0.01, 0.04, 0.05), Verdict::Improvement);
        assert_eq!(verdict(-0.01, 0.001, 0.04, 0.05), Verdict::Inconclusive);
        assert_eq!(verdict(-0.05, -0.04, 0.04, 0.05), Verdict::Inconclusive);
        assert_eq!(
            verdict(-0.04, -DELTA, 0.0, 0.01),
            Verdict::Inconclusive,
            "the edge is outside"
        );
    }

    #[test]
    fn a_forecast_is_the_first_number_of_blocks_that_decides() {
        for (centre, sd) in [
            (0.0, 0.05),
            (0.01, 0.03),
            (-0.02, 0.04),
            (0.029, 0.05),
            (0.1, 0.2),
        ] {
            let decides = |blocks: usize| {
                let half = |level: f64| {
                    t_quantile(0.5 + level / 2.0, to_f64(count(blocks - 1))) * sd
                        / to_f64(count(blocks)).sqrt()
                };
                half(LEVEL_DIFFERENT) < f64::abs(centre)
                    || half(LEVEL_EQUIVALENT) < DELTA - f64::abs(centre)
            };
            let first = (MIN_BLOCKS..=forecast_limit(6)).find(|&blocks| decides(blocks));
            let gains = Values::plain(vec![centre; 6]);
            let found = forecast(&gains, sd, DELTA, Levels::FIXED);
            assert_eq!(found, first, "{centre} ±{sd}");
        }
        let gains = Values::plain(vec![0.0; 6]);
        assert_eq!(forecast(&gains, 3.0, DELTA, Levels::FIXED), None);
    }

    #[test]
    fn a_forecast_knows_that_skewed_blocks_need_more() {
        let logs = [0.064, 0.024, -0.016, 0.054, 0.024, -0.006, 0.024, 0.024];
        let mut values = Values::plain(logs.to_vec());
        let judged =
            |values: &Values| judge(Metric::Throughput, values, DELTA, Levels::FIXED, "block");
        assert_eq!(judged(&values).verdict, Verdict::Improvement);
        // By Student's t nothing is missing.
        values.skewness = Skewness::of(-0.3);
        let found = judged(&values);
        assert_eq!(
            (found.verdict, found.missing),
            (Verdict::Inconclusive, Some(3))
        );
        let told = found.reason.contains("needs about 3 more blocks");
        assert!(told, "{}", found.reason);
    }

    #[test]
    fn equal_blocks_decide_at_once_and_one_block_never() {
        assert_eq!(
            judged(Metric::Throughput, &[0.0; 6]).verdict,
            Verdict::NoChange
        );
        assert_eq!(
            judged(Metric::Throughput, &[-0.1; 6]).verdict,
            Verdict::Regression
        );
        assert_eq!(
            judged(Metric::ServerCpuPerOperation, &[-0.1; 6]).verdict,
            Verdict::Improvement
        );
        let one = judged(Metric::Throughput, &[-0.1]);
        assert_eq!((one.verdict, one.gain95), (Verdict::Inconclusive, None));
    }
}
