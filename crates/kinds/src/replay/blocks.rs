//! A block of a replay: servers restart, statistics are drawn anew, open statements are visited.

use super::budget::{Part, parts};
use super::failures::Failures;
use super::mix::{MixRecord, MixVisit};
use super::record::{VisitRecord, whole_visits};
use super::turn::parts_of_turn;
use super::visit::{Visit, VisitEnd};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::ReplaySetup;
use deltabench_replay::{Start, TimedJob, TimedServers};
use deltabench_run::benchmark::{BlockEnd, BlockOrder, Blocks};
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::session::{RunProgress, Session, store_problem};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Seconds that a visit takes beside its slices, before one has told.
const BESIDE_SECONDS: f64 = 0.1;

/// Servers that have the tables, and what is sent to them.
pub struct Loaded {
    pub servers: TimedServers,
    /// In the order of the plan's cells.
    pub jobs: Vec<TimedJob>,
}

/// What blocks need beside the session itself.
pub(super) struct ReplayBlocks<'p> {
    setup: &'p ReplaySetup,
    servers: TimedServers,
    jobs: Vec<TimedJob>,
    /// Seconds that a visit takes beside its slices.
    beside: f64,
    /// The first block of this session: those before had their part of the time.
    first: Option<u32>,
    failures: Failures,
}

impl<'p> ReplayBlocks<'p> {
    pub(super) fn new(setup: &'p ReplaySetup, loaded: Loaded) -> Self {
        Self {
            setup,
            servers: loaded.servers,
            jobs: loaded.jobs,
            beside: BESIDE_SECONDS,
            first: None,
            failures: Failures::default(),
        }
    }
}

/// Which cluster plays each server of a block, in the order of their starts.
fn starts(plan: &Plan, schedule: &BlockSchedule) -> Vec<Start> {
    let start = |server: &usize| {
        Some(Start {
            server: *server,
            cluster: *schedule.slots.get(*server)?,
            port: *schedule.ports.get(*server)?,
            own_executable: plan.draws_executables(),
        })
    };
    schedule.start_order.iter().filter_map(start).collect()
}

impl Blocks for ReplayBlocks<'_> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        let records = session.store.records(session.run).map_err(store_problem)?;
        for record in &records {
            if let Some(visit) = VisitRecord::read(record)? {
                self.failures.add((record.block, record.cell), &visit);
            }
            if let Some(visit) = MixRecord::read(record)? {
                self.failures.add_mix((record.block, record.cell), &visit);
            }
        }
        Ok(())
    }

    /// Those with a record of every server, and all of the blocks before the last one: what these did not
    /// visit was not due.
    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        let records = session.store.records(session.run).map_err(store_problem)?;
        let done = whole_visits(&records, session.plan.servers.len());
        let blocks = records.iter().map(|record| record.block);
        let last = blocks.max().unwrap_or(0);
        let cells = CellId::each().take(session.plan.cells.len());
        let earlier = cells.flat_map(|cell| (0..last).map(move |block| (block, cell)));
        Ok(done.into_iter().chain(earlier).collect())
    }

    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, open }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        let plan = session.plan;
        let schedule = BlockSchedule::of(plan, block);
        let started = session.clock.now();
        self.first.get_or_insert(block);
        let is_open = |cell: &CellId| open.contains(cell) && !progress.is_done(block, *cell);
        let open: Vec<CellId> = schedule.cells.iter().copied().filter(is_open).collect();
        let tried = |cell: &CellId| self.failures.finally(*cell).is_none();
        let cells: Vec<CellId> = open.iter().copied().filter(tried).collect();
        let parts = self.parts(session, (block, &cells, started), progress);
        let due: BTreeSet<CellId> = cells
            .iter()
            .zip(parts)
            .filter_map(|(cell, part)| part.is_due.then_some(*cell))
            .collect();
        for cell in open.iter().filter(|cell| !due.contains(cell)) {
            progress.set_done(block, *cell);
        }
        if due.is_empty() {
            return Ok(BlockEnd::GoneThrough);
        }
        self.servers.restart(&starts(plan, &schedule))?;
        session.observer.doing("drawing statistics");
        match self.servers.analyze(session.interrupted) {
            Err(_) if session.interrupted.load(Ordering::Relaxed) => {
                return Ok(BlockEnd::Interrupted);
            }
            drawn => drawn?,
        }
        // Those that are not due keep their parts for a later block.
        let parts = self.parts(session, (block, &cells, started), progress);
        let visits = cells.into_iter().zip(parts);
        let visits: Vec<_> = visits.filter(|(cell, _)| due.contains(cell)).collect();
        self.visits(session, (block, &visits), progress)
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        self.servers.dismantle()
    }
}

