//! Culprits that counts have named: each is measured next to its parent in time, and undone on the candidate.

use super::learnt::{commit, is_by_time, seconds_of_a_look};
use super::search::{Ended, Search, free_lab, skipped};
use crate::bench::library_of;
use crate::clock::{now, seed_from_clock};
use crate::console::say;
use crate::failure::Failure;
use crate::request::small;
use crate::store::store_problem;
use deltabench_acquire::{
    Revert, Undone, did_not_compile, forget_build, is_of_machine, made_of, without,
};
use deltabench_bisect::Step;
use deltabench_kinds::run_half;
use deltabench_model::bisection::{FailedStep, Happened, Outcome};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Observing, Plan, Role, Stopping};
use deltabench_model::problem::Problem;
use deltabench_run::estimate::estimate;
use deltabench_run::events::Observer;
use deltabench_run::planning::DELTA_WIDEST;
use deltabench_run::session::SessionEnd;
use deltabench_store::RunState;

/// Without a budget a command begins only what ends within this many seconds, and the largest culprit.
const SECONDS: f64 = 1200.0;

impl Search<'_> {
    /// Measures each culprit in time and counts the candidate without it, the largest first, as far as that
    /// is wanted and there is time. What was done before stays.
    ///
    /// Errors: the machine, such as a full disk or a lab that cannot be written. If a culprit cannot be
    /// measured for another reason, it says so, and the others go on.
    pub fn convict(&mut self, ended: Ended) -> Result<SessionEnd, Failure> {
        if self.asked.count_only || !matches!(ended, Ended::Found | Ended::Budget) {
            return Ok(SessionEnd::Finished);
        }
        for (rank, step) in self.steps()?.iter().enumerate() {
            for part in [Self::time, Self::undo] {
                match part(self, step, rank == 0) {
                    _ if self.interrupted() => return Ok(SessionEnd::Interrupted),
                    Ok(SessionEnd::Interrupted) => return Ok(SessionEnd::Interrupted),
                    Ok(SessionEnd::Finished) => {}
                    // Nor could the others be measured.
                    Err(failure) if is_of_machine(failure.problem()) => {
                        return Err(Failure::Failed(
                            self.with_a_way_on(failure.problem().clone()),
                        ));
                    }
                    Err(failure) => say(&failure.problem().to_string()),
                }
            }
        }
        Ok(SessionEnd::Finished)
    }

    /// Whether what takes so long may begin.
    fn fits(&self, seconds: f64, is_largest: bool) -> bool {
        let without_budget = if is_largest { f64::INFINITY } else { SECONDS };
        self.ends_in_time(seconds, without_budget)
    }

    /// Measures a culprit next to its parent in time, or what is left of that.
    fn time(&mut self, step: &Step, is_largest: bool) -> Result<SessionEnd, Failure> {
        let sides = (self.number(step.before), self.number(step.last));
        let begun = self.bisection.timing(sides).map(str::to_owned);
        let reached = match &begun {
            Some(run) => self.bench.store.reached(run).map_err(store_problem)?,
            None => None,
        };
        if let (Some(run), Some(RunState::Finished)) =
            (&begun, reached.map(|reached| reached.state))
        {
            self.tell_if_fewer(run)?;
            return Ok(SessionEnd::Finished);
        }
        let (parent, culprit) = (self.point(sides.0)?, self.point(sides.1)?);
        let mut plan = match (&begun, reached) {
            (Some(run), Some(_)) => self.bench.store.plan(run).map_err(store_problem)?,
            _ => in_time(&self.bisection.question.plan, self.asked.blocks),
        };
        let seconds = self.seconds_of_a_run(&plan)?;
        if !self.fits(seconds, is_largest) {
            say(&format!(
                "{} is not measured in time: there is no time left for it",
                culprit.name
            ));
            return Ok(SessionEnd::Finished);
        }
        say(&format!(
            "measuring {} next to its parent {} in time: {} blocks, about {}",
            culprit.name,
            parent.name,
            plan.timing.blocks,
            crate::amounts::span(seconds)
        ));
        let servers = (self.found(&parent), self.found(&culprit));
        let (parent, culprit) = (
            servers.0.map_err(Failure::Failed)?,
            servers.1.map_err(Failure::Failed)?,
        );
        place(&mut plan, &parent, &culprit);
        plan.bisects = Some(self.bisection.name.clone());
        let run = match (begun, reached) {
            (Some(run), Some(_)) => run,
            _ => self.new_timing(sides)?,
        };
        self.measure_shown(&run, &plan, reached.is_none())
    }

    /// Says that a measurement stays as it is, if it has fewer blocks than are asked for now.
    fn tell_if_fewer(&self, run: &str) -> Result<(), Failure> {
        let blocks = self
            .bench
            .store
            .plan(run)
            .map_err(store_problem)?
            .timing
            .blocks;
        if blocks < self.asked.blocks {
            say(&format!(
                "{run} has {blocks} blocks and stays as it is: what is finished is not measured again"
            ));
        }
        Ok(())
    }

    /// The run of a culprit that is about to be measured, told to the store.
    fn new_timing(&mut self, (before, culprit): (usize, usize)) -> Result<String, Failure> {
        let run = self.next_run()?;
        self.tell_store(Happened::Timing {
            before,
            culprit,
            run: run.clone(),
        })?;
        Ok(run)
    }

    /// Measures a run of this bisection, or what is left of it; `observer` hears how it goes on.
    pub fn measure(
        &mut self,
        run: &str,
        plan: &Plan,
        is_new: bool,
        observer: &mut dyn Observer,
    ) -> Result<SessionEnd, Failure> {
        let library = library_of(plan)?;
        let store = &mut self.bench.store;
        let Some(lock) = free_lab(store, run, &self.bench.interrupted)? else {
            return Ok(SessionEnd::Interrupted);
        };
        let stored = match is_new {
            true => store.create_run(run, plan, RunState::Running, now().1),
            false => store.finish_run(run, RunState::Running, now().1),
        };
        stored.map_err(store_problem)?;
        let measured = self
            .bench
            .measure_told(run, plan, &library, lock, false, observer)?;
        Ok(measured.end)
    }

    /// As [`Search::measure`], with a line for each block.
    fn measure_shown(
        &mut self,
        run: &str,
        plan: &Plan,
        is_new: bool,
    ) -> Result<SessionEnd, Failure> {
        let mut progress = self.bench.progress(plan);
        progress.note(&format!("run {run}, seed {}", plan.seed));
        self.measure(run, plan, is_new, &mut progress)
    }

    /// Seconds that a run takes on this host, set-up included.
    pub fn seconds_of_a_run(&self, plan: &Plan) -> Result<f64, Failure> {
        let takes = estimate(plan, run_half(&plan.work), &self.bench.host);
        let takes = takes.map_err(Failure::Failed)?;
        Ok((takes.set_up + takes.measuring).as_secs_f64())
    }

    /// Counts the candidate without a commit, if the commit reverts there.
    fn undo(&mut self, step: &Step, is_largest: bool) -> Result<SessionEnd, Failure> {
        let culprit = self.number(step.last);
        let last = self.last();
        // Of the candidate itself the parent is what is left without it; one of several is nobody.
        let is_one = step.first == step.last && culprit != last;
        let commit = |point| commit(&self.bisection, point);
        let (Some(candidate), Some(own)) = (commit(last), commit(culprit)) else {
            return Ok(SessionEnd::Finished);
        };
        if !is_one || self.is_undone(culprit)? {
            return Ok(SessionEnd::Finished);
        }
        let name = self.name(culprit).to_owned();
        if !self.fits(self.seconds_to_undo(last)?, is_largest) {
            say(&format!(
                "the candidate is not counted without {name}: there is no time left for it"
            ));
            return Ok(SessionEnd::Finished);
        }
        let revert = Revert {
            candidate: &candidate.id,
            culprit: &own.id,
        };
        let variant = &candidate.variant;
        let made = without(&candidate.repository, &revert, &self.cache).map_err(Failure::Failed)?;
        let not_reverted = |why: String| Outcome::Skipped {
            step: FailedStep::Revert,
            why,
        };
        let outcome = match made {
            Undone::Conflict(said) => {
                not_reverted(format!("other commits changed the same lines ({said})"))
            }
            Undone::Absent => not_reverted("the candidate does not have it any more".to_owned()),
            Undone::Made(directory, commit) => {
                let target = format!("git:{}@{commit}+{variant}", directory.display());
                match self.look_at_built(&target, culprit)? {
                    Some(outcome) => outcome,
                    None => return Ok(SessionEnd::Interrupted),
                }
            }
        };
        self.tell_store(Happened::Without { culprit, outcome })?;
        Ok(SessionEnd::Finished)
    }

    /// Measures a server next to the base and a copy of that.
    fn time_next_to_base(
        &mut self,
        found: &Installation,
        culprit: usize,
    ) -> Result<Option<Outcome>, Failure> {
        let base = self.base()?;
        let begun = match self.bisection.without(culprit) {
            Some(Outcome::Timed { run }) => Some(run.clone()),
            _ => None,
        };
        let begun = begun.filter(|run| matches!(self.bench.store.reached(run), Ok(Some(_))));
        let (run, mut plan) = match &begun {
            Some(run) => (
                run.clone(),
                self.bench.store.plan(run).map_err(store_problem)?,
            ),
            None => {
                let run = self.next_run()?;
                let outcome = Outcome::Timed { run: run.clone() };
                self.tell_store(Happened::Without { culprit, outcome })?;
                (
                    run,
                    in_time(&self.bisection.question.plan, self.asked.blocks),
                )
            }
        };
        place(&mut plan, &base, found);
        plan.bisects = Some(self.bisection.name.clone());
        match self.measure_shown(&run, &plan, begun.is_none()) {
            Ok(SessionEnd::Interrupted) => Ok(None),
            Ok(SessionEnd::Finished) => Ok(Some(Outcome::Timed { run })),
            Err(_) if self.interrupted() => Ok(None),
            Err(failure) if is_of_machine(failure.problem()) => Err(failure),
            Err(failure) => Ok(Some(skipped(FailedStep::Run, failure.problem()))),
        }
    }

    /// Whether the candidate without a commit was looked at, to the end.
    fn is_undone(&self, culprit: usize) -> Result<bool, Failure> {
        Ok(match self.bisection.without(culprit) {
            Some(Outcome::Timed { run }) => {
                let reached = self.bench.store.reached(run).map_err(store_problem)?;
                reached.is_some_and(|reached| reached.state == RunState::Finished)
            }
            known => known.is_some(),
        })
    }

    /// How long it will take to build the candidate without a commit and to look at it.
    fn seconds_to_undo(&self, last: usize) -> Result<f64, Failure> {
        if !is_by_time(&self.bisection, &self.asked, &self.places) {
            return Ok(seconds_of_a_look(&self.bisection, last));
        }
        let plan = in_time(&self.bisection.question.plan, self.asked.blocks);
        Ok(self.seconds_of_a_run(&plan)? + self.seconds_of_a_build())
    }

    /// Builds the candidate without a commit and counts it, or measures it in time where that is how points
    /// differ; nothing if the user stopped it.
    fn look_at_built(&mut self, target: &str, culprit: usize) -> Result<Option<Outcome>, Failure> {
        let specs = [target.parse().map_err(Failure::Failed)?];
        let found = crate::targets::resolve_servers(&specs, self.config);
        let found = match found.map(|found| found.into_iter().next()) {
            Err(problem) if did_not_compile(&problem) => {
                return Ok(Some(skipped(FailedStep::Build, &problem)));
            }
            Err(problem) => return Err(Failure::Failed(problem)),
            Ok(found) => found.ok_or_else(|| Failure::Failed(Problem::new("it is not there")))?,
        };
        if self.interrupted() {
            return Ok(None);
        }
        let is_by_time = is_by_time(&self.bisection, &self.asked, &self.places);
        let how = match is_by_time {
            true => "measuring",
            false => "counting",
        };
        say(&format!(
            "{how} the candidate without {}",
            self.name(culprit)
        ));
        let made_of = made_of(&found).map_err(Failure::Failed)?;
        // It is no point itself.
        let none = usize::MAX;
        let same = match is_by_time {
            true => {
                let evidence = self.evidence()?;
                evidence.measured(&self.bisection, &self.places, (none, &made_of))
            }
            false => self.same(none, &made_of),
        };
        let outcome = match same {
            Some(point) => Some(Outcome::Same { point }),
            None if is_by_time => self.time_next_to_base(&found, culprit)?,
            None => self.count_point(found.clone())?,
        };
        // Nobody needs it again.
        if outcome.is_some() {
            forget_build(&self.cache, &found).map_err(Failure::Failed)?;
        }
        Ok(outcome)
    }
}

