//! Many serialised histograms as one.
//!
//! A run has some hundred thousand of them, each with a few hundred values in an array of some ten thousand
//! places. To make each whole before it is added takes most of the time of an analysis, so those of the usual
//! form are added place by place as they are read. The sum is the same.
//!
//! Source: the V2 encoding of HdrHistogram: a header of 40 bytes, then for each place a count, or a run of
//! empty places as a negative number; numbers are ZigZag in LEB128-64b9B.

use deltabench_model::units::{count, index};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// First bytes of the V2 encoding.
const COOKIE: u32 = 0x1c84_9313;
/// Ratio of integer to stored values: always 1.
const RATIO: u64 = 0x3ff0_0000_0000_0000;

/// One histogram of many; `None` for none, for an empty one or for bytes that are no histogram.
pub fn merge<'a>(
    reader: &mut Deserializer,
    serialized: impl Iterator<Item = &'a [u8]>,
) -> Option<Histogram<u64>> {
    let mut sum: Option<Sum> = None;
    let mut merged: Option<Histogram<u64>> = None;
    for mut bytes in serialized {
        let encoded = Encoded::of(bytes);
        match encoded.filter(|one| sum.as_ref().is_none_or(|sum| sum.digits == one.digits)) {
            Some(one) => sum.get_or_insert_with(|| Sum::new(one.digits)).add(&one)?,
            None => merge_into(&mut merged, reader.deserialize(&mut bytes).ok()?)?,
        }
    }
    if let Some(sum) = sum {
        merge_into(&mut merged, sum.histogram()?)?;
    }
    merged.filter(|histogram| !histogram.is_empty())
}

fn merge_into(merged: &mut Option<Histogram<u64>>, mut next: Histogram<u64>) -> Option<()> {
    match merged {
        None => {
            next.auto(true);
            *merged = Some(next);
        }
        Some(merged) => merged.add(next).ok()?,
    }
    Some(())
}

/// A serialised histogram of the usual form: V2, of values from 1.
struct Encoded<'a> {
    /// Significant digits.
    digits: u32,
    /// Number of its places.
    places: usize,
    counts: &'a [u8],
}

impl<'a> Encoded<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (cookie, rest) = number_u32(bytes)?;
        let (length, rest) = number_u32(rest)?;
        let (offset, rest) = number_u32(rest)?;
        let (digits, rest) = number_u32(rest)?;
        let (low, rest) = number_u64(rest)?;
        let (high, rest) = number_u64(rest)?;
        let (ratio, rest) = number_u64(rest)?;
        let usual = (cookie, offset, low, ratio) == (COOKIE, 0, 1, RATIO);
        if !usual || digits > 5 || high < 2 {
            return None;
        }
        Some(Self {
            digits,
            places: Places::of(digits).up_to(high),
            counts: rest.get(..index(u64::from(length)))?,
        })
    }
}

fn number_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*head), rest))
}

fn number_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*head), rest))
}

/// Where values of a histogram stand: the first two halves of places one apart, every further half twice as
/// far apart as the one before.
#[derive(Clone, Copy)]
struct Places {
    /// log2 of the places of a half.
    half: u32,
}

impl Places {
    fn of(digits: u32) -> Self {
        let single = 2 * 10_u64.pow(digits);
        Self {
            half: single.next_power_of_two().ilog2() - 1,
        }
    }

    /// Places of a histogram whose highest value is `high`.
    fn up_to(self, high: u64) -> usize {
        let beyond = (high >> (self.half + 1)).checked_ilog2();
        let halves = beyond.map_or(2, |more| more + 3);
        index(u64::from(halves) << self.half)
    }

    /// The smallest value of a place.
    fn value(self, place: u64) -> u64 {
        match (place >> self.half).checked_sub(1) {
            None => place,
            Some(doublings) => {
                let half = 1 << self.half;
                (place % half + half) << doublings
            }
        }
    }
}

/// The counts of many histograms of one precision.
struct Sum {
    digits: u32,
    counts: Vec<u64>,
}

impl Sum {
    fn new(digits: u32) -> Self {
        Self {
            digits,
            counts: Vec::new(),
        }
    }

    /// `None` for counts that end inside a number, or where the histogram has no place.
    fn add(&mut self, one: &Encoded<'_>) -> Option<()> {
        let room = self.counts.len().max(one.places);
        self.counts.resize(room, 0);
        let mut place = 0_usize;
        let mut bytes = one.counts;
        while !bytes.is_empty() {
            let (encoded, rest) = variable(bytes)?;
            bytes = rest;
            let number = encoded >> 1;
            if encoded & 1 == 1 {
                // ZigZag: odd is -(number + 1), the length of a run of empty places.
                place = place.checked_add(index(number.checked_add(1)?))?;
                continue;
            }
            if number > 0 {
                let counted = self.counts.get_mut(place).filter(|_| place < one.places)?;
                *counted = counted.saturating_add(number);
            }
            place += 1;
        }
        Some(())
    }