impl ReplayBlocks<'_> {
    /// The parts of these cells in what a block may still take, which began at `started`.
    fn parts(
        &self,
        session: &Session<'_>,
        (block, cells, started): (u32, &[CellId], Duration),
        progress: &RunProgress,
    ) -> Vec<Part> {
        let known = progress.slices.partition_point(|slice| slice.block < block);
        let before = progress.slices.get(..known).unwrap_or_default();
        let left = self.seconds_left(session, block, started, cells.len());
        parts(session.plan, self.setup, (block, cells, before), left)
    }

    /// Visits these cells, each for its part of the time.
    fn visits(
        &mut self,
        session: &mut Session<'_>,
        (block, visits): (u32, &[(CellId, Part)]),
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        let planned = u32::try_from(visits.len()).unwrap_or(u32::MAX);
        let (mut sliced, mut took) = (0.0, 0.0);
        for (number, (cell, part)) in (1..).zip(visits) {
            if session.interrupted.load(Ordering::Relaxed) {
                return Ok(BlockEnd::Interrupted);
            }
            let began = session.clock.now();
            session.doing(*cell);
            let place = (block, *cell);
            let sliced_now = match self.setup.clients_of(*cell) {
                Some(clients) => {
                    self.visit_mix(session, place, (clients, part.seconds), progress)?
                }
                None => self.visit_statement(session, place, part.seconds, progress)?,
            };
            let Some(seconds) = sliced_now else {
                return Ok(BlockEnd::Interrupted);
            };
            progress.visited(place, began, session.clock);
            sliced += seconds;
            took += session.clock.since(began);
            session.observer.visit(block, number, planned);
        }
        self.beside = (took - sliced).max(0.0) / to_f64(count(visits.len()).max(1));
        Ok(BlockEnd::GoneThrough)
    }

    /// Seconds of slices that a block may have: its part of the time that is left, without what it has taken
    /// and what its visits take beside.
    fn seconds_left(
        &self,
        session: &Session<'_>,
        block: u32,
        started: Duration,
        visits: usize,
    ) -> f64 {
        let spent = session.clock.since(started);
        let planned = session.plan.timing.blocks.max(1);
        let of_earlier = f64::from(self.first.unwrap_or(0)) / f64::from(planned);
        let before = session.clock.since(session.began) - spent;
        let blocks = planned.saturating_sub(block).max(1);
        let left = self.setup.budget_seconds * (1.0 - of_earlier) - before;
        let mine = left / f64::from(blocks);
        (mine - spent - self.beside * to_f64(count(visits))).max(0.0)
    }

    /// Visits a statement and stores that; what its slices took, nothing if the user wants to stop.
    fn visit_statement(
        &mut self,
        session: &mut Session<'_>,
        place: (u32, CellId),
        seconds: f64,
        progress: &mut RunProgress,
    ) -> Result<Option<f64>, Problem> {
        let Some(records) = self.visit(session, place, seconds)? else {
            return Ok(None);
        };
        self.keep(session, place, &records, progress)?;
        let statement = self.setup.statements.get(place.1.index());
        let parts = to_f64(statement.map_or(1, parts_of_turn));
        // What is executed beside slices takes as long as they do.
        let seconds = |visit: &VisitRecord| match visit.old_plan {
            Some(_) => visit.seconds(),
            None => visit.seconds() * parts,
        };
        Ok(Some(records.iter().map(seconds).sum()))
    }

    /// The same with the mix.
    fn visit_mix(
        &mut self,
        session: &mut Session<'_>,
        (block, cell): (u32, CellId),
        (clients, seconds): (u32, f64),
        progress: &mut RunProgress,
    ) -> Result<Option<f64>, Problem> {
        let visit = MixVisit {
            plan: session.plan,
            setup: self.setup,
            jobs: &self.jobs,
            servers: &self.servers,
            clients,
            block,
            cell,
            seconds,
            interrupted: session.interrupted,
        };
        let VisitEnd::Complete(records) = visit.carry_out()? else {
            return Ok(None);
        };
        for (server, visit) in ServerId::each().zip(&records) {
            let place = (block, cell, server);
            let stored = session.store.add_record(session.run, &visit.record(place)?);
            stored.map_err(store_problem)?;
            progress.slices.extend(visit.slices(place));
            self.failures.add_mix((block, cell), visit);
        }
        Ok(Some(records.iter().map(MixRecord::seconds).sum()))
    }

    /// A visit; nothing if the user wants to stop.
    fn visit(
        &self,
        session: &Session<'_>,
        (block, cell): (u32, CellId),
        seconds: f64,
    ) -> Result<Option<Vec<VisitRecord>>, Problem> {
        let place = cell.index();
        let known = (self.setup.statements.get(place), self.jobs.get(place));
        let ((Some(statement), Some(job)), Some(planned)) = (known, session.plan.cell(cell)) else {
            return Err(Problem::new(
                "the plan has a statement that the capture lacks",
            ));
        };
        let visit = Visit {
            plan: session.plan,
            statement,
            job,
            servers: &self.servers,
            block,
            cell,
            seconds,
            interrupted: session.interrupted,
        };
        Ok(match visit.carry_out(planned)? {
            VisitEnd::Complete(records) => Some(records),
            VisitEnd::Interrupted => None,
        })
    }

    /// Stores a visit: it is done when the records of all servers are on disk.
    fn keep(
        &mut self,
        session: &mut Session<'_>,
        (block, cell): (u32, CellId),
        records: &[VisitRecord],
        progress: &mut RunProgress,
    ) -> Result<(), Problem> {
        let statement = self.setup.statements.get(cell.index());
        for (server, visit) in ServerId::each().zip(records) {
            let place = (block, cell, server);
            let record = visit.record(place)?;
            session
                .store
                .add_record(session.run, &record)
                .map_err(store_problem)?;
            // A visit that failed has none.
            let slice = statement.and_then(|statement| visit.slice(place, statement));
            progress.slices.extend(slice);
        }
        for visit in records {
            self.failures.add((block, cell), visit);
        }
        Ok(())
    }
}
