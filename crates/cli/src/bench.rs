//! What commands measure with: the lab, the host, the targets, and a run from its plan to its end.

use crate::clock::{now, run_names};
use crate::console::say;
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::output::{self, Destinations};
use crate::pause::pause;
use crate::progress::{Planned, Progress};
use crate::store::store_problem;
use crate::targets::hold_binaries;
use deltabench_fleet::host_lock::{self, HostLock};
use deltabench_kinds::{count, run_half};
use deltabench_lab::{Analysed, Judged, confirmation_name, series_of};
use deltabench_model::exit;
use deltabench_model::fact::MachineName;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_observe::{machine_name, occasion};
use deltabench_run::benchmark::Benchmark;
use deltabench_run::clock::{Clock, MachineClock};
use deltabench_run::estimate::estimate;
use deltabench_run::events::Observer;
use deltabench_run::fleet::Host;
use deltabench_run::planning;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_server::Counter;
use deltabench_store::{RunLock, RunState, Store, StoreError};
use deltabench_workload::Library;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A run that was measured, as far as it came.
pub struct Measured {
    pub end: SessionEnd,
    /// What it says by itself.
    pub judged: Judged,
}

/// What measures runs: where results go, where servers live, and whether to stop.
pub struct Bench {
    /// Where results go.
    pub store: Store,
    /// Where servers live.
    pub host: Host,
    /// Set when the user wants to stop.
    pub interrupted: Arc<AtomicBool>,
}

impl Bench {
    /// Measures a plan as a new run, named by the clock or as asked.
    pub fn measure_new(
        &mut self,
        plan: &Plan,
        library: &Library,
        name: Option<String>,
        pilot: bool,
    ) -> Result<Measured, Failure> {
        let _beside = beside_others().map_err(Failure::Refused)?;
        let (seconds, started) = now();
        let state = (RunState::Running, started);
        let runs = |name: &str| vec![(name.to_owned(), plan.clone())];
        let (run, lock) = match name {
            Some(name) => self.store_new(std::iter::once(name), state, runs),
            None => self.store_new(run_names(seconds, plan.seed), state, runs),
        }?;
        let said = format!(
            "run {run}, seed {}; {}",
            plan.seed,
            run_as(plan, &self.host)
        );
        self.measure(&run, plan, library, lock, pilot, &said)
    }

    /// Takes the lab and stores new runs: those that `runs` makes of the first of these names that the lab
    /// does not have yet. Returns that name.
    ///
    /// Errors: another process measures in this lab; it has all the names; the store cannot be written.
    pub fn store_new(
        &mut self,
        mut names: impl Iterator<Item = String>,
        (state, started): (RunState, i64),
        runs: impl Fn(&str) -> Vec<(String, Plan)>,
    ) -> Result<(String, RunLock), Failure> {
        let mut name = names.next().unwrap_or_default();
        loop {
            let runs = runs(&name);
            let first = runs.first().map_or("", |(run, _)| run);
            let lock = self.store.lock_run(first).map_err(Failure::Refused)?;
            let runs: Vec<(&str, &Plan)> = runs
                .iter()
                .map(|(run, plan)| (run.as_str(), plan))
                .collect();
            let Err(error) = self.store.create_runs(&runs, state, started) else {
                return Ok((name, lock));
            };
            name = match (error, names.next()) {
                (StoreError::Taken { .. }, Some(next)) => next,
                (error, _) => return Err(store_problem(error)),
            };
        }
    }

    /// What the progress of a plan begins with.
    pub fn planned(&self, plan: &Plan) -> Planned {
        let takes = || estimate(plan, run_half(&plan.work), &self.host).ok();
        let is_timed = plan.observing.counting.is_none();
        let found = is_timed.then(takes).flatten();
        Planned {
            blocks: plan.timing.blocks,
            repeat: plan.work.repeat(),
            seconds: found.map(|found| found.measuring.as_secs_f64()),
        }
    }

    /// The lines or the board of a plan that is measured.
    pub fn progress(&self, plan: &Plan) -> Progress {
        Progress::new(self.planned(plan))
    }

