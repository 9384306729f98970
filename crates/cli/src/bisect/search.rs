//! The loop: which point next, its server, its count; each look is stored as it ends.

use super::learnt::{FAILURES, is_by_time, is_same_server, known, places, seconds_of_a_look, wish};
use super::prior::prior;
use crate::amounts::span;
use crate::bench::{Bench, library_of};
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::store::store_problem;
use crate::targets::resolve_servers;
use deltabench_acquire::{
    Cache, build_here, built_names, did_not_compile, forget_build, is_of_machine, made_of,
};
use deltabench_bisect::{Choice, Known, Next, Sequence, Step, Wish, forecast, found, next};
use deltabench_compare::ServerCount;
use deltabench_model::bisection::{Asked, Bisection, FailedStep, Happened, Look, Outcome, Point};
use deltabench_model::counts::Counting;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::{count, to_f64};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use deltabench_run::session::SessionEnd;
use deltabench_store::{RunLock, RunState, Store};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every step that is large enough is found, or as many as wanted.
    Found,
    /// The ends do not differ by as much.
    NothingDiffers,
    /// Both ends are the same server.
    SameServer,
    /// Something differs, and time cannot tell which point made it.
    Unsure,
    /// Another look would take longer than allowed.
    Budget,
    /// The user stopped it.
    Interrupted,
}

/// A run and how it ended, or what failed on its servers.
type Measured = Result<(String, SessionEnd), Problem>;

