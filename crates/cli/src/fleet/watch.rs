//! Watching an execution: what hosts have measured comes in, and at the end the report.

use super::carriage::{Carriage, on_their_hosts};
use super::stopped;
use super::submit::Submitter;
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::interrupt;
use crate::store::store_problem;
use crate::study;
use deltabench_fleet::engine::{JobState, Seen};
use deltabench_fleet::file::EngineWord;
use deltabench_fleet::gather::{self, Refused};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::spool::{Attempt, Avoided, Outcome, Spool, Stopped};
use deltabench_fleet::state::{UnitState, UnitStatus, status};
use deltabench_model::exit;
use deltabench_store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often to look at this machine's own lanes, and at those of a scheduler: there each look that finds
/// nothing new doubles the time to the next one.
const LOCAL: Duration = Duration::from_millis(500);
const FIRST: Duration = Duration::from_secs(2);
const SCHEDULED: Duration = Duration::from_secs(15);

/// How often a lane that waits is hastened: the scheduler may hold it back again.
const HASTENED: Duration = Duration::from_secs(30);

/// Where all units of an execution are.
pub fn states((spool, lanes): (&Spool, &Lanes)) -> Vec<UnitStatus> {
    let now = now().1;
    let units = lanes.units.iter();
    units.map(|unit| status(spool, unit.unit, now)).collect()
}

/// Takes in what is sealed, and says what could not be.
///
/// Errors: the lab cannot be written.
pub fn gather(
    store: &mut Store,
    config: &Config,
    place: (&Spool, &Lanes),
) -> Result<Vec<Refused>, Failure> {
    let gathered = gather::gather(store, &config.lab, place, now().1).map_err(Failure::Failed)?;
    for unit in &gathered.units {
        say(&format!("unit {unit} is in the lab"));
    }
    for run in &gathered.beside {
        say(&format!(
            "another attempt was complete too: it is the run {run}"
        ));
    }
    for refused in &gathered.refused {
        say(&refused.why.to_string());
        if refused.damaged {
            let name = &place.1.execution;
            say(&format!(
                "`deltabench fleet resume {name}` measures that unit again"
            ));
        }
    }
    Ok(gathered.refused)
}

/// Who watches: what a command does about a problem that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// A person sees it, and gives the command again.
    ForSomebody,
    /// Nobody does: it is tried again until it works.
    Alone,
}

/// Watches until no lane waits or runs, then reports.
pub fn watch(
    (store, config): (Store, &Config),
    place: (&Spool, &Lanes),
    (submitter, watching): (&Submitter<'_>, Watching),
) -> Result<u8, Failure> {
    let interrupted = interrupt::flag()?;
    let mut watcher = Watcher::new(store, config, place, submitter);
    let name = &place.1.execution;
    loop {
        let went = match watcher.look() {
            Ok(ControlFlow::Break(())) => watcher.finish().map(Some),
            Ok(ControlFlow::Continue(())) => Ok(None),
            Err(failure) => Err(failure),
        };
        match went {
            Ok(Some(code)) => return Ok(code),
            Ok(None) => watcher.goes_on(),
            Err(failure) if watching == Watching::Alone && may_pass(&failure, place.0) => {
                watcher.stumbles(&failure);
            }
            Err(failure) => return Err(failure),
        }
        if interrupted.load(Ordering::Relaxed) {
            say(&format!(
                "{name} goes on; `deltabench fleet watch {name}` shows how, `deltabench fleet cancel \
                 {name}` ends it"
            ));
            return Ok(exit::INTERRUPTED);
        }
        watcher.rest();
    }
}

/// Whether it may work later: a bad request stays one, and without its spool there is nothing to watch.
fn may_pass(failure: &Failure, spool: &Spool) -> bool {
    matches!(failure, Failure::Failed(_)) && spool.lanes_file().exists()
}

/// What was seen and said of an execution so far.
struct Watcher<'a> {
    store: Store,
    config: &'a Config,
    place: (&'a Spool, &'a Lanes),
    submitter: &'a Submitter<'a>,
    carriage: Option<Carriage<'a>>,
    shown: Vec<(UnitState, u32)>,
    stopped: Vec<Stopped>,
    refused: bool,
    avoided: Vec<Avoided>,
    waits: Vec<String>,
    hastened: BTreeMap<(String, u32), Instant>,
    /// The problem that is tried again.
    trouble: Option<String>,
    pause: Duration,
}

