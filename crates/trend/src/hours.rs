//! How much a ratio of two versions moves from hour to hour, learned from what a host has measured again.

use crate::{Assumed, Build, Measured, Run, real};
use deltabench_stats::between::Scatter;
use deltabench_stats::repeated::{BetweenHours, Elsewhere, Repeated};
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::{mean, median, sample_sd};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Runs that are learned from, the newest.
const RUNS: usize = 60;

/// Runs of one pair have two hours if so much lies between them: 10 minutes.
pub(crate) const APART_MS: i64 = 600_000;

/// Hours of steps from which neighbours are taken to be alike.
const LEAST_ALIKE: usize = 8;

/// What hours may differ by unseen: this share of the error of a typical run. Without it a try that is more
/// precise than the runs before it would be trusted too much.
const UNSEEN: f64 = 0.5;

/// What a step is worth for the scatter of hours, in degrees of freedom, and what all are at most.
const MEDIAN_WORTH: f64 = 0.37;
const MOST_ALIKE: f64 = 12.0;

/// How much two versions have in common: the more, the less their ratio moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// One line and one branch.
    Near,
    Far,
}

pub(crate) fn kind(builds: &[Build], one: usize, other: usize) -> Kind {
    match (builds.get(one), builds.get(other)) {
        (Some(one), Some(other)) if one == other => Kind::Near,
        _ => Kind::Far,
    }
}

/// A pair of versions in a cell in one run.
#[derive(Debug)]
struct Seen {
    run: usize,
    series: usize,
    pair: (usize, usize),
    kind: Kind,
    hour: usize,
    host: usize,
    /// Whether the two are neighbours.
    is_step: bool,
    /// Whether it is of a mean of cells.
    is_mean: bool,
    blocks: Vec<f64>,
}

/// What the newest runs found of each pair.
#[derive(Debug, Default)]
pub(crate) struct Past {
    runs: VecDeque<Vec<Seen>>,
    /// How many there were in all.
    number: usize,
    /// When each pair of a cell was last measured.
    ended_ms: BTreeMap<(usize, usize, usize), i64>,
}

/// The repetitions of each cell and kind, and how the steps of a cell scatter about 0.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    cells: BTreeMap<(usize, Kind), Repeated>,
    /// Series that are means of cells: these differ less from hour to hour than each cell.
    means: BTreeSet<usize>,
    alike: BTreeMap<usize, Assumed>,
    /// What the other cells say of each that was asked for: it takes longer than all the rest.
    elsewhere: Mutex<BTreeMap<(usize, Kind), Elsewhere>>,
}

impl Past {
    /// The same as adding these runs one after another. Those that nothing is learned from any more leave
    /// only their times.
    pub(crate) fn of(runs: &[Run], builds: &[Build]) -> Self {
        let mut past = Self::default();
        for (at, run) in runs.iter().enumerate() {
            past.add_with(run, builds, at + RUNS >= runs.len());
        }
        past
    }

    /// Adds a run. Of runs of one pair within minutes only the first counts: they share its luck.
    pub(crate) fn add(&mut self, run: &Run, builds: &[Build]) {
        self.add_with(run, builds, true);
    }

    fn add_with(&mut self, run: &Run, builds: &[Build], is_learned: bool) {
        let mut seen = Vec::new();
        for cell in &run.cells {
            let steps = cell.steps(builds);
            for pair in pairs(cell, &steps) {
                let key = (cell.series, pair.0, pair.1);
                let last = self.ended_ms.get(&key);
                if last.is_some_and(|end| run.began_ms - end < APART_MS) {
                    continue;
                }
                self.ended_ms.insert(key, run.ended_ms);
                let Some(blocks) = cell.contrast(pair.0, pair.1).filter(|_| is_learned) else {
                    continue;
                };
                seen.push(Seen {
                    run: self.number,
                    series: cell.series,
                    pair,
                    kind: kind(builds, pair.0, pair.1),
                    is_step: steps.contains(&pair),
                    is_mean: cell.members > 1,
                    hour: run.hour,
                    host: cell.host,
                    blocks,
                });
            }
        }
        self.number += 1;
        self.runs.push_back(seen);
        if self.runs.len() > RUNS {
            self.runs.pop_front();
        }
    }

