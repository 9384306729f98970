//! Does an interval over few groups hold the truth as often as it says, whatever scatters between them?

use crate::coverage::normal;
use deltabench_stats::between::{difference_between, mean_between};
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const TRIALS: u64 = 4000;
const TRUTH: f64 = -0.03;

/// So many groups of eight values around the truth: sd 1 within, `between` from group to group; each next
/// group `unlike` times as noisy inside.
fn groups(
    random: &mut Xoshiro256PlusPlus,
    number: usize,
    between: f64,
    unlike: f64,
) -> Vec<Vec<f64>> {
    let mut sd = 1.0;
    let mut group = |_| {
        let luck = between * normal(random);
        let values = (0..8).map(|_| TRUTH + luck + sd * normal(random)).collect();
        sd *= unlike;
        values
    };
    (0..number).map(&mut group).collect()
}

fn slices(groups: &[Vec<f64>]) -> Vec<&[f64]> {
    groups.iter().map(Vec::as_slice).collect()
}

/// Not below `level`, as far as the trials can tell.
fn at_least(level: f64, covered: u64) -> bool {
    clopper_pearson(covered, TRIALS, 0.999).high >= level
}

fn share(covered: u64) -> f64 {
    f64::from(u32::try_from(covered).unwrap()) / f64::from(u32::try_from(TRIALS).unwrap())
}

fn percent(covered: u64) -> f64 {
    (1000.0 * share(covered)).round() / 10.0
}

#[test]
fn a_mean_over_groups_holds_the_truth_whatever_scatters_between_them() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(31);
    for number in [2, 3, 5] {
        for between in [0.0, 0.2, 0.5, 1.0, 3.0] {
            for unlike in [1.0, 2.0] {
                let (mut ours, mut ninety, mut plain, mut inside) = (0, 0, 0, 0);
                for _ in 0..TRIALS {
                    let groups = groups(&mut random, number, between, unlike);
                    let found = mean_between(&slices(&groups)).unwrap();
                    ours += u64::from(found.interval(0.95, 0.95).contains(TRUTH));
                    ninety += u64::from(found.interval(0.90, 0.90).contains(TRUTH));
                    let means: Vec<f64> = groups.iter().map(|g| mean(g).unwrap()).collect();
                    plain += u64::from(t_interval(&means, 0.95).unwrap().contains(TRUTH));
                    let all = t_interval(&groups.concat(), 0.95).unwrap();
                    inside += u64::from(all.contains(TRUTH));
                }
                println!(
                    "R = {number}, between/within {between}, unlike {unlike}: 95 % {} %, 90 % {} %; \
                     t over means alone {} %, all values as one sample {} %",
                    percent(ours),
                    percent(ninety),
                    percent(plain),
                    percent(inside)
                );
                assert!(at_least(0.95, ours) && at_least(0.90, ninety));
                if between >= 1.0 && unlike < 2.0 {
                    assert!((0.93..=0.97).contains(&share(ours)), "{ours}");
                }
            }
        }
    }
}

#[test]
fn a_difference_of_groups_holds_the_truth_whatever_scatters_between_them() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(32);
    for (first, second) in [(1, 1), (2, 2), (3, 3), (5, 5), (2, 5), (1, 3)] {
        for between in [0.0, 0.2, 0.5, 1.0, 3.0] {
            if first + second == 2 && between > 0.0 {
                continue;
            }
            let (mut ours, mut ninety) = (0, 0);
            for _ in 0..TRIALS {
                let one = groups(&mut random, first, between, 1.0);
                let two = groups(&mut random, second, between, 1.0);
                let found = difference_between(&slices(&one), &slices(&two)).unwrap();
                ours += u64::from(found.interval(0.95, 0.95).contains(0.0));
                ninety += u64::from(found.interval(0.90, 0.90).contains(0.0));
            }
            println!(
                "{second} against {first}, between/within {between}: 95 % {} %, 90 % {} %",
                percent(ours),
                percent(ninety)
            );
            // Welch on two means against five is a little short; equal numbers are not.
            let stated = if first == second { 0.95 } else { 0.93 };
            assert!(at_least(stated, ours) && at_least(stated - 0.05, ninety));
        }
    }
}
