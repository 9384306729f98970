//! One visit to a cell: a few seconds of alternating slices over open connections.
//!
//! The order of work: pin, connect, calibrate the work of a slice (the same on every server), warm up, then
//! rounds. A round gives each server one slice with the same operations. Half-way the connections are opened
//! anew, because one connection is one draw of memory placement (driver.md 5).

use crate::schedule::{VisitSchedule, jittered, parameters};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{index, seconds, to_f64, to_u64};
use deltabench_observe::{
    CpuMeter, HostClock, foreign_cpu_ns, own_affinity, pin_self, pin_tree, restore,
};
use deltabench_workload::executable::Executable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No answer for this long voids the slice.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Rounds of the shortest visit: a block with fewer than three has no value, and some may be void.
const ROUNDS_MIN: u64 = 5;

/// Rounds from this number on are warm-up or calibration; their parameters never meet those of measured ones.
const FIRST_WARMUP_ROUND: u32 = 1 << 24;

/// A running server as a visit needs it.
#[derive(Debug, Clone)]
pub struct Address {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// How to log in; the search path names the cell's tables.
    pub login: Login,
    /// Its main process.
    pub postmaster_pid: u32,
}

/// A visit to carry out.
pub struct Visit<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Block.
    pub block: u32,
    /// Cell.
    pub cell_id: CellId,
    /// The cell itself.
    pub cell: &'a Cell,
    /// Its workload, compiled.
    pub executable: &'a Executable,
    /// All servers, in the plan's order.
    pub servers: &'a [Address],
    /// Orders and cores.
    pub schedule: &'a VisitSchedule,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
}

/// How a visit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisitEnd {
    /// All rounds are done.
    Complete,
    /// The user wants to stop; the visit does not count.
    Interrupted,
    /// A server was lost in mid-visit; the rounds before count.
    Lost(ServerId, VoidReason),
}

/// Receives each slice as it ends.
pub type Sink<'a> = &'a mut dyn FnMut(&Slice) -> Result<(), Problem>;

impl Visit<'_> {
    /// Carries the visit out and hands every measured slice to `sink`.
    ///
    /// Errors: connections that cannot be made, a host that does not let us pin, a sink that fails.
    pub fn carry_out(&self, sink: Sink<'_>) -> Result<VisitEnd, Problem> {
        let own_cores = own_affinity().map_err(host_problem)?;
        let end = self.pin().and_then(|()| self.measure(sink));
        restore(&own_cores).map_err(host_problem)?;
        match (end, self.dead()) {
            // What could not be done because a server is gone is that server's loss, not a failure of the
            // host.
            (Err(_), Some(server)) => Ok(VisitEnd::Lost(server, VoidReason::ServerLost)),
            (end, _) => end,
        }
    }

    /// The first server whose main process has ended.
    fn dead(&self) -> Option<ServerId> {
        (0..)
            .zip(self.servers)
            .find(|(_, server)| has_ended(server.postmaster_pid))
            .map(|(id, _)| id)
    }

    fn pin(&self) -> Result<(), Problem> {
        if self.schedule.server_cores.is_empty() {
            return Ok(());
        }
        for server in self.servers {
            pin_tree(server.postmaster_pid, &self.schedule.server_cores).map_err(host_problem)?;
        }
        pin_self(&self.schedule.client_cores).map_err(host_problem)
    }

    fn measure(&self, sink: Sink<'_>) -> Result<VisitEnd, Problem> {
        let sets = self.plan.timing.connections_per_visit.max(1);
        let slice_seconds = f64::from(self.plan.timing.slice_ms) / 1e3;
        let rounds = to_u64(self.plan.timing.visit_seconds / slice_seconds)
            .max(ROUNDS_MIN)
            .max(u64::from(sets));
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        let mut operations = None;
        for set in 0..sets {
            let mut connected = Connected::open(self, set)?;
            let warm = match operations {
                None => connected.calibrate(),
                Some(known) => Ok(known),
            };
            let warm = warm.and_then(|known| connected.warm_up(known, set == 0).map(|()| known));
            let known = match warm {
                Ok(known) => *operations.insert(known),
                Err((server, reason)) => return Ok(VisitEnd::Lost(server, reason)),
            };
            for round in (0..rounds).filter(|round| round * sets / rounds == set) {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Ok(VisitEnd::Interrupted);
                }
                if let Some((server, reason)) = connected.round(round, known, sink)? {
                    return Ok(VisitEnd::Lost(server, reason));
                }
            }
        }
        Ok(VisitEnd::Complete)
    }
}

/// A visit with its connections open.
struct Connected<'a, 'v> {
    visit: &'a Visit<'v>,
    lane: Lane,
    meters: Vec<CpuMeter>,
    clock: HostClock,
    set: u32,
}

/// A server that was lost, and how.
type Loss = (ServerId, VoidReason);

impl<'a, 'v> Connected<'a, 'v> {
    fn open(visit: &'a Visit<'v>, set: u32) -> Result<Self, Problem> {
        let servers: Vec<(Endpoint, Login)> = visit
            .servers
            .iter()
            .map(|server| (server.endpoint.clone(), server.login.clone()))
            .collect();
        let lane = Lane::connect(&LaneSpec {
            servers: &servers,
            executable: visit.executable,
            clients: visit.cell.clients,
            op_timeout: OPERATION_TIMEOUT,
        })
        .map_err(|error| {
            Problem::new(format!(
                "cannot prepare {} on a server",
                visit.cell.workload
            ))
            .detail(error.to_string())
        })?;
        // After connecting: a meter counts the processes that exist when it is opened.
        let meters = visit
            .servers
            .iter()
            .map(|server| CpuMeter::open(server.postmaster_pid).map_err(host_problem))
            .collect::<Result<_, _>>()?;
        let clock = HostClock::open().map_err(host_problem)?;
        Ok(Self {
            visit,
            lane,
            meters,
            clock,
            set,
        })
    }

