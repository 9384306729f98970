//! The shape of a value: what its replacement has in common with it.
//!
//! A value has one of these shapes only if all of it does. Everything else is text, of which no letter and
//! no digit stays.

use super::draw;
use rand_xoshiro::rand_core::RngCore;

/// Words that types insist on, as servers and drivers write them.
const WORDS: [&str; 27] = [
    "true",
    "false",
    "null",
    "yes",
    "no",
    "on",
    "off",
    "infinity",
    "-infinity",
    "Infinity",
    "-Infinity",
    "NaN",
    "now",
    "today",
    "tomorrow",
    "yesterday",
    "epoch",
    "allballs",
    "utc",
    "UTC",
    "int4",
    "int8",
    "text",
    "numeric",
    "json",
    "asc",
    "desc",
];
/// Units as `date_trunc` and `extract` take them. Short ones are names, too (`min`, `mon`).
const FIELDS: [&str; 17] = [
    "microsecond",
    "microseconds",
    "millisecond",
    "milliseconds",
    "second",
    "seconds",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
    "minutes",
];
/// Units of intervals.
const UNITS: [&str; 29] = [
    "microsecond",
    "microseconds",
    "millisecond",
    "milliseconds",
    "second",
    "seconds",
    "sec",
    "secs",
    "minute",
    "minutes",
    "min",
    "mins",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "mon",
    "mons",
    "year",
    "years",
    "decade",
    "decades",
    "century",
    "centuries",
    "millennium",
];
/// The longest run of digits that is an integer of 64 bits.
const LONGEST: usize = 19;
/// Digits of an exponent that stay: more of them are no number of a double.
const EXPONENT: usize = 2;
/// Digits of a number of an interval, before and behind its point.
const OF_INTERVAL: usize = 6;
/// Digits of a second's fraction: nanoseconds.
const FRACTION: usize = 9;
/// Hours between a zone and UTC.
const FARTHEST: u32 = 15;
/// Bits of an IPv4 address.
const BITS: u32 = 32;

/// How a value is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An integer: sign and number of digits stay, and it fits where the value does.
    Integer,
    /// A number with a point or an exponent: sign, number of digits and a short exponent stay.
    Decimal,
    /// A date, perhaps with a time: a year from 1900 to 2099 and the zone stay.
    Moment,
    /// A time of a day; the zone stays.
    Time,
    /// Numbers with units, perhaps with a time: the units stay.
    Interval,
    /// Hexadecimal digits with signs between them: a UUID, bytes, an address of a network.
    Hexadecimal,
    /// Four numbers of an address; the length of its network stays.
    Address,
    /// Anything else: blanks and punctuation stay.
    Text,
}

impl Shape {
    /// Of a value without blanks around it.
    pub fn of(value: &str) -> Self {
        let bare = value.strip_prefix(['-', '+']).unwrap_or(value);
        if is_integer(bare) {
            Self::Integer
        } else if is_decimal(bare) {
            Self::Decimal
        } else if is_moment(value) {
            Self::Moment
        } else if is_time(value) {
            Self::Time
        } else if is_interval(value) {
            Self::Interval
        } else if is_address(value) {
            Self::Address
        } else if is_hexadecimal(value) {
            Self::Hexadecimal
        } else {
            Self::Text
        }
    }

    /// Another value of this shape.
    pub fn draw(self, value: &str, random: &mut impl RngCore) -> String {
        match self {
            Self::Integer => draw::integer(value, random),
            Self::Decimal => draw::decimal(value, random),
            Self::Moment => draw::moment(value, random),
            Self::Time => draw::time(value, random),
            Self::Interval => draw::interval(value, random),
            Self::Hexadecimal => draw::digits_of(16, value, random),
            Self::Address => draw::address(value, random),
            Self::Text => draw::text(value, random),
        }
    }
}

/// Whether a value stays: one character (a digit may have a sign), or a word that types insist on.
pub fn stays(value: &str) -> bool {
    let bare = value.strip_prefix(['-', '+']).unwrap_or(value);
    let is_digit = bare.len() == 1 && digits(bare);
    is_digit || value.chars().nth(1).is_none() || WORDS.contains(&value) || FIELDS.contains(&value)
}

/// ASCII digits, one at least.
pub fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits of a number that is at most `most`.
fn number(text: &str, most: u32) -> bool {
    digits(text) && text.parse().is_ok_and(|number: u32| number <= most)
}

/// Two digits of a number that is at most `most`.
fn two(text: &str, most: u32) -> bool {
    text.len() == 2 && number(text, most)
}

