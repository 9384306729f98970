//! Keys and values as `db_bench` makes them, from seeds.
//!
//! A key is its number in eight bytes, the highest first, then `0` up to its length, so that numbers and keys
//! have one order. Values are pieces of one text that is made once: half of each piece repeats the other
//! half.
//!
//! Source: docs/sources/rocksdb-db-bench.md#flags; `tools/db_bench_tool.cc`, GenerateKeyFromInt and
//! RandomGenerator.

use deltabench_model::units::{count, index};
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// Bytes of the text that values are cut from; more than what a compressor remembers.
const TEXT_BYTES: usize = 1 << 20;

/// Bytes of a piece of it, half of which repeat the other half.
const PIECE_BYTES: usize = 100;

/// Seed of the text, the same in every run: values are no part of what varies.
const TEXT_SEED: u64 = 301;

/// The text that values are cut from.
pub fn text(value_bytes: u32) -> Arc<[u8]> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(TEXT_SEED);
    let wanted = TEXT_BYTES.max(index(u64::from(value_bytes)));
    let mut text = Vec::with_capacity(wanted + PIECE_BYTES);
    while text.len() < wanted {
        let half: Vec<u8> = (0..PIECE_BYTES / 2).map(|_| letter(&mut random)).collect();
        text.extend_from_slice(&half);
        text.extend_from_slice(&half);
    }
    text.into()
}

/// A printable letter.
fn letter(random: &mut Xoshiro256PlusPlus) -> u8 {
    const LETTERS: u64 = 95;
    u8::try_from(below(random, LETTERS)).map_or(b' ', |letter| b' '.saturating_add(letter))
}

/// A number below another, every one as likely; 0 below 0.
fn below(random: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    let wide = u128::from(random.next_u64()) * u128::from(limit);
    u64::try_from(wide >> 64).unwrap_or(0)
}

/// Keys and values for one thread.
pub struct Source {
    random: Xoshiro256PlusPlus,
    keys: u64,
    key: Vec<u8>,
    text: Arc<[u8]>,
    value_bytes: usize,
    at: usize,
}

impl Source {
    /// For a database of so many keys.
    pub fn new(keys: u64, key_bytes: u32, value_bytes: u32, text: Arc<[u8]>) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(0),
            keys,
            key: vec![b'0'; index(u64::from(key_bytes))],
            text,
            value_bytes: index(u64::from(value_bytes)),
            at: 0,
        }
    }

    /// Begins a turn: what comes is a function of the step's seed, the turn and the thread alone.
    pub fn begin(&mut self, seed: u64, turn: u32, thread: u32) {
        let place = (u64::from(turn) << 32) | u64::from(thread);
        self.random = Xoshiro256PlusPlus::seed_from_u64(seed ^ mixed(place));
        let last = count(self.text.len().saturating_sub(self.value_bytes));
        self.at = index(below(&mut self.random, last));
    }

    /// The key of a number.
    #[inline]
    pub fn key(&mut self, number: u64) -> &[u8] {
        let bytes = number.to_be_bytes();
        let shown = self.key.len().min(bytes.len());
        let low = bytes.get(bytes.len() - shown..).unwrap_or_default();
        if let Some(place) = self.key.get_mut(..shown) {
            place.copy_from_slice(low);
        }
        &self.key
    }

    /// Any key.
    #[inline]
    pub fn any_key(&mut self) -> &[u8] {
        let number = below(&mut self.random, self.keys);
        self.key(number)
    }

    /// Any key, and a value for it.
    #[inline]
    pub fn any_entry(&mut self) -> (&[u8], &[u8]) {
        let number = below(&mut self.random, self.keys);
        self.entry(number)
    }

    /// The key of a number, and a value for it.
    #[inline]
    pub fn entry(&mut self, number: u64) -> (&[u8], &[u8]) {
        if self.at + self.value_bytes > self.text.len() {
            self.at = 0;
        }
        let from = self.at;
        self.at += self.value_bytes;
        self.key(number);
        let value = self.text.get(from..from + self.value_bytes);
        (&self.key, value.unwrap_or_default())
    }
}

/// Spreads a number over all bits, so that neighbours have nothing in common.
///
/// Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 (the mixer of
/// SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn source(keys: u64, key_bytes: u32) -> Source {
        Source::new(keys, key_bytes, 400, text(400))
    }

    #[test]
    fn keys_are_their_numbers_in_order_with_zeros_behind() {
        let mut source = source(1000, 20);
        assert_eq!(source.key(258), b"\0\0\0\0\0\0\x01\x02000000000000");
        let mut keys: Vec<Vec<u8>> = (0..1000).map(|n| source.key(n).to_vec()).collect();
        assert!(keys.is_sorted());
        keys.dedup();
        assert_eq!(keys.len(), 1000);
        let mut short = Source::new(10, 4, 1, text(1));
        assert_eq!(short.key(0x0102_0304_0506), b"\x03\x04\x05\x06");
    }

    #[test]
    fn a_turn_of_a_thread_has_its_own_keys_and_has_them_again() {
        let mut source = source(1 << 40, 20);
        let mut begun = |seed, turn, thread| {
            source.begin(seed, turn, thread);
            let (key, value) = source.any_entry();
            (key.to_vec(), value.to_vec())
        };
        assert_eq!(begun(1, 2, 3), begun(1, 2, 3));
        let all: BTreeSet<_> = [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4), (1, 3, 2)]
            .into_iter()
            .map(|(seed, turn, thread)| begun(seed, turn, thread))
            .collect();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn random_keys_are_spread_over_all_keys_and_stay_among_them() {
        let mut source = source(10, 20);
        source.begin(7, 0, 0);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            let key = source.any_key();
            let number = u64::from_be_bytes(key.get(..8).unwrap().try_into().unwrap());
            seen[index(number)] += 1;
        }
        assert!(
            seen.iter().all(|times| (850..1150).contains(times)),
            "{seen:?}"
        );
    }

    #[test]
    fn values_have_their_length_wherever_they_begin() {
        let mut source = source(10, 20);
        for turn in 0..50 {
            source.begin(1, turn, 0);
            for _ in 0..3000 {
                assert_eq!(source.any_entry().1.len(), 400);
            }
        }
        let text = text(400);
        assert_eq!(
            text.get(..50),
            text.get(50..100),
            "half of a piece repeats the other"
        );
        assert_ne!(text.get(..50), text.get(100..150));
        assert_eq!(super::text(3_000_000).len(), 3_000_000);
    }
}
