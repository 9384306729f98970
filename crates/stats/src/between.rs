//! Values in groups that have a luck of their own: intervals that hold between groups.
//!
//! The groups are few (2 to 5), so nothing can be estimated about how they scatter beyond what their means
//! show. Equal weights, and Student's t over the means of the groups: that is the random-effects interval of
//! Hartung & Knapp and Sidik & Jonkman with equal weights. It needs no estimate of the variance between
//! groups, and is exact for groups that are equally precise whatever that variance is; for others it errs on
//! the safe side at 95 %. Two means may lie side by side by luck, and then claim more than the values inside
//! the groups do; so it is never narrower than what these say (the fixed-effect width, as Knapp & Hartung's
//! correction of at least 1).

use crate::number::real;
use crate::student::{t_cdf, t_quantile};
use crate::summary::{mean, sample_sd};
use crate::{Interval, TooFew};
use statrs::function::gamma::digamma;

/// Degrees of freedom that a scatter has at most: cells are not alike enough for more.
const MOST_DF: f64 = 60.0;

/// Halvings of a range of many powers of ten that leave no digit open.
const BISECTIONS: usize = 60;
/// How near the ends of a range are to each other when nine digits are known.
const NEAR: f64 = 1.0 + 1e-9;

/// A mean over groups, or a difference of two such means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Between {
    /// The mean of the means of the groups, or the second such mean less the first.
    pub estimate: f64,
    /// What the scatter of the groups' means says; absent where there are no two groups.
    between: Option<Spread>,
    /// What the values inside the groups say; absent where a group has fewer than two.
    within: Option<Spread>,
    /// Groups behind a mean; absent for a difference.
    groups: Option<usize>,
}

/// A standard error and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    error: f64,
    df: f64,
}

impl Between {
    /// The interval at `level`: the wider one of what groups and values say.
    ///
    /// The part from within the groups is taken at `within`, for values whose number followed from their
    /// scatter; else the same as `level`.
    ///
    /// Shape: levels such as 0.95, between 0 and 1 (anything else stops with a message).
    ///
    /// # Panics
    /// If a level is outside 0..1.
    pub fn interval(&self, level: f64, within: f64) -> Interval {
        let half = |spread: Option<Spread>, level: f64| {
            assert!(
                level > 0.0 && level < 1.0,
                "a confidence level is between 0 and 1, not {level}"
            );
            spread.map_or(0.0, |spread| {
                t_quantile(0.5 + level / 2.0, spread.df) * spread.error
            })
        };
        let half = half(self.between, level).max(half(self.within, within));
        Interval {
            low: self.estimate - half,
            high: self.estimate + half,
        }
    }

    /// Two-sided p of "it is zero": the larger one of what groups and values say.
    pub fn p(&self) -> f64 {
        self.p_scaled(1.0)
    }

    /// The same with so many times the p of what the values inside the groups say: below 5 % exactly if the
    /// interval at 95 %, and at 1 − 5 % / `times` within, leaves zero out.
    pub fn p_scaled(&self, times: f64) -> f64 {
        let p = |spread: Spread| {
            if spread.error > 0.0 {
                2.0 * t_cdf(-(self.estimate / spread.error).abs(), spread.df)
            } else if self.estimate.abs() > 0.0 {
                0.0
            } else {
                1.0
            }
        };
        let within = self.within.map(|spread| p(spread) * times);
        let both = [self.between.map(p), within].into_iter().flatten();
        both.fold(0.0, f64::max).min(1.0)
    }

    /// The larger standard error of what groups and values say; 0 where nothing is known of either.
    pub fn error(&self) -> f64 {
        let both = [self.between, self.within].into_iter().flatten();
        both.map(|spread| spread.error).fold(0.0, f64::max)
    }