/// The plan of a count as one that measures the same cell in time, on the same servers.
pub fn timed_plan(counted: &Plan, blocks: u32) -> Plan {
    let mut plan = counted.clone();
    plan.seed = seed_from_clock();
    plan.observing = Observing::default();
    plan.stopping = Stopping::Fixed;
    plan.delta = DELTA_WIDEST;
    plan.delta_from_noise = true;
    // As of a quick comparison.
    plan.timing = small(Vec::new(), plan.data.rows, blocks, plan.seed).timing;
    plan
}

/// The plan of a count as one that measures its base, a copy of that and its candidate in time.
fn in_time(counted: &Plan, blocks: u32) -> Plan {
    let mut plan = timed_plan(counted, blocks);
    // A second parent shows what chance does.
    let base = plan.servers.first().cloned();
    plan.servers.splice(1..1, base);
    let roles = [Role::Base, Role::Placebo, Role::Candidate];
    for (server, role) in plan.servers.iter_mut().zip(roles) {
        server.role = role;
    }
    plan
}

/// Puts the parent and the culprit where they belong.
fn place(plan: &mut Plan, parent: &Installation, culprit: &Installation) {
    for server in &mut plan.servers {
        let of = match server.role {
            Role::Base | Role::Placebo => parent,
            Role::Candidate => culprit,
        };
        server.installation = of.clone();
        server.label = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_culprit_is_measured_next_to_its_parent_and_a_copy_of_that_on_what_was_counted() {
        let mut counted = deltabench_testkit::small_run::plan();
        counted
            .servers
            .retain(|server| server.role != Role::Placebo);
        counted.observing.counters = false;
        counted.stopping = Stopping::Precision { half_width: 0.01 };
        let mut plan = in_time(&counted, 12);
        let roles: Vec<Role> = plan.servers.iter().map(|server| server.role).collect();
        assert_eq!(roles, [Role::Base, Role::Placebo, Role::Candidate]);
        assert_eq!((plan.timing.blocks, &plan.stopping), (12, &Stopping::Fixed));
        assert_eq!((&plan.data, &plan.cells), (&counted.data, &counted.cells));
        assert!(plan.observing.counting.is_none() && plan.observing.counters);
        let [parent, culprit] = ["a", "b"].map(deltabench_testkit::installations::installed);
        place(&mut plan, &parent, &culprit);
        let servers = plan.servers.iter();
        let asked: Vec<&str> = servers.map(|one| one.installation.asked.as_str()).collect();
        assert_eq!(asked, [&parent.asked, &parent.asked, &culprit.asked]);
    }
}
