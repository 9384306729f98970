//! Levels of many runs: a step in them that no single run shows.

use crate::hours::{APART_MS, Kind, kind};
use crate::{Build, Measured, Run, real};
use deltabench_stats::between::Scatter;
use deltabench_stats::summary::{mean, sample_sd};
use std::collections::BTreeMap;

/// Likelihood ratio from which a step is suspected.
///
/// Source: docs/trends.md; a suspicion costs a run, and confirming it has an error rate of its own.
const SUSPECTED: f64 = 11.0;

/// Places whose ratio is less than the largest by no more than this may be the changed one.
const MAY_BE: f64 = 6.0;

/// Points that are looked at, the newest.
const WINDOW: usize = 40;

/// Points that it takes.
const LEAST: usize = 10;

/// The newest version of a line in one run, relative to the base of the run.
#[derive(Debug, Clone, Copy)]
struct Point {
    version: usize,
    host: usize,
    value: f64,
    /// Variance of the mean of its blocks, with its degrees of freedom.
    within: f64,
    df: f64,
    /// Variance from hour to hour, as known when it was measured.
    between: f64,
    /// When its run ended, milliseconds since 1970.
    ended_ms: i64,
}

/// Points by series, base, and line with branch.
#[derive(Debug, Default)]
pub(crate) struct Points {
    known: BTreeMap<(usize, usize, Build), Line>,
}

/// The points of a line: on each host those that may still be looked at.
#[derive(Debug, Default)]
struct Line {
    /// In the order of versions; of one version in that of measuring.
    points: BTreeMap<usize, Vec<Point>>,
    newest: Option<Point>,
}

impl Line {
    fn add(&mut self, point: Point) {
        let own = self.points.entry(point.host).or_default();
        let place = own.partition_point(|known| known.version <= point.version);
        own.insert(place, point);
        if own.len() > WINDOW {
            own.remove(0);
        }
        self.newest = Some(point);
    }
}

/// A step in the levels of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    /// A version that is surely before it.
    pub(crate) from: usize,
    /// The first version that may be after it.
    pub(crate) earliest: usize,
    /// The version from which on it is most likely.
    pub(crate) at: usize,
    pub(crate) falls: bool,
}

impl Points {
    /// Adds the newest version of each line and branch in a run; returns these. Of runs within minutes the
    /// first counts: they share its luck. `between`: how hours differ, as a standard deviation.
    pub(crate) fn add(
        &mut self,
        cell: &Measured,
        run: &Run,
        builds: &[Build],
        between: &dyn Fn(Kind, &[f64]) -> Option<f64>,
    ) -> Vec<(Build, usize)> {
        let mut newest: BTreeMap<Build, usize> = BTreeMap::new();
        for &version in cell.candidates.keys() {
            if let Some(build) = builds.get(version) {
                newest.insert(*build, version);
            }
        }
        let mut added = Vec::new();
        for (build, version) in newest {
            let Some(blocks) = cell.contrast(cell.base, version) else {
                continue;
            };
            let (Some(value), Some(sd)) = (mean(&blocks), sample_sd(&blocks)) else {
                continue;
            };
            let kind = kind(builds, cell.base, version);
            let line = self.known.entry((cell.series, cell.base, build));
            let line = line.or_default();
            let near = |last: &Point| run.began_ms - last.ended_ms < APART_MS;
            let Some(between) =
                between(kind, &blocks).filter(|_| !line.newest.as_ref().is_some_and(near))
            else {
                continue;
            };
            line.add(Point {
                version,
                host: cell.host,
                value,
                within: sd.powi(2) / real(blocks.len()),
                df: real(blocks.len() - 1),
                between: between.powi(2),
                ended_ms: run.ended_ms,
            });
            added.push((build, version));
        }
        added
    }