    /// This mean less another one that has nothing to do with it.
    ///
    /// Source: variances add; with the fewer degrees of freedom of both, which errs on the safe side of
    ///         Satterthwaite 1946.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        let both = |one: Option<Spread>, other: Option<Spread>| match (one, other) {
            (Some(one), Some(other)) => Some(Spread {
                error: one.error.hypot(other.error),
                df: one.df.min(other.df),
            }),
            (one, other) => one.or(other),
        };
        Self {
            estimate: self.estimate - other.estimate,
            between: both(self.between, other.between),
            within: both(self.within, other.within),
            groups: None,
        }
    }

    /// The same errors around another centre.
    #[must_use]
    pub fn around(&self, estimate: f64) -> Self {
        Self { estimate, ..*self }
    }

    /// Whether it holds between groups, and not only inside of one.
    pub fn holds_between(&self) -> bool {
        self.between.is_some()
    }

    /// What the mean of one more group would be: the same centre, with the error of a new group's mean.
    ///
    /// Shape:  `None` where nothing is known of how groups scatter, and for a difference.
    /// Source: the prediction interval for one further observation, mean ± t(n − 1) · sd · √(1 + 1/n) (Hahn &
    ///         Meeker 1991, 4.7): exact for groups that are equally precise, whatever scatters between them.
    ///         Like the mean's own interval it is never narrower than the values inside the groups allow.
    ///         Coverage: tests/it/hours.rs.
    #[must_use]
    pub fn next_group(&self) -> Option<Self> {
        let groups = self.groups.filter(|_| self.between.is_some())?;
        // sd·√(1 + 1/n) is sd/√n times √(n + 1), between groups and within.
        let wider = real(groups + 1).sqrt();
        let next = |spread: Spread| Spread {
            error: spread.error * wider,
            ..spread
        };
        Some(Self {
            between: self.between.map(next),
            within: self.within.map(next),
            groups: None,
            ..*self
        })
    }

    /// One-sided p of "it is at least `bound`": the larger one of what groups and values say.
    pub fn p_below(&self, bound: f64) -> f64 {
        self.p_below_scaled(bound, 1.0)
    }

    /// The same with so many times the p of what the values inside the groups say, as
    /// [`Between::p_scaled`].
    pub fn p_below_scaled(&self, bound: f64, times: f64) -> f64 {
        let p = |spread: Spread| {
            let distance = bound - self.estimate;
            if spread.error > 0.0 {
                t_cdf(-distance / spread.error, spread.df)
            } else if distance > 0.0 {
                0.0
            } else {
                1.0
            }
        };
        let within = self.within.map(|spread| p(spread) * times);
        let both = [self.between.map(p), within].into_iter().flatten();
        both.fold(0.0, f64::max).min(1.0)
    }
}

/// How much the means of groups scatter that measured the same thing, over several such sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Variance of a group's mean: between groups and within.
    pub variance: f64,
    /// The part of it that the values inside the groups explain.
    pub within: f64,
    /// Degrees of freedom: groups less sets.
    pub df: f64,
}

impl Scatter {
    /// Pools sets of groups; each set has a truth of its own.
    ///
    /// Shape:  sets of fewer than two groups, and groups of fewer than two values, say nothing and are left
    ///         out; `None` if nothing is left.
    /// Units:  squares of the values'.
    /// Source: the pooled sample variance; each set counts with its degrees of freedom.
    pub fn pooled(sets: &[Vec<&[f64]>]) -> Option<Self> {
        let (mut squares, mut within, mut df) = (0.0, 0.0, 0.0);
        for set in sets {
            let known: Vec<&[f64]> = { set.iter() }.filter(|g| g.len() > 1).copied().collect();
            let Ok(side) = Side::new(&known) else {
                continue;
            };
            let (Some(sd), Some(parts)) = (side.scatter, side.within) else {
                continue;
            };
            let own = real(known.len() - 1);
            // A part is a group's variance over the square of their number.
            let inside: f64 = parts.iter().map(|part| part.0).sum();
            squares += own * sd.powi(2);
            within += own * inside * real(known.len());
            df += own;
        }
        (df > 0.0).then(|| Self {
            variance: squares / df,
            within: within / df,
            df,
        })
    }

