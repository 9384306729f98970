//! The passes of a block: on which servers, in which order, and what is kept of them.

use super::pass::{Load, LoadEnd, Pass};
use super::record::{TestRecord, tests};
use super::stages::{Stage, settling, stages};
use crate::settling::SettleEnd;
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_model::units::{seconds, to_f64};
use deltabench_model::work::procedure::ProcedureSetup;
use deltabench_observe::{Series, own_affinity, pin_self, pin_tree, restore};
use deltabench_run::benchmark::{BlockEnd, Blocks};
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::schedule::{BlockSchedule, VisitSchedule, pass_order};
use deltabench_run::session::{
    BlockOrder, RunProgress, Session, SessionEnd, now_ns, postmasters_of, series, store_problem,
};
use deltabench_run::visit::{Address, Cause, host_problem, is_dying};
use deltabench_workload::executable::Executable;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Good records: block, cell and server.
type Done = BTreeSet<(u32, CellId, ServerId)>;

/// What passes need beside the session itself.
pub(super) struct BlockState<'p> {
    fleet: Fleet<'p>,
    /// What the host was before.
    host: HostFacts,
    setup: &'p ProcedureSetup,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
    cores: Vec<usize>,
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
        setup: &'p ProcedureSetup,
        session: &mut Session<'p>,
    ) -> Result<Self, Problem> {
        let (fleet, host) = session.fleet()?;
        Ok(Self {
            fleet,
            host,
            setup,
            series: None,
            cores: own_affinity().unwrap_or_default(),
        })
    }
}

/// Places of all tests that are stored and good.
fn done_tests(session: &Session<'_>) -> Result<Done, Problem> {
    let records = session.store.records(session.run).map_err(store_problem)?;
    let tests = tests(&records)?.into_iter();
    let good = tests.filter(|test| test.void.is_none());
    Ok(good
        .map(|test| (test.block, test.cell, test.server))
        .collect())
}

/// The servers whose pass of a block is not complete, in the block's order, each with its place in it.
fn open_passes(plan: &Plan, block: u32, done: &Done) -> Vec<(u32, ServerId)> {
    let all = |server: ServerId| {
        let mut cells = CellId::each().take(plan.cells.len());
        cells.all(|cell| done.contains(&(block, cell, server)))
    };
    (0..)
        .zip(pass_order(plan, block))
        .filter(|(_, server)| !all(*server))
        .collect()
}

