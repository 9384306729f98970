//! The one-second series of all machines of a run.

use crate::agent::Agent;
use crate::error::ObserveError;
use crate::postmaster::{Postmaster, noted};
use crate::sampler::Sampler;
use deltabench_model::counter::Sample;
use deltabench_model::plan::ServerId;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Samples this machine, and the machines of agents, at a steady rate.
///
/// What belongs to this machine as a whole has its bare key, what belongs to that of an agent is told of the
/// first of its servers (`cpu_user@SERVER`), as what belongs to a server is. A sample of an agent's becomes
/// part of ours of about the same moment.
#[derive(Debug)]
pub struct Series {
    here: Sampler,
    interval: Duration,
    there: Vec<There>,
}

/// A machine of an agent.
#[derive(Debug)]
struct There {
    agent: Agent,
    first: ServerId,
    /// Of servers that are not sampled any more.
    samples: Vec<Sample>,
}

impl Series {
    /// Starts sampling this machine and the device that holds `data_dir`, as [`Sampler::start`].
    ///
    /// Errors: those of [`Sampler::start`].
    pub fn start(data_dir: &Path, interval: Duration) -> Result<Self, ObserveError> {
        Ok(Self {
            here: Sampler::start(data_dir, interval)?,
            interval,
            there: Vec::new(),
        })
    }

    /// Samples these servers from now on and no others.
    pub fn set_servers(&mut self, servers: &[(ServerId, Postmaster)]) {
        let pids = servers
            .iter()
            .filter_map(|(server, postmaster)| Some((*server, postmaster.local_pid()?)));
        self.here.set_servers(pids.collect());
        for (server, postmaster) in servers {
            if let Postmaster::Remote(agent, _) = postmaster
                && !self.there.iter().any(|there| there.agent.is(agent))
            {
                self.there.push(There {
                    agent: agent.clone(),
                    first: *server,
                    samples: Vec::new(),
                });
            }
        }
        for there in &mut self.there {
            let pids = servers.iter().filter_map(|(server, postmaster)| {
                let Postmaster::Remote(agent, pid) = postmaster else {
                    return None;
                };
                there.agent.is(agent).then_some((*server, *pid))
            });
            let pids: Vec<(ServerId, u32)> = pids.collect();
            // What was sampled so far belongs to the servers so far.
            there.take();
            there.first = pids.first().map_or(there.first, |(server, _)| *server);
            if !there.agent.is_lost() {
                noted(&there.agent, there.agent.watch(pids, self.interval));
            }
        }
    }

    /// The samples since they were taken out last, in order of time.
    pub fn drain(&mut self) -> Vec<Sample> {
        let mut all = self.here.drain();
        for there in &mut self.there {
            there.take();
            for sample in there.samples.drain(..) {
                merge(&mut all, sample, self.interval);
            }
        }
        all.sort_by_key(|sample| sample.at_ns);
        all
    }
}

impl There {
    /// Takes the samples so far out of the agent.
    fn take(&mut self) {
        if self.agent.is_lost() {
            return;
        }
        let samples = noted(&self.agent, self.agent.samples()).unwrap_or_default();
        let first = self.first;
        self.samples
            .extend(samples.into_iter().map(|sample| of_server(sample, first)));
    }
}

/// What belongs to the whole machine becomes that of a server.
fn of_server(sample: Sample, server: ServerId) -> Sample {
    let named = |(key, value): (String, f64)| match key.contains('@') {
        true => (key, value),
        false => (format!("{key}@{server}"), value),
    };
    let values: BTreeMap<String, f64> = sample.values.into_iter().map(named).collect();
    Sample { values, ..sample }
}

