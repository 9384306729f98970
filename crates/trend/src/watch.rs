//! Runs one after another: what each makes suspect, and what it confirms.

use crate::hours::{APART_MS, Learned, Past, kind};
use crate::suspicion::{By, State, Suspicion};
use crate::{Assumed, Build, Measured, Run, drift};
use deltabench_stats::between::Between;
use deltabench_stats::multiplicity::benjamini_hochberg;

/// Share of false ones among the steps that a run makes suspect, on average.
const FALSE_SUSPICIONS: f64 = 0.2;

/// Tries after which a suspicion that is still open no longer stands for others with a wider range.
pub const TRIES: usize = 3;

/// The runs of a host so far, for one metric.
#[derive(Debug)]
pub struct Watch {
    builds: Vec<Build>,
    assumed: Assumed,
    past: Past,
    runs: usize,
    points: drift::Points,
    suspicions: Vec<Suspicion>,
}

/// A step of a run.
struct Step {
    series: usize,
    from: usize,
    to: usize,
    mean: Between,
    p: f64,
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
        }
    }

    /// What is suspected, confirmed and refuted, in the order in which it was raised.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Takes the next run, in the order in which they were measured. Its number is that of runs before it.
    pub fn add(&mut self, run: &Run) {
        self.past.add(run, &self.builds);
        let suspicions = &self.suspicions;
        let learned = self.past.learned(|run, series, (from, to)| {
            let mut chosen = suspicions.iter().filter(|one| one.raised == run);
            chosen.any(|one| (one.series, one.from, one.to) == (series, from, to))
        });
        for cell in &run.cells {
            self.tries(cell, run, &learned);
        }
        self.steps(run, &learned);
        for cell in &run.cells {
            self.levels(cell, run, &learned);
        }
        self.runs += 1;
    }

    /// What this run says of earlier suspicions.
    fn tries(&mut self, cell: &Measured, run: &Run, learned: &Learned) {
        let is_open = |one: &&mut Suspicion| {
            one.state == State::Suspected
                && one.series == cell.series
                && run.began_ms - one.ended_ms >= APART_MS
        };
        for one in self.suspicions.iter_mut().filter(is_open) {
            let Some(blocks) = cell.contrast(one.from, one.to).filter(|all| all.len() > 1) else {
                continue;
            };
            one.fresh.push((blocks, cell.times));
            let fresh: Vec<&[f64]> = { one.fresh.iter() }
                .map(|(blocks, _)| blocks.as_slice())
                .collect();
            let kind = kind(&self.builds, one.from, one.to);
            let known = learned.of(cell.series, kind, &fresh, self.assumed);
            let mean = known.and_then(|known| known.scatter.mean_over(&fresh).ok());
            if let Some(mean) = mean {
                one.tries.push(self.runs);
                one.ended_ms = run.ended_ms;
                one.judge(&mean, cell.delta);
            }
        }
    }

    /// Steps inside this run that are beyond chance, over all of its cells.
    fn steps(&mut self, run: &Run, learned: &Learned) {
        let mut steps = Vec::new();
        for cell in &run.cells {
            for (from, to) in cell.steps(&self.builds) {
                let Some(blocks) = cell.contrast(from, to) else {
                    continue;
                };
                let kind = kind(&self.builds, from, to);
                let known = learned.of(cell.series, kind, &[&blocks], self.assumed);
                let mean = known.and_then(|known| known.scatter.mean_over(&[&blocks]).ok());
                steps.extend(mean.map(|mean| Step {
                    series: cell.series,
                    from,
                    to,
                    p: mean.p_scaled(cell.times),
                    mean,
                }));
            }
        }
        let p: Vec<f64> = steps.iter().map(|step| step.p).collect();
        for (step, p) in steps.into_iter().zip(benjamini_hochberg(&p)) {
            if p <= FALSE_SUSPICIONS {
                let falls = step.mean.estimate < 0.0;
                let range = (step.from, step.to);
                self.raise(step.series, range, step.to, falls, By::Step, run);
            }
        }
    }

    /// What the levels of all runs with this one's base say.
    fn levels(&mut self, cell: &Measured, run: &Run, learned: &Learned) {
        let known = self.points.add(cell, &self.builds, learned, self.assumed);
        for (line, newest) in known {
            let since = self.since(cell.series, line);
            if let Some(shift) = self.points.shift(cell.series, cell.base, (line, since)) {
                let range = (shift.from, newest);
                self.raise(
                    cell.series,
                    range,
                    shift.earliest,
                    shift.falls,
                    By::Level,
                    run,
                );
            }
        }
    }

    /// The first version of a line after its last confirmed change.
    fn since(&self, series: usize, line: usize) -> usize {
        let confirmed = self.suspicions.iter().filter(|one| {
            one.series == series
                && one.state == State::Confirmed
                && self
                    .builds
                    .get(one.to)
                    .is_some_and(|build| build.line == line)
        });
        confirmed.map(|one| one.to).max().unwrap_or(0)
    }

    /// Adds a suspicion, unless one like it is open or confirmed inside of its range.
    fn raise(
        &mut self,
        series: usize,
        (from, to): (usize, usize),
        earliest: usize,
        falls: bool,
        by: By,
        run: &Run,
    ) {
        let counts = |one: &&Suspicion| match one.state {
            State::Suspected => one.tries.len() < TRIES,
            State::Confirmed => true,
            State::Refuted => false,
        };
        let mut counting = self.suspicions.iter().filter(counts);
        let known = counting.any(|one| one.is_inside(series, from, to, falls));
        if known || from == to {
            return;
        }
        let tried = self
            .suspicions
            .iter()
            .filter(|one| one.state == State::Refuted && one.overlaps(series, from, to, falls));
        self.suspicions.push(Suspicion {
            series,
            from,
            to,
            falls,
            by,
            earliest,
            raised: self.runs,
            before: tried.map(|one| one.tries.len()).sum(),
            tries: Vec::new(),
            found: None,
            state: State::Suspected,
            ended_ms: run.ended_ms,
            fresh: Vec::new(),
        });
    }
}
