//! The points, and the intervals between those that were measured.

/// What is known of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Known {
    /// Nothing yet.
    Unknown,
    /// The natural logarithm of its cost.
    Cost(f64),
    /// It cannot be measured.
    Skipped,
}

/// The points in order of time, the base first.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// What is known of each point.
    pub points: &'a [Known],
    /// How likely each point is to have changed the cost, in any unit; empty, or too short: all the same.
    /// That of the first point means nothing.
    pub weights: &'a [f64],
    /// What measuring each point costs, in any unit; empty, or too short: all the same.
    pub prices: &'a [f64],
}

/// What lies between two measured points with no measured one between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The measured point before.
    pub from: usize,
    /// The measured point after.
    pub to: usize,
    /// Natural logarithm of the cost at `to` over that at `from`.
    pub step: f64,
    /// Points between them that can be measured and were not.
    pub unknown: usize,
}

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    /// The smallest step that matters, as a difference of natural logarithms.
    pub min: f64,
    /// So many steps at most are searched, the largest first.
    pub steps: usize,
}

impl<'a> Sequence<'a> {
    /// Points of which nothing else is known: all as likely, all as expensive.
    #[must_use]
    pub fn plain(points: &'a [Known]) -> Self {
        Self {
            points,
            weights: &[],
            prices: &[],
        }
    }

    /// All intervals between measured points, in order.
    #[must_use]
    pub fn intervals(&self) -> Vec<Interval> {
        let mut intervals = Vec::new();
        let (mut before, mut unknown) = (None, 0);
        for (point, known) in self.points.iter().enumerate() {
            match *known {
                Known::Unknown => unknown += 1,
                Known::Skipped => {}
                Known::Cost(cost) => {
                    if let Some((from, was)) = before {
                        intervals.push(Interval {
                            from,
                            to: point,
                            step: cost - was,
                            unknown,
                        });
                    }
                    (before, unknown) = (Some((point, cost)), 0);
                }
            }
        }
        intervals
    }

    /// How likely a point is to have changed the cost.
    pub(crate) fn weight(&self, point: usize) -> f64 {
        let given = self.weights.get(point).copied();
        given.filter(|weight| *weight > 0.0).unwrap_or(1.0)
    }

    /// What measuring a point costs.
    pub(crate) fn price(&self, point: usize) -> f64 {
        self.prices.get(point).copied().unwrap_or(1.0)
    }

    pub(crate) fn known(&self, point: usize) -> Known {
        self.points.get(point).copied().unwrap_or(Known::Skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_lie_between_measured_points_and_skipped_points_are_not_counted() {
        use Known::{Cost, Skipped, Unknown};
        let points = [Cost(1.0), Unknown, Skipped, Cost(1.5), Unknown, Unknown];
        let found = Sequence::plain(&points).intervals();
        let [one] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((one.from, one.to, one.unknown), (0, 3, 1));
        assert!((one.step - 0.5).abs() < 1e-12);
    }
}