    /// The standard deviation between groups, without what is inside of them; 0 where they explain all.
    pub fn between(&self) -> f64 {
        (self.variance - self.within).max(0.0).sqrt()
    }

    /// This scatter and another reason to scatter between groups, of this variance that is known like one of
    /// `df` degrees of freedom. Where `df` is larger than this one's own a small part may still make an
    /// interval narrower.
    ///
    /// Source: Satterthwaite 1946, degrees of freedom of a sum of variances, but at most those of the better
    ///         known one. His rule is about measured variances: of two that are assumed the sum would seem
    ///         known better than both, and a further reason would make an interval narrower.
    #[must_use]
    pub fn and(&self, variance: f64, df: f64) -> Self {
        if variance <= 0.0 {
            return *self;
        }
        let sum = self.variance + variance;
        let both = sum.powi(2) / (self.variance.powi(2) / self.df + variance.powi(2) / df);
        Self {
            variance: sum,
            df: both.min(self.df.max(df)).min(MOST_DF),
            ..*self
        }
    }

    /// A scatter that nothing was measured of: this standard deviation between groups, known like one of `df`
    /// degrees of freedom, and inside what these groups say.
    ///
    /// Errors: [`TooFew`] if no group has two values.
    pub fn assumed(sd: f64, df: f64, groups: &[&[f64]]) -> Result<Self, TooFew> {
        let within = within(groups)?;
        Ok(Self {
            variance: sd.powi(2) + within,
            within,
            df,
        })
    }

    /// This scatter drawn towards a prior, which counts as its degrees of freedom. What is within stays its
    /// own: the prior's groups may have been more precise or less.
    ///
    /// Shape:  at most 60 degrees of freedom: no pool of groups is worth more.
    /// Source: the posterior of a variance with a scaled inverse chi-square prior, (ν₀V₀ + dV) / (ν₀ + d)
    ///         (Smyth 2004, section 3), with V₀ = what the prior has between + what this one has within.
    #[must_use]
    pub fn towards(&self, prior: &Self) -> Self {
        let df = prior.df + self.df;
        let expected = prior.variance - prior.within + self.within;
        Self {
            variance: (prior.df * expected + self.df * self.variance) / df,
            within: self.within,
            df: df.min(MOST_DF),
        }
    }

    /// What many scatters that are alike say of how a further one scatters between its groups: a scatter with
    /// nothing within, for [`Scatter::towards`], with the degrees of freedom this is worth.
    ///
    /// Their groups may be of unlike precision. So each variance is compared with τ² + its own `within`, and
    /// weighs as much as it says of τ²: 1 / (τ² + within).
    ///
    /// Shape:  at least three; `None` for fewer, or if nothing scatters. A variance far below what it should
    ///         be counts as a thousandth of it, because the logarithm of 0 is not finite. Never worth more
    ///         degrees of freedom than the given ones have, by these weights.
    /// Source: moments of ln S² (Smyth 2004, section 6.2), of ln (S² / (τ² + within)) here: τ² by bisection,
    ///         excess variance as by DerSimonian & Laird 1986. With nothing within it is Smyth's.
    pub fn prior(known: &[Self]) -> Option<Self> {
        if known.len() < 3 {
            return None;
        }
        let middle = mean(&known.iter().map(|one| one.variance).collect::<Vec<f64>>())?;
        if middle <= 0.0 {
            return None;
        }
        let largest = known.iter().map(|one| one.variance).fold(0.0, f64::max);
        // ln S² is corrected by at most 1.3.
        let (least, mut low, mut high) = (middle / 1e6, middle / 1e6, 10.0 * largest);
        let logged: Vec<Logged> = known.iter().map(|one| Logged::of(one, middle)).collect();
        for _ in 0..BISECTIONS {
            if high <= low * NEAR {
                break;
            }
            let between = (low * high).sqrt();
            if Moments::of(&logged, between).excess_of_centre() > 0.0 {
                low = between;
            } else {
                high = between;
            }
        }
        let found = Moments::of(&logged, low);
        Some(Self {
            // Next to the lower end none was found.
            variance: if low > 2.0 * least { low } else { 0.0 },
            within: 0.0,
            df: found.df.min(found.worth),
        })
    }

