//! A block of workloads: which cells are visited on running servers, and what is done around their visits.

use super::background;
use super::cells::settles_before;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CacheState, Cell, CellId, CellOrder, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_observe::unwind::StackReader;
use deltabench_observe::{
    MachineSources, Metered, Meters, ObserveError, Postmaster, Series, SliceMeters, own_affinity,
};
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::clock::now_ns;
use deltabench_run::executables::compile;
use deltabench_run::facts::Sources;
use deltabench_run::fleet::{Background, Fleet};
use deltabench_run::load::address_for;
use deltabench_run::occupancy::Occupancy;
use deltabench_run::schedule::{BlockSchedule, VisitSchedule};
use deltabench_run::session::{
    BlockOrder, RunProgress, Session, SessionEnd, postmasters, series, store_problem,
};
use deltabench_run::visit::{Address, Cause, Rotation, Scouted, Visit, VisitEnd};
use deltabench_workload::Chore;
use deltabench_workload::executable::Executable;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the blocks need beside the session itself.
pub(crate) struct BlockState<'p> {
    fleet: Fleet<'p>,
    /// What the host was before.
    host: HostFacts,
    executables: Vec<Executable>,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
    cores: Vec<usize>,
    cpu_source_known: bool,
    /// What reads sampled stacks; absent before the first sampled visit.
    stacks: Option<StackReader>,
    /// Whether the time was up before all cells of a block were visited.
    overdue: bool,
}

/// What came of looking at a cell before its caches are emptied.
enum Scouting {
    /// What was found; nothing where nothing is emptied.
    Done(Option<Scouted>),
    Lost(ServerId, Cause),
}

/// Before or after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// A visit to a cell on running servers.
#[derive(Clone, Copy)]
struct Placed<'a> {
    place: (u32, CellId),
    /// Whether a visit there is stored already.
    repeats: bool,
    schedule: &'a BlockSchedule,
    addresses: &'a [Address],
    scouted: Option<Scouted>,
}

impl<'p> BlockState<'p> {
    /// Empty servers, and the workloads compiled.
    pub(crate) fn create(session: &mut Session<'p>) -> Result<Self, Problem> {
        let executables = compile(session.plan, session.library)?;
        let (fleet, host) = session.fleet()?;
        Ok(Self {
            fleet,
            host,
            executables,
            series: None,
            cores: Vec::new(),
            cpu_source_known: false,
            stacks: None,
            overdue: false,
        })
    }
}

impl Blocks for BlockState<'_> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.load(&mut self.fleet, &self.executables, &self.host)?;
        self.series = series(session.plan, self.fleet.directory());
        self.cores = own_affinity().unwrap_or_default();
        Ok(())
    }

    /// Starts the servers and visits the block's open cells.
    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, open }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        let mut schedule = BlockSchedule::of(session.plan, block);
        schedule.cells.retain(|cell| open.contains(cell));
        let schedule = &schedule;
        let began_ns = now_ns();
        let addresses = match self.fleet.occupancy() {
            Occupancy::Together => self.fleet.start(schedule)?,
            Occupancy::Rotated => Vec::new(),
        };
        if let Some(series) = &mut self.series {
            series.set_servers(&postmasters(&addresses));
            session.mark_block(format!("block {}", block + 1))?;
        }
        self.record_cpu_source(session, &addresses)?;
        let end = self.cells(session, (block, schedule), addresses, progress)?;
        let stopped = self.fleet.stop();
        if let Some(series) = &mut self.series {
            series.set_servers(&[]);
        }
        let servers: Vec<ServerId> = ServerId::each().take(session.plan.servers.len()).collect();
        session.keep_marks(began_ns, schedule, &servers, &self.fleet)?;
        match end {
            VisitEnd::Complete if self.overdue => stopped.map(|()| BlockEnd::TimeUp),
            VisitEnd::Complete => stopped.map(|()| BlockEnd::GoneThrough),
            // Who ended us may have ended the servers too, and before us.
            VisitEnd::Interrupted => Ok(BlockEnd::Interrupted),
            // The loss has been told; that the lost server does not stop cleanly is no news.
            VisitEnd::Lost(..) => Ok(BlockEnd::GoneThrough),
        }
    }

    fn conclude(
        &mut self,
        session: &mut Session<'_>,
        end: &Result<SessionEnd, Problem>,
    ) -> Result<(), Problem> {
        session.conclude_servers(&self.fleet, matches!(end, Ok(SessionEnd::Finished)))
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        self.fleet.dismantle()
    }
}

