//! Does the interval of a mean that stopped for being small hold the truth, among those that stop?

use crate::coverage::normal;
use deltabench_stats::Interval;
use deltabench_stats::early::WithinBand;
use deltabench_stats::skewed::SkewedMean;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The first look of four, of 6 blocks: "equal" within 3 % at 0.28 %, one-sided.
fn band() -> WithinBand {
    WithinBand {
        level: 0.9944,
        half: 0.03_f64.ln_1p(),
    }
}

/// Of so many means those that stopped: which share of them holds the truth, and mean half-widths.
#[derive(Debug)]
struct Stopped {
    share: f64,
    plain_held: f64,
    held: f64,
    plain: f64,
    printed: f64,
    /// Of the interval that decided.
    limit: f64,
}

fn stopped(seed: u64, sd: f64, truth: f64, trials: u32) -> Stopped {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut found: Vec<[Interval; 3]> = Vec::new();
    for _ in 0..trials {
        let values: Vec<f64> = (0..6).map(|_| truth + sd * normal(&mut random)).collect();
        let mean = SkewedMean::new(&values, 0.0).unwrap();
        if band().stops(&mean) {
            let (plain, limit) = (mean.interval(0.95), mean.interval(band().level));
            let printed = band().interval(&mean, 0.95);
            assert!(printed.low <= plain.low && plain.high <= printed.high);
            assert!(printed.low > -band().half && printed.high < band().half);
            found.push([plain, printed, limit]);
        }
    }
    let number = f64::from(u32::try_from(found.len()).unwrap());
    let share = |at: usize| {
        let held = found.iter().filter(|one| one[at].contains(truth)).count();
        f64::from(u32::try_from(held).unwrap()) / number
    };
    let width = |at: usize| found.iter().map(|one| one[at].half_width()).sum::<f64>() / number;
    let seen = Stopped {
        share: number / f64::from(trials),
        plain_held: share(0),
        held: share(1),
        plain: width(0),
        printed: width(1),
        limit: width(2),
    };
    println!("sd {sd}, true {truth}: {seen:?}");
    seen
}

#[test]
fn what_stops_seldom_holds_the_truth_far_more_often_than_by_the_plain_interval() {
    // Sd 1.6 %: the truth, the most that the plain interval holds it, the least that ours does.
    let rows = [
        (-0.010, 0.92, 0.90, 4000),
        (-0.015, 0.80, 0.87, 8000),
        (-0.020, 0.55, 0.80, 16000),
    ];
    for (seed, (truth, most, least, trials)) in (71..).zip(rows) {
        let found = stopped(seed, 0.016, f64::ln_1p(truth), trials);
        assert!(found.share < 0.25 && found.plain_held < most, "{found:?}");
        assert!(found.held > least, "{found:?}");
    }
}

#[test]
fn what_nearly_always_stops_is_hardly_wider_and_the_rest_is_between_plain_and_limit() {
    let equal = stopped(81, 0.005, 0.0, 400);
    assert!(equal.share > 0.95 && equal.held > 0.92, "{equal:?}");
    assert!(equal.printed < 1.15 * equal.plain, "{equal:?}");
    // The nearer the truth is to where cells go on, the wider, and never as wide as the limit.
    let near = stopped(82, 0.005, f64::ln_1p(-0.015), 400);
    assert!(near.printed > 1.2 * near.plain, "{near:?}");
    assert!(near.printed < 0.9 * near.limit, "{near:?}");
}
