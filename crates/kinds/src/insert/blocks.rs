//! The steps of a pass, and what is kept of them.

use super::pass::{Pass, StepEnd, steps};
use super::progress::progress_of;
use crate::passes::{PassEnd, PassKind, Place, Turn, lost_or, settled};
use deltabench_driver::insert::InsertPosition;
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::InsertSetup;
use deltabench_run::session::Session;
use deltabench_run::visit::Address;

/// All steps, one after another.
pub(super) struct Steps<'p> {
    pub(super) setup: &'p InsertSetup,
}

impl PassKind for Steps<'_> {
    fn pass(
        &mut self,
        session: &mut Session<'_>,
        turn: Turn<'_>,
        (place, address): (&mut Place<'_>, &Address),
    ) -> Result<PassEnd, Problem> {
        let mut pass = Pass {
            plan: session.plan,
            setup: self.setup,
            block: turn.block,
            server: turn.server,
            position: turn.position,
            address,
            data_dir: place.data_dir(turn)?,
            log: place.log(turn)?,
            interrupted: session.interrupted,
            tables: InsertPosition::default(),
        };
        let mut has_settled = false;
        for (cell, step) in steps(self.setup) {
            if step.queries() && !has_settled {
                has_settled = true;
                let ended = match pass.settle() {
                    Ok(end) => settled(session, (turn.server, turn.block), cell, end)?,
                    Err(problem) => Some(lost_or(problem, cell, address)?),
                };
                if let Some(end) = ended {
                    return Ok(end);
                }
            }
            session.doing(cell);
            let end = match pass.step(cell, step, None) {
                Ok(StepEnd::Recorded(record)) => {
                    let line = progress_of(session.plan, self.setup, &record, step).line();
                    place.keep(session, turn, &record.record()?, &line)?;
                    record.void.map(|reason| PassEnd::Lost(cell, reason.into()))
                }
                Ok(StepEnd::Interrupted) => Some(PassEnd::Interrupted),
                Ok(StepEnd::Lost(reason)) => Some(PassEnd::Lost(cell, reason.into())),
                Err(problem) => Some(lost_or(problem, cell, address)?),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(PassEnd::Complete)
    }
}