    /// The mean over groups that measured one thing, by this scatter instead of their own: at least as wide
    /// as what is known from within.
    ///
    /// Groups that are less precise than those behind the scatter add what they lack; more precise ones take
    /// nothing off, because that difference of two estimates might be anything.
    ///
    /// Shape:  as [`mean_between`].
    /// Errors: [`TooFew`] as there.
    /// Source: as [`mean_between`], with a variance and its degrees of freedom that include other groups.
    ///         Coverage: tests/it/hours.rs.
    pub fn mean_over(&self, groups: &[&[f64]]) -> Result<Between, TooFew> {
        let found = mean_between(groups)?;
        Ok(Between {
            between: Some(Spread {
                error: (self.of_group(within(groups)?) / real(groups.len())).sqrt(),
                df: self.df,
            }),
            ..found
        })
    }

    /// What one more group would be that is no more precise than `like`, one of these groups, nor than they
    /// are on average: the same centre, with the error of that group's mean.
    ///
    /// Shape:  as [`Scatter::mean_over`].
    /// Errors: [`TooFew`] as there, or if `like` has no two values.
    /// Source: [`Between::next_group`], for groups of unlike precision.
    pub fn next_like(&self, like: &[f64], groups: &[&[f64]]) -> Result<Between, TooFew> {
        let mean = self.mean_over(groups)?;
        let (own, others) = (within(&[like])?, within(groups)?);
        let inside = own.max(others);
        let and = |spread: Spread, variance: f64, df: f64| Spread {
            error: (spread.error.powi(2) + variance).sqrt(),
            df: spread.df.min(df),
        };
        let df = if own > others {
            real(like.len() - 1)
        } else {
            f64::INFINITY
        };
        Ok(Between {
            between: mean
                .between
                .map(|spread| and(spread, self.of_group(inside), f64::INFINITY)),
            within: mean.within.map(|spread| and(spread, inside, df)),
            groups: None,
            ..mean
        })
    }

    /// Variance of the mean of a group whose values say this much of it.
    fn of_group(&self, within: f64) -> f64 {
        self.variance + (within - self.within).max(0.0)
    }
}

/// Mean variance of the groups' means, by the values inside of them.
fn within(groups: &[&[f64]]) -> Result<f64, TooFew> {
    let of = |group: &&[f64]| Some(sample_sd(group)?.powi(2) / real(group.len()));
    let parts: Vec<f64> = groups.iter().filter_map(of).collect();
    mean(&parts).ok_or(TooFew { have: 1, need: 2 })
}

/// What does not depend on τ² of a scatter's part in [`Moments`]: a search for τ² asks many times.
struct Logged {
    within: f64,
    df: f64,
    /// ln S² without what chance does to it on average.
    log: f64,
    /// What chance does to the variance of ln S².
    chance: f64,
}

impl Logged {
    /// A scatter of nothing, where nothing is within, counts as a thousandth of `middle`.
    fn of(one: &Scatter, middle: f64) -> Self {
        let scale = if one.within > 0.0 { one.within } else { middle };
        let half = one.df / 2.0;
        Self {
            within: one.within,
            df: one.df,
            log: one.variance.max(scale / 1000.0).ln() - digamma(half) + half.ln(),
            chance: trigamma(half),
        }
    }
}

