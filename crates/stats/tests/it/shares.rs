//! Do moderated intervals hold the truth, and how many equal parts are called different? On samples that are
//! made up: 300 functions of an operation of 17 µs, 8 blocks, 4700 samples of each side in each.

use crate::coverage::normal;
use deltabench_stats::multiplicity::benjamini_hochberg;
use deltabench_stats::shares::{Moderated, PartDifference, Seen, difference, overdispersion};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const FUNCTIONS: usize = 300;
const BLOCKS: usize = 8;
const SAMPLES: f64 = 4700.0;
const WHOLE: f64 = 17_000.0;
const TRIALS: usize = 150;

/// What is made up.
#[derive(Debug, Clone, Copy)]
struct World {
    /// How many times as much as counting a tenth of the functions scatters.
    excess: f64,
    /// By how much the whole scatters from start to start.
    whole: f64,
    /// Share of functions that take 60 % more on the second side.
    changed: f64,
}

/// Marsaglia & Tsang 2000, mean 1, for a shape of at least 1 or by their boost below it.
fn gamma(random: &mut Xoshiro256PlusPlus, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = (1.0 - random.random::<f64>()).powf(1.0 / shape);
        return gamma(random, shape + 1.0) * (shape + 1.0) / shape * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        let u: f64 = 1.0 - random.random::<f64>();
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v / shape;
        }
    }
}

/// Knuth's for few, the normal limit for many.
fn poisson(random: &mut Xoshiro256PlusPlus, expected: f64) -> f64 {
    if expected > 60.0 {
        return (expected + expected.sqrt() * normal(random))
            .round()
            .max(0.0);
    }
    let (limit, mut product, mut count) = ((-expected).exp(), 1.0, 0.0);
    loop {
        product *= 1.0 - random.random::<f64>();
        if product <= limit {
            return count;
        }
        count += 1.0;
    }
}

struct Function {
    share: f64,
    is_noisy: bool,
    factor: f64,
}

fn functions(random: &mut Xoshiro256PlusPlus, world: World) -> Vec<Function> {
    let weights: Vec<f64> = (0..FUNCTIONS)
        .map(|_| (1.2 * normal(random)).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let one = |weight: f64| Function {
        share: weight / total,
        is_noisy: random.random::<f64>() < 0.1,
        factor: if random.random::<f64>() < world.changed {
            1.6
        } else {
            1.0
        },
    };
    weights.into_iter().map(one).collect()
}

/// Counts of one side of a block.
fn counts(
    random: &mut Xoshiro256PlusPlus,
    functions: &[Function],
    world: World,
    is_second: bool,
) -> Vec<f64> {
    let one = |function: &Function| {
        let factor = if is_second { function.factor } else { 1.0 };
        let mut expected = SAMPLES * function.share * factor;
        if function.is_noisy && world.excess > 1.0 {
            // Counts with φ times the variance of counting.
            expected *= gamma(random, expected / (world.excess - 1.0));
        }
        poisson(random, expected)
    };
    functions.iter().map(one).collect()
}

/// A function with what was found and what is true.
struct Found {
    moderated: Moderated,
    truth: f64,
    is_noisy: bool,
}

/// Functions with 80 samples, and frames that hold several of them.
fn trial(random: &mut Xoshiro256PlusPlus, world: World) -> (Vec<Found>, Vec<Found>) {
    let functions = functions(random, world);
    let mut whole = || WHOLE * (1.0 + world.whole * normal(random));
    let wholes: Vec<(f64, f64)> = (0..BLOCKS).map(|_| (whole(), whole())).collect();
    let growth: f64 = functions.iter().map(|f| f.share * f.factor).sum();
    let blocks: Vec<(Vec<f64>, Vec<f64>)> = (0..BLOCKS)
        .map(|_| {
            let first = counts(random, &functions, world, false);
            (first, counts(random, &functions, world, true))
        })
        .collect();
    let part = |members: &[usize]| -> Option<PartDifference> {
        let hits = |counts: &[f64]| members.iter().map(|&f| counts[f]).sum::<f64>();
        let side = |counts: &[f64], whole| Seen {
            hits: hits(counts),
            samples: counts.iter().sum(),
            whole,
        };
        let pairs: Vec<(Seen, Seen)> = blocks
            .iter()
            .zip(&wholes)
            .map(|((first, second), (one, two))| (side(first, *one), side(second, two * growth)))
            .collect();
        let all: f64 = pairs.iter().map(|(a, b)| a.hits + b.hits).sum();
        (all >= 80.0).then(|| difference(&pairs).unwrap())
    };
    let alone: Vec<(usize, PartDifference)> = (0..FUNCTIONS)
        .filter_map(|f| Some((f, part(&[f])?)))
        .collect();
    let parts: Vec<PartDifference> = alone.iter().map(|(_, part)| *part).collect();
    let phi = overdispersion(&parts);
    let truth = |members: &[usize]| -> f64 {
        let of = |f: &usize| functions[*f].share * (functions[*f].factor - 1.0);
        WHOLE * members.iter().map(of).sum::<f64>()
    };
    let one = |(f, part): (usize, PartDifference)| Found {
        moderated: part.moderated(phi, 0.0),
        truth: truth(&[f]),
        is_noisy: functions[f].is_noisy,
    };
    let frame = |to: usize| {
        let members: Vec<usize> = (0..to).collect();
        Found {
            moderated: part(&members).unwrap().moderated(phi, 0.0),
            truth: truth(&members),
            is_noisy: false,
        }
    };
    let frames = [290, 270, 150, 30].map(frame);
    (alone.into_iter().map(one).collect(), frames.into())
}

fn share(of: usize, all: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap()) / f64::from(u32::try_from(all).unwrap())
}

