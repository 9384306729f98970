//! Steps in turns: all servers of a block are there, one works, and the others are frozen meanwhile.
//!
//! Each server has a thread that goes through its pass. It works while it has the baton, and passes it on at
//! the end of a turn and of a step. A step begins when all servers have ended the one before.

use super::baton::Baton;
use super::pass::{Pass, StepEnd, steps};
use super::progress::progress_of;
use crate::passes::{PassEnd, complete_blocks, good, keep, lost_or, settled};
use crate::settling::SettleEnd;
use deltabench_driver::insert::InsertPosition;
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::{Cell, CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_observe::Series;
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::schedule::{BlockSchedule, insert_turn_order, pass_order};
use deltabench_run::session::{
    BlockOrder, RunProgress, Session, SessionEnd, now_ns, postmasters_of, series,
};
use deltabench_run::visit::{Address, Cause};
use deltabench_server::{FrozenServer, ThawGuard};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// What the thread of a server has come to at the end of a stage.
enum Told {
    /// Settling is over.
    Settled(Result<SettleEnd, Problem>),
    /// A step is over.
    Step(Result<StepEnd, Problem>),
}

/// What the servers of a block go through together.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Before this cell.
    Settle(CellId),
    Step(CellId, InsertStep),
}

impl Stage {
    fn all(setup: &InsertSetup) -> Vec<Self> {
        let mut all = Vec::new();
        let mut has_settled = false;
        for (cell, step) in steps(setup) {
            if step.queries() && !has_settled {
                has_settled = true;
                all.push(Self::Settle(cell));
            }
            all.push(Self::Step(cell, step));
        }
        all
    }

    fn cell(self) -> CellId {
        match self {
            Self::Settle(cell) | Self::Step(cell, _) => cell,
        }
    }
}

/// A server of a block.
struct Runner<'a> {
    /// The server, and its place in the order of the block.
    place: (ServerId, u32),
    address: &'a Address,
    go: SyncSender<()>,
    /// It has passed the baton on; whether at the end of a stage.
    passed: Receiver<bool>,
    told: Receiver<Told>,
    /// Absent while it works.
    frozen: Option<FrozenServer>,
}

impl Runner<'_> {
    /// Lets it work until it passes the baton on: what it has come to, at the end of a stage. Then it is to
    /// be frozen, which fails if it is gone.
    ///
    /// Errors: its thread has ended.
    fn turn(&mut self) -> Result<(Option<Told>, Result<FrozenServer, Problem>), Problem> {
        let ended = || Problem::new("the thread of a server ended too early");
        drop(self.frozen.take());
        self.go.send(()).map_err(|_| ended())?;
        let is_over = self.passed.recv().map_err(|_| ended())?;
        let told = is_over.then(|| self.told.recv().map_err(|_| ended()));
        let told = told.transpose()?;
        Ok((told, self.address.own_pid().and_then(FrozenServer::of)))
    }
}

/// How the passes of a block ended.
enum End {
    Complete,
    Interrupted,
    /// This server, at this cell.
    Lost(ServerId, CellId, Cause),
}

impl End {
    /// That of a server's pass; none if it has come to its end.
    fn of(end: PassEnd, server: ServerId) -> Option<Self> {
        match end {
            PassEnd::Complete => None,
            PassEnd::Interrupted => Some(Self::Interrupted),
            PassEnd::Lost(cell, cause) => Some(Self::Lost(server, cell, cause)),
        }
    }
}

/// Servers that run, in the order of their passes.
type Started = Vec<(ServerId, Address)>;

/// The blocks of the benchmark in turns.
pub(super) struct TurnBlocks<'p> {
    fleet: Fleet<'p>,
    host: HostFacts,
    setup: &'p InsertSetup,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
    /// Absent before the first block. Last, so that servers are gone before it.
    guard: Option<ThawGuard>,
}

impl<'p> TurnBlocks<'p> {
    /// Empty servers for all blocks.
    ///
    /// Errors: servers that cannot be made.
    pub(super) fn create(
        setup: &'p InsertSetup,
        session: &mut Session<'p>,
    ) -> Result<Self, Problem> {
        let (fleet, host) = session.fleet()?;
        Ok(Self {
            fleet,
            host,
            setup,
            series: None,
            guard: None,
        })
    }

