//! Drawing tables and parameters: the part of a workload that runs between two statements of a measured
//! slice.
//!
//! Nothing here allocates or divides, except a division in about `width / 2^64` of the uniform draws.

use crate::executable::{Executable, Random, Slot, Slots, Step, Value};
use deltabench_model::units::index;
use rand::RngCore;

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

/// Fills `text` with groups of `width` random digits joined by `-`.
///
/// Shape: up to twelve digits come from one 64-bit number, read as a fraction and multiplied out two at a
/// time; the digits of a group are therefore uniform to better than one part in ten million.
#[inline]
pub(crate) fn digits(random: &mut Random, text: &mut [u8], width: usize) {
    for group in text.chunks_mut(width + 1) {
        let (digits, joint) = group.split_at_mut(width.min(group.len()));
        for part in digits.chunks_mut(12) {
            let mut fraction = random.next_u64();
            for pair in part.chunks_mut(2) {
                let number;
                (fraction, number) = fraction.carrying_mul(100, 0);
                for (digit, spelled) in pair
                    .iter_mut()
                    .zip(PAIRS.get(index(number)).unwrap_or(b"00"))
                {
                    *digit = *spelled;
                }
            }
        }
        joint.fill(b'-');
    }
}

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = pairs();

// Evaluated by the compiler: it would not build if it failed.
#[allow(clippy::indexing_slicing, clippy::as_conversions)]
const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

impl Executable {
    /// Draws a table for a step with [`Step::draws_table`]: an index into [`Step::statements`], from 0.
    ///
    /// Shape: with one table nothing is drawn from `random`.
    #[inline]
    #[must_use]
    pub fn draw_table(&self, random: &mut Random) -> usize {
        if self.tables <= 1 {
            return 0;
        }
        index(uniform(random, 0, i64::from(self.tables) - 1).cast_unsigned())
    }

    /// The statements of the first operation of a seed, with their parameters spelled out, for people to
    /// read.
    #[must_use]
    pub fn sample_sql(&self, seed: u64) -> Vec<String> {
        let mut random = crate::stream(seed, &[]);
        let mut table = 0;
        let mut sample = Vec::new();
        for step in &self.steps {
            if step.draws_table {
                table = self.draw_table(&mut random);
            }
            let Some(statement) = step
                .statement(table)
                .and_then(|number| self.statements.get(number))
            else {
                continue;
            };
            let mut spelled = Spelled::new(&statement.slots);
            step.fill(&mut random, &mut spelled);
            sample.push(spelled.put_into(&statement.sql));
        }
        sample
    }
}

impl Step {
    /// The statement to send when `table` (from 0) is the one drawn: an index into
    /// [`Executable::statements`].
    #[inline]
    #[must_use]
    pub fn statement(&self, table: usize) -> Option<usize> {
        self.statements
            .get(table)
            .or(self.statements.first())
            .copied()
    }

    /// Draws the parameters of one round trip, in the order of the placeholders.
    ///
    /// A step that draws a table does so first ([`Executable::draw_table`]), from the same stream.
    #[inline]
    pub fn fill(&self, random: &mut Random, slots: &mut impl Slots) {
        let mut slot = 0;
        for value in &self.values {
            slot = value.fill(random, slots, slot);
        }
    }
}

impl Value {
    /// Number of placeholders it fills.
    #[must_use]
    pub fn slots(&self) -> usize {
        match self {
            Self::Uniform { count, .. } | Self::Consecutive { count, .. } => {
                index(u64::from(*count))
            }
            Self::Range { .. } => 2,
            Self::Digits { .. } => 1,
        }
    }

    /// Fills the placeholders from `slot` on; returns the next one.
    #[inline]
    fn fill(&self, random: &mut Random, slots: &mut impl Slots, slot: usize) -> usize {
        match *self {
            Self::Uniform { low, high, count } => {
                let end = slot + index(u64::from(count));
                for place in slot..end {
                    slots.set_big_int(place, uniform(random, low, high));
                }
                end
            }
            Self::Consecutive { start, count } => {
                let end = slot + index(u64::from(count));
                for (place, number) in (slot..end).zip(start..) {
                    slots.set_big_int(place, number);
                }
                end
            }
            Self::Range { low, high, add } => {
                let from = uniform(random, low, high);
                slots.set_big_int(slot, from);
                slots.set_big_int(slot + 1, from.wrapping_add(add));
                slot + 2
            }
            Self::Digits { width, .. } => {
                digits(random, slots.text_mut(slot), index(u64::from(width)));
                slot + 1
            }
        }
    }
}

