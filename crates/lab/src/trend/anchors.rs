//! Which version levels are relative to, and what follows it.

use super::{ASSUMED, HostTrend};
use deltabench_store::AnchorChange;
use deltabench_trend::{Overlap, Pairs, Run};
use std::collections::{BTreeMap, BTreeSet};

/// An anchor that another one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Era {
    /// Number of the version that was the anchor.
    pub before: usize,
    /// Number of the version that is.
    pub after: usize,
    pub at_unix_ms: i64,
}

impl HostTrend {
    /// Takes what the store says of this machine.
    pub(super) fn know(&mut self, all: &[AnchorChange]) {
        let number = |identity: &str| {
            let is = |version: &super::Version| version.identity == identity;
            self.versions.iter().position(is)
        };
        let own = all.iter().filter(|one| one.host == self.machine);
        let era = |one: &AnchorChange| {
            Some(Era {
                before: number(&one.before)?,
                after: number(&one.after)?,
                at_unix_ms: one.at_unix_ms,
            })
        };
        self.eras = own.filter_map(era).collect();
    }

    /// The anchors that were followed by another one, in the order in which that was said.
    pub fn eras(&self) -> &[Era] {
        &self.eras
    }

    /// The version that a cell's levels are relative to: the one that most runs have as base, of several the
    /// oldest; where it followed other anchors, the first of these. So levels go on when the anchor changes.
    pub fn usual_base(&self, cell: usize) -> Option<usize> {
        let counted = self.bases(cell);
        let most = counted.values().max()?;
        let usual = counted.iter().find(|(_, runs)| *runs == most);
        let mut at = usual.map(|(base, _)| *base)?;
        // As many steps back as there are eras: what somebody wrote into the store in a circle has an end.
        for _ in &self.eras {
            let earlier = self.eras.iter().find(|era| era.after == at);
            match earlier.filter(|era| counted.contains_key(&era.before)) {
                Some(era) => at = era.before,
                None => break,
            }
        }
        Some(at)
    }

    /// The bases of a cell's runs, with how many have each.
    fn bases(&self, cell: usize) -> BTreeMap<usize, usize> {
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, known) in self.measured(cell) {
            *counted.entry(known.base).or_default() += 1;
        }
        counted
    }

    /// The versions that runs have as base, with how many runs and when the newest began, by number.
    pub fn all_bases(&self) -> BTreeMap<usize, (usize, i64)> {
        let mut counted: BTreeMap<usize, (usize, i64)> = BTreeMap::new();
        for (run, known) in self.runs.iter().zip(&self.measured) {
            let own: BTreeSet<usize> = known.cells.iter().map(|cell| cell.base).collect();
            for base in own {
                let (runs, newest) = counted.entry(base).or_default();
                *runs += 1;
                *newest = run.began_unix_ms.max(*newest);
            }
        }
        counted
    }

    /// The identities of a version and of all anchors that it followed.
    pub fn chain(&self, identity: &str) -> Vec<String> {
        let mut chain = vec![identity.to_owned()];
        for _ in &self.eras {
            let is_last = |at: usize| {
                let version = self.versions.get(at);
                version.is_some_and(|version| chain.last() == Some(&version.identity))
            };
            let earlier = self.eras.iter().find(|era| is_last(era.after));
            match earlier.and_then(|era| self.versions.get(era.before)) {
                Some(version) => chain.push(version.identity.clone()),
                None => break,
            }
        }
        chain
    }

    /// What the runs with both say in each cell that more than one run measured with the old anchor, by its
    /// number.
    pub fn overlaps(&self, old: usize, new: usize, least: usize) -> Vec<(usize, Overlap)> {
        let known = (&self.known, ASSUMED);
        let pairs = Pairs::knowing(&self.measured, &self.builds, known);
        let runs = |cell: usize| {
            let has = |run: &&Run| {
                let mut own = run.cells.iter();
                own.any(|known| known.series == cell && known.base == old)
            };
            self.measured.iter().filter(has).count()
        };
        let cells = self.single_cells().filter(|cell| runs(*cell) > 1);
        cells
            .map(|cell| (cell, pairs.overlap(cell, (old, new), least)))
            .collect()
    }
}
