//! What a run tells while it goes on. Only ever called between slices' visits, never inside one.

use crate::pilot::Pilot;
use deltabench_compare::comparison::Comparison;

/// Where a run stands after a block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockProgress {
    pub done: u32,
    /// Most blocks of a cell.
    pub planned: u32,
    /// Cells that go on in the next block.
    pub open_cells: u32,
    pub cells: u32,
    /// What the numbers of a cell's clients count: `client` or `thread`.
    pub worker: &'static str,
    /// Seconds since this session began, set-up included.
    pub elapsed_seconds: f64,
    /// Seconds that will be left at most, at the pace so far.
    pub remaining_seconds: f64,
    /// Whether blocks are passes, of which few tell nothing.
    pub passes: bool,
    /// What the data say so far; absent until there is something to compare.
    pub comparison: Option<Comparison>,
}

/// Receiver of a run's progress.
pub trait Observer {
    /// One line about set-up, trouble or clean-up.
    fn note(&mut self, text: &str);
    /// What is being done from now on, until the next call: `point-query at 4 clients`.
    fn doing(&mut self, _what: &str) {}
    /// A visit has ended: `done` of `planned` cells of block `block` (from 0).
    fn visit(&mut self, block: u32, done: u32, planned: u32);
    /// The pilot has ended.
    fn pilot(&mut self, pilot: &Pilot);
    /// A block has ended.
    fn block(&mut self, progress: &BlockProgress);
}
