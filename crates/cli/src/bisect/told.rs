//! The looks of a bisection and what they say of points, steps and intervals.

use super::evidence::Evidence;
use super::in_time::in_time;
use super::learnt::{known, profile_of, wish};
use super::search::Ended;
use crate::failure::Failure;
use deltabench_bisect::{Interval, Next, Sequence, Step, found, next};
use deltabench_explain::explain;
use deltabench_model::bisection::{Asked, Bisection, Look, Outcome, Point};
use deltabench_report::{
    BisectedLook, BisectedPoint, By, Culprit, InTime, OpenInterval, Quiet, SuspectPoint, TimeSays,
    WithoutCulprit, explanation_lines,
};
use deltabench_store::Store;

/// Functions that are named of each culprit.
const FUNCTIONS: usize = 4;

/// Half a 95 % interval, in standard errors.
pub const HALF_WIDTH: f64 = 1.96;

/// What the looks say, by count or by time.
pub struct Said {
    pub min: f64,
    pub change: Option<f64>,
    pub ci95: Option<(f64, f64)>,
    /// How the search ended; interrupted if more looks would follow.
    pub ended: Ended,
    pub culprits: Vec<Culprit>,
    pub open: Vec<OpenInterval>,
    pub quiet: Quiet,
    pub looks: Vec<BisectedLook>,
}

/// A bisection with its looks.
pub struct Told<'a> {
    pub bisection: &'a Bisection,
    pub places: &'a [usize],
    /// What points are compared by.
    pub by: By,
    /// What looks in time say; nothing of a search by count.
    pub evidence: Option<Evidence>,
    pub store: &'a Store,
}

