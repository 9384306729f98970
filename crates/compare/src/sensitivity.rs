//! What a ratio depends on: the same cell under another condition.

use crate::comparison::{CellComparison, Difference, Metric, Ratio};
use crate::loads::ratio;
use crate::thresholds::{LEVEL_DIFFERENT, MIN_BLOCKS};
use deltabench_model::plan::Varied;
use deltabench_stats::between::difference_between;

/// A cell and candidate under another condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitive {
    pub varied: Varied,
    /// Throughput there.
    pub throughput: Ratio,
    /// What an operation takes more there, microseconds; absent for an open loop.
    pub difference_us: Option<Difference>,
    /// The ratio there over that of the run itself.
    pub against: Ratio,
    /// Whether that differs from 1 by more than loads and hours of one condition do; absent where that is not
    /// known, and with too few blocks.
    pub depends: Option<bool>,
}

/// What another condition does to the throughput of a cell; `None` where it was not measured in both.
///
/// Each condition is one run with its own load, so what loads and hours do by themselves has to be known from
/// elsewhere: from the sessions or earlier runs that the ratio of another hour is known from
/// ([`crate::comparison::Hours`]). Without those, or where an assumption takes part, two loads cannot say
/// that the ratio depends on the condition, only that they do not show it.
///
/// Source: Welch's interval of the difference of the block log-ratios of two runs, and no end inside that of
///         another hour around the same difference (docs/measuring.md#sessions). The cell was measured again
///         because it had changed, so its own ratio is a little too far from 1 on average
///         (docs/measuring.md#confirmation).
pub fn sensitive(
    own: &CellComparison,
    other: &CellComparison,
    varied: Varied,
) -> Option<Sensitive> {
    let (here, there) = (
        own.metric(Metric::Throughput)?,
        other.metric(Metric::Throughput)?,
    );
    let found = difference_between(&[&here.blocks], &[&there.blocks]).ok();
    let level = own.interval_level.max(other.interval_level);
    let centre = (there.ratio.estimate / here.ratio.estimate).ln();
    let against = ratio(centre, found.as_ref(), level.max(LEVEL_DIFFERENT));
    let measured = here.measured_hours();
    let another = measured.map(|hours| ratio(centre, Some(&hours.apart.around(centre)), level));
    let against = match &another {
        Some(another) => against.outer(another),
        None => against,
    };
    let enough = here.blocks.len().min(there.blocks.len()) >= MIN_BLOCKS;
    Some(Sensitive {
        varied,
        throughput: there.ratio,
        difference_us: there.difference_us,
        depends: against
            .ci95
            .filter(|_| enough && other.says_something())
            .and_then(|(low, high)| match low > 1.0 || high < 1.0 {
                true => another.is_some().then_some(true),
                false => Some(false),
            }),
        against,
    })
}
