//! A visit with its connections open: calibration, warm-up, rounds.

mod interleaved;
mod shares;

use self::shares::Shares;
use super::profiled::{Profiling, cpu_ns_per_operation};
use super::waits::{Waits, sampled};
use super::{
    Address, Cause, FIRST_WARMUP_ROUND, OPERATION_TIMEOUT, Sink, Visit, WarmUp, host_problem,
};
use crate::admin::without_path;
use crate::clock::now_ns;
use crate::schedule::{jittered, parameters};
use deltabench_compare::{are_steady, each_is_steady};
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::{Limits, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{count, seconds, to_f64, to_u64};
use deltabench_observe::profile::CostGuard;
use deltabench_observe::{DeviceCosts, MachineCosts, Metered, Meters, Postmaster};
use deltabench_server::ThawGuard;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Warm-up rounds from which on steadiness can be judged.
const WARMUP_ROUNDS_MIN: u32 = 6;

/// Warm-up rounds where one operation takes as long as all of the warm-up.
const WARMUP_ROUNDS_LONG: u32 = 2;

/// Seconds in which the waits of a server are sampled, in each visit.
const WAIT_SECONDS: f64 = 0.5;

/// Warm-up takes at most this many times what was asked for.
const WARMUP_STRETCH: u32 = 4;

/// Points of a curve of warm-up that are kept: more than a chart shows.
const CURVE_POINTS: usize = 256;

/// Most steps in which the work of a slice is found.
const ATTEMPTS: u32 = 24;

/// Operations of each client in a slice: while the first and the last of them are under way, fewer clients
/// than asked for are at work.
const OPERATIONS_OF_CLIENT: u64 = 10;

/// The same where so many would make a slice longer than [`LONG_SLICE_SECONDS`].
const OPERATIONS_OF_CLIENT_MIN: u64 = 3;

/// A slice is longer than this only where it could not be shorter.
const LONG_SLICE_SECONDS: f64 = 1.0;

/// Least length of a slice with a schedule, seconds: each begins a schedule of its own, so what a server
/// cannot keep up with piles up over one slice and no longer.
const SCHEDULED_SECONDS: f64 = 0.5;

/// Operations of a slice with a schedule, unless that would take longer than [`SCHEDULED_SECONDS_MAX`].
const SCHEDULED_OPERATIONS: f64 = 20.0;

/// A slice with a schedule takes longer than this only for a single operation.
const SCHEDULED_SECONDS_MAX: f64 = 2.0;

/// Whether servers with these curves of warm-up are steady. Under limits caches fill and turn over on all of
/// them alike.
fn are_warm(curves: &[Vec<f64>], delta: f64, limits: &Limits) -> bool {
    match *limits == Limits::default() {
        true => are_steady(&thinned(curves), delta),
        false => each_is_steady(&thinned(curves), delta),
    }
}

/// Curves of at most so many points, each the mean of neighbours: a warm-up may last for minutes.
fn thinned(curves: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let thin = |curve: &Vec<f64>| {
        let each = curve.len().div_ceil(CURVE_POINTS).max(1);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / to_f64(count(part.len()));
        curve.chunks(each).map(mean).collect()
    };
    curves.iter().map(thin).collect()
}

/// A visit with its connections open.
pub(super) struct Connected<'a, 'v> {
    visit: &'a Visit<'v>,
    /// The servers of the lane, in its order.
    present: Vec<ServerId>,
    lane: Lane,
    /// Of all servers, in the order of the lane.
    meters: Meters,
    set: u32,
    /// Operations that every server has done in this visit.
    done: u64,
    /// The data's device while each server's slices ran.
    device: BTreeMap<ServerId, DeviceCosts>,
    /// Who worked in the slices of each server's warm-up.
    shares: BTreeMap<ServerId, Shares>,
    /// Absent until rounds are interleaved.
    guard: Option<ThawGuard>,
}

/// The work of one slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct SliceWork {
    pub(super) operations: u64,
    /// Seconds that the base takes for them, about: more than asked for where one operation takes longer.
    pub(super) seconds: f64,
    /// Whether the servers do them in turns; absent while nobody has decided.
    pub(super) in_turns: Option<bool>,
}

