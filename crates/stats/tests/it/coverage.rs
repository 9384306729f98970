//! Does a 95 % interval hold the truth 95 times in 100? Seeded, so it answers the same every time.

use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::{t_interval, t_test_p, welch};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A normal number, Box & Muller 1958.
pub fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Whether a share of `hits` in `trials` is compatible with `expected`, at 99.9 %.
fn compatible(hits: u64, trials: u64, expected: f64) -> bool {
    clopper_pearson(hits, trials, 0.999).contains(expected)
}

#[test]
fn t_intervals_cover_the_mean_as_often_as_they_say() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for (n, level) in [(2, 0.9), (6, 0.95), (8, 0.9), (12, 0.95)] {
        let trials = 2000;
        let covered = (0..trials).filter(|_| {
            let values: Vec<f64> = (0..n).map(|_| -0.03 + 0.01 * normal(&mut random)).collect();
            t_interval(&values, level).unwrap().contains(-0.03)
        });
        let covered = u64::try_from(covered.count()).unwrap();
        assert!(
            compatible(covered, trials, level),
            "{covered} of {trials} with n = {n}, level {level}"
        );
    }
}

#[test]
fn tests_of_nothing_reject_as_often_as_they_say() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let trials = 2000;
    let (mut single, mut double) = (0, 0);
    for _ in 0..trials {
        let a: Vec<f64> = (0..8).map(|_| normal(&mut random)).collect();
        let b: Vec<f64> = (0..11).map(|_| 2.0 * normal(&mut random)).collect();
        single += u64::from(t_test_p(&a).unwrap() < 0.05);
        double += u64::from(welch(&a, &b, 0.95).unwrap().p < 0.05);
    }
    assert!(
        compatible(single, trials, 0.05),
        "one sample: {single} of {trials}"
    );
    assert!(
        compatible(double, trials, 0.05),
        "two samples: {double} of {trials}"
    );
}

#[test]
fn clopper_pearson_covers_at_least_as_often_as_it_says() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    for probability in [0.02, 0.3] {
        let trials = 1000;
        let covered = (0..trials).filter(|_| {
            let hits = (0..60)
                .filter(|_| random.random::<f64>() < probability)
                .count();
            clopper_pearson(u64::try_from(hits).unwrap(), 60, 0.95).contains(probability)
        });
        let covered = u64::try_from(covered.count()).unwrap();
        assert!(
            clopper_pearson(covered, trials, 0.999).high > 0.95,
            "{covered} of {trials}"
        );
    }
}
