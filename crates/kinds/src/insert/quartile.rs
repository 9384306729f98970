//! What the colours of published tables say.

use deltabench_compare::thresholds::{BAND_HIGH, BAND_LOW};

/// Where an absolute value stands among those of all servers.
///
/// Source: docs/sources/insert-benchmark.md#report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quartile {
    /// In the worst quarter of the range, and more than a fifth away from the best.
    Worst,
    Between,
    /// In the best quarter of the range.
    Best,
    /// The server missed the service level of the step: it has no place.
    Missed,
}

impl Quartile {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worst => "worst-quartile",
            Self::Between => "between",
            Self::Best => "best-quartile",
            Self::Missed => "sla-missed",
        }
    }
}

/// A relative value as published studies colour it; the verdict stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareColour {
    /// At most [`BAND_LOW`]: red.
    Slower,
    Between,
    /// At least [`BAND_HIGH`]: green.
    Faster,
}

impl ShareColour {
    /// The colour of a ratio, candidate / base.
    pub fn of(ratio: f64) -> Self {
        if ratio <= BAND_LOW {
            Self::Slower
        } else if ratio >= BAND_HIGH {
            Self::Faster
        } else {
            Self::Between
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_red_and_green_from_five_percent_on() {
        let of = |ratio| ShareColour::of(ratio);
        assert_eq!(of(0.95), ShareColour::Slower);
        assert_eq!(of(0.951), ShareColour::Between);
        assert_eq!(of(1.049), ShareColour::Between);
        assert_eq!(of(1.05), ShareColour::Faster);
    }
}