/// A server that a lane is connected to.
pub(super) type Present = (ServerId, Address);

/// A server that was lost, and how.
pub(super) type Loss = (ServerId, Cause);

/// What the sampling event does in a slice.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// It is off.
    Off,
    /// It is on, and what it sees does not matter.
    Tried,
    /// It samples.
    On,
}

/// Where rounds of slices that are sampled begin to count: no other slices have their parameters.
const FIRST_SAMPLED_ROUND: u32 = FIRST_WARMUP_ROUND / 2;

/// Operations that may all fail while the work of a slice is not known yet: so few say nothing of the others.
const FEW_OPERATIONS: u64 = 20;

/// Least operations of a slice in a closed loop; one takes `each` seconds of wall time.
fn least_operations(clients: u64, each: f64) -> u64 {
    if clients <= 1 {
        return 1;
    }
    let affordable = to_u64((LONG_SLICE_SECONDS / each.max(1e-9)).floor());
    affordable.clamp(
        clients * OPERATIONS_OF_CLIENT_MIN,
        clients * OPERATIONS_OF_CLIENT,
    )
}

/// The work of a slice in a closed loop that takes the `wanted` seconds, if an operation takes `each` seconds
/// of wall time; at most so many operations.
pub(super) fn fitting(wanted: f64, clients: u64, each: f64, most: u64) -> SliceWork {
    let operations = to_u64(wanted / each.max(1e-9))
        .max(least_operations(clients, each))
        .min(most);
    SliceWork {
        operations,
        seconds: wanted.max(each * to_f64(operations)),
        in_turns: None,
    }
}

/// The work of a slice in an open loop.
fn scheduled(rate: f64, wanted: f64, most: u64) -> SliceWork {
    let enough = (SCHEDULED_OPERATIONS / rate).min(SCHEDULED_SECONDS_MAX);
    let seconds = wanted.max(SCHEDULED_SECONDS).max(enough);
    let operations = to_u64((rate * seconds).round()).clamp(1, most);
    SliceWork {
        operations,
        seconds: to_f64(operations) / rate,
        in_turns: None,
    }
}

impl<'a, 'v> Connected<'a, 'v> {
    /// Connects to these servers; `done` operations were done over earlier connections.
    pub(super) fn open(
        visit: &'a Visit<'v>,
        present: Vec<Present>,
        set: u32,
        done: u64,
    ) -> Result<Self, Problem> {
        let servers: Vec<(Endpoint, Login)> = present
            .iter()
            .map(|(_, server)| (server.endpoint.clone(), server.login.clone()))
            .collect();
        let mut lane = Lane::connect(&LaneSpec {
            servers: &servers,
            executable: visit.executable,
            clients: visit.cell.clients,
            jobs: visit.plan.threads(visit.cell),
            cores: &visit.schedule.client_cores,
            op_timeout: OPERATION_TIMEOUT,
            rate: visit.cell.rate,
        })
        .map_err(|error| {
            without_path(&error).unwrap_or_else(|| {
                let workload = &visit.cell.workload;
                Problem::new(format!("cannot prepare {workload} on a server"))
                    .detail(error.to_string())
            })
        })?;
        let postmasters: Vec<Postmaster> = present
            .iter()
            .map(|(_, server)| server.postmaster.clone())
            .collect();
        if visit.plan.probes_core(visit.cell) {
            lane.probe_core()
                .map_err(|error| Problem::new("cannot probe the core").detail(error.to_string()))?;
        }
        // After connecting: a meter counts the processes that exist when it is opened.
        let metered = Metered {
            devices: visit.plan.observing.counters,
            short_lived: visit.executable.reconnects,
        };
        let meters = Meters::open(&postmasters, metered).map_err(host_problem)?;
        Ok(Self {
            visit,
            present: present.into_iter().map(|(id, _)| id).collect(),
            lane,
            meters,
            set,
            done,
            device: BTreeMap::new(),
            shares: BTreeMap::new(),
            guard: None,
        })
    }

    /// The data's device while each server's slices ran.
    pub(super) fn device(&self) -> &BTreeMap<ServerId, DeviceCosts> {
        &self.device
    }

