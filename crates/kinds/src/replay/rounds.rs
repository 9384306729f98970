//! Which tuples a slice executes, and in which order: the same on every server of a round.

use deltabench_model::units::{count, index, to_f64, to_u64};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Executions of a slice at most: each takes its place in a list.
const MOST_EXECUTIONS: f64 = 20_000.0;

/// The slices of a visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// Tuples of the slices, which follow each other: each part has fast and slow ones.
    parts: Vec<Vec<usize>>,
    /// How often a slice executes each of its tuples.
    repeats: usize,
    /// How many rounds there are at least.
    pub rounds: u32,
}

impl Rounds {
    /// As many as take about `seconds` on a server where the tuples take so many nanoseconds, in slices of
    /// about `slice_ms`; a pass over all tuples at least.
    pub fn of(times_ns: &[f64], seconds: f64, slice_ms: u32) -> Self {
        let slice_ns = f64::from(slice_ms) * 1e6;
        let pass: f64 = times_ns.iter().sum::<f64>().max(1.0);
        let tuples = times_ns.len().max(1);
        let parts = index(to_u64((pass / slice_ns).ceil())).clamp(1, tuples);
        let most = (MOST_EXECUTIONS / to_f64(count(tuples))).max(1.0);
        let repeats = (slice_ns / pass).min(most).floor().max(1.0);
        let slice = pass * repeats / to_f64(count(parts));
        let wanted = to_u64(seconds * 1e9 / slice);
        // Every tuple as often as every other.
        let rounds = (wanted / count(parts)).max(1) * count(parts);
        let mut order: Vec<usize> = (0..times_ns.len()).collect();
        let time = |tuple: &usize| times_ns.get(*tuple).copied().unwrap_or(0.0);
        order.sort_by(|one, other| time(one).total_cmp(&time(other)));
        let part = |part: usize| order.iter().skip(part).step_by(parts).copied().collect();
        Self {
            parts: (0..parts).map(part).collect(),
            repeats: index(to_u64(repeats)),
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        }
    }

    /// Whether a visit may end before this round: every tuple was executed as often as every other, and the
    /// planned rounds or the `given` seconds are over. Tuples that warmed up take less time than the plan
    /// knows, so that there is time for more rounds.
    pub fn may_end(&self, round: u32, elapsed: f64, given: f64) -> bool {
        let whole = count(self.parts.len()).max(1);
        u64::from(round).is_multiple_of(whole) && round >= self.rounds && elapsed >= given
    }

    /// The tuples of a round's slices in a drawn order.
    pub fn slice(&self, round: u32, seed: u64) -> Vec<usize> {
        let place = index(u64::from(round)) % self.parts.len().max(1);
        let part = self.parts.get(place).map_or(&[][..], Vec::as_slice);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = Vec::with_capacity(part.len() * self.repeats);
        for _ in 0..self.repeats {
            let from = drawn.len();
            drawn.extend_from_slice(part);
            if let Some(pass) = drawn.get_mut(from..) {
                pass.shuffle(&mut random);
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_tuples_are_all_in_each_slice_and_slow_ones_take_turns_with_fast_ones() {
        let fast = Rounds::of(&[1e5; 4], 1.0, 40);
        assert_eq!((fast.parts.len(), fast.repeats, fast.rounds), (1, 100, 25));
        let slice = fast.slice(3, 7);
        assert_eq!(slice.len(), 400);
        let of = |tuple: usize| slice.iter().filter(|other| **other == tuple).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [100; 4]);
        assert_eq!(slice, fast.slice(3, 7));
        assert_ne!(slice, fast.slice(3, 8));
        let slow = Rounds::of(&[30e6, 5e6, 30e6, 5e6], 0.1, 40);
        assert_eq!((slow.parts.len(), slow.repeats, slow.rounds), (2, 1, 2));
        let mut first = slow.slice(0, 1);
        first.sort_unstable();
        assert_eq!(first, [0, 1], "one slow and one fast");
        let one = Rounds::of(&[5e9], 0.12, 40);
        assert_eq!((one.rounds, one.slice(0, 1)), (1, vec![0]));
        // The given time is used, in whole passes over the parts.
        let ends: Vec<u32> = (0..9)
            .filter(|round| slow.may_end(*round, 0.4, 0.3))
            .collect();
        assert_eq!(ends, [2, 4, 6, 8]);
        assert!(!slow.may_end(4, 0.2, 0.3), "there is time left");
    }
}
