//! Passes: each server of a block from an empty cluster to its stop, alone or together with the others. What
//! the kinds that have them ([`deltabench_model::work::Work::has_passes`]) share; what is done in a pass is
//! their own.

use crate::settling::SettleEnd;
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::slice::VoidReason;
use deltabench_observe::Series;
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::clock::now_ns;
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::schedule::{BlockSchedule, pass_order};
use deltabench_run::session::{
    BlockOrder, RunProgress, Session, SessionEnd, postmasters_of, series, store_problem,
};
use deltabench_run::visit::{Address, Cause, is_dying};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A good record: block, cell and server.
pub(crate) type Done = (u32, CellId, ServerId);

/// The cells of a block. No look could decide with so few passes: each block of the plan has all of them.
pub(crate) fn open_cells(plan: &Plan, block: u32) -> Vec<CellId> {
    let cells = match block < plan.timing.blocks {
        true => plan.cells.len(),
        false => 0,
    };
    CellId::each().take(cells).collect()
}

/// How a pass ended.
pub(crate) enum PassEnd {
    Complete,
    Interrupted,
    /// This server, at this cell.
    Lost((ServerId, CellId), Cause),
}

/// One turn: a block, and a server that runs, with its place in the block.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) block: u32,
    pub(crate) position: u32,
    pub(crate) server: ServerId,
    /// With the login of the database that the tables go into.
    pub(crate) address: &'a Address,
    schedule: &'a BlockSchedule,
}

/// The servers, and what is seen of them.
pub(crate) struct Place<'p> {
    fleet: Fleet<'p>,
    /// What the host was before.
    host: HostFacts,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
}

/// What one kind does whose servers have their passes alone.
pub(crate) trait PassAlone {
    /// All of a pass, on a server that runs and is empty.
    ///
    /// Errors: anything that makes going on impossible.
    fn pass(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        place: &mut Place<'_>,
    ) -> Result<PassEnd, Problem>;

