//! How far a run is: what is done, what it took, and what is left.

use crate::clock::Clock;
use deltabench_model::plan::CellId;
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// How far a run is.
pub struct RunProgress {
    /// Places that are done, or given up.
    done: HashSet<(u32, CellId)>,
    /// All slices of the run so far, in block order.
    pub slices: Vec<Slice>,
    /// Servers lost in this session.
    pub(super) losses: u32,
    /// Blocks in which something is left that is measured after the last one.
    pub(super) postponed: BTreeSet<u32>,
    /// Blocks that were gone through, or looked at.
    pub(super) reached: u32,
    pace: Pace,
}

/// What blocks and visits of this session have taken.
#[derive(Debug, Default)]
struct Pace {
    blocks: u32,
    block_seconds: f64,
    visits: u32,
    visit_seconds: f64,
}

impl RunProgress {
    pub(super) fn new(done: Vec<(u32, CellId)>, slices: Vec<Slice>) -> Self {
        Self {
            done: done.into_iter().collect(),
            slices,
            losses: 0,
            postponed: BTreeSet::new(),
            reached: 0,
            pace: Pace::default(),
        }
    }

    /// Whether a place is done, or given up.
    pub fn is_done(&self, block: u32, cell: CellId) -> bool {
        self.done.contains(&(block, cell))
    }

    /// Notes that a place is done, or given up; false if it was before.
    pub fn set_done(&mut self, block: u32, cell: CellId) -> bool {
        self.done.insert((block, cell))
    }

    /// Notes that a place is done, and what the visit took that began then.
    pub fn visited(&mut self, (block, cell): (u32, CellId), started: Duration, clock: &dyn Clock) {
        self.set_done(block, cell);
        self.pace.visits += 1;
        self.pace.visit_seconds += clock.since(started);
    }

    /// Whether a block has cells to visit among those that are open in it.
    pub(super) fn has_left(&self, block: u32, open: &[CellId]) -> bool {
        open.iter().any(|cell| !self.is_done(block, *cell))
    }

    pub(super) fn block_took(&mut self, block: u32, seconds: f64) {
        self.pace.blocks += 1;
        self.pace.block_seconds += seconds;
        self.reached = self.reached.max(block + 1);
    }

    /// Seconds that so many visits in so many blocks will take.
    pub(super) fn forecast(&self, blocks: u32, visits: u64) -> f64 {
        let Pace { visits: done, .. } = self.pace;
        let each = self.pace.visit_seconds / f64::from(done.max(1));
        let beside = self.pace.block_seconds - self.pace.visit_seconds;
        let overhead = beside / f64::from(self.pace.blocks.max(1));
        f64::from(blocks) * overhead + to_f64(visits) * each
    }
}
