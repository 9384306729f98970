//! A share that was counted in groups whose members have a luck in common.
//!
//! Members of one group say less than as many independent ones, and how much less the scatter between the
//! groups shows. So the share counts as if it came from fewer independent members: from no more than there
//! are, and from no fewer than there are groups, which is right where all members of a group agree.

use crate::Interval;
use crate::binomial::of_parts;
use crate::number::{real_u64, real_u128};
use crate::student::t_quantile;

/// A share counted in groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteredShare {
    /// The share of all members; 0 without any.
    pub share: f64,
    members: f64,
    groups: f64,
    /// Independent members if those of a group always agree.
    fewest: f64,
    /// Variance between groups over that of independent members; absent for one group, and where all members
    /// or none succeeded.
    effect: Option<f64>,
}

/// What a share needs of its groups: sums over them, so that a further group is an addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Groups {
    number: u64,
    members: u64,
    succeeded: u64,
    members_squared: u128,
    succeeded_squared: u128,
    products: u128,
}

impl Groups {
    /// Adds a group, with its successes and its members; one without members does not count.
    ///
    /// # Panics
    /// If it has more successes than members.
    pub fn add(&mut self, succeeded: u64, members: u64) {
        assert!(
            succeeded <= members,
            "more successes than members: {succeeded} of {members}"
        );
        if members == 0 {
            return;
        }
        let (wide_succeeded, wide_members) = (u128::from(succeeded), u128::from(members));
        self.number += 1;
        self.members += members;
        self.succeeded += succeeded;
        self.members_squared += wide_members.pow(2);
        self.succeeded_squared += wide_succeeded.pow(2);
        self.products += wide_succeeded * wide_members;
    }

    /// How many groups have members.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Of all groups.
    pub fn members(&self) -> u64 {
        self.members
    }

    /// Of all groups.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// Σ (successes − share × members)² over groups, times the square of the number of all members: a whole
    /// number, so nothing cancels.
    fn scatter(&self) -> f64 {
        let (members, succeeded) = (u128::from(self.members), u128::from(self.succeeded));
        let squares =
            members.pow(2) * self.succeeded_squared + succeeded.pow(2) * self.members_squared;
        let products = 2 * members * succeeded * self.products;
        real_u128(squares - products)
    }
}

impl ClusteredShare {
    /// Of groups, each with its successes and its members.
    ///
    /// Shape:  groups without members do not count; up to 10⁹ members.
    /// Source: variance of a ratio over clusters, Cochran 1977, Sampling Techniques, 6.3; equal weights:
    ///         Kish 1965, Survey Sampling, 8.2.
    pub fn of(groups: &Groups) -> Self {
        let number = real_u64(groups.number);
        let members = real_u64(groups.members);
        let share = real_u64(groups.succeeded) / members.max(1.0);
        let variance = groups.scatter() / members.powi(4) * number / (number - 1.0);
        Self {
            share,
            members,
            groups: number,
            fewest: members.powi(2) / real_u128(groups.members_squared).max(1.0),
            effect: (number > 1.0 && share > 0.0 && share < 1.0)
                .then(|| members * variance / (share * (1.0 - share))),
        }
    }

    /// How much more the share varies than one of independent members (the design effect); `None` where that
    /// is not known: for one group, and where all members or none succeeded.
    pub fn effect(&self) -> Option<f64> {
        self.effect
    }

    /// With an effect of at least this, known from another share of the same members: where nearly all
    /// succeed their own scatter shows little of what they have in common.
    pub fn with_effect(self, effect: f64) -> Self {
        Self {
            effect: Some(self.effect.map_or(effect, |own| own.max(effect))),
            ..self
        }
    }

    /// Two-sided interval for the probability behind the share: the exact one of as many independent members
    /// as the scatter between groups allows, fewer where few groups show it.
    ///
    /// Where every member is a group of its own it is that of [`crate::binomial::clopper_pearson`].
    ///
    /// Shape:  `level` between 0 and 1 (anything else stops with a message); the whole of 0..1 for nothing.
    /// Source: Korn & Graubard 1998, "Confidence intervals for proportions with small expected number of
    ///         positive counts estimated from survey data", Survey Methodology 24. Deviation: no fewer
    ///         independent members than of groups that agree, and that many where no scatter is known.
    ///
    /// # Panics
    /// If `level` is outside 0..1.
    pub fn interval(&self, level: f64) -> Interval {
        assert!(
            level > 0.0 && level < 1.0,
            "a confidence level is between 0 and 1, not {level}"
        );
        if self.members < 1.0 {
            return Interval {
                low: 0.0,
                high: 1.0,
            };
        }
        let number = self.independent(level);
        of_parts(self.share * number, (1.0 - self.share) * number, level)
    }

