//! What is read at the two ends of a slice, on whatever machines the servers are.

use crate::agent::RemoteMeters;
use crate::device::{DeviceClock, data_of};
use crate::error::ObserveError;
use crate::meter::CpuReading;
use crate::postmaster::{Postmaster, noted};
use crate::slice_meters::{MeterSources, SliceCosts, SliceMeters};
use deltabench_proc::block::DeviceCosts;
use serde::{Deserialize, Serialize};

/// What happened during a slice on the machine of the server that worked. Absent: nobody can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineCosts {
    /// CPU, run-queue wait and switches of the server that worked.
    pub server: Option<CpuReading>,
    /// CPU of the other servers on the same machine.
    pub idle_cpu_ns: Option<u64>,
    /// CPU of the server that worked between its slice before and this one; absent for its first slice, too.
    pub background_cpu_ns: Option<u64>,
    /// CPU of everything else there; the client is left out if it runs there too.
    pub foreign_cpu_ns: Option<u64>,
    /// Time stolen by the hypervisor.
    pub steal_ns: Option<u64>,
    /// Time in which some task waited for a core.
    pub cpu_pressure_ns: Option<u64>,
    /// What reached the device of the data.
    pub device: Option<DeviceCosts>,
}

impl MachineCosts {
    /// Those of two turns of one server in one slice together; the later one is `other`. What one of them
    /// does not know is not known.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        let servers = self.server.zip(other.server);
        Self {
            server: servers.map(|(one, other)| one.and(&other)),
            idle_cpu_ns: both(self.idle_cpu_ns, other.idle_cpu_ns),
            background_cpu_ns: both(self.background_cpu_ns, other.background_cpu_ns),
            foreign_cpu_ns: both(self.foreign_cpu_ns, other.foreign_cpu_ns),
            steal_ns: both(self.steal_ns, other.steal_ns),
            cpu_pressure_ns: both(self.cpu_pressure_ns, other.cpu_pressure_ns),
            device: self
                .device
                .zip(other.device)
                .map(|(one, other)| one.and(&other)),
        }
    }
}

impl From<SliceCosts> for MachineCosts {
    fn from(costs: SliceCosts) -> Self {
        Self {
            server: Some(costs.server),
            idle_cpu_ns: Some(costs.idle_cpu_ns),
            background_cpu_ns: costs.background_cpu_ns,
            foreign_cpu_ns: Some(costs.foreign_cpu_ns),
            steal_ns: Some(costs.steal_ns),
            cpu_pressure_ns: costs.cpu_pressure_ns,
            device: costs.device,
        }
    }
}

/// Where the figures of one machine come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSources {
    /// Host of the agent; absent for this machine.
    pub host: Option<String>,
    /// Whether these are for cells whose operations have a connection each ([`Metered::short_lived`]).
    #[serde(default)]
    pub short_lived: bool,
    #[serde(flatten)]
    pub sources: MeterSources,
}

/// Meters of all servers of a visit, wherever they are.
///
/// Only the machine of the server that works is read. Cost: that of [`SliceMeters`] for servers of this
/// machine, without allocation; a round trip at each end for one of an agent; nothing for one that nobody can
/// tell of.
#[derive(Debug)]
pub struct Meters {
    machines: Vec<Machine>,
    /// Machines whose servers have processes that nobody counts.
    blind: Vec<usize>,
    /// Whether processes come and go.
    short_lived: bool,
    /// Each server's machine and its place on it.
    places: Vec<Option<(usize, usize)>>,
}

#[derive(Debug)]
enum Machine {
    Local(Box<SliceMeters>),
    Remote(RemoteMeters),
}

/// What is to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metered {
    /// Also the device of the first server's data on each machine.
    pub devices: bool,
    /// Whether processes of the servers come and go during a slice. Then only a cgroup sees all of their
    /// CPU: where none can be made, nobody can tell it, nor what is foreign.
    pub short_lived: bool,
}

impl Meters {
    /// Opens meters on servers. Do it after connecting: only processes that exist by now are counted, but for
    /// those that come and go.
    ///
    /// An agent that is lost or refuses makes its servers unknown, which [`crate::agent::Agent::news`] tells.
    ///
    /// Errors: those of [`SliceMeters::open`], for the servers of this machine.
    pub fn open(servers: &[Postmaster], metered: Metered) -> Result<Self, ObserveError> {
        let mut meters = Self {
            machines: Vec::new(),
            blind: Vec::new(),
            short_lived: metered.short_lived,
            places: vec![None; servers.len()],
        };
        for first in servers {
            let opened = |(place, server): (&Option<_>, &Postmaster)| {
                place.is_some() && on_one_machine(server, first)
            };
            if !meters.places.iter().zip(servers).any(opened) {
                meters.add(first, servers, metered)?;
            }
        }
        Ok(meters)
    }