    /// The servers of the lane in the order of the visit's rotation, with their places in both.
    fn turn(&self) -> Vec<(u32, usize, ServerId)> {
        let place = |server: &ServerId| self.present.iter().position(|other| other == server);
        (0..)
            .zip(&self.visit.schedule.rotation)
            .filter_map(|(position, server)| Some((position, place(server)?, *server)))
            .collect()
    }

    /// Operations that every server has done in this visit.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Finds how many operations make a slice of the wanted length on the base.
    ///
    /// Every server does the same work here too, so that written tables stay equal.
    pub(super) fn calibrate(&mut self) -> Result<SliceWork, Loss> {
        let wanted = self.visit.slice_seconds();
        let most = self.affordable();
        if let Some(rate) = self.visit.cell.rate {
            return Ok(scheduled(rate, wanted, most));
        }
        let fixed = self.visit.executable.slice_operations;
        let clients = u64::from(self.visit.cell.clients);
        let mut operations = fixed.unwrap_or(clients).min(most);
        for attempt in 0..ATTEMPTS {
            let mut seconds = self.base_seconds(operations, attempt)?;
            if seconds >= wanted / 3.0 {
                // A pause of the machine must not be taken for the speed of the server: slices of a few
                // operations would be left of a whole visit.
                seconds = seconds.min(self.base_seconds(operations, ATTEMPTS + attempt)?);
            }
            let each = seconds / to_f64(operations);
            let fit = fitting(wanted, clients, each, most);
            if fixed.is_some() {
                return Ok(SliceWork {
                    operations,
                    seconds,
                    in_turns: None,
                });
            }
            if seconds >= wanted / 3.0 || operations >= most || attempt + 1 == ATTEMPTS {
                return Ok(fit);
            }
            operations = fit
                .operations
                .clamp(operations * 2, operations * 8)
                .min(most);
        }
        Ok(SliceWork {
            operations,
            seconds: wanted,
            in_turns: None,
        })
    }

    /// Seconds that the base takes for so many operations, which all servers do.
    fn base_seconds(&mut self, operations: u64, attempt: u32) -> Result<f64, Loss> {
        let base = self.visit.plan.base();
        let taken = self.untimed_round(operations, attempt, FEW_OPERATIONS)?;
        Ok(taken
            .iter()
            .find(|(server, _)| *server == base)
            .map_or(0.0, |(_, seconds)| *seconds))
    }

    /// Operations that a slice may have so that a workload which uses up its rows has some to the end.
    fn affordable(&self) -> u64 {
        let Some(all) = self.visit.executable.operations_max else {
            return u64::MAX;
        };
        let slice_seconds = self.visit.slice_seconds();
        let warming = self
            .warmup_rounds(1.0, slice_seconds)
            .max(WARMUP_ROUNDS_MIN)
            .saturating_mul(WARMUP_STRETCH + self.visit.sets());
        let rounds = self.visit.rounds(slice_seconds) + warming;
        // Half is kept for the jitter of slices and for calibration, whose slices grow up to this size.
        (all / 2 / u64::from(rounds)).max(1)
    }

    /// Rounds that do not count, until every server is steady or the limit is reached. All servers do
    /// equally many: what is discarded is discarded on both sides. `None` where operations are so long that
    /// steadiness would take longer to judge than the cell to measure.
    pub(super) fn warm_up(&mut self, work: SliceWork) -> Result<Option<WarmUp>, Loss> {
        self.shares.clear();
        if self.visit.has_long_operations(work) {
            self.warm_rounds(work, WARMUP_ROUNDS_LONG)?;
            return Ok(None);
        }
        let least = self.warmup_rounds(1.0, work.seconds).max(WARMUP_ROUNDS_MIN);
        let most = match self.visit.plan.timing.warmup_chosen {
            true => least,
            false => least * WARMUP_STRETCH,
        };
        let servers = self.visit.plan.servers.len();
        let mut curves: Vec<Vec<f64>> = vec![Vec::new(); servers];
        for round in 0..most {
            // It may last for minutes; the first round of the visit finds out the same.
            if self.visit.interrupted.load(Ordering::Relaxed) {
                break;
            }
            for (server, taken) in self.untimed_round(work.operations, 100 + round, 0)? {
                if let Some(curve) = curves.get_mut(server.index()) {
                    curve.push(1e6 * taken / to_f64(work.operations));
                }
            }
            let plan = self.visit.plan;
            if round + 1 >= least && are_warm(&curves, plan.delta, &plan.limits) {
                return Ok(Some(WarmUp {
                    steady: true,
                    us_per_operation: thinned(&curves),
                }));
            }
        }
        Ok(Some(WarmUp {
            steady: false,
            us_per_operation: thinned(&curves),
        }))
    }

