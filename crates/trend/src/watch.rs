//! Runs one after another: what each makes suspect, and what it confirms.

use crate::hours::{APART_MS, Learned, Past, kind};
use crate::known::Known;
use crate::suspicion::{By, State, Suspicion, TRIED_FOR_MS};
use crate::{Assumed, Build, Measured, Run, drift, real};
use deltabench_stats::between::Between;
use deltabench_stats::multiplicity::benjamini_hochberg;
use deltabench_stats::summary::mean;
use std::collections::{BTreeMap, BTreeSet};

/// Share of false ones among the steps that a run makes suspect, on average.
const FALSE_SUSPICIONS: f64 = 0.2;

/// The runs of a host so far, for one metric.
#[derive(Debug)]
pub struct Watch {
    builds: Vec<Build>,
    assumed: Assumed,
    past: Past,
    runs: usize,
    points: drift::Points,
    suspicions: Vec<Suspicion>,
    /// The work of each series.
    works: BTreeMap<usize, usize>,
}

/// A step of a run.
struct Step {
    series: usize,
    from: usize,
    to: usize,
    mean: Between,
    p: f64,
    delta: f64,
}

impl Watch {
    /// Begins with no run; `builds` are in the order of versions.
    pub fn new(builds: Vec<Build>, assumed: Assumed) -> Self {
        Self {
            builds,
            assumed,
            past: Past::default(),
            runs: 0,
            points: drift::Points::default(),
            suspicions: Vec::new(),
            works: BTreeMap::new(),
        }
    }

    /// As after these runs, which raised and tried what is given: the same as adding them one after another,
    /// without judging them again.
    pub fn after(
        runs: &[Run],
        suspicions: Vec<Suspicion>,
        builds: Vec<Build>,
        assumed: Assumed,
    ) -> Self {
        let mut points = drift::Points::default();
        for run in runs {
            for cell in run.cells.iter().filter(|cell| cell.is_sound) {
                // How hours differ counts for the newest point alone, and a further run brings its own.
                points.add(cell, run, &builds, &|_, _| Some(0.0));
            }
        }
        Self {
            past: Past::of(runs, &builds),
            runs: runs.len(),
            builds,
            assumed,
            points,
            suspicions,
            works: works(runs).collect(),
        }
    }

    /// What is suspected, confirmed and refuted, in the order in which it was raised.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// What all of these runs say together.
    pub fn known(&self, runs: &[Run]) -> Known {
        Known::with(self.past.learned(|_, _, _| false), runs)
    }

    /// Takes the next run, in the order in which they were measured. Its number is that of runs before it.
    pub fn add(&mut self, run: &Run) {
        self.past.add(run, &self.builds);
        self.works.extend(works(std::slice::from_ref(run)));
        let chosen: BTreeSet<_> = { self.suspicions.iter() }
            .map(|one| (one.raised, one.series, (one.from, one.to)))
            .collect();
        let learned = self
            .past
            .learned(|run, series, ends| chosen.contains(&(run, series, ends)));
        let sound = || run.cells.iter().filter(|cell| cell.is_sound);
        for cell in sound() {
            self.tries(cell, run, &learned);
        }
        self.steps(run, &learned);
        for cell in sound() {
            self.levels(cell, run, &learned);
        }
        self.runs += 1;
    }

    /// What this run says of earlier suspicions, and of confirmed changes since.
    fn tries(&mut self, cell: &Measured, run: &Run, learned: &Learned) {
        let is_met = |one: &&mut Suspicion| {
            one.state != State::Refuted
                && one.series == cell.series
                && run.began_ms - one.ended_ms >= APART_MS
        };
        for one in self.suspicions.iter_mut().filter(is_met) {
            let Some(blocks) = cell.contrast(one.from, one.to).filter(|all| all.len() > 1) else {
                continue;
            };
            let kind = kind(&self.builds, one.from, one.to);
            let mean = |runs: &[&[f64]]| {
                let known = learned.of(cell.series, kind, runs, self.assumed);
                known.and_then(|known| known.scatter.mean_over(runs).ok())
            };
            one.ended_ms = run.ended_ms;
            if one.state == State::Confirmed {
                one.later.push(blocks);
                let later: Vec<&[f64]> = one.later.iter().map(Vec::as_slice).collect();
                if let Some(mean) = mean(&later) {
                    one.go_on(&mean);
                }
                continue;
            }
            one.fresh.push((blocks, cell.times));
            let fresh: Vec<&[f64]> = { one.fresh.iter() }
                .map(|(blocks, _)| blocks.as_slice())
                .collect();
            if let Some(mean) = mean(&fresh) {
                one.tries.push(self.runs);
                one.judge(&mean, cell.delta);
            }
        }
    }

