//! Comparisons that were measured again in other hours: how much a result moves from hour to hour.

use crate::between::Scatter;
use crate::number::real;

/// What one run found of a comparison: the number of its hour, and its block values.
pub type HourBlocks<'a> = (usize, &'a [f64]);

/// The repeated comparisons of a cell: in which hours each was measured, and how its means scatter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Repeated {
    /// Of each comparison that is known from several, in order and each once.
    hours: Vec<Vec<usize>>,
    scatter: Option<Scatter>,
}

impl Repeated {
    /// Takes the comparisons of a cell, each as its runs.
    ///
    /// Shape:  a run of fewer than two blocks, and a comparison that is known from one hour, say nothing.
    pub fn of<'a>(comparisons: impl IntoIterator<Item = Vec<HourBlocks<'a>>>) -> Self {
        let (mut hours, mut blocks) = (Vec::new(), Vec::new());
        for runs in comparisons {
            let known = runs.into_iter().filter(|(_, blocks)| blocks.len() > 1);
            let (mut own, values): (Vec<usize>, Vec<&[f64]>) = known.unzip();
            own.sort_unstable();
            own.dedup();
            if own.len() > 1 {
                hours.push(own);
                blocks.push(values);
            }
        }
        let scatter = Scatter::pooled(&blocks);
        Self {
            scatter: scatter.map(|found| at_most(found, distinct_hours(hours.iter()))),
            hours,
        }
    }
}

/// What the other cells of a host say of a cell: the same, whatever is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere {
    /// What they have in common, worth no more than the hours behind it.
    learned: Option<Scatter>,
    /// Repeated hours behind that and behind the cell.
    hours: usize,
}

impl Elsewhere {
    /// Of a cell and the others.
    pub fn of<'a>(cell: &'a Repeated, others: impl Iterator<Item = &'a Repeated> + Clone) -> Self {
        let scatters: Vec<Scatter> = others.clone().filter_map(|one| one.scatter).collect();
        let elsewhere = || others.clone().flat_map(|one| &one.hours);
        let learned = Scatter::prior(&scatters);
        let learned = learned.map(|prior| at_most(prior, distinct_hours(elsewhere())));
        let hours = match learned {
            Some(_) => distinct_hours(elsewhere().chain(&cell.hours)),
            None => distinct_hours(cell.hours.iter()),
        };
        Self { learned, hours }
    }
}

/// How a cell's means scatter between hours, and what that is known from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetweenHours {
    pub scatter: Scatter,
    /// Repeated hours behind it.
    pub hours: usize,
    /// Whether the assumption takes part.
    pub assumed: bool,
}

impl BetweenHours {
    /// The scatter of a cell's repetitions, drawn towards what the host's other cells have in common. Where
    /// fewer hours are known than the assumption counts for, it takes part. `None` where nothing was measured
    /// and nothing is assumed.
    ///
    /// What was found in one hour may have one luck, in all cells. So no variance counts as more degrees of
    /// freedom than the hours behind it, nor do all of them together.
    ///
    /// Source: docs/measuring.md#sessions.
    pub fn learned<'a>(
        cell: &'a Repeated,
        others: impl Iterator<Item = &'a Repeated> + Clone,
        assumed: Option<Scatter>,
    ) -> Option<Self> {
        Self::beside(cell, &Elsewhere::of(cell, others), assumed)
    }

    /// The same, with what the other cells say.
    pub fn beside(
        cell: &Repeated,
        elsewhere: &Elsewhere,
        assumed: Option<Scatter>,
    ) -> Option<Self> {
        let Elsewhere { learned, hours } = *elsewhere;
        let own = cell.scatter;
        let worth = |scatter: Option<Scatter>| scatter.map_or(0.0, |scatter| scatter.df);
        let measured = worth(own) + worth(learned);
        let counted = measured.min(real(hours));
        let share = |scatter: Scatter| Scatter {
            df: scatter.df * counted / measured,
            ..scatter
        };
        let (own, learned) = (own.map(share), learned.map(share));
        let assumed = assumed.filter(|assumed| counted < assumed.df);
        let prior = match (learned, assumed) {
            (Some(learned), Some(assumed)) => Some(learned.towards(&assumed)),
            (learned, assumed) => learned.or(assumed),
        };
        Some(Self {
            scatter: match (own, prior) {
                (Some(own), Some(prior)) => own.towards(&prior),
                (own, prior) => own.or(prior)?,
            },
            hours,
            assumed: assumed.is_some(),
        })
    }
}

/// A scatter that is worth no more degrees of freedom than the hours behind it.
fn at_most(scatter: Scatter, hours: usize) -> Scatter {
    Scatter {
        df: scatter.df.min(real(hours)),
        ..scatter
    }
}

