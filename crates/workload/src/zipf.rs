//! Ranks with the distribution of Zipf, exactly and without a table.

use crate::seed::Random;
use deltabench_model::units::{to_f64, to_u64};
use rand::RngCore;

/// Rank r of 1 to n with a probability proportional to `r^-exponent`.
///
/// Shape: rejection-inversion: about one and a tenth pair of draw and power for each rank, whatever n is.
/// Exact up to the rounding of 53-bit numbers. Not scrambled: rank 1 is the most frequent.
/// Source: Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996; sysbench uses the same method and leaves ranks in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipf {
    ranks: f64,
    exponent: f64,
    /// Integral of the density up to 1.5, less the probability of rank 1.
    first: f64,
    /// Integral of the density up to n + 0.5.
    last: f64,
    /// How far below its rank an inverted value is accepted without a further look.
    sure: f64,
}

impl Zipf {
    /// The distribution of `ranks` ranks (at least 1) and an exponent above 0.
    pub fn new(ranks: u64, exponent: f64) -> Self {
        let ranks = to_f64(ranks);
        let second = integral(2.5, exponent) - density(2.0, exponent);
        Self {
            ranks,
            exponent,
            first: integral(1.5, exponent) - 1.0,
            last: integral(ranks + 0.5, exponent),
            sure: 2.0 - inverse(second, exponent),
        }
    }

    /// A rank, from 1.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            // 53 random bits: uniform in [0, 1).
            let share = to_f64(random.next_u64() >> 11) * f64::EPSILON / 2.0;
            let mass = self.last + share * (self.first - self.last);
            let value = inverse(mass, self.exponent);
            let rank = value.round().clamp(1.0, self.ranks);
            if rank - value <= self.sure
                || mass >= integral(rank + 0.5, self.exponent) - density(rank, self.exponent)
            {
                return to_u64(rank);
            }
        }
    }
}

/// `x^-s`.
#[inline]
fn density(x: f64, exponent: f64) -> f64 {
    x.powf(-exponent)
}

/// The integral of `x^-s` from 1 to x: `(x^(1-s) - 1) / (1-s)`, or `ln x` where s is 1.
#[inline]
fn integral(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    let power = (1.0 - exponent) * log;
    // Near 1 the quotient is 0/0; two terms of its series are exact to 1e-16 there.
    if power.abs() < 1e-8 {
        log * (1.0 + power / 2.0)
    } else {
        power.exp_m1() / (1.0 - exponent)
    }
}

/// Where [`integral`] is `mass`: `(1 + mass (1-s))^(1/(1-s))`.
#[inline]
fn inverse(mass: f64, exponent: f64) -> f64 {
    let power = (mass * (1.0 - exponent)).max(-1.0);
    let log = if power.abs() < 1e-8 {
        mass * (1.0 - power / 2.0)
    } else {
        power.ln_1p() / (1.0 - exponent)
    };
    log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    /// Chi-square of 400 000 draws against the exact probabilities, and its degrees of freedom; neighbouring
    /// ranks are taken together until 50 are expected.
    fn chi_square(ranks: u64, exponent: f64, seed: u64) -> (f64, u32) {
        const DRAWS: u32 = 400_000;
        let zipf = Zipf::new(ranks, exponent);
        let mut random = stream(seed, &[]);
        let mut counts = vec![0_u32; usize::try_from(ranks).unwrap() + 1];
        for _ in 0..DRAWS {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        assert_eq!(counts[0], 0);
        let weights: Vec<f64> = (1..=ranks)
            .map(|rank| to_f64(rank).powf(-exponent))
            .collect();
        let total: f64 = weights.iter().sum();
        let (mut sum, mut cells, mut expected, mut found) = (0.0, 0, 0.0, 0.0);
        for (weight, count) in weights.iter().zip(&counts[1..]) {
            expected += weight / total * f64::from(DRAWS);
            found += f64::from(*count);
            if expected >= 50.0 {
                sum += (found - expected).powi(2) / expected;
                cells += 1;
                (expected, found) = (0.0, 0.0);
            }
        }
        (sum, cells - 1)
    }

    #[test]
    fn ranks_come_with_their_exact_probabilities() {
        for (ranks, exponent) in [
            (2, 0.8),
            (10, 0.8),
            (1000, 0.8),
            (100_000, 0.8),
            (1000, 0.01),
            (1000, 1.0),
            (1000, 1.000_000_1),
            (1000, 2.5),
        ] {
            let (sum, freedom) = chi_square(ranks, exponent, 11);
            // Mean and standard deviation of a chi-square are k and √2k; four of them to either side.
            let freedom = f64::from(freedom);
            let reach = 4.0 * (2.0 * freedom).sqrt() + 4.0;
            assert!(
                (sum - freedom).abs() < reach,
                "{ranks} ranks, exponent {exponent}: {sum} for {freedom}"
            );
        }
    }

    #[test]
    fn one_rank_is_always_the_first_and_billions_reach_far() {
        let mut random = stream(3, &[]);
        let one = Zipf::new(1, 0.8);
        assert!((0..1000).all(|_| one.draw(&mut random) == 1));
        let many = Zipf::new(2_000_000_000, 0.8);
        let drawn: Vec<u64> = (0..10_000).map(|_| many.draw(&mut random)).collect();
        assert!(drawn.iter().all(|rank| (1..=2_000_000_000).contains(rank)));
        // Half of the mass lies above (1/2)^(1/0.2) = 1/32 of the ranks, near enough for so many.
        let above = drawn.iter().filter(|rank| **rank > 62_500_000).count();
        assert!((4_700..5_300).contains(&above), "{above}");
    }

    #[test]
    fn the_test_would_notice_an_exponent_slightly_off() {
        // Drawn with 0.8 and judged with 0.79: what a chi-square far out looks like.
        let zipf = Zipf::new(100, 0.79);
        let mut random = stream(5, &[]);
        let mut first = 0;
        for _ in 0..400_000 {
            first += u32::from(zipf.draw(&mut random) == 1);
        }
        let total: f64 = (1..=100_u32).map(|rank| f64::from(rank).powf(-0.8)).sum();
        let expected = 400_000.0 / total;
        assert!((f64::from(first) - expected).abs() > 4.0 * expected.sqrt());
    }
}
