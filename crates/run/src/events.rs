//! What a run tells while it goes on. Only ever called between slices' visits, never inside one.

use deltabench_compare::comparison::Comparison;

/// Where a run stands after a block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockProgress {
    /// Blocks done.
    pub done: u32,
    /// Blocks planned.
    pub planned: u32,
    /// Seconds since measuring began, in this process.
    pub elapsed_seconds: f64,
    /// Seconds that the remaining blocks will take at the pace so far.
    pub remaining_seconds: f64,
    /// What the data say so far; absent until there is something to compare.
    pub comparison: Option<Comparison>,
}

/// Receiver of a run's progress.
pub trait Observer {
    /// One line about set-up, trouble or clean-up.
    fn note(&mut self, text: &str);
    /// A visit has ended: `done` of `planned` cells of block `block` (from 0).
    fn visit(&mut self, block: u32, done: u32, planned: u32);
    /// A block has ended.
    fn block(&mut self, progress: &BlockProgress);
}
