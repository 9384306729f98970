//! What the runs say that do not have both of two versions, by a small change of what all runs say.
//!
//! The runs of a cell make one system of equations, which is factored once. A run that has both versions is
//! taken out of it: its part has as many dimensions as it has versions, less one. Where that is not sure to
//! be right, the system of the other runs is made and solved for itself, as [`Network`] does it.
//!
//! [`Network`]: crate::Network

use crate::solved::{Columns, Solved};
use crate::sparse::Matrix;
use crate::stars::Star;
use crate::{Build, real};

/// Dimensions that are taken out at most: more take as long as another system.
const MOST: usize = 64;

/// Share of its own weight that is left of each dimension that is taken out. With less, runs without both
/// versions may not determine all levels, and digits are lost.
const SURE: f64 = 1e-6;

/// The levels of a cell from all of its runs.
#[derive(Debug)]
pub(crate) struct Whole {
    anchor: usize,
    solved: Solved,
    /// Whether one host measured all of it: then no branch moves between hosts, with or without some runs.
    is_of_one_host: bool,
}

/// What is taken out.
struct Gone {
    /// Each direction, with its inverse weight.
    directions: Vec<(Vec<f64>, f64)>,
    /// The values that the runs have in them.
    values: Vec<f64>,
}

impl Whole {
    /// `None` if the runs do not connect the anchor with another version.
    pub(crate) fn of(mut stars: Vec<&Star>, builds: &[Build], anchor: usize) -> Option<Self> {
        let solved = Solved::of(&mut stars, builds, anchor)?;
        let first = stars.first().map(|star| star.host);
        Some(Self {
            anchor,
            solved,
            is_of_one_host: stars.iter().all(|star| Some(star.host) == first),
        })
    }

    /// The difference of two versions by all runs but those that are gone, with its standard error. These
    /// runs are known to connect the two. `None` where it must be solved anew.
    ///
    /// Source: the formula of Sherman, Morrison and Woodbury for A − Z W Zᵀ: with x = A⁻¹ b, K = Zᵀ A⁻¹ Z,
    ///         S = W⁻¹ − K and q = Zᵀ A⁻¹ c, the contrast c of what is left is cᵀx + qᵀ S⁻¹ (Zᵀx − t), where
    ///         t are the values that are gone, and its variance is cᵀ A⁻¹ c + qᵀ S⁻¹ q.
    pub(crate) fn without(
        &self,
        (gone, rest): (&[&Star], &[&Star]),
        builds: &[Build],
        (from, to): (usize, usize),
    ) -> Option<(f64, f64)> {
        if !self.is_of_one_host && !self.has_columns_of(rest, builds) {
            return None;
        }
        let gone = self.directions(gone, builds)?;
        let contrast = self.contrast(from, to)?;
        let Solved {
            precision, levels, ..
        } = &self.solved;
        let solved: Vec<Vec<f64>> = { gone.directions.iter() }
            .map(|(direction, _)| precision.solved(direction.clone()))
            .collect();
        let mut left = Matrix::new(solved.len());
        for (row, (direction, inverse)) in gone.directions.iter().enumerate() {
            left.add(row, row, *inverse);
            for (column, other) in solved.iter().enumerate() {
                left.add(row, column, -product(direction, other));
            }
        }
        let left = left.factored(solved.len()).ok()?;
        let is_sure = |(at, pivot): (usize, f64)| {
            let own = gone.directions.get(at);
            own.is_some_and(|(_, inverse)| pivot >= SURE * inverse)
        };
        if !left.pivots().all(is_sure) {
            return None;
        }
        let through: Vec<f64> = solved.iter().map(|one| product(one, &contrast)).collect();
        let weights = left.solved(through.clone());
        let off = gone.directions.iter().zip(&gone.values);
        let off: Vec<f64> = off
            .map(|((direction, _), value)| product(direction, levels) - value)
            .collect();
        let own = precision.solved(contrast.clone());
        let variance = product(&contrast, &own) + product(&weights, &through);
        let value = product(&contrast, levels) + product(&weights, &off);
        (variance.is_finite() && value.is_finite()).then(|| (value, variance.max(0.0).sqrt()))
    }

    /// Whether these runs have the unknowns that all runs have.
    fn has_columns_of(&self, rest: &[&Star], builds: &[Build]) -> bool {
        let is_here = |version: &usize| self.place(*version).is_some();
        let connected: Vec<&Star> = { rest.iter() }
            .filter(|star| star.values.keys().all(is_here))
            .copied()
            .collect();
        let columns = Columns::of(&connected, builds, self.anchor, &self.solved.versions);
        columns == self.solved.columns
    }

    /// The place among the unknowns: `Some(None)` for the anchor.
    fn place(&self, version: usize) -> Option<Option<usize>> {
        match self.solved.columns.level(version) {
            Some(column) => Some(Some(column)),
            None => (version == self.anchor).then_some(None),
        }
    }

    /// Of one version to another.
    fn contrast(&self, from: usize, to: usize) -> Option<Vec<f64>> {
        let mut contrast = vec![0.0; self.solved.levels.len()];
        for (version, sign) in [(from, -1.0), (to, 1.0)] {
            if let Some(own) = self.place(version)?.and_then(|at| contrast.get_mut(at)) {
                *own += sign;
            }
        }
        Some(contrast)
    }