/// Adds a sample to the nearest of ours, if that is less than half an interval away and has nothing of the
/// same server yet; else it stands on its own.
fn merge(all: &mut Vec<Sample>, sample: Sample, interval: Duration) {
    let near = u64::try_from(interval.as_nanos() / 2).unwrap_or(u64::MAX);
    let distance = |other: &Sample| other.at_ns.abs_diff(sample.at_ns);
    let nearest = all
        .iter_mut()
        .filter(|other| distance(other) <= near)
        .filter(|other| {
            !sample
                .values
                .keys()
                .any(|key| other.values.contains_key(key))
        })
        .min_by_key(|other| distance(other));
    match nearest {
        Some(ours) => ours.values.extend(sample.values),
        None => all.push(sample),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests::{loopback, mortal};
    use std::time::Instant;

    const EVERY: Duration = Duration::from_millis(10);

    fn sample(at_ms: u64, key: &str) -> Sample {
        Sample {
            at_ns: at_ms * 1_000_000,
            over_ns: 1_000_000_000,
            values: BTreeMap::from([(key.to_owned(), 1.0)]),
        }
    }

    fn until(series: &mut Series, enough: impl Fn(&[Sample]) -> bool) -> Vec<Sample> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut all = Vec::new();
        while !enough(&all) {
            assert!(Instant::now() < deadline, "{all:?}");
            std::thread::sleep(Duration::from_millis(5));
            all.extend(series.drain());
        }
        all
    }

    fn has(samples: &[Sample], key: &str) -> bool {
        samples.iter().any(|sample| sample.values.contains_key(key))
    }

    #[test]
    fn what_belongs_to_a_far_machine_is_told_of_its_first_server() {
        let far = of_server(sample(1, "cpu_user"), ServerId(2));
        assert_eq!(far.values.keys().collect::<Vec<_>>(), ["cpu_user@2"]);
        let server = of_server(sample(1, "server_cpu@5"), ServerId(2));
        assert_eq!(server.values.keys().collect::<Vec<_>>(), ["server_cpu@5"]);
    }

    #[test]
    fn samples_of_about_one_moment_become_one() {
        let second = Duration::from_secs(1);
        let mut all = vec![sample(1000, "cpu_user"), sample(2000, "cpu_user")];
        for at in [1400, 2450, 2480, 9000] {
            merge(&mut all, sample(at, "cpu_user@1"), second);
        }
        let both = |sample: &Sample| sample.values.len() == 2;
        assert_eq!(all.iter().filter(|sample| both(sample)).count(), 2);
        let alone: Vec<u64> = all
            .iter()
            .filter(|sample| !sample.values.contains_key("cpu_user"))
            .map(|sample| sample.at_ns / 1_000_000)
            .collect();
        assert_eq!(alone, [2480, 9000], "one a moment, and only near ones");
    }

    #[test]
    fn both_machines_are_sampled_until_told_otherwise() {
        let agent = loopback();
        let own = std::process::id();
        let mut series = Series::start(&std::env::temp_dir(), EVERY).unwrap();
        let servers = [
            (ServerId(0), Postmaster::Local(own)),
            (ServerId(1), Postmaster::Unknown),
            (ServerId(2), Postmaster::Remote(agent.clone(), own)),
        ];
        series.set_servers(&servers);
        let all = until(&mut series, |all| {
            [
                "context_switches",
                "context_switches@2",
                "server_rss@0",
                "server_rss@2",
            ]
            .iter()
            .all(|key| has(all, key))
        });
        assert!(!has(&all, "server_rss@1") && !has(&all, "context_switches@0"));
        series.set_servers(&[]);
        // What was sampled before the servers went may still come.
        let _ = series.drain();
        until(&mut series, |all| {
            all.iter()
                .rev()
                .take(5)
                .filter(|sample| !sample.values.contains_key("server_rss@2"))
                .count()
                == 5
        });
        assert_eq!(agent.news(), []);
    }

    #[test]
    fn this_machine_is_sampled_on_when_an_agent_is_lost() {
        let (agent, socket) = mortal();
        let mut series = Series::start(&std::env::temp_dir(), EVERY).unwrap();
        let servers = [(
            ServerId(0),
            Postmaster::Remote(agent.clone(), std::process::id()),
        )];
        series.set_servers(&servers);
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        let _ = series.drain();
        series.set_servers(&servers);
        until(&mut series, |all| has(all, "context_switches"));
        assert_eq!(agent.news().len(), 1);
    }
}
