//! What the far side has opened, as the near side holds it.

use super::Agent;
use super::protocol::{Answer, Ask};
use crate::slice_meters::{MeterSources, SliceCosts};
use deltabench_model::units::count;
use std::collections::BTreeMap;

/// Meters of servers on another machine, read as [`crate::SliceMeters`] are.
///
/// Cost: a round trip at each end of a slice, outside of its own time.
#[derive(Debug)]
pub struct RemoteMeters {
    agent: Agent,
    meters: u64,
    sources: MeterSources,
    /// Whether the latest start was heard.
    started: bool,
}

impl RemoteMeters {
    pub(super) fn new(agent: Agent, meters: u64, sources: MeterSources) -> Self {
        Self {
            agent,
            meters,
            sources,
            started: false,
        }
    }

    /// The host that they are read on.
    pub fn host(&self) -> &str {
        &self.agent.about().host
    }

    /// Where the figures come from.
    pub fn sources(&self) -> &MeterSources {
        &self.sources
    }

    /// Marks the start of a slice.
    pub fn start(&mut self) {
        let ask = Ask::Start {
            meters: self.meters,
        };
        let done = |answer| matches!(answer, Answer::Done).then_some(());
        self.started = self.heard(ask, done).is_some();
    }

    /// What happened on that machine since the latest [`RemoteMeters::start`]. `active` is the place of the
    /// server that worked, `client_cpu_ns` the CPU of the client meanwhile, which counts only if the agent is
    /// on our own machine. `None` if there is no such server, or the agent is lost.
    pub fn end(&mut self, active: usize, client_cpu_ns: u64) -> Option<SliceCosts> {
        if !std::mem::take(&mut self.started) {
            return None;
        }
        let here = self.agent.about().same_machine;
        let ask = Ask::End {
            meters: self.meters,
            active: count(active),
            client_cpu_ns: if here { client_cpu_ns } else { 0 },
        };
        let costs = |answer| match answer {
            Answer::Costs(costs) => Some(costs),
            _ => None,
        };
        self.heard(ask, costs).flatten()
    }

    fn heard<T>(&self, ask: Ask, take: impl Fn(Answer) -> Option<T>) -> Option<T> {
        let heard = self.agent.ask(ask, take);
        heard.map_err(|problem| self.agent.note(&problem)).ok()
    }
}

impl Drop for RemoteMeters {
    fn drop(&mut self) {
        let ask = Ask::CloseMeters {
            meters: self.meters,
        };
        // An agent that is lost has forgotten them anyway.
        let _ = self
            .agent
            .ask(ask, |answer| matches!(answer, Answer::Done).then_some(()));
    }
}

/// Counters of a server's processes on another machine, as those of [`crate::ServerCounters`].
#[derive(Debug)]
pub struct RemoteCounters {
    agent: Agent,
    counters: u64,
}

impl RemoteCounters {
    pub(super) fn new(agent: Agent, counters: u64) -> Self {
        Self { agent, counters }
    }

    /// A last reading; empty if the agent is lost.
    pub fn finish(self) -> BTreeMap<String, f64> {
        let ask = Ask::FinishCounters {
            counters: self.counters,
        };
        let values = self.agent.ask(ask, |answer| match answer {
            Answer::Values(values) => Some(values),
            _ => None,
        });
        values
            .map_err(|problem| self.agent.note(&problem))
            .unwrap_or_default()
    }
}
