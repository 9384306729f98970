//! Levels of versions relative to one of them, from all runs together, whatever the base of each was.

use crate::difference::Difference;
use crate::hours::{Kind, kind};
use crate::known::Known;
use crate::solved::Solved;
use crate::sparse::Factored;
use crate::stars::{Hours, Star};
use crate::{Assumed, Build, Estimate, Run};
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::mean;
use std::collections::{BTreeMap, BTreeSet};

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// A version relative to the anchor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Its log-ratio to the anchor over many hours; exactly 0 for the anchor.
    pub change: Estimate,
    /// Runs that have it.
    pub runs: usize,
    /// Whether one of them has the anchor, too.
    pub direct: bool,
}

/// The versions of a cell that runs connect with an anchor.
#[derive(Debug, Clone)]
pub struct Network {
    anchor: usize,
    /// The place of each other version among the unknowns; absent for one without a level.
    places: Vec<Option<usize>>,
    levels: Vec<f64>,
    /// The inverse of their covariance.
    precision: Factored,
    df: f64,
    /// Standard errors in half of an interval.
    errors: f64,
    /// What one more run adds to the variance of each version's log-ratio to the anchor.
    once_more: Vec<f64>,
    is_far: Vec<bool>,
    runs: BTreeMap<usize, usize>,
    beside_anchor: BTreeSet<usize>,
    /// Whether an assumption about hours takes part.
    pub assumed: bool,
    /// Standard deviation of the log-ratio of distant versions from hour to hour.
    pub sd: f64,
    /// Whether the anchor alone connects versions that were measured on different hosts: a kernel that moved
    /// them relative to it is not seen then.
    pub rests_on_anchor: bool,
}

/// What one more run would print of a version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Again {
    /// Its log-ratio to the anchor in that run.
    pub change: Estimate,
    /// Runs that have the version.
    pub runs: usize,
    /// Whether it and the anchor are of different lines or branches.
    pub is_far: bool,
}

impl Network {
    /// Takes what runs found in one cell.
    ///
    /// The levels are those on the newest host that measured a branch. On another one, with another kernel,
    /// all versions of a branch are off by one amount, which the versions that both hosts measured show.
    ///
    /// Shape:  `None` if no run has the anchor and another version in at least two blocks.
    /// Source: generalised least squares over contrasts with a common variance of servers inside a run, as
    ///         for trials of several arms (Lu & Ades 2004; Salanti 2012): V = (s²/2 + τ²/2) (I + 1 1ᵀ). That
    ///         is the same as a free level for each run. s² is drawn towards that of the other runs, τ² is
    ///         that of [`deltabench_stats::repeated`]. docs/trends.md.
    pub fn new(
        series: usize,
        runs: &[Run],
        builds: &[Build],
        anchor: usize,
        assumed: Assumed,
    ) -> Option<Self> {
        let known = Known::of(runs, builds);
        Self::knowing((series, anchor), runs, builds, (&known, assumed))
    }

    /// The same for a cell and an anchor, with what is known of all of these runs.
    pub fn knowing(
        (series, anchor): (usize, usize),
        runs: &[Run],
        builds: &[Build],
        (known, assumed): (&Known, Assumed),
    ) -> Option<Self> {
        let hours = known.hours(series, assumed);
        let stars = known.stars(series, (runs, builds), &hours);
        Self::among(stars.iter(), builds, anchor, &hours)
    }

    /// The same of some runs of a cell, with what is known of its hours.
    pub(crate) fn among<'a>(
        stars: impl Iterator<Item = &'a Star>,
        builds: &[Build],
        anchor: usize,
        hours: &Hours,
    ) -> Option<Self> {
        let mut stars: Vec<&Star> = stars.collect();
        let Solved {
            versions,
            columns,
            precision,
            levels,
            rests_on_anchor,
        } = Solved::of(&mut stars, builds, anchor)?;
        let within = mean(&stars.iter().map(|star| star.within).collect::<Vec<f64>>())?;
        let is_far: Vec<bool> = { versions.iter() }
            .map(|version| kind(builds, anchor, *version) == Kind::Far)
            .collect();
        let hour = |is_far: &bool| if *is_far { hours.far } else { hours.near };
        let once_more = is_far.iter().map(|far| hour(far).powi(2) + within);
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        let mut beside_anchor = BTreeSet::new();
        for star in &stars {
            for version in star.values.keys() {
                *counted.entry(*version).or_default() += 1;
            }
            if star.values.contains_key(&anchor) {
                beside_anchor.extend(star.values.keys().copied());
            }
        }
        Some(Self {
            anchor,
            places: columns.levels,
            levels,
            precision,
            df: hours.df,
            errors: t_quantile(0.5 + LEVEL / 2.0, hours.df),
            once_more: once_more.collect(),
            is_far,
            runs: counted,
            beside_anchor,
            assumed: hours.assumed,
            sd: hours.far.max(hours.near),
            rests_on_anchor,
        })
    }

    /// The level of a version; `None` for one that no runs connect with the anchor.
    pub fn level(&self, version: usize) -> Option<Level> {
        Some(Level {
            change: self.change(self.anchor, version)?,
            runs: self.runs.get(&version).copied().unwrap_or(0),
            direct: self.beside_anchor.contains(&version),
        })
    }

    /// What one more run of a version beside the anchor would print, in another hour and as precise as the
    /// runs so far are on average; `None` for a version without a level, and for the anchor.
    ///
    /// Source: the prediction of a value of the model of [`Network::new`]: the variance of the level, τ² of
    ///         another hour, and s² of the run itself.
    pub fn again(&self, version: usize) -> Option<Again> {
        let at = self.place(version)??;
        let value = self.levels.get(at).copied()?;
        let known = self.precision.variance(&[(at, 1.0)]);
        let half = self.errors * (known + self.once_more.get(at)?).max(0.0).sqrt();
        Some(Again {
            change: Estimate {
                value,
                low: value - half,
                high: value + half,
            },
            runs: self.runs.get(&version).copied().unwrap_or(0),
            is_far: *self.is_far.get(at)?,
        })
    }

    /// How much one version differs from another, over many hours; `None` if one has no level.
    pub fn change(&self, from: usize, to: usize) -> Option<Estimate> {
        let (value, error) = self.distance(from, to)?;
        let half = self.errors * error;
        Some(Estimate {
            value,
            low: value - half,
            high: value + half,
        })
    }

    /// The same, with how sure it is.
    pub fn difference(&self, from: usize, to: usize) -> Option<Difference> {
        let (value, error) = self.distance(from, to)?;
        Some(Difference::of(value, error, self.df))
    }

    /// The difference of two versions with its standard error.
    fn distance(&self, from: usize, to: usize) -> Option<(f64, f64)> {
        let (one, other) = (self.place(from)?, self.place(to)?);
        let level = |place: Option<usize>| place.and_then(|at| self.levels.get(at).copied());
        let value = level(other).unwrap_or(0.0) - level(one).unwrap_or(0.0);
        let ends = [(one, -1.0), (other, 1.0)].into_iter();
        let contrast: Vec<(usize, f64)> = ends.filter_map(|(at, sign)| Some((at?, sign))).collect();
        let variance = match one == other {
            true => 0.0,
            false => self.precision.variance(&contrast),
        };
        Some((value, variance.sqrt()))
    }

    /// The place among the unknowns: `Some(None)` for the anchor, `None` for a version without a level.
    fn place(&self, version: usize) -> Option<Option<usize>> {
        if version == self.anchor {
            return Some(None);
        }
        self.places.get(version).copied().flatten().map(Some)
    }
}
