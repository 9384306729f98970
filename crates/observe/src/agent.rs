//! Counters of servers on another machine: the same binary, started there over ssh, reads them.
//!
//! [`Agent`] is the near side, [`serve`] the far one. Readings of the far machine are only ever compared with
//! other readings of the far machine; the two clocks are never subtracted.
//!
//! An agent that is lost in mid-run is not started again: what it would have told is absent from then on, and
//! [`Agent::news`] says so once.

mod far;
mod find;
mod lines;
mod link;
mod protocol;
mod remote;
mod ssh;

pub use far::{SILENCE, Served, serve};
pub use remote::{RemoteCounters, RemoteMeters};
pub use ssh::Programs;

use crate::check::{Check, preflight};
use deltabench_model::counter::Sample;
use deltabench_model::fact::{AgentFacts, HostFacts};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_proc::host::boot_id;
use far::{now_ns, other_version};
use link::Link;
use protocol::{Answer, Ask, Backends, PROTOCOL, Samples, VERSION};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Logging in and starting may take so long.
const GREETING: Duration = Duration::from_secs(20);

/// Every other answer may take so long.
const ANSWER: Duration = Duration::from_secs(10);

/// A far side that nobody asked anything for so long is told that we are still there.
const HEARTBEAT: Duration = Duration::from_secs(8);

/// Answers that samples may come in: far more than a run that asks after each visit is ever told.
const BATCHES_MAX: usize = 100;

/// Round trips from which the usual one is taken.
const ROUND_TRIPS: usize = 21;

/// A slice whose meters take longer than this share of it is worth a word.
const SLOW_SHARE: f64 = 0.2;

/// What is said about a host that is no matter of the server on it: these lines are about our own process or
/// about clusters that we start.
const NOT_OF_SERVERS: [FindingKind; 5] = [
    FindingKind::FewCores,
    FindingKind::CpuQuota,
    FindingKind::FreeMemory,
    FindingKind::HugePages,
    FindingKind::HardwareCounters,
];

/// The near side of an agent. Clones are the same agent; the last one to go ends it.
#[derive(Debug, Clone)]
pub struct Agent(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    about: AgentFacts,
    state: Mutex<State>,
    /// Closes when the agent goes, which ends the heartbeat.
    _alive: SyncSender<()>,
}

#[derive(Debug)]
struct State {
    /// Absent when it is lost.
    link: Option<Link>,
    asked: Instant,
    /// What was said already, once each.
    said: Vec<Finding>,
    /// Of these, so many were handed out.
    told: usize,
}

impl Agent {
    /// Starts an agent by its name in a target, `ssh:HOST`, with the programs of the environment.
    ///
    /// Errors: another form; ssh that cannot be started; a host that cannot be reached or lets nobody in; no
    /// deltabench there, or another version of it.
    pub fn start(spec: &str) -> Result<Self, Problem> {
        Self::start_with(spec, &Programs::from_environment())
    }

    /// The same with these programs.
    ///
    /// Errors: as [`Agent::start`].
    pub fn start_with(spec: &str, programs: &Programs) -> Result<Self, Problem> {
        let host = host_of(spec)?;
        let (input, lines, session) = programs.start(host)?;
        Self::greet(host, Link::new(input, lines, Some(session)))
    }

    /// Greets the other end of a link that has just been opened.
    fn greet(host: &str, mut link: Link) -> Result<Self, Problem> {
        let hello = Ask::Hello {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
        };
        let answer = match link.ask(hello, GREETING) {
            Ok(answer) => answer,
            Err(lost) => return Err(link.close(host, lost)),
        };
        let hello = match answer {
            Answer::Hello(hello)
                if (hello.protocol, hello.version.as_str()) == (PROTOCOL, VERSION) =>
            {
                hello
            }
            Answer::Hello(hello) => {
                let theirs = (hello.protocol, hello.version.as_str());
                return Err(upgrade(host, other_version(theirs.0, theirs.1)));
            }
            Answer::Refused(refusal) => return Err(upgrade(host, refusal)),
            _ => return Err(link.close(host, link::Lost::Nonsense)),
        };
        let round_trip_ns = match round_trip(&mut link) {
            Ok(ns) => ns,
            Err(lost) => return Err(link.close(host, lost)),
        };
        let about = AgentFacts {
            host: host.to_owned(),
            version: hello.version,
            round_trip_ns,
            same_machine: hello.boot.is_some() && hello.boot == boot_id(),
        };
        let (alive, ended) = sync_channel(0);
        let inner = Arc::new(Inner {
            about,
            state: Mutex::new(State {
                link: Some(link),
                asked: Instant::now(),
                said: Vec::new(),
                told: 0,
            }),
            _alive: alive,
        });
        let beaten = Arc::downgrade(&inner);
        std::thread::Builder::new()
            .name("agent-heartbeat".to_owned())
            .spawn(move || heartbeat(&beaten, &ended))
            .map_err(|error| {
                Problem::new("cannot start the heartbeat of an agent").detail(error.to_string())
            })?;
        Ok(Self(inner))
    }

