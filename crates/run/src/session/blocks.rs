//! The blocks: which cells are still open, their visits, and what is lost on the way.

use super::observed::{now_ns, postmasters};
use super::{LOSSES_MAX, Session, SessionEnd, store_problem};
use crate::events::BlockProgress;
use crate::fleet::Fleet;
use crate::load::address_for;
use crate::planning::settles_before;
use crate::residence::Residence;
use crate::schedule::{BlockSchedule, VisitSchedule};
use crate::visit::{Address, Cause, Rotation, Scouted, Visit, VisitEnd, VisitReport};
use deltabench_compare::{CellProgress, analyse, progress};
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::plan::{CacheState, Cell, CellId, CellOrder, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::{count, index, to_f64};
use deltabench_observe::{MachineSources, Meters, Postmaster, Series, SliceMeters};
use deltabench_workload::Chore;
use deltabench_workload::executable::Executable;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The fact that a run ended by its time and not by its plan: the number of its blocks.
pub const TIME_UP: &str = "time_up";

/// What the blocks need beside the session itself.
pub(super) struct Measuring<'f, 'p> {
    pub(super) fleet: &'f mut Fleet<'p>,
    /// The one-second series; absent where nothing is collected.
    pub(super) series: Option<Series>,
    pub(super) executables: Vec<Executable>,
    pub(super) cores: Vec<usize>,
    pub(super) course: Course,
    pub(super) cpu_source_known: bool,
}

impl AsMut<Course> for Measuring<'_, '_> {
    fn as_mut(&mut self) -> &mut Course {
        &mut self.course
    }
}

/// How far a run is that has visits.
pub(super) struct Course {
    /// Visits that are done, or given up.
    pub(super) done: HashSet<(u32, CellId)>,
    /// All slices of the run so far, in block order.
    pub(super) slices: Vec<Slice>,
    pace: Pace,
    pub(super) losses: u32,
    /// Start of the session, set-up included.
    began: Instant,
}

impl Course {
    /// That of a run with these visits and slices, in a session that began then.
    pub(super) fn new(done: Vec<(u32, CellId)>, slices: Vec<Slice>, began: Instant) -> Self {
        Self {
            done: done.into_iter().collect(),
            slices,
            pace: Pace::default(),
            losses: 0,
            began,
        }
    }

    /// Notes that a visit is done that began then.
    pub(super) fn visited(&mut self, block: u32, cell: CellId, started: Instant) {
        self.done.insert((block, cell));
        self.pace.visits += 1;
        self.pace.visit_seconds += started.elapsed().as_secs_f64();
    }

    /// Whether a block has cells to visit among those that are open in it.
    fn has_left(&self, block: u32, open: &[CellId]) -> bool {
        open.iter().any(|cell| !self.done.contains(&(block, *cell)))
    }
}

/// Measures the open cells of a block, until all are done or a server is lost; how the session ended, if it
/// did.
pub(super) type Block<S, M> =
    fn(&mut S, u32, &[CellId], &mut M) -> Result<Option<SessionEnd>, Problem>;

/// What blocks and visits of this session have taken.
#[derive(Debug, Default)]
struct Pace {
    blocks: u32,
    block_seconds: f64,
    visits: u32,
    visit_seconds: f64,
}

impl Pace {
    /// Seconds that `visits` more visits in `blocks` more blocks will take.
    fn forecast(&self, blocks: u32, visits: u64) -> f64 {
        let each = self.visit_seconds / f64::from(self.visits.max(1));
        let overhead = (self.block_seconds - self.visit_seconds) / f64::from(self.blocks.max(1));
        f64::from(blocks) * overhead + to_f64(visits) * each
    }
}

/// What came of looking at a cell before its caches are emptied.
enum Scouting {
    /// What was found; nothing where nothing is emptied.
    Done(Option<Scouted>),
    /// A server was lost.
    Lost(ServerId, Cause),
}

/// A server that was lost.
pub(super) struct Loss {
    /// In words, with the place.
    pub(super) told: String,
    /// The end of its log.
    pub(super) tail: String,
    /// What is missing for it.
    pub(super) void: &'static str,
    /// What to say if it was one too many.
    pub(super) give_up: Problem,
}

/// Before or after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

impl Session<'_> {
    /// The cells that `block` measures: those without an answer from the blocks before it.
    ///
    /// It depends on stored slices only, so a resumed run goes the way it would have gone.
    pub(super) fn open_cells(&self, block: u32, slices: &[Slice]) -> Vec<CellId> {
        let known = slices.partition_point(|slice| slice.block < block);
        let before = slices.get(..known).unwrap_or_default();
        (0..)
            .zip(progress(self.plan, before))
            .filter(|(_, state)| *state != CellProgress::Decided)
            .map(|(cell, _)| cell)
            .collect()
    }

    /// Goes through all blocks in which a cell is still open.
    pub(super) fn blocks<M: AsMut<Course>>(
        &mut self,
        measuring: &mut M,
        one: Block<Self, M>,
    ) -> Result<SessionEnd, Problem> {
        for block in 0.. {
            let open = self.open_cells(block, &measuring.as_mut().slices);
            if open.is_empty() {
                break;
            }
            if !measuring.as_mut().has_left(block, &open) {
                continue;
            }
            let started = Instant::now();
            while measuring.as_mut().has_left(block, &open) {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Ok(SessionEnd::Interrupted);
                }
                if let Some(end) = one(self, block, &open, measuring)? {
                    return Ok(end);
                }
            }
            let last = started.elapsed().as_secs_f64();
            let course = measuring.as_mut();
            course.pace.blocks += 1;
            course.pace.block_seconds += last;
            self.report(block, course)?;
            let elapsed = course.began.elapsed().as_secs_f64();
            let deadline = self.plan.timing.deadline_seconds;
            if deadline.is_some_and(|deadline| elapsed + last > deadline) {
                self.observer.note("the time is up");
                // Known before any result of it: the last look is at what there is.
                self.fact(None, TIME_UP, &(block + 1).into())?;
                break;
            }
        }
        Ok(SessionEnd::Finished)
    }

    /// Starts the servers and visits the block's open cells.
    pub(super) fn block(
        &mut self,
        block: u32,
        open: &[CellId],
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<Option<SessionEnd>, Problem> {
        let mut schedule = BlockSchedule::of(self.plan, block);
        schedule.cells.retain(|cell| open.contains(cell));
        let schedule = &schedule;
        let began_ns = now_ns();
        let addresses = match measuring.fleet.residence() {
            Residence::Together => measuring.fleet.start(schedule)?,
            Residence::Rotated => Vec::new(),
        };
        self.block_starts(block, &addresses, measuring)?;
        self.record_cpu_source(&addresses, measuring)?;
        let end = self.cells(block, schedule, addresses, measuring)?;
        let stopped = measuring.fleet.stop();
        self.block_ended(began_ns, schedule, measuring)?;
        match end {
            VisitEnd::Complete => stopped.map(|()| None),
            VisitEnd::Interrupted => stopped.map(|()| Some(SessionEnd::Interrupted)),
            // The loss has been told; that the lost server does not stop cleanly is no news.
            VisitEnd::Lost(..) => Ok(None),
        }
    }

    /// Visits the block's open cells on running servers, until all are done or one ends otherwise.
    fn cells(
        &mut self,
        block: u32,
        schedule: &BlockSchedule,
        mut addresses: Vec<Address>,
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<VisitEnd, Problem> {
        let planned = u32::try_from(schedule.cells.len()).unwrap_or(u32::MAX);
        let published = self.plan.order == CellOrder::Published;
        let mut renewed = false;
        for (number, &cell) in (1..).zip(&schedule.cells) {
            let done = measuring.course.done.contains(&(block, cell));
            // In the published order a cell runs on what those before it have left, so a resumed block is
            // gone through from its start.
            if done && !published {
                continue;
            }
            let started = Instant::now();
            let wanted = !published || !renewed;
            if wanted && !addresses.is_empty() {
                renewed = self.renew(cell, schedule, measuring)?;
            }
            self.chores(cell, Moment::Before, schedule, measuring)?;
            let end = match self.scout((block, cell), &addresses, measuring)? {
                Scouting::Lost(server, reason) => VisitEnd::Lost(server, reason),
                Scouting::Done(scouted) => {
                    self.prepare_caches(cell, schedule, &mut addresses, measuring)?;
                    let place = (block, cell);
                    self.visit(place, done, schedule, &addresses, scouted, measuring)?
                }
            };
            match &end {
                VisitEnd::Interrupted => return Ok(end),
                VisitEnd::Complete => {
                    self.chores(cell, Moment::After, schedule, measuring)?;
                    measuring.course.visited(block, cell, started);
                    self.observer.visit(block, number, planned);
                }
                VisitEnd::Lost(server, reason) => {
                    measuring.course.done.insert((block, cell));
                    let place = (block, cell, *server);
                    let losses = &mut measuring.course.losses;
                    self.note_loss(place, reason, schedule, measuring.fleet, losses)?;
                    return Ok(end);
                }
            }
        }
        Ok(VisitEnd::Complete)
    }

    /// Gives a cell that writes tables nobody has written to, on every server. In the published order all
    /// cells share those tables, and one renewal at the start of the block is for all of them.
    fn renew(
        &self,
        cell: CellId,
        schedule: &BlockSchedule,
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<bool, Problem> {
        let published = self.plan.order == CellOrder::Published;
        let Some(cell) = self.plan.cells.get(index(u64::from(cell))) else {
            return Ok(false);
        };
        if !cell.writes && !published {
            return Ok(false);
        }
        for server in (0..).take(self.plan.servers.len()) {
            measuring.fleet.renew(schedule, server, cell)?;
        }
        Ok(true)
    }

    /// Gives every server the caches that the plan wants at the start of a visit; a server that was restarted
    /// for it has a new address.
    fn prepare_caches(
        &self,
        cell: CellId,
        schedule: &BlockSchedule,
        addresses: &mut [Address],
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<(), Problem> {
        let Some(cell) = self.plan.cells.get(index(u64::from(cell))) else {
            return Ok(());
        };
        for (server, address) in (0..).zip(addresses.iter_mut()) {
            if let Some(new) = measuring.fleet.prepare_caches(schedule, server, cell)? {
                *address = new;
            }
        }
        if let Some(series) = &mut measuring.series {
            series.set_servers(&postmasters(addresses));
        }
        Ok(())
    }

    /// What the cell's definition, or the published order, wants done on every server around its visit.
    fn chores(
        &self,
        id: CellId,
        moment: Moment,
        schedule: &BlockSchedule,
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<(), Problem> {
        let Some(cell) = self.plan.cells.get(index(u64::from(id))) else {
            return Ok(());
        };
        let fleet = &mut *measuring.fleet;
        // Servers that are there one at a time do theirs when they start and stop (`RotatingFleet`).
        if fleet.residence() == Residence::Rotated {
            return Ok(());
        }
        let servers: Vec<ServerId> = (0..).take(self.plan.servers.len()).collect();
        let stop = self.interrupted;
        match moment {
            Moment::Before => {
                if self.plan.order == CellOrder::Published && settles_before(self.plan, id) {
                    fleet.run_admin(schedule, &servers, cell, &[Chore::Settle], stop)?;
                }
                fleet.before_visit(schedule, &servers, cell, stop)
            }
            Moment::After => fleet.after_visit(schedule, &servers, cell, stop),
        }
    }

    /// Stores, once a session, where the CPU figures come from.
    fn record_cpu_source(
        &mut self,
        addresses: &[Address],
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<(), Problem> {
        if measuring.cpu_source_known {
            return Ok(());
        }
        let postmasters: Vec<Postmaster> = addresses
            .iter()
            .map(|address| address.postmaster.clone())
            .collect();
        let opened = match measuring.fleet.residence() {
            Residence::Together => Meters::open(&postmasters, false).map(|meters| meters.sources()),
            // None of them is there yet.
            Residence::Rotated => SliceMeters::open(&[]).map(|meters| {
                let sources = meters.sources();
                vec![MachineSources {
                    host: None,
                    sources,
                }]
            }),
        };
        let sources = opened.map_err(|error| {
            Problem::new("the CPU time of servers cannot be read on this host")
                .detail(error.to_string())
        })?;
        measuring.cpu_source_known = true;
        self.fact(
            None,
            "meter_sources",
            &serde_json::to_value(&sources).unwrap_or_default(),
        )
    }

    /// Finds out the work of a slice of a cell before its caches are emptied. Servers that are there one at a
    /// time are emptied as they start.
    fn scout(
        &self,
        (block, cell_id): (u32, CellId),
        addresses: &[Address],
        measuring: &Measuring<'_, '_>,
    ) -> Result<Scouting, Problem> {
        let place = index(u64::from(cell_id));
        let (Some(cell), Some(executable)) =
            (self.plan.cells.get(place), measuring.executables.get(place))
        else {
            return Ok(Scouting::Done(None));
        };
        if self.plan.cache != CacheState::Cold || addresses.is_empty() {
            return Ok(Scouting::Done(None));
        }
        let schedule = VisitSchedule::of(self.plan, block, cell_id, cell, &measuring.cores);
        let servers = self.addresses_for(cell, addresses);
        let visit = Visit {
            plan: self.plan,
            block,
            cell_id,
            cell,
            executable,
            servers: &servers,
            schedule: &schedule,
            scouted: None,
            interrupted: self.interrupted,
        };
        Ok(match visit.scout()? {
            Ok(scouted) => Scouting::Done(Some(scouted)),
            Err((server, reason)) => Scouting::Lost(server, reason),
        })
    }

    fn addresses_for(&self, cell: &Cell, addresses: &[Address]) -> Vec<Address> {
        addresses
            .iter()
            .map(|address| address_for(address, self.plan.order, cell))
            .collect()
    }

    /// Visits a cell and stores what it finds, unless it `repeats` a visit that is stored already.
    fn visit(
        &mut self,
        (block, cell_id): (u32, CellId),
        repeats: bool,
        block_schedule: &BlockSchedule,
        addresses: &[Address],
        scouted: Option<Scouted>,
        measuring: &mut Measuring<'_, '_>,
    ) -> Result<VisitEnd, Problem> {
        let place = index(u64::from(cell_id));
        let (Some(cell), Some(executable)) =
            (self.plan.cells.get(place), measuring.executables.get(place))
        else {
            return Err(Problem::new(format!("the plan has no cell {cell_id}")));
        };
        let schedule = VisitSchedule::of(self.plan, block, cell_id, cell, &measuring.cores);
        let servers = self.addresses_for(cell, addresses);
        let visit = Visit {
            plan: self.plan,
            block,
            cell_id,
            cell,
            executable,
            servers: &servers,
            schedule: &schedule,
            scouted,
            interrupted: self.interrupted,
        };
        let (store, run) = (&mut *self.store, self.run);
        if !repeats {
            store
                .begin_visit(run, cell_id, block)
                .map_err(store_problem)?;
        }
        let mut taken = Vec::new();
        let mut sink = |slice: &Slice| {
            if repeats {
                return Ok(());
            }
            taken.push(slice.clone());
            store.append(run, slice).map_err(store_problem)
        };
        let report = match measuring.fleet.residence() {
            Residence::Together => visit.carry_out(&mut sink),
            Residence::Rotated => {
                let mut rotation = RotatingFleet {
                    fleet: &mut *measuring.fleet,
                    schedule: block_schedule,
                    order: self.plan.order,
                    cell,
                    interrupted: self.interrupted,
                    cold: self.plan.cache == CacheState::Cold,
                };
                visit.carry_out_rotated(&mut rotation, &mut sink)
            }
        };
        if repeats {
            return report.map(|report| report.end);
        }
        let end = self.keep_visit(block, cell_id, report, measuring.series.as_mut())?;
        self.tell_news(measuring.fleet)?;
        if end != VisitEnd::Interrupted {
            measuring.course.slices.append(&mut taken);
        }
        Ok(end)
    }

    /// Makes a visit durable with its warm-up, or forgets it.
    pub(super) fn keep_visit(
        &mut self,
        block: u32,
        cell: CellId,
        report: Result<VisitReport, Problem>,
        series: Option<&mut Series>,
    ) -> Result<VisitEnd, Problem> {
        match report {
            Ok(VisitReport {
                end: end @ (VisitEnd::Complete | VisitEnd::Lost(..)),
                warm_up,
                counters,
                core_speed,
            }) => {
                self.keep_observed(&counters, series)?;
                let (store, run) = (&mut *self.store, self.run);
                let value = serde_json::json!({
                    "cell": cell, "warm_up": warm_up, "core_speed": core_speed,
                })
                .to_string();
                store
                    .add_facts(run, None, Some(block), "warm_up", &value)
                    .and_then(|()| store.commit_visit(run, cell, block))
                    .map_err(store_problem)?;
                Ok(end)
            }
            other => {
                self.store.abandon_visit().map_err(store_problem)?;
                other.map(|report| report.end)
            }
        }
    }

    /// Tells, and stores, that a server was lost in a cell of a block, and counts it.
    ///
    /// Errors: it was one loss too many.
    pub(super) fn note_loss(
        &mut self,
        (block, cell, server): (u32, CellId, ServerId),
        cause: &Cause,
        schedule: &BlockSchedule,
        fleet: &Fleet<'_>,
        losses: &mut u32,
    ) -> Result<(), Problem> {
        let name = self.plan.server_name(server);
        let workload = self
            .plan
            .cells
            .get(index(u64::from(cell)))
            .map_or("?", |cell| cell.workload.as_str());
        let killed = fleet.killed_by_limit(schedule, server);
        let place = format!("in block {block} at {workload}");
        let told = cause.told(&name, &place, &killed.unwrap_or_default());
        // What a server refuses is no news of the server.
        let failing = cause.reason == VoidReason::NothingDone && cause.detail.is_some();
        let tail = if failing {
            String::new()
        } else {
            fleet.log_tail(schedule, server)
        };
        let log = if tail.is_empty() {
            String::new()
        } else {
            format!("; its log ends:\n{tail}")
        };
        self.observer.note(&format!("{told}{log}"));
        let what = if failing {
            format!("nothing of {workload} succeeded; giving up")
        } else {
            format!("servers were lost {LOSSES_MAX} times; giving up")
        };
        let hint = cause
            .hint()
            .unwrap_or("what was measured is kept: `deltabench report` shows it");
        let loss = Loss {
            told,
            tail,
            void: "that slice is void",
            give_up: Problem::new(what).hint(hint),
        };
        self.count_loss(loss, losses)
    }

    /// Stores that a server was lost, and counts it.
    ///
    /// Errors: it was one loss too many.
    pub(super) fn count_loss(&mut self, loss: Loss, losses: &mut u32) -> Result<(), Problem> {
        *losses += 1;
        let text = format!("{}; {}", loss.told, loss.void);
        let finding = Finding::new("server-lost", Severity::Confounder, text.clone());
        self.store
            .add_finding(self.run, &finding)
            .map_err(store_problem)?;
        if *losses >= LOSSES_MAX {
            let detail = format!("{text}\n{}", loss.tail);
            return Err(loss.give_up.detail(detail.trim_end()));
        }
        Ok(())
    }

    fn report(&mut self, block: u32, course: &Course) -> Result<(), Problem> {
        let findings = self.store.findings(self.run).map_err(store_problem)?;
        let open = self.open_cells(block + 1, &course.slices);
        let left = self.plan.timing.blocks.saturating_sub(block + 1).max(1);
        let visits = u64::from(left) * count(open.len());
        let remaining = if open.is_empty() {
            0.0
        } else {
            let deadline = self.plan.timing.deadline_seconds.unwrap_or(f64::INFINITY);
            let allowed = (deadline - course.began.elapsed().as_secs_f64()).max(0.0);
            course.pace.forecast(left, visits).min(allowed)
        };
        self.observer.block(&BlockProgress {
            done: block + 1,
            planned: self.plan.timing.blocks,
            open_cells: u32::try_from(open.len()).unwrap_or(u32::MAX),
            cells: u32::try_from(self.plan.cells.len()).unwrap_or(u32::MAX),
            elapsed_seconds: course.began.elapsed().as_secs_f64(),
            remaining_seconds: remaining,
            passes: None,
            comparison: (!course.slices.is_empty())
                .then(|| analyse(self.plan, &course.slices, findings)),
        });
        Ok(())
    }
}

/// The fleet, one server at a time.
struct RotatingFleet<'a, 'p> {
    fleet: &'a mut Fleet<'p>,
    schedule: &'a BlockSchedule,
    order: CellOrder,
    cell: &'a Cell,
    interrupted: &'a AtomicBool,
    /// Whether servers start with empty caches.
    cold: bool,
}

impl Rotation for RotatingFleet<'_, '_> {
    fn start(&mut self, server: ServerId, fresh: bool) -> Result<Address, Problem> {
        let mut address = self.fleet.start_one(self.schedule, server)?;
        let writes = self.cell.writes || self.order == CellOrder::Published;
        if self.cold {
            if fresh {
                if writes {
                    self.fleet.renew(self.schedule, server, self.cell)?;
                }
                self.fleet
                    .before_visit(self.schedule, &[server], self.cell, self.interrupted)?;
                // Starting empties the caches again.
                self.fleet.stop_one(self.schedule, server)?;
                address = self.fleet.start_one(self.schedule, server)?;
            }
            return Ok(address_for(&address, self.order, self.cell));
        }
        if writes && fresh {
            self.fleet.renew(self.schedule, server, self.cell)?;
        } else if writes {
            self.fleet.warm(self.schedule, server, self.cell)?;
        }
        if fresh {
            self.fleet
                .before_visit(self.schedule, &[server], self.cell, self.interrupted)?;
        }
        Ok(address_for(&address, self.order, self.cell))
    }

    fn stop(&mut self, server: ServerId, last: bool) -> Result<(), Problem> {
        if last {
            self.fleet
                .after_visit(self.schedule, &[server], self.cell, self.interrupted)?;
        }
        self.fleet.stop_one(self.schedule, server)
    }
}
