//! What a ratio depends on: the same cell under another condition.

use crate::comparison::{CellComparison, Difference, Hours, Metric, Ratio};
use crate::loads::ratio;
use crate::thresholds::{LEVEL_DIFFERENT, MIN_BLOCKS};
use deltabench_model::plan::Varied;
use deltabench_stats::between::{Between, difference_between};

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
    pub depends: Depends,
}

/// Whether a ratio over that of the run differs from 1 by more than loads and hours of one condition do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// It does, and what loads and hours do was measured.
    Yes,
    /// It does if loads and hours do no more than is assumed.
    AsAssumed,
    /// The blocks show no difference, or none that is larger than what loads and hours do, as measured.
    NotShown,
    /// Too few blocks, a condition that nothing can be said of, or a difference that loads and hours may make
    /// if they do what is assumed.
    Unknown,
}

/// What a run of these blocks in another hour may differ by, on the log scale, if the condition does nothing.
fn apart(hours: &Hours, there: &[f64], here: &[f64]) -> Between {
    let known = hours.scatter.as_ref();
    let found = known.and_then(|scatter| scatter.next_like(there, &[here]).ok());
    found.unwrap_or(hours.next)
}

/// What another condition does to the throughput of a cell; `None` where it was not measured in both.
///
/// Each condition is one run with its own load, so what loads and hours do by themselves has to be known from
/// elsewhere: from the sessions or earlier runs that the ratio of another hour is known from
/// ([`crate::comparison::Hours`]). Where an assumption about hosts takes part, the answer says so.
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
    let of_blocks = ratio(centre, found.as_ref(), level.max(LEVEL_DIFFERENT));
    let hours = here.hours.as_ref();
    let another = hours
        .map(|hours| apart(hours, &there.blocks, &here.blocks))
        .map(|apart| ratio(centre, Some(&apart.around(centre)), level));
    let against = match &another {
        Some(another) => of_blocks.outer(another),
        None => of_blocks,
    };
    let enough = here.blocks.len().min(there.blocks.len()) >= MIN_BLOCKS;
    let differs = |ratio: &Ratio| {
        let known = ratio.ci95.filter(|_| enough && other.says_something());
        known.map(|(low, high)| low > 1.0 || high < 1.0)
    };
    let assumed = hours.is_none_or(|hours| hours.assumed);
    let depends = match (differs(&of_blocks), differs(&against)) {
        (Some(true), Some(true)) if !assumed => Depends::Yes,
        (Some(true), Some(true)) if hours.is_some() => Depends::AsAssumed,
        // Blocks show it, and nobody has measured whether hours do as much.
        (Some(true), _) if assumed => Depends::Unknown,
        (None, _) => Depends::Unknown,
        _ => Depends::NotShown,
    };
    Some(Sensitive {
        varied,
        throughput: there.ratio,
        difference_us: there.difference_us,
        depends,
        against,
    })
}
