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
                let found = scatter.mean_over(&[&one]).unwrap();
                let next = found.next_group().unwrap().interval(0.95, 0.95);
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
    let next = found.mean_over(&[&set[0]]).unwrap();
    assert!((next.next_group().unwrap().estimate - 0.2).abs() < 1e-12);
    assert!(mean_between(&[&set[0]]).unwrap().next_group().is_none());
}

/// A lab of eight cells: the sd between hours of a cell is 0.5 % in the median (log-sd 0.5), the error of a
/// run 0.3 % (log-sd 0.4), of twelve blocks. Known is nothing, or four pairs that were each measured twice.
#[test]
fn one_run_and_three_tell_of_the_long_run_and_of_another_hour_by_prior_and_by_history() {
    const LABS: u64 = 400;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut found = [[0_u64; 2]; 4];
    let mut widths = [const { Vec::new() }; 4];
    for _ in 0..LABS {
        let draw = |random: &mut Xoshiro256PlusPlus, middle: f64, sd: f64| {
            middle * (sd * normal(random)).exp()
        };
        let cells: Vec<(f64, f64)> = { 0..8 }
            .map(|_| (draw(&mut random, 0.5, 0.5), draw(&mut random, 0.3, 0.4)))
            .collect();
        let one = |random: &mut Xoshiro256PlusPlus, (tau, error): (f64, f64)| -> Vec<f64> {
            let hour = tau * normal(random);
            let block = error * 12.0_f64.sqrt();
            (0..12).map(|_| hour + block * normal(random)).collect()
        };
        let twice =
            |random: &mut Xoshiro256PlusPlus, cell| vec![one(random, cell), one(random, cell)];
        let history: Vec<Vec<Vec<Vec<f64>>>> = { cells.iter() }
            .map(|cell| (0..4).map(|_| twice(&mut random, *cell)).collect())
            .collect();
        let of = |sets: &[Vec<Vec<f64>>]| {
            let sets = sets
                .iter()
                .map(|set| set.iter().map(Vec::as_slice).collect());
            Scatter::pooled(&sets.collect::<Vec<Vec<&[f64]>>>())
        };
        let known: Vec<Scatter> = history.iter().map(|cell| of(cell).unwrap()).collect();
        for (at, (cell, own)) in std::iter::zip(&cells, &known).enumerate() {
            let others = [&known[..at], &known[at + 1..]].concat();
            for (number, rows) in [(1, [0, 1]), (3, [2, 3])] {
                let runs: Vec<Vec<f64>> = (0..number).map(|_| one(&mut random, *cell)).collect();
                let groups: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
                let assumed = Scatter::assumed(0.5, 4.0, &groups).unwrap();
                let again = Scatter::pooled(std::slice::from_ref(&groups));
                let prior = again.map_or(assumed, |again| again.towards(&assumed));
                let host = own.towards(&Scatter::prior(&others).unwrap());
                let host = again.map_or(host, |again| again.towards(&host));
                let says = mean(&one(&mut random, *cell)).unwrap();
                for (row, scatter) in std::iter::zip(rows, [prior, host]) {
                    let long = scatter.mean_over(&groups).unwrap();
                    let next = long.next_group().unwrap().interval(0.95, 0.95);
                    let long = long.interval(0.95, 0.95);
                    found[row][0] += u64::from(long.contains(0.0));
                    found[row][1] += u64::from(next.contains(says));
                    widths[row].push(long.half_width());
                }
            }
        }
    }
    let names = [
        "one run, prior",
        "one run, host",
        "three runs, prior",
        "three runs, host",
    ];
    // Half-width and coverage of the long run, as another program found them.
    let expected = [(1.60, 0.96), (1.30, 0.94), (0.82, 0.96), (0.75, 0.94)];
    for (row, name) in names.iter().enumerate() {
        let [long, next] = found[row].map(|held| {
            f64::from(u32::try_from(held).unwrap()) / f64::from(u32::try_from(8 * LABS).unwrap())
        });
        widths[row].sort_by(f64::total_cmp);
        let half = widths[row][widths[row].len() / 2];
        println!("{name}: half-width {half:.2}, long run {long:.3}, another hour {next:.3}");
        let (width, share) = expected[row];
        assert!((half / width - 1.0).abs() < 0.06, "{name}: {half}");
        assert!((long - share).abs() < 0.015, "{name}: {long}");
        assert!((0.92..=0.97).contains(&next), "{name}: {next}");
    }
}

/// Of this variance of a group's mean, so much of it within.
fn scatter(variance: f64, within: f64, df: f64) -> Scatter {
    Scatter {
        variance,
        within,
        df,
    }
}

