//! Does the interval of another hour hold what a session in another hour says, as often as it says?

use crate::coverage::normal;
use deltabench_stats::between::{Scatter, mean_between};
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::summary::mean;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const TRIALS: u64 = 4000;
const TRUTH: f64 = -0.013;

/// A session: `blocks` values with sd 1, around what the ratio is in its hour.
fn session(random: &mut Xoshiro256PlusPlus, between: f64, blocks: usize) -> (f64, Vec<f64>) {
    let hour = TRUTH + between * normal(random);
    let values = (0..blocks).map(|_| hour + normal(random)).collect();
    (hour, values)
}

/// Not below `level`, as far as the trials can tell.
fn at_least(level: f64, covered: u64) -> bool {
    clopper_pearson(covered, TRIALS, 0.999).high >= level
}

fn percent(covered: u64) -> f64 {
    let share = f64::from(u32::try_from(covered).unwrap()) / 4000.0;
    (1000.0 * share).round() / 10.0
}

#[test]
fn sessions_foretell_a_further_one_whatever_scatters_between_them() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(41);
    for number in [2, 3, 4, 8] {
        for between in [0.0, 0.2, 0.5, 1.0, 3.0] {
            let (mut figure, mut hour, mut old, mut ninety) = (0, 0, 0, 0);
            for _ in 0..TRIALS {
                let all: Vec<Vec<f64>> = (0..number)
                    .map(|_| session(&mut random, between, 8).1)
                    .collect();
                let groups: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
                let found = mean_between(&groups).unwrap();
                let next = found.next_group().unwrap();
                let (truth, values) = session(&mut random, between, 8);
                let says = mean(&values).unwrap();
                figure += u64::from(next.interval(0.95, 0.95).contains(says));
                ninety += u64::from(next.interval(0.90, 0.90).contains(says));
                hour += u64::from(next.interval(0.95, 0.95).contains(truth));
                old += u64::from(found.interval(0.95, 0.95).contains(says));
            }
            println!(
                "sessions {number}, between/block {between}: a further one's figure {} % (of 90: {} %), its \
                 truth {} %; in the interval of the mean {} %",
                percent(figure),
                percent(ninety),
                percent(hour),
                percent(old)
            );
            assert!(at_least(0.95, figure) && at_least(0.90, ninety) && at_least(0.95, hour));
            if between >= 1.0 {
                assert!((0.93..=0.97).contains(&(percent(figure) / 100.0)));
            }
        }
    }
}

#[test]
fn earlier_pairs_foretell_what_another_hour_says_to_one_session() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
    // Sets of repeated figures, figures of each, blocks of a figure then and blocks now.
    let histories = [
        (1, 2, 8, 8),
        (1, 4, 8, 8),
        (5, 2, 8, 8),
        (3, 4, 8, 24),
        (3, 4, 24, 6),
        (6, 3, 6, 24),
    ];
    for (sets, figures, before, now) in histories {
        for between in [0.0, 0.2, 0.5, 1.0, 3.0] {
            let (mut figure, mut hour, mut own) = (0, 0, 0);
            for _ in 0..TRIALS {
                let made: Vec<Vec<Vec<f64>>> = (0..sets)
                    .map(|_| {
                        let one = |_| session(&mut random, between, before).1;
                        (0..figures).map(one).collect()
                    })
                    .collect();
                let known: Vec<Vec<&[f64]>> = made
                    .iter()
                    .map(|set| set.iter().map(Vec::as_slice).collect())
                    .collect();
                let scatter = Scatter::pooled(&known).unwrap();
                let (_, one) = session(&mut random, between, now);
                let next = scatter.next_group(&one).unwrap().interval(0.95, 0.95);
                let (truth, values) = session(&mut random, between, now);
                let says = mean(&values).unwrap();
                figure += u64::from(next.contains(says));
                hour += u64::from(next.contains(truth));
                let alone = mean_between(&[&one]).unwrap();
                own += u64::from(alone.interval(0.95, 0.95).contains(says));
            }
            println!(
                "{sets} sets of {figures}, blocks {before} then and {now} now, between/block {between}: \
                 another hour's figure {} %, its truth {} %; in this hour's interval {} %",
                percent(figure),
                percent(hour),
                percent(own)
            );
            assert!(at_least(0.95, figure) && at_least(0.95, hour));
        }
    }
}

#[test]
fn what_scatters_is_pooled_over_sets_each_with_a_truth_of_its_own() {
    let set = [vec![0.1, 0.3], vec![0.5, 0.7]];
    let other = [vec![-5.0, -4.8], vec![-5.0, -4.8], vec![-5.0, -4.8]];
    let sets =
        [&set[..], &other[..]].map(|set| set.iter().map(Vec::as_slice).collect::<Vec<&[f64]>>());
    let found = Scatter::pooled(&sets).unwrap();
    assert!((found.df - 3.0).abs() < 1e-12);
    // The first set: means 0.2 and 0.6, variance 0.08, one degree of freedom; the second: none.
    assert!((found.variance - 0.08 / 3.0).abs() < 1e-12);
    // Every group: sd √0.02 of two values, so 0.01 for its mean.
    assert!((found.within - 0.01).abs() < 1e-12);
    assert!((found.between() - (0.08_f64 / 3.0 - 0.01).sqrt()).abs() < 1e-12);
    assert!(Scatter::pooled(&[vec![&set[0][..]]]).is_none());
    let next = found.next_group(&set[0]).unwrap();
    assert!((next.estimate - 0.2).abs() < 1e-12);
    assert!(mean_between(&[&set[0]]).unwrap().next_group().is_none());
}
