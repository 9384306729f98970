//! Levels of versions relative to one of them, from all runs together, whatever the base of each was.

use crate::difference::Difference;
use crate::hours::{APART_MS, Kind, Learned, Past, kind};
use crate::{Assumed, Build, Estimate, Measured, Run, real};
use deltabench_stats::between::Scatter;
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::{mean, sample_sd};
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
    /// Places of the others, in the order of the matrix.
    versions: Vec<usize>,
    levels: Vec<f64>,
    covariance: Vec<Vec<f64>>,
    df: f64,
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

/// What a run says of its versions: values of one variance, each with a level of the run added.
struct Star {
    host: usize,
    values: BTreeMap<usize, f64>,
    /// Variance of each value.
    variance: f64,
    /// Variance of a log-ratio of two of them inside the run.
    within: f64,
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
        let mut past = Past::default();
        for run in runs {
            past.add(run, builds);
        }
        let learned = past.learned(|_, _, _| false);
        let hours = Hours::known(series, &learned, assumed);
        Self::among(&apart(series, runs), builds, anchor, &hours)
    }

    /// The same of some runs of a cell, with what is known of its hours.
    pub(crate) fn among(
        cells: &[&Measured],
        builds: &[Build],
        anchor: usize,
        hours: &Hours,
    ) -> Option<Self> {
        let mut stars = stars(cells, builds, hours);
        let connected = connected(&stars, anchor);
        stars.retain(|star| {
            star.values
                .keys()
                .all(|version| connected.contains(version))
        });
        let versions: Vec<usize> = { connected.iter().copied() }
            .filter(|version| *version != anchor)
            .collect();
        if versions.is_empty() {
            return None;
        }
        let mut columns = Columns::of(&stars, builds, anchor, &versions);
        let mut rests_on_anchor = false;
        let (covariance, right) = loop {
            let (matrix, right) = equations(&stars, &columns);
            match inverse(matrix, versions.len()) {
                Ok(covariance) => break (covariance, right),
                Err(Undetermined { column, is_in_runs }) => {
                    rests_on_anchor |= is_in_runs;
                    columns.leave_out(column)?;
                }
            }
        };
        let within = mean(&stars.iter().map(|star| star.within).collect::<Vec<f64>>())?;
        let is_far: Vec<bool> = { versions.iter() }
            .map(|version| kind(builds, anchor, *version) == Kind::Far)
            .collect();
        let hour = |is_far: &bool| if *is_far { hours.far } else { hours.near };
        let once_more = is_far.iter().map(|far| hour(far).powi(2) + within);
        let levels = covariance.iter().map(|row| dot(row, &right)).collect();
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
            versions,
            levels,
            covariance,
            df: hours.df,
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
        let known = self.covariance.get(at)?.get(at).copied()?;
        let quantile = t_quantile(0.5 + LEVEL / 2.0, self.df);
        let half = quantile * (known + self.once_more.get(at)?).max(0.0).sqrt();
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
        let half = t_quantile(0.5 + LEVEL / 2.0, self.df) * error;
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
        let covariance = |one: Option<usize>, other: Option<usize>| {
            let row = one.and_then(|at| self.covariance.get(at));
            row.zip(other)
                .and_then(|(row, at)| row.get(at).copied())
                .unwrap_or(0.0)
        };
        let value = level(other).unwrap_or(0.0) - level(one).unwrap_or(0.0);
        let variance =
            covariance(one, one) + covariance(other, other) - 2.0 * covariance(one, other);
        Some((value, variance.max(0.0).sqrt()))
    }

    /// The place in the matrix: `Some(None)` for the anchor, `None` for a version without a level.
    fn place(&self, version: usize) -> Option<Option<usize>> {
        if version == self.anchor {
            return Some(None);
        }
        self.versions
            .iter()
            .position(|known| *known == version)
            .map(Some)
    }
}

/// What runs found in a cell. Of runs of the same versions within minutes the first counts: they share its
/// luck.
pub(crate) fn apart(series: usize, runs: &[Run]) -> Vec<&Measured> {
    let mut ended: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
    let mut cells = Vec::new();
    for run in runs {
        for cell in run.cells.iter().filter(|cell| cell.series == series) {
            let last = ended.insert(cell.versions(), run.ended_ms);
            if last.is_none_or(|last| run.began_ms - last >= APART_MS) {
                cells.push(cell);
            }
        }
    }
    cells
}

