//! Statements that failed while they were timed.

use super::mix::MixRecord;
use super::record::VisitRecord;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_replay::is_conflict;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks that a conflict with other work may cost a statement before it is given up: a lock, the log that a
/// standby replays. No more, because a slower statement meets more of them, and the rest would flatter it.
const CONFLICTS: usize = 1;

/// What failed in any block, by statement.
#[derive(Debug, Default)]
pub struct Failures(BTreeMap<CellId, Failed>);

/// How a statement failed.
#[derive(Debug, Clone, Default)]
pub struct Failed {
    /// The latest one; a conflict only without another error.
    pub sqlstate: String,
    /// Where; none if the errors say nothing of a server.
    pub servers: BTreeSet<ServerId>,
    pub blocks: BTreeSet<u32>,
}

impl Failed {
    /// Whether it has no verdict, and is not tried again.
    pub fn is_final(&self) -> bool {
        !is_conflict(&self.sqlstate) || self.blocks.len() > CONFLICTS
    }
}

impl Failures {
    /// Takes in a visit, whether it failed or not.
    pub fn add(&mut self, (block, cell): (u32, CellId), visit: &VisitRecord) {
        self.note((block, cell), (visit.failed.as_deref(), visit.failed_on));
    }

    /// Takes in a visit to the mix, whether it failed or not.
    pub fn add_mix(&mut self, place: (u32, CellId), visit: &MixRecord) {
        self.note(place, (visit.failed.as_deref(), visit.failed_on));
    }

    fn note(
        &mut self,
        (block, cell): (u32, CellId),
        (sqlstate, server): (Option<&str>, Option<ServerId>),
    ) {
        let Some(sqlstate) = sqlstate else {
            return;
        };
        let of = self.0.entry(cell).or_default();
        if of.sqlstate.is_empty() || !is_conflict(sqlstate) {
            sqlstate.clone_into(&mut of.sqlstate);
        }
        of.servers.extend(server);
        of.blocks.insert(block);
    }

    /// How a statement failed for good.
    pub fn finally(&self, cell: CellId) -> Option<&Failed> {
        self.0.get(&cell).filter(|failed| failed.is_final())
    }

    /// Whether a statement failed in any block.
    pub fn has(&self, cell: CellId) -> bool {
        self.0.contains_key(&cell)
    }

    /// Each statement that failed in any block.
    pub fn iter(&self) -> impl Iterator<Item = (CellId, &Failed)> {
        self.0.iter().map(|(cell, failed)| (*cell, failed))
    }
}
