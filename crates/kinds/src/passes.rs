//! Passes: each server of a block in turn, alone, from an empty cluster to its stop. What the kinds that have
//! them ([`deltabench_model::work::Work::has_passes`]) share; what is done in a pass is their own.

use crate::settling::SettleEnd;
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::VoidReason;
use deltabench_observe::Series;
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::schedule::{BlockSchedule, pass_order};
use deltabench_run::session::{
    BlockOrder, RunProgress, Session, SessionEnd, now_ns, postmasters_of, series, store_problem,
};
use deltabench_run::visit::{Address, Cause, is_dying};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A good record: block, cell and server.
pub(crate) type Done = (u32, CellId, ServerId);

/// How a pass ended.
pub(crate) enum PassEnd {
    Complete,
    Interrupted,
    /// At this cell.
    Lost(CellId, Cause),
}

/// One turn: a block, and a server with its place in it.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) block: u32,
    pub(crate) position: u32,
    pub(crate) server: ServerId,
    schedule: &'a BlockSchedule,
    began_ns: u64,
}

/// The servers, and what is seen of them.
pub(crate) struct Place<'p> {
    fleet: Fleet<'p>,
    /// What the host was before.
    host: HostFacts,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
}

/// What one kind does in a pass.
pub(crate) trait PassKind {
    /// All of it, on a server that runs and is empty.
    ///
    /// Errors: anything that makes going on impossible.
    fn pass(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        server: (&mut Place<'_>, &Address),
    ) -> Result<PassEnd, Problem>;

    /// After a pass, however it ended, before its server is stopped.
    ///
    /// Errors: the host does not let us.
    fn after(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

/// The blocks of a kind with passes.
pub(crate) struct PassBlocks<'p, K> {
    place: Place<'p>,
    kind: K,
}

impl<'p, K: PassKind> PassBlocks<'p, K> {
    /// Empty servers for all passes.
    ///
    /// Errors: servers that cannot be made.
    pub(crate) fn create(kind: K, session: &mut Session<'p>) -> Result<Self, Problem> {
        let (fleet, host) = session.fleet()?;
        let place = Place {
            fleet,
            host,
            series: None,
        };
        Ok(Self { place, kind })
    }

    /// One pass, from the start of its server to its stop, and what its log says.
    fn turn(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        progress: &mut RunProgress,
    ) -> Result<Option<SessionEnd>, Problem> {
        let end = self.pass(session, turn);
        self.kind.after()?;
        let Place { fleet, series, .. } = &mut self.place;
        if let Some(series) = series {
            series.set_servers(&[]);
        }
        // Dirty pages of files that nobody needs any more are not to be written when it stops.
        let cleared = match &end {
            Ok(PassEnd::Complete) => fleet.clear(turn.schedule, turn.server),
            _ => Ok(()),
        };
        let stopped = fleet.stop_one(turn.schedule, turn.server);
        session.keep_marks(turn.began_ns, turn.schedule, &[turn.server], fleet)?;
        session.keep_observed(&[], series.as_mut())?;
        // The next server has the disk to itself, and the next pass on this one an empty cluster: neither WAL
        // nor files of this pass, however it ended.
        let restored = match &end {
            Ok(PassEnd::Complete | PassEnd::Lost(..)) => fleet.restore(turn.schedule, turn.server),
            Ok(PassEnd::Interrupted) | Err(_) => Ok(()),
        };
        match end? {
            PassEnd::Complete => cleared.and(stopped).and(restored).map(|()| None),
            PassEnd::Interrupted => stopped.map(|()| Some(SessionEnd::Interrupted)),
            PassEnd::Lost(..) if session.ends_now() => Ok(Some(SessionEnd::Interrupted)),
            // The loss is told; that the lost server does not stop cleanly is no news.
            PassEnd::Lost(cell, cause) => {
                let place = (turn.block, cell, turn.server);
                session.note_loss(place, &cause, turn.schedule, fleet, progress)?;
                restored.map(|()| None)
            }
        }
    }

    fn pass(&mut self, session: &mut Session<'_>, turn: Turn<'_>) -> Result<PassEnd, Problem> {
        let Some(first) = session.plan.cells.first() else {
            return Ok(PassEnd::Complete);
        };
        let address = self.place.start(session.plan, turn, first)?;
        self.kind.pass(session, turn, (&mut self.place, &address))
    }
}

impl Place<'_> {
    /// Starts the server of a turn, empty.
    fn start(&mut self, plan: &Plan, turn: Turn<'_>, first: &Cell) -> Result<Address, Problem> {
        let address = self.fleet.start_one(turn.schedule, turn.server)?;
        let address = address_for(&address, plan.order, first);
        self.fleet.renew(turn.schedule, turn.server, first)?;
        if let Some(series) = &mut self.series {
            series.set_servers(&postmasters_of(&[(turn.server, &address)]));
        }
        Ok(address)
    }

    /// Where the server of a turn keeps its files.
    ///
    /// Errors: a server that is none of ours.
    pub(crate) fn data_dir(&self, turn: Turn<'_>) -> Result<PathBuf, Problem> {
        self.fleet.data_dir(turn.schedule, turn.server)
    }

    /// Where it writes its log.
    ///
    /// Errors: a server that is none of ours.
    pub(crate) fn log(&self, turn: Turn<'_>) -> Result<PathBuf, Problem> {
        self.fleet.log_path(turn.schedule, turn.server)
    }

    /// Stores what came out in a cell, with the series so far, and tells how far the block is.
    ///
    /// Errors: a store that cannot be written.
    pub(crate) fn keep(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        record: &Record,
        line: &str,
    ) -> Result<(), Problem> {
        let place = (turn.block, turn.position);
        keep(session, place, (record, line), self.series.as_mut())
    }
}

/// Stores what came out in a cell, with the series so far, and tells how far the block is. The server has
/// this place in it.
///
/// Errors: a store that cannot be written.
pub(crate) fn keep(
    session: &mut Session<'_>,
    (block, position): (u32, u32),
    (record, line): (&Record, &str),
    series: Option<&mut Series>,
) -> Result<(), Problem> {
    session
        .store
        .add_record(session.run, record)
        .map_err(store_problem)?;
    session.keep_observed(&[], series)?;
    session.observer.note(line);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let cells = number(session.plan.cells.len());
    let all = cells.saturating_mul(number(session.plan.servers.len()));
    let done = position.saturating_mul(cells) + record.cell.0 + 1;
    session.observer.visit(block, done, all);
    Ok(())
}

impl<K: PassKind> Blocks for PassBlocks<'_, K> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.load(&mut self.place.fleet, &[], &self.place.host)?;
        self.place.series = series(session.plan, self.place.fleet.directory());
        session.record_sources()
    }

    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        Ok(complete_blocks(session.plan, &good(session)?))
    }

    /// Gives every server whose pass is not complete its turn. A pass that loses its server is begun again
    /// after the last block.
    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, .. }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        if self.place.series.is_some() {
            session.mark_block(format!("pass {}", block + 1))?;
        }
        let schedule = BlockSchedule::of(session.plan, block);
        for (position, server) in open_passes(session.plan, block, &good(session)?) {
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
        if !open_passes(session.plan, block, &good(session)?).is_empty() {
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
        session.conclude_servers(&self.place.fleet, end.is_ok())
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        self.place.fleet.dismantle()
    }
}

