//! Seeded histories: one step, several, some that cancel, points that cannot be measured.

use deltabench_bisect::{Found, Known, Next, Sequence, Wish, forecast, found, next};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const WISH: Wish = Wish {
    min: 0.005,
    steps: 5,
};

/// Counts of the same binary differ by a few millionths.
const NOISE: f64 = 0.000_02;

struct History {
    /// Where the cost changes, and by how much.
    steps: Vec<(usize, f64)>,
    points: usize,
    broken: Vec<usize>,
    weights: Vec<f64>,
}

impl History {
    fn of(points: usize, steps: &[(usize, f64)]) -> Self {
        Self {
            steps: steps.to_vec(),
            points,
            broken: Vec::new(),
            weights: Vec::new(),
        }
    }

    fn cost(&self, point: usize) -> f64 {
        let made = self.steps.iter().filter(|(at, _)| *at <= point);
        11.0 + made.map(|(_, size)| size).sum::<f64>()
    }

    /// Searches to the end; what was found, and how many points were looked at beside the ends.
    fn search(&self, wish: &Wish, seed: u64) -> (Found, usize) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut known = vec![Known::Unknown; self.points];
        let mut looks = 0;
        loop {
            let sequence = Sequence {
                weights: &self.weights,
                ..Sequence::plain(&known)
            };
            let point = match next(&sequence, wish) {
                Next::End(point) => point,
                Next::Measure(choice) => {
                    looks += 1;
                    assert!(looks < self.points, "it does not end");
                    choice.point
                }
                Next::NothingDiffers | Next::Done => return (found(&sequence, wish), looks),
            };
            let place = known.get_mut(point).unwrap();
            assert_eq!(*place, Known::Unknown, "nothing is measured twice");
            *place = match self.broken.contains(&point) {
                true => Known::Skipped,
                false => Known::Cost(self.cost(point) + random.random_range(-NOISE..NOISE)),
            };
        }
    }
}

fn places(found: &Found) -> Vec<(usize, usize)> {
    let mut places: Vec<_> = found
        .steps
        .iter()
        .map(|one| (one.first, one.last))
        .collect();
    places.sort_unstable();
    places
}

#[test]
fn one_step_is_found_wherever_it_is_in_as_few_looks_as_its_place_has_bits() {
    for points in [2, 3, 4, 7, 41, 300] {
        for at in 1..points {
            let (found, looks) = History::of(points, &[(at, 0.02)]).search(&WISH, 7);
            assert_eq!(places(&found), [(at, at)], "of {points}");
            assert!((found.steps[0].size - 0.02).abs() < 3.0 * NOISE);
            assert!(1 << looks <= 2 * points, "{looks} of {points}");
            assert!(found.open.is_empty());
        }
    }
}

#[test]
fn an_improvement_is_found_like_a_regression() {
    let (found, _) = History::of(300, &[(123, -0.03)]).search(&WISH, 7);
    assert_eq!(places(&found), [(123, 123)]);
    assert!(found.steps[0].size < 0.0 && found.whole < 0.0);
}

#[test]
fn without_a_change_only_the_ends_are_measured() {
    let (found, looks) = History::of(300, &[]).search(&WISH, 7);
    assert_eq!((found.steps.len(), found.open.len(), looks), (0, 0, 0));
    assert_eq!(found.quiet.points, 298);
    let (found, looks) = History::of(2, &[]).search(&WISH, 7);
    assert_eq!((found.steps.len(), looks, found.quiet.points), (0, 0, 0));
}

#[test]
fn all_steps_of_a_stair_are_found_with_their_sizes_and_the_largest_comes_first() {
    let stair = [(40, 0.01), (41, 0.03), (170, 0.008), (290, 0.02)];
    let (found, looks) = History::of(300, &stair).search(&WISH, 7);
    let sizes: Vec<usize> = found.steps.iter().map(|one| one.last).collect();
    assert_eq!(sizes, [41, 290, 40, 170]);
    assert!(found.quiet.together.abs() < 20.0 * NOISE);
    let foreseen = forecast(&Sequence::plain(&vec![Known::Unknown; 300]), 4);
    assert!(looks <= foreseen.all + 2, "{looks} looks, {foreseen:?}");
}

#[test]
fn the_largest_of_several_is_found_if_only_one_is_asked_for() {
    let one = Wish { steps: 1, ..WISH };
    for seed in 0..50 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (small, large) = (random.random_range(1..300), random.random_range(1..300));
        if small == large {
            continue;
        }
        let history = History::of(300, &[(small, 0.008), (large, 0.02)]);
        let (found, looks) = history.search(&one, seed);
        assert_eq!(found.steps[0].last, large);
        assert!(looks <= 10, "{looks}");
    }
}

