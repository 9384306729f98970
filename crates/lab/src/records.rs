//! The records of a run, each read once.

use crate::counted::Counted;
use crate::store_problem;
use deltabench_compare::costs::Machine;
use deltabench_compare::{self as compare};
use deltabench_model::counter::VisitCounters;
use deltabench_model::fact::{AgentFacts, HostFacts, ServerHost, TimeUp, VisitStart, WarmUp};
use deltabench_model::finding::Finding;
use deltabench_model::installation::Build;
use deltabench_model::plan::{CellId, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::Slice;
use deltabench_store::{Store, StoreError};

/// What is stored of a run that its analysis needs.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) slices: Vec<Slice>,
    pub(crate) counters: Vec<VisitCounters>,
    pub(crate) records: Vec<Record>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) visits: Vec<VisitStart>,
    /// The blocks that were done when the time was up, as said last.
    pub(crate) time_up: Option<u32>,
    /// The machine of each server, in the plan's order.
    pub(crate) machines: Vec<Machine>,
    pub(crate) counted: Counted,
    /// How servers were compiled, as far as they were asked.
    pub(crate) builds: Vec<Build>,
}

impl Records {
    pub(crate) fn read(run: &str, plan: &Plan, store: &Store) -> Result<Self, Problem> {
        Self::of(run, plan, store).map_err(store_problem)
    }

    fn of(run: &str, plan: &Plan, store: &Store) -> Result<Self, StoreError> {
        let visits = store.facts::<VisitStart>(run)?.into_iter();
        Ok(Self {
            slices: store.slices(run)?,
            counters: store.counters(run)?,
            records: store.records(run)?,
            findings: store.findings(run)?,
            visits: visits.map(|visit| visit.fact).collect(),
            time_up: store.last_fact(run, None)?.map(|TimeUp(blocks)| blocks),
            machines: machines(run, plan, store)?,
            counted: Counted::of(run, plan, store)?,
            builds: store
                .facts::<Build>(run)?
                .into_iter()
                .map(|build| build.fact)
                .collect(),
        })
    }

    /// As the kind of benchmark reads them.
    pub(crate) fn of_kind(&self) -> compare::Records<'_> {
        compare::Records {
            slices: &self.slices,
            findings: &self.findings,
            counters: &self.counters,
            records: &self.records,
        }
    }

    /// The warm-ups of all visits, in order.
    pub(crate) fn warm_ups(&self) -> impl Iterator<Item = (CellId, &WarmUp)> {
        let visits = self.visits.iter();
        visits.filter_map(|visit| Some((visit.cell, visit.warm_up.as_ref()?)))
    }
}

/// The machines of the servers: the one that measured, or those that agents tell of.
fn machines(run: &str, plan: &Plan, store: &Store) -> Result<Vec<Machine>, StoreError> {
    // A host that does not tell has none in it.
    let cores = |host: HostFacts| {
        u32::try_from(host.online_cores)
            .ok()
            .filter(|cores| *cores > 0)
    };
    let here = store.last_fact::<HostFacts>(run, None)?;
    let here = Machine::of_client(here.and_then(cores));
    let of = |(id, server): (ServerId, &PlannedServer)| {
        if server.installation.remote.is_none() {
            return Ok(here);
        }
        let agent = store.last_fact::<AgentFacts>(run, Some(id))?;
        let host = store.last_fact::<ServerHost>(run, Some(id))?;
        Ok(Machine {
            cores: host.and_then(|ServerHost(host)| cores(host)),
            holds_client: agent.is_some_and(|agent| agent.same_machine),
        })
    };
    ServerId::each().zip(&plan.servers).map(of).collect()
}
