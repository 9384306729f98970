//! The right to work, which one server of a block has at a time, and what its turns come to.

use super::record::{StepRecord, StepTurn};
use super::watch::Watch;
use deltabench_driver::insert::TurnFigures;
use deltabench_model::work::insert::{InsertRole, InsertStep};
use deltabench_run::clock::now_ns;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender};

/// The right to work.
pub(crate) struct Baton {
    go: Receiver<()>,
    passed: SyncSender<bool>,
}

impl Baton {
    /// One that comes when `go` says so, and is passed on by `passed`, with whether a stage is over.
    pub(super) fn new(go: Receiver<()>, passed: SyncSender<bool>) -> Self {
        Self { go, passed }
    }

    /// Waits for it; false if the block is over.
    pub(super) fn take(&self) -> bool {
        self.go.recv().is_ok()
    }

    /// Passes it on, at the end of a turn or of a stage, and waits until it is back; false if the block is
    /// over.
    pub(super) fn pass(&self, is_over: bool) -> bool {
        self.passed.send(is_over).is_ok() && self.take()
    }
}

/// The ends of the turns of a step.
pub(super) struct TurnEnds {
    role: InsertRole,
    /// Starts, and what the step had come to at the ends: time, operations, CPU.
    ends: Vec<(u64, u64, u64, Option<u64>)>,
    began_ns: u64,
}

impl TurnEnds {
    /// None yet.
    pub(super) fn new(step: InsertStep) -> Self {
        Self {
            role: match step.queries() {
                true => InsertRole::Query,
                false => InsertRole::Insert,
            },
            ends: Vec::new(),
            began_ns: now_ns(),
        }
    }

    /// A turn is over: nothing counts until the next one. False if there is none.
    pub(super) fn rest(
        &mut self,
        watch: &RefCell<Option<Watch>>,
        baton: Option<&Baton>,
        turn: &TurnFigures,
    ) -> bool {
        let watch = watch.borrow();
        let (Some(watch), Some(baton)) = (watch.as_ref(), baton) else {
            return false;
        };
        let cpu_ns = watch.pause(turn.client_cpu_ns);
        let done = InsertRole::ALL.iter().zip(turn.statements);
        let done = done.filter(|(role, _)| **role == self.role);
        let operations = done.map(|(_, statements)| statements).sum();
        self.ends
            .push((self.began_ns, turn.ended_ns, operations, cpu_ns));
        let goes_on = baton.pass(false);
        watch.resume();
        self.began_ns = now_ns();
        goes_on
    }

    /// The turns of the step, the last one from its totals; none if it was not cut.
    pub(super) fn turns(self, record: &StepRecord, cpu_ns: Option<u64>) -> Vec<StepTurn> {
        if self.ends.is_empty() {
            return Vec::new();
        }
        let last = (self.began_ns, record.duration_ns, record.operations, cpu_ns);
        let mut before = (0, 0, Some(0));
        let ends = self.ends.into_iter().chain([last]);
        ends.map(|(started_ns, ended_ns, operations, cpu_ns)| {
            let turn = StepTurn {
                started_ns,
                duration_ns: ended_ns.saturating_sub(before.0),
                operations: operations.saturating_sub(before.1),
                server_cpu_ns: cpu_ns
                    .zip(before.2)
                    .map(|(now, then): (u64, u64)| now.saturating_sub(then)),
            };
            before = (ended_ns, operations, cpu_ns);
            turn
        })
        .collect()
    }
}
