//! What is known of a ratio beyond the hour in which it was measured.

use super::{MetricComparison, Ratio, Verdict};
use deltabench_stats::between::{Between, Scatter};
use deltabench_stats::summary::mean;
use std::collections::BTreeMap;

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
    /// Whether it is wider than sessions alone say, because they are of one evening and a virtual machine may
    /// be slow for hours.
    pub by_slow_hours: bool,
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
    /// The same with slow hours, where they are allowed for beside sessions.
    pub(crate) next_slow: Option<Between>,
    /// How loads and hours scatter, on the log scale; absent over sessions, whose own scatter says it.
    pub(crate) scatter: Option<Scatter>,
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

/// The sessions that a comparison is made of, each of which is a load of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions {
    /// How many there are.
    pub number: u32,
    /// How many numbers of blocks each has; those of the first begin with 0.
    pub blocks: u32,
}

impl Sessions {
    /// The session of a block, from 0.
    pub(crate) fn of_block(&self, block: u32) -> u32 {
        block / self.blocks.max(1)
    }

    /// Values of blocks, those of each session together. Without sessions all are of one load.
    ///
    /// Shape:  in the order of the sessions; those without a block are left out.
    pub(crate) fn split<T>(
        sessions: Option<Self>,
        blocks: impl Iterator<Item = (u32, T)>,
    ) -> Vec<Vec<T>> {
        Self::numbered(sessions, blocks).into_values().collect()
    }

    /// The same, each with the number of its session, from 0.
    pub(crate) fn numbered<T>(
        sessions: Option<Self>,
        blocks: impl Iterator<Item = (u32, T)>,
    ) -> BTreeMap<u32, Vec<T>> {
        let mut split: BTreeMap<u32, Vec<T>> = BTreeMap::new();
        for (block, value) in blocks {
            let session = sessions.map_or(0, |all| all.of_block(block));
            split.entry(session).or_default().push(value);
        }
        split
    }
}

impl MetricComparison {
    /// The sample of its mean: blocks, or the means of sessions where there are several.
    pub fn sample(&self, sessions: Option<Sessions>) -> Vec<f64> {
        match self.by_session(sessions).as_slice() {
            [] | [_] => self.blocks.clone(),
            several => several.iter().filter_map(|one| mean(one)).collect(),
        }
    }

    /// The log-ratios of its blocks, those of each session together.
    pub(crate) fn by_session(&self, sessions: Option<Sessions>) -> Vec<Vec<f64>> {
        if sessions.is_none() {
            return vec![self.blocks.clone()];
        }
        let blocks = std::iter::zip(&self.numbers, &self.blocks);
        Sessions::split(sessions, blocks.map(|(block, value)| (*block, *value)))
    }
}
