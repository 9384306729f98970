//! What a ratio depends on: the same cell under another condition.

use crate::comparison::{CellComparison, Difference, Metric, Ratio};
use crate::study::ratio;
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
    /// Whether that differs from 1 at the level of its 95 % interval; absent with too few blocks.
    pub depends: Option<bool>,
}

/// What another condition does to the throughput of a cell; `None` where it was not measured in both.
///
/// Source: Welch's interval of the difference of the block log-ratios of two runs, each with its own load.
///         It knows restarts and not loads. The cell was measured again because it had changed, so its own
///         ratio is a little too far from 1 on average (docs/measuring.md#confirmation).
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
    let enough = here.blocks.len().min(there.blocks.len()) >= MIN_BLOCKS;
    Some(Sensitive {
        varied,
        throughput: there.ratio,
        difference_us: there.difference_us,
        depends: against
            .ci95
            .filter(|_| enough && other.says_something())
            .map(|(low, high)| low > 1.0 || high < 1.0),
        against,
    })
}
