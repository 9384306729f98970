//! A change that runs suspect, and what later ones say of it.

use crate::Estimate;
use deltabench_stats::between::Between;
use serde::{Deserialize, Serialize};

/// One-sided chance that all tries of a suspicion together confirm what is not there.
const CONFIRMED: f64 = 0.025;

/// What the first try may use of it; each later one uses this share of what is left.
const FIRST: f64 = 0.8;

/// Tries after which a suspicion that is still open no longer stands for others with a wider range.
pub const TRIES: usize = 3;

/// So long after it was raised it is tried: a week.
pub const TRIED_FOR_MS: i64 = 7 * 24 * 3_600_000;

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// What raised a suspicion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Two versions side by side in one run.
    Step,
    /// The levels of many runs.
    Level,
}

/// What is known of a suspicion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// No later run has shown it, or the contrary.
    Suspected,
    /// Later runs show it by themselves.
    Confirmed,
    /// Later runs show by themselves that it is less than what matters, and do not show that it is there.
    Refuted,
}

/// What the tries of a suspicion say together, without the run that raised it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// How much the later version differs, with what another hour may change.
    pub change: Estimate,
    /// One-sided p of "it did not change in this direction".
    pub p: f64,
    /// What p must not exceed in this try.
    pub limit: f64,
}

/// A change between two versions that were in one run.
///
/// Tries are later runs of both ends in other hours. Try k may use 0.8 · 0.2^(k − 1) of 2.5 %, so that all of
/// them together confirm by chance at most once in 40. Tries of earlier suspicions that were not confirmed,
/// in this direction and with an overlapping range, count along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspicion {
    pub series: usize,
    /// Place of the version before.
    pub from: usize,
    /// Place of the version after.
    pub to: usize,
    /// Whether the value falls.
    pub falls: bool,
    pub by: By,
    /// The first place that may be the changed one, where levels raised it: else that of `to`.
    pub earliest: usize,
    /// The run that raised it, by number.
    pub raised: usize,
    /// Tries, by number of their run.
    pub tries: Vec<usize>,
    /// Tries of suspicions before it that were not confirmed.
    pub(crate) before: usize,
    pub found: Option<Found>,
    pub state: State,
    /// What later runs than the confirming one say together, and how many there are: nothing chose them.
    pub since: Option<(Estimate, usize)>,
    /// The smallest change that matters, as the last run has it that took part.
    pub delta: f64,
    /// When the run that raised it ended, milliseconds since 1970.
    pub(crate) raised_ms: i64,
    /// When the last run with a part in it ended, milliseconds since 1970.
    pub(crate) ended_ms: i64,
    /// The block values of the tries, with [`crate::Measured::times`].
    pub(crate) fresh: Vec<(Vec<f64>, f64)>,
    /// The block values of runs after the confirming one.
    pub(crate) later: Vec<Vec<f64>>,
}

impl Suspicion {
    /// Whether its range lies inside of another in the same direction, ends included.
    pub(crate) fn is_inside(&self, from: usize, to: usize, falls: bool) -> bool {
        self.falls == falls && from <= self.from && self.to <= to
    }

    /// Whether ranges in one direction have a step in common.
    pub(crate) fn overlaps(&self, series: usize, from: usize, to: usize, falls: bool) -> bool {
        self.series == series && self.falls == falls && self.from < to && from < self.to
    }

    /// The part of the chance of a false confirmation that its next try may use.
    fn limit(&self) -> f64 {
        let spent = self.before + self.tries.len().saturating_sub(1);
        let left = i32::try_from(spent).map_or(0.0, |tries| (1.0 - FIRST).powi(tries));
        CONFIRMED * FIRST * left
    }

    /// The same with other numbers for its versions.
    #[must_use]
    pub fn with_versions(self, number: impl Fn(usize) -> usize) -> Self {
        Self {
            from: number(self.from),
            to: number(self.to),
            earliest: number(self.earliest),
            ..self
        }
    }

    /// Whether its size matters: as far as tries tell, it is at least δ.
    pub fn matters(&self) -> bool {
        let size = self.found.map(|found| found.change.value.abs());
        size.is_some_and(|size| size >= (1.0 + self.delta).ln())
    }

    /// Whether it stands for others with a wider range: it is confirmed, or may still be tried.
    pub(crate) fn counts(&self, now_ms: i64) -> bool {
        match self.state {
            State::Suspected => self.tries.len() < TRIES && now_ms - self.raised_ms <= TRIED_FOR_MS,
            State::Confirmed => true,
            State::Refuted => false,
        }
    }

    /// Takes what later runs than the confirming one say together.
    pub(crate) fn go_on(&mut self, mean: &Between) {
        self.since = Some((estimate(mean), self.later.len()));
    }

    /// Takes what its tries now say together.
    pub(crate) fn judge(&mut self, mean: &Between, delta: f64) {
        self.delta = delta;
        let interval = mean.interval(LEVEL, LEVEL);
        let times = self
            .fresh
            .iter()
            .map(|(_, times)| *times)
            .fold(1.0, f64::max);
        let (p, way) = (mean.p_scaled(times), mean.estimate < 0.0);
        let p = if way == self.falls {
            p / 2.0
        } else {
            1.0 - p / 2.0
        };
        let limit = self.limit();
        self.found = Some(Found {
            change: estimate(mean),
            p,
            limit,
        });
        let matters = (1.0 + delta).ln();
        let most = if self.falls {
            -interval.low
        } else {
            interval.high
        };
        // δ may follow from the noise of a night, and tries are more precise: what they show is small, and
        // not refuted.
        let is_shown = p <= (1.0 - LEVEL) / 2.0;
        self.state = if p <= limit {
            State::Confirmed
        } else if most < matters && !is_shown {
            State::Refuted
        } else {
            State::Suspected
        };
    }
}

fn estimate(mean: &Between) -> Estimate {
    let interval = mean.interval(LEVEL, LEVEL);
    Estimate {
        value: mean.estimate,
        low: interval.low,
        high: interval.high,
    }
}
