//! pgbench's hash functions and its permutation, bit for bit.
//!
//! Source: FNV-1a (Fowler, Noll, Vo) and MurmurHash2 in its 64-bit form (Appleby) of the eight bytes of an
//! integer, seeded as pgbench does; the permutation is the one of PostgreSQL 14 and later, on xoroshiro128**
//! (Blackman, Vigna, 2018) with its state from SplitMix64. Scripts rely on the very numbers, which the tests
//! have from pgbench itself.

use crate::seed::split_mix;

const FNV_PRIME: u64 = 0x0100_0000_01b3;
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;
const MURMUR_SHIFT: u32 = 47;

/// FNV-1a of the eight bytes, lowest first.
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = FNV_BASIS ^ seed.cast_unsigned();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    value
        .to_le_bytes()
        .into_iter()
        .fold(start, step)
        .cast_signed()
}

/// MurmurHash2 of one block of eight bytes.
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    let block = value.cast_unsigned().wrapping_mul(MURMUR);
    let block = (block ^ (block >> MURMUR_SHIFT)).wrapping_mul(MURMUR);
    let length = MURMUR.wrapping_mul(8);
    let hash = (seed.cast_unsigned() ^ length ^ block).wrapping_mul(MURMUR);
    let hash = (hash ^ (hash >> MURMUR_SHIFT)).wrapping_mul(MURMUR);
    (hash ^ (hash >> MURMUR_SHIFT)).cast_signed()
}

/// Rounds of the permutation.
const ROUNDS: u32 = 6;

/// The place of `value` modulo `size` in a permutation of `0..size` that the seed chooses; needs `size >= 1`.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut generator = Generator::new(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let mut place = value.cast_unsigned() % size;
    // Works on the lower and the upper 2^bits places, which overlap: `size` is at least 2^bits.
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let shuffle = |place: u64, generator: &mut Generator| {
        // Both are drawn whether they are used or not.
        let factor = (generator.next() & mask) | 1;
        let offset = generator.next() & mask;
        if place > mask {
            return place;
        }
        let mixed = (place.wrapping_mul(factor) ^ offset) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    for _ in 0..ROUNDS {
        place = shuffle(place, &mut generator);
        place = size - 1 - shuffle(size - 1 - place, &mut generator);
        // Both are below 2^63.
        place = (place + generator.up_to(size - 1)) % size;
    }
    place.cast_signed()
}

/// xoroshiro128**.
struct Generator(u64, u64);

impl Generator {
    fn new(seed: u64) -> Self {
        let second = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        match (split_mix(seed), split_mix(second)) {
            // It would stay there for ever.
            (0, 0) => Self(0x5851_f42d_4c95_7f2d, 0x1405_7b7e_f767_814f),
            (first, second) => Self(first, second),
        }
    }

    fn next(&mut self) -> u64 {
        let Self(first, second) = *self;
        let mixed = first ^ second;
        self.0 = first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.1 = mixed.rotate_left(37);
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number in `0..=most`, by rejection; needs `most >= 1`.
    fn up_to(&mut self, most: u64) -> u64 {
        let shift = most.leading_zeros();
        loop {
            let number = self.next() >> shift;
            if number <= most {
                return number;
            }
        }
    }
}