/// What is known of hours for all runs of a cell: standard deviations by kind.
pub(crate) struct Hours {
    near: f64,
    far: f64,
    /// The fewest degrees of freedom of those that take part.
    df: f64,
    pub(crate) assumed: bool,
}

impl Hours {
    pub(crate) fn known(series: usize, learned: &Learned, assumed: Assumed) -> Self {
        // What is within a run is added by each run itself.
        let precise: [f64; 2] = [0.0, 0.0];
        let of = |kind| learned.of(series, kind, &[&precise], assumed);
        let known = [of(Kind::Near), of(Kind::Far)];
        let sd = |at: &Option<deltabench_stats::repeated::BetweenHours>| {
            at.map_or(assumed.sd, |known| known.scatter.between())
        };
        let [near, far] = &known;
        let present = known.iter().flatten();
        Self {
            near: sd(near),
            far: sd(far),
            df: present
                .clone()
                .map(|one| one.scatter.df)
                .fold(f64::INFINITY, f64::min)
                .min(60.0),
            assumed: present.clone().any(|one| one.assumed),
        }
    }
}

/// The host, the base of a run and the number of its copies, and the blocks of each other version.
type OfRun = ((usize, usize, u32), BTreeMap<usize, Vec<f64>>);

fn stars(cells: &[&Measured], builds: &[Build], hours: &Hours) -> Vec<Star> {
    // As of two servers with one copy each: values to the mean of two copies have 3/4 of that.
    let within = |(copies, blocks): (u32, &Vec<f64>)| Scatter {
        variance: sample_sd(blocks).unwrap_or(0.0).powi(2) / real(blocks.len()) * 2.0
            / (1.0 + 1.0 / f64::from(copies.max(1))),
        within: 0.0,
        df: real(blocks.len() - 1),
    };
    let blocks = |cell: &Measured| -> BTreeMap<usize, Vec<f64>> {
        let known = cell.candidates.keys();
        known
            .filter_map(|&version| Some((version, cell.contrast(cell.base, version)?)))
            .filter(|(_, blocks)| blocks.len() > 1)
            .collect()
    };
    let all: Vec<OfRun> = cells
        .iter()
        .map(|cell| ((cell.host, cell.base, cell.base_copies), blocks(cell)))
        .collect();
    let scatters: Vec<Scatter> = all
        .iter()
        .flat_map(|((_, _, copies), of)| of.values().map(|blocks| within((*copies, blocks))))
        .collect();
    let prior = Scatter::prior(&scatters);
    let star = |((host, base, copies), candidates): &OfRun| {
        let own = candidates.values().map(|blocks| within((*copies, blocks)));
        let own = own.map(|own| prior.map_or(own.variance, |prior| own.towards(&prior).variance));
        let within = mean(&own.collect::<Vec<f64>>())?;
        let is_far = |version: &usize| kind(builds, *base, *version) == Kind::Far;
        let sd = if candidates.keys().any(is_far) {
            hours.far
        } else {
            hours.near
        };
        let mut values: BTreeMap<usize, f64> = BTreeMap::from([(*base, 0.0)]);
        values.extend(
            candidates
                .iter()
                .filter_map(|(at, of)| Some((*at, mean(of)?))),
        );
        Some(Star {
            host: *host,
            values,
            within,
            variance: ((within + sd.powi(2)) / 2.0).max(f64::MIN_POSITIVE),
        })
    };
    all.iter().filter_map(star).collect()
}

