//! Symmetric systems of equations in which each unknown has to do with few others.

use std::collections::BTreeSet;

/// Share of its diagonal that is left of an unknown if the others determine it, but for the digits of a
/// computer.
const ROUNDING: f64 = 1e-9;

/// A symmetric positive definite matrix by its rows, without what is zero.
#[derive(Debug)]
pub(crate) struct Matrix {
    rows: Vec<Row>,
}

/// The entries of a row in the order of their columns. Nearly all rows have a few: a tree would take longer.
#[derive(Debug, Clone, Default)]
struct Row(Vec<(usize, f64)>);

impl Row {
    fn place(&self, column: usize) -> Result<usize, usize> {
        self.0.binary_search_by_key(&column, |(known, _)| *known)
    }

    fn get(&self, column: usize) -> f64 {
        let found = self.place(column).ok().and_then(|at| self.0.get(at));
        found.map_or(0.0, |(_, value)| *value)
    }

    fn add(&mut self, column: usize, value: f64) {
        match self.place(column) {
            Ok(at) => {
                if let Some((_, own)) = self.0.get_mut(at) {
                    *own += value;
                }
            }
            Err(at) => self.0.insert(at, (column, value)),
        }
    }

    /// Takes an entry out; 0 for one that is not there.
    fn take(&mut self, column: usize) -> f64 {
        self.place(column).map_or(0.0, |at| self.0.remove(at).1)
    }
}

/// An unknown that the others determine.
#[derive(Debug)]
pub(crate) struct Undetermined {
    pub(crate) column: usize,
    /// Whether an equation has it beside others without it. If not, it says nothing, and nothing rests on it.
    pub(crate) is_in_runs: bool,
}

/// The matrix as L D Lᵀ.
#[derive(Debug, Clone)]
pub(crate) struct Factored {
    /// Unknowns in the order in which they were eliminated.
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    unknown: usize,
    pivot: f64,
    /// Its column of L.
    column: Vec<(usize, f64)>,
}

impl Matrix {
    /// Of zeros.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            rows: vec![Row::default(); size],
        }
    }

    /// Adds to an entry; whoever adds to one half adds to the other.
    pub(crate) fn add(&mut self, row: usize, column: usize, value: f64) {
        if let Some(row) = self.rows.get_mut(row) {
            row.add(column, value);
        }
    }

    /// Eliminates the unknowns. Of the first `free` ones that with the fewest others left comes next, so that
    /// few entries become more; the rest follow in their order.
    ///
    /// Errors: the first unknown that the ones before it determine.
    /// Source: minimum degree (Tinney & Walker 1967).
    pub(crate) fn factored(mut self, free: usize) -> Result<Factored, Undetermined> {
        let whole: Vec<f64> = { self.rows.iter().enumerate() }
            .map(|(at, row)| row.get(at))
            .collect();
        let size = self.rows.len();
        let free = free.min(size);
        let firsts = self.rows.iter().take(free).enumerate();
        let mut open: BTreeSet<(usize, usize)> =
            firsts.map(|(at, row)| (row.0.len(), at)).collect();
        let mut rest = free..size;
        let mut steps = Vec::with_capacity(size);
        while let Some(at) = { open.pop_first() }
            .map(|(_, at)| at)
            .or_else(|| rest.next())
        {
            let mut row = self
                .rows
                .get_mut(at)
                .map(std::mem::take)
                .unwrap_or_default();
            let pivot = row.take(at);
            let whole = whole.get(at).copied().unwrap_or(0.0);
            let least = if at < free { 0.0 } else { ROUNDING * whole };
            if pivot <= least || !pivot.is_finite() {
                return Err(Undetermined {
                    column: at,
                    is_in_runs: whole > 0.0,
                });
            }
            for (other, factor) in &row.0 {
                let Some(own) = self.rows.get_mut(*other) else {
                    continue;
                };
                let before = own.0.len();
                own.take(at);
                for (column, value) in &row.0 {
                    own.add(*column, -(factor * value / pivot));
                }
                let after = own.0.len();
                if *other < free && after != before {
                    open.remove(&(before, *other));
                    open.insert((after, *other));
                }
            }
            steps.push(Step {
                unknown: at,
                pivot,
                column: row
                    .0
                    .into_iter()
                    .map(|(of, value)| (of, value / pivot))
                    .collect(),
            });
        }
        Ok(Factored { steps })
    }
}

impl Factored {
    /// Each unknown with what was left of its diagonal when its turn came.
    pub(crate) fn pivots(&self) -> impl Iterator<Item = (usize, f64)> {
        self.steps.iter().map(|step| (step.unknown, step.pivot))
    }

