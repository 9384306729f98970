//! How likely each point is to have changed the cost, from what is known of its source and of what ran.

use crate::gaussian::number;

/// What a point changes in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touches {
    /// A function whose own cost is not the same on both ends.
    Moved,
    /// A function that is in no profile, in a file that holds one that moved: it may be inlined there.
    Near,
    /// A function that runs, and costs the same on both ends.
    Executed,
    /// Anything else that may change what is measured: a header, a default.
    Other,
}

/// Points that share one mass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Moved,
    Executed,
    Other,
}

impl Touches {
    /// The group of a kind, and what one of its points counts there; `near` is the part of a point near what
    /// moved.
    fn part(self, near: f64) -> (Group, f64) {
        match self {
            Self::Moved => (Group::Moved, 1.0),
            Self::Near => (Group::Moved, near),
            Self::Executed => (Group::Executed, 1.0),
            Self::Other => (Group::Other, 1.0),
        }
    }
}

impl Group {
    /// The share of all points of a group together. The last one is a share too, because what is nowhere in a
    /// profile may have done it: a prior says where to look first, and never who did it.
    /// Source: of 2772 commits of a year, 61 changed a function that moved, and all causes that were known
    /// were among these; simulated, such a prior saves a third of the looks, and costs one look if it is
    /// wrong (1.0 of 301 commits on average, 1.5 of 1626, 4 at most).
    fn mass(self) -> f64 {
        match self {
            Self::Moved => 0.70,
            Self::Executed => 0.18,
            Self::Other => 0.12,
        }
    }
}

