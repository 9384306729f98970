//! What a bisection says now, from its looks.

use super::in_time::in_time;
use super::learnt::{is_out_of_time, is_same_server, known, places, profile_of, wish};
use super::search::Ended;
use crate::failure::Failure;
use deltabench_bisect::{Interval, Next, Sequence, Step, found, next};
use deltabench_explain::explain;
use deltabench_model::bisection::{Asked, Bisection, Look, Outcome, Point};
use deltabench_report::{
    BISECTED_FORMAT, BaseAlone, Bisected, BisectedLook, BisectedPoint, Culprit, OpenInterval,
    Quiet, SuspectPoint, WithoutCulprit, explanation_lines,
};
use deltabench_store::Store;

/// Functions that are named of each culprit.
const FUNCTIONS: usize = 4;

/// What a bisection says now; `ended` is how its search ended, if that was just now.
pub fn shown(
    bisection: &Bisection,
    ended: Option<Ended>,
    store: &Store,
) -> Result<Bisected, Failure> {
    let none = Asked {
        min: 0.005,
        culprits: 1,
        skip: Vec::new(),
        keep_builds: 0,
        budget_seconds: None,
        count_only: false,
        blocks: 14,
    };
    let asked = bisection.asked().unwrap_or(&none);
    let (question, places) = (&bisection.question, places(&bisection.question));
    let known = known(bisection, asked, &places);
    let (sequence, wish) = (Sequence::plain(&known), wish(bisection, asked));
    let found = found(&sequence, &wish);
    let told = Told {
        bisection,
        places: &places,
        store,
    };
    let last = places.last().copied().unwrap_or(0);
    let mut culprits = Vec::new();
    for step in &found.steps {
        culprits.push(told.culprit(step)?);
    }
    let is_same = is_same_server(bisection, &places);
    let is_out_of_time = is_out_of_time(bisection);
    let ended = ended.unwrap_or_else(|| match next(&sequence, &wish) {
        _ if is_same => Ended::SameServer,
        Next::Measure(_) if is_out_of_time => Ended::Budget,
        Next::NothingDiffers => Ended::NothingDiffers,
        Next::Done => Ended::Found,
        Next::End(_) | Next::Measure(_) => Ended::Interrupted,
    });
    let counted = |point| Some((told.instructions(0)?, told.instructions(point)?));
    Ok(Bisected {
        format: BISECTED_FORMAT.0,
        version: BISECTED_FORMAT.1,
        name: bisection.name.clone(),
        workload: workload(bisection),
        base: told.point(0),
        candidate: told.point(question.points.len().saturating_sub(1)),
        points: question.points.len(),
        may_differ: places.len(),
        base_alone: question.base_alone.as_ref().map(|alone| BaseAlone {
            commit: alone.commit.clone(),
            commits: alone.commits,
        }),
        min: wish.min.exp_m1(),
        instructions: counted(last),
        change: bisection.ratio(last).map(|ratio| ratio - 1.0),
        end: word(ended),
        culprits,
        open: found.open.iter().map(|one| told.open(one)).collect(),
        quiet: Quiet {
            intervals: found.quiet.intervals,
            points: found.quiet.points,
            change: found.quiet.together.exp_m1(),
        },
        looks: bisection.looks().map(|look| told.look(look)).collect(),
    })
}

fn workload(bisection: &Bisection) -> String {
    let cells = &bisection.question.plan.cells;
    cells
        .first()
        .map_or_else(String::new, |cell| cell.workload.clone())
}

fn word(ended: Ended) -> &'static str {
    match ended {
        Ended::Found => "found",
        Ended::NothingDiffers => "nothing-differs",
        Ended::SameServer => "same-server",
        Ended::Budget => "undecided",
        Ended::Interrupted => "interrupted",
    }
}

/// A bisection with its looks.
struct Told<'a> {
    bisection: &'a Bisection,
    places: &'a [usize],
    store: &'a Store,
}

impl Told<'_> {
    /// The number of a place's point.
    fn number(&self, place: usize) -> usize {
        self.places.get(place).copied().unwrap_or(0)
    }

    fn point(&self, number: usize) -> BisectedPoint {
        let point = self.bisection.question.points.get(number);
        // A bisection has at least two.
        point.map_or_else(BisectedPoint::default, of_point)
    }

    fn culprit(&self, step: &Step) -> Result<Culprit, Failure> {
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
            .map(|run| in_time(run, change, self.store))
            .transpose()?;
        Ok(Culprit {
            parent: self.point(before),
            one_of: (step.first..=step.last).map(suspect).collect(),
            change,
            instructions: instructions.unwrap_or_default(),
            functions: self.functions(before, last)?,
            in_time: timing.flatten(),
            without: self
                .bisection
                .without(last)
                .map(|outcome| self.without(outcome)),
        })
    }

    fn without(&self, outcome: &Outcome) -> WithoutCulprit {
        let (ratio, why) = match outcome {
            Outcome::Counted {
                instructions, base, ..
            } => (Some(instructions / base), None),
            Outcome::Same { point } => (self.bisection.ratio(*point), None),
            Outcome::Skipped { step, why } => (None, Some(format!("{}: {why}", step.words()))),
        };
        WithoutCulprit {
            change: ratio.map(|ratio| ratio - 1.0),
            why,
        }
    }

    fn open(&self, interval: &Interval) -> OpenInterval {
        OpenInterval {
            from: self.point(self.number(interval.from)),
            to: self.point(self.number(interval.to)),
            change: interval.step.exp_m1(),
            points: interval.to - interval.from,
        }
    }

    fn look(&self, look: &Look) -> BisectedLook {
        let (outcome, run) = match &look.outcome {
            Outcome::Counted { run, .. } => ("counted", Some(run.clone())),
            Outcome::Same { .. } => ("same", None),
            Outcome::Skipped { .. } => ("skipped", None),
        };
        BisectedLook {
            number: look.point,
            point: self.point(look.point),
            outcome,
            change: self.bisection.ratio(look.point).map(|ratio| ratio - 1.0),
            run,
            skipped: why(look),
            built: look.built,
            acquire_seconds: look.acquire_seconds,
            count_seconds: look.count_seconds,
        }
    }

    /// Why a point could not be measured.
    fn skipped(&self, number: usize) -> Option<String> {
        match self.bisection.look(number) {
            Some(look) => why(look),
            None => Some("left out by --skip".to_owned()),
        }
    }

    fn instructions(&self, number: usize) -> Option<f64> {
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
