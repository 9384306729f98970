//! What all runs of a host say together, read once for all who ask.

use crate::hours::{APART_MS, Learned, Past};
use crate::stars::{Hours, Star, stars};
use crate::without::Whole;
use crate::{Assumed, Build, Measured, Run};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How hours differ on a host, and where its cells are among its runs.
#[derive(Debug)]
pub struct Known {
    learned: Learned,
    cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Default)]
struct Cell {
    /// Where it is: the number of a run, and the place in it.
    places: Vec<(usize, usize)>,
    /// The places of the runs that have a version, by version.
    by_version: BTreeMap<usize, Vec<(usize, usize)>>,
    hours: OnceLock<Hours>,
    stars: OnceLock<Vec<Star>>,
    /// The levels of all of its runs, by the version that they are relative to.
    wholes: Mutex<BTreeMap<usize, Arc<Option<Whole>>>>,
}

impl Known {
    /// Of runs in the order in which they were measured.
    pub fn of(runs: &[Run], builds: &[Build]) -> Self {
        Self::with(Past::of(runs, builds).learned(|_, _, _| false), runs)
    }

    /// The same, with what these runs say of hours.
    pub(crate) fn with(learned: Learned, runs: &[Run]) -> Self {
        let mut cells: Vec<Cell> = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            for (place, cell) in run.cells.iter().enumerate() {
                if cells.len() <= cell.series {
                    cells.resize_with(cell.series + 1, Cell::default);
                }
                if let Some(known) = cells.get_mut(cell.series) {
                    known.places.push((at, place));
                    for version in cell.versions() {
                        known
                            .by_version
                            .entry(version)
                            .or_default()
                            .push((at, place));
                    }
                }
            }
        }
        Self { learned, cells }
    }

    pub(crate) fn learned(&self) -> &Learned {
        &self.learned
    }

    /// What runs found in a cell, each with its number, oldest first.
    pub fn cells<'a>(
        &self,
        series: usize,
        runs: &'a [Run],
    ) -> impl Iterator<Item = (usize, &'a Measured)> {
        let places = self.cells.get(series).map_or(&[][..], |cell| &cell.places);
        at_places(places, runs)
    }

    /// The same of those that have one of two versions, the one that fewer runs have.
    pub(crate) fn cells_with<'a>(
        &self,
        series: usize,
        (one, other): (usize, usize),
        runs: &'a [Run],
    ) -> impl Iterator<Item = (usize, &'a Measured)> {
        let known = self.cells.get(series).map(|cell| &cell.by_version);
        let places = |version| known?.get(version).map(Vec::as_slice);
        let both = places(&one).zip(places(&other));
        let fewer = both.map_or(&[][..], |(one, other)| match one.len() < other.len() {
            true => one,
            false => other,
        });
        at_places(fewer, runs)
    }

    /// What is known of hours in a cell; whoever asks first says what is assumed of them.
    pub(crate) fn hours(&self, series: usize, assumed: Assumed) -> Hours {
        let known = || Hours::known(series, &self.learned, assumed);
        match self.cells.get(series) {
            Some(cell) => *cell.hours.get_or_init(known),
            None => known(),
        }
    }

    /// The levels of a cell relative to a version; solved once, whoever asks.
    pub(crate) fn whole(
        &self,
        (series, anchor): (usize, usize),
        solve: impl FnOnce() -> Option<Whole>,
    ) -> Arc<Option<Whole>> {
        let Some(cell) = self.cells.get(series) else {
            return Arc::new(solve());
        };
        let mut known = { cell.wholes.lock() }.unwrap_or_else(PoisonError::into_inner);
        let whole = known.entry(anchor).or_insert_with(|| Arc::new(solve()));
        Arc::clone(whole)
    }

    /// What these runs say of their versions in a cell. Of runs of the same versions within minutes the first
    /// counts: they share its luck.
    pub(crate) fn stars(
        &self,
        series: usize,
        (runs, builds): (&[Run], &[Build]),
        hours: &Hours,
    ) -> &[Star] {
        let Some(cell) = self.cells.get(series) else {
            return &[];
        };
        cell.stars.get_or_init(|| {
            let mut ended: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
            let mut apart = Vec::new();
            for (at, cell) in self.cells(series, runs) {
                let Some(run) = runs.get(at) else { continue };
                let last = ended.insert(cell.versions(), run.ended_ms);
                if last.is_none_or(|last| run.began_ms - last >= APART_MS) {
                    apart.push(cell);
                }
            }
            stars(&apart, builds, hours)
        })
    }
}

fn at_places<'a>(
    places: &[(usize, usize)],
    runs: &'a [Run],
) -> impl Iterator<Item = (usize, &'a Measured)> {
    let cell = |(at, place): &(usize, usize)| Some((*at, runs.get(*at)?.cells.get(*place)?));
    places.iter().filter_map(cell)
}
