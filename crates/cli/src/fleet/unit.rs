//! An attempt at a unit: claimed, measured, sealed.

use super::stop::Stop;
use crate::afterwards::counted;
use crate::arguments::conditions::Servers;
use crate::bench::{Bench, library_of};
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::host::{check_fits, swept_host};
use crate::progress::Progress;
use crate::store::store_problem;
use deltabench_fleet::fixture::Fixture;
use deltabench_fleet::full::is_full;
use deltabench_fleet::lanes::{Lanes, Unit};
use deltabench_fleet::seal::{Unsealed, seal};
use deltabench_fleet::ship::settle;
use deltabench_fleet::spool::{Attempt, Avoided, Beat, End, EndWord, Owner, Spool};
use deltabench_lab::{Judged, series_of};
use deltabench_model::fact::MachineName;
use deltabench_model::occasion::{HostClass, HostIdentity, MEASUREMENT_VERSION, Occasion};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use deltabench_run::session::SessionEnd;
use deltabench_store::{RunState, Store};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Seconds that setting up may take without a sign of life.
const SET_UP_SECONDS: f64 = 3600.0;

/// Where a lane is measured.
pub struct Place<'a> {
    pub spool: &'a Spool,
    pub lanes: &'a Lanes,
    pub owner: Owner,
    /// Directory on a disk of this host.
    pub local: PathBuf,
    pub servers: &'a Servers,
    pub config: &'a Config,
    pub stop: &'a Stop,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitEnd {
    Ended(EndWord),
    /// It is measured, and the shared directory does not take it: its lab stays on this host.
    Kept,
}

/// Makes an attempt at a unit; what goes wrong with it is how it ends.
///
/// Errors: a spool that cannot be written.
pub fn measure(unit: &Unit, place: &Place<'_>) -> Result<UnitEnd, Failure> {
    let attempt = place
        .spool
        .claim(unit.unit, &place.owner)
        .map_err(Failure::Failed)?;
    say(&format!(
        "unit {}, attempt {}: {}",
        unit.unit, attempt.number, unit.run
    ));
    let local = { place.local.join(&place.lanes.execution) }.join(format!("unit-{:03}", unit.unit));
    let mut is_kept = false;
    let (word, text) = match measured(unit, &attempt, (&local, place)) {
        Ok(Measured::Ended(word)) => (word, String::new()),
        Ok(Measured::Kept(problem)) => {
            is_kept = true;
            let text = format!(
                "measured and kept on {}, because it cannot be stored: {}",
                place.owner.host.node,
                in_words(&problem)
            );
            (EndWord::Interrupted, text)
        }
        Err(failure) => {
            say(&failure.problem().to_string());
            let text = in_words(failure.problem());
            // Whoever stops a lane may break what it does: that says nothing of the unit.
            let word = match place.stop.is_asked_soon() {
                true => stopped(place.spool, &attempt),
                false if is_of_host(failure.problem()) => {
                    avoid(place, text.clone())?;
                    EndWord::Unfit
                }
                false => EndWord::Failed,
            };
            (word, text)
        }
    };
    let end = End {
        word,
        text,
        at_unix_ms: now().1,
    };
    if is_kept {
        say(&format!("unit {}: {}", unit.unit, end.text));
        // The same directory.
        attempt.set_end(&end).ok();
        return Ok(UnitEnd::Kept);
    }
    if word == EndWord::Sealed {
        // What is sealed is durable elsewhere. On a disk that is full its end has room then, too.
        std::fs::remove_dir_all(&local).ok();
    }
    attempt.set_end(&end).map_err(Failure::Failed)?;
    say(&format!("unit {}: {}", unit.unit, word.word()));
    Ok(UnitEnd::Ended(word))
}

/// Whether another host may do what failed here: a disk that is full says nothing of the unit.
fn is_of_host(problem: &Problem) -> bool {
    problem.of_machine || is_full(problem)
}

/// Keeps this host from the rest of the execution.
fn avoid(place: &Place<'_>, why: String) -> Result<(), Failure> {
    let host = place.owner.host.clone();
    let avoided = Avoided { host, why };
    place.spool.avoid(&avoided).map_err(Failure::Failed)
}

/// A problem in one line.
pub fn in_words(problem: &Problem) -> String {
    let detail = problem.detail.iter().map(|detail| format!(": {detail}"));
    format!("{}{}", problem.error, detail.collect::<String>())
}