    /// Opens meters on all servers of the machine of `first`.
    fn add(
        &mut self,
        first: &Postmaster,
        servers: &[Postmaster],
        metered: Metered,
    ) -> Result<(), ObserveError> {
        // Two targets in one server have one meter.
        let mut pids: Vec<u32> = Vec::new();
        let mut places = vec![None; servers.len()];
        for (place, server) in places.iter_mut().zip(servers) {
            let pid = match server {
                Postmaster::Local(pid) | Postmaster::Remote(_, pid) => *pid,
                Postmaster::Unknown => continue,
            };
            if on_one_machine(server, first) {
                let known = pids.iter().position(|other| *other == pid);
                *place = Some((self.machines.len(), known.unwrap_or(pids.len())));
                if known.is_none() {
                    pids.push(pid);
                }
            }
        }
        let machine = match first {
            Postmaster::Local(_) => {
                let (meters, sees_all) = here(&pids, metered)?;
                if !sees_all {
                    self.blind.push(self.machines.len());
                }
                Machine::Local(Box::new(meters))
            }
            Postmaster::Remote(agent, _) => {
                // An agent changes nothing on its machine, so it makes no cgroup.
                if metered.short_lived {
                    self.blind.push(self.machines.len());
                }
                match noted(agent, agent.meters(&pids, metered.devices)) {
                    Some(meters) => Machine::Remote(meters),
                    None => return Ok(()),
                }
            }
            Postmaster::Unknown => return Ok(()),
        };
        self.machines.push(machine);
        for (all, place) in self.places.iter_mut().zip(places) {
            *all = all.or(place);
        }
        Ok(())
    }

    /// Where the figures come from, machine by machine.
    pub fn sources(&self) -> Vec<MachineSources> {
        let sources = self.machines.iter().enumerate().map(|(place, machine)| {
            let (host, mut sources) = match machine {
                Machine::Local(meters) => (None, meters.sources()),
                Machine::Remote(meters) => {
                    (Some(meters.host().to_owned()), meters.sources().clone())
                }
            };
            if self.blind.contains(&place) {
                sources.server_cpu = None;
            }
            MachineSources {
                host,
                short_lived: self.short_lived,
                sources,
            }
        });
        sources.collect()
    }

    /// Marks the start of a slice of the server in this place.
    pub fn start(&mut self, active: usize) {
        match self.machine(active) {
            Some((Machine::Local(meters), _)) => meters.start(),
            Some((Machine::Remote(meters), _)) => meters.start(),
            None => {}
        }
    }

    /// What happened since the latest [`Meters::start`], which must have been for the same server.
    /// `client_cpu_ns` is the CPU of the client meanwhile.
    pub fn end(&mut self, active: usize, client_cpu_ns: u64) -> MachineCosts {
        let costs = match self.machine(active) {
            Some((Machine::Local(meters), place)) => meters.end(place, client_cpu_ns),
            Some((Machine::Remote(meters), place)) => meters.end(place, client_cpu_ns),
            None => None,
        };
        let costs = costs.map(MachineCosts::from).unwrap_or_default();
        let place = self.places.get(active).copied().flatten();
        let targets = { self.places.iter() }.filter(|other| place.is_some() && **other == place);
        let costs = MachineCosts {
            // Nobody can say which of two targets in one server left the work behind.
            background_cpu_ns: costs.background_cpu_ns.filter(|_| targets.count() == 1),
            ..costs
        };
        match place.is_some_and(|(machine, _)| self.blind.contains(&machine)) {
            // What the server's processes used that nobody saw would be foreign.
            true => MachineCosts {
                server: None,
                background_cpu_ns: None,
                foreign_cpu_ns: None,
                ..costs
            },
            false => costs,
        }
    }

    fn machine(&mut self, active: usize) -> Option<(&mut Machine, usize)> {
        let (machine, place) = (*self.places.get(active)?)?;
        Some((self.machines.get_mut(machine)?, place))
    }
}

fn on_one_machine(one: &Postmaster, two: &Postmaster) -> bool {
    match (one, two) {
        (Postmaster::Local(_), Postmaster::Local(_)) => true,
        (Postmaster::Remote(one, _), Postmaster::Remote(two, _)) => one.is(two),
        _ => false,
    }
}

