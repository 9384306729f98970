//! The placebo over all cells.

use crate::comparison::{CellComparison, PlaceboSummary, Ratio, Verdict};
use crate::sample::{BlockValue, ratio};
use deltabench_model::units::count;
use deltabench_stats::summary::mean;
use std::collections::BTreeMap;

/// The block values of the placebo, cell by cell.
#[derive(Default)]
pub(crate) struct Joint {
    throughput: BTreeMap<u32, Vec<f64>>,
    server_cpu: BTreeMap<u32, Vec<f64>>,
}

impl Joint {
    /// Adds a cell.
    pub(crate) fn add(&mut self, throughput: &[BlockValue], server_cpu: &[BlockValue]) {
        for (joint, values) in [
            (&mut self.throughput, throughput),
            (&mut self.server_cpu, server_cpu),
        ] {
            for value in values {
                joint.entry(value.block).or_default().push(value.log_ratio);
            }
        }
    }

    /// The summary; `None` when no cell has a block.
    pub(crate) fn summary(&self, cells: &[CellComparison]) -> Option<PlaceboSummary> {
        let flagged = cells
            .iter()
            .filter(|c| matches!(c.verdict, Verdict::Regression | Verdict::Improvement));
        let judged = cells.iter().filter(|cell| cell.blocks > 0);
        let number = |cells: usize| u32::try_from(count(cells)).unwrap_or(u32::MAX);
        Some(PlaceboSummary {
            throughput: joint_ratio(&self.throughput)?,
            server_cpu: joint_ratio(&self.server_cpu),
            flagged: number(flagged.count()),
            cells: number(judged.count()),
        })
    }
}

/// t over joint block means: cells of one block share the restart, so their mean is one value, not many.
///
/// A cell that lacks a block (a run that ended inside it) is left out of that block's mean.
fn joint_ratio(blocks: &BTreeMap<u32, Vec<f64>>) -> Option<Ratio> {
    let means: Vec<f64> = blocks.values().filter_map(|cells| mean(cells)).collect();
    ratio(&means)
}