/// Places of all records that are stored and good.
pub(crate) fn good(session: &Session<'_>) -> Result<Vec<Done>, Problem> {
    let records = session.store.records(session.run).map_err(store_problem)?;
    let good = records.iter().filter(|record| record.void.is_none());
    Ok(good
        .map(|record| (record.block, record.cell, record.server))
        .collect())
}

/// The servers whose pass of a block is not complete, in the block's order, each with its place in it.
fn open_passes(plan: &Plan, block: u32, done: &[Done]) -> Vec<(u32, ServerId)> {
    let complete = |server: ServerId| {
        let mut cells = CellId::each().take(plan.cells.len());
        cells.all(|cell| done.contains(&(block, cell, server)))
    };
    (0..)
        .zip(pass_order(plan, block))
        .filter(|(_, server)| !complete(*server))
        .collect()
}

/// The places of blocks whose passes are complete on every server.
pub(crate) fn complete_blocks(plan: &Plan, done: &[Done]) -> Vec<(u32, CellId)> {
    let whole = |block: &u32| open_passes(plan, *block, done).is_empty();
    let cells = |block| {
        let all = CellId::each().take(plan.cells.len());
        all.map(move |cell| (block, cell))
    };
    let blocks = (0..plan.timing.blocks).filter(whole);
    blocks.flat_map(cells).collect()
}