    /// Starts all servers, empty, each frozen before the next one starts.
    fn start(
        &mut self,
        session: &Session<'_>,
        (block, schedule): (u32, &BlockSchedule),
        first: &Cell,
    ) -> Result<(Started, Vec<FrozenServer>), Problem> {
        let (mut started, mut all) = (Vec::new(), Vec::new());
        for server in pass_order(session.plan, block) {
            let address = self.fleet.start_one(schedule, server)?;
            self.fleet.renew(schedule, server, first)?;
            let address = address_for(&address, session.plan.order, first);
            all.push(FrozenServer::of(address.own_pid()?)?);
            started.push((server, address));
        }
        Ok((started, all))
    }

    /// All steps on all servers; afterwards none is frozen any more.
    fn passes(
        &mut self,
        session: &mut Session<'_>,
        (block, schedule): (u32, &BlockSchedule),
    ) -> Result<End, Problem> {
        let Some(first) = session.plan.cells.first() else {
            return Ok(End::Complete);
        };
        let (started, frozen) = self.start(session, (block, schedule), first)?;
        if let Some(series) = &mut self.series {
            let all: Vec<_> = started.iter().map(|(server, at)| (*server, at)).collect();
            series.set_servers(&postmasters_of(&all));
        }
        let mut passes = Vec::new();
        for (position, (server, address)) in (0..).zip(&started) {
            passes.push(Pass {
                plan: session.plan,
                setup: self.setup,
                block,
                server: *server,
                position,
                address,
                data_dir: self.fleet.data_dir(schedule, *server)?,
                log: self.fleet.log_path(schedule, *server)?,
                interrupted: session.interrupted,
                tables: InsertPosition::default(),
            });
        }
        std::thread::scope(|scope| {
            let mut runners = Vec::new();
            for (pass, frozen) in passes.into_iter().zip(frozen) {
                let (go, gone) = sync_channel(1);
                let (pass_on, passed) = sync_channel(1);
                let (tell, told) = sync_channel(1);
                let place = (pass.server, pass.position);
                let address = pass.address;
                let baton = Baton::new(gone, pass_on);
                scope.spawn(move || work(pass, &baton, &tell));
                runners.push(Runner {
                    place,
                    address,
                    go,
                    passed,
                    told,
                    frozen: Some(frozen),
                });
            }
            self.stages(session, block, &mut runners)
        })
    }

