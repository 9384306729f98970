//! How many points a search will measure.

use crate::choice::middle;
use crate::gaussian::number;
use crate::sequence::Sequence;

/// How many points will be measured beside the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// If there is one step.
    pub one: usize,
    /// If there are as many as are searched.
    pub all: usize,
}

/// A forecast holds if a search takes at most this many looks more or fewer.
const WITHIN: usize = 2;

/// How many points will be measured beside the ends, if all can be and steps are where the weights say.
///
/// For one step: the number that is within two of the looks that the search takes in most cases. For
/// several: how many of all intervals that the search may halve hold at least one of them, on average.
#[must_use]
pub fn forecast(sequence: &Sequence<'_>, steps: usize) -> Looks {
    let halved = Halved::of(sequence);
    let count = halved.each.len();
    let steps = steps.clamp(1, count.max(1));
    let one = usual(&halved.each, rounded_up(halved.looks(1)));
    let all = rounded_up(halved.looks(steps));
    Looks {
        one,
        all: all.min(count.saturating_sub(1)).max(one),
    }
}

/// Everything that the search may halve.
#[derive(Default)]
struct Halved {
    /// For each interval that may be halved: how likely a step is in it.
    shares: Vec<f64>,
    /// For a step at each place: how likely that is, in any unit, and the looks that the search takes to it.
    each: Vec<(f64, usize)>,
}

impl Halved {
    fn of(sequence: &Sequence<'_>) -> Self {
        let last = sequence.points.len().saturating_sub(1);
        let weight = |(from, to): (usize, usize)| {
            (from + 1..=to)
                .map(|point| sequence.weight(point))
                .sum::<f64>()
        };
        let whole = weight((0, last));
        let mut halved = Self::default();
        let mut open = vec![(0, last, 0)];
        while let Some((from, to, looks)) = open.pop() {
            match middle(sequence, (from, to)) {
                Some(point) => {
                    halved.shares.push(weight((from, to)) / whole);
                    open.extend([(from, point, looks + 1), (point, to, looks + 1)]);
                }
                None => {
                    let places = from + 1..=to;
                    let each = places.map(|point| (sequence.weight(point), looks));
                    halved.each.extend(each);
                }
            }
        }
        halved
    }

    /// Looks until all of so many steps are found, on average.
    fn looks(&self, steps: usize) -> f64 {
        let without = |share: &f64| (1.0 - share).max(0.0).powf(number(steps));
        self.shares.iter().map(|share| 1.0 - without(share)).sum()
    }
}

/// The number that most of these searches come near to; of several the one that is nearest to `mean`.
fn usual(each: &[(f64, usize)], mean: usize) -> usize {
    let share = |forecast: usize| {
        let near = each
            .iter()
            .filter(|(_, looks)| looks.abs_diff(forecast) <= WITHIN);
        near.map(|(weight, _)| weight).sum::<f64>()
    };
    let most = each.iter().map(|(_, looks)| *looks).max().unwrap_or(0);
    let best = (0..=most).map(share).fold(0.0, f64::max);
    let good = (0..=most).filter(|forecast| share(*forecast) >= best * (1.0 - 1e-9));
    good.min_by_key(|forecast| forecast.abs_diff(mean))
        .unwrap_or(mean)
}

/// The next whole number from a small one above 0.
fn rounded_up(value: f64) -> usize {
    let mut whole = 0;
    let mut left = value - 1e-9;
    while left > 0.0 {
        whole += 1;
        left -= 1.0;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::Known;

    fn looks(points: usize, steps: usize) -> (usize, usize) {
        let points = vec![Known::Unknown; points];
        let found = forecast(&Sequence::plain(&points), steps);
        (found.one, found.all)
    }

    #[test]
    fn one_step_takes_as_many_looks_as_its_place_has_bits() {
        assert_eq!(looks(301, 1), (9, 9));
        assert_eq!(looks(2, 1), (0, 0));
        assert_eq!(looks(3, 1), (1, 1));
        assert_eq!(looks(1, 1), (0, 0));
    }

    #[test]
    fn several_steps_share_the_first_looks() {
        let (one, all) = looks(1025, 4);
        assert_eq!(one, 10);
        assert!((30..=36).contains(&all), "{all}");
        assert_eq!(looks(5, 9).1, 3, "never more than there are points");
    }

    #[test]
    fn a_prior_saves_looks() {
        let points = vec![Known::Unknown; 1001];
        let mut weights = vec![1.0; 1001];
        weights[1..=20].fill(500.0);
        let steered = Sequence {
            weights: &weights,
            ..Sequence::plain(&points)
        };
        assert!(forecast(&steered, 1).one < forecast(&Sequence::plain(&points), 1).one - 2);
    }
}
