//! The rows after the load.
//!
//! Each row is drawn from a stream that belongs to its table and key alone. So it is the same however many
//! rows are written at once, and however many warehouses there are.
//!
//! Source: clause 4.3.3.1 for the values, 4.3.2 for strings and last names, 2.1.6 for uneven numbers.
//! Deviations: all times are one constant; a share of 10 % is a chance of 10 % for each row; names of
//! states have capital letters only.

use super::tables::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, LINES, OrdersTable};
use crate::permutation::Permutation;
use crate::seed::{Random, mix, stream, uniform};
use deltabench_model::units::{count, index};
use rand::RngCore as _;
use std::io::Write as _;

/// The constant of uneven last names in the load. The constant of a run must differ from it by 65 to 119, but
/// not by 96 or 112.
///
/// Source: clause 2.1.6.1.
pub const C_LAST: u64 = 157;
/// Last names are numbered from 0 to this.
pub const LAST_NAME_MAX: u64 = 999;
/// The time of all orders, payments and customers in the load.
pub const LOADED_AT: &str = "2024-01-01 00:00:00";

/// What last names are made of, one for each of three decimal digits.
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];
const ALPHANUMERIC: [u8; 62] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// How many of [`ALPHANUMERIC`] are capital letters.
const CAPITALS: u64 = 26;
const DIGITS: [u8; 10] = *b"0123456789";
/// What some items have in their data.
const ORIGINAL: &[u8] = b"ORIGINAL";
/// Tells these streams from all others.
const ORDERS: u64 = u64::from_be_bytes(*b"\0\0orders");
/// Tells what is drawn from tables, whose numbers are below.
const LINE_COUNTS: u64 = 100;
const BUYERS: u64 = 101;

/// The number of a table in the seeds of its rows; it never changes.
fn number(table: OrdersTable) -> u64 {
    match table {
        OrdersTable::Item => 1,
        OrdersTable::Warehouse => 2,
        OrdersTable::Stock => 3,
        OrdersTable::District => 4,
        OrdersTable::Customer => 5,
        OrdersTable::History => 6,
        OrdersTable::Orders => 7,
        OrdersTable::NewOrder => 8,
        OrdersTable::OrderLine => 9,
    }
}

/// The last name with a number from 0 to [`LAST_NAME_MAX`]; of larger ones the last three digits count.
///
/// Source: clause 4.3.2.3.
pub fn last_name(number: u64) -> String {
    let digits = [number / 100, number / 10, number];
    let syllable = |digit: u64| SYLLABLES.get(index(digit % 10)).copied().unwrap_or("");
    digits.map(syllable).concat()
}

impl OrdersTable {
    /// Its rows after the load, exactly.
    ///
    /// Shape: for `order_line` it draws once for each order, 30,000 times for each warehouse.
    pub fn rows(self, warehouses: u32, seed: u64) -> u64 {
        if self != Self::OrderLine {
            return self.nominal_rows(warehouses);
        }
        let seed = mix(seed, &[ORDERS, LINE_COUNTS]);
        let orders = Self::Orders.nominal_rows(warehouses);
        (0..orders).map(|order| line_count(seed, order)).sum()
    }
}

/// The lines of an order, which is numbered from 0 through all districts.
fn line_count(seed: u64, order: u64) -> u64 {
    between(&mut stream(seed, &[order]), LINES.0, LINES.1)
}

/// A uniform number; needs `low <= high`, both far below 2^63.
#[inline]
fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    uniform(random, low.cast_signed(), high.cast_signed()).cast_unsigned()
}

/// The number of a last name that occurs unevenly: NURand(255, 0, 999).
fn uneven_name(random: &mut Random) -> u64 {
    let bits = between(random, 0, 255) | between(random, 0, LAST_NAME_MAX);
    (bits + C_LAST) % (LAST_NAME_MAX + 1)
}

/// Rows of a table in COPY's text format, some at a time.
#[derive(Debug, Clone)]
pub struct CopyRows {
    table: OrdersTable,
    seeds: Seeds,
    /// Of the next row; in `order_line` of the order that has the next row.
    next: u64,
    end: u64,
    /// Lines of that order that are written.
    lines: u64,
}