impl BlockState<'_> {
    /// Visits the block's open cells on running servers, until all are done or one ends otherwise.
    fn cells(
        &mut self,
        session: &mut Session<'_>,
        (block, schedule): (u32, &BlockSchedule),
        mut addresses: Vec<Address>,
        progress: &mut RunProgress,
    ) -> Result<VisitEnd, Problem> {
        let planned = u32::try_from(schedule.cells.len()).unwrap_or(u32::MAX);
        let published = session.plan.order == CellOrder::Published;
        let (mut renewed, began) = (false, session.clock.now());
        for (number, &cell) in (1..).zip(&schedule.cells) {
            let done = progress.is_done(block, cell);
            // In the published order a cell runs on what those before it have left, so a resumed block is
            // gone through from its start.
            if done && !published {
                continue;
            }
            if session.interrupted.load(Ordering::Relaxed) {
                return Ok(VisitEnd::Interrupted);
            }
            if session.is_overdue(began) {
                self.overdue = true;
                return Ok(VisitEnd::Complete);
            }
            session.doing(cell);
            let started = session.clock.now();
            let wanted = !published || !renewed;
            if wanted && !addresses.is_empty() {
                renewed = self.renew(session, cell, schedule)?;
            }
            self.chores(session, cell, Moment::Before, schedule)?;
            let end = match self.scout(session, (block, cell), &addresses)? {
                Scouting::Lost(server, reason) => VisitEnd::Lost(server, reason),
                Scouting::Done(scouted) => {
                    self.prepare_caches(session, cell, schedule, &mut addresses)?;
                    let placed = Placed {
                        place: (block, cell),
                        repeats: done,
                        schedule,
                        addresses: &addresses,
                        scouted,
                    };
                    self.visit(session, placed, progress)?
                }
            };
            match &end {
                VisitEnd::Interrupted => return Ok(end),
                VisitEnd::Complete => {
                    self.look_for_losses(session, (block, cell), schedule)?;
                    self.chores(session, cell, Moment::After, schedule)?;
                    self.forget_cached(session, schedule)?;
                    progress.visited((block, cell), started, session.clock);
                    session.observer.visit(block, number, planned);
                }
                VisitEnd::Lost(..) if session.ends_now() => return Ok(VisitEnd::Interrupted),
                VisitEnd::Lost(server, reason) => {
                    progress.set_done(block, cell);
                    let place = (block, cell, *server);
                    session.note_loss(place, reason, schedule, &self.fleet, progress)?;
                    return Ok(end);
                }
            }
        }
        Ok(VisitEnd::Complete)
    }

    /// Gives a cell that writes tables nobody has written to, on every server. In the published order all
    /// cells share those tables, and one renewal at the start of the block is for all of them.
    fn renew(
        &mut self,
        session: &mut Session<'_>,
        cell: CellId,
        schedule: &BlockSchedule,
    ) -> Result<bool, Problem> {
        let published = session.plan.order == CellOrder::Published;
        let Some(planned) = session.plan.cell(cell) else {
            return Ok(false);
        };
        if !planned.writes && !published {
            return Ok(false);
        }
        let servers: Vec<_> = ServerId::each().take(session.plan.servers.len()).collect();
        self.fleet.renew_all(schedule, &servers, (cell, planned))?;
        Ok(true)
    }

    /// Drops the tables of a cell that was visited where no disk has seen them.
    fn forget_cached(
        &self,
        session: &Session<'_>,
        schedule: &BlockSchedule,
    ) -> Result<(), Problem> {
        let servers: Vec<_> = ServerId::each().take(session.plan.servers.len()).collect();
        self.fleet.forget_cached(schedule, &servers)
    }

    /// Asks every server whether what its kind promises of the tables holds after a visit that wrote, in the
    /// first block. Servers that are there one at a time are asked before they stop.
    fn look_for_losses(
        &mut self,
        session: &mut Session<'_>,
        (block, cell): (u32, CellId),
        schedule: &BlockSchedule,
    ) -> Result<(), Problem> {
        let asked = is_looked_at(block) && self.fleet.occupancy() == Occupancy::Together;
        let Some(planned) = session.plan.cell(cell).filter(|cell| cell.writes && asked) else {
            return Ok(());
        };
        let mut lost = Vec::new();
        for server in ServerId::each().take(session.plan.servers.len()) {
            let broken = self.fleet.broken(schedule, server, planned)?;
            lost.push((server, broken));
        }
        tell_losses(session, (block, planned), &lost)
    }

    /// Gives every server the caches that the plan wants at the start of a visit; a server that was restarted
    /// for it has a new address.
    fn prepare_caches(
        &mut self,
        session: &mut Session<'_>,
        cell: CellId,
        schedule: &BlockSchedule,
        addresses: &mut [Address],
    ) -> Result<(), Problem> {
        let Some(cell) = session.plan.cell(cell) else {
            return Ok(());
        };
        for (server, address) in ServerId::each().zip(addresses.iter_mut()) {
            if let Some(new) = self.fleet.prepare_caches(schedule, server, cell)? {
                *address = new;
            }
        }
        if let Some(series) = &mut self.series {
            series.set_servers(&postmasters(addresses));
        }
        Ok(())
    }

    /// What the cell's definition, or the published order, wants done on every server around its visit.
    fn chores(
        &mut self,
        session: &mut Session<'_>,
        id: CellId,
        moment: Moment,
        schedule: &BlockSchedule,
    ) -> Result<(), Problem> {
        let Some(cell) = session.plan.cell(id) else {
            return Ok(());
        };
        let fleet = &mut self.fleet;
        // Servers that are there one at a time do theirs when they start and stop (`RotatingFleet`).
        if fleet.occupancy() == Occupancy::Rotated {
            return Ok(());
        }
        let servers: Vec<ServerId> = ServerId::each().take(session.plan.servers.len()).collect();
        let stop = session.interrupted;
        match moment {
            Moment::Before => {
                if session.plan.order == CellOrder::Published && settles_before(session.plan, id) {
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
        session: &mut Session<'_>,
        addresses: &[Address],
    ) -> Result<(), Problem> {
        if self.cpu_source_known {
            return Ok(());
        }
        let postmasters: Vec<Postmaster> = addresses
            .iter()
            .map(|address| address.postmaster.clone())
            .collect();
        let opened = match self.fleet.occupancy() {
            Occupancy::Together => self.sources(&postmasters),
            // None of them is there yet.
            Occupancy::Rotated => SliceMeters::open(&[]).map(|meters| {
                let sources = meters.sources();
                vec![MachineSources {
                    host: None,
                    short_lived: false,
                    sources,
                }]
            }),
        };
        let sources = opened.map_err(|error| {
            Problem::new("the CPU time of servers cannot be read on this host")
                .detail(error.to_string())
        })?;
        self.cpu_source_known = true;
        session.fact(None, &Sources(sources))
    }

    /// Where the CPU figures of running servers come from, in cells that keep their connections, and in cells
    /// that do not.
    fn sources(&self, postmasters: &[Postmaster]) -> Result<Vec<MachineSources>, ObserveError> {
        let mut sources = Vec::new();
        let kept = |executable: &Executable| !executable.reconnects;
        for (short_lived, is_there) in [
            (false, self.executables.iter().any(kept)),
            (true, !self.executables.iter().all(kept)),
        ] {
            let metered = Metered {
                devices: false,
                short_lived,
            };
            if is_there {
                sources.extend(Meters::open(postmasters, metered)?.sources());
            }
        }
        Ok(sources)
    }

    /// Finds out the work of a slice of a cell before its caches are emptied. Servers that are there one at a
    /// time are emptied as they start.
    fn scout(
        &mut self,
        session: &mut Session<'_>,
        (block, cell_id): (u32, CellId),
        addresses: &[Address],
    ) -> Result<Scouting, Problem> {
        let place = cell_id.index();
        let (Some(cell), Some(executable)) =
            (session.plan.cells.get(place), self.executables.get(place))
        else {
            return Ok(Scouting::Done(None));
        };
        if session.plan.cache != CacheState::Cold || addresses.is_empty() {
            return Ok(Scouting::Done(None));
        }
        let schedule = VisitSchedule::of(session.plan, block, cell_id, cell, &self.cores);
        let servers = addresses_for(session.plan.order, cell, addresses);
        let visit = Visit {
            plan: session.plan,
            block,
            cell_id,
            cell,
            executable,
            servers: &servers,
            schedule: &schedule,
            scouted: None,
            interrupted: session.interrupted,
        };
        Ok(match visit.scout()? {
            Ok(scouted) => Scouting::Done(Some(scouted)),
            Err((server, reason)) => Scouting::Lost(server, reason),
        })
    }

    /// Visits a cell and stores what it finds, unless it `repeats` a visit that is stored already.
    fn visit(
        &mut self,
        session: &mut Session<'_>,
        placed: Placed<'_>,
        progress: &mut RunProgress,
    ) -> Result<VisitEnd, Problem> {
        let Placed {
            place: (block, cell_id),
            repeats,
            addresses,
            scouted,
            ..
        } = placed;
        let place = cell_id.index();
        let (Some(cell), Some(executable)) =
            (session.plan.cells.get(place), self.executables.get(place))
        else {
            return Err(Problem::new(format!("the plan has no cell {cell_id}")));
        };
        let schedule = VisitSchedule::of(session.plan, block, cell_id, cell, &self.cores);
        let servers = addresses_for(session.plan.order, cell, addresses);
        let learned = || Scouted::learned(session.plan, cell_id, executable, &progress.slices);
        let visit = Visit {
            plan: session.plan,
            block,
            cell_id,
            cell,
            executable,
            servers: &servers,
            schedule: &schedule,
            scouted: scouted.or_else(learned),
            interrupted: session.interrupted,
        };
        let (store, run) = (&mut *session.store, session.run);
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
        let (mut lost, mut background) = (Vec::new(), Vec::new());
        let report = match self.fleet.occupancy() {
            Occupancy::Together => visit.carry_out(&mut sink, &mut self.stacks),
            Occupancy::Rotated => {
                let (fleet, schedule) = (&mut self.fleet, placed.schedule);
                let mut rotation = RotatingFleet::of(&visit, fleet, schedule);
                let report = visit.carry_out_rotated(&mut rotation, &mut sink);
                (lost, background) = (rotation.lost, rotation.background);
                report
            }
        };
        tell_losses(session, (block, cell), &lost)?;
        background::tell(session, (block, cell), &background)?;
        if repeats {
            return report.map(|report| report.end);
        }
        let end = session.keep_visit(block, cell_id, report, self.series.as_mut())?;
        session.tell_news(&self.fleet)?;
        if end != VisitEnd::Interrupted {
            progress.slices.append(&mut taken);
        }
        Ok(end)
    }
}

/// Whether servers are asked in a block for what their tables have lost: such a look reads all of them, and
/// every block begins anew.
fn is_looked_at(block: u32) -> bool {
    block == 0
}

/// Stores what does not hold on servers after a visit.
fn tell_losses(
    session: &mut Session<'_>,
    (block, cell): (u32, &Cell),
    lost: &[(ServerId, Vec<String>)],
) -> Result<(), Problem> {
    for (server, broken) in lost.iter().filter(|(_, broken)| !broken.is_empty()) {
        let name = session.plan.server_name(*server);
        let (workload, broken) = (&cell.workload, broken.join("; "));
        let text = format!("{name} after {workload} in block {}: {broken}", block + 1);
        let kind = FindingKind::own("tables-inconsistent");
        session.keep_findings(&[Finding::new(kind, Severity::Unfit, text)])?;
    }
    Ok(())
}

fn addresses_for(order: CellOrder, cell: &Cell, addresses: &[Address]) -> Vec<Address> {
    addresses
        .iter()
        .map(|address| address_for(address, order, cell))
        .collect()
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
    /// Whether servers are asked for what they have lost.
    looked_at: bool,
    /// What does not hold on a server at the end of its last turn.
    lost: Vec<(ServerId, Vec<String>)>,
    /// Whether what servers do by themselves is counted: they work without a break.
    sustained: bool,
    /// What had been counted when the tables of the server that runs were made.
    before: Option<Background>,
    /// What each server did by itself in its pass.
    background: Vec<(ServerId, Background)>,
}

impl<'a, 'p> RotatingFleet<'a, 'p> {
    /// The fleet in a visit.
    fn of(visit: &Visit<'a>, fleet: &'a mut Fleet<'p>, schedule: &'a BlockSchedule) -> Self {
        let plan = visit.plan;
        Self {
            fleet,
            schedule,
            order: plan.order,
            cell: visit.cell,
            interrupted: visit.interrupted,
            cold: plan.cache == CacheState::Cold,
            looked_at: is_looked_at(visit.block) || plan.timing.sustained,
            lost: Vec::new(),
            sustained: plan.timing.sustained,
            before: None,
            background: Vec::new(),
        }
    }
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
        if fresh && self.sustained {
            let counted = self.fleet.background(self.schedule, server, self.cell)?;
            self.before = Some(counted);
        }
        Ok(address_for(&address, self.order, self.cell))
    }

    fn stop(&mut self, server: ServerId, last: bool) -> Result<(), Problem> {
        if let Some(before) = self.before.take().filter(|_| last) {
            let after = self.fleet.background(self.schedule, server, self.cell)?;
            self.background.push((server, after.since(before)));
        }
        if last && self.looked_at && self.cell.writes {
            let broken = self.fleet.broken(self.schedule, server, self.cell)?;
            self.lost.push((server, broken));
        }
        if last {
            self.fleet
                .after_visit(self.schedule, &[server], self.cell, self.interrupted)?;
        }
        self.fleet.stop_one(self.schedule, server)?;
        // The next server has the machine's memory for itself.
        self.fleet.drop_pages(self.schedule, server)
    }
}
