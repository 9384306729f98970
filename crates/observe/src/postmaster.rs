//! Where the processes of a server are, and who counts them.

use crate::agent::{Agent, RemoteCounters};
use crate::server_counters::ServerCounters;
use deltabench_model::problem::Problem;
use deltabench_proc::process_tree;
use std::collections::BTreeMap;

/// A server's main process, by the machine that it is on.
#[derive(Debug, Clone)]
pub enum Postmaster {
    /// A process of this machine.
    Local(u32),
    /// One of the machine of an agent, with its number there ([`Agent::find`]).
    Remote(Agent, u32),
    /// Nobody can tell: nothing of it is counted.
    Unknown,
}

impl Postmaster {
    /// Its number, if it is a process of this machine.
    pub fn local_pid(&self) -> Option<u32> {
        match self {
            Self::Local(pid) => Some(*pid),
            Self::Remote(..) | Self::Unknown => None,
        }
    }

    /// Whether both are known and the same process: two targets in one server. What its processes did over a
    /// visit then is the work of both.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Local(one), Self::Local(two)) => one == two,
            (Self::Remote(one_agent, one), Self::Remote(two_agent, two)) => {
                one_agent.is(two_agent) && one == two
            }
            _ => false,
        }
    }

    /// The main process of the same server after a restart that was not ours, by its backends as
    /// [`Agent::find`]; unknown if the agent does not find it, which [`Agent::news`] tells.
    pub fn found_again(&self, backends: &[u32], user: &str, database: &str) -> Self {
        match self {
            Self::Remote(agent, _) => match noted(agent, agent.find(backends, user, database)) {
                Some(pid) => Self::Remote(agent.clone(), pid),
                None => Self::Unknown,
            },
            Self::Local(_) | Self::Unknown => self.clone(),
        }
    }

    /// It and all processes below it; empty if nobody can tell.
    pub fn processes(&self) -> Vec<u32> {
        match self {
            Self::Local(pid) => process_tree(*pid).unwrap_or_default(),
            Self::Remote(agent, pid) => noted(agent, agent.processes(*pid)).unwrap_or_default(),
            Self::Unknown => Vec::new(),
        }
    }

    /// Counts its processes from now on, and hardware events of these backends; absent where they cannot be
    /// counted.
    pub fn counters(&self, backends: &[u32]) -> Option<Counters> {
        match self {
            Self::Local(pid) => {
                let counters = ServerCounters::open(*pid).ok()?;
                Some(Counters::Local(counters.with_hardware(backends)))
            }
            Self::Remote(agent, pid) => {
                noted(agent, agent.counters(*pid, backends)).map(Counters::Remote)
            }
            Self::Unknown => None,
        }
    }
}

/// What an agent told; a refusal is kept for [`Agent::news`].
pub(crate) fn noted<T>(agent: &Agent, told: Result<T, Problem>) -> Option<T> {
    told.map_err(|problem| agent.note(&problem)).ok()
}

/// Counters of a server's processes on one machine or another.
#[derive(Debug)]
pub enum Counters {
    Local(ServerCounters),
    /// On that of an agent.
    Remote(RemoteCounters),
}

impl Counters {
    /// A last reading: how far each counter has moved, and the size of the memory.
    pub fn finish(self) -> BTreeMap<String, f64> {
        match self {
            Self::Local(counters) => counters.finish(),
            Self::Remote(counters) => counters.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests::loopback;

    #[test]
    fn the_same_processes_are_listed_and_counted_here_and_there() {
        let agent = loopback();
        let own = std::process::id();
        let local = Postmaster::Local(own);
        let remote = Postmaster::Remote(agent.clone(), own);
        assert!(local.processes().contains(&own) && remote.processes().contains(&own));
        let [here, there] = [&local, &remote].map(|server| {
            let counters = server.counters(&[]).unwrap();
            let keys: Vec<String> = counters.finish().into_keys().collect();
            keys
        });
        assert!(here.contains(&"process_user_ns".to_owned()), "{here:?}");
        assert_eq!(here, there);
        assert_eq!((local.local_pid(), remote.local_pid()), (Some(own), None));
        assert_eq!(agent.news(), []);
    }

    #[test]
    fn what_nobody_can_tell_is_absent() {
        let unknown = Postmaster::Unknown;
        assert!(unknown.processes().is_empty() && unknown.counters(&[]).is_none());
        let agent = loopback();
        let gone = Postmaster::Remote(agent.clone(), u32::MAX / 2);
        assert!(gone.processes().is_empty() && gone.counters(&[]).is_none());
        let news = agent.news();
        assert_eq!(news.len(), 1, "twice the same is said once: {news:?}");
        assert!(news[0].text.contains("is gone"), "{news:?}");
        assert!(!agent.is_lost());
    }

    #[test]
    fn two_targets_in_one_server_are_the_same() {
        let (one, two) = (loopback(), loopback());
        let remote = |agent: &Agent, pid| Postmaster::Remote(agent.clone(), pid);
        assert!(remote(&one, 7).is_same(&remote(&one.clone(), 7)));
        assert!(!remote(&one, 7).is_same(&remote(&one, 8)));
        assert!(!remote(&one, 7).is_same(&remote(&two, 7)));
        assert!(!remote(&one, 7).is_same(&Postmaster::Local(7)));
        assert!(Postmaster::Local(7).is_same(&Postmaster::Local(7)));
        assert!(!Postmaster::Unknown.is_same(&Postmaster::Unknown));
    }
}
