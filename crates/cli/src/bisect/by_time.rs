//! The search by time: which servers are measured together next, in a run of a few restart blocks.

use super::BUILD_SECONDS;
use super::convict::timed_plan;
use super::evidence::{Evidence, NO_CPU};
use super::learnt::is_same_server;
use super::search::{Ended, Search, Silent, skipped};
use super::told::HALF_WIDTH;
use crate::amounts::span;
use crate::console::say;
use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_acquire::{did_not_compile, is_of_machine, made_of};
use deltabench_bisect::{Climbed, Step, TimedStep};
use deltabench_model::bisection::{FailedStep, Happened, Look, Outcome, Together};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Plan, Role};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_run::session::SessionEnd;
use deltabench_store::RunState;
use std::time::Instant;

/// Restart blocks of a look in time.
const BLOCKS: u32 = 6;

/// Looks in a row that may say nothing, because other load or the machine made them unfit.
const DOUBTS: usize = 3;

/// A server for a look.
struct Ready {
    point: usize,
    made_of: String,
    installation: Installation,
    built: bool,
}

/// How a look in time went.
enum Looked {
    /// With all that is known now.
    Known(Evidence),
    /// A point is skipped, or the same as another one.
    Changed,
    Interrupted,
}

impl Search<'_> {
    /// Measures points in time until the search knows its steps, or that it cannot.
    pub fn by_time(&mut self) -> Result<Ended, Failure> {
        let mut looked = self.finish_begun()?;
        loop {
            if self.interrupted() || matches!(looked, Looked::Interrupted) {
                return Ok(Ended::Interrupted);
            }
            if is_same_server(&self.bisection, &self.places) {
                return Ok(Ended::SameServer);
            }
            let evidence = match looked {
                Looked::Known(evidence) => evidence,
                Looked::Changed | Looked::Interrupted => self.evidence()?,
            };
            let climbed = evidence.climb(&self.weights, &self.prices());
            if climbed.measure.is_empty() {
                return Ok(end_of(&climbed));
            }
            let points: Vec<usize> = climbed.measure.iter().map(|at| self.number(*at)).collect();
            // Both ends are measured in any case.
            if !evidence.runs.is_empty() && !self.fits_a_run(&points)? {
                self.tell_store(Happened::OutOfTime)?;
                return Ok(Ended::Budget);
            }
            looked = self.measure_together(&points, None, &evidence)?;
        }
    }

    /// The steps that time shows.
    pub fn steps_by_time(&self) -> Result<Vec<Step>, Failure> {
        let climbed = self.evidence()?.climb(&[], &[]);
        Ok(climbed.steps.iter().map(TimedStep::step).collect())
    }

    pub fn evidence(&self) -> Result<Evidence, Failure> {
        Evidence::of(
            &self.bisection,
            &self.asked,
            &self.places,
            &self.bench.store,
        )
    }

    /// Ends the last look in time, if the command before was stopped during it. One that failed, or whose
    /// point was left out since, is made again if the search still wants it.
    fn finish_begun(&mut self) -> Result<Looked, Failure> {
        let Some(begun) = self.bisection.together().last().cloned() else {
            return Ok(Looked::Changed);
        };
        let reached = self
            .bench
            .store
            .reached(&begun.run)
            .map_err(store_problem)?;
        let stopped = reached.is_some_and(|reached| {
            matches!(reached.state, RunState::Running | RunState::Interrupted)
        });
        let evidence = self.evidence()?;
        let place = |point: &usize| self.places.binary_search(point).ok();
        let mut places = begun.points.iter().filter_map(place);
        if !stopped || places.any(|place| evidence.skipped.contains(&place)) {
            return Ok(Looked::Known(evidence));
        }
        say(&format!("going on with look {}", begun.run));
        self.measure_together(&begun.points, Some(&begun.run), &evidence)
    }

    /// Whether a run of these points, and what has to be built for it, would probably end in time.
    fn fits_a_run(&self, points: &[usize]) -> Result<bool, Failure> {
        let base = self.bisection.question.plan.servers.first();
        let servers = base.into_iter().cycle().take(points.len());
        let mut plan = timed_plan(&self.bisection.question.plan, BLOCKS);
        plan.servers = servers.cloned().collect();
        let seconds = self.seconds_of_a_run(&plan)? + self.build_seconds(points)?;
        Ok(self.ends_in_time(seconds, f64::INFINITY))
    }

    /// How long the builds of these points will take, as those before them did on average.
    fn build_seconds(&self, points: &[usize]) -> Result<f64, Failure> {
        let mut builds = 0;
        for point in points {
            builds += usize::from(self.is_to_be_built(&self.point(*point)?));
        }
        Ok(self.seconds_of_a_build() * to_f64(count(builds)))
    }

    /// How long a build took on average in looks in time.
    pub fn seconds_of_a_build(&self) -> f64 {
        let (mut seconds, mut before) = (0.0, 0);
        for look in self.bisection.together() {
            seconds += look.acquire_seconds;
            before += look.built.len();
        }
        match before {
            0 => BUILD_SECONDS,
            some => seconds / to_f64(count(some)),
        }
    }

    /// Finds the servers of these points, the first of which is the base of the run, and measures them: in a
    /// new run, or in one that was stopped. `evidence` is what is known before.
    fn measure_together(
        &mut self,
        points: &[usize],
        begun: Option<&str>,
        evidence: &Evidence,
    ) -> Result<Looked, Failure> {
        let began = Instant::now();
        let mut ready: Vec<Ready> = Vec::new();
        for point in points {
            match self.ready(*point, &ready, evidence)? {
                Some(server) => ready.push(server),
                // What is known now leads to another look.
                None => return Ok(Looked::Changed),
            }
            if self.interrupted() {
                return Ok(Looked::Interrupted);
            }
        }
        let is_new = |point: &usize| {
            let place = self.places.binary_search(point);
            place.is_ok_and(|place| !evidence.is_measured(place))
        };
        let new: Vec<usize> = points.iter().copied().filter(is_new).collect();
        let acquired = began.elapsed().as_secs_f64();
        let (run, mut plan) = match begun {
            Some(run) => (
                run.to_owned(),
                self.bench.store.plan(run).map_err(store_problem)?,
            ),
            None => (
                self.tell_begun(points, &ready, acquired)?,
                timed_plan(&self.bisection.question.plan, BLOCKS),
            ),
        };
        place(&mut plan, &ready);
        plan.bisects = Some(self.bisection.name.clone());
        let measuring = Instant::now();
        let looked = match self.measure(&run, &plan, begun.is_none(), &mut Silent) {
            Err(_) if self.interrupted() => return Ok(Looked::Interrupted),
            Err(failure) => {
                self.blame(&new, failure)?;
                Looked::Changed
            }
            Ok(SessionEnd::Interrupted) => return Ok(Looked::Interrupted),
            Ok(SessionEnd::Finished) => {
                self.failures = 0;
                let evidence = self.evidence()?;
                let took = (acquired, measuring.elapsed().as_secs_f64());
                self.tell_together(points, took, &evidence)?;
                Looked::Known(evidence)
            }
        };
        let at_hand = [points.first(), points.last(), new.first()];
        self.forget_builds(at_hand.map(|point| point.copied().unwrap_or(0)))?;
        Ok(looked)
    }

    /// Tells the store that these servers are about to be measured, as which run.
    fn tell_begun(
        &mut self,
        points: &[usize],
        ready: &[Ready],
        acquire_seconds: f64,
    ) -> Result<String, Failure> {
        let run = self.next_run()?;
        let built = ready.iter().filter(|one| one.built).map(|one| one.point);
        self.tell_store(Happened::Together(Together {
            run: run.clone(),
            points: points.to_vec(),
            made_of: ready.iter().map(|one| one.made_of.clone()).collect(),
            built: built.collect(),
            acquire_seconds,
        }))?;
        Ok(run)
    }

    /// The server of a point; nothing if it cannot be built or is one that is known, which is stored.
    fn ready(
        &mut self,
        number: usize,
        others: &[Ready],
        evidence: &Evidence,
    ) -> Result<Option<Ready>, Failure> {
        let point = self.point(number)?;
        let began = Instant::now();
        let built = self.is_to_be_built(&point);
        if built {
            self.tell_store(Happened::Building { point: number })?;
        }
        let found = self.found(&point);
        let found = found.and_then(|found| Ok((made_of(&found)?, found)));
        let mut look = Look {
            point: number,
            outcome: Outcome::Same { point: number },
            made_of: None,
            acquire_seconds: began.elapsed().as_secs_f64(),
            count_seconds: 0.0,
            built,
        };
        let (made_of, installation) = match found {
            _ if self.interrupted() => return Ok(None),
            Err(problem) if did_not_compile(&problem) && !self.is_end(number) => {
                look.outcome = skipped(FailedStep::Build, &problem);
                say(&format!("{} does not build: {}", point.name, problem.error));
                self.tell_store(Happened::Look(look.clone()))?;
                self.count_failures(&look)?;
                return Ok(None);
            }
            Err(problem) => return Err(Failure::Failed(self.with_a_way_on(problem))),
            Ok(found) => found,
        };
        let mut others = others.iter();
        let same = others.find(|other| other.made_of == made_of);
        let same = same.map(|other| Outcome::Same { point: other.point });
        let known = same.or_else(|| {
            let known = (number, made_of.as_str());
            evidence.of_server(&self.bisection, &self.places, known)
        });
        if let Some(outcome) = known {
            look.outcome = outcome;
            self.tell_known(look, made_of)?;
            return Ok(None);
        }
        Ok(Some(Ready {
            point: number,
            made_of,
            installation,
            built,
        }))
    }

    /// Stores that a point has the server of another one, which was measured or cannot be.
    fn tell_known(&mut self, mut look: Look, made_of: String) -> Result<(), Failure> {
        let name = self.name(look.point).to_owned();
        if let Outcome::Same { point } = look.outcome {
            say(&format!(
                "{name} has the same server as {}",
                self.name(point)
            ));
            look.made_of = Some(made_of);
            return self.tell_store(Happened::Look(look));
        }
        if let Outcome::Skipped { step, why } = &look.outcome {
            say(&format!("{name} {}: {why}", step.words()));
        }
        self.tell_store(Happened::Look(look.clone()))?;
        self.count_failures(&look)
    }

    fn is_end(&self, number: usize) -> bool {
        number == 0 || Some(&number) == self.places.last()
    }

    /// Leaves out the one point that is new in a run that failed.
    fn blame(&mut self, new: &[usize], failure: Failure) -> Result<(), Failure> {
        let problem = failure.problem().clone();
        let [point] = new else {
            return Err(Failure::Failed(self.with_a_way_on(problem)));
        };
        if is_of_machine(&problem) || self.is_end(*point) {
            return Err(Failure::Failed(self.with_a_way_on(problem)));
        }
        say(&format!(
            "{} does not run: {}",
            self.name(*point),
            problem.error
        ));
        let look = Look {
            point: *point,
            outcome: skipped(FailedStep::Run, &problem),
            made_of: None,
            acquire_seconds: 0.0,
            count_seconds: 0.0,
            built: false,
        };
        self.tell_store(Happened::Look(look.clone()))?;
        self.count_failures(&look)
    }

    /// A line for a look in time: what its points cost over the base, by all looks so far.
    ///
    /// Errors: several looks in a row that say nothing, or a metric that is not known on this machine.
    fn tell_together(
        &self,
        points: &[usize],
        (acquired, took): (f64, f64),
        evidence: &Evidence,
    ) -> Result<(), Failure> {
        if let Some(why) = evidence.doubts.last() {
            let problem = Problem::new(format!("a look says nothing: {why}"));
            return match why == NO_CPU {
                true => Err(Failure::Failed(problem.hint("add --metric throughput"))),
                false if evidence.doubts.len() >= DOUBTS => {
                    Err(Failure::Failed(self.with_a_way_on(problem)))
                }
                false => {
                    say(&format!("{}; it is made again", problem.error));
                    Ok(())
                }
            };
        }
        let cost = |point: &usize| {
            let place = self.places.binary_search(point).ok()?;
            let (cost, error) = evidence.cost(place).filter(|_| place > 0)?;
            let name = self.name(*point);
            Some(format!(
                "{name} {:+.1} ± {:.1} %",
                cost.exp_m1() * 100.0,
                HALF_WIDTH * error * 100.0
            ))
        };
        let costs: Vec<String> = points.iter().filter_map(cost).collect();
        let acquired = match acquired >= 10.0 {
            true => format!("servers after {}, ", span(acquired)),
            false => String::new(),
        };
        say(&format!(
            "look {:>2} in time  {}  ({acquired}measured in {})",
            self.bisection.together().count(),
            costs.join(", "),
            span(took)
        ));
        Ok(())
    }
}

/// How a search ended that has nothing left to measure.
pub fn end_of(climbed: &Climbed) -> Ended {
    match (climbed.steps.is_empty(), climbed.open.is_empty()) {
        (false, _) => Ended::Found,
        (true, false) => Ended::Unsure,
        (true, true) => Ended::NothingDiffers,
    }
}

/// Puts servers into a plan: the first is the base.
fn place(plan: &mut Plan, ready: &[Ready]) {
    let Some(base) = plan.servers.first().cloned() else {
        return;
    };
    let server = |(number, one): (usize, &Ready)| {
        let mut server = base.clone();
        server.role = match number {
            0 => Role::Base,
            _ => Role::Candidate,
        };
        server.installation = one.installation.clone();
        server.label = None;
        server
    };
    plan.servers = ready.iter().enumerate().map(server).collect();
}
