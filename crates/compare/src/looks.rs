//! When to look, and at which level each look tests.

use crate::levels::Levels;
use crate::thresholds::{ALPHA, ALPHA_EQUIVALENT, EQUIVALENT_EXPONENT, LOOK_EVERY, MIN_BLOCKS};
use deltabench_model::plan::Stopping;
use deltabench_model::units::{count, index, to_f64, to_u64};
use deltabench_stats::spending::{Sides, nominal_levels, obrien_fleming, power_family};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The looks of a plan of at most so many blocks: the first as soon as a verdict is possible, the last at
/// the end, the others about a quarter of the whole apart.
///
/// Shape:  rising, without repeats; at most five. A plan of fewer than seven blocks has one look, at its end.
/// Source: docs/sources/statistics.md#looking-early; spending functions let looks lie anywhere.
pub fn looks(max_blocks: u32) -> Vec<u32> {
    let first = u32::try_from(count(MIN_BLOCKS)).unwrap_or(u32::MAX);
    if max_blocks <= first {
        return vec![max_blocks.max(1)];
    }
    let rest = f64::from(max_blocks - first);
    let steps = (rest / (LOOK_EVERY * f64::from(max_blocks)))
        .round()
        .max(1.0);
    let at = |step: u64| first + u32::try_from(to_u64(rest * to_f64(step) / steps)).unwrap_or(0);
    let mut looks: Vec<u32> = (0..=to_u64(steps)).map(at).collect();
    looks.dedup();
    looks
}

/// The stopping of a run that its time ended after so many blocks: looks that it did not come to are replaced
/// by one at its end, which spends what is left of the error.
///
/// The end must not depend on what was found, as a deadline does not. A cell that an earlier look decided
/// stays decided: a shorter plan has spent more of the error by then. Unchanged where the plan was carried
/// out.
/// Source: Lan & DeMets 1983; docs/sources/statistics.md#looking-early.
pub fn ended_after(stopping: &Stopping, blocks: u32) -> Stopping {
    let Stopping::Sequential { looks } = stopping else {
        return stopping.clone();
    };
    if looks.last().is_none_or(|last| *last <= blocks) || blocks == 0 {
        return stopping.clone();
    }
    let mut kept: Vec<u32> = looks
        .iter()
        .copied()
        .filter(|look| *look < blocks)
        .collect();
    kept.push(blocks);
    Stopping::Sequential { looks: kept }
}

/// What each look of a plan tests at.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Visits of each look, rising.
    pub(crate) looks: Vec<usize>,
    /// Two-sided nominal level of "different" of each look.
    different: Vec<f64>,
    /// One-sided nominal level of "equal" of each look.
    equivalent: Vec<f64>,
    /// The looks as parts of the last one.
    fractions: Vec<f64>,
    /// (total error, nominal level of each look), rising: from a p back to the error that it stands for.
    /// Levels take milliseconds, so an entry has them when it is first asked.
    table: Vec<(f64, OnceLock<Vec<f64>>)>,
}

/// Total errors in the table for each factor of ten.
const PER_DECADE: u32 = 6;
/// Factors of ten that it covers; a smaller p stands for the smallest error.
const DECADES: u32 = 6;

impl Rules {
    /// The rules for these looks, computed once in a process.
    pub(crate) fn of(looks: &[u32]) -> Arc<Self> {
        type Known = Vec<(Vec<u32>, Arc<Rules>)>;
        static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rules)) = known.iter().find(|(of, _)| of == looks) {
            return Arc::clone(rules);
        }
        let rules = Arc::new(Self::new(looks));
        known.push((looks.to_vec(), Arc::clone(&rules)));
        rules
    }

    fn new(looks: &[u32]) -> Self {
        let mut looks: Vec<u32> = looks.iter().copied().filter(|&look| look > 0).collect();
        looks.sort_unstable();
        looks.dedup();
        let last = f64::from(looks.last().copied().unwrap_or(1));
        let fractions: Vec<f64> = looks.iter().map(|&look| f64::from(look) / last).collect();
        let equal: Vec<(f64, f64)> = { fractions.iter() }
            .map(|&at| {
                let spent = power_family(ALPHA_EQUIVALENT, EQUIVALENT_EXPONENT, at);
                (at, spent)
            })
            .collect();
        let errors = (0..DECADES * PER_DECADE).rev().map(|step| {
            10.0_f64
                .powf(-f64::from(step) / f64::from(PER_DECADE))
                .min(0.999)
        });
        Self {
            different: different(&fractions, ALPHA),
            equivalent: nominal_levels(&equal, Sides::One),
            table: errors.map(|error| (error, OnceLock::new())).collect(),
            fractions,
            looks: looks.iter().map(|&look| index(u64::from(look))).collect(),
        }
    }

    /// An entry of the table: the total error, and the level of a look at it.
    fn entry(&self, at: usize, look: usize) -> Option<(f64, f64)> {
        let (error, levels) = self.table.get(at)?;
        let levels = levels.get_or_init(|| different(&self.fractions, *error));
        Some((*error, levels.get(look).copied().unwrap_or(0.0)))
    }

    /// Levels of the intervals at a look, from 0.
    pub(crate) fn levels(&self, look: usize) -> Levels {
        let at = |levels: &[f64]| levels.get(look).copied().unwrap_or(0.0);
        let inside = |level: f64| level.clamp(1e-12, 1.0 - 1e-12);
        Levels {
            different: inside(1.0 - at(&self.different)),
            equivalent: inside(1.0 - 2.0 * at(&self.equivalent)),
            ..Levels::FIXED
        }
    }

    /// One-sided level at which the last look tests "equal".
    pub(crate) fn last_equivalent(&self) -> f64 {
        self.equivalent.last().copied().unwrap_or(ALPHA_EQUIVALENT)
    }

    /// The total error whose boundary at this look a nominal p just reaches: a p that stays valid however
    /// often was looked, as the smallest over the looks made.
    ///
    /// Source: repeated p-values, Jennison & Turnbull 2000, 9.3; Liu & Anderson 2008.
    pub(crate) fn repeated_p(&self, look: usize, p: f64) -> f64 {
        // The first entry with a level of p or more; levels rise with the error.
        let (mut first, mut end) = (0, self.table.len());
        while first < end {
            let middle = usize::midpoint(first, end);
            match self.entry(middle, look) {
                Some((_, level)) if p <= level => end = middle,
                _ => first = middle + 1,
            }
        }
        let Some((error, level)) = self.entry(first, look) else {
            return 1.0;
        };
        // Between two entries the logarithms are nearly on a line; before the first the first is the answer.
        let below = first.checked_sub(1).and_then(|at| self.entry(at, look));
        let Some((small, small_level)) = below.filter(|(_, level)| *level > 0.0) else {
            return error;
        };
        let part = (p / small_level).ln() / (level / small_level).ln();
        small * (error / small).powf(part.clamp(0.0, 1.0))
    }
}

