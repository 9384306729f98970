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
use crate::host_facts::HostFacts;
use deltabench_model::counter::Sample;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use far::{boot, now_ns, other_version};
use link::Link;
use protocol::{Ask, Backends, PROTOCOL, Samples, Told, VERSION};
use serde::Serialize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Logging in and starting may take so long.
const GREETING: Duration = Duration::from_secs(20);

/// Every other answer may take so long.
const ANSWER: Duration = Duration::from_secs(10);

/// A far side that nobody asked anything for so long is told that we are still there.
const HEARTBEAT: Duration = Duration::from_secs(8);

/// Answers that samples may come in: each holds hundreds, and a far side keeps no more than an hour of them.
const BATCHES_MAX: usize = 100;

/// Round trips from which the usual one is taken.
const ROUND_TRIPS: usize = 21;

/// A slice whose meters take longer than this share of it is worth a word.
const SLOW_SHARE: f64 = 0.2;

/// What is said about a host that is no matter of the server on it: these lines are about our own process or
/// about clusters that we start.
const NOT_OF_SERVERS: [&str; 5] = [
    "few-cores",
    "cpu-quota",
    "free-memory",
    "huge-pages",
    "hardware-counters",
];

/// The near side of an agent. Clones are the same agent; the last one to go ends it.
#[derive(Debug, Clone)]
pub struct Agent(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    about: About,
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

/// What is known of an agent, to be kept with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// Host as ssh knows it.
    pub host: String,
    /// Its version of deltabench: the same as ours.
    pub version: String,
    /// Median time from a request to its answer, nanoseconds. The meters of a slice take two.
    pub round_trip_ns: u64,
    /// Whether it runs on this machine, so that the client's CPU is among the busy time of its host.
    pub same_machine: bool,
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
        Self::greet(host, programs.start(host)?)
    }

    /// Greets the other end of a link that has just been opened.
    fn greet(host: &str, mut link: Link) -> Result<Self, Problem> {
        let hello = Ask::Hello {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
        };
        let told = match link.ask(hello, GREETING) {
            Ok(told) => told,
            Err(lost) => return Err(link.close(host, lost)),
        };
        let hello = match told {
            Told::Hello(hello)
                if (hello.protocol, hello.version.as_str()) == (PROTOCOL, VERSION) =>
            {
                hello
            }
            Told::Hello(hello) => {
                let theirs = (hello.protocol, hello.version.as_str());
                return Err(upgrade(host, other_version(theirs.0, theirs.1)));
            }
            Told::Refused(refusal) => return Err(upgrade(host, refusal.into())),
            _ => return Err(link.close(host, link::Lost::Nonsense)),
        };
        let round_trip_ns = match round_trip(&mut link) {
            Ok(ns) => ns,
            Err(lost) => return Err(link.close(host, lost)),
        };
        let about = About {
            host: host.to_owned(),
            version: hello.version,
            round_trip_ns,
            same_machine: hello.boot.is_some() && hello.boot == boot(),
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
    #[must_use]
    pub fn about(&self) -> &About {
        &self.0.about
    }

    /// Whether it has been lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.state().link.is_none()
    }

    /// What has gone wrong since this was asked last, each thing once: an agent that was lost, a server that
    /// cannot be read.
    #[must_use]
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
        self.ask(Ask::Facts, |told| match told {
            Told::Facts(facts) => Some(*facts),
            _ => None,
        })
    }

    /// What spoils measurements on its host, and a round trip that is long beside slices of this length.
    #[must_use]
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
                "agent-far",
                Severity::Note,
                format!(
                    "{host}: reading the meters takes {:.1} ms beside slices of {:.0} ms, so fewer \
                     slices fit into a visit, and load and stolen time of that machine are counted over \
                     more than the slice; longer slices (--slice-ms) make it matter less",
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
        self.ask(ask, |told| match told {
            Told::Postmaster(pid) => Some(pid),
            _ => None,
        })
    }

    /// A server's main process and all below it.
    ///
    /// Errors: a lost agent; a server that has ended.
    pub fn processes(&self, postmaster: u32) -> Result<Vec<u32>, Problem> {
        self.ask(Ask::Processes { postmaster }, |told| match told {
            Told::Processes(pids) => Some(pids),
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
        let (meters, sources) = self.ask(ask, |told| match told {
            Told::Meters { meters, sources } => Some((meters, sources)),
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
        let counters = self.ask(ask, |told| match told {
            Told::Counters(counters) => Some(counters),
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
        self.ask(ask, |told| matches!(told, Told::Done).then_some(()))
    }

    /// The samples since they were taken out last, in order of time, with their moments on our clock: each is
    /// as old as the far clock says, give or take half a round trip.
    ///
    /// Errors: a lost agent.
    pub fn samples(&self) -> Result<Vec<Sample>, Problem> {
        let mut all = Vec::new();
        for _ in 0..BATCHES_MAX {
            let asked = now_ns();
            let some = self.ask(Ask::Samples, |told| match told {
                Told::Samples(samples) => Some(samples),
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
    fn ask<T>(&self, ask: Ask, take: impl Fn(Told) -> Option<T>) -> Result<T, Problem> {
        let told = self.0.ask(ask)?;
        if let Told::Refused(refusal) = told {
            return Err(refusal.into());
        }
        take(told).ok_or_else(|| self.0.lose(link::Lost::Nonsense))
    }

    /// Keeps a refusal for [`Agent::news`]; a loss is there already.
    pub(crate) fn note(&self, problem: &Problem) {
        if !self.is_lost() {
            let detail = problem.detail.as_deref();
            let why = detail
                .map(|detail| format!(" ({detail})"))
                .unwrap_or_default();
            self.0.say(Finding::new(
                "agent-refused",
                Severity::Note,
                format!(
                    "{}: {}{why}; what this would have told is missing",
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

    fn ask(&self, ask: Ask) -> Result<Told, Problem> {
        let mut state = self.state();
        let Some(link) = &mut state.link else {
            return Err(Problem::new(format!(
                "the agent on {} is lost",
                self.about.host
            )));
        };
        let told = link.ask(ask, ANSWER);
        state.asked = Instant::now();
        drop(state);
        told.map_err(|lost| self.lose(lost))
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
            "agent-lost",
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
        return Err(Problem::new(format!("`{spec}` names no agent"))
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
pub(crate) mod tests {
    use super::*;
    use crate::agent::lines::Lines;
    use crate::agent::protocol::{Answer, Hello, Request};
    use crate::slice_meters::tests::Worker;
    use deltabench_driver::admin::Client;
    use deltabench_testkit::Cluster;
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread::JoinHandle;

    const LONG: Duration = Duration::from_secs(60);

    fn link(near: &UnixStream) -> Link {
        let input = File::from(OwnedFd::from(near.try_clone().unwrap()));
        Link::new(input, Lines::new(near.try_clone().unwrap()), None)
    }

    /// A far side in a thread of this process.
    fn far(silence: Duration) -> (UnixStream, JoinHandle<Served>) {
        let (near, far) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            let output = far.try_clone().unwrap();
            serve(far, output, silence)
        });
        (near, thread)
    }

    /// An agent on this machine, without ssh.
    pub(crate) fn loopback() -> Agent {
        Agent::greet("there", link(&far(LONG).0)).unwrap()
    }

    /// An agent on this machine that can be cut off by shutting the socket down.
    pub(crate) fn mortal() -> (Agent, UnixStream) {
        let (near, _) = far(LONG);
        (Agent::greet("there", link(&near)).unwrap(), near)
    }

    /// An agent whose far side says what it is told to.
    fn scripted(script: impl FnOnce(UnixStream) + Send + 'static) -> Result<Agent, Problem> {
        let (near, far) = UnixStream::pair().unwrap();
        std::thread::spawn(move || script(far));
        let link = link(&near);
        drop(near);
        Agent::greet("there", link)
    }

    fn told(far: &mut UnixStream, id: u64, told: Told) {
        let answer = serde_json::to_string(&Answer { id, told }).unwrap();
        writeln!(far, "{answer}").unwrap();
    }

    #[test]
    fn meters_over_there_read_what_meters_here_do() {
        let agent = loopback();
        let mut workers = [Worker::start(), Worker::start()];
        let pids = workers.each_ref().map(Worker::pid);
        let mut remote = agent.meters(&pids, true).unwrap();
        let mut local = crate::SliceMeters::open(&pids).unwrap();
        for active in [0, 1, 1] {
            remote.start();
            local.start();
            workers[active].work();
            let here = local.end(active, 0).unwrap();
            let there = remote.end(active, 0).unwrap();
            assert!(there.server.cpu_ns > 2_000_000, "{there:?}");
            assert!(there.server.cpu_ns >= here.server.cpu_ns, "read around it");
            assert!(
                there.server.cpu_ns < 2 * here.server.cpu_ns,
                "{here:?} {there:?}"
            );
            assert!(there.idle_cpu_ns < there.server.cpu_ns / 2, "{there:?}");
            assert_eq!(
                there.cpu_pressure_ns.is_some(),
                here.cpu_pressure_ns.is_some()
            );
        }
        remote.start();
        assert_eq!(remote.end(2, 0), None, "there is no third");
        assert_eq!(remote.end(0, 0), None, "not without a start");
        assert_eq!(remote.sources().pressure, local.sources().pressure);
        assert_eq!(agent.news(), []);
    }

    #[test]
    fn a_real_server_is_found_by_its_backends_and_its_work_is_read() {
        for cluster in Cluster::for_each_target("", &["autovacuum=off"]) {
            let (endpoint, login) = (cluster.endpoint(), cluster.login());
            let connect = || Client::connect(&endpoint, &login, LONG).unwrap();
            let mut clients = [connect(), connect()];
            let backends = clients.each_ref().map(Client::backend_pid);
            let agent = loopback();
            let found = agent.find(&backends, &login.user, &login.database);
            assert_eq!(found.unwrap(), cluster.pid());
            assert!(agent.find(&backends, &login.user, "another").is_err());
            assert!(
                agent
                    .find(&[cluster.pid()], &login.user, &login.database)
                    .is_err()
            );
            let mut there = agent.meters(&[cluster.pid()], false).unwrap();
            let mut here = crate::SliceMeters::open(&[cluster.pid()]).unwrap();
            there.start();
            here.start();
            let sql = "select count(*) from generate_series(1, 100000)";
            clients[1].query(sql).unwrap();
            let here = here.end(0, 0).unwrap().server.cpu_ns;
            let there = there.end(0, 0).unwrap().server.cpu_ns;
            assert!(here > 1_000_000 && there >= here, "{here} {there}");
            assert!(there < here + here / 2, "{here} {there}");
        }
    }

    #[test]
    fn on_our_own_machine_the_client_is_not_foreign() {
        let agent = loopback();
        assert!(agent.about().same_machine);
        assert!(agent.about().round_trip_ns > 0);
        let mut meters = agent.meters(&[std::process::id()], false).unwrap();
        meters.start();
        assert_eq!(meters.end(0, u64::MAX).unwrap().foreign_cpu_ns, 0);
    }

    #[test]
    fn facts_of_the_host_come_over_and_findings_name_it() {
        let agent = loopback();
        let facts = agent.host_facts().unwrap();
        let own = HostFacts::read();
        assert_eq!(
            (facts.cpu_model, facts.memory_bytes, facts.kernel),
            (own.cpu_model, own.memory_bytes, own.kernel)
        );
        let poor = HostFacts {
            online_cores: 1,
            clock_source: Some("hpet".to_owned()),
            ..HostFacts::default()
        };
        let findings = agent.findings(&poor, Duration::from_secs(3600));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].text.starts_with("there: "), "{findings:?}");
        let far = agent.findings(&HostFacts::default(), Duration::from_nanos(1));
        assert_eq!(far[0].kind, "agent-far");
    }

    #[test]
    fn samples_are_on_our_clock_however_wrong_the_far_one_is() {
        let hour = 3_600_000_000_000;
        let sample = |at_ns| Sample {
            at_ns,
            over_ns: 1,
            values: BTreeMap::new(),
        };
        let far = Samples {
            now_ns: 50 * hour,
            samples: vec![sample(50 * hour - 2), sample(50 * hour - 1)],
            more: false,
        };
        let at: Vec<u64> = on_our_clock(far, 7 * hour).map(|s| s.at_ns).collect();
        assert_eq!(at, [7 * hour - 2, 7 * hour - 1]);
    }

    #[test]
    fn samples_of_host_and_servers_are_taken_until_told_otherwise() {
        let agent = loopback();
        assert_eq!(agent.samples().unwrap(), []);
        let began = now_ns();
        let watched = vec![(3, std::process::id())];
        agent.watch(watched, Duration::from_millis(10)).unwrap();
        let mut all = Vec::new();
        let until = Instant::now() + LONG;
        while all.len() < 5 {
            assert!(Instant::now() < until);
            all.extend(agent.samples().unwrap());
        }
        assert!(all.iter().all(|sample| sample.at_ns > began));
        assert!(all[4].values.contains_key("context_switches"));
        assert!(all[4].values.contains_key("server_rss@3"), "{:?}", all[4]);
        agent.watch(Vec::new(), Duration::from_millis(10)).unwrap();
    }

    #[test]
    fn another_version_is_refused_on_either_side() {
        let (near, thread) = far(LONG);
        let mut raw = link(&near);
        let early = raw.ask(Ask::Facts, LONG).unwrap();
        assert!(matches!(early, Told::Refused(_)), "not greeted yet");
        let hello = Ask::Hello {
            protocol: PROTOCOL,
            version: "0.0.1".to_owned(),
        };
        let Told::Refused(refusal) = raw.ask(hello, LONG).unwrap() else {
            panic!("taken for the same version")
        };
        let problem = upgrade("db", refusal.into()).to_string();
        assert!(problem.contains("no agent on db"), "{problem}");
        assert!(
            problem.contains("0.0.1") && problem.contains(VERSION),
            "{problem}"
        );
        drop((raw, near));
        assert_eq!(thread.join().unwrap(), Served::Closed);
        let newer = |mut far: UnixStream| {
            let hello = Hello {
                protocol: PROTOCOL + 1,
                version: VERSION.to_owned(),
                boot: None,
            };
            told(&mut far, 1, Told::Hello(hello));
            far.read_to_end(&mut Vec::new()).unwrap();
        };
        let problem = scripted(newer).unwrap_err();
        assert!(problem.hint.unwrap().contains("DELTABENCH_AGENT_PROGRAM"));
    }

    #[test]
    fn a_lost_agent_is_told_once_and_everything_else_is_absent() {
        let (agent, socket) = mortal();
        let own = std::process::id();
        let mut meters = agent.meters(&[own], false).unwrap();
        let counters = agent.counters(own, &[]).unwrap();
        meters.start();
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(meters.end(0, 0), None);
        assert!(agent.is_lost());
        meters.start();
        assert_eq!(meters.end(0, 0), None);
        assert!(counters.finish().is_empty());
        assert!(agent.host_facts().is_err() && agent.samples().is_err());
        let news = agent.news();
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(news[0].kind, "agent-lost");
        assert_eq!(agent.news(), []);
    }

    #[test]
    fn a_greeting_of_the_login_shell_is_no_answer_and_does_no_harm() {
        let noisy = |mut far: UnixStream| {
            writeln!(far, "Welcome to db!\n").unwrap();
            let output = far.try_clone().unwrap();
            serve(far, output, LONG);
        };
        assert!(scripted(noisy).unwrap().host_facts().is_ok());
        let talker = |mut far: UnixStream| {
            // Until the other side has had enough.
            while writeln!(far, "welcome").is_ok() {}
        };
        let problem = scripted(talker).unwrap_err();
        assert!(problem.error.contains("no answer"), "{problem}");
    }

    #[test]
    fn an_answer_to_another_question_is_a_loss() {
        let confused = |far: UnixStream| {
            let mut output = far.try_clone().unwrap();
            for line in BufReader::new(far).lines() {
                let request: Request = serde_json::from_str(&line.unwrap()).unwrap();
                let answer = match request.ask {
                    Ask::Hello { protocol, version } => Told::Hello(Hello {
                        protocol,
                        version,
                        boot: None,
                    }),
                    Ask::Ping => Told::Done,
                    _ => Told::Postmaster(1),
                };
                told(&mut output, request.id, answer);
            }
        };
        let agent = scripted(confused).unwrap();
        assert!(!agent.about().same_machine);
        assert_eq!(agent.find(&[5], "me", "shop").unwrap(), 1);
        assert!(agent.host_facts().is_err() && agent.is_lost());
    }

    #[test]
    fn samples_without_end_are_a_loss() {
        let endless = |far: UnixStream| {
            let mut output = far.try_clone().unwrap();
            for line in BufReader::new(far).lines() {
                let request: Request = serde_json::from_str(&line.unwrap()).unwrap();
                let answer = match request.ask {
                    Ask::Hello { protocol, version } => Told::Hello(Hello {
                        protocol,
                        version,
                        boot: None,
                    }),
                    Ask::Samples => Told::Samples(Samples {
                        now_ns: 1,
                        samples: Vec::new(),
                        more: true,
                    }),
                    _ => Told::Done,
                };
                told(&mut output, request.id, answer);
            }
        };
        let agent = scripted(endless).unwrap();
        assert!(agent.samples().is_err() && agent.is_lost());
    }

    #[test]
    fn a_far_side_that_says_nothing_is_not_waited_for_forever() {
        let (near, _far) = UnixStream::pair().unwrap();
        let limit = Duration::from_millis(20);
        let lost = link(&near).ask(Ask::Ping, limit).unwrap_err();
        assert_eq!(lost, link::Lost::Silent(limit));
    }

    #[test]
    fn the_far_side_ends_when_nobody_asks() {
        let (_near, thread) = far(Duration::from_millis(20));
        assert_eq!(thread.join().unwrap(), Served::Silent);
        let (near, thread) = far(LONG);
        drop(near);
        assert_eq!(thread.join().unwrap(), Served::Closed);
        let (mut near, thread) = far(LONG);
        writeln!(near, "{{\"id\": 1, \"ask\": \"format-disk\"}}").unwrap();
        assert_eq!(thread.join().unwrap(), Served::Broken);
    }

    #[test]
    fn the_last_clone_of_an_agent_ends_its_far_side() {
        let (near, thread) = far(LONG);
        let agent = Agent::greet("there", link(&near)).unwrap();
        drop(near);
        let meters = agent.meters(&[std::process::id()], false).unwrap();
        drop(agent);
        assert!(!thread.is_finished());
        drop(meters);
        assert_eq!(thread.join().unwrap(), Served::Closed);
    }

    #[test]
    fn only_a_host_is_taken_for_a_host() {
        assert_eq!(host_of("ssh:me@db.example").unwrap(), "me@db.example");
        assert_eq!(host_of("ssh:[fe80::1%eth0]").unwrap(), "[fe80::1%eth0]");
        for spec in ["ssh:", "db", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:a\nb"] {
            assert!(host_of(spec).is_err(), "{spec}");
        }
        for spec in [
            "ssh:$(id)",
            "ssh:a;b",
            "ssh:`id`",
            "ssh:me@-oProxyCommand=x",
        ] {
            assert!(host_of(spec).is_err(), "{spec}");
        }
    }
}