    /// Measures a stored plan, or what is left of it; `said` is printed first.
    pub fn measure(
        &mut self,
        run: &str,
        plan: &Plan,
        library: &Library,
        lock: RunLock,
        pilot: bool,
        said: &str,
    ) -> Result<Measured, Failure> {
        let mut progress = self.progress(plan);
        progress.note(said);
        self.measure_told(run, plan, library, lock, pilot, &mut progress)
    }

    /// As [`Bench::measure`]; `observer` hears how it goes on.
    pub fn measure_told(
        &mut self,
        run: &str,
        plan: &Plan,
        library: &Library,
        lock: RunLock,
        pilot: bool,
        observer: &mut dyn Observer,
    ) -> Result<Measured, Failure> {
        let benchmark = run_half(&plan.work);
        self.measure_with(benchmark, (run, plan), library, (lock, pilot), observer)
    }

    /// As [`Bench::measure_told`], with a benchmark that has more at hand than its plan.
    pub fn measure_with(
        &mut self,
        benchmark: &dyn Benchmark,
        (run, plan): (&str, &Plan),
        library: &Library,
        (lock, pilot): (RunLock, bool),
        observer: &mut dyn Observer,
    ) -> Result<Measured, Failure> {
        let machine = MachineName(machine_name());
        self.store
            .add_fact(run, (None, None), &machine)
            .map_err(store_problem)?;
        self.keep_occasion(run, plan, library)?;
        let clock = MachineClock::begin();
        let mut session = Session {
            plan,
            benchmark,
            run,
            store: &mut self.store,
            host: &self.host,
            library,
            pilot,
            interrupted: &self.interrupted,
            observer,
            clock: &clock,
            began: clock.now(),
        };
        let end = match plan.observing.counting {
            Some(_) => Counter::find().and_then(|counter| count(&mut session, &counter)),
            None => session.execute(),
        };
        let state = match &end {
            Ok(SessionEnd::Finished) => RunState::Finished,
            Ok(SessionEnd::Interrupted) => RunState::Interrupted,
            // Whoever ends a run may break what it does, for instance a server that starts.
            Err(_) if session.ends_now() => RunState::Interrupted,
            Err(_) => RunState::Failed,
        };
        let finished = self.store.finish_run(run, state, now().1);
        drop(lock);
        let end = match end {
            Err(problem) if state == RunState::Interrupted => {
                say(&format!("interrupted: {problem}"));
                SessionEnd::Interrupted
            }
            end => end.map_err(Failure::Failed)?,
        };
        finished.map_err(store_problem)?;
        let judged = Judged::of(run, plan, &self.store).map_err(Failure::Failed)?;
        judged
            .remember_placebo(&mut self.store, &machine.0, now().1)
            .map_err(Failure::Failed)?;
        Ok(Measured { end, judged })
    }

    /// Keeps where and when a run is measured and what its cells are, so that other runs can be compared with
    /// it. A machine that cannot keep an identifier of its own is known by the facts that each run has.
    fn keep_occasion(&mut self, run: &str, plan: &Plan, library: &Library) -> Result<(), Failure> {
        let text = |name: &str| Some(library.get(name).ok()?.text().to_owned());
        let series = series_of(plan, text);
        let kept = match occasion(now().1) {
            Some(occasion) => self.store.add_occasion(run, &occasion, &series),
            None => self.store.add_series(run, &series),
        };
        kept.map_err(store_problem)
    }

    /// Measures a stored run that is not finished, or what is left of it; `pilot` is for one that has not
    /// begun.
    pub fn go_on(
        &mut self,
        run: &str,
        plan: &Plan,
        library: &Library,
        pilot: bool,
    ) -> Result<Measured, Failure> {
        let mut progress = self.progress(plan);
        self.go_on_told((run, plan), library, pilot, &mut progress)
    }