/// What rows are drawn from.
#[derive(Debug, Clone, Copy)]
struct Seeds {
    rows: u64,
    line_counts: u64,
    buyers: u64,
}

/// Where a row belongs that is one of several in a district; numbers from 1, as in the columns.
#[derive(Clone, Copy)]
struct Place {
    warehouse: u64,
    district: u64,
    id: u64,
}

impl Place {
    /// Of the row with that number, from 0, if each district has so many.
    fn of(row: u64, each: u64) -> Self {
        let district = row / each;
        Self {
            warehouse: district / DISTRICTS + 1,
            district: district % DISTRICTS + 1,
            id: row % each + 1,
        }
    }
}

impl CopyRows {
    /// All rows of a table.
    pub fn new(table: OrdersTable, warehouses: u32, seed: u64) -> Self {
        let of = |part: u64| mix(seed, &[ORDERS, part]);
        let counted = match table {
            OrdersTable::OrderLine => OrdersTable::Orders,
            _ => table,
        };
        Self {
            table,
            seeds: Seeds {
                rows: of(number(table)),
                line_counts: of(LINE_COUNTS),
                buyers: of(BUYERS),
            },
            next: 0,
            end: counted.nominal_rows(warehouses),
            lines: 0,
        }
    }

    /// Appends the next rows, at most so many; false when there was none left.
    pub fn fill(&mut self, rows: u64, out: &mut Vec<u8>) -> bool {
        let some = self.next < self.end && rows > 0;
        if self.table == OrdersTable::OrderLine {
            self.fill_lines(rows, out);
            return some;
        }
        let end = self.end.min(self.next.saturating_add(rows));
        for row in self.next..end {
            let mut line = Line::new(out, stream(self.seeds.rows, &[row]));
            match self.table {
                OrdersTable::Item => item(&mut line, row),
                OrdersTable::Warehouse => warehouse(&mut line, row),
                OrdersTable::Stock => stock(&mut line, row),
                OrdersTable::District => district(&mut line, row),
                OrdersTable::Customer => customer(&mut line, row),
                OrdersTable::History => history(&mut line, row),
                OrdersTable::Orders => order(&mut line, row, &self.seeds),
                OrdersTable::NewOrder => new_order(&mut line, row),
                OrdersTable::OrderLine => {}
            }
            line.end();
        }
        self.next = end;
        some
    }

    fn fill_lines(&mut self, rows: u64, out: &mut Vec<u8>) {
        let mut left = rows;
        while left > 0 && self.next < self.end {
            let all = line_count(self.seeds.line_counts, self.next);
            let end = all.min(self.lines.saturating_add(left));
            for number in self.lines + 1..=end {
                let random = stream(self.seeds.rows, &[self.next, number]);
                let mut line = Line::new(out, random);
                order_line(&mut line, self.next, number);
                line.end();
            }
            left -= end - self.lines;
            self.lines = end;
            if end == all {
                self.next += 1;
                self.lines = 0;
            }
        }
    }
}

fn item(line: &mut Line<'_>, row: u64) {
    line.number(row + 1).drawn(1, 10_000).letters(14, 24);
    let cents = line.draw(100, 10_000);
    line.money(cents).data();
}

fn warehouse(line: &mut Line<'_>, row: u64) {
    line.number(row + 1).letters(6, 10).address();
    line.fraction(2_000).text("300000.00");
}

fn stock(line: &mut Line<'_>, row: u64) {
    line.number(row % ITEMS + 1).number(row / ITEMS + 1);
    line.drawn(10, 100);
    for _ in 0..DISTRICTS {
        line.letters(24, 24);
    }
    line.text("0\t0\t0").data();
}

fn district(line: &mut Line<'_>, row: u64) {
    line.number(row % DISTRICTS + 1).number(row / DISTRICTS + 1);
    line.letters(6, 10).address().fraction(2_000);
    line.text("30000.00").number(CUSTOMERS + 1);
}