#[test]
fn steps_below_the_smallest_are_left_and_told_together() {
    let many: Vec<(usize, f64)> = (1..10).map(|i| (i * 30, 0.002)).collect();
    let (found, _) = History::of(300, &many).search(&WISH, 7);
    assert!(found.steps.is_empty(), "{:?}", found.steps);
    assert!((found.quiet.together - 0.018).abs() < 20.0 * NOISE);
    assert!(found.quiet.intervals > 2);
}

#[test]
fn steps_that_cancel_between_the_ends_are_not_searched_and_the_points_are_told() {
    let (found, looks) = History::of(300, &[(70, 0.03), (200, -0.03)]).search(&WISH, 7);
    assert_eq!((found.steps.len(), looks), (0, 0));
    assert_eq!((found.quiet.intervals, found.quiet.points), (1, 298));
}

#[test]
fn a_step_back_is_found_if_a_look_parts_it_from_what_it_cancels() {
    let (found, _) = History::of(300, &[(60, 0.03), (140, 0.015), (250, -0.012)]).search(&WISH, 7);
    assert_eq!(places(&found), [(60, 60), (140, 140), (250, 250)]);
    assert!((found.whole - 0.033).abs() < 3.0 * NOISE);
}

#[test]
fn points_that_cannot_be_measured_are_never_blamed() {
    for at in 1..100 {
        let mut history = History::of(101, &[(at, 0.02)]);
        history.broken = (45..60).collect();
        let (found, looks) = history.search(&WISH, 7);
        // Inside the run, or right after it: nobody can say which of them.
        let expected = match at {
            45..=60 => (45, 60),
            at => (at, at),
        };
        assert_eq!(places(&found), [expected], "the step is at {at}");
        assert!(looks <= 22, "{looks} looks for {at}");
    }
}

#[test]
fn scattered_points_that_cannot_be_measured_cost_a_few_looks_and_no_answer() {
    for seed in 0..200 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let at = random.random_range(1..199);
        let mut history = History::of(200, &[(at, 0.02)]);
        history.broken = (1..199).filter(|_| random.random_bool(0.15)).collect();
        let (found, looks) = history.search(&WISH, seed);
        let [(first, last)] = places(&found)[..] else {
            panic!("{found:?}")
        };
        assert!((first..=last).contains(&at), "{at}: {found:?}");
        assert!((first..last).all(|point| history.broken.contains(&point)));
        assert!(looks <= 20, "{looks} looks");
    }
}

#[test]
fn if_nothing_between_the_ends_can_be_measured_the_whole_run_is_the_answer() {
    let mut history = History::of(6, &[(3, 0.02)]);
    history.broken = vec![1, 2, 3, 4];
    let (found, looks) = history.search(&WISH, 7);
    assert_eq!((places(&found), looks), (vec![(1, 5)], 4));
}

#[test]
fn a_prior_saves_looks_when_it_is_right_and_costs_no_answer_when_it_is_wrong() {
    let (mut right, mut plain) = (0, 0);
    for seed in 0..100 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let likely: Vec<usize> = (0..12).map(|_| random.random_range(1..600)).collect();
        let mut weights = vec![1.0; 600];
        for point in &likely {
            weights[*point] = 100.0;
        }
        let of = |at: usize, weights: Vec<f64>| {
            let mut history = History::of(600, &[(at, 0.02)]);
            history.weights = weights;
            let (found, looks) = history.search(&WISH, seed);
            assert_eq!(places(&found), [(at, at)]);
            looks
        };
        right += of(likely[0], weights.clone());
        plain += of(likely[0], Vec::new());
        let wrong = of(random.random_range(1..600), weights);
        assert!(wrong <= 16, "{wrong} looks against the prior");
    }
    assert!(right * 10 < plain * 7, "{right} looks instead of {plain}");
}

#[test]
fn histories_of_any_kind_end_with_steps_that_are_there() {
    for seed in 0..500 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let points = random.random_range(2..60);
        let steps: Vec<(usize, f64)> = (0..random.random_range(0..5))
            .map(|_| {
                (
                    random.random_range(1..points),
                    random.random_range(-0.04..0.04),
                )
            })
            .collect();
        let mut history = History::of(points, &steps);
        history.broken = (1..points - 1)
            .filter(|_| random.random_bool(0.2))
            .collect();
        let (found, _) = history.search(&WISH, seed);
        for step in &found.steps {
            let truth = history.cost(step.last) - history.cost(step.before);
            assert!((truth - step.size).abs() < 3.0 * NOISE, "{seed}: {step:?}");
            let inside = |(at, _): &(usize, f64)| (step.first..=step.last).contains(at);
            assert!(steps.iter().any(inside), "{seed}: {step:?}");
        }
        let told: f64 = found.steps.iter().map(|one| one.size).sum();
        let left: f64 = found.open.iter().map(|one| one.step).sum();
        assert!((found.whole - told - left - found.quiet.together).abs() < 1e-9);
    }
}
