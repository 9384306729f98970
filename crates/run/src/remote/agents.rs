//! Agents that read counters of servers on other machines, for as long as a run needs them.
//!
//! One is started for each name in the targets (`agent=ssh:HOST`), for all servers of its machine.

use super::access::Access;
use crate::admin::number;
use deltabench_driver::admin::Client;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::Finding;
use deltabench_model::installation::Remote;
use deltabench_model::problem::Problem;
use deltabench_observe::Postmaster;
use deltabench_observe::agent::Agent;
use std::time::Duration;

const BACKEND: &str = "SELECT pg_backend_pid()";

/// An agent and the machine it is on.
pub(crate) struct Watcher {
    spec: String,
    pub(crate) agent: Agent,
    pub(crate) facts: HostFacts,
}

/// All agents of a run. Dropping them ends them.
#[derive(Default)]
pub(crate) struct Agents(Vec<Watcher>);

impl Agents {
    /// The main process of a server, as its agent finds it; unknown without one. The agent is started if no
    /// server before had it.
    ///
    /// Errors: it cannot be started, is another version or does not find the server.
    pub(super) fn postmaster(
        &mut self,
        remote: &Remote,
        access: &Access,
        client: &mut Client,
    ) -> Result<Postmaster, Problem> {
        let Some(spec) = &remote.agent else {
            return Ok(Postmaster::Unknown);
        };
        let agent = match self.known(spec) {
            Some(watcher) => watcher.agent.clone(),
            None => self.start(spec)?,
        };
        // Two are less likely to be numbers of another machine's backends.
        let other = &mut access.connect()?;
        let backends = [backend(client)?, backend(other)?];
        let pid = agent.find(&backends, &remote.user, &remote.database)?;
        Ok(Postmaster::Remote(agent, pid))
    }

    fn start(&mut self, spec: &str) -> Result<Agent, Problem> {
        let agent = Agent::start(spec)?;
        self.0.push(Watcher {
            spec: spec.to_owned(),
            agent: agent.clone(),
            facts: agent.host_facts()?,
        });
        Ok(agent)
    }

    /// The agent of a name, if it was started.
    pub(crate) fn known(&self, spec: &str) -> Option<&Watcher> {
        self.0.iter().find(|watcher| watcher.spec == spec)
    }

    /// What spoils measurements on their machines.
    pub(crate) fn findings(&self, slice: Duration) -> Vec<Finding> {
        // What is to be said of our own machine is said anyway.
        let nothing = HostFacts::default();
        let found = |watcher: &Watcher| match watcher.agent.about().same_machine {
            true => watcher.agent.findings(&nothing, slice),
            false => watcher.agent.findings(&watcher.facts, slice),
        };
        self.0.iter().flat_map(found).collect()
    }

    /// What has gone wrong since this was asked last, each thing once.
    pub(crate) fn news(&self) -> Vec<Finding> {
        let news = |watcher: &Watcher| watcher.agent.news();
        self.0.iter().flat_map(news).collect()
    }
}

/// The main process of a server that somebody has restarted. What the agent cannot find any more is unknown
/// from then on, and its news say so.
pub(super) fn find_again(before: &Postmaster, remote: &Remote, client: &mut Client) -> Postmaster {
    let Ok(backend) = backend(client) else {
        return Postmaster::Unknown;
    };
    before.found_again(&[backend], &remote.user, &remote.database)
}

fn backend(client: &mut Client) -> Result<u32, Problem> {
    let pid = number(client, BACKEND)?;
    u32::try_from(pid)
        .map_err(|_| Problem::new("a server reported a process that cannot exist").detail(BACKEND))
}
