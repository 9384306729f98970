//! Statements that failed while they were timed.

use super::record::VisitRecord;
use deltabench_model::plan::{CellId, ServerId};
use std::collections::{BTreeMap, BTreeSet};

/// A statement is given up after so many blocks in which other work was in its way: a lock, the log that a
/// standby replays, memory. Such blocks do not count, and say nothing of a server.
const TRIES: usize = 3;

/// What failed in any block, by statement.
#[derive(Debug, Default)]
pub struct Failures(BTreeMap<CellId, Failed>);

/// How a statement failed.
#[derive(Debug, Clone, Default)]
pub struct Failed {
    /// The latest one.
    pub sqlstate: String,
    /// Where; none if the errors say nothing of a server.
    pub servers: BTreeSet<ServerId>,
    pub blocks: BTreeSet<u32>,
}

impl Failed {
    /// Whether it has no verdict, and is not tried again.
    pub fn is_final(&self) -> bool {
        !self.servers.is_empty() || self.blocks.len() >= TRIES
    }
}

impl Failures {
    /// Takes in a visit, whether it failed or not.
    pub fn add(&mut self, (block, cell): (u32, CellId), visit: &VisitRecord) {
        let Some(sqlstate) = &visit.failed else {
            return;
        };
        let of = self.0.entry(cell).or_default();
        of.sqlstate.clone_from(sqlstate);
        of.servers.extend(visit.failed_on);
        of.blocks.insert(block);
    }

    /// How a statement failed for good.
    pub fn finally(&self, cell: CellId) -> Option<&Failed> {
        self.0.get(&cell).filter(|failed| failed.is_final())
    }

    pub fn iter(&self) -> impl Iterator<Item = (CellId, &Failed)> {
        self.0.iter().map(|(cell, failed)| (*cell, failed))
    }
}
