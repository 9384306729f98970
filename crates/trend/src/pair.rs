//! Any two versions of a cell: what runs with both say, and what the others say of them.

use crate::difference::Difference;
use crate::hours::{APART_MS, Kind, kind};
use crate::known::Known;
use crate::network::Network;
use crate::solved::{connected, is_known};
use crate::stars::{Hours, Star};
use crate::without::Whole;
use crate::{Assumed, Build, Measured, Run};
use deltabench_stats::between::Between;
use deltabench_stats::multiplicity::benjamini_hochberg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Standard errors between what runs with both versions say and what the others say, from which on the two
/// contradict each other: 3 in 1000 do by chance.
const CONTRADICT: f64 = 3.0;

/// A version, or what one run has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Its place among the versions.
    pub version: usize,
    /// By number.
    pub run: Option<usize>,
}

/// How two ends were compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// By one run that was asked for: it holds for the hour of that run.
    InRun,
    /// By all runs that have both: it holds over many hours.
    Direct,
    /// By versions between them, in their order: no run has both.
    Through(Vec<usize>),
    /// Two runs that were asked for, by this version, which both have.
    Shared(usize),
}

/// Two versions of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub way: Way,
    /// The log-ratio of the second to the first.
    pub found: Difference,
    /// Runs that say so, by number, oldest first.
    pub runs: Vec<usize>,
    /// What runs say that do not have both, if they connect them and others have both.
    pub around: Option<Difference>,
    /// Whether these contradict each other: something else than the versions differs.
    pub contradicts: bool,
    /// The smallest change that matters, the largest of these runs.
    pub delta: f64,
    /// Whether an assumption about hours takes part.
    pub assumed: bool,
    /// Runs of these that other load disturbed.
    pub disturbed: usize,
}

/// The runs of a host, ready to compare versions.
#[derive(Debug)]
pub struct Pairs<'a> {
    runs: &'a [Run],
    pub(crate) builds: &'a [Build],
    pub(crate) assumed: Assumed,
    pub(crate) known: Arc<Known>,
}

/// A cell in the run of a number.
type InRun<'a> = (usize, &'a Measured);

impl<'a> Pairs<'a> {
    /// Takes runs in the order in which they were measured.
    pub fn new(runs: &'a [Run], builds: &'a [Build], assumed: Assumed) -> Self {
        let known = Arc::new(Known::of(runs, builds));
        Self::knowing(runs, builds, (&known, assumed))
    }

    /// The same, with what is known of all of these runs.
    pub fn knowing(
        runs: &'a [Run],
        builds: &'a [Build],
        (known, assumed): (&Arc<Known>, Assumed),
    ) -> Self {
        Self {
            runs,
            builds,
            assumed,
            known: Arc::clone(known),
        }
    }

    /// The second version relative to the first, in a cell; `None` if no runs connect them. If the run of one
    /// end alone is asked for, and has both, it answers; else all runs do.
    pub fn of(&self, series: usize, from: End, to: End) -> Option<Pair> {
        match (from.run, to.run) {
            (Some(one), Some(other)) if one != other => {
                self.shared(series, (one, from.version), (other, to.version))
            }
            _ if from.version == to.version => None,
            (Some(run), _) | (_, Some(run)) => {
                let own = self.in_run(series, run, (from.version, to.version));
                let both = from.run.is_some() && to.run.is_some();
                own.or_else(|| (!both).then(|| self.versions(series, from.version, to.version))?)
            }
            (None, None) => self.versions(series, from.version, to.version),
        }
    }

    /// The same in those of these cells that runs connect them in, each with its number and its p of "equal"
    /// among all of these (Benjamini-Hochberg).
    pub fn all(
        &self,
        cells: impl Iterator<Item = usize>,
        from: End,
        to: End,
    ) -> Vec<(usize, Pair, f64)> {
        let found: Vec<(usize, Pair)> = cells
            .filter_map(|cell| Some((cell, self.of(cell, from, to)?)))
            .collect();
        let alone: Vec<f64> = found.iter().map(|(_, pair)| pair.found.p).collect();
        let among = benjamini_hochberg(&alone);
        let all = found.into_iter().zip(among);
        all.map(|((cell, pair), p)| (cell, pair, p)).collect()
    }

