//! The shape of a value: what its replacement has in common with it.

use rand_xoshiro::rand_core::RngCore;

/// Words that types insist on. They stay if they are the whole value.
const WORDS: [&str; 24] = [
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "null",
    "infinity",
    "nan",
    "inf",
    "now",
    "today",
    "tomorrow",
    "yesterday",
    "epoch",
    "allballs",
    "utc",
    "int4",
    "int8",
    "text",
    "numeric",
    "asc",
    "desc",
    "json",
];
/// Words of JSON. They stay inside a value, too.
const LITERALS: [&str; 3] = ["true", "false", "null"];
/// Units of intervals. They stay after a number, because nothing else does: they are names, too.
const UNITS: [&str; 31] = [
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
    "quarter",
    "year",
    "years",
    "decade",
    "decades",
    "century",
    "centuries",
    "millennium",
    "ago",
];
/// The largest numbers of integers with so many digits: of 16, 32 and 64 bits.
const LARGEST: [(usize, u64); 3] = [
    (5, 32_767),
    (10, 2_147_483_647),
    (19, 9_223_372_036_854_775_807),
];
/// The longest run of digits that is a number.
const LONGEST: usize = 19;

/// How a value is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An integer: sign and number of digits stay, and it fits where the value does.
    Integer,
    /// A number with a point: sign, digits on both sides and exponent stay.
    Decimal,
    /// A date, perhaps with a time: the year and what follows the time stay.
    Moment,
    /// A time of a day.
    Time,
    /// A number in this base: its length stays.
    Digits(u32),
    /// Four numbers of an address.
    Address,
    /// Anything else: blanks, punctuation, `true`, `false`, `null` and units after numbers stay;
    /// letters stay letters of their case, digits digits.
    Text,
}

impl Shape {
    /// Of a value; absent if it stays as it is: no more than a character, or a word of [`WORDS`].
    pub fn of(value: &str) -> Option<Self> {
        let bare = value.trim().trim_start_matches(['-', '+']);
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if bare.chars().nth(1).is_none() || is_word(bare) {
            return None;
        }
        if digits(bare) {
            let is_number = bare.len() <= LONGEST && !bare.starts_with('0');
            return Some(if is_number { Self::Integer } else { Self::Text });
        }
        if let Some((whole, rest)) = bare.split_once('.') {
            let fraction = rest.split(['e', 'E']).next().unwrap_or_default();
            let exponent = rest.get(fraction.len()..).unwrap_or_default();
            let exponent = exponent.trim_start_matches(['e', 'E', '-', '+']);
            if digits(whole) && digits(fraction) && (exponent.is_empty() || digits(exponent)) {
                return Some(Self::Decimal);
            }
        }
        // What is not wholly of a known form may be a sentence that begins like one.
        if is_moment(bare) {
            return Some(Self::Moment);
        }
        if is_time(bare) {
            return Some(Self::Time);
        }
        if is_hexadecimal(bare) {
            return Some(Self::Digits(16));
        }
        let (address, mask) = bare.split_once('/').unwrap_or((bare, "0"));
        if address.split('.').count() == 4 && address.split('.').all(digits) && digits(mask) {
            return Some(Self::Address);
        }
        Some(Self::Text)
    }

    /// Another value of this shape.
    pub fn draw(self, value: &str, random: &mut impl RngCore) -> String {
        match self {
            Self::Integer => replace_digits(value, |digits| integer(digits, random)),
            Self::Decimal => {
                let from = value.find(['e', 'E']).unwrap_or(value.len());
                let (number, exponent) = value.split_at(from);
                let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
                let whole = replace_digits(whole, |digits| integer(digits, random));
                let fraction: String = fraction.chars().map(|_| digit(10, random)).collect();
                format!("{whole}.{fraction}{exponent}")
            }
            Self::Moment => moment(value, random),
            Self::Time => time(value, random),
            Self::Digits(base) => {
                // `\x` of bytes stays.
                let from = if value.starts_with("\\x") { 2 } else { 0 };
                let (before, rest) = value.split_at(from);
                let each = |c: char| match c.is_digit(base) {
                    true if c.is_ascii_uppercase() => digit(base, random).to_ascii_uppercase(),
                    true => digit(base, random),
                    false => c,
                };
                format!("{before}{}", rest.chars().map(each).collect::<String>())
            }
            Self::Address => {
                let (address, rest) = value.split_at(value.find('/').unwrap_or(value.len()));
                let parts = address
                    .split('.')
                    .map(|_| (1 + below(223, random)).to_string());
                format!("{}{rest}", parts.collect::<Vec<_>>().join("."))
            }
            Self::Text => text(value, random),
        }
    }
}

