//! All cells of a night as one.

use super::{Found, HostTrend, TrendCell};
use deltabench_model::units::count;
use deltabench_trend::{Measured, geometric_mean};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The candidates of nights so far, each with its base.
#[derive(Debug, Default)]
pub(super) struct NightVersions(BTreeSet<(usize, usize)>);

impl NightVersions {
    /// Takes what a run of a night has measured; returns whether it is a night and no try. A try has one
    /// candidate, which a night with this base has measured before.
    pub(super) fn add(&mut self, cells: &[Measured]) -> bool {
        let of = |cell: &Measured| {
            let base = cell.base;
            let candidates = cell.candidates.keys();
            candidates
                .map(|version| (base, *version))
                .collect::<Vec<_>>()
        };
        let own: BTreeSet<(usize, usize)> = cells.iter().flat_map(of).collect();
        let is_new = !own.is_subset(&self.0);
        let has_both = own.len() > 1;
        self.0.extend(own);
        is_new || has_both
    }
}

impl Found {
    /// All cells of a run as one: of a night, and of other runs of what a night measured. A try of some cells
    /// makes no mean of them.
    pub(super) fn mean(&mut self, cells: &[Measured], is_night: bool) -> Option<Measured> {
        let mut members: Vec<usize> = cells.iter().map(|cell| cell.series).collect();
        members.sort_unstable();
        let key = |number: &usize| self.cells.get(*number).map(|cell| cell.key.as_str());
        let keys: Vec<&str> = members.iter().filter_map(key).collect();
        let key = mean_key(keys);
        if !is_night && !self.cell_numbers.contains_key(&key) {
            return None;
        }
        let mean = geometric_mean(cells)?;
        let mut works: Vec<String> = cells.iter().map(|cell| cell.work.to_string()).collect();
        works.sort();
        let number = count(cells.len());
        Some(Measured {
            work: self.work(format!("mean of {}", works.join(" "))),
            series: self.series(TrendCell {
                key,
                name: format!("geometric mean of {number} cells"),
                members,
            }),
            ..mean
        })
    }
}

impl HostTrend {
    /// The names of the workloads of a cell, or of all cells of a mean.
    pub fn workloads(&self, cell: usize) -> BTreeSet<String> {
        let Some(cell) = self.cells.get(cell) else {
            return BTreeSet::new();
        };
        let own = [cell].into_iter().filter(|cell| cell.members.is_empty());
        let all = self.members(cell).chain(own);
        all.map(|cell| workload(&cell.name).to_owned()).collect()
    }

    /// The cells of a mean; none for a cell.
    pub fn members<'a>(&'a self, mean: &'a TrendCell) -> impl Iterator<Item = &'a TrendCell> {
        mean.members.iter().filter_map(|at| self.cells.get(*at))
    }

    /// Cells without means of them.
    pub fn single_cells(&self) -> impl Iterator<Item = usize> {
        let cells = self.cells.iter().enumerate();
        cells
            .filter(|(_, cell)| cell.members.is_empty())
            .map(|(at, _)| at)
    }
}

/// `scan` of `scan@1`.
pub fn workload(cell: &str) -> &str {
    cell.split_once('@').map_or(cell, |(name, _)| name)
}

/// Key of the mean of cells with these keys.
fn mean_key(mut keys: Vec<&str>) -> String {
    keys.sort_unstable();
    format!(
        "{:x}",
        Sha256::digest(format!("geometric mean\n{}", keys.join("\n")))
    )
}
