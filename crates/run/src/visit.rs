//! One visit to a cell: a few seconds of alternating slices over open connections.
//!
//! The order of work: pin, connect, calibrate the work of a slice (the same on every server), warm up, then
//! rounds. A round gives each server one slice with the same operations. Half-way the connections are opened
//! anew, because one connection is one draw of memory placement
//! (docs/sources/measuring-on-linux.md#restarts-and-connections).

mod cause;
mod collecting;
mod connected;
mod learned;
mod profiled;
mod rotated;
mod waits;

use crate::admin::connect;
use crate::schedule::VisitSchedule;
use crate::site::Home;
use collecting::{Collecting, Sums};
use connected::{Connected, Loss, Present, SliceWork};
use deltabench_model::counter::VisitCounters;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::fact::{CoreSpeed, WarmUp};
use deltabench_model::plan::{CacheState, Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::sampled::SampledStacks;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_observe::unwind::StackReader;
use deltabench_observe::{Postmaster, core_speed, own_affinity, pin_self, pin_tree, restore};
use deltabench_proc::has_ended;
use deltabench_workload::executable::Executable;
use profiled::Profiling;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use cause::Cause;
pub use collecting::statistics;
pub use rotated::{Rotation, TURNS};

/// No answer for this long voids the slice.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that goes down after a crash is gone within this time.
const DYING: Duration = Duration::from_secs(2);

/// How long a visit looks at the speed of its core first.
const CORE_LOOK: Duration = Duration::from_millis(10);

/// Seconds of the shortest visit that does: others would look longer than they measure.
const LOOKED_AT_FROM: f64 = 0.3;

/// Rounds of the shortest visit: a block with fewer than three has no value, and some may be void.
pub const ROUNDS_MIN: u64 = 5;

/// Warm-up of new connections to warm servers, as a share of the asked one: only their own caches are cold.
const RECONNECT_WARMUP: f64 = 0.35;

/// Rounds from this number on are warm-up or calibration; their parameters never meet those of measured ones.
pub const FIRST_WARMUP_ROUND: u32 = 1 << 24;

/// A running server as a visit needs it.
#[derive(Debug, Clone)]
pub struct Address {
    pub endpoint: Endpoint,
    /// How to log in; the search path names the cell's tables.
    pub login: Login,
    /// Its main process, where somebody can tell.
    pub postmaster: Postmaster,
    pub home: Home,
}

impl Address {
    /// Its main process, for work that cannot do without.
    ///
    /// Errors: it is not one that deltabench started.
    pub fn own_pid(&self) -> Result<u32, Problem> {
        self.postmaster.local_pid().ok_or_else(|| {
            Problem::new("this needs a server that deltabench starts")
                .detail("deltabench does not read processes of other servers")
        })
    }

    /// The schema of the tables that the login leads to.
    fn schema(&self) -> &str {
        let named = |(name, _): &&(String, String)| name == "search_path";
        let found = self.login.options.iter().rfind(named);
        found.map_or("", |(_, schema)| schema.as_str())
    }
}

/// A visit to carry out.
pub struct Visit<'a> {
    pub plan: &'a Plan,
    pub block: u32,
    pub cell_id: CellId,
    pub cell: &'a Cell,
    /// Its workload, compiled.
    pub executable: &'a Executable,
    /// The servers, in the plan's order; a pilot has only the first of them.
    pub servers: &'a [Address],
    /// Orders and cores.
    pub schedule: &'a VisitSchedule,
    /// The work of a slice, where it was found out before: by earlier visits, or because caches are cold, and
    /// stay so until measured.
    pub scouted: Option<Scouted>,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
}

/// What [`Visit::scout`], or an earlier visit, found.
#[derive(Debug, Clone, Copy)]
pub struct Scouted {
    work: SliceWork,
    /// Operations that every server has done for it.
    done: u64,
}

/// How a visit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisitEnd {
    /// All rounds are done.
    Complete,
    /// The user wants to stop; the visit does not count.
    Interrupted,
    /// A server was lost in mid-visit; the rounds before count.
    Lost(ServerId, Cause),
}

