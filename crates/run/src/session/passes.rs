//! The passes of the Insert Benchmark: on which servers, in which order, and what is kept of them.

use super::blocks::TIME_UP;
use super::observed::{now_ns, postmasters_of};
use super::{Session, SessionEnd, store_problem};
use crate::events::{BlockProgress, StepProgress};
use crate::fleet::Fleet;
use crate::load::address_for;
use crate::passes::{Pass, SettleEnd, StepEnd, open_passes, steps};
use crate::schedule::BlockSchedule;
use crate::visit::{Address, is_dying};
use deltabench_compare::analyse;
use deltabench_driver::insert::InsertPosition;
use deltabench_model::insert::{InsertSetup, InsertStep, StepRecord};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_model::units::{index, seconds, to_f64};
use deltabench_observe::{MachineSources, Series, SliceMeters};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The fact that says what settling a server took, before its steps of queries.
const SETTLED: &str = "settled";

/// What passes need beside the session itself.
pub(super) struct Passing<'f, 'p> {
    pub(super) fleet: &'f mut Fleet<'p>,
    setup: &'f InsertSetup,
    /// The one-second series; absent where nothing is collected.
    series: Option<Series>,
    /// Start of the session, set-up included.
    began: Instant,
    /// Passes of this session and the seconds that they took.
    pace: (u32, f64),
    losses: u32,
    /// Blocks that were gone through.
    reached: u32,
}

impl<'f, 'p> Passing<'f, 'p> {
    pub(super) fn new(
        setup: &'f InsertSetup,
        fleet: &'f mut Fleet<'p>,
        series: Option<Series>,
        began: Instant,
    ) -> Self {
        Self {
            fleet,
            setup,
            series,
            began,
            pace: (0, 0.0),
            losses: 0,
            reached: 0,
        }
    }
}

/// How a pass ended.
enum PassEnd {
    Complete,
    Interrupted,
    Lost(CellId, VoidReason),
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

impl Session<'_> {
    /// Measures all passes that are not complete. Those that lost their server are begun again after the last
    /// block, until too many were lost.
    pub(super) fn passes(&mut self, passing: &mut Passing<'_, '_>) -> Result<SessionEnd, Problem> {
        self.record_sources()?;
        loop {
            let losses = passing.losses;
            if let Some(end) = self.all_blocks(passing)? {
                return Ok(end);
            }
            if passing.losses == losses {
                return Ok(SessionEnd::Finished);
            }
            self.observer
                .note("passes that lost their server are begun again");
        }
    }

