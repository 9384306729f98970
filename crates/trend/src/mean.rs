//! All cells of a run as one: what each of them hides in its noise may show in their mean.

use crate::{Measured, real};
use std::collections::BTreeMap;

/// Cells that it takes.
const LEAST: usize = 3;

/// The smallest change of the mean that matters, unless a smaller one matters in a cell: 1 % of all
/// operations is what people pay, and a mean is precise enough for it.
const DELTA: f64 = 0.01;

/// The geometric mean of the cells of a run: of each version the mean log-ratio in each block that all cells
/// and versions have. It is sound if all cells are. Blocks up to a look at one cell count, too: what that
/// look chose is a small part of the mean.
///
/// Shape: `None` for fewer than three cells, for cells of several bases, and for fewer than two common
///        blocks. `series` and `work` are 0.
pub fn geometric_mean(cells: &[Measured]) -> Option<Measured> {
    let first = cells.first().filter(|_| cells.len() >= LEAST)?;
    if cells.iter().any(|cell| cell.base != first.base) {
        return None;
    }
    let is_in_all = |version: &&usize| {
        cells
            .iter()
            .all(|cell| cell.candidates.contains_key(version))
    };
    let versions: Vec<usize> = first.candidates.keys().filter(is_in_all).copied().collect();
    let sums = |block: u32| -> Option<Vec<f64>> {
        let sum = |version: &usize| cells.iter().map(|cell| cell.level(*version, block)).sum();
        versions.iter().map(sum).collect()
    };
    let mut candidates: BTreeMap<usize, BTreeMap<u32, f64>> = BTreeMap::new();
    for block in first.blocks(*versions.first()?) {
        for (version, sum) in versions.iter().zip(sums(block).unwrap_or_default()) {
            let own = candidates.entry(*version).or_default();
            own.insert(block, sum / real(cells.len()));
        }
    }
    if candidates.values().next()?.len() < 2 {
        return None;
    }
    let least = |all: f64, cell: &Measured| all.min(cell.delta);
    Some(Measured {
        series: 0,
        host: first.host,
        delta: cells.iter().fold(DELTA, least),
        base: first.base,
        candidates,
        base_copies: first.base_copies,
        times: cells.iter().map(|cell| cell.times).fold(1.0, f64::max),
        is_sound: cells.iter().all(|cell| cell.is_sound),
        others: BTreeMap::new(),
        members: cells.len(),
        work: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell in which two versions have these blocks, with this log-ratio and 0.
    fn cell(blocks: std::ops::Range<u32>, value: f64) -> Measured {
        let known = |value: f64| blocks.clone().map(|block| (block, value)).collect();
        Measured {
            series: 0,
            host: 3,
            delta: 0.02,
            base: 0,
            candidates: BTreeMap::from([(1, known(value)), (2, known(0.0))]),
            base_copies: 2,
            times: 1.0,
            is_sound: true,
            others: BTreeMap::new(),
            members: 1,
            work: 0,
        }
    }

    #[test]
    fn the_mean_is_of_the_blocks_that_all_cells_have() {
        let mut cells = vec![cell(0..6, 0.03), cell(0..9, 0.0), cell(6..9, 0.06)];
        assert!(geometric_mean(&cells).is_none(), "no block is in all");
        // A look found the last one, and its answer rests on what came after.
        let before = (1..6).map(|block| (block, 0.09)).collect();
        cells[2].others = BTreeMap::from([(1, before), (2, (0..6).map(|at| (at, 0.0)).collect())]);
        cells[1].times = 1.5;
        let mean = geometric_mean(&cells).unwrap();
        assert_eq!(mean.candidates[&1].len(), 5, "block 0 is not in all");
        assert!(
            mean.candidates[&1]
                .values()
                .all(|value| (value - 0.04).abs() < 1e-12)
        );
        assert_eq!(mean.candidates[&2].len(), 5);
        assert_eq!(
            (mean.members, mean.base, mean.host, mean.base_copies),
            (3, 0, 3, 2)
        );
        assert!((mean.delta - 0.01).abs() < 1e-12 && (mean.times - 1.5).abs() < 1e-12);
        cells[0].base = 7;
        assert!(geometric_mean(&cells).is_none(), "another base");
    }

    #[test]
    fn a_version_that_a_cell_lacks_has_no_mean_and_two_cells_have_none() {
        let mut cells = vec![
            cell(0..6, 0.03),
            cell(0..6, 0.0),
            cell(0..6, 0.0),
            cell(0..6, 0.01),
        ];
        cells[1].candidates.remove(&1);
        cells[1].delta = 0.005;
        let mean = geometric_mean(&cells).unwrap();
        assert_eq!(mean.candidates.keys().copied().collect::<Vec<_>>(), [2]);
        assert!((mean.delta - 0.005).abs() < 1e-12);
        assert!(mean.is_sound);
        cells[0].is_sound = false;
        assert!(!geometric_mean(&cells).unwrap().is_sound);
        assert!(geometric_mean(&cells[..2]).is_none());
    }
}