    /// Steps inside this run that are beyond chance, over all of its cells.
    fn steps(&mut self, run: &Run, learned: &Learned) {
        let mut steps = Vec::new();
        for cell in run.cells.iter().filter(|cell| cell.is_sound) {
            for (from, to) in cell.steps(&self.builds) {
                let Some(blocks) = cell.contrast(from, to) else {
                    continue;
                };
                let kind = kind(&self.builds, from, to);
                let known = learned.of(cell.series, kind, &[&blocks], self.assumed);
                let mean = known.and_then(|known| known.scatter.mean_over(&[&blocks]).ok());
                let is_of_one = cell.members > 1 && rests_on_one(&of_cells(run, cell, from, to));
                let mean = mean.filter(|_| !is_of_one);
                steps.extend(mean.map(|mean| Step {
                    series: cell.series,
                    from,
                    to,
                    p: mean.p_scaled(cell.times),
                    mean,
                    delta: cell.delta,
                }));
            }
        }
        let p: Vec<f64> = steps.iter().map(|step| step.p).collect();
        for (step, p) in steps.into_iter().zip(benjamini_hochberg(&p)) {
            if p <= FALSE_SUSPICIONS {
                let falls = step.mean.estimate < 0.0;
                let raised = Raised {
                    series: step.series,
                    range: (step.from, step.to),
                    earliest: step.to,
                    falls,
                    by: By::Step,
                    delta: step.delta,
                };
                self.raise(raised, run);
            }
        }
    }

    /// What the levels of all runs with this one's base say.
    fn levels(&mut self, cell: &Measured, run: &Run, learned: &Learned) {
        let between = |kind, blocks: &[f64]| {
            let hours = learned.of(cell.series, kind, &[blocks], self.assumed)?;
            Some(hours.scatter.between())
        };
        let known = self.points.add(cell, run, &self.builds, &between);
        for (build, newest) in known {
            let since = self.since(cell, run, build);
            if let Some(shift) = self.points.shift(cell.series, cell.base, build, since) {
                let raised = Raised {
                    series: cell.series,
                    range: (shift.from, newest),
                    earliest: shift.earliest,
                    falls: shift.falls,
                    by: By::Level,
                    delta: cell.delta,
                };
                if cell.members == 1 || !rests_on_one(&self.moved(run, build, (since, shift.at))) {
                    self.raise(raised, run);
                }
            }
        }
    }

    /// How far the levels of the cells of a run moved at a version, among those from `since` on.
    fn moved(&self, run: &Run, build: Build, (since, at): (usize, usize)) -> Vec<f64> {
        let cells = run.cells.iter().filter(|cell| cell.members == 1);
        let moved = |cell: &Measured| {
            let line = (cell.series, cell.base, build);
            self.points.moved(line, (since, at))
        };
        cells.filter_map(moved).collect()
    }

    /// The first version of a line and branch after the last confirmed change of a series. A change of a cell
    /// is one of its mean, too, if it moves that by half of what matters there.
    fn since(&self, cell: &Measured, run: &Run, of: Build) -> usize {
        let least = (1.0 + cell.delta).ln() / 2.0 * real(cell.members);
        let is_large = |one: &&Suspicion| {
            let found = one.found.map_or(0.0, |found| found.change.value.abs());
            one.series == cell.series || cell.members == 1 || found >= least
        };
        let is_own = |known: &&Measured| known.series == cell.series || cell.members > 1;
        let own = run.cells.iter().filter(is_own);
        let confirmed = own.flat_map(|known| self.confirmed(known.series));
        let in_line =
            confirmed.filter(|one| self.builds.get(one.to).is_some_and(|build| *build == of));
        { in_line.filter(is_large) }
            .map(|one| one.to)
            .max()
            .unwrap_or(0)
    }

