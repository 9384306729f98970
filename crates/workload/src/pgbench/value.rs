//! What variables hold, and how it reads as text.

use deltabench_model::units::{signed_to_f64, truncated};
use std::io::Write;

/// What an expression comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// SQL's null.
    Null,
    /// True or false.
    Boolean(bool),
    Integer(i64),
    Double(f64),
}

/// Why an expression has no value, in pgbench's words.
pub(crate) type Fault = String;

impl Value {
    fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Whether a condition holds: what is not 0 is true, null is false.
    pub(crate) fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => value,
            Self::Integer(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    pub(crate) fn boolean(self) -> Result<bool, Fault> {
        match self {
            Self::Boolean(value) => Ok(value),
            _ => Err(self.cannot_be("boolean")),
        }
    }

    /// As an integer; a double is rounded to the nearest, halves to even.
    #[inline]
    pub(crate) fn integer(self) -> Result<i64, Fault> {
        // 2^63 is the first double that does not fit; -2^63 fits.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Self::Integer(value) => Ok(value),
            Self::Double(value) => {
                let whole = value.round_ties_even();
                if (-LIMIT..LIMIT).contains(&whole) {
                    Ok(truncated(whole))
                } else {
                    Err(format!("double to int overflow for {whole:.6}"))
                }
            }
            _ => Err(self.cannot_be("int")),
        }
    }

    pub(crate) fn double(self) -> Result<f64, Fault> {
        match self {
            Self::Double(value) => Ok(value),
            Self::Integer(value) => Ok(signed_to_f64(value)),
            _ => Err(self.cannot_be("double")),
        }
    }

    fn cannot_be(self, what: &str) -> Fault {
        format!("cannot coerce {} to {what}", self.kind())
    }

    /// The value that a text means, as pgbench reads variables that were given as text.
    pub(crate) fn of_text(name: &str, text: &[u8]) -> Result<Self, Fault> {
        let malformed = || {
            let text = String::from_utf8_lossy(text);
            format!("malformed variable \"{name}\" value: \"{text}\"")
        };
        let text = std::str::from_utf8(text).map_err(|_| malformed())?;
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        let begins = |word: &str| {
            word.get(..text.len())
                .is_some_and(|part| part.eq_ignore_ascii_case(text))
        };
        if text.is_empty() {
            return Err(format!("variable \"{name}\" is empty"));
        }
        if is("null") {
            return Ok(Self::Null);
        }
        if begins("true") || begins("yes") || is("on") {
            return Ok(Self::Boolean(true));
        }
        if begins("false") || begins("no") || is("off") || is("of") {
            return Ok(Self::Boolean(false));
        }
        let number = text.trim_start();
        let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let value = number.parse().map_err(|_| {
                format!("value \"{text}\" of variable \"{name}\" is out of range for type bigint")
            })?;
            return Ok(Self::Integer(value));
        }
        double(number).map(Self::Double).ok_or_else(malformed)
    }

    /// Appends the value as pgbench writes it.
    #[inline]
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Boolean(true) => out.extend_from_slice(b"true"),
            Self::Boolean(false) => out.extend_from_slice(b"false"),
            Self::Integer(value) => write_integer(value, out),
            Self::Double(value) => write_double(value, out),
        }
    }
}

/// A double as C reads it, unless it is too large or too near to 0.
pub(crate) fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let digits = text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let is_zero = digits.filter(u8::is_ascii_digit).all(|digit| digit == b'0');
    let named = text.bytes().any(|byte| matches!(byte, b'n' | b'N'));
    let lost = value.is_subnormal() || (value == 0.0 && !is_zero);
    (named || !(value.is_infinite() || lost)).then_some(value)
}

/// Decimal digits of an integer.
#[inline]
fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut rest = value.unsigned_abs();
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

/// Significant digits of a double, `DBL_DIG` of C.
const DIGITS: usize = 15;