    /// What is known of it.
    pub fn about(&self) -> &AgentFacts {
        &self.0.about
    }

    /// Whether it has been lost.
    pub fn is_lost(&self) -> bool {
        self.0.state().link.is_none()
    }

    /// What has gone wrong since this was asked last, each thing once: an agent that was lost, a server that
    /// cannot be read.
    pub fn news(&self) -> Vec<Finding> {
        let mut state = self.0.state();
        let news = state.said.get(state.told..).unwrap_or_default().to_vec();
        state.told = state.said.len();
        news
    }

    /// Facts about its host.
    ///
    /// Errors: an agent that is lost.
    pub fn host_facts(&self) -> Result<HostFacts, Problem> {
        self.ask(Ask::Facts, |answer| match answer {
            Answer::Facts(facts) => Some(*facts),
            _ => None,
        })
    }

    /// What spoils measurements on its host, and a round trip that is long beside slices of this length.
    pub fn findings(&self, facts: &HostFacts, slice: Duration) -> Vec<Finding> {
        let host = &self.0.about.host;
        let mut findings: Vec<Finding> = preflight(facts, None, None)
            .iter()
            .filter(|check| !NOT_OF_SERVERS.contains(&check.kind))
            .filter_map(Check::finding)
            .map(|found| Finding {
                text: format!("{host}: {}", found.text),
                ..found
            })
            .collect();
        let reading = 2.0 * to_f64(self.0.about.round_trip_ns) / 1e9;
        if reading > SLOW_SHARE * slice.as_secs_f64() {
            findings.push(Finding::new(
                FindingKind::AgentFar,
                Severity::Note,
                format!(
                    "{host}: reading the meters takes {:.1} ms for slices of {:.0} ms, so fewer slices \
                     fit into a visit, and load and stolen time of that machine include more than the \
                     slice; longer slices (--slice-ms) reduce this effect",
                    1e3 * reading,
                    1e3 * slice.as_secs_f64()
                ),
            ));
        }
        findings
    }

    /// Finds the main process of the server that has these backends: ask each of several connections for its
    /// `pg_backend_pid()`, and keep them open. The titles of the processes must name the role and database.
    ///
    /// Errors: a lost agent; no such server on its host, more than one.
    pub fn find(&self, backends: &[u32], user: &str, database: &str) -> Result<u32, Problem> {
        let ask = Ask::Postmaster(Backends {
            pids: backends.to_vec(),
            user: user.to_owned(),
            database: database.to_owned(),
        });
        self.ask(ask, |answer| match answer {
            Answer::Postmaster(pid) => Some(pid),
            _ => None,
        })
    }

    /// A server's main process and all below it.
    ///
    /// Errors: a lost agent; a server that has ended.
    pub fn processes(&self, postmaster: u32) -> Result<Vec<u32>, Problem> {
        self.ask(Ask::Processes { postmaster }, |answer| match answer {
            Answer::Processes(pids) => Some(pids),
            _ => None,
        })
    }

    /// Opens meters on the servers with these main processes; with `device`, also on the device of the first
    /// one's data, where the far side may know it. Do it after connecting, as with [`crate::SliceMeters`].
    ///
    /// Errors: a lost agent; a server that has ended or cannot be read.
    pub fn meters(&self, postmasters: &[u32], device: bool) -> Result<RemoteMeters, Problem> {
        let ask = Ask::OpenMeters {
            postmasters: postmasters.to_vec(),
            device,
        };
        let (meters, sources) = self.ask(ask, |answer| match answer {
            Answer::Meters { meters, sources } => Some((meters, sources)),
            _ => None,
        })?;
        Ok(RemoteMeters::new(self.clone(), meters, sources))
    }

    /// Counts a server's processes from now on, these backends' hardware events too, where the far side may.
    ///
    /// Errors: a lost agent; a server that has ended or cannot be read.
    pub fn counters(&self, postmaster: u32, backends: &[u32]) -> Result<RemoteCounters, Problem> {
        let ask = Ask::OpenCounters {
            postmaster,
            backends: backends.to_vec(),
        };
        let counters = self.ask(ask, |answer| match answer {
            Answer::Counters(counters) => Some(counters),
            _ => None,
        })?;
        Ok(RemoteCounters::new(self.clone(), counters))
    }

    /// Samples its host, and these servers by their main processes, from now on and no others. The first call
    /// sets the interval, and the device: that of the first server's data.
    ///
    /// Errors: a lost agent; a host that cannot be sampled.
    pub fn watch(&self, servers: Vec<(ServerId, u32)>, interval: Duration) -> Result<(), Problem> {
        let ask = Ask::Watch {
            servers,
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
        };
        self.ask(ask, |answer| matches!(answer, Answer::Done).then_some(()))
    }

