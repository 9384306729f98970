//! The passes of a block: on which servers, in which order, and what is kept of them.

use super::pass::{Pass, StepEnd, open_passes, steps};
use super::progress::progress_of;
use super::record::StepRecord;
use crate::settling::SettleEnd;
use deltabench_driver::insert::InsertPosition;
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_observe::Series;
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::session::{
    BlockOrder, RunProgress, Session, SessionEnd, now_ns, postmasters_of, series, store_problem,
};
use deltabench_run::visit::{Address, Cause, is_dying};
use std::sync::atomic::Ordering;

/// Good records: block, cell and server.
type Done = Vec<(u32, CellId, ServerId)>;

/// What passes need beside the session itself.
pub(super) struct BlockState<'p> {
    fleet: Fleet<'p>,
    /// What the host was before.
    host: HostFacts,
    setup: &'p InsertSetup,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
}

/// How a pass ended.
enum PassEnd {
    Complete,
    Interrupted,
    Lost(CellId, Cause),
}

/// One turn: a block, and a server with its place in it.
#[derive(Clone, Copy)]
struct Turn<'a> {
    block: u32,
    position: u32,
    server: ServerId,
    schedule: &'a BlockSchedule,
    began_ns: u64,
}

impl<'p> BlockState<'p> {
    /// Empty servers for all passes.
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
        })
    }
}

/// Places of all steps that are stored and good.
fn done_steps(session: &Session<'_>) -> Result<Done, Problem> {
    let records = session.store.records(session.run).map_err(store_problem)?;
    let good = records.iter().filter(|record| record.void.is_none());
    Ok(good
        .map(|record| (record.block, record.cell, record.server))
        .collect())
}

/// The places of blocks whose passes are complete on every server.
pub(super) fn complete_blocks(
    plan: &Plan,
    setup: &InsertSetup,
    done: &[(u32, CellId, ServerId)],
) -> Vec<(u32, CellId)> {
    let blocks =
        (0..plan.timing.blocks).filter(|block| open_passes(plan, setup, *block, done).is_empty());
    let cells = |block| {
        CellId::each()
            .take(plan.cells.len())
            .map(move |cell| (block, cell))
    };
    blocks.flat_map(cells).collect()
}