/// What a visit came to, beside its slices.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitReport {
    pub end: VisitEnd,
    /// Its warm-up; absent if it ended before, and if nobody watched it.
    pub warm_up: Option<WarmUp>,
    /// What was counted on each server; empty where the plan collects nothing, or a server was lost.
    pub counters: Vec<VisitCounters>,
    /// How fast the servers' cores were when it began; absent where they are not this machine's.
    pub core_speed: Option<CoreSpeed>,
    /// What was sampled of each server's time; empty where the plan asks for none.
    pub profiles: Vec<(ServerId, SampledStacks)>,
}

/// What was sampled of each server.
type Profiles = Vec<(ServerId, SampledStacks)>;

/// Receives each slice as it ends.
pub type Sink<'a> = &'a mut dyn FnMut(&Slice) -> Result<(), Problem>;

impl Visit<'_> {
    /// Carries the visit out and hands every measured slice to `sink`. What reads sampled stacks is made
    /// where the plan samples, and kept for the next visit: it takes a tenth of a second.
    ///
    /// Errors: connections that cannot be made, a host that does not let us pin, a sink that fails.
    pub fn carry_out(
        &self,
        sink: Sink<'_>,
        stacks: &mut Option<StackReader>,
    ) -> Result<VisitReport, Problem> {
        let own_cores = own_affinity().map_err(host_problem)?;
        let mut report = VisitReport {
            end: VisitEnd::Complete,
            warm_up: None,
            counters: Vec::new(),
            core_speed: self.core_speed(),
            profiles: Vec::new(),
        };
        let measured = self
            .pin()
            .and_then(|()| self.measure(sink, stacks, &mut report));
        restore(&own_cores).map_err(host_problem)?;
        report.end = match measured {
            // What could not be done because a server is gone is that server's loss, not a failure of the
            // host.
            Err(problem) => match self.dying() {
                Some(server) => VisitEnd::Lost(server, VoidReason::ServerLost.into()),
                None => return Err(problem),
            },
            Ok(end) => end,
        };
        Ok(report)
    }

    /// Finds out the work of a slice and measures nothing, for servers whose caches are emptied afterwards.
    ///
    /// Errors: as [`Visit::carry_out`]; the inner one is a server that was lost.
    pub fn scout(&self) -> Result<Result<Scouted, (ServerId, Cause)>, Problem> {
        let own_cores = own_affinity().map_err(host_problem)?;
        let found = self.pin().and_then(|()| {
            let mut connected = Connected::open(self, self.present(), 0, 0)?;
            let found = connected.calibrate();
            let done = connected.done();
            Ok(found.map(|work| Scouted { work, done }))
        });
        restore(&own_cores).map_err(host_problem)?;
        found.or_else(|problem| match self.dying() {
            Some(server) => Ok(Err((server, VoidReason::ServerLost.into()))),
            None => Err(problem),
        })
    }

    /// The first server whose main process has ended, or does so in a moment: it outlives the backend whose
    /// connection we saw break.
    fn dying(&self) -> Option<ServerId> {
        let until = Instant::now() + DYING;
        loop {
            let dead = self.dead();
            if dead.is_some() {
                return dead;
            }
            if Instant::now() > until {
                return self.unreachable();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The first server of somebody else that cannot be connected to.
    fn unreachable(&self) -> Option<ServerId> {
        ServerId::each()
            .zip(self.servers)
            .filter(|(_, server)| server.postmaster.local_pid().is_none())
            .find(|(_, server)| connect(&server.endpoint, &server.login).is_err())
            .map(|(id, _)| id)
    }

    /// The first server whose main process has ended.
    fn dead(&self) -> Option<ServerId> {
        ServerId::each()
            .zip(self.servers)
            .find(|(_, server)| server.postmaster.local_pid().is_some_and(has_ended))
            .map(|(id, _)| id)
    }

    /// All servers of this visit, with their numbers.
    fn present(&self) -> Vec<Present> {
        ServerId::each().zip(self.servers.iter().cloned()).collect()
    }

    fn pin(&self) -> Result<(), Problem> {
        for server in self.servers {
            self.pin_server(server)?;
        }
        self.pin_client()
    }

    fn pin_server(&self, server: &Address) -> Result<(), Problem> {
        let Some(pid) = server.postmaster.local_pid() else {
            return Ok(());
        };
        if self.schedule.server_cores.is_empty() {
            return Ok(());
        }
        pin_tree(pid, &self.schedule.server_cores)
            .map(drop)
            .map_err(host_problem)
    }

    /// How fast the servers' cores are right now, with no load of ours on them.
    fn core_speed(&self) -> Option<CoreSpeed> {
        let mut servers = self.servers.iter();
        let here = servers.all(|server| server.postmaster.local_pid().is_some());
        if !here || self.plan.timing.visit_seconds < LOOKED_AT_FROM {
            return None;
        }
        if !self.schedule.server_cores.is_empty() {
            pin_self(&self.schedule.server_cores).ok()?;
        }
        Some(core_speed(CORE_LOOK))
    }

    fn pin_client(&self) -> Result<(), Problem> {
        if self.schedule.client_cores.is_empty() {
            return Ok(());
        }
        pin_self(&self.schedule.client_cores).map_err(host_problem)
    }

    /// Connection sets of a visit. From cold there is one: the second would find caches warm.
    fn sets(&self) -> u32 {
        if self.is_cold() {
            return 1;
        }
        self.plan.timing.connections_per_visit.max(1)
    }

    /// The same where the work of a slice is known: one for long operations. New connections would be warmed
    /// up by an operation on each server, a fifth of what is measured.
    fn sets_of(&self, work: SliceWork) -> u32 {
        match self.has_long_operations(work) {
            true => 1,
            false => self.sets(),
        }
    }

    /// Whether one operation takes as long as all of the warm-up, and makes slices longer than was asked for,
    /// unless the user chose the warm-up.
    fn has_long_operations(&self, work: SliceWork) -> bool {
        let timing = &self.plan.timing;
        let each = work.seconds * f64::from(self.cell.clients) / to_f64(work.operations.max(1));
        !timing.warmup_chosen
            && self.cell.rate.is_none()
            && each >= timing.warmup_seconds
            && work.seconds >= 2.0 * self.slice_seconds()
    }

    /// Whether servers may do these slices in turns: an operation takes longer than two slices should.
    fn interleaves(&self, work: SliceWork) -> bool {
        work.seconds >= 2.0 * self.slice_seconds() && self.plan.interleaves(self.cell)
    }

    /// Whether what is asked for is the time before anything is warm.
    fn is_cold(&self) -> bool {
        self.plan.cache == CacheState::Cold
    }

    /// Seconds that a slice should take.
    fn slice_seconds(&self) -> f64 {
        f64::from(self.plan.timing.slice_ms) / 1e3
    }

    /// Rounds of a visit whose slices take so many seconds.
    fn rounds(&self, slice_seconds: f64) -> u32 {
        let rounds = to_u64(self.plan.timing.visit_of(self.cell) / slice_seconds)
            .max(ROUNDS_MIN)
            .max(u64::from(self.sets()));
        u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    fn measure(
        &self,
        sink: Sink<'_>,
        stacks: &mut Option<StackReader>,
        report: &mut VisitReport,
    ) -> Result<VisitEnd, Problem> {
        let mut collecting = Collecting::new(self, &self.present());
        if self.is_cold() && self.scouted.is_none() {
            return Err(Problem::new(
                "a visit from cold caches was not scouted before",
            ));
        }
        let mut known = self.scouted.map(|scouted| scouted.work);
        let mut done = self.scouted.map_or(0, |scouted| scouted.done);
        collecting.before();
        for set in 0..self.sets() {
            if known.is_some_and(|work| set >= self.sets_of(work)) {
                break;
            }
            let mut connected = Connected::open(self, self.present(), set, done)?;
            collecting.connected();
            let end = self.connection_set(set, &mut connected, &mut known, sink, report)?;
            if end != VisitEnd::Complete {
                return Ok(end);
            }
            collecting.disconnecting(&Sums {
                operations: connected.done() - done,
                device: connected.device().clone(),
            });
            done = connected.done();
        }
        collecting.after();
        // Over connections of their own, when everything is counted: asking costs the servers CPU.
        if let Some(work) = known.filter(|_| self.plan.observing.waits_per_second > 0) {
            let mut connected = Connected::open(self, self.present(), self.sets(), done)?;
            match connected.wait_slices(work, self.servers) {
                Ok(waits) => collecting.waits(waits),
                Err((server, reason)) => return Ok(VisitEnd::Lost(server, reason)),
            }
            done = connected.done();
        }
        if let Some(work) = known {
            match self.profiled(work, done, stacks)? {
                Ok(profiles) => report.profiles = profiles,
                Err((server, reason)) => return Ok(VisitEnd::Lost(server, reason)),
            }
        }
        report.counters = collecting.finish(self);
        Ok(VisitEnd::Complete)
    }

    /// Samples where the time of the servers goes, over connections of their own.
    fn profiled(
        &self,
        work: SliceWork,
        done: u64,
        stacks: &mut Option<StackReader>,
    ) -> Result<Result<Profiles, Loss>, Problem> {
        let Some(plan) = self.plan.observing.profile else {
            return Ok(Ok(Profiles::new()));
        };
        let mut pids = Vec::with_capacity(self.servers.len());
        for (server, address) in self.present() {
            pids.push((server, address.own_pid()?));
        }
        let mut connected = Connected::open(self, self.present(), self.sets() + 1, done)?;
        if let Err(loss) = connected.warm_for(work, RECONNECT_WARMUP) {
            return Ok(Err(loss));
        }
        let cores = match self.schedule.server_cores.as_slice() {
            [] => own_affinity().map_err(host_problem)?,
            pinned => pinned.to_vec(),
        };
        let reader = stacks.get_or_insert_default();
        let mut profiling = Profiling::open(plan, &cores, &pids, work.seconds, reader)?;
        let sampled = connected.profile_slices(work, &mut profiling)?;
        // Of samples that were cut short nothing is kept; the slices that count are all there.
        Ok(sampled.map(|whole| match whole {
            true => profiling.finish(),
            false => Profiles::new(),
        }))
    }

    /// The rounds of one set of connections; the first one also finds out the work of a slice.
    fn connection_set(
        &self,
        set: u32,
        connected: &mut Connected<'_, '_>,
        known: &mut Option<SliceWork>,
        sink: Sink<'_>,
        report: &mut VisitReport,
    ) -> Result<VisitEnd, Problem> {
        let warm = match *known {
            Some(found) if self.is_cold() => Ok((found, None)),
            known if set == 0 => known
                .map_or_else(|| connected.calibrate(), Ok)
                .and_then(|found| Ok((found, connected.warm_up(found)?))),
            None => return Err(Problem::new("a visit does not know the work of its slices")),
            Some(found) => connected
                .warm_for(found, RECONNECT_WARMUP)
                .map(|()| (found, None)),
        };
        let work: SliceWork = match warm {
            Ok((found, warmth)) => {
                report.warm_up = warmth.or(report.warm_up.take());
                *known.insert(connected.decided(found))
            }
            Err((server, reason)) => return Ok(VisitEnd::Lost(server, reason)),
        };
        let (sets, rounds) = (self.sets_of(work), self.rounds(work.seconds));
        for round in (0..rounds).filter(|round| round * sets / rounds == set) {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(VisitEnd::Interrupted);
            }
            if let Some((server, reason)) = connected.round(round, work, sink)? {
                return Ok(VisitEnd::Lost(server, reason));
            }
        }
        Ok(VisitEnd::Complete)
    }
}

/// That the host does not let us look.
pub fn host_problem(error: impl std::fmt::Display) -> Problem {
    Problem::new("the host does not allow deltabench to observe or pin a server")
        .detail(error.to_string())
}

/// Whether a process has ended, or does so in a moment: a main process outlives the backend whose connection
/// broke.
pub fn is_dying(pid: u32) -> bool {
    let until = Instant::now() + DYING;
    while !has_ended(pid) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
