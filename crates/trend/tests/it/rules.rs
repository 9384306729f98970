//! Rules of suspicions, on runs whose blocks leave nothing open.

use deltabench_trend::{Assumed, Build, By, Measured, Run, State, Watch, geometric_mean};
use std::collections::BTreeMap;

const MINUTE_MS: i64 = 60_000;

/// A run at a minute, of log-ratios to version 0 in percent, in one cell.
fn run(minute: i64, percents: &[(usize, f64)]) -> Run {
    let blocks = |percent: f64| -> BTreeMap<u32, f64> {
        let value = |block: u32| (percent + 0.02 * f64::from(block % 3)) / 100.0;
        (0..12).map(|block| (block, value(block))).collect()
    };
    let base = percents[0].0;
    let candidates = percents.iter().skip(1);
    Run {
        hour: usize::try_from(minute / 10).unwrap() + 1,
        began_ms: minute * MINUTE_MS,
        ended_ms: (minute + 1) * MINUTE_MS,
        cells: vec![Measured {
            series: 0,
            host: 0,
            delta: 0.01,
            base,
            candidates: candidates
                .map(|(at, percent)| (*at, blocks(percent - percents[0].1)))
                .collect(),
            base_copies: 1,
            times: 1.0,
            is_sound: true,
            others: BTreeMap::new(),
            members: 1,
            work: 0,
        }],
    }
}

fn watch(runs: &[Run]) -> Watch {
    let builds = vec![
        Build {
            line: 0,
            branch: 17
        };
        9
    ];
    let mut watch = Watch::new(builds, Assumed { sd: 0.005, df: 4.0 });
    for run in runs {
        watch.add(run);
    }
    watch
}

fn states(watch: &Watch) -> Vec<(usize, usize, State, usize)> {
    let of = |one: &deltabench_trend::Suspicion| (one.from, one.to, one.state, one.tries.len());
    watch.suspicions().iter().map(of).collect()
}

#[test]
fn what_raised_a_suspicion_does_not_confirm_it() {
    let first = run(0, &[(2, 0.0), (5, -8.0)]);
    let one = watch(std::slice::from_ref(&first));
    assert_eq!(states(&one), [(2, 5, State::Suspected, 0)]);
    assert_eq!(one.suspicions()[0].by, By::Step);
    assert!(one.suspicions()[0].found.is_none(), "no size without a try");
    // Within ten minutes it has the same luck.
    let soon = watch(&[first.clone(), run(9, &[(2, 0.0), (5, -8.0)])]);
    assert_eq!(states(&soon), [(2, 5, State::Suspected, 0)]);
    let later = watch(&[first, run(20, &[(2, 0.0), (5, -7.0)])]);
    assert_eq!(states(&later), [(2, 5, State::Confirmed, 1)]);
    let found = later.suspicions()[0].found.unwrap();
    assert!(
        (found.change.value + 0.07).abs() < 0.0005,
        "the size of the try: {found:?}"
    );
    assert!((found.limit - 0.02).abs() < 1e-12);
}

#[test]
fn the_other_direction_confirms_nothing_and_less_than_matters_refutes() {
    let first = run(0, &[(2, 0.0), (5, -8.0)]);
    let up = watch(&[first.clone(), run(20, &[(2, 0.0), (5, 8.0)])]);
    assert_eq!(states(&up)[0], (2, 5, State::Refuted, 1));
    let mut none = vec![first.clone()];
    none.extend((1..4).map(|at| run(30 * at, &[(2, 0.0), (5, 0.0)])));
    assert_eq!(states(&watch(&none))[0].2, State::Refuted);
    // One try that cannot tell leaves it open.
    let open = watch(&[first, run(20, &[(2, 0.0), (5, -1.0)])]);
    assert_eq!(states(&open), [(2, 5, State::Suspected, 1)]);
}

#[test]
fn a_run_that_refutes_a_suspicion_does_not_raise_it_again() {
    // Less than δ = 1 %, and beyond the chance that raises a suspicion in each of the two runs.
    let small = [(2, 0.0), (5, -0.35)];
    let line = Build {
        line: 0,
        branch: 17,
    };
    let known = Assumed {
        sd: 0.002,
        df: 60.0,
    };
    let mut watch = Watch::new(vec![line; 9], known);
    watch.add(&run(0, &small));
    assert_eq!(states(&watch), [(2, 5, State::Suspected, 0)]);
    watch.add(&run(60, &small));
    assert_eq!(states(&watch), [(2, 5, State::Refuted, 1)]);
}

#[test]
fn each_further_try_has_less_to_use() {
    let mut runs = vec![run(0, &[(2, 0.0), (5, -8.0)])];
    let limit = |runs: &[Run]| watch(runs).suspicions()[0].found.unwrap().limit;
    let mut spent = 0.0;
    for at in 1..=4 {
        runs.push(run(30 * at, &[(2, 0.0), (5, -1.0)]));
        spent += limit(&runs);
    }
    assert!((limit(&runs) - 0.02 * 0.008).abs() < 1e-12);
    assert!(spent < 0.025, "{spent}");
}

#[test]
fn a_version_in_between_erases_nothing_and_is_suspected_by_itself() {
    let wide = [
        run(0, &[(2, 0.0), (5, -8.0)]),
        run(30, &[(2, 0.0), (5, -8.0)]),
    ];
    let mut runs = wide.to_vec();
    runs.push(run(60, &[(2, 0.0), (4, -8.0), (5, -8.0)]));
    runs.push(run(90, &[(2, 0.0), (4, -8.0), (5, -8.0)]));
    assert_eq!(
        states(&watch(&runs)),
        [(2, 5, State::Confirmed, 1), (2, 4, State::Confirmed, 1)]
    );
    // Later figures do not take back what was confirmed.
    runs.push(run(120, &[(2, 0.0), (5, 0.0)]));
    assert_eq!(states(&watch(&runs))[0], (2, 5, State::Confirmed, 1));
}

