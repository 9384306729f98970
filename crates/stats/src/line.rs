//! A line through points of unequal noise: how much one quantity changes with another.

use crate::number::real;
use crate::summary::mean;

/// Of the leverage of a point this much has to be left to others, or nobody knows its noise.
const LEAST_LEFT: f64 = 1e-9;

/// How much the second coordinate changes for each unit of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// By least squares.
    pub estimate: f64,
    /// Its standard error.
    pub error: f64,
}

impl Slope {
    /// The size of the slope without what chance adds to it: chance alone makes the square of an estimate as
    /// large as that of its error. 0 where that is all.
    pub fn beyond_chance(&self) -> f64 {
        let square = self.estimate.powi(2) - self.error.powi(2);
        square.max(0.0).sqrt()
    }
}

/// The slope of a line through points (x, y); its error holds also where some points are noisier.
///
/// Shape:  `None` for fewer than three points, or if one point alone says how steep the line is.
/// Units:  those of y for one of x.
/// Source: least squares; error HC3 of MacKinnon & White 1985, J. Econometrics 29, 305, which takes each
///         point's distance from the line of the others as its noise and so errs on the large side.
pub fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    let of = |value: fn(&(f64, f64)) -> f64| mean(&points.iter().map(value).collect::<Vec<_>>());
    let (x, y) = (of(|point| point.0)?, of(|point| point.1)?);
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if points.len() < 3 || spread <= 0.0 {
        return None;
    }
    let along: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let estimate = along / spread;
    let mut square = 0.0;
    for point in points {
        let away = point.0 - x;
        let left = 1.0 - 1.0 / real(points.len()) - away.powi(2) / spread;
        if left < LEAST_LEFT {
            return None;
        }
        let off = point.1 - y - estimate * away;
        square += (away * off / left).powi(2);
    }
    Some(Slope {
        estimate,
        error: square.sqrt() / spread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn a_slope_is_that_of_least_squares_and_its_error_that_of_points_left_out() {
        let exact = slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((exact.estimate - 2.0).abs() < 1e-12 && exact.error < 1e-12);
        // By hand: means 1 and 2, spread 2, leverages 5/6, 1/3, 5/6; off the line by 1/2, −1, 1/2.
        let bent = slope(&[(0.0, 1.0), (1.0, 1.0), (2.0, 4.0)]).unwrap();
        assert!((bent.estimate - 1.5).abs() < 1e-12);
        let by_hand = (2.0 * (0.5_f64 / (1.0 / 6.0)).powi(2)).sqrt() / 2.0;
        assert!((bent.error - by_hand).abs() < 1e-12, "{bent:?}");
        // So large an error leaves nothing of it.
        assert!(bent.beyond_chance().abs() < 1e-12);
        assert!((exact.beyond_chance() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_line_needs_points_that_say_how_steep_it_is() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        let alone = [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (1.0, 4.0)];
        assert_eq!(slope(&alone), None);
    }

    /// Mean of the squares beyond chance, without the cut at 0, of many lines of 8 points whose noise at the
    /// far end is so many times as large.
    fn mean_square(steep: f64, unrest: f64) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        // Sum of twelve even numbers: nearly normal.
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let lines = 4000;
        let mut sum = 0.0;
        for _ in 0..lines {
            let points: Vec<(f64, f64)> = (0..8)
                .map(|at| {
                    let x = f64::from(at) / 7.0;
                    let noise = if at > 4 { unrest } else { 1.0 };
                    (x, steep * x + noise * normal())
                })
                .collect();
            let found = slope(&points).unwrap();
            sum += found.estimate.powi(2) - found.error.powi(2);
        }
        sum / f64::from(lines)
    }

    #[test]
    fn what_is_left_beyond_chance_is_the_slope_and_no_more() {
        for unrest in [1.0, 4.0] {
            let (none, steep) = (mean_square(0.0, unrest), mean_square(10.0, unrest));
            println!("noise x{unrest}: {none:.3} of 0, {steep:.1} of 100");
            assert!(none < 0.1, "{none}");
            assert!((70.0..101.0).contains(&steep), "{steep}");
        }
    }
}
