//! Whether one anchor may follow another: hours in which both were measured.

use crate::difference::Difference;
use crate::hours::kind;
use crate::pair::Pairs;
use deltabench_stats::summary::median;

/// Hours with both that it takes at least.
///
/// Source: the error of a mean over fewer rests on an assumption about hours (`Assumed`) more than on them.
pub const HOURS: usize = 5;

/// What the error of the shift may be at most, as a share of the median error of a point. All points of the
/// new anchor have it in common; a third of theirs makes a difference across the two anchors wider by 5 %.
const SHARE: f64 = 1.0 / 3.0;

/// Hours that are asked for at most: what is not known after so many never will be.
const MOST: usize = 1000;

/// Share by which two errors may differ that are equal but for the digits of a computer.
const ROUNDING: f64 = 1e-9;

/// What the hours with both anchors say in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    /// Hours in which a run has both.
    pub hours: usize,
    /// The new anchor relative to the old one; absent without such an hour.
    pub shift: Option<Difference>,
    /// What its error may be at most; absent where no other version was measured with the old one.
    pub most: Option<f64>,
    /// Hours that are missing, if they are like those so far.
    pub missing: usize,
}

impl Pairs<'_> {
    /// What the runs of a cell with both anchors say.
    ///
    /// Source: docs/trends.md#another-anchor.
    pub fn overlap(&self, series: usize, (old, new): (usize, usize), least: usize) -> Overlap {
        let (hours, shift) = match self.side_by_side(series, old, new) {
            Some((hours, shift)) => (hours, Some(shift)),
            None => (0, None),
        };
        let most = self
            .error_of_a_point(series, old, new)
            .map(|error| error * SHARE);
        let wanted = match (shift, most) {
            (Some(shift), Some(most)) => wanted(hours, shift.error, most),
            _ => least,
        };
        Overlap {
            hours,
            shift,
            most,
            missing: wanted.max(least).saturating_sub(hours),
        }
    }

    /// The median error of the versions that one run each has with an anchor, hours included.
    fn error_of_a_point(&self, series: usize, old: usize, new: usize) -> Option<f64> {
        let mut errors = Vec::new();
        for (_, cell) in self.cells(series).filter(|(_, cell)| cell.base == old) {
            for version in cell.candidates.keys().filter(|version| **version != new) {
                let Some(blocks) = cell.contrast(old, *version).filter(|all| all.len() > 1) else {
                    continue;
                };
                let kind = kind(self.builds, old, *version);
                let known = self
                    .known
                    .learned()
                    .of(series, kind, &[&blocks], self.assumed);
                let mean = known.and_then(|known| known.scatter.mean_over(&[&blocks]).ok());
                errors.extend(mean.map(|mean| mean.error()));
            }
        }
        median(&errors)
    }
}

/// Hours after which an error is small enough that falls with the root of their number.
fn wanted(hours: usize, error: f64, most: f64) -> usize {
    let mut wanted = hours;
    let after = |hours_then: usize| error * (crate::real(hours) / crate::real(hours_then)).sqrt();
    while wanted < MOST && after(wanted) > most * (1.0 + ROUNDING) {
        wanted += 1;
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_three_times_what_it_may_be_takes_nine_times_as_many_hours() {
        assert_eq!(wanted(2, 0.3, 0.1), 18);
        assert_eq!(wanted(7, 0.1, 0.1), 7);
        assert_eq!(wanted(1, 1.0, 1e-9), 1000);
    }
}
