//! All steps of a sequence by time: the largest difference is searched for one step, then what lies before
//! and after that step, as long as it differs.

use crate::found::Step;
use crate::gaussian::Model;
use crate::timed::{Answer, OneStep, Range, Timed};

/// Ranges beside a step that is found differ by this many standard errors, layout included.
/// Source: one false culprit in a thousand ranges; a search looks at some ten.
const DIFFERENT: f64 = 3.3;

/// The ends of the whole sequence differ by this many standard errors, without layout: whether that is all
/// that they differ by, the search says by how sure it is.
const ENDS: f64 = 5.0;

/// Half a 95 % interval, in standard errors.
const HALF_WIDTH: f64 = 1.96;

/// Runs with both ends of a range at most: what they do not show by then is no step that this search finds.
const RUNS_OF_ENDS: usize = 4;

/// A value of a server by itself: so wide that it says nothing.
const WIDE: f64 = 1.0;

/// What is searched.
#[derive(Debug, Clone, Copy)]
pub struct Stairs<'a> {
    pub timed: Timed<'a>,
    /// The smallest step that matters, as a difference of natural logarithms.
    pub min: f64,
    /// So many steps at most, the largest first.
    pub steps: usize,
}

/// A difference of two measured points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    pub from: usize,
    pub to: usize,
    /// Natural logarithm of the cost at `to` over that at `from`.
    pub size: f64,
    /// Its standard error by noise alone.
    pub noise: f64,
    /// Its standard error, with what layout does.
    pub error: f64,
}

/// All differences of measured points, as all runs together tell them.
pub struct Contrasts<'a> {
    timed: &'a Timed<'a>,
    model: Model,
}

impl<'a> Contrasts<'a> {
    /// Of points that were measured in these runs.
    #[must_use]
    pub fn of(timed: &'a Timed<'a>) -> Self {
        let model = Model::of(timed.runs, WIDE);
        Self { timed, model }
    }

    /// The difference of two points; nothing known of them is no difference, and no error.
    #[must_use]
    pub fn between(&self, from: usize, to: usize) -> Contrast {
        let servers = (self.timed.server(from), self.timed.server(to));
        let known = self.model.contrast(servers.0, servers.1);
        let (size, noise) = known.unwrap_or((0.0, f64::INFINITY));
        let layout = 2.0 * self.timed.layout.powi(2);
        let error = match servers.0 == servers.1 {
            true => 0.0,
            false => (noise.powi(2) + layout).sqrt(),
        };
        Contrast {
            from,
            to,
            size,
            noise,
            error,
        }
    }
}

/// A step that is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedStep {
    pub at: Answer,
    /// The difference of the points around it.
    pub contrast: Contrast,
}

impl TimedStep {
    /// The same as a search by count tells it.
    #[must_use]
    pub fn step(&self) -> Step {
        Step {
            before: self.at.before,
            first: self.at.before + 1,
            last: self.at.last,
            size: self.contrast.size,
        }
    }
}

/// What is known, and what comes next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Climbed {
    /// Steps whose place is certain, in the order in which they were found.
    pub steps: Vec<TimedStep>,
    /// Ranges with a step whose place is not known: what is likeliest, and the whole range.
    pub open: Vec<(Answer, Contrast)>,
    /// Ranges with points inside that do not differ, as far as time can tell.
    pub quiet: Vec<Contrast>,
    /// Points to measure together now; empty if the search is over.
    pub measure: Vec<usize>,
}

/// Whether the ends of a range differ.
enum Ends {
    Differ,
    Same,
    /// More runs may tell.
    Open,
}

