//! The system of equations behind levels: what some runs of a cell say of its versions, solved.

use crate::sparse::{Factored, Matrix, Undetermined};
use crate::stars::Star;
use crate::{Build, real};
use std::collections::BTreeMap;

/// The levels of the versions that runs connect with an anchor.
#[derive(Debug)]
pub(crate) struct Solved {
    /// These versions without the anchor, in their order.
    pub(crate) versions: Vec<usize>,
    pub(crate) columns: Columns,
    /// The inverse of the covariance of all unknowns.
    pub(crate) precision: Factored,
    /// The unknowns.
    pub(crate) levels: Vec<f64>,
    /// Whether the anchor alone connects versions that were measured on different hosts.
    pub(crate) rests_on_anchor: bool,
}

impl Solved {
    /// Solves the equations of the runs, and leaves out those that are not connected with the anchor; `None`
    /// if no other version is.
    pub(crate) fn of(stars: &mut Vec<&Star>, builds: &[Build], anchor: usize) -> Option<Self> {
        let connected = connected(stars, anchor);
        let is_connected = |version: &usize| is_known(&connected, *version);
        stars.retain(|star| star.values.keys().all(is_connected));
        let versions: Vec<usize> = (0..connected.len())
            .filter(|version| *version != anchor && is_connected(version))
            .collect();
        if versions.is_empty() {
            return None;
        }
        let mut columns = Columns::of(stars, builds, anchor, &versions);
        let mut rests_on_anchor = false;
        loop {
            let (matrix, right) = equations(stars, builds, &columns);
            match matrix.factored(versions.len()) {
                Ok(precision) => {
                    let levels = precision.solved(right);
                    return Some(Self {
                        versions,
                        columns,
                        precision,
                        levels,
                        rests_on_anchor,
                    });
                }
                Err(Undetermined { column, is_in_runs }) => {
                    rests_on_anchor |= is_in_runs;
                    columns.leave_out(column)?;
                }
            }
        }
    }
}

/// Which versions runs connect with the anchor, itself included.
pub(crate) fn connected(stars: &[&Star], anchor: usize) -> Vec<bool> {
    let last = stars.iter().filter_map(|star| star.values.keys().last());
    let last = last.copied().max().unwrap_or(0).max(anchor);
    let mut known = vec![false; last + 1];
    know(&mut known, anchor);
    let mut open: Vec<&Star> = stars.to_vec();
    loop {
        let before = open.len();
        // A run is looked at until one of its versions is known; then all of them are.
        open.retain(|star| {
            let is_open = star
                .values
                .keys()
                .all(|version| !is_known(&known, *version));
            if !is_open {
                star.values
                    .keys()
                    .for_each(|version| know(&mut known, *version));
            }
            is_open
        });
        if open.len() == before {
            return known;
        }
    }
}

pub(crate) fn is_known(known: &[bool], version: usize) -> bool {
    known.get(version).copied().unwrap_or(false)
}

fn know(known: &mut [bool], version: usize) {
    if let Some(known) = known.get_mut(version) {
        *known = true;
    }
}

/// The unknowns: a level for each version but the anchor, then what another host adds to all versions of a
/// branch.
#[derive(Debug, PartialEq)]
pub(crate) struct Columns {
    /// The column of each version, and how many there are.
    pub(crate) levels: Vec<Option<usize>>,
    known: usize,
    /// A branch on a host that is not the newest one with it. Not of the anchor's branch: what a kernel does
    /// to the anchor it does to its neighbours.
    shifts: Vec<(Build, usize)>,
}

impl Columns {
    pub(crate) fn of(stars: &[&Star], builds: &[Build], anchor: usize, versions: &[usize]) -> Self {
        let own = builds.get(anchor);
        let mut shifts: Vec<(Build, usize)> = Vec::new();
        let mut newest: BTreeMap<Build, usize> = BTreeMap::new();
        // The newest host comes first: if shifts cannot be told apart, older ones are left out.
        for star in stars.iter().rev() {
            for build in star
                .values
                .keys()
                .filter_map(|version| builds.get(*version))
            {
                let here = (*build, star.host);
                let is_newest = *newest.entry(*build).or_insert(star.host) == star.host;
                if !is_newest && Some(build) != own && !shifts.contains(&here) {
                    shifts.push(here);
                }
            }
        }
        let mut levels = vec![None; versions.last().map_or(0, |last| last + 1)];
        for (at, version) in versions.iter().enumerate() {
            if let Some(level) = levels.get_mut(*version) {
                *level = Some(at);
            }
        }
        Self {
            levels,
            known: versions.len(),
            shifts,
        }
    }

    fn number(&self) -> usize {
        self.known + self.shifts.len()
    }

    /// The column of a version; `None` for the anchor, and for one without a level.
    pub(crate) fn level(&self, version: usize) -> Option<usize> {
        self.levels.get(version).copied().flatten()
    }

    /// Those that a value of a version on a host has a part of: a level, and a shift.
    pub(crate) fn behind(
        &self,
        builds: &[Build],
        version: usize,
        host: usize,
    ) -> [Option<usize>; 2] {
        let level = self.level(version);
        let is_here =
            |(build, at): &(Build, usize)| *at == host && builds.get(version) == Some(build);
        let shift = self.shifts.iter().position(is_here);
        [level, shift.map(|at| self.known + at)]
    }

    /// Takes a shift for 0; `None` if the column is a level.
    fn leave_out(&mut self, column: usize) -> Option<()> {
        let at = column.checked_sub(self.known)?;
        if at >= self.shifts.len() {
            return None;
        }
        self.shifts.remove(at);
        Some(())
    }
}

/// The normal equations of the unknowns, the anchor's level being 0. Each run has a level of its own, so that
/// values and unknowns are those about their mean in the run.
fn equations(stars: &[&Star], builds: &[Build], columns: &Columns) -> (Matrix, Vec<f64>) {
    let all = columns.number();
    let mut matrix = Matrix::new(all);
    let mut right = vec![0.0; all];
    let mut behind: Vec<([Option<usize>; 2], f64)> = Vec::new();
    let mut own: Vec<usize> = Vec::new();
    for star in stars {
        let (weight, size) = (1.0 / star.variance, real(star.values.len()));
        let centre = star.values.values().sum::<f64>() / size;
        behind.clear();
        let values = star.values.iter();
        behind.extend(values.map(|(version, value)| {
            let own = columns.behind(builds, *version, star.host);
            (own, value - centre)
        }));
        own.clear();
        own.extend(behind.iter().flat_map(|(own, _)| own).flatten());
        own.sort_unstable();
        own.dedup();
        let has = |column: usize| {
            let is_in = move |own: &[Option<usize>; 2]| own.contains(&Some(column));
            behind.iter().filter(move |(own, _)| is_in(own))
        };
        for &row in &own {
            let times = real(has(row).count());
            if let Some(right) = right.get_mut(row) {
                *right += weight * has(row).map(|(_, value)| value).sum::<f64>();
            }
            for &column in &own {
                let both = { has(row) }.filter(|(own, _)| own.contains(&Some(column)));
                let alone = times * real(has(column).count()) / size;
                matrix.add(row, column, weight * (real(both.count()) - alone));
            }
        }
    }
    (matrix, right)
}
