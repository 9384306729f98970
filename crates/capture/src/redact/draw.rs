//! Draws a value of a shape: of the old one only what the shape keeps.

use rand_xoshiro::rand_core::RngCore;

/// The largest numbers of integers with so many digits: of 16, 32 and 64 bits.
const LARGEST: [(usize, u64); 3] = [
    (5, 32_767),
    (10, 2_147_483_647),
    (19, 9_223_372_036_854_775_807),
];
/// Years that stay, because partitions are by years: the first, and how many.
const YEARS: (u32, u64) = (1900, 200);
/// A letter that may follow a backslash: strings and regular expressions take it for the end of a line.
const ESCAPED: char = 'n';

/// A number below `most`.
fn below(most: u64, random: &mut impl RngCore) -> u64 {
    random.next_u64() % most.max(1)
}

fn digit(base: u32, random: &mut impl RngCore) -> char {
    let drawn = u32::try_from(below(u64::from(base), random)).unwrap_or(0);
    char::from_digit(drawn, base).unwrap_or('0')
}

/// A value whose sign stays, and the rest of which is drawn.
fn signed(value: &str, draw: impl FnOnce(&str) -> String) -> String {
    match value.strip_prefix(['-', '+']) {
        Some(bare) => {
            let sign = value.get(..1).unwrap_or_default();
            format!("{sign}{}", draw(bare))
        }
        None => draw(value),
    }
}

/// An integer of as many digits, which fits into the smallest type that has integers of so many.
pub fn integer(value: &str, random: &mut impl RngCore) -> String {
    signed(value, |digits| {
        if digits.len() < 2 {
            return run_of_digits(digits, random);
        }
        let power = u32::try_from(digits.len() - 1).unwrap_or(0);
        let least = 10_u64.saturating_pow(power);
        let known = LARGEST.iter().find(|(length, _)| *length == digits.len());
        let most = known.map_or(least.saturating_mul(10) - 1, |(_, most)| *most);
        (least + below(most - least + 1, random)).to_string()
    })
}

/// A number of as many digits on both sides of its point, with the same exponent.
pub fn decimal(value: &str, random: &mut impl RngCore) -> String {
    signed(value, |bare| {
        let from = bare.find(['e', 'E']).unwrap_or(bare.len());
        let (mantissa, exponent) = bare.split_at(from);
        format!("{}{exponent}", number(mantissa, random))
    })
}

/// A number as programs write it, whatever its length: all digits are replaced, and nothing else stays but
/// its point, `_`, and the prefix of another base.
pub fn number(value: &str, random: &mut impl RngCore) -> String {
    let bases = [
        ("0x", 16),
        ("0X", 16),
        ("0o", 8),
        ("0O", 8),
        ("0b", 2),
        ("0B", 2),
    ];
    for (prefix, base) in bases {
        if let Some(rest) = value.strip_prefix(prefix) {
            return format!("{prefix}{}", digits_of(base, rest, random));
        }
    }
    let mantissa = value.split(['e', 'E']).next().unwrap_or_default();
    let runs = mantissa.split_inclusive(['.', '_']).enumerate();
    let drawn = runs.map(|(place, run)| {
        let digits = run.trim_end_matches(['.', '_']);
        let sign = run.get(digits.len()..).unwrap_or_default();
        let digits = match place {
            0 => run_of_digits(digits, random),
            _ => digits.chars().map(|_| digit(10, random)).collect(),
        };
        format!("{digits}{sign}")
    });
    drawn.collect()
}

/// As many digits of this base, with what stands between them. Of a prefix `\x` the letter stays.
pub fn digits_of(base: u32, value: &str, random: &mut impl RngCore) -> String {
    let from = value.find("\\x").map_or(0, |at| at + 2);
    let (before, rest) = value.split_at(from);
    let each = |c: char| match c {
        '-' | ':' | '_' => c,
        c if c.is_ascii_uppercase() => digit(base, random).to_ascii_uppercase(),
        _ => digit(base, random),
    };
    format!("{before}{}", rest.chars().map(each).collect::<String>())
}

/// Four other numbers.
pub fn address(value: &str, random: &mut impl RngCore) -> String {
    let (_, mask) = value.split_at(value.find('/').unwrap_or(value.len()));
    let parts = (0..4).map(|_| (1 + below(223, random)).to_string());
    format!("{}{mask}", parts.collect::<Vec<_>>().join("."))
}