#[test]
fn a_confirmed_change_stays_known_when_deltabench_measures_in_another_way() {
    let before = [
        run(0, &[(2, 0.0), (5, -8.0)]),
        run(30, &[(2, 0.0), (5, -8.0)]),
    ];
    // The same in another series: of the same work, or of another.
    let after = |work: usize| {
        let mut one = run(60, &[(1, 0.0), (5, -8.0)]);
        one.cells[0].series = 1;
        one.cells[0].work = work;
        let mut runs = before.to_vec();
        runs.push(one);
        states(&watch(&runs))
    };
    assert_eq!(after(0), [(2, 5, State::Confirmed, 1)]);
    let other = [(2, 5, State::Confirmed, 1), (1, 5, State::Suspected, 0)];
    assert_eq!(after(1), other);
    // What is only suspected can no longer be tried there, and stands for nothing.
    let mut one = run(60, &[(2, 0.0), (5, -8.0)]);
    one.cells[0].series = 1;
    let open = watch(&[before[0].clone(), one]);
    let expected = [(2, 5, State::Suspected, 0), (2, 5, State::Suspected, 0)];
    assert_eq!(states(&open), expected);
}

/// A run of four cells and their mean.
fn with_mean(minute: i64, percents: [f64; 4]) -> Run {
    let cell = |(series, percent): (usize, f64)| {
        let cell = run(minute, &[(2, 0.0), (5, percent)]).cells.remove(0);
        Measured {
            series,
            work: series,
            ..cell
        }
    };
    let mut cells: Vec<Measured> = (0..4).zip(percents).map(cell).collect();
    let mean = geometric_mean(&cells).unwrap();
    cells.push(Measured {
        series: 4,
        work: 4,
        ..mean
    });
    Run {
        cells,
        ..run(minute, &[(2, 0.0), (5, 0.0)])
    }
}

#[test]
fn a_mean_says_what_all_cells_do_and_not_what_one_does() {
    let series = |percents: [f64; 4]| -> Vec<usize> {
        let found = watch(&[with_mean(0, percents)]);
        found.suspicions().iter().map(|one| one.series).collect()
    };
    assert_eq!(series([-9.0, 0.0, 0.0, 0.0]), [0]);
    assert_eq!(series([-9.0, -9.0, -9.0, -9.0]), [0, 1, 2, 3, 4]);
    assert_eq!(
        series([-9.0, -9.0, 9.0, 9.0]),
        [0, 1, 2, 3],
        "the mean is 0"
    );
    // Tries of all cells confirm it, and one of some cells says nothing of it.
    let first = with_mean(0, [-9.0; 4]);
    let mut some = with_mean(30, [-9.0; 4]);
    some.cells.truncate(2);
    let all = watch(&[first.clone(), some]);
    assert_eq!(states(&all)[4], (2, 5, State::Suspected, 0));
    let all = watch(&[first, with_mean(30, [-9.0; 4])]);
    assert_eq!(states(&all)[4], (2, 5, State::Confirmed, 1));
}

#[test]
fn ends_that_a_run_does_not_have_are_not_tried() {
    let runs = [
        run(0, &[(2, 0.0), (5, -8.0)]),
        run(30, &[(2, 0.0), (6, -8.0)]),
        run(60, &[(1, 0.0), (5, -8.0)]),
    ];
    let found = states(&watch(&runs));
    assert_eq!(found[0], (2, 5, State::Suspected, 0));
}

#[test]
fn steps_are_not_between_lines() {
    let builds = (0..9).map(|line| Build { line, branch: 17 }).collect();
    let mut watch = Watch::new(builds, Assumed { sd: 0.005, df: 4.0 });
    watch.add(&run(0, &[(2, 0.0), (5, -30.0)]));
    assert!(watch.suspicions().is_empty());
}

/// Nights of an anchor with one newer version each, of levels in percent, on hosts of these numbers. The
/// anchor is of another line, so that no run has a step.
fn levels(nights: &[(usize, f64)]) -> Watch {
    let line = |line| Build { line, branch: 17 };
    let builds = std::iter::once(line(0)).chain(nights.iter().map(|_| line(1)));
    let mut watch = Watch::new(builds.collect(), Assumed { sd: 0.005, df: 4.0 });
    for (night, (host, percent)) in (1..).zip(nights) {
        let minute = 1440 * i64::try_from(night).unwrap();
        // A level moves a little from night to night.
        let own = percent + 0.1 * (night % 3) as f64;
        let mut one = run(minute, &[(0, 0.0), (night, own)]);
        one.cells[0].host = *host;
        watch.add(&one);
    }
    watch
}

#[test]
fn another_kernel_is_no_step_of_a_version() {
    let nights = |host: usize| {
        let before = std::iter::repeat_n((0, 0.0), 15);
        before
            .chain(std::iter::repeat_n((host, -4.0), 15))
            .collect::<Vec<_>>()
    };
    // On one host it is a step.
    let found = levels(&nights(0));
    assert_eq!(found.suspicions()[0].by, By::Level);
    assert!(levels(&nights(1)).suspicions().is_empty());
    // A step on the new host is found there.
    let mut all = nights(1);
    all.extend(std::iter::repeat_n((1, -8.0), 10));
    let found = levels(&all);
    let one = &found.suspicions()[0];
    assert_eq!((one.by, one.falls, one.earliest), (By::Level, true, 31));
    assert!(one.from > 15 && one.from < 31, "{}", one.from);
}
