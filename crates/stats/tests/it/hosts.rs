//! Does the interval over hosts hold what hosts of their class do, as often as it says?

use crate::coverage::normal;
use deltabench_stats::between::{difference_between, mean_between};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const STUDIES: u32 = 4000;
/// The change that hosts of the class have in the mean, as a log-ratio.
const TRUTH: f64 = -0.02;
/// Deviation between hosts, and of a block on a host.
const BETWEEN: f64 = 0.01;
const BLOCK: f64 = 0.01;
const BLOCKS: usize = 8;

/// Blocks on a host whose own change is this.
fn blocks(random: &mut Xoshiro256PlusPlus, change: f64) -> Vec<f64> {
    (0..BLOCKS)
        .map(|_| change + BLOCK * normal(random))
        .collect()
}

fn share(covered: u32) -> f64 {
    f64::from(covered) / f64::from(STUDIES)
}

#[test]
fn four_hosts_say_what_hosts_of_their_class_do() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(25);
    let mut covered = 0;
    for _ in 0..STUDIES {
        let hosts: Vec<Vec<f64>> = (0..4)
            .map(|_| {
                let change = TRUTH + BETWEEN * normal(&mut random);
                // Two repetitions on each.
                [blocks(&mut random, change), blocks(&mut random, change)].concat()
            })
            .collect();
        let groups: Vec<&[f64]> = hosts.iter().map(Vec::as_slice).collect();
        let found = mean_between(&groups).unwrap();
        covered += u32::from(found.interval(0.95, 0.95).contains(TRUTH));
    }
    let share = share(covered);
    assert!((0.93..=0.97).contains(&share), "{share}");
}

#[test]
fn parts_on_different_hosts_lose_coverage_that_parts_of_a_lane_keep() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(26);
    let (mut together, mut apart) = (0, 0);
    for _ in 0..STUDIES {
        // Two parts without a difference: on one host its own change cancels, on two it does not.
        let change = BETWEEN * normal(&mut random);
        let other = BETWEEN * normal(&mut random);
        let first = blocks(&mut random, change);
        for (second, covered) in [(change, &mut together), (other, &mut apart)] {
            let second = blocks(&mut random, second);
            let found = difference_between(&[&first], &[&second]).unwrap();
            *covered += u32::from(found.interval(0.95, 0.95).contains(0.0));
        }
    }
    assert!(
        (0.93..=0.97).contains(&share(together)),
        "{}",
        share(together)
    );
    assert!(share(apart) < 0.80, "{}", share(apart));
}