/// `2026-11-02 10:11:12.5+00`: another month, day and time.
pub fn moment(value: &str, random: &mut impl RngCore) -> String {
    let (bare, era) = match value.strip_suffix(" BC") {
        Some(bare) => (bare, " BC"),
        None => (value, ""),
    };
    let year = bare.get(..4).unwrap_or_default();
    let (first, many) = YEARS;
    let is_kept = year
        .parse()
        .is_ok_and(|year: u32| year >= first && u64::from(year - first) < many && era.is_empty());
    let year = match is_kept {
        true => year.to_owned(),
        false => (u64::from(first) + below(many, random)).to_string(),
    };
    let (month, day) = (1 + below(12, random), 1 + below(28, random));
    let rest = bare.get("dddd-dd-dd".len()..).unwrap_or_default();
    let (between, clock) = rest.split_at_checked(1).unwrap_or_default();
    let clock = if clock.is_empty() {
        String::new()
    } else {
        time(clock, random)
    };
    format!("{year}-{month:02}-{day:02}{between}{clock}{era}")
}

/// The clock and the zone of a time.
pub fn clock_and_zone(value: &str) -> (&str, &str) {
    let from = value.find(['+', '-', ' ', 'Z']);
    value.split_at(from.unwrap_or(value.len()))
}

/// `10:11:12.5+00`: hours, minutes and seconds; the zone stays.
pub fn time(value: &str, random: &mut impl RngCore) -> String {
    let (clock, zone) = clock_and_zone(value);
    format!("{}{zone}", time_of_day(clock, random))
}

fn time_of_day(clock: &str, random: &mut impl RngCore) -> String {
    let part = |(place, part): (usize, &str)| {
        let most = if place == 0 { 24 } else { 60 };
        let drawn = below(most, random);
        match part.split_once('.') {
            Some((_, fraction)) => {
                let fraction: String = fraction.chars().map(|_| digit(10, random)).collect();
                format!("{drawn:02}.{fraction}")
            }
            None => format!("{drawn:02}"),
        }
    };
    let parts: Vec<String> = clock.split(':').enumerate().map(part).collect();
    parts.join(":")
}

/// `1 year 2 mons -3 days 04:05:06`: other numbers.
pub fn interval(value: &str, random: &mut impl RngCore) -> String {
    let word = |word: &str| match word.contains(|c: char| c.is_ascii_digit()) {
        true if word.contains(':') => signed(word, |clock| time_of_day(clock, random)),
        true => signed(word, |bare| number(bare, random)),
        false => word.to_owned(),
    };
    let words: Vec<String> = value.split(' ').map(word).collect();
    words.join(" ")
}

/// Whether a value has nothing that is replaced: blanks and punctuation alone, and escaped ends of lines.
pub fn is_fixed(value: &str) -> bool {
    let mut escapes = false;
    value.chars().all(|c| {
        let is_escaped = escapes;
        escapes = c == '\\' && !is_escaped;
        is_sign(c) || is_escaped && c == ESCAPED
    })
}

/// A character that stays.
fn is_sign(c: char) -> bool {
    c.is_ascii_punctuation() || matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Each letter and digit replaced by another one, and so is everything that is not ASCII. Blanks and
/// punctuation stay.
pub fn text(value: &str, random: &mut impl RngCore) -> String {
    let mut out = String::with_capacity(value.len());
    let mut digits = 0;
    let mut escapes = false;
    for (at, c) in value.char_indices() {
        let is_escaped = escapes;
        escapes = c == '\\' && !is_escaped;
        let begins = digits == 0;
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        out.push(match c {
            c if is_sign(c) => c,
            _ if is_escaped => ESCAPED,
            // A number stays one without a zero before it.
            '1'..='9' if begins && is_number(value, at) => nonzero(random),
            '0'..='9' => digit(10, random),
            c => letter(c, random),
        });
    }
    out
}

/// Whether more digits follow the one at this byte.
fn is_number(value: &str, at: usize) -> bool {
    let next = value.as_bytes().get(at + 1);
    next.is_some_and(u8::is_ascii_digit)
}

fn nonzero(random: &mut impl RngCore) -> char {
    let drawn = u32::try_from(1 + below(9, random)).unwrap_or(1);
    char::from_digit(drawn, 10).unwrap_or('1')
}

/// As many digits; a number stays one without a zero before it.
fn run_of_digits(run: &str, random: &mut impl RngCore) -> String {
    let many = run.len();
    let digit = |place: usize| match place == 0 && many > 1 && !run.starts_with('0') {
        true => nonzero(random),
        false => digit(10, random),
    };
    (0..many).map(digit).collect()
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
