//! The rows.

use super::calendar::write_time;
use super::{CASH_REGISTERS, CUSTOMERS, PRICES, PRODUCTS};
use crate::seed::{Random, stream, uniform};
use deltabench_model::units::{count, index};
use rand::RngCore;
use std::io::Write as _;
use std::sync::Arc;

/// Bytes of the text that random data is cut from.
const FILLER: usize = 4 << 20;
/// Shortest and longest `data`.
const DATA: (i64, i64) = (10, 20);
/// What random bytes look like in base64.
const ALPHABET: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Tells a client's rows from its queries.
const ROWS: u64 = 0;
/// Tells the filler from every client.
const FILLER_STREAM: u64 = u64::MAX;

/// Random text, shared by all clients, of which rows have pieces: 4 MB of base64.
#[derive(Debug, Clone)]
pub struct Filler(Arc<[u8]>);

impl Filler {
    /// The text of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = stream(seed, &[FILLER_STREAM]);
        let mut text = Vec::with_capacity(FILLER);
        while text.len() < FILLER {
            let mut bits = random.next_u64();
            // Ten letters of six bits.
            for _ in 0..10 {
                text.push(ALPHABET.get(index(bits & 63)).copied().unwrap_or(b'A'));
                bits >>= 6;
            }
        }
        text.truncate(FILLER);
        Self(text.into())
    }

    /// A piece of `length` letters.
    #[inline]
    fn piece(&self, random: &mut Random, length: usize) -> &[u8] {
        let last = count(self.0.len().saturating_sub(length)).cast_signed();
        let from = index(uniform(random, 0, last).cast_unsigned());
        self.0.get(from..from + length).unwrap_or(&[])
    }
}

/// The rows that a client inserts, in order.
#[derive(Debug, Clone)]
pub struct Rows {
    random: Random,
    filler: Filler,
}

impl Rows {
    /// The rows of a client, from 0, in the step with that number in the order of the benchmark.
    pub fn new(seed: u64, client: u32, step: u32, filler: Filler) -> Self {
        let parts = [u64::from(client), u64::from(step), ROWS];
        Self {
            random: stream(seed, &parts),
            filler,
        }
    }

    /// Appends the statement that inserts the next `rows` rows into a table. `second` is of
    /// [`Calendar`](super::Calendar).
    pub fn write_insert(&mut self, out: &mut Vec<u8>, table: u32, rows: u32, second: u64) {
        let mut time = Vec::with_capacity(20);
        write_time(&mut time, second);
        // Writing to a Vec cannot fail.
        let _ = write!(
            out,
            "INSERT INTO pi{table} (dateandtime,cashregisterid,customerid,productid,price,data) VALUES "
        );
        for row in 0..rows {
            if row > 0 {
                out.extend_from_slice(b",\n");
            }
            self.write_row(out, &time);
        }
    }

    #[inline]
    fn write_row(&mut self, out: &mut Vec<u8>, time: &[u8]) {
        let random = &mut self.random;
        let mut below = |count: u32| uniform(random, 0, i64::from(count) - 1).cast_unsigned();
        let (register, product) = (below(CASH_REGISTERS), below(PRODUCTS));
        let (customer, price) = (below(CUSTOMERS), below(PRICES));
        let length = uniform(random, DATA.0, DATA.1).cast_unsigned();
        // Base64 makes four letters of three bytes, and half of the data is to be random: three eighths,
        // rounded down.
        let random_length = index(length * 3 / 8);
        out.extend_from_slice(b"('");
        out.extend_from_slice(time);
        out.extend_from_slice(b"',");
        for number in [register, customer, product] {
            write_number(out, number);
            out.push(b',');
        }
        write_number(out, price);
        // As the published client spells it; the server makes an integer of it.
        out.extend_from_slice(b".00,'");
        out.resize(out.len() + index(length) - random_length, b'a');
        out.extend_from_slice(self.filler.piece(random, random_length));
        out.extend_from_slice(b"')");
    }
}

