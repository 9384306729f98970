//! Copying to hosts and fetching from them, where they see no directory of ours: what is said, when it is
//! tried again, and what becomes of a host that takes no copies.

use super::disk::local_directory;
use super::submit::{Submitter, slurm};
use super::unit::in_words;
use crate::amounts::size;
use crate::console::say;
use deltabench_fleet::carry::{Carrier, Met, Unmet, Visit};
use deltabench_fleet::engine::slurm::Running;
use deltabench_fleet::engine::{JobState, Seen};
use deltabench_fleet::file::Copying;
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::spool::{Avoided, HostName, Spool};
use deltabench_fleet::state::{UnitState, UnitStatus};
use deltabench_model::problem::Problem;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often a host is asked again that could not be reached.
const AGAIN: Duration = Duration::from_secs(30);
/// How often a host is asked at the end of all lanes: Slurm may still clean up after the last one.
const TRIES: u32 = 3;

/// What copies and fetches for an execution.
pub struct Carriage<'a> {
    carrier: Carrier<'a>,
    spool: &'a Spool,
    lanes: &'a Lanes,
    /// What was said of each host, so that it is said once.
    said: RefCell<BTreeSet<String>>,
    tried: RefCell<BTreeMap<String, Instant>>,
    /// Lanes that had to leave a host: Slurm holds them back.
    left: RefCell<BTreeSet<u32>>,
}

impl<'a> Carriage<'a> {
    /// For an execution; `None` if its hosts see the shared directory.
    pub fn of(submitter: &Submitter<'a>) -> Option<Self> {
        let (file, spool, lanes) = submitter.execution();
        if file.copy == Copying::Shared {
            return None;
        }
        let places = (file.shared.clone(), local_directory(file.local.as_deref()));
        Some(Self {
            carrier: Carrier::new(slurm(file), (spool, lanes), places),
            spool,
            lanes,
            said: RefCell::default(),
            tried: RefCell::default(),
            left: RefCell::default(),
        })
    }

    /// Copies to the hosts of lanes that have begun, and fetches from those that nobody measures on; whether
    /// to look again soon.
    pub fn tend(&self, submitter: &Submitter<'_>, alive: &[Seen]) -> bool {
        let runs = |one: &&Seen| matches!(one.state, JobState::Running(_));
        let jobs: BTreeSet<&String> = alive.iter().filter(runs).map(|one| &one.job).collect();
        let jobs: Vec<String> = jobs.into_iter().cloned().collect();
        let running = match self.carrier.running(&jobs) {
            Ok(running) => running,
            Err(problem) => {
                self.once(&problem.to_string());
                return false;
            }
        };
        let mut soon = false;
        for one in &running {
            soon |= self.meet(one, submitter);
        }
        let is_busy = |visit: &Visit| running.iter().any(|one| one.node == visit.node);
        for visit in self.open().iter().filter(|visit| !is_busy(visit)) {
            let tried = self.tried.borrow().get(&visit.node).copied();
            let is_new = tried.is_none_or(|at| at.elapsed() > AGAIN);
            if is_new && !self.fetch(&visit.node) {
                let mut tried = self.tried.borrow_mut();
                tried.insert(visit.node.clone(), Instant::now());
            }
        }
        soon
    }

    fn meet(&self, running: &Running, submitter: &Submitter<'_>) -> bool {
        let (lane, node) = (running.element, &running.node);
        match self.carrier.meet(running) {
            Ok(Met::Before) => false,
            Ok(Met::Early) => true,
            Ok(Met::Copied(bytes)) => {
                say(&format!("lane {lane} on {node}: copied {}", size(bytes)));
                false
            }
            Err(unmet) => {
                let (Unmet::Unfit(problem) | Unmet::Other(problem)) = &unmet;
                self.once(&format!(
                    "lane {lane} cannot begin on {node}: {}",
                    in_words(problem)
                ));
                if matches!(unmet, Unmet::Unfit(_)) {
                    self.leave(running, problem, submitter);
                }
                true
            }
        }
    }

    /// A host whose disk is full is unfit: its lane goes elsewhere.
    fn leave(&self, running: &Running, problem: &Problem, submitter: &Submitter<'_>) {
        let node = running.node.clone();
        let host = HostName {
            uid: node.clone(),
            node,
        };
        let why = format!(
            "it does not take what was to be copied: {}",
            in_words(problem)
        );
        let seen = Seen {
            job: running.job.clone(),
            element: running.element,
            state: JobState::Running(running.node.clone()),
        };
        self.left.borrow_mut().insert(running.element);
        if let Err(problem) = self.spool.avoid(&Avoided { host, why }) {
            self.once(&problem.to_string());
            return;
        }
        // Others first: the host is idle as soon as this lane has left it, and would be given one of them.
        for told in [submitter.avoid(), submitter.elsewhere(&seen)] {
            told.unwrap_or_else(|failure| self.once(&failure.problem().to_string()));
        }
    }

