//! The distributions of pgbench's random functions, on our own generator.
//!
//! Source: the same transformations as pgbench, so that a parameter means the same; which numbers come out
//! differs, because pgbench's depend on threads and we draw by operation.

use crate::seed::Random;
use deltabench_model::units::{signed_to_f64, to_f64, truncated};
use rand::RngCore;
use std::f64::consts::PI;

/// Smallest parameter of the gaussian distribution.
pub(crate) const MIN_GAUSSIAN: f64 = 2.0;
/// Smallest parameter of the zipfian distribution.
pub(crate) const MIN_ZIPFIAN: f64 = 1.001;
/// Largest parameter of the zipfian distribution.
pub(crate) const MAX_ZIPFIAN: f64 = 1000.0;

/// Uniform in [0, 1), a multiple of 2^-52.
fn unit(random: &mut Random) -> f64 {
    to_f64(random.next_u64() >> 12) * f64::EPSILON
}

/// Uniform in (0, 1].
fn positive_unit(random: &mut Random) -> f64 {
    1.0 - unit(random)
}

/// The integer of `low..=high` at this share, in [0, 1), of the range.
fn at_share(low: i64, high: i64, share: f64) -> i64 {
    let count = signed_to_f64(high.wrapping_sub(low).wrapping_add(1));
    // In a range near 2^63 the product can round up to the end of it.
    low.saturating_add(truncated(count * share)).min(high)
}

/// Exponential, cut off: the density at `high` is `exp(-parameter)` of the one at `low`; needs a parameter
/// above 0.
pub(crate) fn exponential(random: &mut Random, low: i64, high: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let uniform = positive_unit(random);
    let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
    at_share(low, high, share)
}

/// Normal around the middle, cut off at `parameter` (at least 2) standard deviations on both sides.
///
/// Source: the transformation of Box and Muller (1958).
pub(crate) fn gaussian(random: &mut Random, low: i64, high: i64, parameter: f64) -> i64 {
    let deviation = loop {
        let radius = (-2.0 * positive_unit(random).ln()).sqrt();
        let deviation = radius * (2.0 * PI * positive_unit(random)).sin();
        if (-parameter..parameter).contains(&deviation) {
            break deviation;
        }
    };
    at_share(low, high, (deviation + parameter) / (parameter * 2.0))
}

/// Zipfian: `low` is the most frequent; needs a parameter in `MIN_ZIPFIAN..=MAX_ZIPFIAN`.
///
/// Source: Devroye, "Non-Uniform Random Variate Generation", 1986, pages 550-551, by rejection.
pub(crate) fn zipfian(random: &mut Random, low: i64, high: i64, parameter: f64) -> i64 {
    let count = signed_to_f64(high.wrapping_sub(low).wrapping_add(1));
    if count <= 1.0 {
        return low;
    }
    let exponent = parameter - 1.0;
    let base = 2.0_f64.powf(exponent);
    loop {
        let (inverted, judged) = (unit(random), unit(random));
        let rank = inverted.powf(-1.0 / exponent).floor();
        let ratio = (1.0 + 1.0 / rank).powf(exponent);
        if judged * rank * (ratio - 1.0) / (base - 1.0) <= ratio / base && rank <= count {
            return low.saturating_add(truncated(rank) - 1).min(high);
        }
    }
}