/// Moments of ln (S² / (τ² + within)) over scatters, without what chance does to ln S².
struct Moments {
    centre: f64,
    /// Degrees of freedom of the chi-square that spreads so much, [`MOST_DF`] at most.
    df: f64,
    /// Degrees of freedom behind it, by weight.
    worth: f64,
}

impl Moments {
    /// For this τ².
    fn of(known: &[Logged], between: f64) -> Self {
        let weighed = known.iter().map(|one| {
            let expected = between + one.within;
            (1.0 / expected, one.log - expected.ln(), one)
        });
        let weighed: Vec<(f64, f64, &Logged)> = weighed.collect();
        let sum = |of: &dyn Fn(&(f64, f64, &Logged)) -> f64| weighed.iter().map(of).sum::<f64>();
        let all = sum(&|(weight, ..)| *weight);
        let centre = sum(&|(weight, log, _)| weight * log) / all;
        let squares = sum(&|(weight, log, _)| weight * (log - centre).powi(2));
        let chance = sum(&|(weight, _, one)| weight * (1.0 - weight / all) * one.chance);
        let number = all - sum(&|(weight, ..)| weight.powi(2)) / all;
        let excess = (squares - chance) / number;
        let half = (excess > 0.0).then(|| trigamma_inverse(excess));
        let most = weighed.iter().map(|one| one.0).fold(0.0, f64::max);
        Self {
            centre,
            df: half.map_or(MOST_DF, |half| (2.0 * half).min(MOST_DF)),
            worth: sum(&|(weight, _, one)| weight * one.df) / most,
        }
    }

    /// The centre beyond that of a chi-square of these degrees of freedom: falls as τ² grows.
    fn excess_of_centre(&self) -> f64 {
        let half = self.df / 2.0;
        self.centre + digamma(half) - half.ln()
    }
}

/// ψ′(x), the derivative of the digamma function, for x > 0.
///
/// Source: recurrence and asymptotic series (Abramowitz & Stegun 6.4.6, 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 12.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = x * x;
    let series = 1.0 / 6.0 - (1.0 / 30.0 - 1.0 / (42.0 * square)) / square;
    sum + 1.0 / x + (0.5 + series / x) / square
}

/// ψ″(x), for x > 0.
///
/// Source: recurrence and asymptotic series (Abramowitz & Stegun 6.4.6, 6.4.13).
fn tetragamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 12.0 {
        sum -= 2.0 / (x * x * x);
        x += 1.0;
    }
    let square = x * x;
    let series = 0.5 - (1.0 / 6.0 - (1.0 / 6.0 - 0.3 / square) / square) / square;
    sum - (1.0 + 1.0 / x + series / square) / square
}

/// The x with ψ′(x) = `value`.
///
/// Source: Newton's steps for 1 / ψ′, which is nearly straight (Smyth 2004, appendix). ψ′(x) is less than
///         1/x + 1/x², so the first x is beyond the one sought, and each step goes down towards it.
fn trigamma_inverse(value: f64) -> f64 {
    /// Nine digits need six.
    const STEPS: usize = 8;
    /// Below, the x is 1 / value in seven digits, and for tiny ones its powers have no number.
    const TINY: f64 = 1e-7;
    if value < TINY {
        return 1.0 / value;
    }
    let mut x = (1.0 + (1.0 + 4.0 * value).sqrt()) / (2.0 * value);
    for _ in 0..STEPS {
        let found = trigamma(x);
        let step = found * (1.0 - found / value) / tetragamma(x);
        x += step;
        if step.abs() < x * 1e-12 {
            break;
        }
    }
    x
}