    /// The most likely step among the versions from `since` on, if it is likely enough. Only points of the
    /// host as it is now count: another kernel may move all levels, and that is no step of a version.
    pub(crate) fn shift(
        &self,
        series: usize,
        base: usize,
        build: Build,
        since: usize,
    ) -> Option<Shift> {
        let line = self.known.get(&(series, base, build))?;
        let newest = line.newest?;
        let between = newest.between;
        let points = line.points.get(&newest.host)?;
        let first = points.partition_point(|one| one.version < since);
        let points = points.get(first..)?;
        if points.len() < LEAST {
            return None;
        }
        let weights = weights(points, between);
        let splits = splits(points, &weights);
        let best = splits.iter().map(|split| split.ratio).fold(0.0, f64::max);
        if best < SUSPECTED {
            return None;
        }
        let top = splits.iter().find(|split| split.ratio >= best)?;
        let may_be = |split: &&Split| split.ratio >= best - MAY_BE && split.falls == top.falls;
        let earliest = splits.iter().find(may_be)?.version;
        let mut before: Vec<usize> = { points.iter() }
            .map(|point| point.version)
            .filter(|version| *version < earliest)
            .collect();
        before.dedup();
        // One version earlier than it has to be, because the place is uncertain.
        let from = before.iter().rev().nth(1).or(before.first())?;
        Some(Shift {
            from: *from,
            earliest,
            at: top.version,
            falls: top.falls,
        })
    }

    /// How far the level of a series lies from version `at` on from that before, among those from `since` on;
    /// `None` without points on both sides.
    pub(crate) fn moved(
        &self,
        (series, base, build): (usize, usize, Build),
        (since, at): (usize, usize),
    ) -> Option<f64> {
        let line = self.known.get(&(series, base, build))?;
        let points = line.points.get(&line.newest?.host)?;
        let side = |is_after: bool| {
            let own = points.iter().filter(|one| one.version >= since);
            let own = own.filter(|one| (one.version >= at) == is_after);
            mean(&own.map(|one| one.value).collect::<Vec<_>>())
        };
        Some(side(true)? - side(false)?)
    }
}

/// A place where the level may have changed.
struct Split {
    /// The first version after it.
    version: usize,
    ratio: f64,
    falls: bool,
}

/// One over the variance of each point. Its own scatter of few blocks is drawn towards that of the others, so
/// that a lucky small one does not get all the weight.
fn weights(points: &[Point], between: f64) -> Vec<f64> {
    let scatter = |point: &Point| Scatter {
        variance: point.within,
        within: 0.0,
        df: point.df,
    };
    let all: Vec<Scatter> = points.iter().map(scatter).collect();
    let prior = Scatter::prior(&all);
    let weight = |own: &Scatter| {
        let own = prior.map_or(*own, |prior| own.towards(&prior));
        let heavier = if own.df > 2.0 {
            own.df / (own.df - 2.0)
        } else {
            3.0
        };
        1.0 / (own.variance * heavier + between).max(f64::MIN_POSITIVE)
    };
    all.iter().map(weight).collect()
}

/// The likelihood ratio of a step at each place: the squared difference of the weighted means on both sides
/// by its variance. A step lies between two versions, so points of one version stay together.
fn splits(points: &[Point], weights: &[f64]) -> Vec<Split> {
    let both = || points.iter().zip(weights);
    let all: (f64, f64) = sums(both());
    let (mut left, mut splits) = ((0.0, 0.0), Vec::new());
    let mut last: Option<usize> = None;
    for (point, weight) in both() {
        if last.is_some_and(|last| last < point.version) {
            let right = (all.0 - left.0, all.1 - left.1);
            let difference: f64 = right.1 / right.0 - left.1 / left.0;
            splits.push(Split {
                version: point.version,
                ratio: difference.powi(2) / (1.0 / left.0 + 1.0 / right.0),
                falls: difference < 0.0,
            });
        }
        left = (left.0 + weight, left.1 + weight * point.value);
        last = Some(point.version);
    }
    splits
}

/// Sum of weights, and of weighted values.
fn sums<'a>(points: impl Iterator<Item = (&'a Point, &'a f64)>) -> (f64, f64) {
    points.fold((0.0, 0.0), |(weights, values), (point, weight)| {
        (weights + weight, values + weight * point.value)
    })
}
