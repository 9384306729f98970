//! When did it change: levels and steps of versions over all runs of one host.
//!
//! A run that has several versions in it measures the steps between them, block by block. A step is
//! *suspected* if it is beyond chance and beyond what one hour differs from another ([`Watch`]). It is
//! *confirmed* by later runs of the same two ends in other hours, and by those alone. Levels relative to one
//! version come from all runs together ([`Network`]). It knows no database, no files and no clock.
//!
//! What must hold, because earlier tools failed at it:
//! - Runs are taken in the order in which they were measured. Each is judged by what was known then. So a
//!   later run never undoes what an earlier one has confirmed.
//! - A change has two ends that were measured in one run. A version that is measured between them later adds
//!   suspicions of its own.
//! - What raised a suspicion takes no part in confirming it, nor in its size.
//! - However often a suspicion is tried, it is confirmed by chance at most once in 40 ([`Suspicion`]).

mod difference;
mod drift;
mod hours;
mod known;
mod mean;
mod network;
mod overlap;
mod pair;
mod solved;
mod sparse;
mod stars;
mod suspicion;
mod watch;
mod without;

pub use difference::Difference;
pub use known::Known;
pub use mean::geometric_mean;
pub use network::{Again, Level, Network};
pub use overlap::{HOURS, Overlap};
pub use pair::{End, Pair, Pairs, Way};
pub use suspicion::{By, Found, State, Suspicion, TRIED_FOR_MS, TRIES};
pub use watch::Watch;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is assumed of hours until as much was measured: standard deviation of a log-ratio from hour to hour,
/// and the degrees of freedom that this is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumed {
    pub sd: f64,
    pub df: f64,
}

/// A version, at its place in the order of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    /// Versions of one line follow each other: built alike, with the same settings. Steps are inside of one.
    pub line: usize,
    /// Major version: neighbours of one differ less from hour to hour.
    pub branch: u32,
}

/// A run of a host: when it was measured, and what it found in each cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Which hour: runs that follow each other within minutes have one luck.
    pub hour: usize,
    /// Milliseconds since 1970.
    pub began_ms: i64,
    /// Milliseconds since 1970.
    pub ended_ms: i64,
    pub cells: Vec<Measured>,
}

/// What a run found of one metric in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The cell, the same in all runs that do this work.
    pub series: usize,
    /// Which host measured it: the machine as long as nothing about it changed. Another kernel makes another
    /// host, and may move the versions of one branch relative to those of another.
    pub host: usize,
    /// The smallest change that matters, for example 0.02.
    pub delta: f64,
    /// The place of the base among the versions.
    pub base: usize,
    /// Log-ratios to the base by number of block, of each other version by its place.
    pub candidates: BTreeMap<usize, BTreeMap<u32, f64>>,
    /// Copies of the base behind a log-ratio to it: two share its noise out.
    pub base_copies: u32,
    /// How many times the p of its blocks counts, because measuring ended at a look; 1 where it did not.
    pub times: f64,
    /// Whether it may raise and confirm changes. What other load disturbed counts for levels only.
    pub is_sound: bool,
    /// What `candidates` leave out, likewise: blocks that the answer of a version does not rest on, because a
    /// look chose them or it was given before.
    pub others: BTreeMap<usize, BTreeMap<u32, f64>>,
    /// Of how many cells it is the mean ([`geometric_mean`]); 1 for a cell.
    pub members: usize,
    /// What is done, the same in all series that do this work, in whichever way it was measured.
    pub work: usize,
}

impl Measured {
    /// Log-ratios of version `to` to `from`; `None` if one is missing. Of two candidates these are of the
    /// blocks that both have. Where a look found one of them to differ, they are of the blocks that it was
    /// measured again in: those before are chosen.
    pub fn contrast(&self, from: usize, to: usize) -> Option<Vec<f64>> {
        let known = |version: usize| self.candidates.get(&version);
        match (from == self.base, to == self.base) {
            (true, true) => None,
            (true, false) => Some(known(to)?.values().copied().collect()),
            (false, true) => Some(known(from)?.values().map(|value| -value).collect()),
            (false, false) => {
                let mut fair: Vec<u32> = self.fair(from, to)?.collect();
                fair.sort_unstable();
                let step = |block| Some(self.level(to, block)? - self.level(from, block)?);
                Some(fair.into_iter().filter_map(step).collect())
            }
        }
    }

    /// Whether two blocks or more have a contrast of both versions.
    pub(crate) fn has_contrast(&self, from: usize, to: usize) -> bool {
        match (from == self.base, to == self.base) {
            (true, true) => false,
            (true, false) => self.candidates.get(&to).is_some_and(|all| all.len() > 1),
            (false, true) => self.has_contrast(to, from),
            (false, false) => { self.fair(from, to) }.is_some_and(|mut all| all.nth(1).is_some()),
        }
    }