fn customer(line: &mut Line<'_>, row: u64) {
    let place = Place::of(row, CUSTOMERS);
    line.number(place.id).number(place.district);
    line.number(place.warehouse).letters(8, 16).text("OE");
    let name = match place.id - 1 {
        first @ ..=LAST_NAME_MAX => first,
        _ => uneven_name(&mut line.random),
    };
    line.last_name(name).address().digits(16).text(LOADED_AT);
    let credit = if line.draw(1, 10) == 1 { "BC" } else { "GC" };
    line.text(credit).text("50000.00").fraction(5_000);
    line.text("-10.00\t10.00\t1\t0").letters(300, 500);
}

fn history(line: &mut Line<'_>, row: u64) {
    let place = Place::of(row, CUSTOMERS);
    line.number(place.id);
    for _ in 0..2 {
        line.number(place.district).number(place.warehouse);
    }
    line.text(LOADED_AT).text("10.00").letters(12, 24);
}

fn order(line: &mut Line<'_>, row: u64, seeds: &Seeds) {
    let place = Place::of(row, CUSTOMERS);
    let buyers = Permutation::new(CUSTOMERS, mix(seeds.buyers, &[row / CUSTOMERS]));
    line.number(place.id).number(place.district);
    line.number(place.warehouse)
        .number(buyers.place(place.id - 1) + 1);
    line.text(LOADED_AT);
    if place.id <= DELIVERED {
        line.drawn(1, 10);
    } else {
        line.null();
    }
    line.number(line_count(seeds.line_counts, row)).text("1");
}

fn new_order(line: &mut Line<'_>, row: u64) {
    let place = Place::of(row, CUSTOMERS - DELIVERED);
    line.number(DELIVERED + place.id).number(place.district);
    line.number(place.warehouse);
}

fn order_line(line: &mut Line<'_>, order: u64, number: u64) {
    let place = Place::of(order, CUSTOMERS);
    line.number(place.id).number(place.district);
    line.number(place.warehouse).number(number);
    line.drawn(1, ITEMS).number(place.warehouse);
    if place.id <= DELIVERED {
        line.text(LOADED_AT).text("5").text("0.00");
    } else {
        let cents = line.draw(1, 999_999);
        line.null().text("5").money(cents);
    }
    line.letters(24, 24);
}

/// A row that is written field by field, each with a tab behind it.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    random: Random,
}

impl<'a> Line<'a> {
    fn new(out: &'a mut Vec<u8>, random: Random) -> Self {
        Self { out, random }
    }

    /// A number for the row to use.
    fn draw(&mut self, low: u64, high: u64) -> u64 {
        between(&mut self.random, low, high)
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.out.extend_from_slice(text.as_bytes());
        self.tab()
    }

    fn null(&mut self) -> &mut Self {
        self.text("\\N")
    }

    fn number(&mut self, value: u64) -> &mut Self {
        // Writing to a Vec cannot fail.
        let _ = write!(self.out, "{value}");
        self.tab()
    }

    fn drawn(&mut self, low: u64, high: u64) -> &mut Self {
        let value = self.draw(low, high);
        self.number(value)
    }

    fn money(&mut self, cents: u64) -> &mut Self {
        let _ = write!(self.out, "{}.{:02}", cents / 100, cents % 100);
        self.tab()
    }

    /// A random number from 0 to `max` ten thousandths, `max` below 10,000.
    fn fraction(&mut self, max: u64) -> &mut Self {
        let value = self.draw(0, max);
        let _ = write!(self.out, "0.{value:04}");
        self.tab()
    }

    /// An a-string: a random number of random letters and digits.
    fn letters(&mut self, least: u64, most: u64) -> &mut Self {
        let length = self.draw(least, most);
        self.characters(&ALPHANUMERIC, length);
        self.tab()
    }

    /// An n-string: random digits.
    fn digits(&mut self, length: u64) -> &mut Self {
        self.characters(&DIGITS, length);
        self.tab()
    }

    fn last_name(&mut self, number: u64) -> &mut Self {
        for digit in [number / 100, number / 10, number] {
            let syllable = SYLLABLES.get(index(digit % 10)).copied();
            self.out
                .extend_from_slice(syllable.unwrap_or("").as_bytes());
        }
        self.tab()
    }