/// The mean over groups, each with the same weight.
///
/// Shape:  at least one group, each with at least one value. With one group it is Student's interval of its
///         values; with several, t over the groups' means with one degree of freedom less than groups,
///         and at least as wide as what is known from within.
/// Units:  those of the values.
/// Errors: [`TooFew`] without a group, if a group is empty, or for one group of one value.
/// Source: Hartung & Knapp 2001, Sidik & Jonkman 2002, with equal weights; unlike variances: Bakirov &
///         Székely 2005, Ibragimov & Müller 2010 (levels from 92 %; from 90 % up to 14 groups); at
///         least the fixed-effect width: Knapp & Hartung 2003, Röver, Knapp & Friede 2015. Degrees of freedom
///         within: Satterthwaite 1946. Coverage: tests/it/between.rs.
pub fn mean_between(groups: &[&[f64]]) -> Result<Between, TooFew> {
    let side = Side::new(groups)?;
    let between = side.scatter.map(|sd| Spread {
        error: sd / real(groups.len()).sqrt(),
        df: real(groups.len() - 1),
    });
    let found = known(side.mean, between, side.within.map(|parts| sum(&parts)))?;
    Ok(Between {
        groups: Some(groups.len()),
        ..found
    })
}

/// The mean over the second groups less that over the first, which have nothing to do with each other.
///
/// Shape:  at least one group on each side, each with at least one value. With one on each it is Welch's
///         interval of their values. With several on both, Welch over the groups' means; with several on one
///         side only, t with their variance for both sides. At least as wide as what is known from within.
/// Units:  those of the values.
/// Errors: [`TooFew`] if a side has no group, a group is empty, or both sides are one group and one of
///         them has one value.
/// Source: as [`mean_between`]; Welch 1947.
pub fn difference_between(first: &[&[f64]], second: &[&[f64]]) -> Result<Between, TooFew> {
    let (one, two) = (Side::new(first)?, Side::new(second)?);
    let (n1, n2) = (real(first.len()), real(second.len()));
    let between = match (one.scatter, two.scatter) {
        (Some(a), Some(b)) => Some(sum(&[
            (a.powi(2) / n1, n1 - 1.0),
            (b.powi(2) / n2, n2 - 1.0),
        ])),
        (Some(sd), None) | (None, Some(sd)) => Some(Spread {
            error: sd * (1.0 / n1 + 1.0 / n2).sqrt(),
            df: n1 + n2 - 2.0,
        }),
        (None, None) => None,
    };
    let within = one
        .within
        .zip(two.within)
        .map(|(first, second)| sum(&[first, second].concat()));
    known(two.mean - one.mean, between, within)
}

/// The groups of one side.
struct Side {
    /// Mean of the groups' means.
    mean: f64,
    /// Standard deviation of the groups' means; absent for one group.
    scatter: Option<f64>,
    /// What each group adds to the variance of the mean, with its degrees of freedom; absent where a group
    /// has one value.
    within: Option<Vec<(f64, f64)>>,
}

impl Side {
    fn new(groups: &[&[f64]]) -> Result<Self, TooFew> {
        let means: Option<Vec<f64>> = groups.iter().map(|group| mean(group)).collect();
        let none = TooFew { have: 0, need: 1 };
        let means = means.ok_or(none)?;
        let part = |group: &&[f64]| {
            let error = sample_sd(group)? / real(groups.len());
            Some((error.powi(2) / real(group.len()), real(group.len() - 1)))
        };
        Ok(Self {
            mean: mean(&means).ok_or(none)?,
            scatter: sample_sd(&means),
            within: groups.iter().map(part).collect(),
        })
    }
}

/// The error of a sum of independent parts, each a variance with its degrees of freedom (Satterthwaite 1946).
fn sum(parts: &[(f64, f64)]) -> Spread {
    let total = |of: fn(&(f64, f64)) -> f64| parts.iter().map(of).sum::<f64>();
    let variance = total(|part| part.0);
    Spread {
        error: variance.sqrt(),
        // Without any variance the formula is 0/0; the sum is its limit for equal variances.
        df: if variance > 0.0 {
            variance.powi(2) / total(|(variance, df)| variance.powi(2) / df)
        } else {
            total(|part| part.1)
        },
    }
}