/// Stores what settling took before a cell; what ended the pass, if something did.
///
/// Errors: a store that cannot be written.
pub(crate) fn settled(
    session: &mut Session<'_>,
    (server, block): (ServerId, u32),
    cell: CellId,
    end: SettleEnd,
) -> Result<Option<PassEnd>, Problem> {
    let settled = match end {
        SettleEnd::Settled(settled) => settled,
        SettleEnd::Interrupted => return Ok(Some(PassEnd::Interrupted)),
        SettleEnd::Stalled => return Ok(Some(PassEnd::Lost(cell, VoidReason::Stalled.into()))),
    };
    let place = (Some(server), Some(block));
    session
        .store
        .add_fact(session.run, place, &settled)
        .map_err(store_problem)?;
    Ok(None)
}

/// The loss of a server that is gone, or else the problem.
///
/// Errors: the problem, if the server still runs.
pub(crate) fn lost_or(
    problem: Problem,
    cell: CellId,
    address: &Address,
) -> Result<PassEnd, Problem> {
    match address.postmaster.local_pid() {
        Some(pid) if is_dying(pid) => Ok(PassEnd::Lost(cell, VoidReason::ServerLost.into())),
        _ => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan_of;

    #[test]
    fn a_pass_is_open_until_all_of_its_cells_are_there() {
        let plan = plan_of(&["a", "a", "b"], 8);
        let open = |done: &[Done]| {
            let open = open_passes(&plan, 1, done).into_iter();
            let mut servers: Vec<ServerId> = open.map(|(_, server)| server).collect();
            servers.sort_unstable();
            servers
        };
        assert_eq!(open(&[]), [0, 1, 2].map(ServerId));
        let all = |block: u32, server: u32| -> Vec<Done> {
            (0..8)
                .map(|cell| (block, CellId(cell), ServerId(server)))
                .collect()
        };
        let mut done = all(1, 2);
        assert_eq!(open(&done), [0, 1].map(ServerId));
        done.pop();
        assert_eq!(
            open(&done),
            [0, 1, 2].map(ServerId),
            "the last one is missing"
        );
        assert_eq!(
            open(&all(0, 2)),
            [0, 1, 2].map(ServerId),
            "of another block"
        );
        let places = open_passes(&plan, 1, &[]).into_iter();
        assert_eq!(
            places.map(|(place, _)| place).collect::<Vec<_>>(),
            [0, 1, 2]
        );
    }

    #[test]
    fn a_block_is_complete_when_every_server_has_all_of_it() {
        let mut plan = plan_of(&["a", "b"], 2);
        plan.timing.blocks = 2;
        let done = |block: u32, servers: &[u32]| -> Vec<Done> {
            let cells = servers
                .iter()
                .flat_map(|server| [(0, *server), (1, *server)]);
            cells
                .map(|(cell, server)| (block, CellId(cell), ServerId(server)))
                .collect()
        };
        assert_eq!(complete_blocks(&plan, &done(0, &[0])), []);
        let whole = [done(0, &[0, 1]), done(1, &[0])].concat();
        assert_eq!(
            complete_blocks(&plan, &whole),
            [(0, CellId(0)), (0, CellId(1))]
        );
    }
}