    /// The directions of these runs: each has a level of its own, so what it says are contrasts.
    fn directions(&self, gone: &[&Star], builds: &[Build]) -> Option<Gone> {
        let number: usize = gone.iter().map(|star| star.values.len() - 1).sum();
        if number > MOST {
            return None;
        }
        let mut all = Gone {
            directions: Vec::with_capacity(number),
            values: Vec::with_capacity(number),
        };
        for star in gone {
            for at in 1..star.values.len() {
                // Helmert's: a version against the mean of those before it.
                let length = (real(at) * real(at + 1)).sqrt();
                let mut direction = vec![0.0; self.solved.levels.len()];
                let mut sum = 0.0;
                for (place, (version, value)) in star.values.iter().take(at + 1).enumerate() {
                    let factor = if place == at { -real(at) } else { 1.0 } / length;
                    sum += factor * value;
                    let columns = self.solved.columns.behind(builds, *version, star.host);
                    for column in columns.into_iter().flatten() {
                        if let Some(own) = direction.get_mut(column) {
                            *own += factor;
                        }
                    }
                }
                all.directions.push((direction, star.variance));
                all.values.push(sum);
            }
        }
        Some(all)
    }
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;
    use crate::solved::{connected, is_known};
    use crate::stars::Hours;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::collections::BTreeMap;

    const HOURS: Hours = Hours {
        near: 0.002,
        far: 0.004,
        df: 12.0,
        assumed: false,
    };

    /// Runs of two to four of these versions, most of them with the first one.
    fn stars(random: &mut Xoshiro256PlusPlus, versions: usize, hosts: usize) -> Vec<Star> {
        let mut all = Vec::new();
        for at in 0..3 * versions {
            let mut values = BTreeMap::new();
            if random.random_bool(0.7) {
                values.insert(0, 0.0);
            }
            let size = random.random_range(2..5);
            while values.len() < size {
                values.insert(random.random_range(0..versions), random.random::<f64>());
            }
            all.push(Star {
                host: at * hosts / (3 * versions),
                values,
                variance: 0.5 + random.random::<f64>(),
                within: 0.1,
            });
        }
        all
    }

    #[test]
    fn a_system_with_a_run_taken_out_says_what_the_others_say_by_themselves() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut changed, mut anew) = (0, 0);
        for round in 0..40 {
            let (versions, hosts) = (4 + round % 9, 1 + round % 3);
            let all = stars(&mut random, versions, hosts);
            let build = |at: usize| Build {
                line: at % 2,
                branch: u32::try_from(at % 2).unwrap(),
            };
            let builds: Vec<Build> = (0..versions).map(build).collect();
            let pairs = (0..versions).flat_map(|from| (0..from).map(move |to| (from, to)));
            for (from, to) in pairs {
                let has_both = |star: &&Star| star.has(from) && star.has(to);
                let (gone, rest): (Vec<&Star>, Vec<&Star>) = all.iter().partition(has_both);
                if !is_known(&connected(&rest, from), to) {
                    continue;
                }
                let anchor = from % 2;
                let whole = Whole::of(all.iter().collect(), &builds, anchor).unwrap();
                let found = whole.without((&gone, &rest), &builds, (from, to));
                let network = Network::among(rest.into_iter(), &builds, from, &HOURS);
                let wanted = network.unwrap().difference(from, to).unwrap();
                let Some((value, error)) = found else {
                    anew += 1;
                    continue;
                };
                changed += 1;
                assert!((value - wanted.value).abs() < 1e-8, "{round} {from} {to}");
                assert!((error - wanted.error).abs() < 1e-8, "{round} {from} {to}");
            }
        }
        assert!(changed > 500 && changed > anew, "{changed} {anew}");
    }

    #[test]
    fn what_would_take_as_long_or_lose_its_digits_is_solved_anew() {
        let star = |values: &[(usize, f64)]| Star {
            host: 0,
            values: values.iter().copied().collect(),
            variance: 1.0,
            within: 0.1,
        };
        let (line, branch) = (0, 17);
        let builds = [Build { line, branch }; 5];
        let few = [
            star(&[(0, 0.0), (1, 0.1), (4, 0.4)]),
            star(&[(0, 0.0), (2, 0.2)]),
            star(&[(1, 0.0), (2, 0.2)]),
        ];
        // Without the first run nothing says what the fifth version is.
        let whole = Whole::of(few.iter().collect(), &builds, 0).unwrap();
        let [first, others @ ..] = &few;
        let rest: Vec<&Star> = others.iter().collect();
        assert_eq!(whole.without((&[first], &rest), &builds, (0, 1)), None);
        let many: Vec<Star> = (0..70).map(|_| star(&[(0, 0.0), (1, 0.1)])).collect();
        let all: Vec<&Star> = few.iter().chain(&many).collect();
        let whole = Whole::of(all, &builds, 0).unwrap();
        let (some, rest) = many.split_at(64);
        let [some, rest]: [Vec<&Star>; 2] = [some, rest].map(|part| part.iter().collect());
        let rest: Vec<&Star> = rest.into_iter().chain(&few).collect();
        assert!(whole.without((&some, &rest), &builds, (0, 1)).is_some());
        let some: Vec<&Star> = many.iter().take(65).collect();
        assert_eq!(whole.without((&some, &rest), &builds, (0, 1)), None);
    }
}