/// Meters of this machine, and whether they see all of the servers' processes.
fn here(pids: &[u32], metered: Metered) -> Result<(SliceMeters, bool), ObserveError> {
    let grouped = metered.short_lived.then(|| SliceMeters::open_grouped(pids));
    let (meters, sees_all) = match grouped {
        Some(Ok(meters)) => (meters, true),
        // No cgroup can be made, or used.
        Some(Err(_)) => (SliceMeters::open(pids)?, false),
        None => (SliceMeters::open(pids)?, true),
    };
    let data = pids
        .first()
        .filter(|_| metered.devices)
        .copied()
        .map(data_of);
    let meters = match data.and_then(|data| DeviceClock::of(&data)) {
        Some(device) => meters.with_device(device),
        None => meters,
    };
    Ok((meters, sees_all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::agent::tests::{loopback, mortal};
    use crate::slice_meters::tests::Worker;

    const DEVICES: Metered = Metered {
        devices: true,
        short_lived: false,
    };

    /// What the worker costs as this server.
    fn work(meters: &mut Meters, active: usize, worker: &mut Worker) -> MachineCosts {
        meters.start(active);
        worker.work();
        meters.end(active, 0)
    }

    fn cpu(meters: &mut Meters, active: usize, worker: &mut Worker) -> Option<u64> {
        let costs = work(meters, active, worker);
        costs.server.map(|server| server.cpu_ns)
    }

    #[test]
    fn each_server_is_read_where_it_is() {
        let mut worker = Worker::start();
        let servers = [
            Postmaster::Unknown,
            Postmaster::Remote(loopback(), worker.pid()),
            Postmaster::Local(worker.pid()),
        ];
        let mut meters = Meters::open(&servers, DEVICES).unwrap();
        let hosts: Vec<Option<String>> = meters.sources().into_iter().map(|s| s.host).collect();
        assert_eq!(hosts, [Some("there".to_owned()), None]);
        assert!(cpu(&mut meters, 1, &mut worker) > Some(2_000_000));
        assert!(cpu(&mut meters, 2, &mut worker) > Some(2_000_000));
        for nobody in [0, 3] {
            let costs = work(&mut meters, nobody, &mut worker);
            assert_eq!(costs, MachineCosts::default());
        }
    }

    #[test]
    fn two_targets_in_one_server_are_not_idle_beside_each_other() {
        let mut worker = Worker::start();
        let agent = loopback();
        let remote = |agent: &Agent| Postmaster::Remote(agent.clone(), worker.pid());
        for twice in [
            [remote(&agent), remote(&agent)],
            [worker.pid(), worker.pid()].map(Postmaster::Local),
        ] {
            let mut meters = Meters::open(&twice, Metered::default()).unwrap();
            for active in [0, 1] {
                let costs = work(&mut meters, active, &mut worker);
                assert!(costs.server.unwrap().cpu_ns > 2_000_000, "{costs:?}");
                assert_eq!(costs.idle_cpu_ns, Some(0));
                assert_eq!(costs.device, None);
            }
        }
    }

    #[test]
    fn a_server_that_an_agent_cannot_read_is_unknown_and_the_others_are_not() {
        let mut worker = Worker::start();
        let agent = loopback();
        let gone = Postmaster::Remote(agent.clone(), u32::MAX / 2);
        let there = Postmaster::Local(worker.pid());
        let mut meters = Meters::open(&[gone, there], Metered::default()).unwrap();
        assert_eq!(cpu(&mut meters, 0, &mut worker), None);
        assert!(cpu(&mut meters, 1, &mut worker).is_some());
        assert_eq!(agent.news().len(), 1);
        assert!(Meters::open(&[Postmaster::Local(u32::MAX / 2)], Metered::default()).is_err());
    }

    #[test]
    fn when_an_agent_is_lost_its_servers_become_unknown() {
        let mut worker = Worker::start();
        let (agent, socket) = mortal();
        let servers = [
            Postmaster::Remote(agent.clone(), worker.pid()),
            Postmaster::Local(worker.pid()),
        ];
        let mut meters = Meters::open(&servers, Metered::default()).unwrap();
        assert!(cpu(&mut meters, 0, &mut worker).is_some());
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(cpu(&mut meters, 0, &mut worker), None);
        assert!(cpu(&mut meters, 1, &mut worker).is_some());
        let again = Meters::open(&servers, Metered::default()).unwrap();
        assert_eq!(again.sources().len(), 1);
        assert_eq!(agent.news().len(), 1);
    }
}