impl<'a> Watcher<'a> {
    fn new(
        store: Store,
        config: &'a Config,
        place: (&'a Spool, &'a Lanes),
        submitter: &'a Submitter<'a>,
    ) -> Self {
        Self {
            store,
            config,
            place,
            submitter,
            carriage: Carriage::of(submitter),
            shown: Vec::new(),
            stopped: Vec::new(),
            refused: false,
            avoided: Vec::new(),
            waits: Vec::new(),
            hastened: BTreeMap::new(),
            trouble: None,
            pause: FIRST,
        }
    }

    /// Looks once, and does what is to be done; breaks if no lane waits or runs.
    fn look(&mut self) -> Result<ControlFlow<()>, Failure> {
        let (place, submitter) = (self.place, self.submitter);
        // Asked first: what ends after this is looked at once more.
        let seen = submitter.look()?;
        let alive: Vec<Seen> = { seen.iter() }
            .filter(|one| one.is_alive())
            .cloned()
            .collect();
        let soon = { self.carriage.as_ref() }.is_some_and(|one| one.tend(submitter, &alive));
        let has_sealed = states(place)
            .iter()
            .any(|unit| unit.state == UnitState::Sealed);
        if has_sealed && !self.refused {
            self.refused = !gather(&mut self.store, self.config, place)?.is_empty();
        }
        let mut states = states(place);
        lost(&mut states, &alive, place.1);
        if self.carriage.is_some() {
            on_their_hosts(&mut states, &alive, place.1);
        }
        self.stopped(&seen, &mut states);
        if show(&mut self.shown, &states, place.1) || soon {
            self.pause = FIRST;
        }
        if alive.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        let waits = waiting(&alive);
        if waits != self.waits {
            waits.iter().for_each(|line| say(line));
            self.waits = waits;
        }
        // Before they are hastened: else they would begin where they must not.
        avoid(&mut self.avoided, place, (submitter, &alive));
        let taken = { self.carriage.as_ref() }.map_or_else(BTreeSet::new, Carriage::begun);
        hasten(
            &mut self.hastened,
            &alive,
            (&states, place.1),
            (submitter, &taken),
        );
        Ok(ControlFlow::Continue(()))
    }

    /// Says which lanes could not write, as soon as they have ended.
    fn stopped(&mut self, seen: &[Seen], states: &mut [UnitStatus]) {
        let (place, is_copied) = (self.place, self.carriage.is_some());
        let stopped = stopped::lanes(seen, states, place);
        stopped::mark(states, &stopped, (is_copied, place.1));
        let is_known = |one: &Stopped| self.stopped.iter().any(|known| known.lane == one.lane);
        let new: Vec<Stopped> = { stopped.iter() }
            .filter(|one| !is_known(one))
            .cloned()
            .collect();
        for line in stopped::to_do(&new, is_copied, &place.1.execution) {
            say(&line);
        }
        self.stopped.extend(new);
    }

    /// Takes in what is left, and reports.
    fn finish(&mut self) -> Result<u8, Failure> {
        let place = self.place;
        let seen = self.submitter.look().unwrap_or_default();
        { self.carriage.iter() }.for_each(Carriage::fetch_all);
        // What is sound comes in, also beside a file that was refused.
        gather(&mut self.store, self.config, place)?;
        let mut states = states(place);
        lost(&mut states, &[], place.1);
        // A lane that cannot write cannot say so.
        let stopped = stopped::lanes(&seen, &states, place);
        let is_copied = self.carriage.is_some();
        stopped::mark(&mut states, &stopped, (is_copied, place.1));
        let to_do = stopped::to_do(&stopped, is_copied, &place.1.execution);
        let code = conclude_on(&self.store, self.config, place, (states, stopped));
        to_do.iter().for_each(|line| say(line));
        { self.carriage.iter() }.for_each(Carriage::end);
        code
    }

    /// Says what is in the way, once, and tries again later.
    fn stumbles(&mut self, failure: &Failure) {
        let text = failure.problem().to_string();
        if self.trouble.as_ref() != Some(&text) {
            say(&format!("{text}\nit is tried again until it works"));
            self.pause = FIRST;
        }
        self.trouble = Some(text);
    }

    fn goes_on(&mut self) {
        if self.trouble.take().is_some() {
            say("that is over; going on");
            self.pause = FIRST;
        }
    }

    fn rest(&mut self) {
        std::thread::sleep(match self.submitter.engine_word() {
            EngineWord::Local if self.trouble.is_none() => LOCAL,
            _ => self.pause,
        });
        self.pause = (self.pause * 2).min(SCHEDULED);
    }
}