#[test]
fn what_is_between_groups_is_pooled_over_cells_of_unlike_precision() {
    // The same sd between groups in all: 0.5.
    let cells = [
        scatter(0.26, 0.01, 4.0),
        scatter(0.26, 0.01, 4.0),
        scatter(4.25, 4.0, 4.0),
    ];
    let prior = Scatter::prior(&cells).unwrap();
    assert_eq!(prior.within.to_bits(), 0.0_f64.to_bits());
    assert!((0.4..0.7).contains(&prior.between()), "{prior:?}");
    for cell in cells {
        let found = cell.towards(&prior);
        assert!((0.4..0.7).contains(&found.between()), "{found:?}");
        assert_eq!(found.within.to_bits(), cell.within.to_bits());
    }
    // By the precise ones: a further imprecise one tells hardly anything, whatever it found.
    for far in [2.0, 8.0] {
        let more = [cells[0], cells[1], cells[2], scatter(far, 4.0, 4.0)];
        let other = Scatter::prior(&more).unwrap();
        let moved = other.between() / prior.between();
        assert!((0.8..1.25).contains(&moved), "{moved}");
    }
    // Nothing is between where blocks explain all.
    let none = [1.0, 0.5, 2.0].map(|within| scatter(within / 3.0, within, 6.0));
    assert!(Scatter::prior(&none).unwrap().between() < 1e-9);
}

#[test]
fn a_prior_is_worth_no_more_than_what_is_behind_it() {
    let prior = |df| Scatter::prior(&[scatter(1.0, 0.0, df); 3]).unwrap();
    for df in [1.0, 4.0, 10.0] {
        let found = prior(df);
        assert!((found.df - 3.0 * df).abs() < 1e-9, "{found:?}");
    }
    assert!((prior(40.0).df - 60.0).abs() < 1e-9);
    // Two that are too imprecise to say anything of it.
    let mixed = [
        scatter(1.0, 0.1, 2.0),
        scatter(90.0, 90.0, 30.0),
        scatter(95.0, 90.0, 30.0),
    ];
    let found = Scatter::prior(&mixed).unwrap();
    assert!(found.df < 4.0, "{found:?}");
}

/// Labs of eight cells of which four are 20 times as precise as the others: another hour holds in both kinds.
#[test]
fn another_hour_holds_for_cells_of_unlike_precision() {
    const LABS: u64 = 500;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    let errors = [0.1, 0.1, 0.1, 0.1, 2.0, 2.0, 2.0, 2.0];
    let mut held = [0_u64; 2];
    for _ in 0..LABS {
        let one = |random: &mut Xoshiro256PlusPlus, error: f64| -> Vec<f64> {
            let (hour, block) = (0.5 * normal(random), error * 12.0_f64.sqrt());
            (0..12).map(|_| hour + block * normal(random)).collect()
        };
        let known = errors.map(|error| {
            let pair = [one(&mut random, error), one(&mut random, error)];
            Scatter::pooled(&[pair.iter().map(Vec::as_slice).collect()]).unwrap()
        });
        for (at, (error, own)) in std::iter::zip(errors, &known).enumerate() {
            let prior = Scatter::prior(&[&known[..at], &known[at + 1..]].concat()).unwrap();
            let run = one(&mut random, error);
            let next = own.towards(&prior).next_like(&run, &[&run]).unwrap();
            let says = mean(&one(&mut random, error)).unwrap();
            held[at / 4] += u64::from(next.interval(0.95, 0.95).contains(says));
        }
    }
    // For imprecise ones it is wider than it need be: what their values say is known better than the degrees
    // of freedom of what hours do tell.
    for (held, (name, most)) in std::iter::zip(held, [("precise", 0.97), ("imprecise", 1.0)]) {
        let share = f64::from(u32::try_from(held).unwrap()) / 2000.0;
        println!("{name}: {share:.3}");
        assert!((0.935..=most).contains(&share), "{name}: {share}");
    }
}

/// Five long runs and a short one, in one hour each: a further short one, and a further long one.
#[test]
fn another_hour_is_one_as_long_as_this_and_no_more_precise_than_the_runs() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut as_short, mut as_mean) = (0, 0);
    for _ in 0..TRIALS {
        let mut runs: Vec<Vec<f64>> = (0..5).map(|_| session(&mut random, 0.1, 48).1).collect();
        runs.push(session(&mut random, 0.1, 6).1);
        let groups: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
        let scatter = Scatter::pooled(std::slice::from_ref(&groups)).unwrap();
        let short = mean(&session(&mut random, 0.1, 6).1).unwrap();
        let holds = |like: &[f64]| {
            let next = scatter.next_like(like, &groups).unwrap();
            u64::from(next.interval(0.95, 0.95).contains(short))
        };
        as_short += holds(&runs[5]);
        as_mean += holds(&runs[0]);
    }
    println!(
        "a further short run: {} %, as a mean one {} %",
        percent(as_short),
        percent(as_mean)
    );
    assert!(at_least(0.95, as_short));
    assert!(
        !at_least(0.95, as_mean),
        "what the mean of the runs would say"
    );
    // For a single run it is what one more group is.
    let run = session(&mut random, 1.0, 8).1;
    let scatter = scatter(0.3, 0.05, 5.0);
    let next = scatter.mean_over(&[&run]).unwrap().next_group();
    let like = scatter.next_like(&run, &[&run]).unwrap();
    let ends = |one: deltabench_stats::between::Between| one.interval(0.95, 0.99);
    assert!((ends(like).half_width() - ends(next.unwrap()).half_width()).abs() < 1e-12);
}