impl Blocks for BlockState<'_> {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.load(&mut self.fleet, &[], &self.host)?;
        self.series = series(session.plan, self.fleet.directory());
        session.record_sources()
    }

    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        let (plan, done) = (session.plan, done_tests(session)?);
        let whole = |block: &u32| open_passes(plan, *block, &done).is_empty();
        let cells = |block| {
            let all = CellId::each().take(plan.cells.len());
            all.map(move |cell| (block, cell))
        };
        let blocks = (0..plan.timing.blocks).filter(whole);
        Ok(blocks.flat_map(cells).collect())
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
        for (position, server) in open_passes(session.plan, block, &done_tests(session)?) {
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
        if !open_passes(session.plan, block, &done_tests(session)?).is_empty() {
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
        restore(&self.cores).map_err(host_problem)?;
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
        // The next server has the disk to itself, and the next pass on this one an empty cluster.
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
        let (plan, server) = (session.plan, turn.server);
        let Some(first) = plan.cells.first() else {
            return Ok(PassEnd::Complete);
        };
        let address = self.fleet.start_one(turn.schedule, server)?;
        let address = address_for(&address, plan.order, first);
        self.fleet.renew(turn.schedule, server, first)?;
        if let Some(series) = &mut self.series {
            series.set_servers(&postmasters_of(&[(server, &address)]));
        }
        let pass = Pass {
            plan,
            block: turn.block,
            server,
            position: turn.position,
            address: &address,
            data_dir: self.fleet.data_dir(turn.schedule, server)?,
            client_cores: self.place(plan, turn, first, &address)?,
            interrupted: session.interrupted,
        };
        let name = plan.server_name(server);
        session.observer.doing(&format!("loading {name}"));
        let load_seconds = match pass.load() {
            Ok(None) => return Ok(PassEnd::Interrupted),
            Ok(Some(seconds)) => seconds,
            Err(problem) => return lost_or(problem, CellId::default(), &address),
        };
        let rows = to_f64(plan.data.rows) * f64::from(plan.data.tables);
        session.observer.note(&format!(
            "{name}: {rows:.0} rows in {load_seconds:.1} s, {:.0} a second",
            rows / load_seconds.max(1e-9)
        ));
        let mut reached = CellId::default();
        for stage in stages(plan, self.setup) {
            if let Stage::Test { cell, .. } = stage {
                reached = cell;
            }
            match self.stage(session, (turn, &pass), stage, load_seconds) {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(end),
                Err(problem) => return lost_or(problem, reached, &address),
            }
        }
        Ok(PassEnd::Complete)
    }

    /// Pins client and server where the plan wants it, for the whole pass; cores of the client.
    fn place(
        &self,
        plan: &Plan,
        turn: Turn<'_>,
        first: &Cell,
        address: &Address,
    ) -> Result<Vec<usize>, Problem> {
        let placed = VisitSchedule::of(plan, turn.block, CellId::default(), first, &self.cores);
        if !placed.server_cores.is_empty() {
            pin_tree(address.own_pid()?, &placed.server_cores).map_err(host_problem)?;
        }
        if !placed.client_cores.is_empty() {
            pin_self(&placed.client_cores).map_err(host_problem)?;
        }
        Ok(placed.client_cores)
    }

    /// A part of a pass; what ended the pass, if something did.
    fn stage(
        &mut self,
        session: &mut Session<'_>,
        (turn, pass): (Turn<'_>, &Pass<'_>),
        stage: Stage,
        load_seconds: f64,
    ) -> Result<Option<PassEnd>, Problem> {
        let plan = session.plan;
        let compiled = |workload: &str| -> Result<Executable, Problem> {
            session.library.get(workload)?.compile(&plan.data)
        };
        match stage {
            Stage::Settle => {
                session.observer.doing("vacuum, checkpoint, sleep");
                settle(session, turn, pass.settle(settling(plan, self.setup))?)
            }
            Stage::WarmUp {
                workload,
                clients,
                seconds,
            } => {
                let executable = compiled(workload)?;
                session.observer.doing(&format!("warm-up: {workload}"));
                let load = Load {
                    executable: &executable,
                    clients,
                    jobs: plan.jobs.of(clients),
                    seconds,
                    cell: None,
                };
                Ok(match pass.send(load, load_seconds)? {
                    LoadEnd::Recorded(_) => None,
                    LoadEnd::Interrupted => Some(PassEnd::Interrupted),
                    LoadEnd::Lost(reason) => Some(PassEnd::Lost(CellId::default(), reason.into())),
                })
            }
            Stage::Test { cell, seconds } => {
                let Some(planned) = plan.cell(cell) else {
                    return Ok(None);
                };
                let executable = compiled(&planned.workload)?;
                session.doing(cell);
                let load = Load {
                    executable: &executable,
                    clients: planned.clients,
                    jobs: plan.threads(planned),
                    seconds,
                    cell: Some(cell),
                };
                Ok(match pass.send(load, load_seconds)? {
                    LoadEnd::Recorded(record) => {
                        self.keep_test(session, &record, planned, turn)?;
                        record.void.map(|reason| PassEnd::Lost(cell, reason.into()))
                    }
                    LoadEnd::Interrupted => Some(PassEnd::Interrupted),
                    LoadEnd::Lost(reason) => Some(PassEnd::Lost(cell, reason.into())),
                })
            }
        }
    }

    /// Stores a test, with the series so far, and tells of it.
    fn keep_test(
        &mut self,
        session: &mut Session<'_>,
        record: &TestRecord,
        cell: &Cell,
        turn: Turn<'_>,
    ) -> Result<(), Problem> {
        session
            .store
            .add_record(session.run, &record.record()?)
            .map_err(store_problem)?;
        session.keep_observed(&[], self.series.as_mut())?;
        let tests = u32::try_from(session.plan.cells.len()).unwrap_or(u32::MAX);
        let servers = u32::try_from(session.plan.servers.len()).unwrap_or(u32::MAX);
        let published = cell.published.per_operation * to_f64(record.operations)
            / seconds(record.duration_ns.max(1));
        session.observer.note(&format!(
            "{}: {} at {} clients, {published:.0} {}",
            session.plan.server_name(record.server),
            cell.workload,
            cell.clients,
            cell.published.unit
        ));
        let done = turn.position * tests + record.cell.0 + 1;
        session.observer.visit(turn.block, done, tests * servers);
        Ok(())
    }
}

/// Stores what settling took; what ended the pass, if something did.
fn settle(
    session: &mut Session<'_>,
    turn: Turn<'_>,
    end: SettleEnd,
) -> Result<Option<PassEnd>, Problem> {
    let settled = match end {
        SettleEnd::Settled(settled) => settled,
        SettleEnd::Interrupted => return Ok(Some(PassEnd::Interrupted)),
        SettleEnd::Stalled => {
            let cause = VoidReason::Stalled.into();
            return Ok(Some(PassEnd::Lost(CellId::default(), cause)));
        }
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
