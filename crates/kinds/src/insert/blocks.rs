//! The stages of a pass, and what is kept of them.

use super::baton::Baton;
use super::pass::{Pass, StepEnd, steps};
use super::progress::progress_of;
use crate::passes::{PassAlone, PassEnd, Place, Turn, settled};
use crate::settling::SettleEnd;
use deltabench_driver::insert::InsertPosition;
use deltabench_model::plan::CellId;
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_run::session::Session;

/// All steps, one after another.
pub(super) struct Steps<'p> {
    pub(super) setup: &'p InsertSetup,
}

impl PassAlone for Steps<'_> {
    fn pass(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        place: &mut Place<'_>,
    ) -> Result<PassEnd, Problem> {
        let mut pass = pass_of(session, self.setup, (turn, place))?;
        for stage in Stage::all(self.setup) {
            stage.announce(session);
            let end = stage.carry_out(&mut pass, None);
            if let Some(end) = kept(session, (turn, place), self.setup, end)? {
                return Ok(end);
            }
        }
        Ok(PassEnd::Complete)
    }
}

/// What a server goes through in its pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// Before this cell.
    Settle(CellId),
    Step(CellId, InsertStep),
}

/// What a stage came to.
pub(super) enum StageEnd {
    /// Before this cell.
    Settled(CellId, Result<SettleEnd, Problem>),
    Step(CellId, InsertStep, Result<StepEnd, Problem>),
}

impl Stage {
    /// Those of a pass, in order.
    pub(super) fn all(setup: &InsertSetup) -> Vec<Self> {
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

    /// The cell that it is about.
    pub(super) fn cell(self) -> CellId {
        match self {
            Self::Settle(cell) | Self::Step(cell, _) => cell,
        }
    }

    /// Says that it begins.
    pub(super) fn announce(self, session: &mut Session<'_>) {
        if let Self::Step(cell, _) = self {
            session.doing(cell);
        }
    }

    /// All of it. With a baton a step is cut into turns.
    pub(super) fn carry_out(self, pass: &mut Pass<'_>, baton: Option<&Baton>) -> StageEnd {
        match self {
            Self::Settle(cell) => StageEnd::Settled(cell, pass.settle()),
            Self::Step(cell, step) => StageEnd::Step(cell, step, pass.step(cell, step, baton)),
        }
    }
}

/// The pass of a server, before its first step.
///
/// Errors: a server that is none of ours.
pub(super) fn pass_of<'s: 'a, 'a>(
    session: &Session<'s>,
    setup: &'a InsertSetup,
    (turn, place): (Turn<'a>, &Place<'_>),
) -> Result<Pass<'a>, Problem> {
    Ok(Pass {
        plan: session.plan,
        setup,
        block: turn.block,
        server: turn.server,
        position: turn.position,
        address: turn.address,
        data_dir: place.data_dir(turn)?,
        log: place.log(turn)?,
        interrupted: session.interrupted,
        tables: InsertPosition::default(),
    })
}

/// Keeps what a stage came to; what ended the pass, if something did.
///
/// Errors: the problem of a stage whose server still runs; a store that cannot be written.
pub(super) fn kept(
    session: &mut Session<'_>,
    (turn, place): (Turn<'_>, &mut Place<'_>),
    setup: &InsertSetup,
    end: StageEnd,
) -> Result<Option<PassEnd>, Problem> {
    Ok(match end {
        StageEnd::Settled(cell, Ok(end)) => settled(session, turn, cell, end)?,
        StageEnd::Step(_, step, Ok(StepEnd::Recorded(record))) => {
            let line = progress_of(session.plan, setup, &record, step).line();
            place.keep(session, turn, &record.record()?, &line)?
        }
        StageEnd::Step(_, _, Ok(StepEnd::Interrupted)) => Some(PassEnd::Interrupted),
        StageEnd::Step(cell, _, Ok(StepEnd::Lost(reason))) => Some(turn.lost(cell, reason)),
        StageEnd::Settled(cell, Err(problem)) | StageEnd::Step(cell, _, Err(problem)) => {
            Some(turn.lost_or(problem, cell)?)
        }
    })
}