    /// Goes once through all blocks; how the session ended, if it did before the last one.
    fn all_blocks(&mut self, passing: &mut Passing<'_, '_>) -> Result<Option<SessionEnd>, Problem> {
        for block in 0..self.plan.timing.blocks {
            let done = self.done_steps()?;
            let open = open_passes(self.plan, passing.setup, block, &done);
            if open.is_empty() {
                continue;
            }
            let started = Instant::now();
            if passing.series.is_some() {
                self.mark_block(format!("pass {}", block + 1))?;
            }
            let schedule = BlockSchedule::of(self.plan, block);
            for (position, server) in open {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Ok(Some(SessionEnd::Interrupted));
                }
                let turn = Turn {
                    block,
                    position,
                    server,
                    schedule: &schedule,
                    began_ns: now_ns(),
                };
                if self.turn(turn, passing)? == Some(SessionEnd::Interrupted) {
                    return Ok(Some(SessionEnd::Interrupted));
                }
            }
            passing.reached = passing.reached.max(block + 1);
            let left = self.report_passes(passing)?;
            let elapsed = passing.began.elapsed().as_secs_f64();
            let deadline = self.plan.timing.deadline_seconds;
            let last = started.elapsed().as_secs_f64();
            if left > 0 && deadline.is_some_and(|deadline| elapsed + last > deadline) {
                self.observer.note("the time is up");
                self.fact(None, TIME_UP, &passing.reached.into())?;
                return Ok(Some(SessionEnd::Finished));
            }
        }
        Ok(None)
    }

    /// Places of all steps that are stored and good.
    fn done_steps(&self) -> Result<Vec<(u32, CellId, ServerId)>, Problem> {
        let steps = self.store.steps(self.run).map_err(store_problem)?;
        let good = steps.iter().filter(|step| step.void.is_none());
        Ok(good
            .map(|step| (step.block, step.cell, step.server))
            .collect())
    }

    /// One pass, from the start of its server to its stop, and what its log says.
    fn turn(
        &mut self,
        turn: Turn<'_>,
        passing: &mut Passing<'_, '_>,
    ) -> Result<Option<SessionEnd>, Problem> {
        let started = Instant::now();
        let end = self.pass(turn, passing);
        if let Some(series) = &mut passing.series {
            series.set_servers(&[]);
        }
        // Dirty pages of files that nobody needs any more are not to be written when it stops.
        let cleared = match &end {
            Ok(PassEnd::Complete) => passing.fleet.clear(turn.schedule, turn.server),
            _ => Ok(()),
        };
        let stopped = passing.fleet.stop_one(turn.schedule, turn.server);
        self.keep_marks(turn.began_ns, turn.schedule, &[turn.server], passing.fleet)?;
        self.keep_observed(&[], passing.series.as_mut())?;
        // The next server has the disk to itself, and the next pass on this one an empty cluster: neither WAL
        // nor files of this pass, however it ended.
        let restored = match &end {
            Ok(PassEnd::Complete | PassEnd::Lost(..)) => {
                passing.fleet.restore(turn.schedule, turn.server)
            }
            Ok(PassEnd::Interrupted) | Err(_) => Ok(()),
        };
        match end? {
            PassEnd::Complete => {
                passing.pace.0 += 1;
                passing.pace.1 += started.elapsed().as_secs_f64();
                cleared.and(stopped).and(restored).map(|()| None)
            }
            PassEnd::Interrupted => stopped.map(|()| Some(SessionEnd::Interrupted)),
            // The loss is told; that the lost server does not stop cleanly is no news.
            PassEnd::Lost(cell, reason) => {
                let place = (turn.block, cell, turn.server);
                let losses = &mut passing.losses;
                self.note_loss(place, &reason.into(), turn.schedule, passing.fleet, losses)?;
                restored.map(|()| None)
            }
        }
    }

    fn pass(&mut self, turn: Turn<'_>, passing: &mut Passing<'_, '_>) -> Result<PassEnd, Problem> {
        let Some(cell) = self.plan.cells.first() else {
            return Ok(PassEnd::Complete);
        };
        let address = passing.fleet.start_one(turn.schedule, turn.server)?;
        let address = address_for(&address, self.plan.order, cell);
        passing.fleet.renew(turn.schedule, turn.server, cell)?;
        if let Some(series) = &mut passing.series {
            series.set_servers(&postmasters_of(&[(turn.server, &address)]));
        }
        let mut pass = Pass {
            plan: self.plan,
            setup: passing.setup,
            block: turn.block,
            server: turn.server,
            position: turn.position,
            address: &address,
            data_dir: passing.fleet.data_dir(turn.schedule, turn.server)?,
            log: passing.fleet.log_path(turn.schedule, turn.server)?,
            interrupted: self.interrupted,
            tables: InsertPosition::default(),
        };
        let mut settled = false;
        for (cell, step) in steps(passing.setup) {
            if step.queries() && !settled {
                settled = true;
                match self.settle(turn, cell, &pass) {
                    Ok(None) => {}
                    Ok(Some(end)) => return Ok(end),
                    Err(problem) => return lost_or(problem, cell, &address),
                }
            }
            let end = match pass.step(cell, step) {
                Ok(StepEnd::Recorded(record)) => {
                    self.keep_step(&record, step, turn, passing)?;
                    let void = record.void;
                    void.map(|reason| PassEnd::Lost(cell, reason))
                }
                Ok(StepEnd::Interrupted) => Some(PassEnd::Interrupted),
                Ok(StepEnd::Lost(reason)) => Some(PassEnd::Lost(cell, reason)),
                Err(problem) => Some(lost_or(problem, cell, &address)?),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(PassEnd::Complete)
    }

    /// Settles a server and stores what that took; what ended the pass, if something did.
    fn settle(
        &mut self,
        turn: Turn<'_>,
        cell: CellId,
        pass: &Pass<'_>,
    ) -> Result<Option<PassEnd>, Problem> {
        let settled = match pass.settle()? {
            SettleEnd::Settled(settled) => settled,
            SettleEnd::Interrupted => return Ok(Some(PassEnd::Interrupted)),
            SettleEnd::Stalled => return Ok(Some(PassEnd::Lost(cell, VoidReason::Stalled))),
        };
        let value = serde_json::to_value(settled)
            .unwrap_or_default()
            .to_string();
        self.store
            .add_facts(
                self.run,
                Some(turn.server),
                Some(turn.block),
                SETTLED,
                &value,
            )
            .map_err(store_problem)?;
        Ok(None)
    }

    /// Stores a step, with the series so far, and tells of it.
    fn keep_step(
        &mut self,
        record: &StepRecord,
        step: InsertStep,
        turn: Turn<'_>,
        passing: &mut Passing<'_, '_>,
    ) -> Result<(), Problem> {
        self.store
            .add_step(self.run, record)
            .map_err(store_problem)?;
        self.keep_observed(&[], passing.series.as_mut())?;
        let steps = u32::try_from(passing.setup.steps.len()).unwrap_or(u32::MAX);
        let servers = u32::try_from(self.plan.servers.len()).unwrap_or(u32::MAX);
        let done = turn.position * steps + record.cell + 1;
        self.observer
            .step(&progress_of(self.plan, passing.setup, record, step));
        self.observer.visit(turn.block, done, steps * servers);
        Ok(())
    }

    /// Stores, once a session, where the figures of the host come from.
    pub(super) fn record_sources(&mut self) -> Result<(), Problem> {
        let meters = SliceMeters::open(&[]).map_err(|error| {
            Problem::new("the CPU time of servers cannot be read on this host")
                .detail(error.to_string())
        })?;
        let sources = [MachineSources {
            host: None,
            sources: meters.sources(),
        }];
        let value = serde_json::to_value(sources).unwrap_or_default();
        self.fact(None, "meter_sources", &value)
    }

    /// Tells where the run stands; returns how many passes are left.
    fn report_passes(&mut self, passing: &Passing<'_, '_>) -> Result<u32, Problem> {
        let findings = self.store.findings(self.run).map_err(store_problem)?;
        let slices = self.store.slices(self.run).map_err(store_problem)?;
        let blocks = self.plan.timing.blocks;
        let done = self.done_steps()?;
        let open = |block| open_passes(self.plan, passing.setup, block, &done).len();
        let left = u32::try_from((0..blocks).map(open).sum::<usize>()).unwrap_or(u32::MAX);
        let cells = u32::try_from(self.plan.cells.len()).unwrap_or(u32::MAX);
        let (passes, seconds) = passing.pace;
        let each = seconds / f64::from(passes.max(1));
        self.observer.block(&BlockProgress {
            done: passing.reached,
            planned: blocks,
            open_cells: if left == 0 { 0 } else { cells },
            cells,
            elapsed_seconds: passing.began.elapsed().as_secs_f64(),
            remaining_seconds: f64::from(left) * each,
            passes: Some(
                self.plan
                    .cells
                    .iter()
                    .map(|cell| cell.published.clone())
                    .collect(),
            ),
            comparison: (!slices.is_empty()).then(|| analyse(self.plan, &slices, findings)),
        });
        Ok(left)
    }
}

/// The loss of a server that is gone, or else the problem.
fn lost_or(problem: Problem, cell: CellId, address: &Address) -> Result<PassEnd, Problem> {
    match address.postmaster.local_pid() {
        Some(pid) if is_dying(pid) => Ok(PassEnd::Lost(cell, VoidReason::ServerLost)),
        _ => Err(problem),
    }
}

fn progress_of(
    plan: &deltabench_model::plan::Plan,
    setup: &InsertSetup,
    record: &StepRecord,
    step: InsertStep,
) -> StepProgress {
    let cell = plan.cells.get(index(u64::from(record.cell)));
    let took = seconds(record.duration_ns);
    let factor = setup.published_per_operation(step);
    let rate = to_f64(record.operations) * factor / took.max(1e-9);
    let inserted: u64 = record.seconds.iter().map(|second| second.inserted).sum();
    StepProgress {
        block: record.block,
        blocks: plan.timing.blocks,
        server: plan.server_name(record.server),
        step: step.name(),
        seconds: took,
        rate,
        unit: cell.map_or_else(String::new, |cell| cell.published.unit.clone()),
        background: step.rate().map(|target| {
            let wanted = f64::from(target) * f64::from(setup.clients);
            (to_f64(inserted) / took.max(1e-9), wanted)
        }),
        void: record.void_detail.clone().filter(|_| record.void.is_some()),
    }
}