/// Prints where units are, if that is new; `known` says what was printed.
fn show(known: &mut Vec<(UnitState, u32)>, states: &[UnitStatus], lanes: &Lanes) -> bool {
    let state = |unit: &UnitStatus| (unit.state, unit.attempts);
    let seen: Vec<(UnitState, u32)> = states.iter().map(state).collect();
    let is_new = seen != *known;
    if is_new {
        table(states, lanes).iter().for_each(|line| say(line));
        *known = seen;
    }
    is_new
}

/// An attempt whose lane does not run any more was killed before it could say so.
pub fn lost(states: &mut [UnitStatus], alive: &[Seen], lanes: &Lanes) {
    for unit in { states.iter_mut() }.filter(|unit| unit.state == UnitState::Running) {
        let lane = lanes.lane_of(unit.unit).map(|lane| lane.lane);
        // One that waits may have begun since.
        let is_alive = alive.iter().any(|one| Some(one.element) == lane);
        if !is_alive {
            unit.state = UnitState::Silent;
            unit.beat = None;
            "its lane was killed".clone_into(&mut unit.text);
        }
    }
}

/// Why lanes wait, in the engine's words: a line for each reason.
pub fn waiting(alive: &[Seen]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for seen in alive {
        if let JobState::Waiting(why) = &seen.state
            && !matches!(why.as_str(), "" | "None")
        {
            reasons.entry(why).or_default().insert(seen.element);
        }
    }
    let line = |(why, lanes): (&&str, &BTreeSet<u32>)| {
        let lanes: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        format!("  waiting: lane {} ({why})", lanes.join(", "))
    };
    reasons.iter().map(line).collect()
}