impl Blocks for BlockState<'_> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.load(&mut self.fleet, &[], &self.host)?;
        self.series = series(session.plan, self.fleet.directory());
        session.record_sources()
    }

    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        Ok(complete_blocks(
            session.plan,
            self.setup,
            &done_steps(session)?,
        ))
    }

    /// Gives every server whose pass is not complete its turn. A pass that loses its server is begun again
    /// after the last block.
    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, .. }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        if self.series.is_some() {
            session.mark_block(format!("pass {}", block + 1))?;
        }
        let schedule = BlockSchedule::of(session.plan, block);
        let open = open_passes(session.plan, self.setup, block, &done_steps(session)?);
        for (position, server) in open {
            if session.interrupted.load(Ordering::Relaxed) {
                return Ok(BlockEnd::Interrupted);
            }
            let turn = Turn {
                block,
                position,
                server,
                schedule: &schedule,
                began_ns: now_ns(),
            };
            if self.turn(session, turn, progress)? == Some(SessionEnd::Interrupted) {
                return Ok(BlockEnd::Interrupted);
            }
        }
        progress.slices = session.slices()?;
        let open = open_passes(session.plan, self.setup, block, &done_steps(session)?);
        if !open.is_empty() {
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

impl BlockState<'_> {
    /// One pass, from the start of its server to its stop, and what its log says.
    fn turn(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        progress: &mut RunProgress,
    ) -> Result<Option<SessionEnd>, Problem> {
        let end = self.pass(session, turn);
        if let Some(series) = &mut self.series {
            series.set_servers(&[]);
        }
        // Dirty pages of files that nobody needs any more are not to be written when it stops.
        let cleared = match &end {
            Ok(PassEnd::Complete) => self.fleet.clear(turn.schedule, turn.server),
            _ => Ok(()),
        };
        let stopped = self.fleet.stop_one(turn.schedule, turn.server);
        session.keep_marks(turn.began_ns, turn.schedule, &[turn.server], &self.fleet)?;
        session.keep_observed(&[], self.series.as_mut())?;
        // The next server has the disk to itself, and the next pass on this one an empty cluster: neither WAL
        // nor files of this pass, however it ended.
        let restored = match &end {
            Ok(PassEnd::Complete | PassEnd::Lost(..)) => {
                self.fleet.restore(turn.schedule, turn.server)
            }
            Ok(PassEnd::Interrupted) | Err(_) => Ok(()),
        };
        match end? {
            PassEnd::Complete => cleared.and(stopped).and(restored).map(|()| None),
            PassEnd::Interrupted => stopped.map(|()| Some(SessionEnd::Interrupted)),
            // The loss is told; that the lost server does not stop cleanly is no news.
            PassEnd::Lost(cell, cause) => {
                let place = (turn.block, cell, turn.server);
                session.note_loss(place, &cause, turn.schedule, &self.fleet, progress)?;
                restored.map(|()| None)
            }
        }
    }

    fn pass(&mut self, session: &mut Session<'_>, turn: Turn<'_>) -> Result<PassEnd, Problem> {
        let Some(cell) = session.plan.cells.first() else {
            return Ok(PassEnd::Complete);
        };
        let address = self.fleet.start_one(turn.schedule, turn.server)?;
        let address = address_for(&address, session.plan.order, cell);
        self.fleet.renew(turn.schedule, turn.server, cell)?;
        if let Some(series) = &mut self.series {
            series.set_servers(&postmasters_of(&[(turn.server, &address)]));
        }
        let mut pass = Pass {
            plan: session.plan,
            setup: self.setup,
            block: turn.block,
            server: turn.server,
            position: turn.position,
            address: &address,
            data_dir: self.fleet.data_dir(turn.schedule, turn.server)?,
            log: self.fleet.log_path(turn.schedule, turn.server)?,
            interrupted: session.interrupted,
            tables: InsertPosition::default(),
        };
        let mut settled = false;
        for (cell, step) in steps(self.setup) {
            if step.queries() && !settled {
                settled = true;
                match settle(session, turn, cell, &pass) {
                    Ok(None) => {}
                    Ok(Some(end)) => return Ok(end),
                    Err(problem) => return lost_or(problem, cell, &address),
                }
            }
            session.doing(cell);
            let end = match pass.step(cell, step) {
                Ok(StepEnd::Recorded(record)) => {
                    self.keep_step(session, &record, step, turn)?;
                    record.void.map(|reason| PassEnd::Lost(cell, reason.into()))
                }
                Ok(StepEnd::Interrupted) => Some(PassEnd::Interrupted),
                Ok(StepEnd::Lost(reason)) => Some(PassEnd::Lost(cell, reason.into())),
                Err(problem) => Some(lost_or(problem, cell, &address)?),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(PassEnd::Complete)
    }

    /// Stores a step, with the series so far, and tells of it.
    fn keep_step(
        &mut self,
        session: &mut Session<'_>,
        record: &StepRecord,
        step: InsertStep,
        turn: Turn<'_>,
    ) -> Result<(), Problem> {
        session
            .store
            .add_record(session.run, &record.record()?)
            .map_err(store_problem)?;
        session.keep_observed(&[], self.series.as_mut())?;
        let steps = u32::try_from(self.setup.steps.len()).unwrap_or(u32::MAX);
        let servers = u32::try_from(session.plan.servers.len()).unwrap_or(u32::MAX);
        let done = turn.position * steps + record.cell.0 + 1;
        session
            .observer
            .note(&progress_of(session.plan, self.setup, record, step).line());
        session.observer.visit(turn.block, done, steps * servers);
        Ok(())
    }
}

/// Settles a server and stores what that took; what ended the pass, if something did.
fn settle(
    session: &mut Session<'_>,
    turn: Turn<'_>,
    cell: CellId,
    pass: &Pass<'_>,
) -> Result<Option<PassEnd>, Problem> {
    let settled = match pass.settle()? {
        SettleEnd::Settled(settled) => settled,
        SettleEnd::Interrupted => return Ok(Some(PassEnd::Interrupted)),
        SettleEnd::Stalled => return Ok(Some(PassEnd::Lost(cell, VoidReason::Stalled.into()))),
    };
    let place = (Some(turn.server), Some(turn.block));
    session
        .store
        .add_fact(session.run, place, &settled)
        .map_err(store_problem)?;
    Ok(None)
}

/// The loss of a server that is gone, or else the problem.
fn lost_or(problem: Problem, cell: CellId, address: &Address) -> Result<PassEnd, Problem> {
    match address.postmaster.local_pid() {
        Some(pid) if is_dying(pid) => Ok(PassEnd::Lost(cell, VoidReason::ServerLost.into())),
        _ => Err(problem),
    }
}