/// The nominal level of each look at these fractions, at a total error.
fn different(fractions: &[f64], error: f64) -> Vec<f64> {
    let spent = |&at: &f64| (at, obrien_fleming(error, at));
    let spent: Vec<(f64, f64)> = fractions.iter().map(spent).collect();
    nominal_levels(&spent, Sides::Two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_its_time_ended_looks_once_more_at_its_end() {
        let planned = |looks: &[u32]| Stopping::Sequential {
            looks: looks.to_vec(),
        };
        let all = planned(&[6, 12, 18, 24]);
        assert_eq!(ended_after(&all, 15), planned(&[6, 12, 15]));
        assert_eq!(ended_after(&all, 12), planned(&[6, 12]));
        assert_eq!(ended_after(&all, 3), planned(&[3]));
        assert_eq!(ended_after(&all, 24), all);
        assert_eq!(ended_after(&Stopping::Fixed, 3), Stopping::Fixed);
    }

    #[test]
    fn a_p_stands_for_what_a_walk_through_the_whole_table_finds() {
        let rules = Rules::of(&[6, 9, 12]);
        let walked = |look: usize, p: f64| {
            let entries = || (0..rules.table.len()).map(|at| rules.entry(at, look).unwrap());
            let levels: Vec<f64> = entries().map(|(_, level)| level).collect();
            assert!(levels.is_sorted(), "{levels:?}");
            let above = entries().position(|(_, level)| p <= level);
            above.map_or((1.0, 1.0), |at| {
                let below = at.checked_sub(1).map_or(0.0, |at| rules.table[at].0);
                (below, rules.table[at].0)
            })
        };
        for look in 0..3 {
            for p in [1e-20, 1e-9, 1e-4, 0.01, 0.05, 0.3, 0.9, 1.0] {
                let (low, high) = walked(look, p);
                let found = rules.repeated_p(look, p);
                assert!((low..=high).contains(&found), "{look} {p}: {found}");
            }
        }
    }

    #[test]
    fn a_shorter_plan_has_spent_more_by_each_look() {
        let long = Rules::of(&[6, 12, 18, 24]);
        let short = Rules::of(&[6, 12, 15]);
        for look in 0..2 {
            assert!(short.different[look] >= long.different[look]);
            assert!(short.equivalent[look] >= long.equivalent[look]);
        }
    }

    #[test]
    fn looks_start_at_six_end_at_the_last_block_and_are_few() {
        for (blocks, expected) in [
            (1, vec![1]),
            (6, vec![6]),
            (7, vec![6, 7]),
            (8, vec![6, 8]),
            (12, vec![6, 9, 12]),
            (16, vec![6, 9, 13, 16]),
            (24, vec![6, 12, 18, 24]),
            (100, vec![6, 30, 53, 77, 100]),
        ] {
            assert_eq!(looks(blocks), expected, "{blocks}");
        }
        assert!((7..500).all(|blocks| {
            let looks = looks(blocks);
            looks.len() <= 5
                && looks.is_sorted_by(|a, b| a < b)
                && looks.first() == Some(&6)
                && looks.last() == Some(&blocks)
        }));
    }

    #[test]
    fn a_nominal_p_at_its_boundary_stands_for_the_whole_error() {
        let rules = Rules::of(&[6, 12, 18, 24]);
        for look in 0..4 {
            let p = rules.repeated_p(look, rules.different[look]);
            assert!((p / ALPHA - 1.0).abs() < 0.02, "look {look}: {p}");
        }
        assert!((rules.repeated_p(3, 1.0) - 1.0).abs() < 0.01);
        assert!(rules.repeated_p(0, 1e-4) > 0.04, "early looks are strict");
        assert!(rules.repeated_p(3, 0.01) < 0.012, "the last is not");
        let rising: Vec<f64> = (1..100)
            .map(|p| rules.repeated_p(2, f64::from(p) / 100.0))
            .collect();
        assert!(rising.is_sorted());
    }

    #[test]
    fn one_look_is_a_plain_test() {
        let rules = Rules::of(&[8]);
        assert!((rules.levels(0).different - 0.95).abs() < 1e-6);
        for p in [0.9, 0.3, 0.04, 1e-4] {
            assert!((rules.repeated_p(0, p) / p - 1.0).abs() < 0.001, "{p}");
        }
    }
}
