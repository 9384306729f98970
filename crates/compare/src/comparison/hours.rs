//! What is known of a ratio beyond the hour in which it was measured.

use super::{Ratio, Verdict};
use deltabench_stats::between::Between;

/// A metric of a cell in several sessions, or in one beside earlier runs of the same host.
#[derive(Debug, Clone, PartialEq)]
pub struct Hours {
    /// The ratio of each session, in their order; empty for a single one.
    pub sessions: Vec<Ratio>,
    /// What a session of this length in another hour would say. Its centre is that of the ratio that was
    /// measured; in 95 of 100 cases the further session's own ratio lies in its `ci95`.
    pub another: Ratio,
    /// What it is known from.
    pub from: HoursFrom,
    /// Standard deviation of the true log-ratio from hour to hour, as estimated; 0 where the blocks explain
    /// all that scatters.
    pub sd: f64,
    /// The answer that holds in another hour: the rules for a fixed number of blocks on `another`.
    pub verdict: Verdict,
    /// Two-sided p of "a session in another hour may be equal".
    pub p: f64,
    /// The mean over the sessions, on the log scale; absent for a single one.
    pub(crate) mean: Option<Between>,
    /// Another hour, on the log scale.
    pub(crate) next: Between,
}

/// From what another hour is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoursFrom {
    /// So many sessions of this run.
    Sessions(u32),
    /// So many pairs of earlier runs of this host that repeated a comparison in this cell.
    EarlierPairs(u32),
}

impl HoursFrom {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sessions(_) => "sessions",
            Self::EarlierPairs(_) => "earlier-pairs",
        }
    }

    /// How many.
    pub fn number(self) -> u32 {
        match self {
            Self::Sessions(number) | Self::EarlierPairs(number) => number,
        }
    }
}
