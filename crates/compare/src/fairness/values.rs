//! Values of settings in units that can be compared between versions.

use std::fmt;

/// A value of `pg_settings`, its unit applied.
///
/// The unit of a setting changes between versions (`max_wal_size`: 16MB blocks in 9.6, MB since 10), so
/// `64` and `1024` can be the same value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A size, in bytes.
    Bytes(f64),
    /// A duration, in microseconds.
    Time(f64),
    /// A number without unit.
    Number(f64),
    /// Anything else, and negative numbers: −1 is "off" or "automatic" whatever the unit.
    Text(String),
}

impl Value {
    pub(super) fn new(value: &str, unit: Option<&str>) -> Self {
        let Some(number) = value
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
        else {
            return Self::Text(value.to_owned());
        };
        match unit.map(str::trim).filter(|unit| !unit.is_empty()) {
            None => Self::Number(number),
            Some(unit) => Self::with_unit(number, unit)
                .unwrap_or_else(|| Self::Text(format!("{value} {unit}"))),
        }
    }

    /// `unit` is a factor, which may be missing, and a name: `8kB`, `min`.
    fn with_unit(number: f64, unit: &str) -> Option<Self> {
        let name = unit.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let digits = unit.strip_suffix(name)?;
        let factor = if digits.is_empty() {
            1.0
        } else {
            digits.parse::<f64>().ok()?
        };
        let value = number * factor;
        if let Some((_, scale)) = BYTES.iter().find(|(known, _)| *known == name) {
            return Some(Self::Bytes(value * scale));
        }
        let (_, scale) = TIMES.iter().find(|(known, _)| *known == name)?;
        Some(Self::Time(value * scale))
    }

    /// Equal up to the rounding of a decimal number.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b))
            | (Self::Time(a), Self::Time(b))
            | (Self::Number(a), Self::Number(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

/// Units of sizes, largest first.
const BYTES: [(&str, f64); 5] = [
    ("TB", 1_099_511_627_776.0),
    ("GB", 1_073_741_824.0),
    ("MB", 1_048_576.0),
    ("kB", 1024.0),
    ("B", 1.0),
];

/// Units of durations, largest first.
const TIMES: [(&str, f64); 6] = [
    ("d", 86_400e6),
    ("h", 3_600e6),
    ("min", 60e6),
    ("s", 1e6),
    ("ms", 1e3),
    ("us", 1.0),
];

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, units) = match self {
            Self::Text(text) if text.is_empty() => return f.write_str("empty"),
            Self::Text(text) => return f.write_str(text),
            Self::Number(number) => return write!(f, "{number}"),
            Self::Bytes(value) => (*value, BYTES.as_slice()),
            Self::Time(value) => (*value, TIMES.as_slice()),
        };
        // The largest unit that gives a whole number; 0 is 0 in any.
        let whole = units
            .iter()
            .find(|(_, scale)| value >= *scale && (value % scale).abs() < 1e-6);
        match whole {
            Some((name, scale)) => write!(f, "{} {name}", value / scale),
            None => match units.last() {
                Some((name, _)) if value > 0.0 => write!(f, "{value} {name}"),
                _ => f.write_str("0"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_amount_in_other_units_is_the_same() {
        let same = |a: (&str, Option<&str>), b: (&str, Option<&str>)| {
            Value::new(a.0, a.1).same(&Value::new(b.0, b.1))
        };
        assert!(same(("64", Some("16MB")), ("1024", Some("MB"))));
        assert!(same(("2048", Some("8kB")), ("16777216", Some("B"))));
        assert!(same(("300", Some("s")), ("5", Some("min"))));
        assert!(same(("0.50", None), ("0.5", None)));
        assert!(
            same(("-1", Some("ms")), ("-1", Some("s"))),
            "-1 is a word, not an amount"
        );
        assert!(!same(("1", Some("s")), ("1", Some("ms"))));
        assert!(!same(("1", Some("kB")), ("1", None)));
        assert!(!same(("on", None), ("off", None)));
        assert!(!same(("1", Some("furlong")), ("1", Some("s"))));
    }

    #[test]
    fn values_are_shown_in_the_largest_whole_unit() {
        let shown = |value: &str, unit: Option<&str>| Value::new(value, unit).to_string();
        assert_eq!(shown("16384", Some("8kB")), "128 MB");
        assert_eq!(shown("1", Some("8kB")), "8 kB");
        assert_eq!(shown("90", Some("s")), "90 s");
        assert_eq!(shown("0.1", Some("ms")), "100 us");
        assert_eq!(shown("0", Some("ms")), "0");
        assert_eq!(shown("1.10", None), "1.1");
        assert_eq!(shown("", None), "empty");
        assert_eq!(shown("-1", Some("8kB")), "-1");
    }
}