    /// As [`Bench::go_on`]; `observer` hears how it goes on.
    pub fn go_on_told(
        &mut self,
        (run, plan): (&str, &Plan),
        library: &Library,
        pilot: bool,
        observer: &mut dyn Observer,
    ) -> Result<Measured, Failure> {
        if plan.observing.counting.is_some() {
            return Err(Failure::Refused(
                Problem::new(format!(
                    "{run} counts instructions, and a count cannot be resumed"
                ))
                .hint(match &plan.counts {
                    Some(measured) => format!("`deltabench resume {measured}` counts again"),
                    None => "count again: `deltabench count` takes minutes".to_owned(),
                }),
            ));
        }
        let _beside = beside_others().map_err(Failure::Refused)?;
        let lock = self.store.lock_run(run).map_err(Failure::Refused)?;
        hold_binaries(plan).map_err(Failure::Refused)?;
        self.store
            .finish_run(run, RunState::Running, now().1)
            .map_err(store_problem)?;
        // A sampled run has both, a run of passes records only.
        let visits = self.store.completed_visits(run).map_err(store_problem)?;
        let records = self.store.records(run).map_err(store_problem)?;
        let fresh = visits.is_empty() && records.is_empty();
        let said = if fresh {
            format!(
                "run {run}, seed {}; {}",
                plan.seed,
                run_as(plan, &self.host)
            )
        } else {
            let done = run_half(&plan.work).done(visits.len(), records.len());
            format!("resuming {run}: {done}")
        };
        observer.note(&said);
        let pilot = pilot && fresh;
        self.measure_told(run, plan, library, lock, pilot, observer)
    }

    /// Measures the small regressions and improvements of a run again, `gap_seconds` after its end or later:
    /// fresh load, other ports, other environment size. Says how far it came, and what was found; `None` if
    /// there are none, or nothing was measured.
    pub fn confirm(
        &mut self,
        judged: &Judged,
        library: &Library,
        gap_seconds: f64,
    ) -> Result<(SessionEnd, Option<Judged>), Failure> {
        let (run, plan) = (judged.run(), judged.plan());
        if plan.session.is_some() {
            return Err(Failure::Refused(
                Problem::new(format!(
                    "{run} has several sessions, which confirm each other"
                ))
                .hint(format!(
                    "`deltabench report {run}` shows their joint answer"
                )),
            ));
        }
        run_half(&plan.work)
            .check_confirmable()
            .map_err(Failure::Refused)?;
        let earlier = self.withdrawn_confirmations(run)?;
        let name = confirmation_name(run, &earlier);
        let comparison = judged.standing(&self.store).map_err(Failure::Failed)?;
        let Some(confirmation) = planning::confirmation(run, plan, &comparison, earlier.len())
        else {
            say("nothing to confirm: no cell is slower or faster by at most 5 % and not withdrawn");
            return Ok((SessionEnd::Finished, None));
        };
        let what = match confirmation.cells.len() {
            1 => "a cell".to_owned(),
            several => format!("{several} cells"),
        };
        say(&format!("measuring {what} again, on a fresh load"));
        let reached = self.store.reached(run).map_err(store_problem)?;
        let ended = reached.map_or(0, |reached| reached.state_unix_ms);
        let command = format!("deltabench confirm {run}");
        let next = ("the confirming run", command.as_str());
        let waited = pause(ended, gap_seconds, next, &self.interrupted);
        if waited == SessionEnd::Interrupted {
            say(&format!("interrupted; `{command}` measures it"));
            return Ok((waited, None));
        }
        let Measured { end, judged } =
            self.measure_new(&confirmation, library, Some(name.clone()), false)?;
        if end == SessionEnd::Interrupted {
            say(&format!(
                "`deltabench resume {name}` continues the confirmation"
            ));
        }
        Ok((end, Some(judged)))
    }

    /// Measures the differences of a run again, as far as it was planned with that and it is not done yet;
    /// says what stands in the way. Returns what was found, too, if it was measured now.
    pub fn confirm_planned(
        &mut self,
        judged: &Judged,
        library: &Library,
    ) -> (FollowUp, Option<Judged>) {
        let Some(gap_seconds) = judged.plan().observing.confirmed_after else {
            return (FollowUp::Finished, None);
        };
        let mut again = None;
        let confirmed = self.confirm_or_go_on(judged, library, f64::from(gap_seconds));
        let after = FollowUp::of(confirmed.map(|(end, found)| {
            again = found;
            end
        }));
        (after, again)
    }