fn covered<'a>(found: impl Iterator<Item = &'a Found>) -> f64 {
    let (mut held, mut all) = (0, 0);
    for found in found {
        held += usize::from(found.moderated.interval(0.95).contains(found.truth));
        all += 1;
    }
    share(held, all)
}

/// False ones among what is called different, on average.
fn false_share(trials: &[Vec<Found>]) -> f64 {
    let of = |found: &Vec<Found>| {
        let p: Vec<f64> = found.iter().map(|found| found.moderated.p()).collect();
        let called = benjamini_hochberg(&p);
        let called: Vec<&Found> = found
            .iter()
            .zip(called)
            .filter(|(_, p)| *p <= 0.05)
            .map(|(found, _)| found)
            .collect();
        let wrong = called.iter().filter(|found| found.truth.abs() < 1e-9);
        share(wrong.count(), called.len().max(1))
    };
    trials.iter().map(of).sum::<f64>() / share(trials.len(), 1)
}

#[test]
fn intervals_hold_the_truth_and_false_discoveries_are_few() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(22);
    for excess in [1.0, 3.0] {
        for whole in [0.0, 0.02] {
            for changed in [0.0, 0.05] {
                let world = World {
                    excess,
                    whole,
                    changed,
                };
                let (alone, frames): (Vec<_>, Vec<_>) =
                    (0..TRIALS).map(|_| trial(&mut random, world)).unzip();
                let all = covered(alone.iter().flatten());
                let noisy = covered(alone.iter().flatten().filter(|found| found.is_noisy));
                let outer = covered(frames.iter().flatten());
                let wrong = false_share(&alone);
                println!(
                    "{world:?}: {:.1} % of functions held, {:.1} % of those that scatter, {:.1} % of \
                     frames; {:.1} % false discoveries",
                    all * 100.0,
                    noisy * 100.0,
                    outer * 100.0,
                    wrong * 100.0
                );
                assert!((0.93..=0.97).contains(&all), "{world:?}");
                assert!((0.93..=0.97).contains(&outer), "{world:?}");
                assert!(wrong <= 0.05, "{world:?}");
            }
        }
    }
}