/// What an attempt came to, before it is written.
enum Measured {
    Ended(EndWord),
    Kept(Problem),
}

fn measured(
    unit: &Unit,
    attempt: &Attempt,
    (local, place): (&Path, &Place<'_>),
) -> Result<Measured, Failure> {
    if let Some(why) = told_unfit(unit, attempt, place) {
        avoid(place, why)?;
        return Ok(Measured::Ended(EndWord::Unfit));
    }
    let mut store = Store::open(local).map_err(store_problem)?;
    let plan = begun(unit, &mut store, place)?;
    let beats = Beats {
        place,
        attempt,
        blocks: 0,
        of: plan.timing.blocks,
        visit_seconds: longest_visit(&plan),
    };
    beats.give("setting up", SET_UP_SECONDS);
    let end = match &place.lanes.fixture {
        Some(fixture) => stand_in(fixture, (unit, &plan), &mut store, beats)?,
        None => {
            let (end, back) = for_real(&unit.run, &plan, store, (local, place), beats)?;
            store = back;
            end
        }
    };
    if end == SessionEnd::Interrupted {
        return Ok(Measured::Ended(stopped(place.spool, attempt)));
    }
    match seal(&store, local, attempt) {
        Ok(_) => Ok(Measured::Ended(EndWord::Sealed)),
        Err(Unsealed::Spool(problem)) => Ok(Measured::Kept(problem)),
        // It stays here, whole: if this host gets the unit again, it has only to be sealed.
        Err(Unsealed::Host(problem)) => Err(Failure::Failed(problem)),
    }
}

/// How an attempt ends that somebody stops.
fn stopped(spool: &Spool, attempt: &Attempt) -> EndWord {
    if spool.is_superseded(attempt) {
        EndWord::Superseded
    } else if spool.is_cancelled() {
        EndWord::Cancelled
    } else {
        EndWord::Interrupted
    }
}

/// Fixtures may find their host unfit, on the first attempt.
fn told_unfit(unit: &Unit, attempt: &Attempt, place: &Place<'_>) -> Option<String> {
    let fixture = place.lanes.fixture.as_ref()?;
    let is_told = attempt.number == 1 && fixture.unfit.contains(&unit.unit);
    is_told.then(|| "as was asked".to_owned())
}

/// The plan as it runs on this host. A run that started here before keeps the plan that it has.
fn begun(unit: &Unit, store: &mut Store, place: &Place<'_>) -> Result<Plan, Failure> {
    if store.reached(&unit.run).map_err(store_problem)?.is_some() {
        return store.plan(&unit.run).map_err(store_problem);
    }
    let mut plan = unit.plan.clone();
    if place.lanes.fixture.is_none() {
        settle(&mut plan, &place.lanes.shipped, &place.local).map_err(Failure::Refused)?;
    }
    { store.create_run(&unit.run, &plan, RunState::Planned, now().1) }.map_err(store_problem)?;
    Ok(plan)
}

/// Measures servers; gives the store back.
fn for_real(
    run: &str,
    plan: &Plan,
    store: Store,
    (local, place): (&Path, &Place<'_>),
    mut beats: Beats<'_>,
) -> Result<(SessionEnd, Store), Failure> {
    let config = Config {
        lab: local.to_owned(),
        ..place.config.clone()
    };
    let host = swept_host(place.servers, &config)?;
    check_fits(plan, &host).map_err(Failure::Refused)?;
    let library = library_of(plan)?;
    let mut bench = Bench {
        store,
        host,
        interrupted: place.stop.now.clone(),
    };
    let is_over = { bench.store.reached(run) }
        .map_err(store_problem)?
        .is_some_and(|reached| reached.state == RunState::Finished);
    let judged = if is_over {
        Judged::of(run, plan, &bench.store).map_err(Failure::Failed)?
    } else {
        let mut told = Told {
            progress: bench.progress(plan),
            beats: &mut beats,
        };
        let measured = bench.go_on_told((run, plan), &library, false, &mut told)?;
        if measured.end == SessionEnd::Interrupted {
            return Ok((measured.end, bench.store));
        }
        measured.judged
    };
    beats.give("counting", SET_UP_SECONDS);
    let analysed = bench.analysed(judged, None)?;
    counted(&mut bench, analysed)?;
    Ok((SessionEnd::Finished, bench.store))
}

/// Stores what a fixture makes up.
fn stand_in(
    fixture: &Fixture,
    (unit, plan): (&Unit, &Plan),
    store: &mut Store,
    mut beats: Beats<'_>,
) -> Result<SessionEnd, Failure> {
    let run = unit.run.as_str();
    let reached = store.reached(run).map_err(store_problem)?;
    if reached.is_some_and(|reached| reached.state == RunState::Finished) {
        return Ok(SessionEnd::Finished);
    }
    let host = &beats.place.owner.host;
    let library = library_of(plan)?;
    let series = series_of(plan, |name| Some(library.get(name).ok()?.text().to_owned()));
    let occasion = Occasion {
        host: HostIdentity {
            uid: host.uid.clone(),
            class: HostClass::default(),
            kernel: None,
            microcode: None,
        },
        uid: deltabench_proc::host::random_uuid().unwrap_or_default(),
        boot_id: None,
        measurement_version: MEASUREMENT_VERSION,
        at_unix_ms: now().1,
    };
    { store.finish_run(run, RunState::Running, now().1) }.map_err(store_problem)?;
    let machine = MachineName(host.node.clone());
    { store.add_fact(run, (None, None), &machine) }.map_err(store_problem)?;
    { store.add_occasion(run, &occasion, &series) }.map_err(store_problem)?;
    let mut go_on = |block: u32| {
        beats.blocks = block;
        beats.ended_visit();
        match beats
            .place
            .stop
            .now
            .load(std::sync::atomic::Ordering::SeqCst)
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let went = fixture.carry_out(store, (run, unit.unit, plan), &mut go_on);
    let went = went.map_err(Failure::Failed)?;
    let (end, state) = match went {
        ControlFlow::Continue(()) => (SessionEnd::Finished, RunState::Finished),
        ControlFlow::Break(()) => (SessionEnd::Interrupted, RunState::Interrupted),
    };
    store
        .finish_run(run, state, now().1)
        .map_err(store_problem)?;
    Ok(end)
}

/// Seconds of the longest visit of a plan on one server.
fn longest_visit(plan: &Plan) -> f64 {
    let measured = plan.cells.iter().map(|cell| plan.timing.visit_of(cell));
    let chosen = plan.timing.warmup_chosen;
    let warming = if chosen {
        plan.timing.warmup_seconds
    } else {
        0.0
    };
    measured.fold(plan.timing.visit_seconds, f64::max) + warming
}

/// Signs of life between visits, and whether to go on.
struct Beats<'a> {
    place: &'a Place<'a>,
    attempt: &'a Attempt,
    blocks: u32,
    of: u32,
    visit_seconds: f64,
}

impl Beats<'_> {
    fn give(&self, text: &str, allowance_seconds: f64) {
        let beat = Beat {
            at_unix_ms: now().1,
            blocks: self.blocks,
            of: self.of,
            text: text.to_owned(),
            allowance_seconds,
        };
        // A shared directory that is gone for a while is no reason to stop.
        if let Err(problem) = self.attempt.set_beat(&beat) {
            say(&problem.to_string());
        }
    }

    /// A visit has ended: nothing is measured now.
    fn ended_visit(&mut self) {
        let spool = self.place.spool;
        if spool.is_superseded(self.attempt) || spool.is_cancelled() {
            self.place.stop.ask();
        }
        self.place.stop.set_visiting(false);
        self.give("measuring", self.visit_seconds);
    }
}

/// Tells the log and the spool.
struct Told<'a, 'b> {
    progress: Progress,
    beats: &'a mut Beats<'b>,
}

impl Observer for Told<'_, '_> {
    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn doing(&mut self, what: &str) {
        self.beats.place.stop.set_visiting(true);
        self.progress.doing(what);
    }

    fn visit(&mut self, block: u32, done: u32, planned: u32) {
        self.beats.ended_visit();
        self.progress.visit(block, done, planned);
    }

    fn pilot(&mut self, pilot: &Pilot) {
        self.progress.pilot(pilot);
    }

    fn block(&mut self, progress: &BlockProgress) {
        self.beats.blocks = progress.done;
        let block = progress.elapsed_seconds / to_f64(u64::from(progress.done.max(1)));
        self.beats.give("between blocks", block);
        self.progress.block(progress);
    }
}
