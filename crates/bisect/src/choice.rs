//! Which point is measured next.

use crate::found::found;
use crate::sequence::{Interval, Known, Sequence, Wish};

/// Bits that a cheaper point may say less than the best one.
const BITS_FOR_A_CHEAPER_POINT: f64 = 0.03;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// One end of the sequence is not measured, and is measured first.
    End(usize),
    /// This point.
    Measure(Choice),
    /// The ends do not differ by as much as is asked for.
    NothingDiffers,
    /// Every difference lies between neighbours, or as many steps as wanted are found.
    Done,
}

/// A point that halves an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The point.
    pub point: usize,
    /// The interval that it halves.
    pub interval: Interval,
}

/// What to do now, from what is known.
#[must_use]
pub fn next(sequence: &Sequence<'_>, wish: &Wish) -> Next {
    let last = sequence.points.len().saturating_sub(1);
    for end in [0, last] {
        if sequence.known(end) == Known::Unknown {
            return Next::End(end);
        }
    }
    let found = found(sequence, wish);
    if found.whole.abs() < wish.min && found.steps.is_empty() && found.open.is_empty() {
        return Next::NothingDiffers;
    }
    // A smaller difference may hold a larger step only if another one cancels it.
    let enough = found.steps.get(wish.steps.saturating_sub(1));
    let least = enough.map_or(0.0, |step| step.size.abs());
    let widest = found.open.iter();
    let widest = widest.max_by(|a, b| a.step.abs().total_cmp(&b.step.abs()));
    let widest = widest.filter(|open| open.step.abs() > least);
    match widest.and_then(|interval| halve(sequence, interval)) {
        Some(choice) => Next::Measure(choice),
        None => Next::Done,
    }
}

/// The point that says most about where the step of an interval is.
fn halve(sequence: &Sequence<'_>, interval: &Interval) -> Option<Choice> {
    Some(Choice {
        point: middle(sequence, (interval.from, interval.to))?,
        interval: *interval,
    })
}

/// The point between two others that says most about where a step is; nothing if none can be measured.
pub(crate) fn middle(sequence: &Sequence<'_>, (from, to): (usize, usize)) -> Option<usize> {
    let inside: Vec<usize> = (from + 1..to).collect();
    let skipped: Vec<usize> = inside
        .iter()
        .copied()
        .filter(|point| sequence.known(*point) == Known::Skipped)
        .collect();
    let mut candidates: Vec<(usize, f64)> = Vec::new();
    let weight = |point: usize| sequence.weight(point);
    let whole: f64 = inside.iter().copied().map(weight).sum::<f64>() + weight(to);
    let mut before = 0.0;
    for point in inside {
        before += weight(point);
        if sequence.known(point) == Known::Unknown {
            candidates.push((point, bits(before / whole)));
        }
    }
    let price = |point: usize| sequence.price(point);
    pick(&candidates, &skipped, to - from, price)
}

/// Of points, each with the bits that measuring it would say, the one to measure: away from those that could
/// not be measured, and the cheapest of those that say nearly as much as the best. `length` is that of the
/// interval they lie in.
pub(crate) fn pick(
    candidates: &[(usize, f64)],
    skipped: &[usize],
    length: usize,
    price: impl Fn(usize) -> f64,
) -> Option<usize> {
    let near = away_from(skipped, candidates, length);
    let best = near.iter().map(|(_, bits)| *bits).fold(0.0, f64::max);
    let good = near
        .into_iter()
        .filter(|(_, bits)| *bits >= best - BITS_FOR_A_CHEAPER_POINT);
    good.min_by(|(a, a_bits), (b, b_bits)| {
        let dearer = price(*a).total_cmp(&price(*b));
        dearer.then(b_bits.total_cmp(a_bits))
    })
    .map(|(point, _)| point)
}

/// The candidates that are far enough from points that could not be measured: at distance 1, then 2, then 4,
/// as their number grows, because what breaks one commit breaks its neighbours too.
fn away_from(skipped: &[usize], candidates: &[(usize, f64)], length: usize) -> Vec<(usize, f64)> {
    let most = (length / 8).max(1);
    let doublings = skipped.len().saturating_sub(1).min(16);
    let mut distance = (1_usize << doublings).min(most);
    loop {
        let far = |point: usize| skipped.iter().all(|one| one.abs_diff(point) >= distance);
        let found: Vec<(usize, f64)> = candidates
            .iter()
            .copied()
            .filter(|(point, _)| far(*point))
            .collect();
        if !found.is_empty() || distance <= 1 {
            return found;
        }
        distance /= 2;
    }
}

/// What the answer to a yes-or-no question says whose "yes" is so likely.
pub(crate) fn bits(yes: f64) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    part(yes) + part(1.0 - yes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Known::{Cost, Skipped, Unknown};

    const WISH: Wish = Wish {
        min: 0.005,
        steps: 3,
    };

    fn open(points: usize) -> Vec<Known> {
        let mut all = vec![Unknown; points];
        all[0] = Cost(0.0);
        all[points - 1] = Cost(0.02);
        all
    }

    fn chosen(sequence: &Sequence<'_>) -> usize {
        match next(sequence, &WISH) {
            Next::Measure(choice) => choice.point,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_ends_come_first_and_then_the_middle() {
        let mut points = vec![Unknown; 9];
        assert_eq!(next(&Sequence::plain(&points), &WISH), Next::End(0));
        points[0] = Cost(0.0);
        assert_eq!(next(&Sequence::plain(&points), &WISH), Next::End(8));
        assert_eq!(chosen(&Sequence::plain(&open(9))), 4);
    }

    #[test]
    fn a_likely_point_moves_the_middle_and_a_cheap_one_is_taken_if_it_says_as_much() {
        let points = open(101);
        let mut weights = vec![1.0; 101];
        weights[80] = 1000.0;
        let steered = Sequence {
            weights: &weights,
            ..Sequence::plain(&points)
        };
        let point = chosen(&steered);
        assert!(point == 79 || point == 80, "{point}");
        let mut prices = vec![1.0; 101];
        prices[46] = 0.0;
        prices[5] = 0.0;
        let priced = Sequence {
            prices: &prices,
            ..Sequence::plain(&points)
        };
        assert_eq!(chosen(&priced), 46);
    }

    #[test]
    fn neighbours_of_skipped_points_are_tried_at_growing_distance() {
        let mut points = open(129);
        let mut tried = Vec::new();
        for _ in 0..5 {
            let point = chosen(&Sequence::plain(&points));
            tried.push(point.abs_diff(64));
            points[point] = Skipped;
        }
        assert_eq!(tried[..2], [0, 1]);
        assert!(tried.is_sorted() && tried[4] >= 8, "{tried:?}");
    }

    #[test]
    fn the_largest_difference_is_halved_first_and_small_ones_are_left() {
        let mut points = open(30);
        points[10] = Cost(0.004);
        points[20] = Cost(0.005);
        let Next::Measure(choice) = next(&Sequence::plain(&points), &WISH) else {
            panic!()
        };
        assert_eq!((choice.interval.from, choice.interval.to), (20, 29));
    }

    #[test]
    fn one_step_is_enough_if_no_larger_difference_is_left() {
        let one = Wish { steps: 1, ..WISH };
        let mut points = open(30);
        points[4] = Cost(0.0);
        points[5] = Cost(0.012);
        assert_eq!(next(&Sequence::plain(&points), &one), Next::Done);
        assert!(matches!(
            next(&Sequence::plain(&points), &WISH),
            Next::Measure(_)
        ));
    }
}