    /// Independent members that say as much, for an interval at this level.
    fn independent(&self, level: f64) -> f64 {
        let Some(effect) = self.effect.filter(|_| self.groups > 1.0) else {
            return self.fewest;
        };
        let t = |df: f64| t_quantile(0.5 + level / 2.0, df);
        let few = t(self.members - 1.0) / t(self.groups - 1.0);
        // Groups that are alike in what they hold scatter less than independent members.
        let effect = effect.max(f64::MIN_POSITIVE);
        (self.members / effect * few.powi(2)).clamp(self.fewest, self.members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::clopper_pearson;

    fn share_of(all: &[(u64, u64)]) -> ClusteredShare {
        let mut groups = Groups::default();
        all.iter()
            .for_each(|(succeeded, members)| groups.add(*succeeded, *members));
        ClusteredShare::of(&groups)
    }

    fn same(one: Interval, other: Interval) {
        let apart = (one.low - other.low)
            .abs()
            .max((one.high - other.high).abs());
        assert!(apart < 1e-12, "{one:?} {other:?}");
    }

    #[test]
    fn members_that_are_groups_of_their_own_are_independent() {
        let groups: Vec<(u64, u64)> = (0..100).map(|at| (u64::from(at < 81), 1)).collect();
        let found = share_of(&groups);
        assert!((found.share - 0.81).abs() < 1e-12);
        for level in [0.9, 0.95, 0.98] {
            same(found.interval(level), clopper_pearson(81, 100, level));
        }
    }

    #[test]
    fn groups_that_agree_count_once_and_groups_that_are_alike_count_in_full() {
        let agree = share_of(&[(26, 26), (0, 26), (26, 26), (26, 26), (26, 26)]);
        same(agree.interval(0.95), clopper_pearson(4, 5, 0.95));
        let alike = share_of(&[(13, 26); 5]);
        same(alike.interval(0.95), clopper_pearson(65, 130, 0.95));
        let all = share_of(&[(26, 26); 5]);
        same(all.interval(0.95), clopper_pearson(5, 5, 0.95));
        let one = share_of(&[(26, 26)]);
        same(one.interval(0.95), clopper_pearson(1, 1, 0.95));
        assert!(share_of(&[(20, 26)]).interval(0.95).high > 0.97);
    }

    #[test]
    fn the_more_groups_scatter_the_wider_it_is() {
        let width = |groups: &[(u64, u64)]| share_of(groups).interval(0.95).half_width();
        let little = width(&[(19, 20), (20, 20), (18, 20), (19, 20), (19, 20), (19, 20)]);
        let more = width(&[(20, 20), (20, 20), (14, 20), (20, 20), (20, 20), (20, 20)]);
        let most = width(&[(20, 20), (20, 20), (0, 20), (20, 20), (20, 20), (20, 20)]);
        assert!(little < more && more < most, "{little} {more} {most}");
    }

    #[test]
    fn what_members_have_in_common_may_be_known_from_another_share() {
        let all = share_of(&[(26, 26); 5]);
        let half = share_of(&[(20, 26), (6, 26), (13, 26), (16, 26), (10, 26)]);
        let effect = half.effect().unwrap();
        assert!(effect > 2.0 && all.effect().is_none(), "{effect}");
        let known = all.with_effect(effect).interval(0.95);
        assert!(known.low > all.interval(0.95).low);
        assert!(known.low < clopper_pearson(130, 130, 0.95).low);
        assert_eq!(half.with_effect(0.1), half);
    }

    #[test]
    fn nothing_says_nothing_and_empty_groups_do_not_count() {
        let whole = Interval {
            low: 0.0,
            high: 1.0,
        };
        same(share_of(&[]).interval(0.95), whole);
        same(share_of(&[(0, 0)]).interval(0.95), whole);
        let (with, without) = ([(3, 4), (0, 0), (4, 4)], [(3, 4), (4, 4)]);
        assert_eq!(share_of(&with), share_of(&without));
    }

    #[test]
    fn sums_say_what_the_groups_say_one_by_one() {
        let group = |at: u64| (at * at % 23, 23 + at % 9);
        let all: Vec<(u64, u64)> = (0..200).map(group).collect();
        let (held, of) = all
            .iter()
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let share = real_u64(held) / real_u64(of);
        let apart = all
            .iter()
            .map(|(held, of)| (real_u64(*held) - share * real_u64(*of)).powi(2));
        let variance = apart.sum::<f64>() / real_u64(of).powi(2) * 200.0 / 199.0;
        let effect = real_u64(of) * variance / (share * (1.0 - share));
        let found = share_of(&all);
        assert!((found.share - share).abs() < 1e-15);
        assert!((found.effect().unwrap() / effect - 1.0).abs() < 1e-12);
        let alike = share_of(&[(13, 26); 5]).effect().unwrap();
        assert!(alike.abs() < f64::MIN_POSITIVE, "nothing is lost: {alike}");
    }
}