    /// The nodes whose measurements are not here.
    fn open(&self) -> Vec<Visit> {
        let mut open = self.carrier.visits();
        open.retain(|visit| !visit.is_fetched);
        open
    }

    fn fetch(&self, node: &str) -> bool {
        match self.carrier.fetch(node) {
            Ok(_) => true,
            Err(problem) => {
                self.once(&format!(
                    "not fetched from {node} yet: {}",
                    in_words(&problem)
                ));
                false
            }
        }
    }

    /// Fetches from all hosts on which no lane runs, once; whether nothing is left there.
    pub fn fetch_all_idle(&self, alive: &[Seen]) -> bool {
        let is_busy = |node: &str| {
            { alive.iter() }.any(|one| matches!(&one.state, JobState::Running(at) if at == node))
        };
        let open = self.open().into_iter();
        let idle = open.filter(|visit| !is_busy(&visit.node));
        // Each is tried, also after one that fails.
        idle.filter(|visit| !self.fetch(&visit.node)).count() == 0
    }

    /// Fetches from all hosts, after the end of all lanes.
    pub fn fetch_all(&self) {
        for _ in 0..TRIES {
            if self.fetch_all_idle(&[]) {
                return;
            }
        }
    }

    /// The lanes that have begun, or had to leave. Of an attempt on a host that is lost nothing else is known
    /// here.
    pub fn begun(&self) -> BTreeSet<u32> {
        let taken = self.spool.taken().into_iter();
        let left = self.left.borrow();
        taken
            .map(|(lane, _)| lane)
            .chain(left.iter().copied())
            .collect()
    }

    /// Removes the copies where nothing more is to be measured, and says what stays.
    pub fn end(&self) {
        let is_left = |unit: u32| !self.spool.is_sealed(unit);
        let is_over = !self.lanes.units.iter().any(|unit| is_left(unit.unit));
        let name = &self.lanes.execution;
        let mut kept = Vec::new();
        for visit in self.carrier.visits() {
            let home = self.carrier.home(&visit.node);
            let place = format!("{}:{}", visit.node, home.display());
            if !is_over {
                kept.push(place);
            } else if !visit.is_fetched {
                say(&format!(
                    "{place} stays, not fetched: `deltabench fleet gather {name}` tries it again"
                ));
            } else if let Err(problem) = self.carrier.clean(&visit.node) {
                say(&format!(
                    "{place} stays: {}; `deltabench fleet gather {name}` tries it again",
                    in_words(&problem)
                ));
            }
        }
        if !kept.is_empty() {
            say(&format!(
                "hosts keep their copies for `deltabench fleet resume {name}`: {}",
                kept.join(", ")
            ));
        }
    }

    fn once(&self, text: &str) {
        if self.said.borrow_mut().insert(text.to_owned()) {
            say(text);
        }
    }
}

/// Nothing is asked of a host while it measures: of units that are not done Slurm alone says where they are.
pub fn on_their_hosts(states: &mut [UnitStatus], alive: &[Seen], lanes: &Lanes) {
    for unit in { states.iter_mut() }.filter(|unit| !unit.state.is_done()) {
        let lane = lanes.lane_of(unit.unit).map(|lane| lane.lane);
        let at = alive.iter().find_map(|one| match &one.state {
            JobState::Running(node) if Some(one.element) == lane => Some(node.clone()),
            _ => None,
        });
        if let Some(node) = at {
            unit.state = UnitState::Running;
            unit.beat = None;
            unit.host = Some(HostName {
                uid: String::new(),
                node,
            });
            "its host is asked when its lane ends".clone_into(&mut unit.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_fleet::lanes::Lane;

    #[test]
    fn where_a_unit_is_that_is_not_done_only_slurm_knows() {
        let lanes = Lanes {
            lanes: vec![Lane {
                lane: 0,
                units: vec![1, 2],
                minutes: 31,
                one_host: false,
            }],
            ..Lanes::default()
        };
        let unit = |unit, state| UnitStatus {
            unit,
            state,
            attempts: 0,
            host: None,
            beat: None,
            text: String::new(),
        };
        let mut states = [unit(1, UnitState::Gathered), unit(2, UnitState::Waiting)];
        let seen = |state| Seen {
            job: "7".to_owned(),
            element: 0,
            state,
        };
        on_their_hosts(
            &mut states,
            &[seen(JobState::Waiting(String::new()))],
            &lanes,
        );
        assert_eq!(states[1].state, UnitState::Waiting);
        on_their_hosts(
            &mut states,
            &[seen(JobState::Running("n2".to_owned()))],
            &lanes,
        );
        let seen = states.each_ref().map(|unit| unit.state);
        assert_eq!(seen, [UnitState::Gathered, UnitState::Running]);
        assert_eq!(states[1].host.as_ref().unwrap().node, "n2");
    }
}