    /// The blocks that two candidates have, in no order, from the first one on that no look has chosen for
    /// either of them: the first one that its answer rests on.
    fn fair(&self, from: usize, to: usize) -> Option<impl Iterator<Item = u32>> {
        let first = |version: usize| self.candidates.get(&version)?.keys().next().copied();
        let first = first(from)?.max(first(to)?);
        let is_fair = move |at: &u32| *at >= first && self.level(from, *at).is_some();
        Some(self.blocks(to).filter(is_fair))
    }

    /// All blocks of a candidate, in no order.
    pub(crate) fn blocks(&self, version: usize) -> impl Iterator<Item = u32> {
        let all = [&self.candidates, &self.others].into_iter();
        let own = all.filter_map(move |all| all.get(&version));
        own.flat_map(BTreeMap::keys).copied()
    }

    /// The log-ratio of a version to the base in a block, whether or not its answer rests on that.
    pub(crate) fn level(&self, version: usize, block: u32) -> Option<f64> {
        if version == self.base {
            return Some(0.0);
        }
        let mut all = [&self.candidates, &self.others].into_iter();
        all.find_map(|all| all.get(&version)?.get(&block).copied())
    }

    /// All versions in it, in their order.
    fn versions(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.candidates.keys().copied().chain([self.base]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Neighbours in the order of their line, among the versions of this run.
    pub fn steps(&self, builds: &[Build]) -> Vec<(usize, usize)> {
        let mut newest: BTreeMap<usize, usize> = BTreeMap::new();
        let mut steps = Vec::new();
        for version in self.versions() {
            let Some(build) = builds.get(version) else {
                continue;
            };
            if let Some(before) = newest.insert(build.line, version) {
                steps.push((before, version));
            }
        }
        steps
    }
}

/// A value with its 95 % interval, as log-ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// A count as `f64`; exact up to 2^53.
#[allow(clippy::as_conversions)]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let blocks = |from: u32, value: f64| (from..from + 3).map(|block| (block, value)).collect();
        Measured {
            series: 0,
            host: 0,
            delta: 0.02,
            base: 1,
            candidates: BTreeMap::from([(0, blocks(0, 0.01)), (3, blocks(1, 0.03))]),
            base_copies: 1,
            times: 1.0,
            is_sound: true,
            others: BTreeMap::new(),
            members: 1,
            work: 0,
        }
    }

    #[test]
    fn what_a_look_found_is_compared_with_what_had_its_answer_before() {
        let blocks = |from: u32, value: f64| -> BTreeMap<u32, f64> {
            (from..from + 6)
                .map(|block| (block, value + f64::from(block) / 1e3))
                .collect()
        };
        // Version 0 was equal at the first look; 3 differed there, and was measured again.
        let mut cell = Measured {
            candidates: BTreeMap::from([(0, blocks(0, 0.01)), (3, blocks(6, 0.05))]),
            ..measured()
        };
        assert_eq!(cell.contrast(0, 3), Some(Vec::new()));
        assert!(!cell.has_contrast(0, 3));
        cell.others = BTreeMap::from([(0, blocks(6, 0.02)), (3, blocks(0, 0.09))]);
        for (ends, wanted) in [((0, 3), 0.03), ((3, 0), -0.03)] {
            let found = cell.contrast(ends.0, ends.1).unwrap();
            assert_eq!(found.len(), 6);
            assert!(cell.has_contrast(ends.0, ends.1));
            assert!(
                found.iter().all(|value| (value - wanted).abs() < 1e-12),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_contrast_pairs_the_blocks_that_both_have() {
        let close = |found: Option<Vec<f64>>, wanted: &[f64]| {
            let found = found.unwrap();
            assert_eq!(found.len(), wanted.len());
            let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-12;
            assert!(found.iter().zip(wanted).all(near), "{found:?}");
        };
        close(measured().contrast(0, 3), &[0.02, 0.02]);
        close(measured().contrast(1, 3), &[0.03, 0.03, 0.03]);
        close(measured().contrast(3, 1), &[-0.03, -0.03, -0.03]);
        assert!(measured().contrast(0, 2).is_none() && measured().contrast(1, 1).is_none());
        let mut few = measured();
        few.candidates
            .insert(2, BTreeMap::from([(0, 0.5), (3, 0.5)]));
        few.candidates.insert(4, BTreeMap::from([(3, 0.5)]));
        for (from, to) in (0..5).flat_map(|from| (0..5).map(move |to| (from, to))) {
            let blocks = few.contrast(from, to).map_or(0, |blocks| blocks.len());
            assert_eq!(few.has_contrast(from, to), blocks > 1, "{from} {to}");
        }
    }

    #[test]
    fn steps_are_between_neighbours_of_a_line() {
        let of = |line| Build { line, branch: 17 };
        let builds = [of(0), of(1), of(0), of(0)];
        assert_eq!(measured().steps(&builds), [(0, 3)]);
        assert_eq!(measured().steps(&[of(0); 4]), [(0, 1), (1, 3)]);
    }
}