/// The weight of each point: the mass of its group, shared among its points. Without one that touches what
/// moved or ran, all are the same.
#[must_use]
pub fn weights(points: &[Touches]) -> Vec<f64> {
    let of = |kind: Touches| number(points.iter().filter(|one| **one == kind).count());
    let (moved, near) = (of(Touches::Moved), of(Touches::Near));
    // A third of a point that changes what moved, and all of them a third of all of those. Where there is
    // none of those, an inlined function is what is left.
    let near = if moved > 0.0 {
        (moved / near.max(1.0)).min(1.0) / 3.0
    } else {
        1.0
    };
    let parts: Vec<(Group, f64)> = points.iter().map(|kind| kind.part(near)).collect();
    let whole = |group: Group| -> f64 {
        let own = parts.iter().filter(|(other, _)| *other == group);
        own.map(|(_, part)| part).sum()
    };
    let whole = [Group::Moved, Group::Executed, Group::Other].map(|group| (group, whole(group)));
    let weight = |(group, part): &(Group, f64)| {
        let mut all = whole.iter();
        let own = all.find(|(other, _)| other == group);
        own.map_or(1.0, |(_, whole)| group.mass() * part / whole)
    };
    parts.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Known, Next, Sequence, Wish, next};

    /// Looks until the one step of a history is found.
    fn looks(step: usize, weights: &[f64]) -> usize {
        let cost = |point: usize| Known::Cost(if point >= step { 0.02 } else { 0.0 });
        let mut points = vec![Known::Unknown; weights.len()];
        let mut looks = 0;
        loop {
            let sequence = Sequence {
                weights,
                ..Sequence::plain(&points)
            };
            let wish = Wish {
                min: 0.005,
                steps: 3,
            };
            let point = match next(&sequence, &wish) {
                Next::End(point) => point,
                Next::Measure(choice) => {
                    looks += 1;
                    choice.point
                }
                _ => break,
            };
            points[point] = cost(point);
        }
        let is_found = points[step] == cost(step) && points[step - 1] == cost(step - 1);
        assert!(is_found, "both sides of the step were measured");
        looks
    }

    /// Looks until all of several steps are found, the later ones larger.
    fn looks_of(steps: &[usize], points: usize) -> usize {
        let cost = |point: usize| {
            let sizes = steps.iter().zip([0.02, 0.03, 0.045]);
            Known::Cost(
                sizes
                    .filter(|(step, _)| point >= **step)
                    .map(|(_, size)| size)
                    .sum(),
            )
        };
        let mut known = vec![Known::Unknown; points];
        let wish = Wish {
            min: 0.005,
            steps: 3,
        };
        let mut looks = 0;
        loop {
            match next(&Sequence::plain(&known), &wish) {
                Next::End(point) => known[point] = cost(point),
                Next::Measure(choice) => {
                    looks += 1;
                    known[choice.point] = cost(choice.point);
                }
                _ => return looks,
            }
        }
    }

    /// The mean of the looks, over every step that is at a point of this kind.
    fn mean(points: &[Touches], kind: Touches, weights: &[f64]) -> f64 {
        let steps = (1..points.len()).filter(|step| points[*step] == kind);
        let all: Vec<usize> = steps.map(|step| looks(step, weights)).collect();
        let sum: usize = all.iter().sum();
        f64::from(u32::try_from(sum).unwrap()) / f64::from(u32::try_from(all.len()).unwrap())
    }

    /// Three hundred commits as those of a year are: 7 touch what moved, 30 something beside it, 15 what ran.
    fn history() -> Vec<Touches> {
        let touches = |number: usize| match number {
            number if number % 43 == 11 => Touches::Moved,
            number if number % 10 == 7 => Touches::Near,
            number if number % 17 == 3 => Touches::Executed,
            _ => Touches::Other,
        };
        (0..301).map(touches).collect()
    }

    #[test]
    fn a_prior_that_is_right_saves_a_third_of_the_looks() {
        let history = history();
        let even = vec![1.0; history.len()];
        let steered = weights(&history);
        let without = mean(&history, Touches::Moved, &even);
        let with = mean(&history, Touches::Moved, &steered);
        assert!((8.0..8.8).contains(&without), "{without}");
        assert!(with < without * 0.67, "{with} of {without}");
    }

    #[test]
    fn a_prior_that_is_wrong_finds_the_same_step_a_few_looks_later() {
        let history = history();
        let even = vec![1.0; history.len()];
        let steered = weights(&history);
        let without = mean(&history, Touches::Other, &even);
        let with = mean(&history, Touches::Other, &steered);
        assert!(with < without + 1.5, "{with} for {without}");
        for step in (1..history.len()).filter(|step| history[*step] == Touches::Other) {
            let (with, without) = (looks(step, &steered), looks(step, &even));
            assert!(with <= without + 4, "{step}: {with} for {without}");
        }
    }

    #[test]
    fn an_inlined_culprit_is_found_in_fewer_looks_if_its_file_holds_what_moved() {
        // As the histories of 40 commits of acceptance are: nothing names what moved, two are near it.
        let kinds = |number: usize| match number {
            number if number % 19 == 7 => Touches::Near,
            number if number % 16 == 3 => Touches::Executed,
            _ => Touches::Other,
        };
        let history: Vec<Touches> = (0..38).map(kinds).collect();
        let blind = history.iter().map(|kind| match kind {
            Touches::Near => Touches::Other,
            kind => *kind,
        });
        let blind = weights(&blind.collect::<Vec<_>>());
        let without = mean(&history, Touches::Near, &blind);
        let with = mean(&history, Touches::Near, &weights(&history));
        assert!(with <= without - 2.0, "{with} of {without}");
    }

    #[test]
    fn the_forecast_of_a_steered_search_holds_within_two_looks_in_nine_of_ten() {
        use Touches::{Executed, Moved, Other};
        let few = |number: usize| match number {
            18 => Moved,
            number if number % 5 == 3 => Executed,
            _ => Other,
        };
        // As 60 commits of September 2024 are, as those of a year, and where nothing touches what moved.
        let histories = [
            ((0..38).map(few).collect(), 0.97),
            (history(), 0.88),
            (
                (0..38)
                    .map(|number| if number == 20 { Executed } else { Other })
                    .collect(),
                0.97,
            ),
        ];
        for (points, wanted) in histories {
            let points: Vec<Touches> = points;
            let weights = weights(&points);
            let unknown = vec![Known::Unknown; points.len()];
            let sequence = Sequence {
                weights: &weights,
                ..Sequence::plain(&unknown)
            };
            let forecast = crate::forecast(&sequence, 1).one;
            let holds =
                (1..points.len()).filter(|step| looks(*step, &weights).abs_diff(forecast) <= 2);
            let holds: f64 = holds.map(|step| weights[step]).sum();
            let share = holds / weights[1..].iter().sum::<f64>();
            println!("{forecast} looks: {share:.3}");
            assert!(share >= wanted, "{share} of {} points", points.len());
        }
    }

    #[test]
    fn several_steps_take_about_as_many_looks_as_the_forecast_says() {
        for points in [39, 186] {
            let even = vec![Known::Unknown; points];
            let forecast = crate::forecast(&Sequence::plain(&even), 3).all;
            let steps =
                (0..60).map(|seed| [7, 31, 101].map(|prime| 1 + seed * prime % (points - 1)));
            let all: usize = steps.map(|steps| looks_of(&steps, points)).sum();
            let mean = all / 60;
            println!("{forecast} looks for 3: {mean}");
            assert!(mean.abs_diff(forecast) <= 2, "{mean} for {forecast}");
        }
    }

    #[test]
    fn kinds_share_their_mass_and_one_kind_alone_is_no_prior() {
        use Touches::{Executed, Moved, Near, Other};
        let found = weights(&[Moved, Other, Other, Executed, Moved]);
        let wanted = [0.35, 0.06, 0.06, 0.18, 0.35];
        let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-12;
        assert!(found.iter().zip(&wanted).all(near), "{found:?}");
        let alone = weights(&[Other; 5]);
        assert!(alone.windows(2).all(|pair| near((&pair[0], &pair[1]))));
        let beside = weights(&[Moved, Near, Other, Near, Moved, Moved, Executed]);
        let wanted = [
            0.21 / 1.1,
            0.07 / 1.1,
            0.12,
            0.07 / 1.1,
            0.21 / 1.1,
            0.21 / 1.1,
            0.18,
        ];
        assert!(beside.iter().zip(&wanted).all(near), "{beside:?}");
        let crowd = weights(&[Moved, Near, Near, Near, Near, Near]);
        assert!(
            near((&crowd[0], &0.525)),
            "{crowd:?}: never less than three quarters"
        );
        let inlined = weights(&[Other, Near, Executed, Near]);
        let wanted = [0.12, 0.35, 0.18, 0.35];
        assert!(inlined.iter().zip(&wanted).all(near), "{inlined:?}");
    }
}
