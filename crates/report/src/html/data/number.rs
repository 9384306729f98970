//! Numbers with the digits that matter, without needless characters.

use crate::words;
use deltabench_compare::comparison::{Difference, Ratio};
use deltabench_model::units::to_u64;
use serde::{Serialize, Serializer};

/// Digits of absolute values, of ratios.
pub(in crate::html) const VALUE_DIGITS: usize = 5;
pub(in crate::html) const RATIO_DIGITS: usize = 6;
/// A finite number, rounded; written without a fraction where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Number(f64);

impl Number {
    /// The number with so many digits; nothing where it is not finite.
    pub(crate) fn new(value: f64, digits: usize) -> Option<Self> {
        let text = format!("{value:.*e}", digits.saturating_sub(1));
        let rounded: f64 = text.parse().ok()?;
        rounded.is_finite().then_some(Self(rounded))
    }
}

/// Above this a number is written as it is: beyond it not every whole number has a form.
const WHOLE: f64 = 1e15;

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let size = self.0.abs();
        if size < WHOLE && size.fract() == 0.0 {
            let whole = i64::try_from(to_u64(size)).unwrap_or(i64::MAX);
            serializer.serialize_i64(if self.0 < 0.0 { -whole } else { whole })
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Estimate and the ends of its 95 % interval.
pub(crate) type Interval = (Option<Number>, Option<Number>, Option<Number>);

pub(crate) fn interval(ratio: &Ratio) -> Option<Interval> {
    let digits = RATIO_DIGITS;
    let estimate = Number::new(ratio.estimate, digits)?;
    let ends = words::ci95(ratio);
    let end = |value: Option<f64>| value.and_then(|value| Number::new(value, digits));
    Some((
        Some(estimate),
        end(ends.map(|(low, _)| low)),
        end(ends.map(|(_, high)| high)),
    ))
}

pub(super) fn difference(difference: &Difference) -> Interval {
    let digits = VALUE_DIGITS;
    let end = |value: Option<f64>| value.and_then(|value| Number::new(value, digits));
    (
        Number::new(difference.estimate, digits),
        end(difference.ci95.map(|(low, _)| low)),
        end(difference.ci95.map(|(_, high)| high)),
    )
}

/// A log-ratio as change in hundredths of a percent.
pub(super) fn hundredths_of_percent(log: f64) -> Option<i64> {
    let change = 1e4 * log.exp_m1();
    let whole = i64::try_from(to_u64(change.abs().round())).ok()?;
    change
        .is_finite()
        .then_some(if change < 0.0 { -whole } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, digits: usize) -> Option<String> {
        Number::new(value, digits).map(|number| serde_json::to_string(&number).unwrap())
    }

    #[test]
    fn numbers_keep_their_digits_and_nothing_else() {
        for (value, digits, wanted) in [
            (21_400.000_001, 5, "21400"),
            (0.966_123_456, 6, "0.966123"),
            (-0.0, 4, "0"),
            (-12.0, 4, "-12"),
            (123_456.0, 3, "123000"),
            (1e20, 3, "1e+20"),
        ] {
            assert_eq!(text(value, digits).as_deref(), Some(wanted));
        }
        assert_eq!(text(f64::NAN, 3), None);
        assert_eq!(text(f64::INFINITY, 3), None);
    }

    #[test]
    fn rounds_are_hundredths_of_a_percent() {
        assert_eq!(hundredths_of_percent(0.966_f64.ln()), Some(-340));
        assert_eq!(hundredths_of_percent(1.5_f64.ln()), Some(5000));
        assert_eq!(hundredths_of_percent(f64::NAN), None);
    }
}
