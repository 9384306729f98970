//! Levels of the intervals behind verdicts.

use crate::thresholds::{
    ALPHA_FRESH, EARLY_LEVEL, LEVEL_DIFFERENT, LEVEL_EQUIVALENT, PRECISION_LEVEL,
    PRECISION_MIN_BLOCKS, log_delta,
};
use deltabench_stats::Interval;
use deltabench_stats::early::WithinBand;
use deltabench_stats::skewed::SkewedMean;

/// Levels of the intervals behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    /// Of the interval that must leave out zero to be different.
    pub(crate) different: f64,
    /// Of the interval that must lie within ±δ to be equal.
    pub(crate) equivalent: f64,
    /// Of the interval that is printed as the 95 % one.
    pub(crate) printed: f64,
    /// What ends the measurement before the last look: a mean that this held is printed with an interval that
    /// allows for it.
    pub(crate) early: Option<WithinBand>,
}

impl Levels {
    /// The number of blocks was fixed before.
    pub(crate) const FIXED: Self = Self {
        different: LEVEL_DIFFERENT,
        equivalent: LEVEL_EQUIVALENT,
        printed: LEVEL_DIFFERENT,
        early: None,
    };

    /// Fresh blocks that follow a detection: "equal" has an error of its own here.
    pub(crate) const FRESH: Self = Self {
        equivalent: 1.0 - 2.0 * ALPHA_FRESH,
        ..Self::FIXED
    };

    /// Measuring stopped at a width.
    pub(crate) const PRECISION: Self = Self::printing(PRECISION_LEVEL);

    /// Measuring stopped after few blocks.
    pub(crate) const EARLY: Self = Self::printing(EARLY_LEVEL);

    /// Those behind a cell whose 95 % interval is printed at this level: the same share more for each.
    pub(crate) const fn printing(level: f64) -> Self {
        Self {
            different: level,
            equivalent: 2.0 * level - 1.0,
            printed: level,
            early: None,
        }
    }

    /// Those of a stop at a width after so many blocks.
    pub(crate) fn at_width(blocks: usize) -> Self {
        match blocks < PRECISION_MIN_BLOCKS {
            true => Self::EARLY,
            false => Self::PRECISION,
        }
    }

    /// Those of a look after which nothing more is measured of what is equal within ±δ (a share).
    pub(crate) fn ending(self, delta: f64) -> Self {
        let early = Some(WithinBand {
            level: self.equivalent,
            half: log_delta(delta),
        });
        Self { early, ..self }
    }

    /// What is printed as the 95 % interval of a mean.
    pub(crate) fn interval(&self, mean: &SkewedMean) -> Interval {
        match self.early {
            Some(early) => early.interval(mean, self.printed),
            None => mean.interval(self.printed),
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

/// Whether a width is asked of CPU per operation that so many of the blocks have: an agent may be away for
/// one, and servers without an agent have none.
pub(crate) fn is_asked_of_cpu(known: usize, blocks: usize) -> bool {
    known > 0 && 2 * known >= blocks
}
