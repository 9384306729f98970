//! Any two versions of a host, cell by cell.

use super::{ASSUMED, HostTrend};
use crate::pair::are_near;
use deltabench_compare::comparison::{Better, Verdict};
use deltabench_compare::thresholds::{ALPHA, HOURS_ASSUMED_UNSTEADY, log_delta};
use deltabench_trend::{Assumed, Difference, End, Pair, Pairs};
use std::collections::BTreeSet;

/// Two versions in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCell {
    /// Number of the cell.
    pub cell: usize,
    pub pair: Pair,
    /// By itself and among all of these cells.
    pub verdict: Verdict,
    /// p of "equal" among all of these cells (Benjamini-Hochberg).
    pub p: f64,
}

impl HostTrend {
    /// The second version relative to the first in all cells that runs connect them in, the surest difference
    /// first. A difference counts if it holds among all of these cells, as in the report of a run.
    pub fn compare(&self, from: End, to: End) -> Vec<ComparedCell> {
        let known = (&self.known, self.assumed_between(from, to));
        let pairs = Pairs::knowing(&self.measured, &self.builds, known);
        let found = pairs.all(self.single_cells(), from, to).into_iter();
        let mut cells: Vec<ComparedCell> = found
            .map(|(cell, pair, p)| ComparedCell {
                cell,
                verdict: self.verdict(&pair.found, pair.delta, p),
                pair,
                p,
            })
            .collect();
        let sure = |one: &ComparedCell| one.pair.found.value.abs() / one.pair.found.error;
        cells.sort_by(|one, other| {
            (one.pair.found.p.total_cmp(&other.pair.found.p))
                .then(sure(other).total_cmp(&sure(one)))
        });
        cells
    }

    /// What is assumed of hours between two versions: as in the report of a run, more on a virtual machine if
    /// they are of two branches, or made in different ways.
    fn assumed_between(&self, from: End, to: End) -> Assumed {
        let build = |end: End| Some(&self.versions.get(end.version)?.installation);
        let are_far = build(from)
            .zip(build(to))
            .is_some_and(|(one, other)| !are_near(one, other));
        match self.class.virtual_machine == Some(true) && are_far {
            true => Assumed {
                sd: HOURS_ASSUMED_UNSTEADY,
                ..ASSUMED
            },
            false => ASSUMED,
        }
    }

    /// The order is that of a run's report: what is shown to be inside ±δ is never called slower.
    fn verdict(&self, found: &Difference, delta: f64, p: f64) -> Verdict {
        let delta = log_delta(delta);
        let (low, high) = found.ci90;
        if low > -delta && high < delta {
            return Verdict::NoChange;
        }
        if p > ALPHA {
            return Verdict::Inconclusive;
        }
        match (found.value > 0.0) == (self.metric.better() == Better::Higher) {
            true => Verdict::Improvement,
            false => Verdict::Regression,
        }
    }

    /// The cells that runs measured of a version, by number; of an end in one run those of that run.
    pub fn cells_of(&self, end: End) -> BTreeSet<usize> {
        let runs = self.measured.iter().enumerate();
        let meant = runs.filter(|(at, _)| end.run.is_none_or(|run| run == *at));
        let has = |cell: &&deltabench_trend::Measured| {
            cell.base == end.version || cell.candidates.contains_key(&end.version)
        };
        let cells = meant.flat_map(|(_, run)| &run.cells);
        let cells = cells.filter(|cell| cell.members == 1).filter(has);
        cells.map(|cell| cell.series).collect()
    }

    /// Pairs of versions that somebody may want to see: those that a run has both of, and neighbours of a
    /// line.
    pub fn met(&self) -> BTreeSet<(usize, usize)> {
        let ordered = |one: usize, other: usize| (one.min(other), one.max(other));
        let mut all = BTreeSet::new();
        for cell in self.measured.iter().flat_map(|run| &run.cells) {
            let candidates: Vec<usize> = cell.candidates.keys().copied().collect();
            for (at, one) in candidates.iter().enumerate() {
                all.insert(ordered(cell.base, *one));
                let rest = candidates.iter().skip(at + 1);
                all.extend(rest.map(|other| ordered(*one, *other)));
            }
        }
        let neighbours = self.versions.iter().zip(self.versions.iter().skip(1));
        let of_a_line = neighbours
            .enumerate()
            .filter(|(_, (one, other))| one.line == other.line);
        all.extend(of_a_line.map(|(at, _)| (at, at + 1)));
        all
    }
}
