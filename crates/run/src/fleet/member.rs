//! What holds the data of a server: a cluster of ours, or a schema on a server that was there before.

use super::{Fleet, no_such_server};
use crate::readback::ServerReadback;
use crate::remote::{self, RemoteServer, Watcher};
use crate::site::{Site, Tables};
use crate::visit::Address;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Remote;
use deltabench_model::plan::{DataState, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_observe::Postmaster;
use deltabench_server::Cluster;
use std::time::Duration;

/// Servers of one installation exchange theirs from block to block.
pub(super) enum Member {
    /// A cluster, started and stopped by us.
    Own(Box<Cluster>),
    Remote {
        /// Place of its server in [`Fleet::remotes`].
        server: usize,
        schema: String,
    },
}

impl Member {
    /// Stops a cluster; nothing to do for a schema.
    pub(super) fn stop(&mut self) -> Result<(), Problem> {
        match self {
            Self::Own(cluster) => cluster.stop(),
            Self::Remote { .. } => Ok(()),
        }
    }

    /// Whether it is a cluster that runs.
    pub(super) fn is_running(&self) -> bool {
        match self {
            Self::Own(cluster) => cluster.running().is_some(),
            Self::Remote { .. } => false,
        }
    }
}

impl Fleet<'_> {
    /// Makes the schema of a server that was there before.
    pub(super) fn add_remote(
        &mut self,
        place: usize,
        remote: &Remote,
        run: &str,
        note: &mut dyn FnMut(String),
    ) -> Result<(), Problem> {
        let known = self.remotes.iter().position(|server| server.is(remote));
        let number = match known {
            Some(number) => number,
            None => {
                let server = RemoteServer::open(remote, run, &mut self.agents, note)?;
                let megabytes = self.tables.bytes(self.plan)? >> 20;
                note(format!(
                    "{}: each of the run's copies of the data takes about {megabytes} MB there, twice that \
                     with cells that write",
                    server.place()
                ));
                self.remotes.push(server);
                self.remotes.len() - 1
            }
        };
        let server = self.remotes.get_mut(number).ok_or_else(no_such_server)?;
        let schema = server.make(run, place)?;
        self.members.push(Member::Remote {
            server: number,
            schema,
        });
        let own = self.plan.servers.get(place).map(|server| &server.settings);
        let asked = own.into_iter().flatten();
        let all = self.plan.settings.iter().chain(asked).cloned();
        self.settings.push(all.collect());
        Ok(())
    }

    /// Whether any server of the run is one that deltabench started.
    pub fn has_own(&self) -> bool {
        self.members
            .iter()
            .any(|member| matches!(member, Member::Own(_)))
    }

    /// The cluster in a place; none if a schema is there.
    pub(super) fn own(&self, place: usize) -> Option<&Cluster> {
        match self.members.get(place)? {
            Member::Own(cluster) => Some(cluster),
            Member::Remote { .. } => None,
        }
    }

    pub(super) fn cluster(&mut self, place: usize) -> Result<&mut Cluster, Problem> {
        match self.members.get_mut(place) {
            Some(Member::Own(cluster)) => Ok(cluster),
            _ => Err(no_such_server()),
        }
    }

    /// The server that the schema in a place is on; none if a cluster is there.
    pub(super) fn remote_mut(&mut self, place: usize) -> Option<&mut RemoteServer> {
        match self.members.get(place)? {
            Member::Own(_) => None,
            Member::Remote { server, .. } => self.remotes.get_mut(*server),
        }
    }

    /// How set-up work reaches the running server with the data in `place`, in the sessions of server
    /// `number`.
    pub(super) fn site(&self, place: usize, number: usize) -> Result<Site, Problem> {
        match self.members.get(place).ok_or_else(no_such_server)? {
            Member::Own(cluster) => {
                let running = cluster.running().ok_or_else(not_running)?;
                Ok(Site::own(running.endpoint.clone()))
            }
            Member::Remote { server, schema } => {
                let server = self.remotes.get(*server).ok_or_else(no_such_server)?;
                Ok(server.site(schema, self.asked_settings(number)))
            }
        }
    }

    /// Main process of a running server of ours; absent for another.
    pub(super) fn postmaster_pid(&self, place: usize) -> Result<Option<u32>, Problem> {
        let Some(cluster) = self.own(place) else {
            return Ok(None);
        };
        let running = cluster.running().ok_or_else(not_running)?;
        Ok(Some(running.postmaster_pid))
    }

    /// Main process of a running server, where somebody can tell.
    fn postmaster(&self, place: usize) -> Result<Postmaster, Problem> {
        if let Some(Member::Remote { server, .. }) = self.members.get(place) {
            let server = self.remotes.get(*server).ok_or_else(no_such_server)?;
            return Ok(server.postmaster().clone());
        }
        let pid = self.postmaster_pid(place)?.ok_or_else(no_such_server)?;
        Ok(Postmaster::Local(pid))
    }

    /// Where the clients of a running server reach it.
    pub(super) fn address(&self, place: usize, number: usize) -> Result<Address, Problem> {
        let site = self.site(place, number)?;
        let mut login = site.home.login(Tables::Kept(DataState::Fresh));
        let mut endpoint = site.endpoint;
        let running = self.own(place).and_then(Cluster::running);
        if let Some(network) = running.and_then(|running| running.network.as_ref()) {
            login.password = Some(network.password.clone());
            endpoint = network.endpoint.clone();
        }
        Ok(Address {
            endpoint,
            login,
            postmaster: self.postmaster(place)?,
            home: site.home,
        })
    }

    /// Gives the cluster in `to` the data of the one in `from`.
    pub(super) fn copy_data(&mut self, from: usize, to: usize) -> Result<(), Problem> {
        // A leader comes before its copies.
        match self.members.split_at_mut_checked(to) {
            Some((before, [Member::Own(target), ..])) if from < to => match before.get(from) {
                Some(Member::Own(source)) => target.copy_data(source),
                _ => Err(no_such_server()),
            },
            _ => Err(no_such_server()),
        }
    }

    /// What is to be known about servers that were there before; nothing without any.
    pub fn remote_findings(&self, readbacks: &[ServerReadback]) -> Vec<Finding> {
        let round_trips: Vec<f64> = readbacks
            .iter()
            .filter_map(|readback| readback.round_trip_us)
            .collect();
        let mut findings = remote::findings(self.plan, &self.remotes, &round_trips);
        let slice = Duration::from_millis(self.plan.timing.slice_ms.into());
        findings.extend(self.agents.findings(slice));
        findings
    }

    /// The agents that tell of servers, with their numbers in the plan.
    pub(crate) fn watched(&self) -> Vec<(ServerId, &Watcher)> {
        let agent = |server: &PlannedServer| {
            let spec = server.installation.remote.as_ref()?.agent.as_ref()?;
            self.agents.known(spec)
        };
        ServerId::each()
            .zip(&self.plan.servers)
            .filter_map(|(id, server)| Some((id, agent(server)?)))
            .collect()
    }

    /// What has gone wrong with agents since this was asked last, each thing once.
    pub(crate) fn news(&self) -> Vec<Finding> {
        self.agents.news()
    }

    /// A finding for each server that was there before and that somebody has restarted since.
    pub fn restart_findings(&self) -> Vec<Finding> {
        let restarted = self.remotes.iter().filter(|server| server.was_restarted());
        let finding = |server: &RemoteServer| {
            let text = format!(
                "somebody restarted {} during this run: its blocks before and after are from different \
                 starts",
                server.place()
            );
            Finding::new(FindingKind::RemoteRestarted, Severity::Confounder, text)
        };
        restarted.map(finding).collect()
    }
}

fn not_running() -> Problem {
    Problem::new("a server is not running")
}