/// A value that stays whole: a word of [`WORDS`], or a unit as `date_trunc` takes it, in small letters and
/// not cut short (`min` and `mon` are names, too).
fn is_word(text: &str) -> bool {
    let is_unit = text.len() > 3 || text == "day";
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) || (is_unit && UNITS.contains(&text))
}

/// A date, with a time or without.
fn is_moment(text: &str) -> bool {
    let text = text.strip_suffix(" BC").unwrap_or(text);
    let Some((date, rest)) = text.split_at_checked("dddd-dd-dd".len()) else {
        return false;
    };
    let clock = rest.strip_prefix([' ', 'T']);
    pattern(date, "dddd-dd-dd") && (rest.is_empty() || clock.is_some_and(is_time))
}

/// A time of a day, with a zone by its distance or without one.
fn is_time(text: &str) -> bool {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let zone = text.rfind(['+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone);
    let parts: Vec<&str> = clock.trim_end().split(':').collect();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_two = |part: &&str| part.len() == 2 && digits(part);
    let second = |part: &str| {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        is_two(&whole) && fraction.len() <= 6 && digits(fraction)
    };
    let is_clock = match parts.as_slice() {
        [hour, minute] => is_two(hour) && is_two(minute),
        [hour, minute, last] => is_two(hour) && is_two(minute) && second(last),
        _ => false,
    };
    let zone = zone.trim_start_matches(['+', '-']);
    is_clock && zone.len() <= 8 && zone.split(':').all(digits)
}

/// A word that stays inside of a text.
fn is_known(run: &str, after_number: bool) -> bool {
    let is = |words: &[&str]| words.iter().any(|word| run.eq_ignore_ascii_case(word));
    is(&LITERALS) || (after_number && is(&UNITS))
}

/// Whether a text begins with digits where the pattern has `d`, and with its other characters.
fn pattern(text: &str, pattern: &str) -> bool {
    let fits = |(c, wanted): (char, char)| match wanted {
        'd' => c.is_ascii_digit(),
        wanted => c == wanted,
    };
    text.len() >= pattern.len() && text.chars().zip(pattern.chars()).all(fits)
}

/// A UUID, or bytes as `\x…`.
fn is_hexadecimal(text: &str) -> bool {
    let hexadecimal = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_uuid = lengths == [8, 4, 4, 4, 12] && text.split('-').all(hexadecimal);
    is_uuid || text.strip_prefix("\\x").is_some_and(hexadecimal)
}

fn below(most: u64, random: &mut impl RngCore) -> u64 {
    random.next_u64() % most.max(1)
}

fn digit(base: u32, random: &mut impl RngCore) -> char {
    let drawn = u32::try_from(below(u64::from(base), random)).unwrap_or(0);
    char::from_digit(drawn, base).unwrap_or('0')
}

/// A value with its run of digits replaced; what is around stays.
fn replace_digits(value: &str, mut draw: impl FnMut(&str) -> String) -> String {
    let from = value
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(value.len());
    let (before, rest) = value.split_at(from);
    let to = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (digits, after) = rest.split_at(to);
    format!("{before}{}{after}", draw(digits))
}

/// A number of as many digits, which fits into the smallest integer that has numbers of so many.
fn integer(digits: &str, random: &mut impl RngCore) -> String {
    if digits.len() < 2 {
        return digits.chars().map(|_| digit(10, random)).collect();
    }
    let power = u32::try_from(digits.len() - 1).unwrap_or(0);
    let least = 10_u64.saturating_pow(power);
    let known = LARGEST.iter().find(|(length, _)| *length == digits.len());
    let most = known.map_or(least.saturating_mul(10) - 1, |(_, most)| *most);
    (least + below(most - least + 1, random)).to_string()
}

/// `2026-11-02 10:11:12.5+00`: another month, day and time.
fn moment(value: &str, random: &mut impl RngCore) -> String {
    let from = value.find('-').unwrap_or(0);
    let (year, rest) = value.split_at(from);
    let after = rest.get(6..).unwrap_or_default();
    let (month, day) = (1 + below(12, random), 1 + below(28, random));
    let at = after
        .find(':')
        .and_then(|colon| colon.checked_sub(2))
        .unwrap_or(after.len());
    let (between, clock) = after.split_at_checked(at).unwrap_or((after, ""));
    format!("{year}-{month:02}-{day:02}{between}{}", time(clock, random))
}

/// `10:11:12.5+00`: hours, minutes and seconds; what follows a sign stays.
fn time(value: &str, random: &mut impl RngCore) -> String {
    let from = value.find(['+', '-', ' ', 'Z']).unwrap_or(value.len());
    let (clock, zone) = value.split_at(from);
    let part = |(place, part): (usize, &str)| {
        let most = if place == 0 { 24 } else { 60 };
        match part.split_once('.') {
            Some((_, fraction)) => {
                let fraction: String = fraction.chars().map(|_| digit(10, random)).collect();
                format!("{:02}.{fraction}", below(most, random))
            }
            None if part.is_empty() => String::new(),
            None => format!("{:02}", below(most, random)),
        }
    };
    let parts: Vec<String> = clock.split(':').enumerate().map(part).collect();
    format!("{}{zone}", parts.join(":"))
}

/// Words and runs of digits, each replaced by others.
fn text(value: &str, random: &mut impl RngCore) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    let mut after_number = false;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| {
            c.is_alphabetic() == first.is_alphabetic()
                && c.is_ascii_digit() == first.is_ascii_digit()
        };
        let to = rest.find(|c: char| !same(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(to);
        // What a backslash escapes is a part of the notation.
        let escaped = run.ends_with('\\') && !run.ends_with("\\\\");
        match first {
            _ if first.is_alphabetic() && is_known(run, after_number) => out.push_str(run),
            _ if first.is_alphabetic() => out.extend(run.chars().map(|c| letter(c, random))),
            _ if first.is_ascii_digit() => out.push_str(&run_of_digits(run, random)),
            _ => out.push_str(run),
        }
        after_number = first.is_ascii_digit() || (after_number && run == " ");
        rest = after;
        // A quote, or another backslash: a letter would be the first one of a word.
        let is_mark = |next: &char| escaped && !next.is_alphanumeric();
        if let Some(next) = rest.chars().next().filter(is_mark) {
            out.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

/// As many digits; a number stays one without a zero before it.
fn run_of_digits(run: &str, random: &mut impl RngCore) -> String {
    let digits: String = run.chars().map(|_| digit(10, random)).collect();
    match (run.starts_with('0'), digits.strip_prefix('0')) {
        (false, Some(rest)) => format!("{}{rest}", 1 + below(9, random)),
        _ => digits,
    }
}

/// A letter of the same case, or of as many bytes.
fn letter(c: char, random: &mut impl RngCore) -> char {
    let mut from = |first: u32, many: u64| {
        let drawn = u32::try_from(below(many, random)).unwrap_or(0);
        char::from_u32(first + drawn).unwrap_or('x')
    };
    match c.len_utf8() {
        1 if c.is_ascii_uppercase() => from(0x41, 26),
        1 => from(0x61, 26),
        2 => from(0xe0, 22),
        3 => from(0x4e00, 4096),
        _ => from(0x20000, 4096),
    }
}
