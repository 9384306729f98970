//! What runs say of servers that were measured together: a normal model, so all of it is exact.

/// Servers that were measured together in one run, each with the natural logarithm of its cost over any
/// reference that they share.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimedRun {
    /// Points and their values.
    pub values: Vec<(usize, f64)>,
    /// Standard deviation of the difference of two of these values that chance makes.
    pub pair: f64,
}

/// The measured points as one normal variable, each N(0, `own`²) before anything is known.
///
/// With A = Σ (I − 11ᵀ/k)/(σ²/2) and h = Σ (y − ȳ)/(σ²/2) over the k servers of each run,
/// M = (A + I/own²)⁻¹ is its covariance and M h its mean.
pub(crate) struct Model {
    /// In order.
    points: Vec<usize>,
    covariance: Vec<Vec<f64>>,
    mean: Vec<f64>,
    own: f64,
}

impl Model {
    /// Of runs, when a server has so much of its own.
    pub(crate) fn of(runs: &[TimedRun], own: f64) -> Self {
        let points = points(runs);
        let many = points.len();
        let mut precision = vec![vec![0.0; many]; many];
        let mut right = vec![0.0; many];
        for (place, row) in precision.iter_mut().enumerate() {
            add(row, place, own.powi(-2));
        }
        let place = |point: usize| points.partition_point(|one| *one < point);
        for run in runs {
            let noise = run.pair.powi(2) / 2.0;
            let k = number(run.values.len()).max(1.0);
            let mean = run.values.iter().map(|(_, value)| value).sum::<f64>() / k;
            for (one, value) in &run.values {
                add(&mut right, place(*one), (value - mean) / noise);
                let Some(row) = precision.get_mut(place(*one)) else {
                    continue;
                };
                for (other, _) in &run.values {
                    let itself = if one == other { 1.0 } else { 0.0 };
                    add(row, place(*other), (itself - 1.0 / k) / noise);
                }
            }
        }
        let covariance = inverse(precision);
        let mean = covariance.iter().map(|row| dot(row, &right)).collect();
        Self {
            points,
            covariance,
            mean,
            own,
        }
    }

    /// The points that were measured, in order.
    pub(crate) fn points(&self) -> &[usize] {
        &self.points
    }

    /// What a point costs over another one, and the standard error of that; nothing for a point that was not
    /// measured.
    pub(crate) fn contrast(&self, from: usize, to: usize) -> Option<(f64, f64)> {
        let place = |point: usize| self.points.binary_search(&point).ok();
        let (from, to) = (place(from)?, place(to)?);
        let entry = |row: usize, column: usize| self.covariance.get(row).map(|row| at(row, column));
        let variance = entry(from, from)? + entry(to, to)? - 2.0 * entry(from, to)?;
        let value = at(&self.mean, to) - at(&self.mean, from);
        Some((value, variance.max(0.0).sqrt()))
    }

    /// The logarithm of how likely the values are if the measured points from this one on cost more by a step
    /// that is N(0, `step`²): ½ B²/P − ½ log P.
    pub(crate) fn likelihood(&self, first_slow: usize, step: f64) -> f64 {
        let (b, p) = self.of_step(first_slow, step);
        0.5 * (b * b / p - p.ln())
    }

    /// What the measured points from this one on then cost more, and the standard error of that: B/P, P^−½.
    pub(crate) fn step(&self, first_slow: usize, step: f64) -> (f64, f64) {
        let (b, p) = self.of_step(first_slow, step);
        (b / p, p.sqrt().recip())
    }

    /// B = sᵀMh/own², P = 1/step² + (sᵀs − sᵀMs/own²)/own².
    fn of_step(&self, first_slow: usize, step: f64) -> (f64, f64) {
        let slow = |values: &[f64]| values.iter().skip(first_slow).sum::<f64>();
        let many = number(self.mean.len().saturating_sub(first_slow));
        let own = self.own.powi(2);
        let rows = self.covariance.iter().skip(first_slow);
        let kept: f64 = rows.map(|row| slow(row)).sum::<f64>() / own;
        let b = slow(&self.mean) / own;
        (b, step.powi(-2) + (many - kept) / own)
    }
}

/// The points that were measured, in order.
pub(crate) fn points(runs: &[TimedRun]) -> Vec<usize> {
    let values = runs.iter().flat_map(|run| &run.values);
    let mut points: Vec<usize> = values.map(|(point, _)| *point).collect();
    points.sort_unstable();
    points.dedup();
    points
}

/// The inverse of a symmetric matrix that has one, by elimination: pivots on the diagonal are above 0.
fn inverse(mut left: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let many = left.len();
    let unit = |row: usize| {
        (0..many)
            .map(|column| if row == column { 1.0 } else { 0.0 })
            .collect()
    };
    let mut right: Vec<Vec<f64>> = (0..many).map(unit).collect();
    for column in 0..many {
        let pivot = left.get(column).map_or(1.0, |row| at(row, column));
        for matrix in [&mut left, &mut right] {
            for value in matrix.get_mut(column).into_iter().flatten() {
                *value /= pivot;
            }
        }
        let own = (left.get(column).cloned(), right.get(column).cloned());
        let (Some(own_left), Some(own_right)) = own else {
            continue;
        };
        for row in (0..many).filter(|row| *row != column) {
            let factor = left.get(row).map_or(0.0, |row| at(row, column));
            for (matrix, own) in [(&mut left, &own_left), (&mut right, &own_right)] {
                let values = matrix.get_mut(row).into_iter().flatten();
                for (value, own) in values.zip(own) {
                    *value -= factor * own;
                }
            }
        }
    }
    right
}

pub(crate) fn at(values: &[f64], place: usize) -> f64 {
    values.get(place).copied().unwrap_or(0.0)
}

fn add(values: &mut [f64], place: usize, more: f64) {
    if let Some(value) = values.get_mut(place) {
        *value += more;
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contrast_of_points_that_never_met_goes_through_those_that_both_met() {
        let run = |values: &[(usize, f64)]| TimedRun {
            values: values.to_vec(),
            pair: 0.01,
        };
        let runs = [run(&[(0, 5.0), (3, 5.02)]), run(&[(3, 1.0), (7, 1.03)])];
        let model = Model::of(&runs, 1.0);
        let (value, error) = model.contrast(0, 7).unwrap();
        assert!((value - 0.05).abs() < 1e-4, "{value}");
        assert!((error - 0.01 * 2f64.sqrt()).abs() < 1e-4, "{error}");
        assert_eq!(model.contrast(0, 5), None);
    }

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![
            vec![4.0, 1.0, 0.5],
            vec![1.0, 3.0, 0.2],
            vec![0.5, 0.2, 2.0],
        ];
        let inverse = inverse(matrix.clone());
        for (place, row) in matrix.iter().enumerate() {
            for column in 0..3 {
                let other: Vec<f64> = inverse.iter().map(|row| row[column]).collect();
                let wanted = if place == column { 1.0 } else { 0.0 };
                assert!((dot(row, &other) - wanted).abs() < 1e-12);
            }
        }
    }
}
