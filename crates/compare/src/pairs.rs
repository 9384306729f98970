//! Any two servers of a run, whoever is its base.

use crate::comparison::Ratio;
use crate::history::History;
use crate::levels::Levels;
use crate::pairing::Index;
use crate::sample::{Values, ratio};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;

/// The rounds of a run, to be asked about any two servers of it.
pub struct Pairs<'a>(Index<'a>);

impl<'a> Pairs<'a> {
    /// Shape: slices as [`crate::analyse()`] takes them.
    pub fn new(plan: &Plan, slices: &'a [Slice]) -> Self {
        Self(Index::new(plan, slices))
    }

    /// Throughput of the second over that of the first in a cell, with its intervals over blocks; absent
    /// where a side has nothing. `level` is that of the interval that is printed as the 95 % one, as
    /// [`crate::comparison::CellComparison::interval_level`] has it.
    pub fn throughput(
        &self,
        cell: CellId,
        (one, other): (ServerId, ServerId),
        level: f64,
    ) -> Option<Ratio> {
        let rounds = self.0.rounds(cell);
        let history = History::new(&self.0, &rounds, cell, one, other);
        let sample = history.sample(0..history.visits());
        ratio(&Values::of(&sample.throughput), Levels::printing(level))
    }
}
