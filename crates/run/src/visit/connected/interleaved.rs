//! Rounds of long operations: all servers have theirs under way, and one works at a time.

use super::{Connected, Loss};
use crate::session::now_ns;
use crate::visit::{Cause, Sink, host_problem};
use deltabench_driver::{SliceOutcome, SliceRequest, Stops};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_model::units::to_f64;
use deltabench_observe::{MachineCosts, Meters};
use deltabench_proc::has_ended;
use deltabench_server::{Frozen, ThawGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Directories from a server's data directory up to the workspace that holds those of all servers.
const WORKSPACE_ABOVE: usize = 2;

/// Share of an operation in which the server's process works, or waits for the core, where nothing else works
/// for it: it does not sleep, and other processes do nothing of it.
const WORKS_ALONE: f64 = 0.9;

/// Share of an operation that the client may take for its answer.
const CLIENT_SHARE: f64 = 0.02;

/// Who worked in slices of a server that did not count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shares {
    duration_ns: u64,
    /// The server's processes worked, or waited for the core.
    server_ns: u64,
    client_ns: u64,
}

impl Shares {
    pub(super) fn add(&mut self, outcome: &SliceOutcome, costs: &MachineCosts) {
        let server = costs.server;
        // What is not known is not there: then nobody works alone.
        let server_ns = server.map_or(0, |spent| {
            spent.cpu_ns + spent.run_queue_wait_ns.unwrap_or(0)
        });
        self.duration_ns += outcome.duration_ns;
        self.server_ns += server_ns;
        self.client_ns += outcome.client_cpu_ns;
    }

    /// Whether only a process of the server has worked: no client, no sleep, no other process.
    pub(super) fn works_alone(&self) -> bool {
        let duration_ns = to_f64(self.duration_ns);
        self.duration_ns > 0
            && to_f64(self.server_ns) >= WORKS_ALONE * duration_ns
            && to_f64(self.client_ns) <= CLIENT_SHARE * duration_ns
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_sleeps_or_sends_a_lot_takes_no_turns() {
        use deltabench_observe::CpuReading;
        let add = |shares: &mut Shares, cpu_ns, waited_ns, client_cpu_ns| {
            let outcome = SliceOutcome {
                duration_ns: 1_000_000_000,
                operations: 1,
                failed: 0,
                rows: 1,
                client_cpu_ns,
                probe_ns: None,
                probing_ns: 0,
                latency_histogram: Vec::new(),
                scripts: Vec::new(),
                errors: Vec::new(),
                void: None,
                void_detail: None,
                schedule_lag_ns: None,
            };
            let server = Some(CpuReading {
                cpu_ns,
                run_queue_wait_ns: waited_ns,
                switches: None,
            });
            let costs = MachineCosts {
                server,
                ..MachineCosts::default()
            };
            shares.add(&outcome, &costs);
        };
        let of = |cpu_ns: u64, waited_ns: Option<u64>, client_cpu_ns: u64| {
            let mut shares = Shares::default();
            add(&mut shares, cpu_ns, waited_ns, client_cpu_ns);
            shares.works_alone()
        };
        assert!(of(990_000_000, None, 1_000_000));
        assert!(of(600_000_000, Some(390_000_000), 1_000_000), "a neighbour");
        assert!(!of(600_000_000, Some(1_000_000), 1_000_000), "it sleeps");
        assert!(!of(940_000_000, None, 50_000_000), "a large answer");
        let mut several = Shares::default();
        assert!(!several.works_alone(), "nothing is known");
        for cpu_ns in [990_000_000, 800_000_000, 990_000_000] {
            add(&mut several, cpu_ns, None, 1_000_000);
        }
        assert!(several.works_alone(), "one slice was disturbed");
    }
}