impl Stairs<'_> {
    /// The least difference inside the sequence that time tells: what matters, or what layout does to two
    /// builds.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.min.max(DIFFERENT * self.timed.layout * f64::sqrt(2.0))
    }

    /// What is known of all ranges, the one that differs most first.
    #[must_use]
    pub fn climb(&self) -> Climbed {
        let last = self.timed.points.saturating_sub(1);
        let mut climbed = Climbed::default();
        let contrasts = Contrasts::of(&self.timed);
        let mut ranges = vec![contrasts.between(0, last)];
        while let Some(range) = widest(&mut ranges) {
            match self.ends(&range) {
                Ends::Differ if climbed.steps.len() >= self.steps => {
                    let part = Range::new(&self.timed, range.from, range.to);
                    climbed.open.push((part.likeliest(), range));
                }
                _ if climbed.steps.len() >= self.steps => climbed.quiet.push(range),
                Ends::Open if climbed.measure.is_empty() => {
                    climbed.measure =
                        vec![self.timed.server(range.from), self.timed.server(range.to)];
                }
                Ends::Open | Ends::Same if range.size.abs() >= self.least_of(&range) => {
                    climbed.open.push((
                        Range::new(&self.timed, range.from, range.to).likeliest(),
                        range,
                    ));
                }
                Ends::Open | Ends::Same => climbed.quiet.push(range),
                Ends::Differ => {
                    ranges.extend(self.differs(&mut climbed, range, &contrasts));
                }
            }
        }
        climbed
    }

    /// Searches a range that differs for one step; returns what is left beside it.
    fn differs(
        &self,
        climbed: &mut Climbed,
        range: Contrast,
        contrasts: &Contrasts<'_>,
    ) -> Vec<Contrast> {
        let part = Range::new(&self.timed, range.from, range.to);
        let at = match part.next() {
            OneStep::Answer(at) if part.is_certain(&at) => at,
            next => {
                climbed.open.push((part.likeliest(), range));
                if let (OneStep::Measure(points), true) = (next, climbed.measure.is_empty()) {
                    climbed.measure = points;
                }
                return Vec::new();
            }
        };
        climbed.steps.push(TimedStep {
            at,
            contrast: contrasts.between(at.before, at.last),
        });
        let sides = [(range.from, at.before), (at.last, range.to)];
        let sides = sides.into_iter().filter(|(from, to)| from < to);
        sides
            .map(|(from, to)| contrasts.between(from, to))
            .collect()
    }

    fn is_whole(&self, range: &Contrast) -> bool {
        (range.from, range.to) == (0, self.timed.points.saturating_sub(1))
    }

    /// The least difference of a range that is searched.
    fn least_of(&self, range: &Contrast) -> f64 {
        match self.is_whole(range) {
            true => self.min,
            false => self.least(),
        }
    }

    /// Whether the whole sequence has a step by all points that were measured. The first runs told its ends
    /// apart; later ones may not, because the layouts of both ends are luck, and points inside know better.
    fn differs_inside(&self, range: &Contrast) -> bool {
        let part = Range::new(&self.timed, range.from, range.to);
        let step = part.step().filter(|_| self.is_whole(range));
        step.is_some_and(|(size, error)| size.abs() >= self.min && size.abs() >= DIFFERENT * error)
    }

    fn ends(&self, range: &Contrast) -> Ends {
        let size = range.size.abs();
        if self.timed.server(range.from) == self.timed.server(range.to) {
            return Ends::Same;
        }
        let least = self.least_of(range);
        let needed = match self.is_whole(range) {
            true => ENDS * range.noise,
            false => DIFFERENT * range.error,
        };
        if size >= self.min && size >= needed || self.differs_inside(range) {
            return Ends::Differ;
        }
        let runs = [range.from, range.to].map(|end| self.timed.runs_of(end));
        let runs = runs.into_iter().min().unwrap_or(0);
        match size + HALF_WIDTH * range.noise >= least && runs < RUNS_OF_ENDS {
            true => Ends::Open,
            false => Ends::Same,
        }
    }
}