/// Parameters as SQL literals.
struct Spelled {
    numbers: Vec<i64>,
    texts: Vec<Vec<u8>>,
}

impl Spelled {
    fn new(slots: &[Slot]) -> Self {
        let text = |slot: &Slot| match slot {
            Slot::BigInt => Vec::new(),
            Slot::Text(bytes) => vec![b' '; *bytes],
        };
        Self {
            numbers: vec![0; slots.len()],
            texts: slots.iter().map(text).collect(),
        }
    }

    fn literal(&self, slot: usize) -> Option<String> {
        let text = self.texts.get(slot)?;
        if text.is_empty() {
            return self.numbers.get(slot).map(i64::to_string);
        }
        Some(format!("'{}'", String::from_utf8_lossy(text)))
    }

    /// `sql` with `$1 …` replaced, except inside quotes.
    fn put_into(&self, sql: &str) -> String {
        let mut out = String::with_capacity(sql.len());
        let mut quote = None;
        let mut rest = sql;
        while let Some(letter) = rest.chars().next() {
            let (_, after) = rest.split_at(letter.len_utf8());
            rest = after;
            match (letter, quote) {
                ('\'' | '"', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                ('$', None) => {
                    let end = after
                        .find(|c: char| !c.is_ascii_digit())
                        .unwrap_or(after.len());
                    let (number, tail) = after.split_at(end);
                    let slot = number
                        .parse::<usize>()
                        .ok()
                        .and_then(|number| number.checked_sub(1));
                    if let Some(literal) = slot.and_then(|slot| self.literal(slot)) {
                        out.push_str(&literal);
                        rest = tail;
                        continue;
                    }
                }
                _ => {}
            }
            out.push(letter);
        }
        out
    }
}

impl Slots for Spelled {
    fn set_big_int(&mut self, slot: usize, value: i64) {
        if let Some(number) = self.numbers.get_mut(slot) {
            *number = value;
        }
    }

    fn text_mut(&mut self, slot: usize) -> &mut [u8] {
        self.texts.get_mut(slot).map_or(&mut [], Vec::as_mut_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;
    use std::collections::BTreeMap;

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

    #[test]
    fn digits_are_uniform_in_every_place() {
        let mut random = stream(4, &[]);
        let mut counts = [[0_u32; 10]; 23];
        let mut text = [0; 23];
        for _ in 0..20_000 {
            digits(&mut random, &mut text, 11);
            for (place, byte) in text.iter().enumerate() {
                if place == 11 {
                    assert_eq!(*byte, b'-');
                } else {
                    counts[place][usize::from(byte - b'0')] += 1;
                }
            }
        }
        counts[11] = [2000; 10];
        assert!(
            counts
                .iter()
                .flatten()
                .all(|count| (1_780..2_220).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn one_table_is_not_drawn() {
        let executable = |tables| Executable {
            name: String::new(),
            statements: vec![],
            steps: vec![],
            tables,
        };
        let (mut one, mut many) = (stream(5, &[]), stream(5, &[]));
        assert_eq!(executable(1).draw_table(&mut one), 0);
        assert_eq!(one, stream(5, &[]));
        let drawn: Vec<usize> = (0..4000)
            .map(|_| executable(4).draw_table(&mut many))
            .collect();
        for table in 0..4 {
            assert!((850..1150).contains(&drawn.iter().filter(|&&drawn| drawn == table).count()));
        }
        assert!(drawn.iter().all(|&table| table < 4));
    }

    #[test]
    fn spelling_out_leaves_quotes_alone() {
        let mut spelled = Spelled::new(&[Slot::BigInt, Slot::Text(3)]);
        spelled.set_big_int(0, -7);
        spelled.text_mut(1).copy_from_slice(b"abc");
        assert_eq!(
            spelled.put_into("a=$1 b=$2 c='$1' d=$1"),
            "a=-7 b='abc' c='$1' d=-7"
        );
    }
}