    /// Finds how many operations make a slice of the wanted length on the base.
    ///
    /// Every server does the same work here too, so that written tables stay equal.
    fn calibrate(&mut self) -> Result<u64, Loss> {
        let wanted = f64::from(self.visit.plan.timing.slice_ms) / 1e3;
        let base = self.visit.plan.base();
        let mut operations = 4;
        for attempt in 0..24 {
            let mut base_seconds = 0.0;
            for &server in &self.visit.schedule.rotation {
                let taken = self.untimed(server, operations, attempt)?;
                if server == base {
                    base_seconds = taken;
                }
            }
            let fit = to_f64(operations) * wanted / base_seconds.max(1e-6);
            if base_seconds >= wanted / 3.0 {
                return Ok(to_u64(fit).max(1));
            }
            operations = to_u64(fit).clamp(operations * 2, operations * 8);
        }
        Ok(operations)
    }

    fn warm_up(&mut self, operations: u64, first: bool) -> Result<(), Loss> {
        // Calibration has warmed the first connections already; later ones only need their own caches.
        let share = if first { 1.0 } else { 0.3 };
        let wanted = self.visit.plan.timing.warmup_seconds * share;
        let slice_seconds = f64::from(self.visit.plan.timing.slice_ms) / 1e3;
        let rounds = to_u64((wanted / slice_seconds).ceil()).max(1);
        for round in 0..u32::try_from(rounds).unwrap_or(u32::MAX) {
            for &server in &self.visit.schedule.rotation {
                self.untimed(server, operations, 100 + self.set * 1000 + round)?;
            }
        }
        Ok(())
    }

    /// Runs a slice that is not recorded; returns its seconds.
    fn untimed(&mut self, server: ServerId, operations: u64, number: u32) -> Result<f64, Loss> {
        let round = FIRST_WARMUP_ROUND + number;
        let seed = parameters(self.visit.plan, self.visit.block, self.visit.cell_id, round);
        let outcome = self
            .lane
            .run_slice(index(u64::from(server)), SliceRequest { operations, seed });
        match outcome.void {
            Some(reason) => Err((server, reason)),
            None => Ok(seconds(outcome.duration_ns)),
        }
    }

    /// One slice on each server; the loss that ended the round early, if any.
    fn round(
        &mut self,
        round: u32,
        operations: u64,
        sink: Sink<'_>,
    ) -> Result<Option<Loss>, Problem> {
        let Visit {
            plan,
            block,
            cell_id,
            ..
        } = *self.visit;
        let request = SliceRequest {
            operations: jittered(plan, block, cell_id, round, operations),
            seed: parameters(plan, block, cell_id, round),
        };
        for (position, &server) in (0..).zip(&self.visit.schedule.rotation) {
            let slice = self.slice(server, round, position, &request)?;
            sink(&slice)?;
            match slice.void {
                Some(VoidReason::NothingDone) | None => {}
                Some(reason) => return Ok(Some((server, reason))),
            }
        }
        Ok(None)
    }

    fn slice(
        &mut self,
        server: ServerId,
        round: u32,
        position: u32,
        request: &SliceRequest,
    ) -> Result<Slice, Problem> {
        let place = index(u64::from(server));
        let Some(meter) = self.meters.get_mut(place) else {
            return Err(Problem::new(format!("the plan has no server {server}")));
        };
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let host_before = self.clock.read();
        let cpu_before = meter.read();
        let outcome = self.lane.run_slice(place, *request);
        let cpu = meter.read().since(&cpu_before);
        let host = self.clock.read().since(&host_before);
        Ok(Slice {
            server,
            cell: self.visit.cell_id,
            block: self.visit.block,
            round,
            position,
            connection: self.set,
            started_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            duration_ns: outcome.duration_ns,
            operations: outcome.operations,
            failed: outcome.failed,
            rows: outcome.rows,
            server_cpu_ns: Some(cpu.cpu_ns),
            run_queue_wait_ns: cpu.run_queue_wait_ns,
            client_cpu_ns: outcome.client_cpu_ns,
            foreign_cpu_ns: Some(foreign_cpu_ns(
                host.busy_ns,
                cpu.cpu_ns,
                outcome.client_cpu_ns,
            )),
            steal_ns: Some(host.steal_ns),
            latency_histogram: outcome.latency_histogram,
            errors: outcome.errors,
            void: outcome.void,
            idle_cpu_ns: None,
            switches: None,
            cpu_pressure_ns: None,
            schedule_lag_ns: None,
        })
    }
}

fn host_problem(error: impl std::fmt::Display) -> Problem {
    Problem::new("the host does not let us observe or pin a server").detail(error.to_string())
}

/// Whether a process is gone or only waits to be reaped. Source: proc_pid_stat(5), field 3.
fn has_ended(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit(") ")
                .next()
                .map(|fields| fields.starts_with('Z'))
        })
        .unwrap_or(true)
}
