//! Numbers and the few conversions that the lints forbid elsewhere.

/// `u64` to `f64`.
///
/// Shape: exact up to 2^53, rounded to nearest above; counts and nanoseconds of one run stay far below that.
#[allow(clippy::as_conversions)]
pub fn to_f64(value: u64) -> f64 {
    value as f64
}

/// `f64` to the nearest `u64`; negative and NaN become 0, too large becomes `u64::MAX`.
#[allow(clippy::as_conversions)]
pub fn to_u64(value: f64) -> u64 {
    value.round() as u64
}

/// `i64` to `f64`.
///
/// Shape: exact up to 2^53 from 0, rounded to nearest beyond.
#[allow(clippy::as_conversions)]
pub fn signed_to_f64(value: i64) -> f64 {
    value as f64
}

/// The whole part of an `f64`, towards 0; NaN becomes 0, what does not fit the nearest that does.
#[allow(clippy::as_conversions)]
pub fn truncated(value: f64) -> i64 {
    value as i64
}

/// A length or count as `u64`, for file formats.
pub fn count(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A count from a file or a protocol as `usize`; saturates on a 32-bit machine.
pub fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Nanoseconds as microseconds.
pub fn micros(nanoseconds: u64) -> f64 {
    to_f64(nanoseconds) / 1e3
}

/// Nanoseconds as seconds.
pub fn seconds(nanoseconds: u64) -> f64 {
    to_f64(nanoseconds) / 1e9
}
