//! The search for one step by time, where every value is noisy and every build has luck of its own.
//!
//! Server i in run r shows `δ·[i ≥ c] + ξ(i) + D(r) + U(i, r)` on the log scale: c is the point that did it
//! and δ what it did; D is what the run does to all; U is noise; ξ is what the layout of a build's code
//! happens to cost, which no number of runs averages away. All are normal, so the posterior of c is exact.
//!
//! Weights order the builds. An even prior convicts: the suspect and the point before it were both measured.

use crate::choice::{bits, pick};
use crate::gaussian::{Model, TimedRun, at, points};

/// A step is like this before anything is known: N(0, 5 %).
const STEP: f64 = 0.05;

/// An answer is certain enough.
const CERTAIN: f64 = 0.95;

/// A measured point that is slow with a probability between this and 1 − this is measured again before
/// another one is built: a run takes less than a build.
const DOUBTFUL: f64 = 0.05;

/// Runs of one point at most: then its layout decides, and more runs say nothing.
const RUNS: usize = 3;

/// Points of a range that are measured at most, its ends included: a search that needs more is one that
/// layout has lost.
const BUILDS: usize = 25;

/// Points that are measured in a run beside both ends.
const BESIDE: usize = 2;

/// What is known of points by time, and how servers scatter.
#[derive(Debug, Clone, Copy)]
pub struct Timed<'a> {
    /// How many points there are, in order of time, the base first.
    pub points: usize,
    pub runs: &'a [TimedRun],
    /// Points with the server of another one: itself, and that one. The other one is no such point.
    pub same: &'a [(usize, usize)],
    /// Points that cannot be measured.
    pub skipped: &'a [usize],
    /// How likely each point is to have made the step, in any unit; empty: all the same.
    pub weights: &'a [f64],
    /// What measuring each point costs, in any unit; empty: all the same.
    pub prices: &'a [f64],
    /// Standard deviation of what the layout of a build does, as a natural logarithm.
    pub layout: f64,
}

/// Where a step is: the measured points around it have no point between them that can be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The measured point before.
    pub before: usize,
    /// The measured point that shows it: it made the step, or one that was skipped between both.
    pub last: usize,
    /// How sure that is, if one step was made and all points are as likely.
    pub probability: f64,
}

/// What to do for one step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OneStep {
    /// Measure these together; one of them may have to be built.
    Measure(Vec<usize>),
    /// Below 95 % builds differ by too much for no reason, or too many could not be measured.
    Answer(Answer),
}

/// The part of a search between two measured points that differ.
pub(crate) struct Range<'a> {
    timed: &'a Timed<'a>,
    from: usize,
    to: usize,
    /// The points of the range that have a server of their own in it, by what was measured.
    runs: Vec<TimedRun>,
    /// The measured points of the range, those with the server of another one too.
    known: Vec<usize>,
}

impl<'a> Range<'a> {
    pub(crate) fn new(timed: &'a Timed<'a>, from: usize, to: usize) -> Self {
        let measured = points(timed.runs);
        let is_known = |point: &usize| measured.contains(&timed.server(*point));
        let known: Vec<usize> = (from..=to).filter(is_known).collect();
        // A server that several points of the range have stands at the first of them.
        let first = |server: usize| {
            let mut same = known.iter().filter(|point| timed.server(**point) == server);
            same.next().copied()
        };
        let inside = |run: &TimedRun| TimedRun {
            values: run
                .values
                .iter()
                .filter_map(|(point, value)| Some((first(*point)?, *value)))
                .collect(),
            ..*run
        };
        Self {
            timed,
            from,
            to,
            runs: timed.runs.iter().map(inside).collect(),
            known,
        }
    }

    /// What to do for the step in it.
    pub(crate) fn next(&self) -> OneStep {
        let likelihood = self.likelihood();
        let even = self.posterior(&likelihood, |_| 1.0);
        let answer = self.answer(&even);
        if self.is_certain(&answer) {
            return OneStep::Answer(answer);
        }
        let weight = |point: usize| {
            let given = self.timed.weights.get(point).copied();
            given.filter(|weight| *weight > 0.0).unwrap_or(1.0)
        };
        let steering = self.posterior(&likelihood, weight);
        let doubtful = self.doubtful(&steering).or_else(|| self.doubtful(&even));
        match doubtful.or_else(|| self.build(&steering)) {
            Some(points) => OneStep::Measure(points),
            None => OneStep::Answer(answer),
        }
    }

    /// Whether an answer is sure enough, and nothing between its points can be measured.
    pub(crate) fn is_certain(&self, answer: &Answer) -> bool {
        answer.probability >= CERTAIN && self.open(answer.before, answer.last).is_empty()
    }

    /// The likeliest pair of neighbours among the measured points.
    pub(crate) fn likeliest(&self) -> Answer {
        self.answer(&self.posterior(&self.likelihood(), |_| 1.0))
    }

    fn answer(&self, even: &[f64]) -> Answer {
        let gaps = self.known.windows(2).filter_map(|pair| match pair {
            [before, last] => Some(Answer {
                before: *before,
                last: *last,
                // A sum of shares may be a little more than 1.
                probability: (before + 1..=*last)
                    .map(|point| self.of(even, point))
                    .sum::<f64>()
                    .min(1.0),
            }),
            _ => None,
        });
        let best = gaps.max_by(|a, b| a.probability.total_cmp(&b.probability));
        best.unwrap_or(Answer {
            before: self.from,
            last: self.to,
            probability: 0.0,
        })
    }

    /// The points between two others that can be measured and were not.
    fn open(&self, before: usize, last: usize) -> Vec<usize> {
        let is_open =
            |point: &usize| !self.known.contains(point) && !self.timed.skipped.contains(point);
        (before + 1..last).filter(is_open).collect()
    }