    /// What these runs say of hours. `is_chosen` names what was found by looking for the extreme: a step
    /// that a run made suspect. It would make hours look wilder than they are.
    pub(crate) fn learned(
        &self,
        is_chosen: impl Fn(usize, usize, (usize, usize)) -> bool,
    ) -> Learned {
        // Repetitions are of one pair on one host: what another kernel does is not what another hour does.
        type Pairs<'a> = BTreeMap<((usize, usize), usize), Vec<(usize, &'a [f64])>>;
        let mut cells: BTreeMap<(usize, Kind), Pairs<'_>> = BTreeMap::new();
        let mut steps: BTreeMap<usize, Vec<&Seen>> = BTreeMap::new();
        let mut means = BTreeSet::new();
        for seen in self.runs.iter().flatten() {
            if seen.is_mean {
                means.insert(seen.series);
            }
            if seen.is_step && seen.kind == Kind::Near {
                steps.entry(seen.series).or_default().push(seen);
            }
            if !is_chosen(seen.run, seen.series, seen.pair) {
                let pairs = cells.entry((seen.series, seen.kind)).or_default();
                let runs = pairs.entry((seen.pair, seen.host)).or_default();
                runs.push((seen.hour, &seen.blocks));
            }
        }
        let of = |(cell, pairs): (_, Pairs<'_>)| (cell, Repeated::of(pairs.into_values()));
        let alike = |(series, steps): (usize, Vec<&Seen>)| Some((series, about_zero(&steps)?));
        Learned {
            cells: cells.into_iter().map(of).collect(),
            means,
            alike: steps.into_iter().filter_map(alike).collect(),
            elsewhere: Mutex::default(),
        }
    }
}

/// How steps scatter about 0 beyond what their blocks explain, if they are of enough hours. Most neighbours
/// are equal in truth. Those that are not move a median little, and make it larger, which errs on the safe
/// side.
///
/// Source: half of the |t| of equal neighbours lie below t(0.75). So the variance that puts half of the steps
///         there is the median of (x / t(0.75, df))² − s². A median is worth 0.37 of a variance (its
///         asymptotic efficiency for squares of normal values).
fn about_zero(steps: &[&Seen]) -> Option<Assumed> {
    let hours: BTreeSet<usize> = steps.iter().map(|seen| seen.hour).collect();
    // Most runs have the same number of blocks, and a quantile takes longer than all the rest.
    let mut halves: BTreeMap<usize, f64> = BTreeMap::new();
    let between = |seen: &&Seen| {
        let blocks = &seen.blocks;
        let within = sample_sd(blocks)?.powi(2) / real(blocks.len());
        let half = { halves.entry(blocks.len()) }
            .or_insert_with(|| t_quantile(0.75, real(blocks.len() - 1)));
        Some((mean(blocks)? / *half).powi(2) - within)
    };
    let all: Vec<f64> = steps.iter().filter_map(between).collect();
    let within = |seen: &&Seen| Some(sample_sd(&seen.blocks)?.powi(2) / real(seen.blocks.len()));
    let inside: Vec<f64> = steps.iter().filter_map(within).collect();
    let least = UNSEEN.powi(2) * median(&inside)?;
    let worth = MEDIAN_WORTH * real(hours.len());
    (hours.len() >= LEAST_ALIKE).then_some(Assumed {
        sd: median(&all)?.max(least).sqrt(),
        df: worth.min(MOST_ALIKE),
    })
}

impl Learned {
    /// How the ratio of two versions of a kind moves between hours in a cell; `runs` say how precise it is
    /// within one. `None` for runs of fewer than two blocks.
    pub(crate) fn of(
        &self,
        series: usize,
        kind: Kind,
        runs: &[&[f64]],
        assumed: Assumed,
    ) -> Option<BetweenHours> {
        let nothing = Repeated::default();
        let own = self.cells.get(&(series, kind)).unwrap_or(&nothing);
        let alike = self.alike.get(&series).filter(|_| kind == Kind::Near);
        let assumed = alike.copied().unwrap_or(assumed);
        let assumed = Scatter::assumed(assumed.sd, assumed.df, runs).ok()?;
        BetweenHours::beside(own, &self.elsewhere(series, kind, own), Some(assumed))
    }

    /// What the other cells say of one, and the other means of a mean.
    fn elsewhere(&self, series: usize, kind: Kind, own: &Repeated) -> Elsewhere {
        let mut known = { self.elsewhere.lock() }.unwrap_or_else(PoisonError::into_inner);
        *known.entry((series, kind)).or_insert_with(|| {
            let is_mean = self.means.contains(&series);
            let is_other = |(at, of): &(usize, Kind)| {
                *at != series && *of == kind && self.means.contains(at) == is_mean
            };
            let others = self.cells.iter().filter(|(cell, _)| is_other(cell));
            Elsewhere::of(own, others.map(|(_, of)| of))
        })
    }
}

/// The pairs of a cell that say how hours differ: the base with each candidate, and the steps.
fn pairs(cell: &Measured, steps: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let ordered = |one: usize, other: usize| (one.min(other), one.max(other));
    let with_base = cell
        .candidates
        .keys()
        .map(|&version| ordered(cell.base, version));
    let mut all: Vec<_> = with_base.chain(steps.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}