    /// So many times the asked warm-up: for new connections to servers that are warm already, or for servers
    /// that are there one at a time and could not stop together.
    pub(super) fn warm_for(&mut self, work: SliceWork, times: f64) -> Result<(), Loss> {
        self.warm_rounds(work, self.warmup_rounds(times, work.seconds).max(1))
    }

    fn warm_rounds(&mut self, work: SliceWork, rounds: u32) -> Result<(), Loss> {
        for round in 0..rounds {
            if self.visit.interrupted.load(Ordering::Relaxed) {
                break;
            }
            self.untimed_round(work.operations, self.set * 1000 + round, 0)?;
        }
        Ok(())
    }

    fn warmup_rounds(&self, share: f64, slice_seconds: f64) -> u32 {
        let rounds = self.visit.plan.timing.warmup_seconds * share / slice_seconds;
        u32::try_from(to_u64(rounds.ceil())).unwrap_or(u32::MAX)
    }

    /// The slice of a round, the same for each server.
    fn request(&self, operations: u64, round: u32) -> SliceRequest {
        let Visit { block, cell_id, .. } = *self.visit;
        SliceRequest {
            operations,
            seed: parameters(self.visit.plan, block, cell_id, round),
            first_operation: self.done,
        }
    }

    /// A slice on each server that is not recorded; its seconds. Fewer than `few` operations may all fail.
    fn untimed_round(
        &mut self,
        operations: u64,
        number: u32,
        few: u64,
    ) -> Result<Vec<(ServerId, f64)>, Loss> {
        let request = self.request(operations, FIRST_WARMUP_ROUND + number);
        let mut taken = Vec::with_capacity(self.present.len());
        for (_, place, server) in self.turn() {
            // Read, so that the work that it leaves behind counts for the slice that follows.
            self.meters.start(place);
            let outcome = self.lane.run_slice(place, request);
            let costs = self.meters.end(place, outcome.client_cpu_ns);
            self.shares.entry(server).or_default().add(&outcome, &costs);
            let tolerated = operations < few;
            match Cause::of(&outcome) {
                Some(cause) if !(tolerated && cause.reason == VoidReason::NothingDone) => {
                    return Err((server, cause));
                }
                _ => taken.push((server, seconds(outcome.duration_ns))),
            }
        }
        self.done += operations;
        Ok(taken)
    }

    /// Slices on each server that do not count, in which its waits are sampled; nanoseconds of an operation
    /// by what was waited for.
    pub(super) fn wait_slices(
        &mut self,
        work: SliceWork,
        servers: &[Address],
    ) -> Result<Vec<(ServerId, Waits)>, Loss> {
        let slices = (WAIT_SECONDS / work.seconds).ceil().clamp(1.0, 1000.0);
        let operations = work.operations.saturating_mul(to_u64(slices));
        let request = self.request(operations, FIRST_WARMUP_ROUND - 1);
        let mut found = Vec::new();
        for (_, place, server) in self.turn() {
            let Some(address) = servers.get(server.index()) else {
                continue;
            };
            let (void, waits) =
                sampled(address, self.visit.plan.observing.waits_per_second, || {
                    let outcome = self.lane.run_slice(place, request);
                    (Cause::of(&outcome), outcome.operations, outcome.duration_ns)
                });
            match void {
                Some(reason) => return Err((server, reason)),
                None => found.extend(waits.map(|waits| (server, waits))),
            }
        }
        self.done += operations;
        Ok(found)
    }

