//! What is known of where the cost changed.

use crate::sequence::{Interval, Sequence, Wish};

/// A change of the cost that cannot be narrowed down further.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The measured point before it.
    pub before: usize,
    /// The first point that may have made it: the one after `before`.
    pub first: usize,
    /// The last point that may have made it: the first that shows it. The same as `first`, unless points
    /// before it could not be measured.
    pub last: usize,
    /// Natural logarithm of the cost at `last` over that at `before`.
    pub size: f64,
}

/// What was not searched, because its ends differ by less than was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quiet {
    /// Intervals with points that were not measured.
    pub intervals: usize,
    /// These points. Steps between them that cancel are not seen.
    pub points: usize,
    /// What all small differences come to together, those of neighbours included.
    pub together: f64,
}

/// All that is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Natural logarithm of the cost at the end over that at the begin.
    pub whole: f64,
    /// Steps that are found, the largest first.
    pub steps: Vec<Step>,
    /// Intervals that differ and can be narrowed down further, in order.
    pub open: Vec<Interval>,
    /// What was left out.
    pub quiet: Quiet,
}

/// What is known of where the cost changed.
#[must_use]
pub fn found(sequence: &Sequence<'_>, wish: &Wish) -> Found {
    let mut found = Found::default();
    for interval in sequence.intervals() {
        found.whole += interval.step;
        if interval.step.abs() < wish.min {
            found.quiet.intervals += usize::from(interval.unknown > 0);
            found.quiet.points += interval.unknown;
            found.quiet.together += interval.step;
        } else if interval.unknown > 0 {
            found.open.push(interval);
        } else {
            found.steps.push(Step {
                before: interval.from,
                first: interval.from + 1,
                last: interval.to,
                size: interval.step,
            });
        }
    }
    found
        .steps
        .sort_by(|a, b| b.size.abs().total_cmp(&a.size.abs()));
    found
}
