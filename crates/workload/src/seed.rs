//! One seed, many independent streams.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of all parameter streams; its output for a seed is fixed by its specification.
pub type Random = Xoshiro256PlusPlus;

/// A new seed from `seed` and the numbers that say what it is for, for example `[cell, block, round]`.
///
/// Shape: `state = s(seed)`, then `state = s(s(state) ^ s(part))` for each part in order, where `s` is one
/// step of SplitMix64; parts in another order, or fewer of them, give another seed. The state is stepped
/// once more than the part, because otherwise seed and first part could be swapped, and would cancel when
/// equal.
/// Source: SplitMix64 as in Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014.
pub fn mix(seed: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(split_mix(seed), |state, &part| {
        split_mix(split_mix(state) ^ split_mix(part))
    })
}

/// The generator for [`mix`]`(seed, parts)`.
///
/// Source: xoshiro256++ (Blackman, Vigna, 2019), its state filled from SplitMix64 as its authors advise.
pub fn stream(seed: u64, parts: &[u64]) -> Random {
    Random::seed_from_u64(mix(seed, parts))
}

pub(crate) fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A uniform integer in `low..=high`; needs `low <= high`.
///
/// Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019, algorithm 5.
/// Our own, so that a newer version of a library does not change what a seed means.
#[inline]
pub(crate) fn uniform(random: &mut Random, low: i64, high: i64) -> i64 {
    let width = high.wrapping_sub(low).cast_unsigned().wrapping_add(1);
    if width == 0 {
        return random.next_u64().cast_signed();
    }
    let (mut fraction, mut offset) = random.next_u64().carrying_mul(width, 0);
    if fraction < width {
        let threshold = width.wrapping_neg() % width;
        while fraction < threshold {
            (fraction, offset) = random.next_u64().carrying_mul(width, 0);
        }
    }
    low.wrapping_add(offset.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::collections::HashSet;

    #[test]
    fn split_mix_gives_the_published_first_output() {
        // First output of the reference implementation for state 0; also in the tests of xoshiro's authors.
        assert_eq!(split_mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn streams_are_told_apart_by_every_part_and_its_place() {
        let keys: [&[u64]; 8] = [
            &[],
            &[0],
            &[1],
            &[0, 0],
            &[0, 1],
            &[1, 0],
            &[1, 1],
            &[0, 0, 0],
        ];
        let mut seen = HashSet::new();
        // Seeds and parts overlap on purpose: they must not cancel or change places.
        for seed in 0..100 {
            for key in keys {
                assert!(
                    seen.insert(mix(seed, key)),
                    "seed {seed} key {key:?} collides"
                );
            }
        }
    }

    #[test]
    fn a_stream_does_not_change_between_versions() {
        let mut random = stream(42, &[1, 2, 3]);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        // From an independent implementation of both algorithms, in Python.
        assert_eq!(
            first,
            [
                0xf11b_4d7d_da15_f31d,
                0x3de6_e377_9643_a2a2,
                0x6120_30f6_79a6_dc24
            ]
        );
    }

    #[test]
    fn uniform_reaches_both_ends_and_nothing_beyond() {
        let mut random = stream(1, &[]);
        let mut seen: BTreeMap<i64, u32> = BTreeMap::new();
        for _ in 0..70_000 {
            *seen.entry(uniform(&mut random, -3, 3)).or_default() += 1;
        }
        assert_eq!(
            seen.keys().copied().collect::<Vec<_>>(),
            [-3, -2, -1, 0, 1, 2, 3]
        );
        assert!(
            seen.values().all(|count| (9_600..10_400).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn uniform_holds_at_the_edges_of_the_type() {
        let mut random = stream(2, &[]);
        for (low, high) in [
            (5, 5),
            (i64::MIN, i64::MIN + 1),
            (i64::MIN, i64::MAX),
            (0, i64::MAX),
        ] {
            for _ in 0..1000 {
                assert!(
                    (low..=high).contains(&uniform(&mut random, low, high)),
                    "{low} {high}"
                );
            }
        }
    }

    #[test]
    fn uniform_is_fair_where_plain_scaling_would_not_be() {
        // Of a width of 3 * 2^62 plain scaling would give every third value twice as often as its neighbours.
        let mut random = stream(3, &[]);
        let high = 3 * (1_i64 << 61) - 1;
        let mut thirds = [0_u32; 3];
        for _ in 0..30_000 {
            let value = uniform(&mut random, -high - 1, high);
            thirds[usize::try_from(value.rem_euclid(3)).unwrap()] += 1;
        }
        assert!(
            thirds.iter().all(|count| (9_600..10_400).contains(count)),
            "{thirds:?}"
        );
    }
}
