//! Columns of servers that a run did not measure: earlier runs of its host did, beside the same base.

use super::collect::Set;
use super::figures::{column, figure};
use super::{Figure, StudyTable};
use crate::comparison::{Metric, Ratio, Verdict};
use crate::judge::{decide, gain};
use crate::thresholds::log_delta;
use deltabench_model::plan::CellId;
use deltabench_stats::Interval;

/// A server that earlier runs stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct ViaColumn {
    /// With where it comes from: `postgres:15.10 via 17.11 (3 occasions)`.
    pub name: String,
    pub figures: Vec<ViaFigure>,
}

/// What earlier runs say of it in a cell of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ViaFigure {
    pub cell: CellId,
    pub metric: Metric,
    /// Relative to the base, with the interval in which one more run of it would lie.
    pub ratio: Ratio,
    /// Absent where too little is behind it to judge it.
    pub verdict: Option<Verdict>,
    /// Earlier runs behind it.
    pub occasions: u32,
}

/// What a ratio says that lies in this 95 % interval: that it is equal takes the whole of it inside of ±δ.
pub fn via_verdict(metric: Metric, (low, high): (f64, f64), delta: f64) -> Verdict {
    let ends = Interval {
        low: low.ln(),
        high: high.ln(),
    };
    let gain = gain(metric, ends);
    decide(gain, gain, gain, log_delta(delta))
}

/// Puts these columns behind the base: they are older than what the run measured.
pub(super) fn insert(table: &mut StudyTable, set: &Set<'_>, clients: u32) {
    let mut at = table.base + 1;
    for via in set.via() {
        let figures: Vec<Option<Figure>> = { table.rows.iter() }
            .map(|row| {
                let found = set.via_figure(&via.name, (&row.name, clients), table.metric)?;
                let base = row.figures.get(table.base)?.as_ref()?;
                let absolute = base.absolute * found.ratio.estimate;
                Some(Figure {
                    verdict: found.verdict,
                    ..figure(found.ratio, absolute, found.occasions)
                })
            })
            .collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        table.columns.insert(at, column(&via.name));
        for (row, figure) in table.rows.iter_mut().zip(figures) {
            row.figures.insert(at, figure);
        }
        at += 1;
    }
}