/// Takes the range that differs most.
fn widest(ranges: &mut Vec<Contrast>) -> Option<Contrast> {
    let size = |range: &Contrast| range.size.abs();
    let place = (0..ranges.len()).max_by(|a, b| {
        let (a, b) = (ranges.get(*a).map(size), ranges.get(*b).map(size));
        a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0))
    })?;
    Some(ranges.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian::TimedRun;

    const POINTS: usize = 301;
    /// A run of six blocks, whose pairs scatter by 0.44 % each, on a load of its own (0.2 %).
    const PAIR: f64 = 0.0027;

    /// Numbers drawn from a seed (splitmix64), as normal ones (Box and Muller).
    struct Draw(u64);

    impl Draw {
        fn even(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let top = u32::try_from((z ^ (z >> 31)) >> 32).unwrap();
            (f64::from(top) + 0.5) / 4_294_967_296.0
        }

        fn normal(&mut self) -> f64 {
            let (one, other) = (self.even(), self.even());
            (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
        }
    }

    /// A history: what each step costs, and where it is.
    struct History {
        draw: Draw,
        steps: Vec<(usize, f64)>,
        luck: Vec<f64>,
    }

    impl History {
        fn new(seed: u64, steps: &[f64], layout: f64) -> Self {
            let mut draw = Draw(seed);
            // As likely after any point.
            let mut place = || {
                let many = crate::gaussian::number(POINTS - 1);
                let drawn = draw.even() * many;
                (1..POINTS)
                    .find(|point| crate::gaussian::number(*point) >= drawn)
                    .unwrap()
            };
            let steps = steps.iter().map(|step| (place(), *step)).collect();
            let luck = (0..POINTS).map(|_| layout * draw.normal()).collect();
            Self { draw, steps, luck }
        }

        fn run(&mut self, points: &[usize]) -> TimedRun {
            let drift = self.draw.normal();
            let mut value = |point: usize| {
                let slow = self.steps.iter().filter(|(place, _)| point >= *place);
                let slow: f64 = slow.map(|(_, step)| step).sum();
                slow + self.luck[point] + drift + self.draw.normal() * PAIR / 2f64.sqrt()
            };
            TimedRun {
                values: points.iter().map(|point| (*point, value(*point))).collect(),
                pair: PAIR,
            }
        }
    }

    const PLAIN: Timed<'static> = Timed {
        points: POINTS,
        runs: &[],
        same: &[],
        skipped: &[],
        weights: &[],
        prices: &[],
        layout: 0.003,
    };

    /// How a search ended, and its runs.
    fn search(history: &mut History, timed: &Timed<'_>) -> (Climbed, Vec<TimedRun>) {
        let mut runs: Vec<TimedRun> = Vec::new();
        for _ in 0..100 {
            let stairs = Stairs {
                timed: Timed {
                    runs: &runs,
                    ..*timed
                },
                min: 0.01,
                steps: 3,
            };
            let climbed = stairs.climb();
            if climbed.measure.is_empty() {
                return (climbed, runs);
            }
            let run = history.run(&climbed.measure);
            runs.push(run);
        }
        panic!("no end");
    }

    /// Of 50 histories with one step, all searched with the layout of [`PLAIN`] in the model: the searches
    /// that name a place, those that name the right one and nothing else, the sum of what they state, builds
    /// and runs of one.
    fn line(step: f64, layout: f64, weights: &[f64]) -> (f64, f64, f64, f64, f64) {
        let (mut named, mut right, mut stated, mut builds, mut all) = (0.0, 0.0, 0.0, 0, 0);
        for seed in 1..=50 {
            let mut history = History::new(seed, &[step], layout);
            let (climbed, runs) = search(&mut history, &Timed { weights, ..PLAIN });
            let place = history.steps[0].0;
            if let Some(first) = climbed.steps.first() {
                let is_right = climbed.steps.len() == 1
                    && (first.at.before, first.at.last) == (place - 1, place);
                named += 1.0;
                right += f64::from(u8::from(is_right));
                stated += first.at.probability;
            }
            builds += crate::gaussian::points(&runs).len() - 2;
            all += runs.len();
        }
        let each = |sum: usize| crate::gaussian::number(sum) / 50.0;
        (named, right, stated, each(builds), each(all))
    }

    #[test]
    fn a_step_of_two_percent_or_more_is_found_though_builds_differ_for_no_reason() {
        for (step, layout) in [(0.02, 0.0), (0.02, 0.002), (0.02, 0.003), (0.05, 0.003)] {
            let (named, right, stated, builds, runs) = line(step, layout, &[]);
            println!(
                "{step} {layout}: {named} named, {right} right, {stated:.1}, {builds} builds, {runs} runs"
            );
            assert!(
                named >= 48.0 && right >= named - 1.0,
                "{step} {layout}: {right} of {named}"
            );
            assert!(
                stated - right <= 1.0,
                "{step} {layout}: {stated} for {right}"
            );
            assert!(builds < 10.0, "{step} {layout}: {builds} builds");
        }
    }

    #[test]
    fn what_layout_hides_has_no_culprit() {
        let mut named = 0;
        for seed in 1..=50 {
            let mut history = History::new(seed, &[0.01], 0.003);
            let (climbed, _) = search(&mut history, &PLAIN);
            let place = history.steps[0].0;
            named += climbed
                .steps
                .iter()
                .filter(|step| step.at.last != place)
                .count();
        }
        assert!(named <= 2, "{named} wrong ones of 50");
    }

    #[test]
    fn ends_that_cost_the_same_have_no_culprit() {
        let mut searched = 0;
        for seed in 1..=50 {
            let mut history = History::new(seed, &[], 0.003);
            let (climbed, runs) = search(&mut history, &PLAIN);
            assert!(climbed.steps.is_empty(), "{seed}: {climbed:?}");
            // Two builds differ by 1 % for no reason in 2 of 100 histories.
            searched += u32::from(runs.len() > RUNS_OF_ENDS);
        }
        assert!(searched <= 2, "{searched}");
    }

    #[test]
    fn three_steps_are_named_each_with_its_size() {
        let (mut found, mut wrong, mut held) = (0, 0, 0);
        for seed in 1..=50 {
            let mut history = History::new(seed, &[0.03, 0.03, 0.025], 0.002);
            let (climbed, _) = search(&mut history, &PLAIN);
            for step in &climbed.steps {
                let at = history
                    .steps
                    .iter()
                    .filter(|(place, _)| *place == step.at.last);
                let size: f64 = at.map(|(_, size)| size).sum();
                match size == 0.0 {
                    true => wrong += 1,
                    false => found += 1,
                }
                let error = step.contrast.error * HALF_WIDTH;
                held += i32::from((step.contrast.size - size).abs() <= error);
            }
        }
        println!("{found} found, {wrong} wrong, {held} held");
        assert!(wrong <= 4, "{wrong} wrong of {found}");
        assert!(found >= 120, "{found} of 150");
        assert!(f64::from(held) >= 0.9 * f64::from(found + wrong), "{held}");
    }

    #[test]
    fn a_prior_saves_builds_and_a_wrong_one_convicts_nobody() {
        let mut weights = vec![1.0; POINTS];
        for point in (5..POINTS).step_by(40) {
            weights[point] = 80.0;
        }
        let (_, right, stated, ..) = line(0.02, 0.002, &weights);
        assert!(
            right >= stated - 1.0 && right >= 45.0,
            "{right} of {stated}"
        );
        // Where the prior is right it saves builds.
        let (mut with, mut without) = (0, 0);
        for seed in 1..=20 {
            for (weights, builds) in [(&weights[..], &mut with), (&[], &mut without)] {
                let mut history = History::new(seed, &[0.03], 0.002);
                let place = usize::try_from(seed % 7).unwrap() * 40 + 5;
                history.steps[0].0 = place;
                let (climbed, runs) = search(&mut history, &Timed { weights, ..PLAIN });
                assert!(
                    climbed.steps.iter().all(|step| step.at.last == place),
                    "{seed}"
                );
                *builds += crate::gaussian::points(&runs).len();
            }
        }
        println!("{with} builds with a prior, {without} without");
        assert!(with * 10 < without * 9, "{with} {without}");
    }

    #[test]
    fn a_range_that_was_not_searched_is_no_culprit_though_no_build_is_left() {
        let values: Vec<(usize, f64)> = (0..=40).map(|point| (point, 0.0)).collect();
        let run = TimedRun { values, pair: PAIR };
        let far = TimedRun {
            values: vec![(40, 0.0), (300, 0.06)],
            pair: PAIR,
        };
        let runs = [run, far.clone(), far];
        let timed = Timed {
            runs: &runs,
            ..PLAIN
        };
        let climbed = Stairs {
            timed,
            min: 0.01,
            steps: 3,
        }
        .climb();
        assert!(climbed.steps.is_empty(), "{:?}", climbed.steps);
        assert_eq!(climbed.open.len(), 1);
    }

    #[test]
    fn what_cannot_be_measured_is_never_blamed_alone() {
        for seed in 1..=20 {
            let mut history = History::new(seed, &[0.03], 0.001);
            let place = history.steps[0].0;
            let skipped: Vec<usize> =
                (place.saturating_sub(2).max(1)..(place + 2).min(POINTS - 1)).collect();
            let timed = Timed {
                skipped: &skipped,
                ..PLAIN
            };
            let (climbed, runs) = search(&mut history, &timed);
            let measured = crate::gaussian::points(&runs);
            assert!(skipped.iter().all(|point| !measured.contains(point)));
            let [one] = climbed.steps.as_slice() else {
                panic!("{seed}: {climbed:?}")
            };
            assert!(
                one.at.before < place && place <= one.at.last,
                "{seed}: {one:?}"
            );
        }
    }

    #[test]
    fn between_points_with_one_server_there_is_no_step() {
        // 6 and 8 have the server of the base, 9 is slow: 7 is not looked at.
        let run = TimedRun {
            values: vec![(0, 0.0), (9, 0.05)],
            pair: PAIR,
        };
        let runs = [run.clone(), run];
        let timed = Timed {
            points: 10,
            runs: &runs,
            same: &[(6, 0), (8, 0)],
            ..PLAIN
        };
        let climbed = Stairs {
            timed,
            min: 0.01,
            steps: 1,
        }
        .climb();
        assert_eq!(climbed.measure, Vec::<usize>::new());
        let [one] = climbed.steps.as_slice() else {
            panic!("{climbed:?}")
        };
        assert_eq!((one.at.before, one.at.last), (8, 9));
    }
}