    /// The built points that may be on either side of the step, with both ends; nothing if none is in doubt.
    fn doubtful(&self, posterior: &[f64]) -> Option<Vec<usize>> {
        let mut before = 0.0;
        let mut found: Vec<(usize, f64)> = Vec::new();
        for point in self.from + 1..self.to {
            before += self.of(posterior, point);
            let doubt = before.min(1.0 - before);
            let runs = self.timed.runs_of(point);
            if doubt > DOUBTFUL && (1..RUNS).contains(&runs) {
                found.push((point, doubt));
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(BESIDE);
        let points = found.into_iter().map(|(point, _)| point);
        let points: Vec<usize> = points.collect();
        (!points.is_empty()).then(|| self.beside(&points))
    }

    /// The point that splits the posterior best, of those that were not built, with both ends.
    fn build(&self, posterior: &[f64]) -> Option<Vec<usize>> {
        if self.known.len() >= BUILDS {
            return None;
        }
        let open = self.open(self.from, self.to);
        let mut before = 0.0;
        let mut candidates: Vec<(usize, f64)> = Vec::new();
        for point in self.from + 1..self.to {
            before += self.of(posterior, point);
            // A split off of nothing says nothing.
            if open.contains(&point) && before > 1e-6 && before < 1.0 - 1e-6 {
                candidates.push((point, bits(before)));
            }
        }
        let price = |point: usize| self.timed.prices.get(point).copied().unwrap_or(1.0);
        let inside = |point: &&usize| (self.from..self.to).contains(*point);
        let skipped: Vec<usize> = self.timed.skipped.iter().filter(inside).copied().collect();
        let found = pick(&candidates, &skipped, self.to - self.from, price)?;
        Some(self.beside(&[found]))
    }

    /// These points with both ends, each server once.
    fn beside(&self, points: &[usize]) -> Vec<usize> {
        let all = [&[self.from], points, &[self.to]].concat();
        let mut servers: Vec<usize> = Vec::new();
        for point in all {
            let server = self.timed.server(point);
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }

    /// What the step costs if it is where it is likeliest, and the standard error of that, layout included.
    /// All measured points say it; the ends alone may differ by less, because each has luck of its own.
    /// Nothing if no point inside was measured.
    pub(crate) fn step(&self) -> Option<(f64, f64)> {
        let model = self.model();
        let inside = 1..model.points().len();
        if inside.len() < 2 {
            return None;
        }
        let of = |place: &usize| model.likelihood(*place, STEP);
        let may_be = |place: &usize| {
            let point = model.points().get(*place);
            point.is_some_and(|point| !self.is_within_one_server(*point))
        };
        let likeliest = inside
            .filter(may_be)
            .max_by(|a, b| of(a).total_cmp(&of(b)))?;
        Some(model.step(likeliest, STEP))
    }

    /// The measured points of the range with the luck of their layouts.
    fn model(&self) -> Model {
        // Without any layout luck the matrix would have no inverse.
        let least = self.runs.iter().map(|run| run.pair / 100.0);
        Model::of(&self.runs, least.fold(self.timed.layout, f64::max))
    }

    /// The logarithm of the likelihood that the step is at each point after the first.
    fn likelihood(&self) -> Vec<f64> {
        let model = self.model();
        // It is the same for all points between two that were measured.
        let of_gap: Vec<f64> = (0..model.points().len())
            .map(|first_slow| model.likelihood(first_slow, STEP))
            .collect();
        let gap = |point: usize| model.points().partition_point(|one| *one < point);
        let of = |point: usize| match self.is_within_one_server(point) {
            true => f64::NEG_INFINITY,
            false => of_gap.get(gap(point)).copied().unwrap_or(f64::NEG_INFINITY),
        };
        (self.from + 1..=self.to).map(of).collect()
    }

    /// Whether measured points on both sides have one server: between them there is no step.
    fn is_within_one_server(&self, point: usize) -> bool {
        let (before, after): (Vec<usize>, Vec<usize>) =
            self.known.iter().partition(|known| **known < point);
        let mut servers = before.iter().map(|known| self.timed.server(*known));
        servers.any(|server| {
            after
                .iter()
                .any(|known| self.timed.server(*known) == server)
        })
    }

    /// Probabilities of the points after the first, from the logarithms of their likelihoods and a prior in
    /// any unit.
    fn posterior(&self, likelihood: &[f64], prior: impl Fn(usize) -> f64) -> Vec<f64> {
        let highest = likelihood.iter().copied().fold(f64::MIN, f64::max);
        let points = self.from + 1..=self.to;
        let all = likelihood.iter().zip(points);
        let all: Vec<f64> = all
            .map(|(log, point)| (log - highest).exp() * prior(point))
            .collect();
        let sum: f64 = all.iter().sum();
        let share = |one: f64| one / sum.max(f64::MIN_POSITIVE);
        all.into_iter().map(share).collect()
    }

    /// The entry of a point in what begins with the one after the first.
    fn of(&self, values: &[f64], point: usize) -> f64 {
        let place = point.checked_sub(self.from + 1);
        place.map_or(0.0, |place| at(values, place))
    }
}

impl Timed<'_> {
    /// The point whose server a point has.
    pub(crate) fn server(&self, point: usize) -> usize {
        let mut same = self.same.iter().filter(|(one, _)| *one == point);
        same.next().map_or(point, |(_, other)| *other)
    }

    /// How many runs a point was measured in.
    pub(crate) fn runs_of(&self, point: usize) -> usize {
        let server = self.server(point);
        let is_in = |run: &&TimedRun| run.values.iter().any(|(one, _)| *one == server);
        self.runs.iter().filter(is_in).count()
    }
}