fn is_integer(text: &str) -> bool {
    digits(text) && text.len() <= LONGEST && (text.len() == 1 || !text.starts_with('0'))
}

fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let bare = exponent.map(|exponent| exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
    let short = |exponent: &str| digits(exponent) && exponent.len() <= EXPONENT;
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && fraction.is_none_or(digits)
        && bare.is_none_or(short)
        && (fraction.is_some() || exponent.is_some())
}

/// A date, with a time or without.
fn is_moment(text: &str) -> bool {
    let text = text.strip_suffix(" BC").unwrap_or(text);
    let Some((date, rest)) = text.split_at_checked("dddd-dd-dd".len()) else {
        return false;
    };
    let parts: Vec<&str> = date.split('-').collect();
    let is_date = matches!(parts.as_slice(), [year, month, day]
        if year.len() == 4 && digits(year) && two(month, 12) && two(day, 31));
    let clock = rest.strip_prefix([' ', 'T']);
    is_date && (rest.is_empty() || clock.is_some_and(is_time))
}

/// A time of a day, with a zone by its distance or without one.
fn is_time(text: &str) -> bool {
    let (clock, zone) = draw::clock_and_zone(text);
    is_clock(clock) && is_zone(zone)
}

fn is_clock(text: &str) -> bool {
    let second = |part: &str| {
        let (whole, fraction) = match part.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (part, None),
        };
        let short = |fraction: &str| digits(fraction) && fraction.len() <= FRACTION;
        two(whole, 60) && fraction.is_none_or(short)
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [hour, minute] => two(hour, 24) && two(minute, 59),
        [hour, minute, last] => two(hour, 24) && two(minute, 59) && second(last),
        _ => false,
    }
}

/// `+01`, `-03:30`, `Z`, or nothing.
fn is_zone(text: &str) -> bool {
    if ["", "Z", " UTC"].contains(&text) {
        return true;
    }
    let Some(distance) = text.strip_prefix(['-', '+']) else {
        return false;
    };
    let (hours, minutes) = match distance.split_at_checked(2) {
        Some((hours, "")) => (hours, "00"),
        Some((hours, minutes)) => (hours, minutes.strip_prefix(':').unwrap_or(minutes)),
        None => return false,
    };
    two(hours, FARTHEST) && ["00", "15", "30", "45"].contains(&minutes)
}

/// `15 days`, `1 year 2 mons -3 days 04:05:06`, `2 hours ago`, or its time alone, with a sign.
fn is_interval(text: &str) -> bool {
    let text = text.strip_suffix(" ago").unwrap_or(text);
    let mut words = text.split(' ').peekable();
    let mut found = false;
    while let Some(word) = words.next() {
        let bare = word.strip_prefix(['-', '+']).unwrap_or(word);
        if words.peek().is_none() && is_clock(bare) {
            return true;
        }
        let (whole, fraction) = bare.split_once('.').unwrap_or((bare, "0"));
        let short = |part: &str| digits(part) && part.len() <= OF_INTERVAL;
        let has_unit = words.next().is_some_and(|unit| UNITS.contains(&unit));
        if !(short(whole) && short(fraction) && has_unit) {
            return false;
        }
        found = true;
    }
    found
}

fn is_address(text: &str) -> bool {
    let (address, mask) = text.split_once('/').unwrap_or((text, "0"));
    let byte = |part: &str| part.len() <= 3 && number(part, 255);
    address.split('.').count() == 4
        && address.split('.').all(byte)
        && mask.len() <= 2
        && number(mask, BITS)
}

/// A UUID, bytes as `\x…`, the address of a card or of IPv6. All its digits are replaced.
fn is_hexadecimal(text: &str) -> bool {
    let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bytes = text.strip_prefix("\\\\x").or(text.strip_prefix("\\x"));
    if bytes.is_some_and(|bytes| !bytes.is_empty() && hexadecimal(bytes)) {
        return true;
    }
    let lengths = |sign: char| text.split(sign).map(str::len).collect::<Vec<_>>();
    let is_uuid = lengths('-') == [8, 4, 4, 4, 12] || text.len() == 32 && hexadecimal(text);
    let groups = lengths(':');
    let is_card = groups == [2; 6];
    let is_network = groups.iter().all(|length| *length <= 4)
        && (groups.len() == 8 || (3..8).contains(&groups.len()) && text.contains("::"));
    let sign = if is_uuid { '-' } else { ':' };
    (is_uuid || is_card || is_network) && text.split(sign).all(hexadecimal)
}
