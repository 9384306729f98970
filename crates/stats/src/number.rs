//! The conversions that the lints forbid elsewhere. `stats` uses no crate of ours, so it has its own.

/// A count as `f64`; exact up to 2^53.
#[allow(clippy::as_conversions)]
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

/// A count as `f64`; exact up to 2^53.
#[allow(clippy::as_conversions)]
pub(crate) fn real_u64(count: u64) -> f64 {
    count as f64
}

/// A whole number as `f64`; exact up to 2^53.
#[allow(clippy::as_conversions)]
pub(crate) fn real_u128(number: u128) -> f64 {
    number as f64
}

/// The whole part of a number ≥ 0 as an index; saturates.
#[allow(clippy::as_conversions)]
pub(crate) fn floor(value: f64) -> usize {
    value as usize
}