    /// After a pass, however it ended, before its server is stopped.
    ///
    /// Errors: the host does not let us.
    fn after(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

/// What one kind does in the passes of a block.
pub(crate) trait PassKind {
    /// Whether all servers of a block run together. Otherwise each has its pass alone.
    const TOGETHER: bool;

    /// Before the first pass; servers live below this directory.
    ///
    /// Errors: the host does not let us.
    fn begin(&mut self, directory: &Path) -> Result<(), Problem>;

    /// A server has started, and is empty; the next one has not.
    ///
    /// Errors: the host does not let us.
    fn started(&mut self, server: &Address) -> Result<(), Problem>;

    /// All of the passes of servers that run together and are empty; it ends with the first one that does not
    /// complete its pass.
    ///
    /// Errors: anything that makes going on impossible.
    fn passes(
        &mut self,
        session: &mut Session<'_>,
        turns: &[Turn<'_>],
        place: &mut Place<'_>,
    ) -> Result<PassEnd, Problem>;

    /// After these passes, however they ended, before their servers are stopped.
    ///
    /// Errors: the host does not let us.
    fn after(&mut self) -> Result<(), Problem>;
}

impl<K: PassAlone> PassKind for K {
    const TOGETHER: bool = false;

    fn begin(&mut self, _: &Path) -> Result<(), Problem> {
        Ok(())
    }

    fn started(&mut self, _: &Address) -> Result<(), Problem> {
        Ok(())
    }

    fn passes(
        &mut self,
        session: &mut Session<'_>,
        turns: &[Turn<'_>],
        place: &mut Place<'_>,
    ) -> Result<PassEnd, Problem> {
        for turn in turns {
            match self.pass(session, *turn, place)? {
                PassEnd::Complete => {}
                end => return Ok(end),
            }
        }
        Ok(PassEnd::Complete)
    }

    fn after(&mut self) -> Result<(), Problem> {
        PassAlone::after(self)
    }
}

/// The blocks of a kind with passes.
pub(crate) struct PassBlocks<'p, K> {
    place: Place<'p>,
    /// Last: what it holds outlives the servers.
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

    /// The servers of a block that run together, each with its place: those whose pass is not complete, one
    /// by one, or all of them.
    fn lots(&self, plan: &Plan, block: u32, done: &[Done]) -> Vec<Vec<(u32, ServerId)>> {
        let open = open_passes(plan, block, done).into_iter();
        match K::TOGETHER {
            true => vec![(0..).zip(pass_order(plan, block)).collect()],
            false => open.map(|one| vec![one]).collect(),
        }
    }

    /// The passes of servers that run together, from their start to their stop, and what their logs say.
    fn lot(
        &mut self,
        session: &mut Session<'_>,
        (block, schedule): (u32, &BlockSchedule),
        lot: &[(u32, ServerId)],
        progress: &mut RunProgress,
    ) -> Result<Option<SessionEnd>, Problem> {
        let began_ns = now_ns();
        let end = self.passes(session, (block, schedule), lot);
        self.kind.after()?;
        let servers: Vec<ServerId> = lot.iter().map(|(_, server)| *server).collect();
        let Place { fleet, series, .. } = &mut self.place;
        if let Some(series) = series {
            series.set_servers(&[]);
        }
        // Dirty pages of files that nobody needs any more are not to be written when a server stops.
        let cleared = match &end {
            Ok(PassEnd::Complete) => each(&servers, |server| fleet.clear(schedule, server)),
            _ => Ok(()),
        };
        let stopped = each(&servers, |server| fleet.stop_one(schedule, server));
        session.keep_marks(began_ns, schedule, &servers, fleet)?;
        session.keep_observed(&[], series.as_mut())?;
        // The next server has the disk to itself, and the next pass on these an empty cluster: neither WAL
        // nor files of this pass, however it ended.
        let restored = match &end {
            Ok(PassEnd::Complete | PassEnd::Lost(..)) => {
                each(&servers, |server| fleet.restore(schedule, server))
            }
            Ok(PassEnd::Interrupted) | Err(_) => Ok(()),
        };
        match end {
            Ok(PassEnd::Complete) => cleared.and(stopped).and(restored).map(|()| None),
            // Who ended us may have ended the servers too, and before us.
            Ok(PassEnd::Interrupted) => Ok(Some(SessionEnd::Interrupted)),
            // A server that shuts down refuses what it is asked.
            Ok(PassEnd::Lost(..)) | Err(_) if session.ends_now() => {
                Ok(Some(SessionEnd::Interrupted))
            }
            // The loss is told; that the lost server does not stop cleanly is no news.
            Ok(PassEnd::Lost((server, cell), cause)) => {
                let place = (block, cell, server);
                session.note_loss(place, &cause, schedule, fleet, progress)?;
                restored.map(|()| None)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Starts servers, empty, one after another, and has their passes done.
    fn passes(
        &mut self,
        session: &mut Session<'_>,
        (block, schedule): (u32, &BlockSchedule),
        lot: &[(u32, ServerId)],
    ) -> Result<PassEnd, Problem> {
        let Some(first) = session.plan.cells.first() else {
            return Ok(PassEnd::Complete);
        };
        let mut started = Vec::new();
        for &(position, server) in lot {
            let address = self.place.fleet.start_one(schedule, server)?;
            let address = address_for(&address, session.plan.order, first);
            self.place.fleet.renew(schedule, server, first)?;
            self.kind.started(&address)?;
            started.push((position, server, address));
        }
        let all = started.iter();
        let turns: Vec<Turn<'_>> = all
            .map(|(position, server, address)| Turn {
                block,
                position: *position,
                server: *server,
                address,
                schedule,
            })
            .collect();
        if let Some(series) = &mut self.place.series {
            let all = turns.iter().map(|turn| (turn.server, turn.address));
            series.set_servers(&postmasters_of(&all.collect::<Vec<_>>()));
        }
        self.kind.passes(session, &turns, &mut self.place)
    }
}

/// Does it with every server, whether or not it fails with another one.
///
/// Errors: the first failure.
fn each(
    servers: &[ServerId],
    mut act: impl FnMut(ServerId) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let ends = servers.iter().map(|server| act(*server));
    let ends: Vec<Result<(), Problem>> = ends.collect();
    ends.into_iter().collect()
}

impl Place<'_> {
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

    /// Stores what came out in a cell, with the series so far, and tells how far the block is; what ended the
    /// pass, if something did. What breaks by the signal that ends the run is not stored.
    ///
    /// Errors: a store that cannot be written.
    pub(crate) fn keep(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        record: &Record,
        line: &str,
    ) -> Result<Option<PassEnd>, Problem> {
        if record.void.is_some() && session.ends_now() {
            return Ok(Some(PassEnd::Interrupted));
        }
        session
            .store
            .add_record(session.run, record)
            .map_err(store_problem)?;
        session.keep_observed(&[], self.series.as_mut())?;
        session.observer.note(line);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let cells = number(session.plan.cells.len());
        let all = cells.saturating_mul(number(session.plan.servers.len()));
        let done = turn.position.saturating_mul(cells) + record.cell.0 + 1;
        session.observer.visit(turn.block, done, all);
        let void = record.void.clone();
        Ok(void.map(|reason| turn.lost(record.cell, reason)))
    }
}

impl<K: PassKind> Blocks for PassBlocks<'_, K> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.load(&mut self.place.fleet, &[], &self.place.host)?;
        self.place.series = series(session.plan, self.place.fleet.directory());
        self.kind.begin(self.place.fleet.directory())?;
        session.record_sources()
    }

    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        Ok(complete_blocks(session.plan, &good(session)?))
    }

    /// Gives every server whose pass is not complete its turn, alone or with all others. A pass that loses
    /// its server is begun again after the last block.
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
        for lot in self.lots(session.plan, block, &good(session)?) {
            if session.interrupted.load(Ordering::Relaxed) {
                return Ok(BlockEnd::Interrupted);
            }
            let ended = self.lot(session, (block, &schedule), &lot, progress)?;
            if ended == Some(SessionEnd::Interrupted) {
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
        session.conclude_servers(&self.place.fleet, matches!(end, Ok(SessionEnd::Finished)))
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        self.place.fleet.dismantle()
    }
}

/// Places of all records that are stored and good.
fn good(session: &Session<'_>) -> Result<Vec<Done>, Problem> {
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
fn complete_blocks(plan: &Plan, done: &[Done]) -> Vec<(u32, CellId)> {
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
    turn: Turn<'_>,
    cell: CellId,
    end: SettleEnd,
) -> Result<Option<PassEnd>, Problem> {
    let settled = match end {
        SettleEnd::Settled(settled) => settled,
        SettleEnd::Interrupted => return Ok(Some(PassEnd::Interrupted)),
        SettleEnd::Stalled => return Ok(Some(turn.lost(cell, VoidReason::Stalled))),
    };
    let place = (Some(turn.server), Some(turn.block));
    session
        .store
        .add_fact(session.run, place, &settled)
        .map_err(store_problem)?;
    Ok(None)
}

impl Turn<'_> {
    /// That its server was lost, or its pass, at this cell.
    pub(crate) fn lost(self, cell: CellId, reason: VoidReason) -> PassEnd {
        PassEnd::Lost((self.server, cell), reason.into())
    }

    /// That its server is gone, or else the problem.
    ///
    /// Errors: the problem, if the server still runs.
    pub(crate) fn lost_or(self, problem: Problem, cell: CellId) -> Result<PassEnd, Problem> {
        match self.address.postmaster.local_pid() {
            Some(pid) if is_dying(pid) => Ok(self.lost(cell, VoidReason::ServerLost)),
            _ => Err(problem),
        }
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