    fn histogram(&self) -> Option<Histogram<u64>> {
        let mut histogram = Histogram::new(u8::try_from(self.digits).ok()?).ok()?;
        let places = Places::of(self.digits);
        // The largest first, so that there is room for all at once.
        for (place, &counted) in self.counts.iter().enumerate().rev() {
            if counted > 0 {
                let value = places.value(count(place));
                histogram.record_n(value, counted).ok()?;
            }
        }
        Some(histogram)
    }
}

/// A number of up to nine bytes, seven bits in each but the last, lowest first.
#[inline]
fn variable(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (nth, &byte) in bytes.iter().take(9).enumerate() {
        let last = nth == 8 || byte < 0x80;
        let bits = if nth == 8 { byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * nth);
        if last {
            return Some((number, bytes.get(nth + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn bytes(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(histogram, &mut bytes)
            .unwrap();
        bytes
    }

    /// Values of all sizes, among them the largest and the smallest of places.
    fn random(random: &mut Xoshiro256PlusPlus, digits: u8) -> Histogram<u64> {
        let mut histogram = Histogram::new(digits).unwrap();
        for _ in 0..random.random_range(1..300) {
            let bits = random.random_range(1..40);
            let value = random.random_range(0..1_u64 << bits);
            let edge = [value, 1 << bits, (1 << bits) - 1][random.random_range(0..3)];
            let many = 1 << random.random_range(0..50);
            histogram.record_n(edge, many).unwrap();
        }
        histogram
    }

    /// As the library adds them.
    fn plainly(all: &[Histogram<u64>]) -> Histogram<u64> {
        let mut sum = all[0].clone();
        sum.auto(true);
        for one in &all[1..] {
            sum.add(one).unwrap();
        }
        sum
    }

    fn merged(all: &[Vec<u8>]) -> Option<Histogram<u64>> {
        merge(&mut Deserializer::new(), all.iter().map(Vec::as_slice))
    }

    #[test]
    fn the_sum_is_that_of_the_library() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(3);
        for digits in [1, 2, 3, 4] {
            for _ in 0..20 {
                let count = generator.random_range(1..6);
                let mut all: Vec<_> = (0..count).map(|_| random(&mut generator, digits)).collect();
                let texts: Vec<_> = all.iter().map(bytes).collect();
                let found = merged(&texts).unwrap();
                assert_eq!(found, plainly(&all));
                assert_eq!(found.len(), plainly(&all).len());
                assert_eq!(found.max(), plainly(&all).max());
                assert_eq!(found.min_nz(), plainly(&all).min_nz());
                for q in [0.0, 0.1, 0.5, 0.99, 1.0] {
                    let library = plainly(&all).value_at_quantile(q);
                    assert_eq!(found.value_at_quantile(q), library);
                }
                // Another precision among them takes the library's way.
                let other = random(&mut generator, digits % 4 + 1);
                all.push(other.clone());
                let mixed = merged(&[texts, vec![bytes(&other)]].concat()).unwrap();
                assert_eq!(mixed.len(), plainly(&all).len());
            }
        }
    }

    #[test]
    fn bounded_ones_of_driver_and_deflated_ones_of_others_count_too() {
        let mut bounded = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        bounded.record_n(5000, 3).unwrap();
        let mut deflated = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&bounded, &mut deflated)
            .unwrap();
        let found = merged(&[bytes(&bounded), deflated, bytes(&bounded)]).unwrap();
        assert_eq!((found.len(), found.value_at_quantile(0.5)), (9, 5003));
    }

    #[test]
    fn what_is_no_histogram_takes_the_rest_with_it() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(4);
        let good = bytes(&random(&mut generator, 3));
        let cut = good[..good.len() - 1].to_vec();
        let mut far = good.clone();
        // A run of empty places that leaves the histogram, and a count there.
        far.splice(40.., [0xff, 0xff, 0xff, 0xff, 0x0f, 0x02]);
        far[4..8].copy_from_slice(&6_u32.to_be_bytes());
        for bad in [cut, far, b"text".to_vec(), Vec::new()] {
            assert!(merged(&[good.clone(), bad.clone()]).is_none());
            assert!(merged(&[bad]).is_none());
        }
        assert!(merged(&[]).is_none());
        assert!(merged(&[bytes(&Histogram::new(3).unwrap())]).is_none());
    }
}