/// Appends a number of at most ten digits.
#[inline]
fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut from = digits.len();
    for (place, digit) in digits.iter_mut().enumerate().rev() {
        *digit += u8::try_from(number % 10).unwrap_or(0);
        from = place;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(from..).unwrap_or(&[]));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time, register, customer, product, price and data of each row of a statement.
    fn parsed(sql: &str) -> Vec<(String, [u32; 4], String)> {
        let (head, values) = sql.split_once(" VALUES ").unwrap();
        assert_eq!(
            head,
            "INSERT INTO pi7 (dateandtime,cashregisterid,customerid,productid,price,data)"
        );
        let row = |row: &str| {
            let row = row.strip_prefix('(').unwrap().strip_suffix(')').unwrap();
            let fields: Vec<&str> = row.split(',').collect();
            assert_eq!(fields.len(), 6, "{row}");
            let text = |field: &str| {
                let text = field
                    .strip_prefix('\'')
                    .unwrap()
                    .strip_suffix('\'')
                    .unwrap();
                text.to_owned()
            };
            let price = fields[4].strip_suffix(".00").unwrap();
            let numbers = [fields[1], fields[2], fields[3], price];
            let numbers = numbers.map(|field| field.parse().unwrap());
            (text(fields[0]), numbers, text(fields[5]))
        };
        values.split(",\n").map(row).collect()
    }

    fn statement(rows: &mut Rows, count: u32, second: u64) -> String {
        let mut out = Vec::new();
        rows.write_insert(&mut out, 7, count, second);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_distributed_as_published() {
        let mut rows = Rows::new(1, 0, 0, Filler::new(1));
        let parsed = parsed(&statement(&mut rows, 40_000, 61));
        assert_eq!(parsed.len(), 40_000);
        assert!(parsed.iter().all(|row| row.0 == "2024-01-01 00:01:01"));
        for (place, domain) in [1000_u32, 100_000, 10_000, 500].into_iter().enumerate() {
            let values: Vec<u32> = parsed.iter().map(|row| row.1[place]).collect();
            assert!(values.iter().all(|value| *value < domain));
            let mut tenths = [0_u32; 10];
            for value in values {
                tenths[usize::try_from(value * 10 / domain).unwrap()] += 1;
            }
            assert!(
                tenths.iter().all(|count| (3_750..4_250).contains(count)),
                "column {place}: {tenths:?}"
            );
        }
        let mut lengths = [0_u32; 21];
        for (.., data) in &parsed {
            let random = data.len() * 3 / 8;
            lengths[data.len()] += 1;
            let (padding, text) = data.split_at(data.len() - random);
            assert!(padding.bytes().all(|byte| byte == b'a'));
            assert!(text.bytes().all(|byte| ALPHABET.contains(&byte)));
        }
        assert!(
            lengths[10..]
                .iter()
                .all(|count| (3_350..3_930).contains(count))
        );
        assert_eq!(lengths[..10].iter().sum::<u32>(), 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_any_other_others() {
        let of = |seed, client, step| {
            let mut rows = Rows::new(seed, client, step, Filler::new(seed));
            statement(&mut rows, 50, 0) + &statement(&mut rows, 50, 1)
        };
        assert_eq!(of(5, 1, 2), of(5, 1, 2));
        for (seed, client, step) in [(6, 1, 2), (5, 2, 2), (5, 1, 3), (5, 2, 1)] {
            assert_ne!(of(5, 1, 2), of(seed, client, step));
        }
    }

    #[test]
    fn random_text_is_spread_over_the_alphabet() {
        let filler = Filler::new(3);
        assert_eq!(filler.0.len(), FILLER);
        let mut counts = [0_u32; 256];
        for byte in filler.0.iter() {
            counts[usize::from(*byte)] += 1;
        }
        for letter in ALPHABET {
            let count = counts[usize::from(letter)];
            assert!((64_300..66_800).contains(&count), "{letter}: {count}");
        }
    }

    #[test]
    fn numbers_are_spelled_out() {
        let mut out = Vec::new();
        for number in [0, 7, 10, 99_999, 4_294_967_295] {
            write_number(&mut out, number);
            out.push(b' ');
        }
        assert_eq!(out, b"0 7 10 99999 4294967295 ");
    }
}