/// As C's `%.15g`, with PostgreSQL's words for what is not finite.
fn write_double(value: f64, out: &mut Vec<u8>) {
    // PostgreSQL's own words, not C's.
    let word: &[u8] = match (value.is_nan(), value.is_infinite(), value > 0.0) {
        (true, ..) => b"NaN",
        (_, true, true) => b"Infinity",
        (_, true, false) => b"-Infinity",
        _ => b"",
    };
    if !word.is_empty() {
        out.extend_from_slice(word);
        return;
    }
    // Into a Vec nothing can fail to be written.
    let start = out.len();
    let _ = write!(out, "{value:.*e}", DIGITS - 1);
    let exponent = out
        .iter()
        .rposition(|&byte| byte == b'e')
        .and_then(|at| std::str::from_utf8(out.get(at + 1..)?).ok()?.parse().ok())
        .unwrap_or(0_i32);
    let in_place = usize::try_from(14 - exponent)
        .ok()
        .filter(|_| exponent >= -4);
    match in_place {
        Some(decimals) => {
            out.truncate(start);
            let _ = write!(out, "{value:.decimals$}");
            trim_zeros(start, out);
        }
        None => {
            let end = out.iter().rposition(|&byte| byte == b'e');
            out.truncate(end.unwrap_or(start));
            trim_zeros(start, out);
            let sign = if exponent < 0 { '-' } else { '+' };
            let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        }
    }
}

/// Takes away what `%g` leaves out: zeros after the decimal point, and a point that nothing follows.
fn trim_zeros(start: usize, out: &mut Vec<u8>) {
    if !out.get(start..).unwrap_or_default().contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Value) -> String {
        let mut out = b"x".to_vec();
        value.write(&mut out);
        String::from_utf8(out).unwrap()[1..].to_owned()
    }

    #[test]
    fn integers_and_doubles_read_as_c_writes_them() {
        for (value, text) in [
            (0, "0"),
            (7, "7"),
            (-10, "-10"),
            (1_234_567_890_123, "1234567890123"),
            (i64::MAX, "9223372036854775807"),
            (i64::MIN, "-9223372036854775808"),
        ] {
            assert_eq!(written(Value::Integer(value)), text);
        }
        // printf "%.15g"
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (100_000.0, "100000"),
            (1.0 / 3.0, "0.333333333333333"),
            (2e15, "2e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (999_999_999_999_999.9, "1e+15"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-1.5e-300, "-1.5e-300"),
            (1.7e308, "1.7e+308"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (-f64::NAN, "NaN"),
        ] {
            assert_eq!(written(Value::Double(value)), text);
        }
        assert_eq!(written(Value::Null), "NULL");
        assert_eq!(written(Value::Boolean(true)), "true");
    }

    #[test]
    fn texts_mean_what_they_mean_to_pgbench() {
        let read = |text: &str| Value::of_text("v", text.as_bytes());
        for (text, value) in [
            ("null", Value::Null),
            ("NULL", Value::Null),
            ("t", Value::Boolean(true)),
            ("YE", Value::Boolean(true)),
            ("on", Value::Boolean(true)),
            ("f", Value::Boolean(false)),
            ("n", Value::Boolean(false)),
            ("of", Value::Boolean(false)),
            ("1", Value::Integer(1)),
            (" -12", Value::Integer(-12)),
            ("+3", Value::Integer(3)),
            ("-9223372036854775808", Value::Integer(i64::MIN)),
            ("1.5", Value::Double(1.5)),
            (".5e1", Value::Double(5.0)),
            ("0e999", Value::Double(0.0)),
        ] {
            assert_eq!(read(text), Ok(value), "{text}");
        }
        for (text, what) in [
            ("o", "malformed variable \"v\" value: \"o\""),
            ("truer", "malformed"),
            ("", "is empty"),
            ("9223372036854775808", "out of range for type bigint"),
            ("1e999", "malformed"),
            ("1e-999", "malformed"),
            ("1 2", "malformed"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.contains(what), "{text}: {fault}");
        }
    }

    #[test]
    fn doubles_become_integers_only_where_they_fit() {
        for (double, integer) in [(0.5, 0), (1.5, 2), (2.5, 2), (-1.5, -2)] {
            assert_eq!(Value::Double(double).integer(), Ok(integer));
        }
        assert_eq!(
            Value::Double(-9_223_372_036_854_775_808.0).integer(),
            Ok(i64::MIN)
        );
        for double in [9_223_372_036_854_775_808.0, f64::NAN, f64::INFINITY] {
            let fault = Value::Double(double).integer().unwrap_err();
            assert!(fault.starts_with("double to int overflow"), "{fault}");
        }
    }
}
