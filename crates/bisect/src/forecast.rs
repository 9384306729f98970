//! How many points a search will measure.

use crate::sequence::Sequence;

/// How many points will be measured beside the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// If there is one step.
    pub one: usize,
    /// If there are as many as are searched.
    pub all: usize,
}

/// How many points will be measured beside the ends, if all can be.
///
/// One step of `n` likely places takes as many looks as the entropy of the weights has bits; `k` steps share
/// the first log₂ k of them.
#[must_use]
pub fn forecast(sequence: &Sequence<'_>, steps: usize) -> Looks {
    let places = 1..sequence.points.len();
    let count = places.len();
    let whole: f64 = places.clone().map(|point| sequence.weight(point)).sum();
    let share = |point: usize| sequence.weight(point) / whole;
    let entropy: f64 = places.map(share).map(|p| -p * p.log2()).sum();
    let one = rounded_up(entropy).min(count.saturating_sub(1));
    let steps = steps.clamp(1, count.max(1));
    let shared = steps.ilog2();
    let alone = one.saturating_sub(usize::try_from(shared).unwrap_or(0));
    let all = (steps - 1 + steps * alone).min(count.saturating_sub(1));
    Looks {
        one,
        all: all.max(one),
    }
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