    /// Lets the servers have their turns.
    fn stages(
        &mut self,
        session: &mut Session<'_>,
        block: u32,
        runners: &mut [Runner<'_>],
    ) -> Result<End, Problem> {
        for stage in Stage::all(self.setup) {
            let cell = stage.cell();
            session.doing(cell);
            let mut open: Vec<ServerId> = runners.iter().map(|runner| runner.place.0).collect();
            let mut round = 0;
            while !open.is_empty() {
                for server in insert_turn_order(session.plan, block, cell, round) {
                    let mut waiting = runners.iter_mut();
                    let Some(runner) = waiting.find(|one| one.place.0 == server) else {
                        continue;
                    };
                    if !open.contains(&server) {
                        continue;
                    }
                    let (told, frozen) = runner.turn()?;
                    if let Some(told) = told {
                        open.retain(|one| *one != server);
                        let place = (block, cell, runner.place);
                        if let Some(end) = self.told(session, place, runner.address, told)? {
                            return Ok(end);
                        }
                    }
                    match frozen {
                        Ok(frozen) => runner.frozen = Some(frozen),
                        Err(problem) => return lost(problem, (server, cell), runner.address),
                    }
                }
                round += 1;
            }
        }
        Ok(End::Complete)
    }

    /// Keeps what a server has come to; what ends the block, if it does.
    fn told(
        &mut self,
        session: &mut Session<'_>,
        (block, cell, (server, position)): (u32, CellId, (ServerId, u32)),
        address: &Address,
        told: Told,
    ) -> Result<Option<End>, Problem> {
        let ended = match told {
            Told::Settled(Ok(end)) => settled(session, (server, block), cell, end)?,
            Told::Step(Ok(StepEnd::Recorded(record))) => {
                let step = self.setup.steps.get(cell.index()).copied();
                let line = step.map(|step| progress_of(session.plan, self.setup, &record, step));
                let line = line.map_or(String::new(), |progress| progress.line());
                let stored = record.record()?;
                let kept = (&stored, line.as_str());
                keep(session, (block, position), kept, self.series.as_mut())?;
                record.void.map(|reason| PassEnd::Lost(cell, reason.into()))
            }
            Told::Step(Ok(StepEnd::Interrupted)) => Some(PassEnd::Interrupted),
            Told::Step(Ok(StepEnd::Lost(reason))) => Some(PassEnd::Lost(cell, reason.into())),
            Told::Settled(Err(problem)) | Told::Step(Err(problem)) => {
                Some(lost_or(problem, cell, address)?)
            }
        };
        Ok(ended.and_then(|end| End::of(end, server)))
    }

    /// One block, from the start of its servers to their stop, and what their logs say.
    fn measure(
        &mut self,
        session: &mut Session<'_>,
        (block, schedule): (u32, &BlockSchedule),
        progress: &mut RunProgress,
    ) -> Result<Option<SessionEnd>, Problem> {
        let began_ns = now_ns();
        let end = self.passes(session, (block, schedule));
        let all = pass_order(session.plan, block);
        let Self { fleet, series, .. } = self;
        if let Some(series) = series {
            series.set_servers(&[]);
        }
        // Dirty pages of files that nobody needs any more are not to be written when it stops.
        let cleared = match &end {
            Ok(End::Complete) => all.iter().try_for_each(|at| fleet.clear(schedule, *at)),
            _ => Ok(()),
        };
        let stops = all.iter().map(|server| fleet.stop_one(schedule, *server));
        let stops: Vec<Result<(), Problem>> = stops.collect();
        session.keep_marks(began_ns, schedule, &all, fleet)?;
        session.keep_observed(&[], series.as_mut())?;
        let restored = match &end {
            Ok(End::Complete | End::Lost(..)) => {
                all.iter().try_for_each(|at| fleet.restore(schedule, *at))
            }
            Ok(End::Interrupted) | Err(_) => Ok(()),
        };
        let stopped = stops.into_iter().collect::<Result<(), Problem>>();
        match end? {
            End::Complete => cleared.and(stopped).and(restored).map(|()| None),
            End::Interrupted => stopped.map(|()| Some(SessionEnd::Interrupted)),
            End::Lost(..) if session.ends_now() => Ok(Some(SessionEnd::Interrupted)),
            // The loss is told; that the lost server does not stop cleanly is no news.
            End::Lost(server, cell, cause) => {
                let place = (block, cell, server);
                session.note_loss(place, &cause, schedule, fleet, progress)?;
                restored.map(|()| None)
            }
        }
    }
}

impl Blocks for TurnBlocks<'_> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.load(&mut self.fleet, &[], &self.host)?;
        self.series = series(session.plan, self.fleet.directory());
        self.guard = Some(ThawGuard::start(self.fleet.directory())?);
        session.record_sources()
    }

    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        Ok(complete_blocks(session.plan, &good(session)?))
    }

    /// All servers begin a block together. One that loses a server is begun again after the last block.
    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, .. }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        if session.interrupted.load(Ordering::Relaxed) {
            return Ok(BlockEnd::Interrupted);
        }
        if self.series.is_some() {
            session.mark_block(format!("pass {}", block + 1))?;
        }
        let schedule = BlockSchedule::of(session.plan, block);
        if self.measure(session, (block, &schedule), progress)? == Some(SessionEnd::Interrupted) {
            return Ok(BlockEnd::Interrupted);
        }
        progress.slices = session.slices()?;
        let complete = complete_blocks(session.plan, &good(session)?);
        if !complete.iter().any(|(whole, _)| *whole == block) {
            return Ok(BlockEnd::Postponed);
        }
        for cell in CellId::each().take(session.plan.cells.len()) {
            progress.set_done(block, cell);
        }
        Ok(BlockEnd::GoneThrough)
    }

    fn conclude(
        &mut self,
        session: &mut Session<'_>,
        end: &Result<SessionEnd, Problem>,
    ) -> Result<(), Problem> {
        session.conclude_servers(&self.fleet, end.is_ok())
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        self.fleet.dismantle()
    }
}

/// What the thread of a server does: its pass, while it has the baton.
fn work(mut pass: Pass<'_>, baton: &Baton, tell: &SyncSender<Told>) {
    if !baton.take() {
        return;
    }
    for stage in Stage::all(pass.setup) {
        let told = match stage {
            Stage::Settle(_) => Told::Settled(pass.settle()),
            Stage::Step(cell, step) => Told::Step(pass.step(cell, step, Some(baton))),
        };
        if tell.send(told).is_err() || !baton.pass(true) {
            return;
        }
    }
}

/// The loss of a server that is gone, or else the problem.
fn lost(
    problem: Problem,
    (server, cell): (ServerId, CellId),
    address: &Address,
) -> Result<End, Problem> {
    let end = lost_or(problem, cell, address)?;
    Ok(End::of(end, server).unwrap_or(End::Interrupted))
}