    /// Two streets, a city, a state and a zip code.
    fn address(&mut self) -> &mut Self {
        self.letters(10, 20).letters(10, 20).letters(10, 20);
        let capitals = ALPHANUMERIC.get(..index(CAPITALS)).unwrap_or(&[]);
        self.characters(capitals, 2);
        self.tab();
        self.characters(&DIGITS, 4);
        self.text("11111")
    }

    /// Letters and digits, which hold [`ORIGINAL`] in one row of ten.
    fn data(&mut self) -> &mut Self {
        let length = self.draw(26, 50);
        let start = self.out.len();
        self.characters(&ALPHANUMERIC, length);
        if self.draw(1, 10) == 1 {
            let from = start + index(self.draw(0, length - count(ORIGINAL.len())));
            if let Some(place) = self.out.get_mut(from..from + ORIGINAL.len()) {
                place.copy_from_slice(ORIGINAL);
            }
        }
        self.tab()
    }

    /// Appends random characters of an alphabet of at most 64.
    fn characters(&mut self, alphabet: &[u8], length: u64) {
        let mut left = index(length);
        while left > 0 {
            let mut fraction = self.random.next_u64();
            // Eight characters use 48 of the 64 bits; what is left makes none likelier by more than 2^-16.
            let now = left.min(8);
            for _ in 0..now {
                let (rest, digit) = fraction.carrying_mul(count(alphabet.len()), 0);
                fraction = rest;
                self.out
                    .push(alphabet.get(index(digit)).copied().unwrap_or(b'0'));
            }
            left -= now;
        }
    }

    fn tab(&mut self) -> &mut Self {
        self.out.push(b'\t');
        self
    }