/// The versions that runs connect with the anchor, itself included.
fn connected(stars: &[Star], anchor: usize) -> BTreeSet<usize> {
    let mut known = BTreeSet::from([anchor]);
    loop {
        let before = known.len();
        for star in stars {
            if star.values.keys().any(|version| known.contains(version)) {
                known.extend(star.values.keys().copied());
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

/// The unknowns: a level for each version but the anchor, then what another host adds to all versions of a
/// branch.
struct Columns<'a> {
    builds: &'a [Build],
    versions: &'a [usize],
    /// A branch on a host that is not the newest one with it. Not of the anchor's branch: what a kernel does
    /// to the anchor it does to its neighbours.
    shifts: Vec<(Build, usize)>,
}

impl<'a> Columns<'a> {
    fn of(stars: &[Star], builds: &'a [Build], anchor: usize, versions: &'a [usize]) -> Self {
        let own = builds.get(anchor);
        let mut shifts: Vec<(Build, usize)> = Vec::new();
        let mut newest: BTreeMap<Build, usize> = BTreeMap::new();
        // The newest host comes first: if shifts cannot be told apart, older ones are left out.
        for star in stars.iter().rev() {
            for build in star
                .values
                .keys()
                .filter_map(|version| builds.get(*version))
            {
                let here = (*build, star.host);
                let is_newest = *newest.entry(*build).or_insert(star.host) == star.host;
                if !is_newest && Some(build) != own && !shifts.contains(&here) {
                    shifts.push(here);
                }
            }
        }
        Self {
            builds,
            versions,
            shifts,
        }
    }

    fn number(&self) -> usize {
        self.versions.len() + self.shifts.len()
    }

    /// Those that a value of a version on a host has a part of.
    fn behind(&self, version: usize, host: usize) -> Vec<usize> {
        let level = self.versions.iter().position(|known| *known == version);
        let is_here =
            |(build, at): &(Build, usize)| *at == host && self.builds.get(version) == Some(build);
        let shift = self.shifts.iter().position(is_here);
        let shift = shift.map(|at| self.versions.len() + at);
        level.into_iter().chain(shift).collect()
    }

    /// Takes a shift for 0; `None` if the column is a level.
    fn leave_out(&mut self, column: usize) -> Option<()> {
        let at = column.checked_sub(self.versions.len())?;
        if at >= self.shifts.len() {
            return None;
        }
        self.shifts.remove(at);
        Some(())
    }
}

/// The normal equations of the unknowns, the anchor's level being 0. Each run has a level of its own, so that
/// values and unknowns are those about their mean in the run.
fn equations(stars: &[Star], columns: &Columns<'_>) -> (Vec<Vec<f64>>, Vec<f64>) {
    let all = columns.number();
    let mut matrix: Vec<Vec<f64>> = vec![vec![0.0; all]; all];
    let mut right = vec![0.0; all];
    for star in stars {
        let (weight, size) = (1.0 / star.variance, real(star.values.len()));
        let centre = star.values.values().sum::<f64>() / size;
        let behind: Vec<(Vec<usize>, f64)> = { star.values.iter() }
            .map(|(version, value)| (columns.behind(*version, star.host), value - centre))
            .collect();
        let has = |column: usize| behind.iter().filter(move |(own, _)| own.contains(&column));
        for (row_of, (row, right)) in matrix.iter_mut().zip(right.iter_mut()).enumerate() {
            let own = has(row_of).count();
            if own == 0 {
                continue;
            }
            let own = real(own);
            *right += weight * has(row_of).map(|(_, value)| value).sum::<f64>();
            for (column, entry) in row.iter_mut().enumerate() {
                let both = has(row_of).filter(|(own, _)| own.contains(&column));
                *entry += weight * (real(both.count()) - own * real(has(column).count()) / size);
            }
        }
    }
    (matrix, right)
}

/// A column that the others determine.
struct Undetermined {
    column: usize,
    /// Whether a run has it beside versions without it. If not, it says nothing, and nothing rests on it.
    is_in_runs: bool,
}

/// Share of its diagonal that is left of a shift if the others determine it, but for the digits of a
/// computer.
const ROUNDING: f64 = 1e-9;

/// The inverse of a symmetric positive definite matrix by Gauss and Jordan, which needs no pivots for such.
/// The first `levels` columns are levels, which runs determine; of the others the first that they do not is
/// returned.
fn inverse(mut matrix: Vec<Vec<f64>>, levels: usize) -> Result<Vec<Vec<f64>>, Undetermined> {
    let size = matrix.len();
    let at_of = |row: &[f64], at: usize| row.get(at).copied().unwrap_or(0.0);
    let whole: Vec<f64> = { matrix.iter().enumerate() }
        .map(|(at, row)| at_of(row, at))
        .collect();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..size).map(|column| if column == at { 1.0 } else { 0.0 }));
    }
    for at in 0..size {
        let mut pivot = matrix.get(at).cloned().unwrap_or_default();
        let (by, whole) = (at_of(&pivot, at), at_of(&whole, at));
        let least = if at < levels { 0.0 } else { ROUNDING * whole };
        if by <= least || !by.is_finite() {
            return Err(Undetermined {
                column: at,
                is_in_runs: whole > 0.0,
            });
        }
        pivot.iter_mut().for_each(|value| *value /= by);
        for (other, row) in matrix.iter_mut().enumerate() {
            let factor = at_of(row, at);
            if other == at {
                row.clone_from(&pivot);
            } else {
                let pairs = row.iter_mut().zip(&pivot);
                pairs.for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    let right = |row: Vec<f64>| row.into_iter().skip(size).collect();
    Ok(matrix.into_iter().map(right).collect())
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
