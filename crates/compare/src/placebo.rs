//! When a placebo forbids the verdicts of its cell.

use crate::thresholds::{MIN_BLOCKS, PLACEBO_FALSE, PLACEBO_P, PLACEBO_RELEVANCE, log_delta};
use crate::words;
use deltabench_stats::multiplicity::holm;

/// A placebo that is off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Suspicion {
    /// Two-sided p of "it is not", of this cell alone.
    p: f64,
    /// Mean of its log-ratios.
    centre: f64,
}

impl Suspicion {
    /// What so many blocks say of one cell; `None` if nothing.
    ///
    /// A wide placebo is no reason: its noise is in the candidate's own interval too, which then is
    /// inconclusive by itself, or is far from zero in spite of it.
    ///
    /// `share` of its offset is in the candidates' ratios: all of it where the base alone is the control,
    /// half where the placebo is one, too.
    pub(crate) fn of(
        p: f64,
        (centre, share): (f64, f64),
        blocks: usize,
        delta: f64,
    ) -> Option<Self> {
        let relevant = share * centre.abs() > PLACEBO_RELEVANCE * log_delta(delta);
        let off = blocks >= MIN_BLOCKS && p < PLACEBO_P && relevant;
        off.then_some(Self { p, centre })
    }

    /// Why the cell is unfit: `placebo is off by -2.0 % (p = 0.0011)`.
    pub(crate) fn why(&self) -> String {
        let by = words::signed(self.centre.exp_m1());
        format!("placebo is off by {by} ({})", words::p(self.p))
    }
}

/// Those that hold among all cells.
pub(crate) fn among(cells: Vec<Option<Suspicion>>) -> Vec<Option<Suspicion>> {
    let p = cells.iter().map(|found| found.map_or(1.0, |found| found.p));
    let adjusted = holm(&p.collect::<Vec<f64>>());
    std::iter::zip(cells, adjusted)
        .map(|(found, p)| found.filter(|_| p <= PLACEBO_FALSE))
        .collect()
}
