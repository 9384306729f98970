//! The search for one step by time, where every value is noisy and every build has luck of its own.
//!
//! Server i in block b shows `δ·[i ≥ c] + ξ(i) + D(b) + U(i, b)` on the log scale: c is the point that did it
//! and δ what it did; D is what the block does to all; U is noise; ξ is what the layout of a build's code
//! happens to cost, which no number of blocks averages away. All are normal, so the posterior of c is exact.
//!
//! Weights order the builds. An even prior convicts: the suspect and the point before it were both measured.

/// What a step is like before anything is known: N(0, 5 %).
const STEP: f64 = 0.05;

/// The answer is certain enough.
const CERTAIN: f64 = 0.95;

/// A built point that is slow with a probability between this and 1 − this is measured again before another
/// one is built: a block takes a third of the time of a build.
const DOUBTFUL: f64 = 0.05;

/// Blocks of one point at most: then its layout decides, and more blocks say nothing.
const BLOCKS: usize = 12;

/// Points that are built at most, the ends included: a search that needs more is one that layout has lost.
const BUILDS: usize = 25;

/// Points that are measured in a block beside both ends.
const BESIDE: usize = 2;

/// The ends differ if they do so by this many standard errors.
const ENDS: f64 = 5.0;

/// Blocks of the ends at most: what they do not show by then is no step that this search finds.
const BLOCKS_OF_ENDS: usize = 24;

/// How values scatter, as differences of natural logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of the difference of two servers in one block.
    pub pair: f64,
    /// Standard deviation of what the layout of a build does.
    pub layout: f64,
}

/// The servers that were measured together, each with the natural logarithm of its cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimedBlock {
    pub values: Vec<(usize, f64)>,
}

/// Points in order of time, the base first, and what was measured of them.
#[derive(Debug, Clone, Copy)]
pub struct Timed<'a> {
    /// How many points there are.
    pub points: usize,
    pub blocks: &'a [TimedBlock],
    /// How likely each point is to have made the step, in any unit; empty: all the same.
    pub weights: &'a [f64],
    pub noise: Noise,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum NextTimed {
    /// Measure these together, in one block; one of them may have to be built.
    Block(Vec<usize>),
    /// Both ends cost the same, as far as that was measured.
    NothingDiffers,
    /// The likeliest point, and how sure that is. Below 95 % builds differ by too much for no reason.
    Answer { point: usize, probability: f64 },
}