    /// As [`Bench::confirm`]; a confirmation that has begun is continued, and one that is finished stays.
    fn confirm_or_go_on(
        &mut self,
        judged: &Judged,
        library: &Library,
        gap_seconds: f64,
    ) -> Result<(SessionEnd, Option<Judged>), Failure> {
        let known = self.store.confirming(judged.run());
        let Some(name) = known.map_err(store_problem)?.pop() else {
            hold_binaries(judged.plan()).map_err(Failure::Refused)?;
            return self.confirm(judged, library, gap_seconds);
        };
        let reached = self.store.reached(&name).map_err(store_problem)?;
        if reached.is_some_and(|reached| reached.state == RunState::Finished) {
            return Ok((SessionEnd::Finished, None));
        }
        let plan = self.store.plan(&name).map_err(store_problem)?;
        let Measured { end, judged } = self.go_on(&name, &plan, library, false)?;
        Ok((end, Some(judged)))
    }

    /// The confirmations of a run that were withdrawn, oldest first.
    ///
    /// Errors: one that counts: nobody may repeat the question until the answer suits.
    fn withdrawn_confirmations(&self, run: &str) -> Result<Vec<String>, Failure> {
        let known = self.store.confirming(run).map_err(store_problem)?;
        for name in &known {
            let withdrawn = self.store.invalidations(name).map_err(store_problem)?;
            if withdrawn.iter().all(|one| one.cell.is_some()) {
                return Err(Failure::Refused(
                    Problem::new(format!("{run} has been confirmed already"))
                        .detail(format!("{name} is in the lab"))
                        .hint(format!(
                            "`deltabench report {run}` shows the result, `deltabench resume {name}` \
                             continues it; if something disturbed it, `deltabench invalidate {name} \
                             --reason TEXT` withdraws it, and you can confirm again"
                        )),
                ));
            }
        }
        Ok(known)
    }

    /// What a measured run says, with the run that confirms it.
    pub fn analysed(
        &self,
        judged: Judged,
        confirming: Option<Judged>,
    ) -> Result<Analysed, Failure> {
        Analysed::of(judged, confirming, &self.store).map_err(Failure::Failed)
    }

    /// Prints and writes what a run says; returns the exit code.
    pub fn publish(
        &self,
        analysed: &Analysed,
        end: SessionEnd,
        destinations: &Destinations,
    ) -> Result<u8, Failure> {
        let code = output::publish(analysed, destinations)?;
        if end == SessionEnd::Interrupted {
            return Ok(interrupted(&analysed.plan));
        }
        if code == exit::NOT_MEASURED && analysed.plan.servers.len() == 1 {
            return alone(analysed, &self.store);
        }
        Ok(code)
    }
}

/// Says what can be done with an interrupted run; its exit code.
pub fn interrupted(plan: &Plan) -> u8 {
    say(match plan.observing.counting {
        Some(_) => "interrupted; count again, because a count cannot be resumed",
        None => "interrupted; `deltabench resume` continues",
    });
    exit::INTERRUPTED
}

/// Who does the work of a plan.
fn run_as(plan: &Plan, host: &Host) -> String {
    let what = match plan.work.is_embedded() {
        true => "workers",
        false => "servers",
    };
    format!("{what} run as {}", host.user.name)
}

/// The exit code of a finished run of one server: nothing was asked, so it is 0 if it was measured.
fn alone(analysed: &Analysed, store: &Store) -> Result<u8, Failure> {
    let findings = store.findings(&analysed.context.run);
    Ok(code_alone(
        &analysed.slices,
        &findings.map_err(store_problem)?,
    ))
}

fn code_alone(slices: &[Slice], findings: &[Finding]) -> u8 {
    let unfit = |finding: &Finding| finding.severity == Severity::Unfit;
    if slices.iter().all(|slice| slice.void.is_some()) {
        exit::NOT_MEASURED
    } else if findings.iter().any(unfit) {
        exit::UNFIT
    } else {
        exit::NO_REGRESSION
    }
}

