//! Drawing tables and parameters: the part of a workload that runs between two statements of a measured
//! slice.
//!
//! Nothing here allocates. Nothing divides but a table that takes turns or belongs to a client, a sequence
//! that starts again, and about `width / 2^64` of the uniform draws.

use crate::executable::{
    Draws, Executable, Outbox, Script, Slots, TableChoice, Value, total_weight,
};
use crate::seed::{Random, uniform};
use deltabench_model::units::index;
use rand::RngCore;
use std::ops::Range;

/// Fills `text` with groups of `width` random digits joined by `-`.
///
/// Shape: up to twelve digits come from one 64-bit number, read as a fraction and multiplied out two at a
/// time; the digits of a group are therefore uniform to better than one part in ten million.
#[inline]
pub(crate) fn digits(random: &mut Random, text: &mut [u8], width: usize) {
    for group in text.chunks_mut(width + 1) {
        let (digits, joint) = group.split_at_mut(width.min(group.len()));
        for part in digits.chunks_mut(12) {
            let spelled = twelve(random.next_u64());
            if let Some(spelled) = spelled.get(..part.len()) {
                part.copy_from_slice(spelled);
            }
        }
        joint.fill(b'-');
    }
}

/// The first twelve decimal digits of a fraction.
#[inline]
fn twelve(mut fraction: u64) -> [u8; 12] {
    let mut digits = [0; 12];
    let (pairs, _) = digits.as_chunks_mut::<2>();
    for pair in pairs {
        let number;
        (fraction, number) = fraction.carrying_mul(100, 0);
        *pair = PAIRS.get(index(number)).copied().unwrap_or(*b"00");
    }
    digits
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

/// Fills `text` with random lower-case letters.
///
/// Shape: twelve letters come from one 64-bit number; each is uniform to better than one part in a hundred.
#[inline]
fn letters(random: &mut Random, text: &mut [u8]) {
    for part in text.chunks_mut(12) {
        let mut fraction = random.next_u64();
        for letter in part {
            let number;
            (fraction, number) = fraction.carrying_mul(26, 0);
            *letter = b'a' + u8::try_from(number).unwrap_or(0);
        }
    }
}

/// What the values of one operation are drawn from.
struct Source<'a> {
    random: &'a mut Random,
    /// Where sequences stand.
    position: u64,
    /// What shared values are drawn from.
    shared: u64,
}

impl Executable {
    /// Draws the next operation, all of its statements, tables and parameters, so that nothing of it depends
    /// on which answers come first; returns its part of [`Executable::steps`].
    ///
    /// Shape: `client` is the number of the connection on its server, from 0. Nothing is drawn where there is
    /// one script, or one table.
    #[inline]
    pub fn draw(&self, draws: &mut Draws, client: u32, outbox: &mut impl Outbox) -> Range<usize> {
        let (mut random, operation) = draws.next();
        let Some(script) = self.draw_script(&mut random) else {
            return 0..0;
        };
        self.fill(script, operation, &mut random, client, outbox);
        script.steps.clone()
    }

    /// Draws which script the operation is.
    #[inline]
    fn draw_script(&self, random: &mut Random) -> Option<&Script> {
        let [_, _, ..] = self.scripts.as_slice() else {
            return self.scripts.first();
        };
        let most = total_weight(&self.scripts).saturating_sub(1);
        let mut place = uniform(random, 0, most.cast_signed()).cast_unsigned();
        for script in &self.scripts {
            match place.checked_sub(u64::from(script.weight)) {
                Some(rest) => place = rest,
                None => return Some(script),
            }
        }
        self.scripts.last()
    }

    #[inline]
    fn fill(
        &self,
        script: &Script,
        operation: u64,
        random: &mut Random,
        client: u32,
        outbox: &mut impl Outbox,
    ) {
        let tables = u64::from(self.tables.max(1));
        let mut source = Source {
            position: if script.takes_turns {
                operation / tables
            } else {
                operation
            },
            shared: if script.shares { random.next_u64() } else { 0 },
            random,
        };
        let mut table = 0;
        let steps = self.steps.get(script.steps.clone()).unwrap_or(&[]);
        for (place, step) in (script.steps.start..).zip(steps) {
            match step.table {
                TableChoice::Keep => {}
                TableChoice::Draw => table = self.draw_table(source.random),
                TableChoice::Client => table = index(u64::from(client) % tables),
                TableChoice::Turn => table = index(operation % tables),
            }
            let statement = step.statements.get(table).or(step.statements.first());
            let Some(slots) = statement.and_then(|&statement| outbox.step(place, statement)) else {
                continue;
            };
            let mut slot = 0;
            for value in &step.values {
                slot = value.fill(&mut source, slots, slot);
            }
            slots.finish();
        }
    }

    /// Draws a table, from 0.
    #[inline]
    fn draw_table(&self, random: &mut Random) -> usize {
        if self.tables <= 1 {
            return 0;
        }
        index(uniform(random, 0, i64::from(self.tables) - 1).cast_unsigned())
    }
}

impl Value {
    /// Fills the placeholders from `slot` on; returns the next one.
    #[inline]
    fn fill(&self, source: &mut Source<'_>, slots: &mut impl Slots, slot: usize) -> usize {
        match *self {
            Self::Uniform { low, high, count } => {
                let end = slot + index(u64::from(count));
                for place in slot..end {
                    slots.set_big_int(place, uniform(source.random, low, high));
                }
                end
            }
            Self::Zipf {
                low,
                ref rank,
                count,
            } => {
                let end = slot + index(u64::from(count));
                for place in slot..end {
                    let rank = rank.draw(source.random).cast_signed();
                    slots.set_big_int(place, low.wrapping_add(rank - 1));
                }
                end
            }
            Self::Sequence(ref sequence) => {
                slots.set_big_int(slot, sequence.value(source.position));
                slot + 1
            }
            Self::Consecutive { start, count } => {
                let end = slot + index(u64::from(count));
                for (place, number) in (slot..end).zip(start..) {
                    slots.set_big_int(place, number);
                }
                end
            }
            Self::Range { low, high, add } => {
                let from = uniform(source.random, low, high);
                slots.set_big_int(slot, from);
                slots.set_big_int(slot + 1, from.wrapping_add(add));
                slot + 2
            }
            Self::Digits { width, .. } => {
                digits(source.random, slots.text_mut(slot), index(u64::from(width)));
                slot + 1
            }
            Self::Letters { .. } => {
                letters(source.random, slots.text_mut(slot));
                slot + 1
            }
            // A stream of its own, begun again at every place where the value stands: nothing is stored.
            Self::Shared { number, ref value } => {
                let mut random = crate::stream(source.shared, &[u64::from(number)]);
                let mut own = Source {
                    random: &mut random,
                    position: source.position,
                    shared: source.shared,
                };
                value.fill(&mut own, slots, slot)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

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
        let executable = |tables| Executable::single("", vec![], vec![], tables);
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
    fn letters_are_uniform() {
        let mut random = stream(6, &[]);
        let mut counts = [0_u32; 26];
        let mut text = [0; 25];
        for _ in 0..10_400 {
            letters(&mut random, &mut text);
            for byte in text {
                counts[usize::from(byte - b'a')] += 1;
            }
        }
        assert!(
            counts.iter().all(|count| (9_600..10_400).contains(count)),
            "{counts:?}"
        );
    }
}