/// What repeated comparisons tell of hours, each by the hours of its runs: hours, less groups of hours that
/// no comparison connects. A run of eight cells that was measured twice tells of one more hour, not of eight.
///
/// Shape: each connection that joins two groups tells of one more hour. Trends ask this for each step of each
///        run, so hours are places in a list and not members of sets.
fn distinct_hours<'a>(comparisons: impl Iterator<Item = &'a Vec<usize>> + Clone) -> usize {
    let mut known: Vec<usize> = comparisons.clone().flatten().copied().collect();
    known.sort_unstable();
    known.dedup();
    let mut groups = Groups::of_one(known.len());
    let place = |hour: &usize| known.partition_point(|one| one < hour);
    let mut joined = 0;
    for hours in comparisons {
        let mut places = hours.iter().map(place);
        let Some(first) = places.next() else {
            continue;
        };
        joined += places.filter(|other| groups.join(first, *other)).count();
    }
    joined
}

/// Places that are connected: each names one of its group, up to the one that names itself.
struct Groups(Vec<usize>);

impl Groups {
    fn of_one(places: usize) -> Self {
        Self((0..places).collect())
    }

    fn named(&self, place: usize) -> usize {
        self.0.get(place).copied().unwrap_or(place)
    }

    /// The one that names itself; the way there becomes shorter.
    fn head(&mut self, mut place: usize) -> usize {
        while self.named(place) != place {
            let next = self.named(self.named(place));
            if let Some(name) = self.0.get_mut(place) {
                *name = next;
            }
            place = next;
        }
        place
    }

    /// Connects two places; whether they were apart.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.head(one), self.head(other));
        if let Some(name) = self.0.get_mut(other) {
            *name = one;
        }
        one != other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::collections::BTreeSet;

    #[test]
    fn a_scatter_counts_for_the_hours_behind_it_and_no_more() {
        let blocks = [0.01, 0.02, 0.03];
        let pair = |one, other| vec![(one, &blocks[..]), (other, &blocks[1..])];
        // Eight comparisons of the same two hours tell of one repeated hour.
        let alike = Repeated::of((0..8).map(|_| pair(1, 2)));
        assert!((alike.scatter.unwrap().df - 1.0).abs() < 1e-9);
        let chain = Repeated::of([pair(1, 2), pair(2, 3), pair(5, 6)]);
        assert!((chain.scatter.unwrap().df - 3.0).abs() < 1e-9);
        let silent = Repeated::of([pair(1, 1), vec![(1, &blocks[..]), (2, &blocks[..1])]]);
        assert!(silent.scatter.is_none() && silent.hours.is_empty());
    }

    #[test]
    fn hours_are_counted_less_their_unconnected_groups() {
        // By sets, as the definition says it.
        let by_sets = |all: &[Vec<usize>]| {
            let mut groups: Vec<BTreeSet<usize>> = Vec::new();
            for hours in all {
                let mut merged: BTreeSet<usize> = hours.iter().copied().collect();
                groups.retain(|group| {
                    let is_apart = group.is_disjoint(&merged);
                    if !is_apart {
                        merged.extend(group);
                    }
                    is_apart
                });
                groups.push(merged);
            }
            let hours = |group: &BTreeSet<usize>| group.len().saturating_sub(1);
            groups.iter().map(hours).sum::<usize>()
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut found = BTreeSet::new();
        for _ in 0..500 {
            let number = random.random_range(0..12);
            let one = |random: &mut Xoshiro256PlusPlus| -> Vec<usize> {
                let size = random.random_range(0..4);
                let hours = (0..size).map(|_| 1_000 * random.random_range(0..25_usize));
                hours.collect::<BTreeSet<usize>>().into_iter().collect()
            };
            let all: Vec<Vec<usize>> = (0..number).map(|_| one(&mut random)).collect();
            assert_eq!(distinct_hours(all.iter()), by_sets(&all), "{all:?}");
            found.insert(by_sets(&all));
        }
        assert!(found.len() > 10, "{found:?}");
    }

    #[test]
    fn the_assumption_takes_part_until_as_much_was_measured() {
        let blocks = [0.01, 0.02, 0.03];
        let runs = |hours: usize| (0..hours).map(|hour| (hour, &blocks[..])).collect();
        let assumed = Scatter::assumed(0.005, 4.0, &[&blocks]).ok();
        let of = |hours| {
            let cell = Repeated::of([runs(hours)]);
            BetweenHours::learned(&cell, [].iter(), assumed).unwrap()
        };
        assert!(of(1).assumed && of(1).hours == 0);
        assert!(of(4).assumed && of(4).hours == 3);
        assert!(!of(5).assumed);
        assert!(of(5).scatter.variance < of(4).scatter.variance);
        let nothing = BetweenHours::learned(&Repeated::default(), [].iter(), None);
        assert!(nothing.is_none());
    }
}