/// Takes this machine beside others that measure by hand, which a lane of a fleet never does. `None` in a
/// lane itself, and where there can be no lock.
///
/// Errors: a lane has the machine; who it is.
fn beside_others() -> Result<Option<HostLock>, Problem> {
    if host_lock::is_ours() {
        return Ok(None);
    }
    let path = host_lock::path();
    match host_lock::beside_others(&path)? {
        None => Ok(None),
        Some(Ok(lock)) => Ok(Some(lock)),
        Some(Err(holder)) => {
            let who = holder.map_or_else(|| "a lane".to_owned(), |holder| holder.to_string());
            Err(Problem::new("a fleet measures on this host")
                .detail(format!("{} is held by {who}", path.display()))
                .hint("wait for it to end: two measurements on one host disturb each other"))
        }
    }
}

/// The built-in workloads and those that a plan brings.
pub fn library_of(plan: &Plan) -> Result<Library, Failure> {
    Library::of_plan(plan).map_err(Failure::Failed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use deltabench_model::finding::FindingKind;
    use deltabench_model::slice::VoidReason;
    use deltabench_run::host::HugePagesWish;
    use deltabench_server::ServerUser;
    use std::path::Path;

    /// A bench whose lab and servers are in a directory.
    pub(crate) fn bench(place: &Path, store: Store, stopped: bool) -> Bench {
        Bench {
            store,
            host: Host {
                workspaces: place.to_owned(),
                cache: place.to_owned(),
                user: ServerUser::choose(None).unwrap(),
                huge_pages: HugePagesWish::Off,
            },
            interrupted: Arc::new(AtomicBool::new(stopped)),
        }
    }

    #[test]
    fn a_stop_in_the_pause_before_a_confirmation_is_a_stop() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Store::open(place.path()).unwrap();
        let plan = deltabench_testkit::small_run::plan();
        store
            .create_run("r", &plan, RunState::Running, now().1)
            .unwrap();
        deltabench_testkit::small_run::keep(&mut store, "r", [0.96, 1.0, 1.0]);
        store.finish_run("r", RunState::Finished, now().1).unwrap();
        let judged = Judged::of("r", &plan, &store).unwrap();
        let mut bench = bench(place.path(), store, true);
        let (end, again) = bench
            .confirm(&judged, &library_of(&plan).unwrap(), 3600.0)
            .unwrap();
        assert_eq!(end, SessionEnd::Interrupted);
        assert!(again.is_none());
        assert_eq!(FollowUp::of(Ok(end)).code(1), exit::INTERRUPTED);
    }

    #[test]
    fn what_was_planned_to_be_confirmed_is_confirmed_once() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Store::open(place.path()).unwrap();
        let mut plan = deltabench_testkit::small_run::plan();
        plan.observing.confirmed_after = Some(3600);
        for server in &mut plan.servers {
            let build = &mut server.installation;
            build.bin_dir = place.path().to_owned();
            std::fs::write(build.binary(), "").unwrap();
            build.binary_sha256 = deltabench_acquire::sha256_of(&build.binary()).unwrap();
        }
        let keep = |store: &mut Store, run: &str, plan: &Plan| {
            { store.create_run(run, plan, RunState::Running, now().1) }.unwrap();
            deltabench_testkit::small_run::keep(store, run, [0.96, 1.0, 1.0]);
            store.finish_run(run, RunState::Finished, now().1).unwrap();
        };
        keep(&mut store, "r", &plan);
        let judged = |store: &Store, plan| Judged::of("r", plan, store).unwrap();
        let library = library_of(&plan).unwrap();
        let first = judged(&store, &plan);
        let mut unplanned = plan.clone();
        unplanned.observing.confirmed_after = None;
        let unasked = judged(&store, &unplanned);
        let mut bench = bench(place.path(), store, true);
        // It waits, and the user stops it.
        let (after, again) = bench.confirm_planned(&first, &library);
        assert_eq!((after, again.is_none()), (FollowUp::Interrupted, true));
        let (after, again) = bench.confirm_planned(&unasked, &library);
        assert_eq!((after, again.is_none()), (FollowUp::Finished, true));
        let mut confirming = plan.clone();
        confirming.confirms = Some("r".to_owned());
        keep(&mut bench.store, "r-confirm", &confirming);
        let (after, again) = bench.confirm_planned(&first, &library);
        assert_eq!((after, again.is_none()), (FollowUp::Finished, true));
        // One that was begun is continued, as far as it can be here.
        let stopped = RunState::Interrupted;
        { bench.store.finish_run("r-confirm", stopped, now().1) }.unwrap();
        std::fs::remove_file(plan.servers[0].installation.binary()).unwrap();
        let (after, _) = bench.confirm_planned(&first, &library);
        assert_eq!(after, FollowUp::Failed);
    }

    #[test]
    fn a_run_whose_servers_were_ended_with_it_is_interrupted() {
        for (stopped, state) in [(true, RunState::Interrupted), (false, RunState::Failed)] {
            let place = tempfile::tempdir().unwrap();
            let mut bench = bench(place.path(), Store::open(place.path()).unwrap(), stopped);
            // Its servers are not here, so they do not start.
            let plan = deltabench_testkit::small_run::plan();
            let library = library_of(&plan).unwrap();
            let measured = bench.measure_new(&plan, &library, Some("r".to_owned()), false);
            assert_eq!(bench.store.reached("r").unwrap().unwrap().state, state);
            match stopped {
                true => assert_eq!(measured.unwrap().end, SessionEnd::Interrupted),
                false => assert!(matches!(measured, Err(Failure::Failed(_)))),
            }
        }
    }

    #[test]
    fn runs_of_one_second_and_one_seed_have_names_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let plan = deltabench_testkit::small_run::plan();
        let named = || {
            let mut bench = bench(place.path(), Store::open(place.path()).unwrap(), false);
            let runs = |name: &str| vec![(name.to_owned(), plan.clone())];
            loop {
                // Another may have the lab at this moment.
                let state = (RunState::Running, 5);
                match bench.store_new(run_names(1_795_260_000, 1), state, runs) {
                    Ok((name, _lock)) => break name,
                    Err(Failure::Refused(_)) => std::thread::yield_now(),
                    Err(failed) => panic!("{failed:?}"),
                }
            }
        };
        let mut names = vec![named()];
        assert_eq!(names, ["20261121-112000-0001"]);
        names.extend(std::thread::scope(|scope| {
            let beside = [scope.spawn(named), scope.spawn(named)];
            beside.map(|one| one.join().unwrap())
        }));
        names.sort();
        let seconds = [0, 1, 2].map(|second| format!("20261121-11200{second}-0001"));
        assert_eq!(names, seconds);
        // The lock's file names the run that has the lab.
        let store = Store::open(place.path()).unwrap();
        assert_eq!(store.lock_holder().as_ref(), Some(&seconds[2]));
    }

    #[test]
    fn a_name_that_a_run_must_have_is_given_once() {
        let place = tempfile::tempdir().unwrap();
        let plan = deltabench_testkit::small_run::plan();
        let mut bench = bench(place.path(), Store::open(place.path()).unwrap(), false);
        let mut named = || {
            let runs = |name: &str| vec![(name.to_owned(), plan.clone())];
            let name = std::iter::once("r-confirm".to_owned());
            bench.store_new(name, (RunState::Running, 5), runs)
        };
        assert_eq!(named().unwrap().0, "r-confirm");
        let refused = named().unwrap_err();
        let problem = refused.problem();
        let told = "already has a run `r-confirm`";
        let detail = problem.detail.as_deref().unwrap_or_default();
        assert!(detail.ends_with(told), "{problem}");
    }

    #[test]
    fn a_server_on_its_own_that_was_measured_is_no_failure() {
        let slice = |void| {
            let mut slice = deltabench_testkit::small_run::slices([1.0; 3]).remove(0);
            slice.void = void;
            slice
        };
        let (void, good) = (slice(Some(VoidReason::ServerLost)), slice(None));
        assert_eq!(code_alone(&[], &[]), exit::NOT_MEASURED);
        assert_eq!(
            code_alone(&[void.clone(), void.clone()], &[]),
            exit::NOT_MEASURED
        );
        assert_eq!(code_alone(&[void, good.clone()], &[]), 0);
        let unfit = Finding::new(FindingKind::own("host"), Severity::Unfit, "no");
        assert_eq!(code_alone(&[good], &[unfit]), exit::UNFIT);
    }
}