impl Timed<'_> {
    /// What to do now, from what is known.
    #[must_use]
    pub fn next(&self) -> NextTimed {
        let last = self.points.saturating_sub(1);
        match self.ends() {
            Ends::Open => return NextTimed::Block(vec![0, last]),
            Ends::Same => return NextTimed::NothingDiffers,
            Ends::Differ => {}
        }
        let likelihood = self.likelihood();
        let even = posterior(&likelihood, |_| 1.0);
        let best = (1..self.points).max_by(|a, b| at(&even, *a).total_cmp(&at(&even, *b)));
        let answer = best.map(|point| (point, at(&even, point)));
        if let Some((point, probability)) = answer.filter(|(_, sure)| *sure >= CERTAIN) {
            return NextTimed::Answer { point, probability };
        }
        let weight = |point: usize| {
            let given = self.weights.get(point).copied();
            given.filter(|weight| *weight > 0.0).unwrap_or(1.0)
        };
        let steering = posterior(&likelihood, weight);
        match self.doubtful(&steering).or_else(|| self.build(&steering)) {
            Some(block) => NextTimed::Block(block),
            None => {
                let (point, probability) = answer.unwrap_or((last, 0.0));
                NextTimed::Answer { point, probability }
            }
        }
    }

    /// The points that were measured, in order.
    fn built(&self) -> Vec<usize> {
        let values = self.blocks.iter().flat_map(|block| &block.values);
        let mut built: Vec<usize> = values.map(|(point, _)| *point).collect();
        built.sort_unstable();
        built.dedup();
        built
    }

    /// The blocks that a point was measured in.
    fn measured(&self, point: usize) -> usize {
        let is_in = |block: &&TimedBlock| block.values.iter().any(|(one, _)| *one == point);
        self.blocks.iter().filter(is_in).count()
    }

    fn ends(&self) -> Ends {
        let last = self.points.saturating_sub(1);
        let value = |block: &TimedBlock, point: usize| {
            let found = block.values.iter().find(|(one, _)| *one == point);
            found.map(|(_, value)| *value)
        };
        let both = |block: &TimedBlock| Some(value(block, last)? - value(block, 0)?);
        let differences: Vec<f64> = self.blocks.iter().filter_map(both).collect();
        let many = number(differences.len());
        let mean = differences.iter().sum::<f64>() / many.max(1.0);
        let error = self.noise.pair / many.max(1.0).sqrt();
        if differences.len() >= 2 && mean.abs() >= ENDS * error {
            Ends::Differ
        } else if differences.len() < BLOCKS_OF_ENDS {
            Ends::Open
        } else {
            Ends::Same
        }
    }

    /// The block for the built points that may be on either side of the step; nothing if none is in doubt.
    fn doubtful(&self, posterior: &[f64]) -> Option<Vec<usize>> {
        let last = self.points.saturating_sub(1);
        let mut before = 0.0;
        let mut found: Vec<(usize, f64)> = Vec::new();
        for point in 1..last {
            before += at(posterior, point);
            let doubt = before.min(1.0 - before);
            let blocks = self.measured(point);
            if doubt > DOUBTFUL && (1..BLOCKS).contains(&blocks) {
                found.push((point, doubt));
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(BESIDE);
        (!found.is_empty()).then(|| self.beside(found.into_iter().map(|(point, _)| point)))
    }

    /// The block with the point that splits the posterior best, of those that were not built.
    fn build(&self, posterior: &[f64]) -> Option<Vec<usize>> {
        if self.built().len() >= BUILDS {
            return None;
        }
        let mut before = 0.0;
        let mut best: Option<(usize, f64)> = None;
        for point in 1..self.points.saturating_sub(1) {
            before += at(posterior, point);
            let split = (before - 0.5).abs();
            let is_better = best.is_none_or(|(_, known)| split < known);
            // A split off of nothing says nothing.
            if is_better && self.measured(point) == 0 && split < 0.5 - 1e-6 {
                best = Some((point, split));
            }
        }
        best.map(|(point, _)| self.beside(std::iter::once(point)))
    }

    /// These points with both ends.
    fn beside(&self, points: impl Iterator<Item = usize>) -> Vec<usize> {
        let last = self.points.saturating_sub(1);
        [0].into_iter().chain(points).chain([last]).collect()
    }

    /// The logarithm of the likelihood that the step is at each point; the first one's means nothing.
    fn likelihood(&self) -> Vec<f64> {
        let built = self.built();
        let model = Model::of(self, &built);
        // It is the same for all points between two that were measured.
        let of_gap: Vec<f64> = (0..built.len())
            .map(|first_slow| model.likelihood(first_slow))
            .collect();
        let gap = |point: usize| built.partition_point(|one| *one < point);
        (0..self.points)
            .map(|point| of_gap.get(gap(point)).copied().unwrap_or(f64::NEG_INFINITY))
            .collect()
    }
}

/// Whether the ends differ.
enum Ends {
    Open,
    Same,
    Differ,
}

/// The built points as one normal variable: what they cost, without the step.
struct Model {
    /// M h / τ².
    mean: Vec<f64>,
    /// M / τ².
    shrink: Vec<Vec<f64>>,
    /// τ².
    layout: f64,
}

impl Model {
    /// With A = Σ (I − 11ᵀ/k)/(σ²/2) and h = Σ (y − ȳ)/(σ²/2) over the k servers of each block,
    /// M = (A + I/τ²)⁻¹.
    fn of(timed: &Timed<'_>, built: &[usize]) -> Self {
        let many = built.len();
        let noise = timed.noise.pair.powi(2) / 2.0;
        // Without any layout luck the matrix would have no inverse.
        let layout = timed.noise.layout.max(timed.noise.pair / 100.0).powi(2);
        let mut precision = vec![vec![0.0; many]; many];
        let mut right = vec![0.0; many];
        for (place, row) in precision.iter_mut().enumerate() {
            add(row, place, 1.0 / layout);
        }
        for block in timed.blocks {
            let k = number(block.values.len()).max(1.0);
            let mean = block.values.iter().map(|(_, value)| value).sum::<f64>() / k;
            let place = |point: usize| built.partition_point(|one| *one < point);
            for (one, value) in &block.values {
                add(&mut right, place(*one), (value - mean) / noise);
                let Some(row) = precision.get_mut(place(*one)) else {
                    continue;
                };
                for (other, _) in &block.values {
                    let own = if one == other { 1.0 } else { 0.0 };
                    add(row, place(*other), (own - 1.0 / k) / noise);
                }
            }
        }
        let inverse = inverse(precision);
        let mean = inverse.iter().map(|row| dot(row, &right) / layout);
        Self {
            mean: mean.collect(),
            shrink: inverse
                .iter()
                .map(|row| row.iter().map(|one| one / layout).collect())
                .collect(),
            layout,
        }
    }

    /// ½ B²/P − ½ log P, where B and P are what the data say of δ if the built points from this one on are
    /// slow.
    fn likelihood(&self, first_slow: usize) -> f64 {
        let slow = |values: &[f64]| values.iter().skip(first_slow).sum::<f64>();
        let many = number(self.mean.len().saturating_sub(first_slow));
        let kept: f64 = self
            .shrink
            .iter()
            .skip(first_slow)
            .map(|row| slow(row))
            .sum();
        let b = slow(&self.mean);
        let p = STEP.powi(-2) + (many - kept) / self.layout;
        0.5 * (b * b / p - p.ln())
    }
}

/// Probabilities of points from the logarithms of their likelihoods and a prior in any unit.
fn posterior(likelihood: &[f64], prior: impl Fn(usize) -> f64) -> Vec<f64> {
    let highest = likelihood.iter().skip(1).copied().fold(f64::MIN, f64::max);
    let of = |(point, log): (usize, &f64)| match point {
        0 => 0.0,
        _ => (log - highest).exp() * prior(point),
    };
    let all: Vec<f64> = likelihood.iter().enumerate().map(of).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter()
        .map(|one| one / sum.max(f64::MIN_POSITIVE))
        .collect()
}

/// The inverse of a symmetric matrix that has one, by elimination: pivots on the diagonal are above 0.
fn inverse(mut left: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let many = left.len();
    let unit = |row: usize| {
        (0..many)
            .map(|column| if row == column { 1.0 } else { 0.0 })
            .collect()
    };
    let mut right: Vec<Vec<f64>> = (0..many).map(unit).collect();
    for column in 0..many {
        let pivot = left.get(column).map_or(1.0, |row| at(row, column));
        for matrix in [&mut left, &mut right] {
            for value in matrix.get_mut(column).into_iter().flatten() {
                *value /= pivot;
            }
        }
        let own = (left.get(column).cloned(), right.get(column).cloned());
        let (Some(own_left), Some(own_right)) = own else {
            continue;
        };
        for row in (0..many).filter(|row| *row != column) {
            let factor = left.get(row).map_or(0.0, |row| at(row, column));
            for (matrix, own) in [(&mut left, &own_left), (&mut right, &own_right)] {
                let values = matrix.get_mut(row).into_iter().flatten();
                for (value, own) in values.zip(own) {
                    *value -= factor * own;
                }
            }
        }
    }
    right
}

fn at(values: &[f64], place: usize) -> f64 {
    values.get(place).copied().unwrap_or(0.0)
}

fn add(values: &mut [f64], place: usize, more: f64) {
    if let Some(value) = values.get_mut(place) {
        *value += more;
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: usize = 301;
    const RUNS: u64 = 50;
    const PAIR: f64 = 0.0044;

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

    /// How a search ended, whether that is right, and the builds that it took.
    struct Searched {
        answer: Option<(bool, f64)>,
        builds: usize,
    }

    fn search(seed: u64, step: f64, layout: f64, weights: &[f64]) -> Searched {
        let mut draw = Draw(seed);
        let culprit = loop {
            let point = (1..POINTS).find(|_| draw.even() < 1.0 / number(POINTS));
            if let Some(point) = point {
                break point;
            }
        };
        let luck: Vec<f64> = (0..POINTS).map(|_| layout * draw.normal()).collect();
        let noise = Noise { pair: PAIR, layout };
        let mut blocks: Vec<TimedBlock> = Vec::new();
        for _ in 0..400 {
            let timed = Timed {
                points: POINTS,
                blocks: &blocks,
                weights,
                noise,
            };
            let answer = match timed.next() {
                NextTimed::Block(points) => {
                    let drift = draw.normal();
                    let mut value = |point: usize| {
                        let slow = if point >= culprit { step } else { 0.0 };
                        slow + luck[point] + drift + draw.normal() * PAIR / 2f64.sqrt()
                    };
                    let values = points.into_iter().map(|point| (point, value(point)));
                    blocks.push(TimedBlock {
                        values: values.collect(),
                    });
                    continue;
                }
                NextTimed::NothingDiffers => None,
                NextTimed::Answer { point, probability } => Some((point == culprit, probability)),
            };
            return Searched {
                answer,
                builds: timed.built().len() - 2,
            };
        }
        panic!("no end, seed {seed}");
    }

    /// Of 50 searches: those that are right, the sum of the stated probabilities, and builds of one.
    fn line(step: f64, layout: f64) -> (f64, f64, f64) {
        let all: Vec<Searched> = (1..=RUNS)
            .map(|seed| search(seed, step, layout, &[]))
            .collect();
        let answers = all.iter().filter_map(|one| one.answer);
        let right = answers.clone().filter(|(right, _)| *right).count();
        let stated: f64 = answers.map(|(_, stated)| stated).sum();
        let builds: usize = all.iter().map(|one| one.builds).sum();
        (number(right), stated, number(builds) / 50.0)
    }

    #[test]
    fn a_step_of_two_percent_or_more_is_found_though_builds_differ_for_no_reason() {
        for (step, layout) in [(0.02, 0.0), (0.02, 0.002), (0.02, 0.003), (0.05, 0.003)] {
            let (right, stated, builds) = line(step, layout);
            assert!(right >= 49.0, "{step} {layout}: {right} of 50");
            assert!(
                (stated - right).abs() <= 2.0,
                "{step} {layout}: {stated} for {right}"
            );
            assert!(builds < 10.0, "{step} {layout}: {builds} builds");
        }
    }

    #[test]
    fn what_layout_hides_is_stated_as_unsure() {
        let (right, stated, _) = line(0.01, 0.003);
        assert!(right < 40.0, "{right}: it cannot be found by time");
        assert!(right >= stated - 7.0, "{right} of {stated}");
        let (right, stated, _) = line(0.01, 0.0);
        assert!(
            right >= stated - 1.5 && right >= 47.0,
            "{right} of {stated}"
        );
    }

    #[test]
    fn ends_that_cost_the_same_have_no_culprit() {
        for seed in 1..=RUNS {
            let found = search(seed, 0.0, 0.0, &[]);
            assert!(found.answer.is_none() && found.builds == 0, "{seed}");
        }
    }

    #[test]
    fn a_prior_saves_builds_and_a_wrong_one_convicts_nobody() {
        let mut weights = vec![1.0; POINTS];
        for point in (5..POINTS).step_by(40) {
            weights[point] = 80.0;
        }
        let all: Vec<Searched> = (1..=RUNS)
            .map(|seed| search(seed, 0.02, 0.002, &weights))
            .collect();
        let right = |one: &&Searched| one.answer.is_some_and(|(right, _)| right);
        assert!(all.iter().filter(right).count() >= 49);
    }

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![
            vec![4.0, 1.0, 0.5],
            vec![1.0, 3.0, 0.2],
            vec![0.5, 0.2, 2.0],
        ];
        let inverse = inverse(matrix.clone());
        for (place, row) in matrix.iter().enumerate() {
            for column in 0..3 {
                let other: Vec<f64> = inverse.iter().map(|row| row[column]).collect();
                let wanted = if place == column { 1.0 } else { 0.0 };
                assert!((dot(row, &other) - wanted).abs() < 1e-12);
            }
        }
    }
}
