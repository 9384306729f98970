//! Many cells at once: what may be listed, and what may fail a gate.

use crate::comparison::{CellComparison, Verdict};
use crate::thresholds::LISTED_FALSE;
use crate::words;
use deltabench_stats::multiplicity::{benjamini_hochberg, holm};

/// Fills the adjusted p of every comparison, and takes back the regressions and improvements that do not hold
/// among so many.
///
/// All cells and candidates are one family. What has no p yet counts as 1, so that the family is as large
/// at the start of a run as at its end.
pub(crate) fn adjust(cells: &mut [&mut CellComparison]) {
    let p: Vec<f64> = cells.iter().map(|cell| cell.p.unwrap_or(1.0)).collect();
    let family = p.len();
    let adjusted = std::iter::zip(holm(&p), benjamini_hochberg(&p));
    for (cell, (holm, listed)) in cells.iter_mut().zip(adjusted) {
        let Some(p) = cell.p else { continue };
        cell.p_holm = Some(holm);
        cell.p_bh = Some(listed);
        let different = cell.verdict.is_change();
        if different && listed > LISTED_FALSE {
            cell.verdict = Verdict::Inconclusive;
            cell.reason = format!(
                "{}; alone {}, not among {family} comparisons",
                cell.reason,
                words::p(p)
            );
        }
    }
}
