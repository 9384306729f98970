//! How long a block takes.

use deltabench_model::slice::Slice;
use deltabench_model::units::seconds;
use deltabench_stats::summary::median;
use std::collections::BTreeMap;

/// Seconds from one block to the next in this run, with all that belongs to it; `None` before the second.
///
/// The median, so that an interrupted run's night does not count.
pub(crate) fn seconds_per_block(slices: &[Slice]) -> Option<f64> {
    let mut starts: BTreeMap<u32, u64> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice.started_ns > 0) {
        let start = starts.entry(slice.block).or_insert(u64::MAX);
        *start = slice.started_ns.min(*start);
    }
    let starts: Vec<u64> = starts.into_values().collect();
    let steps: Vec<f64> = std::iter::zip(&starts, starts.iter().skip(1))
        .map(|(from, to)| seconds(to.saturating_sub(*from)))
        .collect();
    median(&steps).filter(|seconds| *seconds > 0.0)
}
