//! What is known of a ratio beyond the hour in which it was measured.

use super::{MetricComparison, Ratio, Verdict};
use deltabench_stats::between::Between;

/// A metric of a cell in several sessions, or in one beside earlier runs of the same host.
#[derive(Debug, Clone, PartialEq)]
pub struct Hours {
    /// The ratio of each session, in their order; empty for a single one.
    pub sessions: Vec<Ratio>,
    /// The mean over many hours: of the sessions, or of this run and the earlier ones of the same comparison.
    pub long_run: Ratio,
    /// What a session of this length in another hour would say. Its centre is that of `long_run`; in 95 of
    /// 100 cases the further session's own ratio lies in its `ci95`.
    pub another: Ratio,
    /// What it is known from.
    pub from: HoursFrom,
    /// Whether an assumption about hosts takes part, because too little was measured again. Then no gate
    /// rests on it, and what depends on a condition says so.
    pub assumed: bool,
    /// Whether it is wider, by a tenth or more, because the ratio clearly goes with the speed of the host:
    /// hours may be as fast as the fast blocks of this run or as slow as its slow ones.
    pub by_host_speed: bool,
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
    /// What two runs in different hours may differ by, on the log scale, around any centre.
    pub(crate) apart: Between,
}

/// From what another hour is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoursFrom {
    /// So many sessions of this run.
    Sessions(u32),
    /// This run and earlier ones of the same comparison on this host: so many in all.
    Pair(u32),
    /// Other comparisons of this host: how often their cells were measured again.
    Host(u32),
    /// Nothing that was measured: an assumption about hosts.
    Prior,
}

impl HoursFrom {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sessions(_) => "sessions",
            Self::Pair(_) => "pair",
            Self::Host(_) => "host",
            Self::Prior => "prior",
        }
    }

    /// How many runs or repetitions; none are behind an assumption.
    pub fn number(self) -> u32 {
        match self {
            Self::Sessions(number) | Self::Pair(number) | Self::Host(number) => number,
            Self::Prior => 0,
        }
    }
}

impl MetricComparison {
    /// What was measured of other hours: nothing in which an assumption takes part.
    pub(crate) fn measured_hours(&self) -> Option<&Hours> {
        self.hours.as_ref().filter(|hours| !hours.assumed)
    }
}