    /// The samples since they were taken out last, in order of time, with their moments on our clock: each is
    /// as old as the far clock says, give or take half a round trip.
    ///
    /// Errors: a lost agent.
    pub fn samples(&self) -> Result<Vec<Sample>, Problem> {
        let mut all = Vec::new();
        for _ in 0..BATCHES_MAX {
            let asked = now_ns();
            let some = self.ask(Ask::Samples, |answer| match answer {
                Answer::Samples(samples) => Some(samples),
                _ => None,
            })?;
            let between = asked + now_ns().saturating_sub(asked) / 2;
            let more = some.more;
            all.extend(on_our_clock(some, between));
            if !more {
                return Ok(all);
            }
        }
        // Nobody has that many: what answers so would keep the run waiting without end.
        Err(self.0.lose(link::Lost::Nonsense))
    }

    /// Asks for something; `take` picks it out of the right kind of answer.
    fn ask<T>(&self, ask: Ask, take: impl Fn(Answer) -> Option<T>) -> Result<T, Problem> {
        let answer = self.0.ask(ask)?;
        if let Answer::Refused(refusal) = answer {
            return Err(refusal);
        }
        take(answer).ok_or_else(|| self.0.lose(link::Lost::Nonsense))
    }

    /// Keeps a refusal for [`Agent::news`]; a loss is there already.
    pub(crate) fn note(&self, problem: &Problem) {
        if !self.is_lost() {
            let detail = problem.detail.as_deref();
            let why = detail
                .map(|detail| format!(" ({detail})"))
                .unwrap_or_default();
            self.0.say(Finding::new(
                FindingKind::AgentRefused,
                Severity::Note,
                format!(
                    "{}: {}{why}; this reading is missing",
                    self.0.about.host, problem.error
                ),
            ));
        }
    }

    /// Whether two are the same agent.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Inner {
    /// A panic elsewhere leaves nothing half-done in here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: Ask) -> Result<Answer, Problem> {
        let mut state = self.state();
        let Some(link) = &mut state.link else {
            return Err(Problem::new(format!(
                "the agent on {} is lost",
                self.about.host
            )));
        };
        let answer = link.ask(ask, ANSWER);
        state.asked = Instant::now();
        drop(state);
        answer.map_err(|lost| self.lose(lost))
    }

    /// Gives the link up.
    fn lose(&self, lost: link::Lost) -> Problem {
        let link = self.state().link.take();
        let Some(link) = link else {
            return Problem::new(format!("the agent on {} is lost", self.about.host));
        };
        let problem = link.close(&self.about.host, lost);
        let detail = problem.detail.as_deref();
        let why = detail
            .map(|detail| format!(" ({detail})"))
            .unwrap_or_default();
        self.say(Finding::new(
            FindingKind::AgentLost,
            Severity::Note,
            format!(
                "{}{why}; CPU and counters of the servers on it are missing from then on",
                problem.error
            ),
        ));
        problem
    }

    fn say(&self, finding: Finding) {
        let mut state = self.state();
        if !state.said.contains(&finding) {
            state.said.push(finding);
        }
    }
}

/// The host in `ssh:HOST`. What ssh or a shell would take for something else is refused.
fn host_of(spec: &str) -> Result<&str, Problem> {
    let host = spec.strip_prefix("ssh:").unwrap_or_default();
    // No character that a shell, or a ProxyCommand with %h, would make something of.
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@:%[]-".contains(c);
    let dashed = host.starts_with('-') || host.contains("@-");
    if host.is_empty() || dashed || !host.chars().all(plain) {
        return Err(Problem::new(format!("`{spec}` does not name an agent"))
            .detail("an agent is written ssh:HOST or ssh:USER@HOST; ports and keys are in ~/.ssh/config")
            .hint("for example agent=ssh:me@db.example"));
    }
    Ok(host)
}

fn upgrade(host: &str, problem: Problem) -> Problem {
    Problem {
        error: format!("no agent on {host}: {}", problem.error),
        ..problem
    }
    .hint(format!(
        "put this same version of deltabench ({VERSION}) there, or name it with DELTABENCH_AGENT_PROGRAM"
    ))
}

/// The median of some round trips; the first are slower.
fn round_trip(link: &mut Link) -> Result<u64, link::Lost> {
    let mut taken = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let asked = Instant::now();
        link.ask(Ask::Ping, ANSWER)?;
        taken.push(u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    taken.sort_unstable();
    Ok(taken.get(ROUND_TRIPS / 2).copied().unwrap_or_default())
}

/// Tells a far side that has not been asked for a while that we are there, until the agent goes.
fn heartbeat(agent: &Weak<Inner>, ended: &Receiver<()>) {
    while ended.recv_timeout(HEARTBEAT / 4) == Err(RecvTimeoutError::Timeout) {
        let Some(agent) = agent.upgrade() else { return };
        let state = agent.state();
        let lost = state.link.is_none();
        let idle = state.asked.elapsed() >= HEARTBEAT;
        drop(state);
        if lost || (idle && agent.ask(Ask::Ping).is_err()) {
            return;
        }
    }
}

/// Moves samples to our clock: `between` is when the far clock said what is in them, about.
fn on_our_clock(far: Samples, between: u64) -> impl Iterator<Item = Sample> {
    let now = far.now_ns;
    far.samples.into_iter().map(move |sample| Sample {
        at_ns: between.saturating_sub(now.saturating_sub(sample.at_ns)),
        ..sample
    })
}

#[cfg(test)]
pub(crate) mod tests;