    pub(crate) fn cells(&self, series: usize) -> impl Iterator<Item = InRun<'a>> {
        self.known.cells(series, self.runs)
    }

    fn in_run(&self, series: usize, run: usize, (from, to): (usize, usize)) -> Option<Pair> {
        let (_, cell) = self.cells(series).find(|(at, _)| *at == run)?;
        let found = cell.difference(from, to)?;
        Some(pair(Way::InRun, found, &[(run, cell)], false))
    }

    /// Two versions over all runs.
    fn versions(&self, series: usize, from: usize, to: usize) -> Option<Pair> {
        let hours = self.known.hours(series, self.assumed);
        let all = self.known.stars(series, (self.runs, self.builds), &hours);
        let own = self.direct(series, from, to);
        if own.is_empty() {
            let network = Network::among(all.iter(), self.builds, from, &hours);
            let found = network?.difference(from, to)?;
            let runs = self.connected(series, from);
            let way = Way::Through(self.path(series, from, to));
            return Some(pair(way, found, &runs, hours.assumed));
        }
        let (found, assumed) = self.mean(series, (from, to), &own)?;
        let around = self.around((series, all), (from, to), &hours);
        let contradicts = around.is_some_and(|around| {
            (around.value - found.value).abs() > CONTRADICT * around.error.hypot(found.error)
        });
        Some(Pair {
            around,
            contradicts,
            ..pair(Way::Direct, found, &own, assumed)
        })
    }

    /// What the runs say that do not have both; `None` if they do not connect them.
    fn around(
        &self,
        (series, all): (usize, &[Star]),
        (from, to): (usize, usize),
        hours: &Hours,
    ) -> Option<Difference> {
        let has_both = |star: &&Star| star.has(from) && star.has(to);
        let (gone, rest): (Vec<&Star>, Vec<&Star>) = all.iter().partition(has_both);
        // Many versions were measured in one run alone: nothing is solved for them.
        let is_there = |version| rest.iter().any(|star| star.has(version));
        if !is_there(from) || !is_there(to) || !is_known(&connected(&rest, from), to) {
            return None;
        }
        // The same system for all who ask about a branch, whoever comes first.
        let all: Vec<&Star> = all.iter().collect();
        let with_it = connected(&all, from);
        let is_alike =
            |at: &usize| is_known(&with_it, *at) && self.builds.get(*at) == self.builds.get(from);
        let anchor = (0..with_it.len()).find(is_alike)?;
        let whole = || Whole::of(all, self.builds, anchor);
        let whole = self.known.whole((series, anchor), whole);
        let without = |whole: &Whole| whole.without((&gone, &rest), self.builds, (from, to));
        if let Some((value, error)) = Option::as_ref(&whole).and_then(without) {
            return Some(Difference::of(value, error, hours.df));
        }
        Network::among(rest.into_iter(), self.builds, from, hours)?.difference(from, to)
    }

    /// What runs with both say over many hours, and whether an assumption takes part.
    fn mean(
        &self,
        series: usize,
        (from, to): (usize, usize),
        own: &[InRun<'_>],
    ) -> Option<(Difference, bool)> {
        let blocks: Vec<Vec<f64>> = { own.iter() }
            .filter_map(|(_, cell)| cell.contrast(from, to))
            .collect();
        let blocks: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
        let kind = kind(self.builds, from, to);
        let known = self
            .known
            .learned()
            .of(series, kind, &blocks, self.assumed)?;
        let mean = known.scatter.mean_over(&blocks).ok()?;
        Some((Difference::between(&mean, times(own)), known.assumed))
    }

    /// In how many hours runs have both, and what they say together; `None` without one.
    pub(crate) fn side_by_side(
        &self,
        series: usize,
        from: usize,
        to: usize,
    ) -> Option<(usize, Difference)> {
        let own = self.direct(series, from, to);
        let (found, _) = self.mean(series, (from, to), &own)?;
        Some((own.len(), found))
    }

    /// Runs with both versions. Of those within minutes the first counts: they share its luck. Of distant
    /// versions those on the newest host that has both: another kernel may move their ratio.
    fn direct(&self, series: usize, from: usize, to: usize) -> Vec<InRun<'a>> {
        let mut ended: Option<i64> = None;
        let mut own = Vec::new();
        for (at, cell) in self.known.cells_with(series, (from, to), self.runs) {
            let has_both = cell.has_contrast(from, to);
            let Some(run) = self.runs.get(at).filter(|_| has_both) else {
                continue;
            };
            if ended.is_none_or(|ended| run.began_ms - ended >= APART_MS) {
                own.push((at, cell));
                ended = Some(run.ended_ms);
            }
        }
        let newest = own.last().map(|(_, cell)| cell.host);
        if kind(self.builds, from, to) == Kind::Far {
            own.retain(|(_, cell)| Some(cell.host) == newest);
        }
        own
    }

    /// What two runs found of one version each, by a version that both have: the base of both if that is one.
    fn shared(&self, series: usize, one: (usize, usize), other: (usize, usize)) -> Option<Pair> {
        let cell = |run: usize| self.cells(series).find(|(at, _)| *at == run);
        let (first, second) = (cell(one.0)?, cell(other.0)?);
        let versions: BTreeSet<usize> = second.1.versions().into_iter().collect();
        let mut common: Vec<usize> = first.1.versions();
        common.retain(|version| versions.contains(version));
        let is_base = |version: &usize| *version == first.1.base || *version == second.1.base;
        common.sort_by_key(|version| (!is_base(version), *version));
        let by = *common.first()?;
        let mut assumed = false;
        let mut level = |(_, cell): InRun<'_>, version: usize| -> Option<Option<Between>> {
            if version == by {
                return Some(None);
            }
            let blocks = cell.contrast(by, version)?;
            let kind = kind(self.builds, by, version);
            let known = self
                .known
                .learned()
                .of(series, kind, &[&blocks], self.assumed)?;
            assumed |= known.assumed;
            Some(known.scatter.mean_over(&[&blocks]).ok())
        };
        let (from, to) = (level(first, one.1)?, level(second, other.1)?);
        let mean = match (&from, &to) {
            (Some(from), Some(to)) => to.less(from),
            (Some(from), None) => from.around(-from.estimate),
            (None, to) => (*to)?,
        };
        let runs = [first, second];
        let found = Difference::between(&mean, times(&runs));
        Some(pair(Way::Shared(by), found, &runs, assumed))
    }

    /// Runs that have a part in the levels of what is connected with a version.
    fn connected(&self, series: usize, from: usize) -> Vec<InRun<'a>> {
        let reached = self.reached(series, from);
        let takes_part = |(_, cell): &InRun<'_>| reached.contains_key(&cell.base);
        self.cells(series).filter(takes_part).collect()
    }

    /// Versions on the shortest way between two, without its ends.
    fn path(&self, series: usize, from: usize, to: usize) -> Vec<usize> {
        let reached = self.reached(series, from);
        let (mut at, mut path) = (to, Vec::new());
        while let Some(before) = reached.get(&at).copied().filter(|before| *before != from) {
            path.push(before);
            at = before;
        }
        path.reverse();
        path
    }

    /// All versions that runs connect with one, each with the version before it on the shortest way; itself
    /// included, with itself.
    fn reached(&self, series: usize, from: usize) -> BTreeMap<usize, usize> {
        let cells: Vec<Vec<usize>> = { self.cells(series) }
            .map(|(_, cell)| cell.versions())
            .collect();
        let mut reached = BTreeMap::from([(from, from)]);
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            for version in cells.iter().filter(|own| own.contains(&at)).flatten() {
                if !reached.contains_key(version) {
                    reached.insert(*version, at);
                    open.push_back(*version);
                }
            }
        }
        reached
    }
}

fn times(runs: &[InRun<'_>]) -> f64 {
    runs.iter().map(|(_, cell)| cell.times).fold(1.0, f64::max)
}

fn pair(way: Way, found: Difference, runs: &[InRun<'_>], assumed: bool) -> Pair {
    let disturbed = runs.iter().filter(|(_, cell)| !cell.is_sound);
    Pair {
        way,
        found,
        runs: runs.iter().map(|(at, _)| *at).collect(),
        around: None,
        contradicts: false,
        delta: runs.iter().map(|(_, cell)| cell.delta).fold(0.0, f64::max),
        assumed,
        disturbed: disturbed.count(),
    }
}
