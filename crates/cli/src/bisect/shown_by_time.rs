//! What a bisection says that measured points in time.

use super::evidence::Evidence;
use super::search::Ended;
use super::told::{Said, Told, interval};
use crate::failure::Failure;
use deltabench_bisect::{Answer, Climbed, Contrast, TimedStep};
use deltabench_model::bisection::Outcome;
use deltabench_report::{BisectedLook, Culprit, LikelyInterval, OpenInterval, Quiet};

impl Told<'_> {
    /// What looks in time say.
    pub fn by_time(&self, evidence: &Evidence) -> Result<Said, Failure> {
        let climbed = evidence.climb(&[], &[]);
        let whole = evidence.cost(self.places.len().saturating_sub(1));
        let culprits = climbed.steps.iter().map(|step| self.timed_culprit(step));
        let mut culprits = culprits.collect::<Result<Vec<_>, _>>()?;
        culprits.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        Ok(Said {
            min: evidence.min(),
            change: whole.map(|(size, _)| size.exp_m1()),
            ci95: whole.map(interval),
            ended: ended(&climbed),
            culprits,
            open: climbed
                .open
                .iter()
                .map(|open| self.timed_open(open))
                .collect(),
            quiet: quiet(&climbed, evidence),
            looks: self.timed_looks(evidence),
        })
    }

    fn timed_culprit(&self, step: &TimedStep) -> Result<Culprit, Failure> {
        let culprit = self.culprit(&step.step())?;
        Ok(Culprit {
            ci95: Some(interval((step.contrast.size, step.contrast.error))),
            probability: Some(step.at.probability),
            ..culprit
        })
    }

    fn timed_open(&self, (likely, range): &(Answer, Contrast)) -> OpenInterval {
        let point = |place: usize| self.point(self.number(place));
        OpenInterval {
            from: point(range.from),
            to: point(range.to),
            change: range.size.exp_m1(),
            points: range.to - range.from,
            likely: Some(LikelyInterval {
                from: point(likely.before),
                to: point(likely.last),
                probability: likely.probability,
            }),
        }
    }

    /// A row for each point that was measured, and for each that could not be.
    fn timed_looks(&self, evidence: &Evidence) -> Vec<BisectedLook> {
        let mut looks: Vec<BisectedLook> = Vec::new();
        for together in self.bisection.together() {
            for (server, number) in together.points.iter().enumerate() {
                if let Some(known) = looks.iter_mut().find(|look| look.number == *number) {
                    let runs = known.run.get_or_insert_default();
                    runs.push_str(", ");
                    runs.push_str(&together.run);
                    continue;
                }
                let cost = self.places.binary_search(number).ok();
                let cost = cost.and_then(|place| evidence.cost(place));
                let built = together.built.contains(number);
                looks.push(BisectedLook {
                    number: *number,
                    point: self.point(*number),
                    outcome: "timed",
                    change: cost.map(|(size, _)| size.exp_m1()),
                    ci95: cost.filter(|_| server > 0).map(interval),
                    run: Some(together.run.clone()),
                    skipped: None,
                    built,
                    acquire_seconds: if built { together.acquire_seconds } else { 0.0 },
                    count_seconds: 0.0,
                });
            }
        }
        let others = self
            .bisection
            .looks()
            .filter(|look| matches!(look.outcome, Outcome::Same { .. } | Outcome::Skipped { .. }));
        looks.extend(others.map(|look| {
            BisectedLook {
                change: self
                    .places
                    .binary_search(&look.point)
                    .ok()
                    .and_then(|place| Some(evidence.cost(place)?.0.exp_m1())),
                ..self.look(look)
            }
        }));
        looks
    }
}

fn ended(climbed: &Climbed) -> Ended {
    match climbed.measure.is_empty() {
        true => super::by_time::end_of(climbed),
        false => Ended::Interrupted,
    }
}

/// The points inside ranges that do not differ.
fn quiet(climbed: &Climbed, evidence: &Evidence) -> Quiet {
    let inside = |range: &Contrast| {
        let points = range.from + 1..range.to;
        points
            .filter(|place| evidence.cost(*place).is_none() && !evidence.skipped.contains(place))
            .count()
    };
    let inner: Vec<(usize, f64)> = climbed
        .quiet
        .iter()
        .map(|range| (inside(range), range.size))
        .collect();
    Quiet {
        intervals: inner.iter().filter(|(points, _)| *points > 0).count(),
        points: inner.iter().map(|(points, _)| points).sum(),
        change: inner.iter().map(|(_, size)| size).sum::<f64>().exp_m1(),
    }
}
