//! Columns of servers that a run did not measure: earlier runs of its host did, beside the same base.

use super::collect::Set;
use super::figures::{column, figure};
use super::{Column, Figure, StudyTable};
use crate::comparison::{Metric, Verdict};
use crate::judge::{decide, gain};
use crate::thresholds::log_delta;
use deltabench_stats::Interval;

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
        let head = Column {
            measured: via.measured.clone(),
            ..column(&via.name)
        };
        table.columns.insert(at, head);
        for (row, figure) in table.rows.iter_mut().zip(figures) {
            row.figures.insert(at, figure);
        }
        at += 1;
    }
}