impl Told<'_> {
    /// What counts say.
    pub fn by_count(&self, asked: &Asked) -> Result<Said, Failure> {
        let known = known(self.bisection, asked, self.places);
        let (sequence, wish) = (Sequence::plain(&known), wish(self.bisection, asked));
        let found = found(&sequence, &wish);
        let last = self.places.last().copied().unwrap_or(0);
        let culprits = found.steps.iter().map(|step| self.culprit(step));
        Ok(Said {
            min: wish.min.exp_m1(),
            change: self.bisection.ratio(last).map(|ratio| ratio - 1.0),
            ci95: None,
            ended: match next(&sequence, &wish) {
                Next::NothingDiffers => Ended::NothingDiffers,
                Next::Done => Ended::Found,
                Next::End(_) | Next::Measure(_) => Ended::Interrupted,
            },
            culprits: culprits.collect::<Result<_, _>>()?,
            open: found.open.iter().map(|one| self.open(one)).collect(),
            quiet: Quiet {
                intervals: found.quiet.intervals,
                points: found.quiet.points,
                change: found.quiet.together.exp_m1(),
            },
            looks: self.bisection.looks().map(|look| self.look(look)).collect(),
        })
    }

    /// The number of a place's point.
    pub fn number(&self, place: usize) -> usize {
        self.places.get(place).copied().unwrap_or(0)
    }

    pub fn point(&self, number: usize) -> BisectedPoint {
        let point = self.bisection.question.points.get(number);
        // A bisection has at least two.
        point.map_or_else(BisectedPoint::default, of_point)
    }

    pub fn culprit(&self, step: &Step) -> Result<Culprit, Failure> {
        let (before, last) = (self.number(step.before), self.number(step.last));
        let suspect = |place: usize| {
            let number = self.number(place);
            SuspectPoint {
                point: self.point(number),
                skipped: self.skipped(number),
            }
        };
        let instructions = self.instructions(before).zip(self.instructions(last));
        let change = step.size.exp_m1();
        let timing = self.bisection.timing((before, last));
        let timing = timing
            .map(|run| in_time(run, (change, self.by), self.store))
            .transpose()?;
        Ok(Culprit {
            parent: self.point(before),
            one_of: (step.first..=step.last).map(suspect).collect(),
            change,
            ci95: None,
            probability: None,
            instructions,
            functions: self.functions(before, last)?,
            in_time: timing.flatten(),
            without: self
                .bisection
                .without(last)
                .map(|outcome| self.without(outcome))
                .transpose()?,
        })
    }

    /// The candidate without a commit, where it was measured in time.
    fn without_in_time(&self, run: &str) -> Result<WithoutCulprit, Failure> {
        let timed = in_time(run, (1.0, self.by), self.store)?;
        let doubted = |timed: &InTime| match timed.says {
            TimeSays::Unfinished => Some("its measurement in time did not end".to_owned()),
            TimeSays::Untrusted => timed.doubt.clone(),
            _ => None,
        };
        let why = match &timed {
            None => Some("it was not measured".to_owned()),
            Some(timed) => doubted(timed),
        };
        let change = timed
            .and_then(|timed| timed.cost())
            .filter(|_| why.is_none());
        Ok(WithoutCulprit {
            change: change.map(|change| change.change),
            ci95: change.and_then(|change| change.ci95),
            why,
        })
    }

    /// The candidate without a commit, where it is the server of a point that was measured in time.
    fn without_like(&self, point: usize, evidence: &Evidence) -> WithoutCulprit {
        let place = self.places.binary_search(&point).ok();
        let cost = place.and_then(|place| evidence.cost(place));
        WithoutCulprit {
            change: cost.map(|(size, _)| size.exp_m1()),
            ci95: cost.map(interval),
            why: cost
                .is_none()
                .then(|| "its server was not measured".to_owned()),
        }
    }

    fn without(&self, outcome: &Outcome) -> Result<WithoutCulprit, Failure> {
        let (ratio, why) = match outcome {
            Outcome::Counted {
                instructions, base, ..
            } => (Some(instructions / base), None),
            Outcome::Same { point } => match &self.evidence {
                Some(evidence) => return Ok(self.without_like(*point, evidence)),
                None => (self.bisection.ratio(*point), None),
            },
            Outcome::Timed { run } => return self.without_in_time(run),
            Outcome::Skipped { step, why } => (None, Some(format!("{}: {why}", step.words()))),
        };
        Ok(WithoutCulprit {
            change: ratio.map(|ratio| ratio - 1.0),
            ci95: None,
            why,
        })
    }

    fn open(&self, interval: &Interval) -> OpenInterval {
        OpenInterval {
            from: self.point(self.number(interval.from)),
            to: self.point(self.number(interval.to)),
            change: interval.step.exp_m1(),
            points: interval.to - interval.from,
            likely: None,
        }
    }

    pub fn look(&self, look: &Look) -> BisectedLook {
        let (outcome, run) = match &look.outcome {
            Outcome::Counted { run, .. } => ("counted", Some(run.clone())),
            Outcome::Timed { run } => ("timed", Some(run.clone())),
            Outcome::Same { .. } => ("same", None),
            Outcome::Skipped { .. } => ("skipped", None),
        };
        BisectedLook {
            number: look.point,
            point: self.point(look.point),
            outcome,
            change: self.bisection.ratio(look.point).map(|ratio| ratio - 1.0),
            ci95: None,
            run,
            skipped: why(look),
            built: look.built,
            acquire_seconds: look.acquire_seconds,
            count_seconds: look.count_seconds,
        }
    }

    /// Why a point could not be measured.
    pub fn skipped(&self, number: usize) -> Option<String> {
        match self.bisection.look(number) {
            Some(look) => why(look),
            None if self.is_timed(number) => None,
            None => Some("left out by --skip".to_owned()),
        }
    }

    /// Whether a look in time measured a point.
    fn is_timed(&self, number: usize) -> bool {
        let mut looks = self.bisection.together();
        looks.any(|look| look.points.contains(&number))
    }

    pub fn instructions(&self, number: usize) -> Option<f64> {
        match self.bisection.counted(number)?.outcome {
            Outcome::Counted { instructions, .. } => Some(instructions),
            _ => None,
        }
    }

    /// What changed in which function between two points, from their counts.
    fn functions(&self, before: usize, after: usize) -> Result<Vec<String>, Failure> {
        let profile = |number| profile_of(self.bisection, number, self.store);
        let (base, candidate) = (profile(before)?, profile(after)?);
        Ok(match base.zip(candidate) {
            Some((base, candidate)) => explanation_lines(&explain(&base, &candidate, FUNCTIONS)),
            None => Vec::new(),
        })
    }
}

fn why(look: &Look) -> Option<String> {
    match &look.outcome {
        Outcome::Skipped { step, why } => Some(format!("{}: {why}", step.words())),
        _ => None,
    }
}

fn of_point(point: &Point) -> BisectedPoint {
    BisectedPoint {
        target: point.target.clone(),
        name: point.name.clone(),
        date: point.date.clone(),
        subject: point.subject.clone(),
    }
}

/// The 95 % interval of a change as shares, from its natural logarithm and standard error.
pub fn interval((size, error): (f64, f64)) -> (f64, f64) {
    let end = |sign: f64| (size + sign * HALF_WIDTH * error).exp_m1();
    (end(-1.0), end(1.0))
}