    /// The confirmed changes of a series, and of those of the same work: a change stays one when deltabench
    /// measures in another way.
    fn confirmed(&self, series: usize) -> impl Iterator<Item = &Suspicion> {
        let work = self.works.get(&series);
        let is_same = move |one: &&Suspicion| {
            one.series == series || (work.is_some() && self.works.get(&one.series) == work)
        };
        let confirmed = self
            .suspicions
            .iter()
            .filter(|one| one.state == State::Confirmed);
        confirmed.filter(is_same)
    }

    /// Adds a suspicion, unless one like it is confirmed, or may still be tried, inside of its range.
    fn raise(&mut self, raised: Raised, run: &Run) {
        let Raised {
            series,
            range: (from, to),
            earliest,
            falls,
            by,
            delta,
        } = raised;
        let all = || self.suspicions.iter();
        let is_tried = all()
            .filter(|one| one.series == series && one.counts(run.ended_ms))
            .any(|one| one.is_inside(from, to, falls));
        let is_known = is_tried
            || self
                .confirmed(series)
                .any(|one| one.is_inside(from, to, falls));
        let open = || all().filter(|one| one.state != State::Confirmed);
        let overlapping = || open().filter(|one| one.overlaps(series, from, to, falls));
        // Levels say the same every night: what was tried in vain rests for a week.
        let rests =
            by == By::Level && overlapping().any(|one| run.ended_ms - one.ended_ms <= TRIED_FOR_MS);
        // A run that has just refuted it is no reason to suspect it anew.
        let refuted = |one: &&Suspicion| one.state == State::Refuted;
        let mut by_this = overlapping().filter(refuted);
        let refutes = by_this.any(|one| one.tries.last() == Some(&self.runs));
        if is_known || rests || refutes || from >= earliest || earliest > to {
            return;
        }
        let before = overlapping().map(|one| one.tries.len()).sum();
        self.suspicions.push(Suspicion {
            series,
            from,
            to,
            falls,
            by,
            earliest,
            raised: self.runs,
            before,
            tries: Vec::new(),
            found: None,
            since: None,
            delta,
            state: State::Suspected,
            raised_ms: run.ended_ms,
            ended_ms: run.ended_ms,
            fresh: Vec::new(),
            later: Vec::new(),
        });
    }
}

/// What each cell behind a mean has between two versions, in the blocks of the mean.
fn of_cells(run: &Run, mean_of_all: &Measured, from: usize, to: usize) -> Vec<f64> {
    let blocks = || mean_of_all.candidates.values().next().into_iter().flatten();
    let cells = run.cells.iter().filter(|cell| cell.members == 1);
    let of = |cell: &Measured| {
        let step = |block| Some(cell.level(to, block)? - cell.level(from, block)?);
        let steps: Vec<f64> = blocks().filter_map(|(block, _)| step(*block)).collect();
        mean(&steps)
    };
    cells.filter_map(of).collect()
}

/// Whether less than half of the mean of these cells is left without the one that changed most in its
/// direction: then it is a change of that cell, and said there.
fn rests_on_one(cells: &[f64]) -> bool {
    let sum: f64 = cells.iter().sum();
    let most = { cells.iter() }.map(|value| value * sum.signum());
    let most = most.fold(f64::MIN, f64::max);
    let (number, sum) = (real(cells.len()), sum.abs());
    (sum - most) / (number - 1.0) < sum / number / 2.0
}

/// The work of each series of some runs.
fn works(runs: &[Run]) -> impl Iterator<Item = (usize, usize)> {
    let cells = runs.iter().flat_map(|run| &run.cells);
    cells.map(|cell| (cell.series, cell.work))
}

/// What a run makes suspect.
struct Raised {
    series: usize,
    range: (usize, usize),
    earliest: usize,
    falls: bool,
    by: By,
    delta: f64,
}