/// The lab's lock, as soon as no other command measures in it; nothing if the user stopped waiting.
pub fn free_lab(
    store: &Store,
    run: &str,
    interrupted: &AtomicBool,
) -> Result<Option<RunLock>, Failure> {
    /// How often to try.
    const PAUSE: Duration = Duration::from_millis(500);
    let mut told = false;
    while !interrupted.load(Ordering::Relaxed) {
        match store.try_lock_run(run).map_err(Failure::Failed)? {
            Ok(lock) => return Ok(Some(lock)),
            Err(busy) if !told => {
                say(&format!("waiting: {}", busy.error));
                told = true;
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Ok(None)
}

/// A search at work.
pub struct Search<'a> {
    pub bench: &'a mut Bench,
    pub config: &'a Config,
    pub cache: Cache,
    pub bisection: Bisection,
    pub asked: Asked,
    pub places: Vec<usize>,
    /// When the command began.
    pub began: Instant,
    /// How likely each place is to have done it; empty without a prior.
    pub weights: Vec<f64>,
    /// Looks in a row that failed.
    pub failures: usize,
    /// The server of the base, as soon as this command found it.
    base: Option<Installation>,
}

impl<'a> Search<'a> {
    pub fn new(
        bench: &'a mut Bench,
        config: &'a Config,
        bisection: Bisection,
        asked: Asked,
        began: Instant,
    ) -> Result<Self, Failure> {
        Ok(Self {
            places: places(&bisection.question),
            bench,
            config,
            cache: Cache::open(config.cache.clone()).map_err(Failure::Refused)?,
            bisection,
            asked,
            began,
            weights: Vec::new(),
            failures: 0,
            base: None,
        })
    }

    /// Looks at points until nothing is left to be found, or it has to stop.
    pub fn go_on(&mut self) -> Result<Ended, Failure> {
        if self.asked.metric.is_in_time() {
            return self.by_time();
        }
        if let Some(ended) = self.ends()? {
            return Ok(ended);
        }
        if is_by_time(&self.bisection, &self.asked, &self.places) {
            say(&format!(
                "instructions per operation differ by {}, which is not what changed: the search goes on by \
                 CPU per operation",
                percent(self.bisection.ratio(self.last()).unwrap_or(1.0))
            ));
            self.weights = prior(&self.bisection, &self.places, &self.bench.store)?;
            return self.by_time();
        }
        let wish = wish(&self.bisection, &self.asked);
        let known_now = known(&self.bisection, &self.asked, &self.places);
        if let Next::Measure(_) = next(&Sequence::plain(&known_now), &wish) {
            self.weights = prior(&self.bisection, &self.places, &self.bench.store)?;
            // Without a prior it is the one that was told before.
            if self.bisection.looks().count() <= 2 && !self.weights.is_empty() {
                self.tell_forecast(&known_now, &wish);
            }
        }
        self.narrow_down()
    }

    /// The last point that may differ from the one before: it stands for the candidate.
    pub fn last(&self) -> usize {
        self.places.last().copied().unwrap_or(0)
    }

    /// The number of a place's point.
    pub fn number(&self, place: usize) -> usize {
        self.places.get(place).copied().unwrap_or(0)
    }

    /// The steps that are found, the largest first.
    pub fn steps(&self) -> Result<Vec<Step>, Failure> {
        if is_by_time(&self.bisection, &self.asked, &self.places) {
            return self.steps_by_time();
        }
        let known = known(&self.bisection, &self.asked, &self.places);
        let wish = wish(&self.bisection, &self.asked);
        Ok(found(&Sequence::plain(&known), &wish).steps)
    }

    /// Looks at the next point until there is none.
    fn narrow_down(&mut self) -> Result<Ended, Failure> {
        loop {
            if self.interrupted() {
                return Ok(Ended::Interrupted);
            }
            let known = known(&self.bisection, &self.asked, &self.places);
            let prices = self.prices();
            let look = seconds_of_a_look(&self.bisection, self.last());
            let sequence = Sequence {
                points: &known,
                weights: &self.weights,
                prices: &prices,
            };
            match next(&sequence, &wish(&self.bisection, &self.asked)) {
                Next::Measure(choice) if self.ends_in_time(look, f64::INFINITY) => {
                    if self.look(&choice)? == SessionEnd::Interrupted {
                        return Ok(Ended::Interrupted);
                    }
                }
                Next::Measure(_) => {
                    self.tell_store(Happened::OutOfTime)?;
                    return Ok(Ended::Budget);
                }
                Next::NothingDiffers => return Ok(Ended::NothingDiffers),
                Next::Done | Next::End(_) => return Ok(Ended::Found),
            }
        }
    }

    /// Counts both ends next to each other, if that was not done.
    fn ends(&mut self) -> Result<Option<Ended>, Failure> {
        let last = self.last();
        if is_same_server(&self.bisection, &self.places) {
            return Ok(Some(Ended::SameServer));
        }
        if self.bisection.counted(last).is_some() {
            return Ok(None);
        }
        let mut plan = self.bisection.question.plan.clone();
        let mut made = Vec::new();
        for (place, server) in [0, last].into_iter().zip(&mut plan.servers) {
            let point = self.point(place)?;
            let found = self.found(&point);
            if self.interrupted() {
                return Ok(Some(Ended::Interrupted));
            }
            server.installation = found.map_err(Failure::Failed)?;
            made.push(made_of(&server.installation).map_err(Failure::Failed)?);
        }
        // Both were found, and perhaps built, since the command began.
        let acquire_seconds = self.began.elapsed().as_secs_f64();
        if made.first() == made.last() {
            self.keep(Look {
                point: last,
                outcome: Outcome::Same { point: 0 },
                made_of: made.pop(),
                acquire_seconds,
                count_seconds: 0.0,
                built: false,
            })?;
            return Ok(Some(Ended::SameServer));
        }
        let counting = Instant::now();
        let counted = self.count(&plan);
        if self.interrupted() && !matches!(counted, Ok(Ok(_))) {
            return Ok(Some(Ended::Interrupted));
        }
        let (run, end) = counted?.map_err(Failure::Failed)?;
        if end == SessionEnd::Interrupted {
            return Ok(Some(Ended::Interrupted));
        }
        let count_seconds = counting.elapsed().as_secs_f64();
        let counted = self.counted(&run).map_err(Failure::Failed)?;
        let base = counted.0.per_op;
        let each = [(0, counted.0), (last, counted.1)];
        for ((point, found), made_of) in each.into_iter().zip(made) {
            let outcome = Outcome::Counted {
                run: run.clone(),
                instructions: found.per_op,
                base,
                span: found.span,
            };
            self.keep(Look {
                point,
                outcome,
                made_of: Some(made_of),
                acquire_seconds,
                count_seconds,
                built: false,
            })?;
        }
        self.tell_ends(last);
        Ok(None)
    }

    /// Says what the ends differ by.
    fn tell_ends(&self, last: usize) {
        let ratio = self.bisection.ratio(last).unwrap_or(1.0);
        say(&format!(
            "the ends differ by {} instructions per operation",
            percent(ratio)
        ));
        let wish = wish(&self.bisection, &self.asked);
        if wish.min > self.asked.min.ln_1p() {
            say(&format!(
                "starts of one server differ too much for smaller steps: no step below {0} is searched",
                percent(wish.min.exp()).trim_start_matches('+')
            ));
        }
    }

    /// Says what is left to do.
    fn tell_forecast(&self, known: &[Known], wish: &Wish) {
        let sequence = Sequence {
            weights: &self.weights,
            ..Sequence::plain(known)
        };
        let looks = forecast(&sequence, wish.steps);
        let last = self.last();
        let ends = self.bisection.counted(last);
        // The ends had two starts.
        let each = ends.map_or(0.0, |look| look.count_seconds / 2.0);
        let minutes = |looks: usize| span(to_f64(count(looks)) * each);
        say(&format!(
            "about {} looks for one culprit, {} for {}: {} to {} of counting, and the builds",
            looks.one,
            looks.all,
            self.asked.culprits,
            minutes(looks.one),
            minutes(looks.all)
        ));
    }

    /// Looks at one point.
    fn look(&mut self, choice: &Choice) -> Result<SessionEnd, Failure> {
        let place = |place: usize| self.places.get(place).copied().unwrap_or(0);
        let (number, from, to) = (
            place(choice.point),
            place(choice.interval.from),
            place(choice.interval.to),
        );
        let point = self.point(number)?;
        let began = Instant::now();
        // It is said before, because whoever is killed during the build cannot say it afterwards.
        let is_built = self.is_to_be_built(&point);
        if is_built {
            self.tell_store(Happened::Building { point: number })?;
        }
        let mut look = Look {
            point: number,
            outcome: Outcome::Same { point: number },
            made_of: None,
            acquire_seconds: 0.0,
            count_seconds: 0.0,
            built: false,
        };
        let found = self.found(&point);
        let found = found.and_then(|found| Ok((made_of(&found)?, found)));
        look.acquire_seconds = began.elapsed().as_secs_f64();
        let counting = Instant::now();
        match found {
            _ if self.interrupted() => return Ok(SessionEnd::Interrupted),
            Err(problem) if did_not_compile(&problem) => {
                look.outcome = skipped(FailedStep::Build, &problem);
            }
            // A full disk or a source that is missing says nothing of the point.
            Err(problem) => return Err(Failure::Failed(self.with_a_way_on(problem))),
            Ok((made, found)) => {
                look.built = is_built;
                let same = self.same(number, &made);
                look.made_of = Some(made);
                look.outcome = match same {
                    Some(point) => Outcome::Same { point },
                    None => match self.count_point(found)? {
                        Some(outcome) => outcome,
                        None => return Ok(SessionEnd::Interrupted),
                    },
                };
            }
        }
        look.count_seconds = counting.elapsed().as_secs_f64();
        self.keep(look.clone())?;
        self.tell(&look, &point, (from, to));
        self.forget_builds([from, to, number])?;
        self.count_failures(&look)?;
        Ok(SessionEnd::Finished)
    }

    /// Counts a point next to the base; nothing if the user stopped it.
    pub fn count_point(&mut self, found: Installation) -> Result<Option<Outcome>, Failure> {
        let base = self.base()?;
        let mut plan = self.bisection.question.plan.clone();
        for (server, installation) in plan.servers.iter_mut().zip([base.clone(), found]) {
            server.installation = installation;
        }
        // What two starts differ by is known from the ends.
        plan.observing.counting = Some(Counting {
            starts: 1,
            ..plan.observing.counting.unwrap_or_default()
        });
        let counted = match self.count(&plan)? {
            Ok((_, SessionEnd::Interrupted)) => return Ok(None),
            Ok((run, SessionEnd::Finished)) => self.counted(&run).map(|counted| (run, counted)),
            Err(_) if self.interrupted() => return Ok(None),
            Err(problem) => Err(problem),
        };
        Ok(Some(match counted {
            // A lab that cannot be read or written says nothing of the point either.
            Err(problem) if is_of_machine(&problem) => {
                return Err(Failure::Failed(self.with_a_way_on(problem)));
            }
            // Without its base no point can be counted.
            Err(problem) if made_of(&base).is_err() => {
                return Err(Failure::Failed(self.with_a_way_on(problem)));
            }
            Err(problem) => skipped(FailedStep::Run, &problem),
            Ok((run, (base, point))) => Outcome::Counted {
                run,
                instructions: point.per_op,
                base: base.per_op,
                span: None,
            },
        }))
    }

    /// The server of the base: found again by each command, because its build may be gone since.
    pub fn base(&mut self) -> Result<Installation, Failure> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let found = self.found(&self.point(0)?);
        let found = found.map_err(|problem| Failure::Failed(self.with_a_way_on(problem)))?;
        Ok(self.base.insert(found).clone())
    }

    /// Counts a plan as a run of this bisection: how it ended, or what failed on its servers.
    ///
    /// Errors: the lab, or a program that is missing.
    fn count(&mut self, plan: &Plan) -> Result<Measured, Failure> {
        let mut plan = plan.clone();
        plan.bisects = Some(self.bisection.name.clone());
        let library = library_of(&plan)?;
        let run = self.next_run()?;
        let store = &mut self.bench.store;
        let Some(lock) = free_lab(store, &run, &self.bench.interrupted)? else {
            return Ok(Ok((run, SessionEnd::Interrupted)));
        };
        store
            .create_run(&run, &plan, RunState::Running, now().1)
            .map_err(store_problem)?;
        let measured = self
            .bench
            .measure_told(&run, &plan, &library, lock, false, &mut Silent);
        match measured {
            Ok(measured) => Ok(Ok((run, measured.end))),
            Err(Failure::Failed(problem)) => Ok(Err(problem)),
            Err(refused) => Err(refused),
        }
    }

    /// The name of the next run of this bisection.
    pub fn next_run(&self) -> Result<String, Failure> {
        let mut number = 1;
        loop {
            let name = format!("{}-{number}", self.bisection.name);
            let reached = self.bench.store.reached(&name).map_err(store_problem)?;
            // What was told and never created keeps its name: nothing else may be read as it.
            if reached.is_none() && !self.bisection.names(&name) {
                return Ok(name);
            }
            number += 1;
        }
    }

    /// What a run of this bisection counted: the base's, and the point's.
    fn counted(&self, run: &str) -> Result<(ServerCount, ServerCount), Problem> {
        let records = self.bench.store.counts(run)?;
        let of = |server: ServerId| {
            let own: Vec<_> = records.iter().filter(|one| one.server == server).collect();
            ServerCount::of(&own)
        };
        let nothing = || Problem::new(format!("{run} counted nothing"));
        let (base, point) = (of(ServerId(0)), of(ServerId(1)));
        let (base, point) = base.zip(point).ok_or_else(nothing)?;
        if (base.rows_per_op - point.rows_per_op).abs() > f64::EPSILON {
            return Err(Problem::new(
                "an operation returns another number of rows than on the base",
            ));
        }
        Ok((base, point))
    }

    /// A point that was counted and has the same server.
    pub fn same(&self, number: usize, made: &str) -> Option<usize> {
        let mut looks = self.bisection.looks();
        let same = |look: &&Look| {
            matches!(look.outcome, Outcome::Counted { .. })
                && look.point != number
                && look.made_of.as_deref() == Some(made)
        };
        looks.find(same).map(|look| look.point)
    }

    pub fn found(&self, point: &Point) -> Result<Installation, Problem> {
        let spec = point.target.parse()?;
        let found = resolve_servers(&[spec], self.config)?;
        found
            .into_iter()
            .next()
            .ok_or_else(|| Problem::new(format!("{} is not there", point.target)))
    }

    pub fn point(&self, number: usize) -> Result<Point, Failure> {
        let point = self.bisection.question.points.get(number).cloned();
        point.ok_or_else(|| Failure::Failed(Problem::new(format!("there is no point {number}"))))
    }

    fn keep(&mut self, look: Look) -> Result<(), Failure> {
        self.tell_store(Happened::Look(look))
    }

    pub fn tell_store(&mut self, happened: Happened) -> Result<(), Failure> {
        self.bench
            .store
            .add_to_bisection(&self.bisection.name, &happened, now().1)
            .map_err(store_problem)?;
        self.bisection.happened.push(happened);
        Ok(())
    }

    /// What it costs to look at each place: nothing to build if it is in the cache.
    pub fn prices(&self) -> Vec<f64> {
        let built: BTreeSet<String> = built_names(&self.cache).into_iter().collect();
        // Those of a repository bear its name, and the first ten letters of the commit.
        let of_commits: BTreeSet<&str> = built
            .iter()
            .filter_map(|name| Some(name.split_once('@')?.1))
            .collect();
        let is_built = |point: &Point| {
            let (_, variant) = point.target.rsplit_once('+').unwrap_or(("", ""));
            let of_commit = format!("{}+{variant}", point.name);
            built.contains(&point.target) || of_commits.contains(of_commit.as_str())
        };
        let points = &self.bisection.question.points;
        let price = |number: &usize| match points.get(*number) {
            Some(point) if is_built(point) => 0.0,
            _ => 1.0,
        };
        self.places.iter().map(price).collect()
    }

    /// Whether what takes `seconds` from now would end in the time of this command: its budget, or
    /// `without_budget` seconds.
    pub fn ends_in_time(&self, seconds: f64, without_budget: f64) -> bool {
        let limit = self.asked.budget_seconds.unwrap_or(without_budget);
        self.began.elapsed().as_secs_f64() + seconds <= limit
    }

    /// The build of a point that is in the cache.
    fn build_of(&self, point: &Point) -> Option<Installation> {
        match point.target.parse() {
            Ok(TargetSpec::Built(spec)) => build_here(&spec, &self.cache, &self.config.sources),
            _ => None,
        }
    }

    pub fn is_to_be_built(&self, point: &Point) -> bool {
        let spec = point.target.parse();
        matches!(spec, Ok(TargetSpec::Built(_))) && self.build_of(point).is_none()
    }

    /// Removes builds that were made for looks from the cache, the oldest first, but not those of these
    /// points, nor of those on both sides of a step: a culprit is measured next to its parent.
    pub fn forget_builds(&self, at_hand: [usize; 3]) -> Result<(), Failure> {
        let built = self.bisection.built();
        let keep = usize::try_from(self.asked.keep_builds).unwrap_or(usize::MAX);
        if built.len() <= keep {
            return Ok(());
        }
        let steps = self.steps()?;
        let of_steps = steps.iter().flat_map(|step| [step.before, step.last]);
        let of_steps = of_steps.filter_map(|place| self.places.get(place).copied());
        let needed: BTreeSet<usize> = at_hand.into_iter().chain(of_steps).collect();
        let here = |number: usize| {
            let point = self.bisection.question.points.get(number)?;
            Some((number, point, self.build_of(point)?))
        };
        let here: Vec<_> = built.into_iter().filter_map(here).collect();
        let many = here.len().saturating_sub(keep);
        let old = here.iter().filter(|(number, ..)| !needed.contains(number));
        for (_, point, build) in old.take(many) {
            let stays = match forget_build(&self.cache, build) {
                Ok(true) => continue,
                Ok(false) => "another deltabench uses it".to_owned(),
                Err(problem) => problem.error,
            };
            say(&format!("a build of {} stays: {stays}", point.name));
        }
        Ok(())
    }

    pub fn count_failures(&mut self, look: &Look) -> Result<(), Failure> {
        let Outcome::Skipped { why, .. } = &look.outcome else {
            self.failures = 0;
            return Ok(());
        };
        self.failures += 1;
        if self.failures < FAILURES {
            return Ok(());
        }
        Err(Failure::Failed(
            Problem::new(format!("{FAILURES} points in a row could not be measured"))
                .detail(format!("the last one: {why}"))
                .hint(format!(
                    "`deltabench resume {}` goes on; name a narrower range if they all fail",
                    self.bisection.name
                )),
        ))
    }

    /// A failure that is none of the point's, with what to do when it is over.
    pub fn with_a_way_on(&self, problem: Problem) -> Problem {
        let way = format!("`deltabench resume {}` goes on", self.bisection.name);
        let hint = match &problem.hint {
            Some(hint) => format!("{hint}; then {way}"),
            None => way,
        };
        problem.hint(hint)
    }

    /// A line for a look.
    fn tell(&self, look: &Look, point: &Point, (from, to): (usize, usize)) {
        let found = match &look.outcome {
            Outcome::Counted { .. } => percent(self.bisection.ratio(look.point).unwrap_or(1.0)),
            Outcome::Timed { .. } => "measured in time".to_owned(),
            Outcome::Same { point } => format!("the same server as {}", self.name(*point)),
            Outcome::Skipped { step, why } => format!("{}: {why}", step.words()),
        };
        let acquired = match look.built {
            true => format!("built in {}, ", span(look.acquire_seconds)),
            false => String::new(),
        };
        let date = point
            .date
            .as_ref()
            .map_or_else(String::new, |date| format!("  {date}"));
        say(&format!(
            "look {:>2}  {}{date}  {found}  ({acquired}counted in {}; between {} and {})",
            self.bisection.looks().count().saturating_sub(2),
            point.name,
            span(look.count_seconds),
            self.name(from),
            self.name(to)
        ));
    }

    pub fn name(&self, point: usize) -> &str {
        let point = self.bisection.question.points.get(point);
        point.map_or("?", |point| point.name.as_str())
    }

    pub fn interrupted(&self) -> bool {
        self.bench.interrupted.load(Ordering::Relaxed)
    }
}

/// `+1.93 %`.
pub fn percent(ratio: f64) -> String {
    format!("{:+.2} %", (ratio - 1.0) * 100.0)
}

pub fn skipped(step: FailedStep, problem: &Problem) -> Outcome {
    Outcome::Skipped {
        step,
        why: problem.error.clone(),
    }
}

/// The count of a look tells nothing: the look has a line of its own.
pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _text: &str) {}
    fn visit(&mut self, _block: u32, _done: u32, _planned: u32) {}
    fn pilot(&mut self, _pilot: &Pilot) {}
    fn block(&mut self, _progress: &BlockProgress) {}
}