/// Keeps lanes that wait away from hosts that were found unfit meanwhile: such a host ends its lanes at once,
/// is idle again, and would be given all of them.
fn avoid(
    known: &mut Vec<Avoided>,
    place: (&Spool, &Lanes),
    (submitter, alive): (&Submitter<'_>, &[Seen]),
) {
    let waits = |one: &Seen| matches!(one.state, JobState::Waiting(_));
    let mut told = Ok(());
    if alive.iter().any(waits) {
        // A lane that had to leave its host at once may not have kept itself away from it.
        told = submitter.avoid();
    }
    let avoided = place.0.avoided();
    if avoided == *known {
        return;
    }
    for host in avoided.iter().filter(|host| !known.contains(host)) {
        say(&avoided_line(host));
    }
    *known = avoided;
    // Where the engine refuses, the lanes that wait meet the host again, and leave it then.
    match told.and_then(|()| submitter.no_host_is_left()) {
        Ok(true) => say(&format!("no host is left for the lanes that wait; {UNDO}")),
        Ok(false) => {}
        Err(failure) => say(&failure.problem().to_string()),
    }
}

/// How a host is used again.
pub const UNDO: &str = "`deltabench fleet drain HOST --undo --on FILE` uses one again";

pub fn avoided_line(avoided: &Avoided) -> String {
    format!("host {} is avoided: {}", avoided.host.node, avoided.why)
}

/// Lets lanes that lost their host, or go on later, begin at once: a scheduler holds them back for minutes.
/// `known` says when each was.
fn hasten(
    known: &mut BTreeMap<(String, u32), Instant>,
    alive: &[Seen],
    (states, lanes): (&[UnitStatus], &Lanes),
    (submitter, taken): (&Submitter<'_>, &BTreeSet<u32>),
) {
    for seen in alive {
        let own = |unit: &&UnitStatus| {
            let lane = lanes.lane(seen.element);
            lane.is_some_and(|lane| lane.units.contains(&unit.unit))
        };
        let has_begun = states.iter().filter(own).any(|unit| unit.attempts > 0)
            || taken.contains(&seen.element);
        let key = (seen.job.clone(), seen.element);
        let is_new = known.get(&key).is_none_or(|at| at.elapsed() > HASTENED);
        if has_begun && is_new && matches!(seen.state, JobState::Waiting(_)) {
            // It comes back later by itself.
            if let Err(failure) = submitter.hasten(seen) {
                say(&failure.problem().to_string());
            }
            known.insert(key, Instant::now());
        }
    }
}

/// Units whose measurements another lab has taken in are not done for this one.
fn elsewhere(
    store: &Store,
    (spool, _): (&Spool, &Lanes),
    states: &mut [UnitStatus],
) -> Result<(), Failure> {
    for unit in states
        .iter_mut()
        .filter(|unit| unit.state == UnitState::Gathered)
    {
        let mut here = false;
        let attempts = spool.attempts(unit.unit);
        for hash in attempts.iter().filter_map(Attempt::gathered) {
            here |= store.has_sealed(&hash).map_err(store_problem)?;
        }
        if !here {
            unit.state = UnitState::Sealed;
            "another lab has taken it in, and this one has not".clone_into(&mut unit.text);
        }
    }
    Ok(())
}

/// Reports on an execution of which nothing runs any more.
pub fn conclude(store: &Store, config: &Config, place: (&Spool, &Lanes)) -> Result<u8, Failure> {
    conclude_on(store, config, place, (states(place), Vec::new()))
}

fn conclude_on(
    store: &Store,
    config: &Config,
    place: (&Spool, &Lanes),
    (states, stopped): (Vec<UnitStatus>, Vec<Stopped>),
) -> Result<u8, Failure> {
    let (code, missing) = reported(store, config, place, states)?;
    let outcome = Outcome {
        code,
        missing,
        stopped,
        at_unix_ms: now().1,
    };
    // Whoever looks later looks at the lanes then.
    if let Err(problem) = place.0.set_outcome(&outcome) {
        say(&problem.to_string());
    }
    Ok(code)
}

/// Reports; returns the exit code, and how many units are not in the lab.
fn reported(
    store: &Store,
    config: &Config,
    place: (&Spool, &Lanes),
    mut states: Vec<UnitStatus>,
) -> Result<(u8, u32), Failure> {
    let (_, lanes) = place;
    elsewhere(store, place, &mut states)?;
    let missing: Vec<&UnitStatus> = { states.iter() }
        .filter(|unit| unit.state != UnitState::Gathered)
        .collect();
    let mut code = None;
    if missing.len() < states.len() {
        let runs: Vec<String> = lanes.units.iter().map(|unit| unit.run.clone()).collect();
        let known = Vec::new();
        code = Some(study::publish(&lanes.execution, &runs, known, config)?);
    }
    for line in events(store, lanes)? {
        say(&line);
    }
    for unit in &missing {
        let why = match unit.text.as_str() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        say(&format!("unit {} is {}{why}", unit.unit, unit.state.word()));
    }
    if !missing.is_empty() {
        let avoided = place.0.avoided();
        avoided.iter().for_each(|host| say(&avoided_line(host)));
        if !avoided.is_empty() {
            say(&format!("another host takes what is left, or: {UNDO}"));
        }
        let name = &lanes.execution;
        say(&format!(
            "exit code 5: {} of {} units are not measured; `deltabench fleet resume {name}` goes on, \
             `deltabench fleet logs {name}` says more",
            missing.len(),
            states.len()
        ));
        let missing = u32::try_from(missing.len()).unwrap_or(u32::MAX);
        return Ok((exit::NOT_MEASURED, missing));
    }
    Ok((code.unwrap_or(exit::NOT_MEASURED), 0))
}

/// What was not planned: each attempt that did not end in a sealed file.
fn events(store: &Store, lanes: &Lanes) -> Result<Vec<String>, Failure> {
    let events = store.unit_events(&lanes.execution).map_err(store_problem)?;
    let beside = events.into_iter().filter(|event| event.state != "sealed");
    Ok(beside
        .map(|event| {
            let why = match event.text.as_str() {
                "" => String::new(),
                text => format!(": {text}"),
            };
            format!(
                "unit {}, attempt {} on {}: {}{why}",
                event.unit, event.attempt, event.host, event.state
            )
        })
        .collect())
}

/// A line for each unit.
pub fn table(states: &[UnitStatus], lanes: &Lanes) -> Vec<String> {
    let line = |unit: &UnitStatus| {
        let lane = lanes.lane_of(unit.unit).map_or(0, |lane| lane.lane);
        let host = unit.host.as_ref().map_or("", |host| host.node.as_str());
        let done = match (&unit.beat, unit.state) {
            (Some(beat), UnitState::Running | UnitState::Silent | UnitState::Interrupted) => {
                format!("block {} of {}, {}", beat.blocks, beat.of, beat.text)
            }
            _ => unit.text.clone(),
        };
        let line = format!(
            "  unit {:<3} lane {lane:<3} {:<12} {host:<16} {done}",
            unit.unit,
            unit.state.word()
        );
        line.trim_end().to_owned()
    };
    states.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_wait_for_reasons_of_the_engine() {
        let seen = |element, state| Seen {
            job: "7".to_owned(),
            element,
            state,
        };
        let waits = |element, why: &str| seen(element, JobState::Waiting(why.to_owned()));
        let alive = [
            waits(2, "Resources"),
            seen(0, JobState::Running("n1".to_owned())),
            waits(1, "Resources"),
            waits(3, ""),
            waits(4, "None"),
        ];
        assert_eq!(waiting(&alive), ["  waiting: lane 1, 2 (Resources)"]);
    }
}