    /// Slices on each server that do not count, in which its stacks are sampled. First, slices in turns with
    /// the event and without say what it costs. Whether all of them were taken: an interrupt ends them early.
    pub(super) fn profile_slices(
        &mut self,
        work: SliceWork,
        profiling: &mut Profiling<'_>,
    ) -> Result<Result<bool, Loss>, Problem> {
        let mut numbers = FIRST_SAMPLED_ROUND..;
        let mut turn = |connected: &mut Self, profiling: &mut Profiling<'_>, event| {
            let number = numbers.next().unwrap_or(FIRST_SAMPLED_ROUND);
            connected.sampled_turn((work.operations, number), profiling, event)
        };
        while profiling.wants_guard() {
            let mut guard = CostGuard::default();
            for _ in 0..CostGuard::SLICES {
                if self.visit.interrupted.load(Ordering::Relaxed) {
                    return Ok(Ok(false));
                }
                match turn(self, profiling, Event::Off)? {
                    Ok(cpu_ns) => guard.without.extend(cpu_ns),
                    Err(loss) => return Ok(Err(loss)),
                }
                match turn(self, profiling, Event::Tried)? {
                    Ok(cpu_ns) => guard.with.extend(cpu_ns),
                    Err(loss) => return Ok(Err(loss)),
                }
            }
            profiling.judge(&guard)?;
        }
        for _ in 0..profiling.rounds() {
            if self.visit.interrupted.load(Ordering::Relaxed) {
                return Ok(Ok(false));
            }
            if let Err(loss) = turn(self, profiling, Event::On)? {
                return Ok(Err(loss));
            }
        }
        Ok(Ok(true))
    }

    /// A slice on each server; CPU of an operation on the base, nanoseconds.
    fn sampled_turn(
        &mut self,
        (operations, number): (u64, u32),
        profiling: &mut Profiling<'_>,
        event: Event,
    ) -> Result<Result<Option<f64>, Loss>, Problem> {
        let request = self.request(operations, number);
        let mut cpu_ns = None;
        for (_, place, server) in self.turn() {
            self.meters.start(place);
            let lane = &mut self.lane;
            let mut work = || lane.run_slice(place, request);
            let outcome = match event {
                Event::Off => work(),
                Event::Tried => profiling.disturb(work)?,
                Event::On => profiling.sample(server, work)?,
            };
            let costs = self.meters.end(place, outcome.all_client_cpu_ns());
            if let Some(cause) = Cause::of(&outcome) {
                return Ok(Err((server, cause)));
            }
            if server == self.visit.plan.base() {
                let spent = costs.server.map(|spent| spent.cpu_ns);
                cpu_ns = cpu_ns_per_operation(spent, outcome.operations);
            }
        }
        self.done += operations;
        Ok(Ok(cpu_ns))
    }

    /// One slice on each server; the loss that ended the round early, if any.
    pub(super) fn round(
        &mut self,
        round: u32,
        work: SliceWork,
        sink: Sink<'_>,
    ) -> Result<Option<Loss>, Problem> {
        let Visit {
            plan,
            block,
            cell_id,
            ..
        } = *self.visit;
        let operations = jittered(plan, block, cell_id, round, work.operations);
        let request = self.request(operations, round);
        if work.in_turns == Some(true) {
            return self.interleaved_round(round, request, sink);
        }
        for (position, place, server) in self.turn() {
            let slice = self.slice((server, place), round, position, &request);
            sink(&slice)?;
            match slice.void {
                Some(VoidReason::NothingDone) | None => {}
                Some(reason) => {
                    let detail = slice.void_detail;
                    return Ok(Some((server, Cause { reason, detail })));
                }
            }
        }
        self.done += request.operations;
        Ok(None)
    }

    /// The same work, with whether the servers do it in turns: as in earlier visits of the cell, or as the
    /// warm-up shows.
    pub(super) fn decided(&self, work: SliceWork) -> SliceWork {
        let alone = |server| self.shares.get(server).is_some_and(Shares::works_alone);
        let shown = self.visit.interleaves(work) && self.present.iter().all(alone);
        SliceWork {
            in_turns: Some(self.present.len() > 1 && work.in_turns.unwrap_or(shown)),
            ..work
        }
    }

    fn slice(
        &mut self,
        (server, place): (ServerId, usize),
        round: u32,
        position: u32,
        request: &SliceRequest,
    ) -> Slice {
        let started_ns = now_ns();
        // Two servers of a visit may be schemas of one: its CPU is this slice's all the same, because only
        // one of them is given work at a time.
        self.meters.start(place);
        let outcome = self.lane.run_slice(place, *request);
        let costs = self.meters.end(place, outcome.all_client_cpu_ns());
        self.recorded((server, round, position), started_ns, outcome, &costs)
    }

    /// A slice as it is stored; what it did to the device counts for its server.
    fn recorded(
        &mut self,
        (server, round, position): (ServerId, u32, u32),
        started_ns: u64,
        outcome: SliceOutcome,
        costs: &MachineCosts,
    ) -> Slice {
        if let Some(device) = &costs.device {
            let sum = self.device.entry(server).or_default();
            *sum = sum.and(device);
        }
        Slice {
            server,
            cell: self.visit.cell_id,
            block: self.visit.block,
            round,
            position,
            connection: self.set,
            started_ns,
            duration_ns: outcome.duration_ns,
            operations: outcome.operations,
            failed: outcome.failed,
            rows: outcome.rows,
            server_cpu_ns: costs.server.map(|server| server.cpu_ns),
            run_queue_wait_ns: costs.server.and_then(|server| server.run_queue_wait_ns),
            client_cpu_ns: outcome.client_cpu_ns,
            foreign_cpu_ns: costs.foreign_cpu_ns,
            steal_ns: costs.steal_ns,
            idle_cpu_ns: costs.idle_cpu_ns,
            background_cpu_ns: costs.background_cpu_ns,
            probe_ns: outcome.probe_ns,
            probing_ns: outcome.probe_ns.map(|_| outcome.probing_ns),
            switches: costs.server.and_then(|server| server.switches),
            cpu_pressure_ns: costs.cpu_pressure_ns,
            schedule_lag_ns: outcome.schedule_lag_ns,
            latency_histogram: outcome.latency_histogram,
            scripts: outcome.scripts,
            errors: outcome.errors,
            void: outcome.void,
            void_detail: outcome.void_detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_work_in_a_slice_but_a_slice_is_not_made_long_for_it() {
        assert_eq!(least_operations(1, 0.5), 1);
        assert_eq!(least_operations(32, 20e-6), 320, "a fast operation");
        assert_eq!(least_operations(32, 0.02 / 32.0), 320, "20 ms each");
        assert_eq!(least_operations(64, 0.01), 192, "10 ms of the server each");
    }

    #[test]
    fn under_limits_each_server_is_judged_by_itself_because_caches_fill_on_all() {
        // All get slower by 2 % from slice to slice, with noise of their own of 1 %.
        let curve = |own: u8| {
            let noise = move |n: u8| f64::from((n * 3 + own * 3) % 11) - 5.0;
            let each = move |n: u8| (1.0 + 0.02 * f64::from(n)) * (1.0 + 0.002 * noise(n));
            (0..12).map(each).collect::<Vec<f64>>()
        };
        let curves = [curve(0), curve(1), curve(2)];
        let warm = |memory_bytes| {
            let limits = Limits {
                memory_bytes,
                ..Limits::default()
            };
            are_warm(&curves, 0.03, &limits)
        };
        assert!(warm(None) && !warm(Some(1 << 30)));
    }

    #[test]
    fn a_long_warm_up_keeps_a_curve_that_can_be_drawn() {
        let short = vec![vec![1.0, 2.0, 3.0], Vec::new()];
        assert_eq!(thinned(&short), short);
        let long = thinned(&[(0..1000).map(f64::from).collect()]);
        assert_eq!(long[0].len(), 250);
        assert_eq!(long[0][..2], [1.5, 5.5]);
    }

    #[test]
    fn a_slice_with_a_schedule_is_long_enough_to_hold_its_rate() {
        let of = |rate| {
            let work = scheduled(rate, 0.04, u64::MAX);
            (work.operations, (work.seconds * 1000.0).round())
        };
        assert_eq!(of(2000.0), (1000, 500.0));
        assert_eq!(of(20.0), (20, 1000.0));
        assert_eq!(of(3.0), (6, 2000.0));
        assert_eq!(of(0.1), (1, 10_000.0));
        assert_eq!(scheduled(2000.0, 0.04, 7).operations, 7);
    }
}
