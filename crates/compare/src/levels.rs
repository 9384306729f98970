//! Levels of the intervals behind verdicts.

use crate::thresholds::{ALPHA_FRESH, LEVEL_DIFFERENT, LEVEL_EQUIVALENT, PRECISION_LEVEL};

/// Levels of the intervals behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    /// Of the interval that must leave out zero to be different.
    pub(crate) different: f64,
    /// Of the interval that must lie within ±δ to be equal.
    pub(crate) equivalent: f64,
    /// Of the interval that is printed as the 95 % one.
    pub(crate) printed: f64,
}

impl Levels {
    /// The number of blocks was fixed before.
    pub(crate) const FIXED: Self = Self {
        different: LEVEL_DIFFERENT,
        equivalent: LEVEL_EQUIVALENT,
        printed: LEVEL_DIFFERENT,
    };

    /// Fresh blocks that follow a detection: "equal" has an error of its own here.
    pub(crate) const FRESH: Self = Self {
        equivalent: 1.0 - 2.0 * ALPHA_FRESH,
        ..Self::FIXED
    };

    /// Measuring stopped at a width: the same share more for each.
    pub(crate) const PRECISION: Self = Self {
        different: PRECISION_LEVEL,
        equivalent: 2.0 * PRECISION_LEVEL - 1.0,
        printed: PRECISION_LEVEL,
    };

    /// Those behind a cell whose 95 % interval is printed at this level.
    pub(crate) fn printing(level: f64) -> Self {
        if level > LEVEL_DIFFERENT {
            Self::PRECISION
        } else {
            Self::FIXED
        }
    }

    /// Level of what is printed as the 90 % interval.
    pub(crate) fn printed_equivalent(&self) -> f64 {
        2.0 * self.printed - 1.0
    }
}

/// A p that stands beside an interval of this level which is printed as the 95 % one: below 5 % exactly if
/// that interval leaves zero out.
pub(crate) fn scaled(p: f64, printed: f64) -> f64 {
    (p * scale(printed)).min(1.0)
}

/// How many times larger a p is on that scale.
pub(crate) fn scale(printed: f64) -> f64 {
    (1.0 - LEVEL_DIFFERENT) / (1.0 - printed)
}
