//! What a run found, a line for each cell and candidate: all that lists and series show of an analysis.

use deltabench_compare::comparison::{CellComparison, Comparison, Confirmation, Metric, Verdict};
use deltabench_compare::words::distance;
use deltabench_model::invalidation::Invalidation;
use deltabench_report::{another_hour, words};
use serde::{Deserialize, Serialize};

/// A cell of a run and a candidate against the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) cell: u32,
    pub(crate) candidate: u32,
    /// As in files: `regression`, `no-change`, …
    pub(crate) verdict: String,
    /// `−1.7 % [−2.1, −1.4]`.
    pub(crate) change: String,
    /// Candidate / base in throughput; absent where nothing was measured.
    pub(crate) ratio: Option<f64>,
    pub(crate) ci95: Option<(f64, f64)>,
    /// What other hours say: `-1.2 % [-1.8, -0.6] over 3 runs; another hour: [-2.4, +0.0]`.
    pub(crate) another: Option<String>,
    /// Whether a second run found it again; absent where none measured it.
    pub(crate) confirmed: Option<bool>,
    /// Whether it, or its run, was withdrawn.
    pub(crate) withdrawn: bool,
    pub(crate) blocks: u32,
}

/// The verdicts with their words.
const VERDICTS: [Verdict; 5] = [
    Verdict::Regression,
    Verdict::Improvement,
    Verdict::NoChange,
    Verdict::Inconclusive,
    Verdict::Unfit,
];

impl Outcome {
    /// Those of a comparison, in its order.
    pub(crate) fn all(comparison: &Comparison, withdrawn: &[Invalidation]) -> Vec<Self> {
        let of = |cell: &CellComparison| Self::of(cell, withdrawn);
        comparison.cells.iter().map(of).collect()
    }

    fn of(cell: &CellComparison, withdrawn: &[Invalidation]) -> Self {
        let speed = cell.metric(Metric::Throughput);
        let ratio = speed.map(|speed| speed.ratio).filter(|_| cell.blocks > 0);
        // What follows the figure of the hour itself, which has a column of its own.
        let another = another_hour(cell)
            .and_then(|note| note.split_once("; ").map(|(_, rest)| rest.to_owned()));
        Self {
            cell: cell.cell.0,
            candidate: cell.candidate.0,
            verdict: cell.verdict.word().to_owned(),
            change: ratio.map_or_else(String::new, |ratio| words::change_interval(&ratio)),
            ratio: ratio
                .map(|ratio| ratio.estimate)
                .filter(|value| value.is_finite()),
            ci95: ratio.and_then(|ratio| ratio.ci95),
            another,
            confirmed: match cell.confirmation {
                Some(Confirmation::Recurred) => Some(true),
                Some(Confirmation::DidNotRecur) => Some(false),
                Some(Confirmation::Open) | None => None,
            },
            withdrawn: withdrawn
                .iter()
                .any(|one| one.cell.is_none_or(|withdrawn| withdrawn == cell.cell)),
            blocks: cell.blocks,
        }
    }

    /// Its verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        let mut all = VERDICTS.into_iter();
        let found = all.find(|verdict| verdict.word() == self.verdict);
        found.unwrap_or(Verdict::Inconclusive)
    }

    /// How far the near end of its interval is from "equal": what is lost or won at least, as a share.
    pub(crate) fn at_least(&self) -> f64 {
        let Some((low, high)) = self.ci95 else {
            return 0.0;
        };
        let near = if low > 1.0 { low } else { high };
        if low <= 1.0 && high >= 1.0 {
            return 0.0;
        }
        distance(near)
    }
}
