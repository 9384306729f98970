//! Rounds of long operations: all servers have theirs under way, and one works at a time.

use super::{Connected, Loss};
use crate::clock::now_ns;
use crate::visit::{Cause, Sink, host_problem};
use deltabench_driver::{SliceRequest, Stops};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_observe::{MachineCosts, Meters};
use deltabench_proc::has_ended;
use deltabench_server::{Frozen, ThawGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Directories from a server's data directory up to the workspace that holds those of all servers.
const WORKSPACE_ABOVE: usize = 2;

/// Stops the server's process of a connection while others work, and reads the meters at both ends of a turn.
struct Stopping<'m> {
    meters: &'m mut Meters,
    /// By place in the lane.
    backends: BTreeMap<usize, u32>,
    costs: BTreeMap<usize, MachineCosts>,
    stopped: BTreeMap<usize, Frozen>,
    trouble: Option<String>,
}

impl Stops for Stopping<'_> {
    fn go_on(&mut self, server: usize) {
        self.meters.start(server);
        drop(self.stopped.remove(&server));
    }

    fn stop(&mut self, server: usize) -> Instant {
        let backend = self.backends.get(&server).copied();
        let stopped = backend.and_then(Frozen::of);
        // It shares our core: until we wait for it, it does nothing anyway.
        let since = Instant::now();
        let trouble = match &stopped {
            Some(stopped) => stopped.await_stop().err(),
            // Of a process that is gone the connection tells.
            None if backend.is_some_and(has_ended) => None,
            None => Some("a process of a server cannot be stopped".to_owned()),
        };
        self.trouble = self.trouble.take().or(trouble);
        self.stopped
            .extend(stopped.map(|stopped| (server, stopped)));
        since
    }

    fn over(&mut self, server: usize, client_cpu_ns: u64) {
        let costs = self.meters.end(server, client_cpu_ns);
        let so_far = self.costs.get(&server);
        let all = so_far.map_or(costs, |so_far| so_far.and(&costs));
        self.costs.insert(server, all);
    }
}

impl Connected<'_, '_> {
    /// A slice on each server, in turns; the first loss, if any.
    pub(super) fn interleaved_round(
        &mut self,
        round: u32,
        request: SliceRequest,
        sink: Sink<'_>,
    ) -> Result<Option<Loss>, Problem> {
        self.watch_over()?;
        let order = self.turn();
        let places: Vec<usize> = order.iter().map(|(_, place, _)| *place).collect();
        let backend = |place: &usize| Some((*place, *self.lane.backend_pids(*place).first()?));
        let mut stopping = Stopping {
            backends: places.iter().filter_map(backend).collect(),
            meters: &mut self.meters,
            costs: BTreeMap::new(),
            stopped: BTreeMap::new(),
            trouble: None,
        };
        let length = Duration::from_millis(self.visit.plan.timing.slice_ms.into());
        let started_ns = now_ns();
        let outcomes = self
            .lane
            .run_interleaved(&places, request, length, &mut stopping);
        let Stopping { costs, trouble, .. } = stopping;
        if let Some(trouble) = trouble {
            return Err(host_problem(trouble));
        }
        let mut lost = None;
        for ((position, place, server), outcome) in order.into_iter().zip(outcomes) {
            let costs = costs.get(&place).copied().unwrap_or_default();
            let slice = self.recorded((server, round, position), started_ns, outcome, &costs);
            sink(&slice)?;
            let cause = slice.void.filter(|void| *void != VoidReason::NothingDone);
            lost = lost.or(cause.map(|reason| {
                let detail = slice.void_detail;
                (server, Cause { reason, detail })
            }));
        }
        if lost.is_none() {
            self.done += request.operations;
        }
        Ok(lost)
    }

    /// Sees to it that no process stays stopped if deltabench is killed.
    fn watch_over(&mut self) -> Result<(), Problem> {
        if self.guard.is_none() {
            self.guard = Some(ThawGuard::start(&self.workspace()?)?);
        }
        Ok(())
    }

    /// The directory that holds the data directories of all servers.
    fn workspace(&self) -> Result<PathBuf, Problem> {
        let unknown = || Problem::new("a server does not work in its data directory");
        let first = self.visit.servers.first().ok_or_else(unknown)?;
        let works_in = std::fs::read_link(format!("/proc/{}/cwd", first.own_pid()?));
        let data = works_in.map_err(host_problem)?;
        let workspace = data.ancestors().nth(WORKSPACE_ABOVE);
        workspace.map(PathBuf::from).ok_or_else(unknown)
    }
}