    /// The unknowns for a right side of the same size.
    pub(crate) fn solved(&self, mut right: Vec<f64>) -> Vec<f64> {
        for step in &self.steps {
            self.forward(step, &mut right);
        }
        for step in self.steps.iter().rev() {
            let below = step.column.iter();
            let below: f64 = below.map(|(of, value)| value * at(&right, *of)).sum();
            if let Some(own) = right.get_mut(step.unknown) {
                *own = *own / step.pivot - below;
            }
        }
        right
    }

    /// cᵀ A⁻¹ c of a contrast, which is the sum of these unknowns with these factors.
    pub(crate) fn variance(&self, contrast: &[(usize, f64)]) -> f64 {
        let mut rest = vec![0.0; self.steps.len()];
        for (unknown, factor) in contrast {
            if let Some(own) = rest.get_mut(*unknown) {
                *own += factor;
            }
        }
        let mut sum = 0.0;
        for step in &self.steps {
            let own = at(&rest, step.unknown);
            // Most unknowns have no part in it.
            if own.abs() > 0.0 {
                sum += own.powi(2) / step.pivot;
                self.forward(step, &mut rest);
            }
        }
        sum
    }

    fn forward(&self, step: &Step, right: &mut [f64]) {
        let own = at(right, step.unknown);
        for (of, value) in &step.column {
            if let Some(other) = right.get_mut(*of) {
                *other -= value * own;
            }
        }
    }
}

fn at(values: &[f64], place: usize) -> f64 {
    values.get(place).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// A matrix of pairs, as runs make them: each connects two unknowns, or one with the reference.
    fn of_pairs(random: &mut Xoshiro256PlusPlus, size: usize) -> Vec<Vec<f64>> {
        let mut matrix = vec![vec![0.0; size]; size];
        for one in 0..size {
            matrix[one][one] += 0.1 + random.random::<f64>();
            let other = random.random_range(0..size);
            if other != one {
                let weight = random.random::<f64>();
                for (row, column, sign) in
                    [(one, one, 1.0), (other, other, 1.0), (one, other, -1.0)]
                {
                    matrix[row][column] += sign * weight;
                }
                matrix[other][one] -= weight;
            }
        }
        matrix
    }

    fn sparse(dense: &[Vec<f64>]) -> Matrix {
        let mut matrix = Matrix::new(dense.len());
        for (row, values) in dense.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                if *value != 0.0 {
                    matrix.add(row, column, *value);
                }
            }
        }
        matrix
    }

    #[test]
    fn a_solution_fulfils_its_equations_and_a_variance_is_that_of_the_inverse() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        for size in [1, 2, 7, 40] {
            let dense = of_pairs(&mut random, size);
            for free in [size, size / 2] {
                let factored = sparse(&dense).factored(free).unwrap();
                let right: Vec<f64> = (0..size).map(|_| random.random::<f64>() - 0.5).collect();
                let found = factored.solved(right.clone());
                for (row, wanted) in dense.iter().zip(&right) {
                    let sum: f64 = row.iter().zip(&found).map(|(one, other)| one * other).sum();
                    assert!((sum - wanted).abs() < 1e-9, "{size}");
                }
                let contrast = [(0, -1.0), (size - 1, 2.0)];
                let mut ends = vec![0.0; size];
                ends[0] -= 1.0;
                ends[size - 1] += 2.0;
                let inverse = factored.solved(ends.clone());
                let wanted: f64 = inverse
                    .iter()
                    .zip(&ends)
                    .map(|(one, other)| one * other)
                    .sum();
                assert!((factored.variance(&contrast) - wanted).abs() < 1e-9 * wanted);
            }
        }
    }

    #[test]
    fn an_unknown_that_the_others_determine_is_named() {
        // The third is the sum of the first two.
        let dense = [
            [1.0, 0.0, 1.0, 0.0],
            [0.0, 1.0, 1.0, 0.0],
            [1.0, 1.0, 2.0, 0.0],
            [0.0; 4],
        ];
        let dense: Vec<Vec<f64>> = dense.iter().map(|row| row.to_vec()).collect();
        let found = sparse(&dense).factored(2).unwrap_err();
        assert!(found.column == 2 && found.is_in_runs);
        let three: Vec<Vec<f64>> = [0, 1, 3]
            .map(|row| [0, 1, 3].map(|column| dense[row][column]).to_vec())
            .to_vec();
        let found = sparse(&three).factored(2).unwrap_err();
        assert!(
            found.column == 2 && !found.is_in_runs,
            "nothing rests on it"
        );
    }
}