fn known(
    estimate: f64,
    between: Option<Spread>,
    within: Option<Spread>,
) -> Result<Between, TooFew> {
    if between.is_none() && within.is_none() {
        return Err(TooFew { have: 1, need: 2 });
    }
    Ok(Between {
        estimate,
        between,
        within,
        groups: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student::{t_interval, t_test_p, welch};

    fn close(a: Interval, b: Interval) -> bool {
        (a.low - b.low).abs() < 1e-12 && (a.high - b.high).abs() < 1e-12
    }

    const A: [f64; 4] = [0.1, 0.3, 0.2, 0.6];
    const B: [f64; 5] = [1.1, 0.7, 0.9, 1.4, 0.2];

    #[test]
    fn a_further_reason_to_scatter_is_never_better_known_than_the_better_known_part() {
        let one = Scatter {
            variance: 1.0,
            within: 0.2,
            df: 4.0,
        };
        for variance in [0.01, 1.0, 100.0] {
            let both = one.and(variance, 4.0);
            assert!((both.df - 4.0).abs() < 1e-12, "{both:?}");
            assert!((both.variance - 1.0 - variance).abs() < 1e-12);
        }
        // Of one that was measured often, Satterthwaite's.
        let known = Scatter { df: 30.0, ..one }.and(1.0, 4.0);
        assert!((known.df - 4.0 / (1.0 / 30.0 + 0.25)).abs() < 1e-12);
        assert_eq!(one.and(0.0, 4.0), one);
    }

    #[test]
    fn one_group_is_students_and_two_single_ones_are_welchs() {
        let one = mean_between(&[&A]).unwrap();
        assert!(close(one.interval(0.9, 0.9), t_interval(&A, 0.9).unwrap()));
        assert!((one.p() - t_test_p(&A).unwrap()).abs() < 1e-12);
        assert!(!one.holds_between());
        let two = difference_between(&[&A], &[&B]).unwrap();
        let expected = welch(&A, &B, 0.95).unwrap();
        assert!(close(two.interval(0.95, 0.95), expected.interval));
        assert!((two.p() - expected.p).abs() < 1e-12);
        assert!((two.estimate - expected.difference).abs() < 1e-12);
    }

    #[test]
    fn groups_that_scatter_are_the_sample() {
        let near = [0.0, 0.001, -0.001];
        let moved = |by: f64| near.map(|value| value + by);
        let groups = [moved(0.1), moved(0.3), moved(0.2), moved(0.6)];
        let groups: Vec<&[f64]> = groups.iter().map(<[f64; 3]>::as_slice).collect();
        let found = mean_between(&groups).unwrap();
        assert!(close(
            found.interval(0.95, 0.95),
            t_interval(&A, 0.95).unwrap()
        ));
        assert!((found.p() - t_test_p(&A).unwrap()).abs() < 1e-12);
        let others = B.map(|by| moved(by).to_vec());
        let others: Vec<&[f64]> = others.iter().map(Vec::as_slice).collect();
        let found = difference_between(&groups, &others).unwrap();
        let expected = welch(&A, &B, 0.95).unwrap();
        assert!(close(found.interval(0.95, 0.95), expected.interval));
        assert!(found.holds_between());
    }

    #[test]
    fn trigamma_is_that_of_the_tables_and_inverts() {
        let table = [
            (0.5, std::f64::consts::PI.powi(2) / 2.0),
            (1.0, std::f64::consts::PI.powi(2) / 6.0),
            (10.0, 0.105_166_335_681_685_75),
        ];
        for (x, value) in table {
            assert!((trigamma(x) - value).abs() < 1e-9, "{x}");
            assert!((trigamma_inverse(value) / x - 1.0).abs() < 1e-9, "{x}");
        }
        // -14 ζ(3) and -2 ζ(3).
        for (x, value) in [
            (0.5, -16.828_796_644_234_32),
            (1.0, -2.404_113_806_319_188_5),
        ] {
            assert!((tetragamma(x) / value - 1.0).abs() < 1e-9, "{x}");
        }
        for exponent in -16..=16 {
            let x = 2.0_f64.powi(exponent);
            let found = trigamma_inverse(trigamma(x));
            assert!((found / x - 1.0).abs() < 1e-9, "{x}: {found}");
        }
        assert!((trigamma_inverse(1e-200) / 1e200 - 1.0).abs() < 1e-9);
        assert!((trigamma_inverse(1e200) / 1e-100 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_scatter_is_drawn_towards_what_others_say() {
        let scatter = |variance: f64, within: f64, df: f64| Scatter {
            variance,
            within,
            df,
        };
        // 0.5 between, and with the 2 within of this one 2.5.
        let drawn = scatter(4.0, 2.0, 1.0).towards(&scatter(1.0, 0.5, 3.0));
        assert!((drawn.variance - 2.875).abs() < 1e-12 && (drawn.df - 4.0).abs() < 1e-12);
        assert!((drawn.within - 2.0).abs() < 1e-12);
        let many = scatter(1.0, 0.5, 50.0);
        assert!((many.towards(&many).df - MOST_DF).abs() < 1e-12);
        // Alike: as much as all of them are worth. Unlike: little.
        let alike = [1.0, 1.1, 0.9, 1.0].map(|variance| scatter(variance, 0.0, 8.0));
        let prior = Scatter::prior(&alike).unwrap();
        assert!((prior.df - 32.0).abs() < 1e-9 && (0.9..1.3).contains(&prior.variance));
        let unlike = [1.0, 100.0, 0.01, 30.0].map(|variance| scatter(variance, 0.0, 8.0));
        assert!(Scatter::prior(&unlike).unwrap().df < 2.0);
        assert!(Scatter::prior(&alike[..2]).is_none());
        assert!(Scatter::prior(&[scatter(0.0, 0.0, 8.0); 3]).is_none());
    }

    #[test]
    fn groups_that_agree_by_luck_claim_no_more_than_their_values() {
        let wide = [-0.3, 0.0, 0.3];
        let found = mean_between(&[&wide, &wide]).unwrap();
        // Six values with this variance within: 0.09, so 0.3/√6 with four degrees of freedom.
        let half = t_quantile(0.975, 4.0) * 0.3 / 6.0_f64.sqrt();
        let interval = found.interval(0.95, 0.95);
        assert!((interval.high - half).abs() < 1e-12 && (interval.low + half).abs() < 1e-12);
        assert!(found.interval(0.95, 0.97).high > half);
        assert!((found.p() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn several_groups_against_one_lend_it_their_scatter() {
        let found = difference_between(&[&[0.0], &[0.2]], &[&[1.0]]).unwrap();
        // sd of the first is √0.02; √(1/2 + 1); one degree of freedom.
        let half = t_quantile(0.975, 1.0) * 0.02_f64.sqrt() * 1.5_f64.sqrt();
        let interval = found.interval(0.95, 0.95);
        assert!((found.estimate - 0.9).abs() < 1e-12);
        assert!((interval.half_width() - half).abs() < 1e-9);
    }

    #[test]
    fn what_is_too_little_is_said_so() {
        let none = TooFew { have: 0, need: 1 };
        assert_eq!(mean_between(&[]), Err(none));
        assert_eq!(mean_between(&[&A, &[]]), Err(none));
        assert_eq!(mean_between(&[&[1.0]]), Err(TooFew { have: 1, need: 2 }));
        assert!(mean_between(&[&[1.0], &[2.0]]).is_ok());
        assert_eq!(difference_between(&[&A], &[]), Err(none));
        assert!(difference_between(&[&A], &[&[1.0]]).is_err());
        let same = mean_between(&[&[0.5, 0.5], &[0.5, 0.5]]).unwrap();
        assert!(same.p() < 1e-300 && same.interval(0.95, 0.95).half_width() < 1e-300);
    }
}
