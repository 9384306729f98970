//! The integers below a bound in a random order, found by place and not stored.

use crate::seed::{mix, split_mix};

/// Passes over the two halves. Four make a pseudo-random permutation of a good round function; two more cost
/// little and help very small domains.
const ROUNDS: usize = 6;

/// A permutation of `0..count`.
///
/// Shape: a Feistel network over the next power of four, walked on until it lands inside: fewer than four
/// passes on average, and no memory however many values there are.
/// Source: Luby, Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", SIAM J.
/// Computing 17(2), 1988; cycle walking from Black, Rogaway, "Ciphers with arbitrary finite domains",
/// CT-RSA 2002.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of a seed.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mut keys = [0; ROUNDS];
        for (round, key) in (0..).zip(&mut keys) {
            *key = mix(seed, &[round]);
        }
        Self {
            count,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    /// Where `number` goes; `number` must be below the count.
    #[inline]
    pub fn place(&self, number: u64) -> u64 {
        if number >= self.count {
            return number;
        }
        let mut place = number;
        loop {
            place = self.pass(place);
            if place < self.count {
                return place;
            }
        }
    }

    #[inline]
    fn pass(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, (left ^ split_mix(right ^ key)) & mask);
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_has_its_own_place(count in 1_u64..3000, seed: u64) {
            let permutation = Permutation::new(count, seed);
            let mut places: Vec<u64> = (0..count).map(|number| permutation.place(number)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn large_counts_stay_inside(count in 1_u64..u64::MAX, seed: u64, share in 0.0..1.0_f64) {
            let number = deltabench_model::units::to_u64(
                deltabench_model::units::to_f64(count) * share * 0.999,
            );
            prop_assert!(Permutation::new(count, seed).place(number) < count);
        }
    }

    #[test]
    fn places_are_spread_like_random_numbers() {
        // 100 bands of the first tenth of the places; the rest of a chi-square with 99 degrees of freedom.
        let count = 100_000;
        let permutation = Permutation::new(count, 7);
        let mut bands = [0_i64; 100];
        for number in 0..10_000 {
            bands[usize::try_from(permutation.place(number) / 1000).unwrap()] += 1;
        }
        let chi_square: i64 = bands.iter().map(|band| (band - 100).pow(2)).sum::<i64>() / 100;
        // Drawn without putting back: nine tenths of the usual spread.
        assert!((50..135).contains(&chi_square), "{chi_square}");
        let neighbours = (1..count).filter(|&number| {
            permutation
                .place(number)
                .abs_diff(permutation.place(number - 1))
                == 1
        });
        assert!(neighbours.count() < 12, "two are expected");
    }

    #[test]
    fn a_permutation_does_not_change_between_versions() {
        let permutation = Permutation::new(1000, 42);
        let places: Vec<u64> = (0..6).map(|number| permutation.place(number)).collect();
        // From an independent implementation in Python.
        assert_eq!(places, [504, 298, 761, 622, 604, 156]);
    }
}