    fn end(self) {
        self.out.pop();
        self.out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const SEED: u64 = 42;

    /// At least `most` rows in pieces, if there are so many.
    fn text(table: OrdersTable, warehouses: u32, piece: u64, most: u64) -> String {
        let mut out = Vec::new();
        let mut copy = CopyRows::new(table, warehouses, SEED);
        let mut done = 0;
        while done < most && copy.fill(piece, &mut out) {
            done += piece;
        }
        String::from_utf8(out).unwrap()
    }

    /// The fields of each row.
    fn fields(text: &str) -> Vec<Vec<&str>> {
        text.lines()
            .map(|line| line.split('\t').collect())
            .collect()
    }

    fn all(table: OrdersTable) -> String {
        text(table, 1, 10_000, u64::MAX)
    }

    fn value(field: &str) -> u64 {
        field.replace('.', "").parse().unwrap()
    }

    fn assert_letters(field: &str, least: usize, most: usize) {
        let fits = (least..=most).contains(&field.len());
        assert!(
            fits && field.bytes().all(|byte| ALPHANUMERIC.contains(&byte)),
            "{field}"
        );
    }

    fn assert_zip(field: &str) {
        assert!(field.len() == 9 && field.ends_with("11111") && value(field) < 1_000_000_000);
    }

    #[test]
    fn pieces_of_any_size_give_the_same_bytes() {
        for table in OrdersTable::ALL {
            let [one, many] = [1, 1000].map(|piece| text(table, 2, piece, 3000));
            assert_eq!(one, many, "{table:?}");
            assert_eq!(text(table, 2, 7, 3000).get(..one.len()), Some(one.as_str()));
        }
    }

    #[test]
    fn every_row_is_there_and_more_warehouses_change_none() {
        for table in OrdersTable::ALL {
            let one = all(table);
            let rows = table.rows(1, SEED);
            assert_eq!(count(one.lines().count()), rows, "{table:?}");
            let two = text(table, 2, 1_000, rows);
            assert!(two.starts_with(&one), "{table:?}");
        }
    }

    #[test]
    fn filling_ends_after_the_last_row() {
        for table in [OrdersTable::District, OrdersTable::OrderLine] {
            let mut copy = CopyRows::new(table, 1, SEED);
            let mut out = Vec::new();
            assert!(copy.fill(table.rows(1, SEED), &mut out));
            assert!(!copy.fill(1, &mut out) && !out.is_empty());
        }
    }

    #[test]
    fn every_key_occurs_once() {
        for (table, columns) in [
            (OrdersTable::District, 2),
            (OrdersTable::Customer, 3),
            (OrdersTable::History, 3),
            (OrdersTable::Orders, 3),
            (OrdersTable::NewOrder, 3),
        ] {
            let text = all(table);
            let key = |line: &Vec<&str>| line[..columns].iter().map(|field| value(field)).collect();
            let keys: BTreeSet<Vec<u64>> = fields(&text).iter().map(key).collect();
            assert_eq!(count(keys.len()), table.rows(1, SEED), "{table:?}");
        }
    }

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
        let names: BTreeSet<String> = (0..1000).map(last_name).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.len() <= 16));
    }

    #[test]
    fn items_and_stocks_are_drawn_as_specified() {
        for (table, data_column) in [(OrdersTable::Item, 4), (OrdersTable::Stock, 16)] {
            let text = all(table);
            let rows = fields(&text);
            let mut original = 0;
            for (number, row) in (1..).zip(&rows) {
                assert_eq!(value(row[0]), number);
                assert_letters(row[data_column], 26, 50);
                original += u32::from(row[data_column].contains("ORIGINAL"));
            }
            assert!((9_700..10_300).contains(&original), "{original}");
            if table == OrdersTable::Item {
                assert!(rows.iter().all(|row| (1..=10_000).contains(&value(row[1]))));
                assert!(
                    rows.iter()
                        .all(|row| (100..=10_000).contains(&value(row[3])))
                );
                rows.iter().for_each(|row| assert_letters(row[2], 14, 24));
                continue;
            }
            assert!(rows.iter().all(|row| (10..=100).contains(&value(row[2]))));
            assert!(rows.iter().all(|row| row[13..16] == ["0", "0", "0"]));
            for row in rows.iter().take(10_000) {
                row[3..13]
                    .iter()
                    .for_each(|field| assert_letters(field, 24, 24));
            }
        }
    }

    #[test]
    fn warehouses_and_districts_are_drawn_as_specified() {
        for (table, name, ends) in [
            (OrdersTable::Warehouse, 1, vec!["300000.00"]),
            (OrdersTable::District, 2, vec!["30000.00", "3001"]),
        ] {
            let text = text(table, 100, 10, u64::MAX);
            for row in fields(&text) {
                assert_letters(row[name], 6, 10);
                (1..4).for_each(|place| assert_letters(row[name + place], 10, 20));
                assert!(row[name + 4].len() == 2 && row[name + 4] == row[name + 4].to_uppercase());
                assert_zip(row[name + 5]);
                assert!(value(row[name + 6]) <= 2_000 && row[name + 6].len() == 6);
                assert_eq!(row[name + 7..], ends);
            }
        }
    }

    #[test]
    fn customers_are_drawn_as_specified() {
        let text = all(OrdersTable::Customer);
        let mut bad = 0;
        let mut names = BTreeMap::<&str, u32>::new();
        for row in fields(&text) {
            assert_letters(row[3], 8, 16);
            assert_eq!((row[4], row[12], row[14]), ("OE", LOADED_AT, "50000.00"));
            (6..9).for_each(|place| assert_letters(row[place], 10, 20));
            assert_zip(row[10]);
            assert!(row[11].len() == 16 && value(row[11]) < 10_u64.pow(16));
            assert!(["GC", "BC"].contains(&row[13]));
            bad += u32::from(row[13] == "BC");
            assert!(value(row[15]) <= 5_000 && row[15].starts_with("0."));
            assert_eq!(row[16..20], ["-10.00", "10.00", "1", "0"]);
            assert_letters(row[20], 300, 500);
            match value(row[0]) {
                first @ ..=1000 => assert_eq!(row[5], last_name(first - 1)),
                _ => *names.entry(row[5]).or_default() += 1,
            }
        }
        assert!((2_800..3_200).contains(&bad), "{bad}");
        // Bits of NURand(255, 0, 999) are set three times of four, so the commonest of about 1,000 names are
        // far above the mean of 20.
        assert!(names.len() > 700, "{}", names.len());
        assert!(names.values().max() > Some(&80) && names.values().min() < Some(&5));
    }

    #[test]
    fn uneven_names_are_shifted_by_the_constant() {
        // The commonest have all eight low bits set: 255, 511 and 767, shifted by 157.
        let mut random = stream(SEED, &[]);
        let mut counts = vec![0_u32; 1000];
        for _ in 0..1_000_000 {
            counts[index(uneven_name(&mut random))] += 1;
        }
        for common in [412, 668, 924] {
            assert!(counts[common] > 8_000, "{}", counts[common]);
        }
    }

    #[test]
    fn history_has_one_payment_of_each_customer() {
        let text = all(OrdersTable::History);
        for row in fields(&text) {
            assert_eq!((row[1], row[2]), (row[3], row[4]));
            assert_eq!(row[5..7], [LOADED_AT, "10.00"]);
            assert_letters(row[7], 12, 24);
        }
    }

    #[test]
    fn each_customer_of_a_district_has_one_order() {
        let text = all(OrdersTable::Orders);
        let mut buyers = vec![BTreeSet::new(); 10];
        let mut first = BTreeSet::new();
        for row in fields(&text) {
            let (order, district) = (value(row[0]), index(value(row[1]) - 1));
            assert!(buyers[district].insert(value(row[3])));
            if order == 1 {
                first.insert(row[3]);
            }
            match order {
                ..=2100 => assert!((1..=10).contains(&value(row[5]))),
                _ => assert_eq!(row[5], "\\N"),
            }
            assert!((5..=15).contains(&value(row[6])) && row[7] == "1" && row[4] == LOADED_AT);
        }
        for buyers in buyers {
            assert_eq!(buyers, (1..=3000).collect());
        }
        assert!(first.len() > 5, "districts have permutations of their own");
    }

    #[test]
    fn orders_have_the_lines_that_they_count() {
        let text_of_orders = all(OrdersTable::Orders);
        let key = |row: &Vec<&str>| [0, 1, 2].map(|column| value(row[column]));
        let counted = fields(&text_of_orders);
        let counted: BTreeMap<_, _> = counted
            .iter()
            .map(|row| (key(row), value(row[6])))
            .collect();
        let text = all(OrdersTable::OrderLine);
        let mut lines = BTreeMap::<_, u64>::new();
        for row in fields(&text) {
            let known = lines.entry(key(&row)).or_default();
            *known += 1;
            assert_eq!(value(row[3]), *known);
            assert!((1..=100_000).contains(&value(row[4])));
            assert_eq!((row[5], row[7]), ("1", "5"));
            if value(row[0]) <= 2100 {
                assert_eq!((row[6], row[8]), (LOADED_AT, "0.00"));
            } else {
                assert!(row[6] == "\\N" && (1..=999_999).contains(&value(row[8])));
            }
            assert_letters(row[9], 24, 24);
        }
        assert_eq!(lines, counted);
    }

    #[test]
    fn undelivered_orders_are_the_last_900() {
        let text = all(OrdersTable::NewOrder);
        assert!(text.starts_with("2101\t1\t1\n2102\t1\t1\n"));
        assert!(text.ends_with("\n3000\t10\t1\n"));
        assert!(
            fields(&text)
                .iter()
                .all(|row| (2101..=3000).contains(&value(row[0])))
        );
    }

    #[test]
    fn characters_are_spread_evenly() {
        let mut out = Vec::new();
        let mut line = Line::new(&mut out, stream(SEED, &[]));
        line.letters(620_000, 620_000);
        let mut counts = BTreeMap::<u8, u32>::new();
        for byte in &out[..620_000] {
            *counts.entry(*byte).or_default() += 1;
        }
        assert_eq!(counts.len(), 62);
        assert!(
            counts.values().all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn rows_do_not_change_between_versions() {
        let first = |table| text(table, 1, 1, 1);
        assert_eq!(
            first(OrdersTable::Item),
            "1\t465\t0AnhATIMXITQlUQynFXEk1E\t96.54\t6BXB29PZ5vj3F7TGZHoDHA9aYkZ\n"
        );
        assert_eq!(
            first(OrdersTable::OrderLine),
            "1\t1\t1\t1\t13916\t1\t2024-01-01 00:00:00\t5\t0.00\tpoi7MyJJ9ho1BOlHWfnn1yFg\n"
        );
        assert_eq!(OrdersTable::OrderLine.rows(1, SEED), 301_120);
    }
}
