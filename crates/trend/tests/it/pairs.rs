//! Any two versions, side by side or through others.

use crate::networks::{ASSUMED, build, run};
use deltabench_trend::{Build, End, HOURS, Pair, Pairs, Run, Way};

fn end(version: usize) -> End {
    End { version, run: None }
}

fn of(runs: &[Run], from: End, to: End) -> Option<Pair> {
    let builds: Vec<Build> = vec![build(0); 6];
    Pairs::new(runs, &builds, ASSUMED).of(0, from, to)
}

/// 0 with 1 and 2, twice; 2 with 3; 4 with 5.
fn runs() -> Vec<Run> {
    vec![
        run(0, 0, &[(1, 0.01), (2, 0.03)], 0.001),
        run(1, 0, &[(1, 0.02), (2, 0.03)], 0.001),
        run(2, 2, &[(3, -0.10)], 0.001),
        run(3, 4, &[(5, 0.5)], 0.001),
    ]
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
}

#[test]
fn runs_with_both_answer_before_all_others() {
    let direct = of(&runs(), end(0), end(1)).unwrap();
    assert_eq!(
        (&direct.way, direct.runs.as_slice()),
        (&Way::Direct, &[0, 1][..])
    );
    near(direct.found.value, 0.015);
    near(direct.delta, 0.02);
    // The way back is the same with another sign.
    let back = of(&runs(), end(1), end(0)).unwrap();
    near(back.found.value, -0.015);
    near(back.found.p, direct.found.p);
    let pair = of(&runs(), end(1), end(2)).unwrap();
    near(pair.found.value, 0.015);
    let (low, high) = pair.found.ci95;
    assert!(low < pair.found.ci90.0 && pair.found.ci90.1 < high);
}

#[test]
fn others_answer_through_what_connects_them_and_name_it() {
    let found = of(&runs(), end(1), end(3)).unwrap();
    assert_eq!(found.way, Way::Through(vec![2]));
    assert_eq!(found.runs, [0, 1, 2]);
    near(found.found.value, -0.085);
    let direct = of(&runs(), end(1), end(2)).unwrap();
    assert!(
        found.found.error > direct.found.error,
        "a chain is less sure"
    );
    assert!(found.assumed);
    assert_eq!(of(&runs(), end(0), end(5)), None);
    assert_eq!(of(&[], end(0), end(1)), None);
}

#[test]
fn what_contradicts_itself_is_found() {
    let mut agree = runs();
    agree.push(run(4, 1, &[(3, -0.08)], 0.001));
    let found = of(&agree, end(1), end(3)).unwrap();
    assert_eq!(found.way, Way::Direct);
    near(found.around.unwrap().value, -0.085);
    assert!(!found.contradicts);
    let mut differ = runs();
    differ.push(run(4, 1, &[(3, 0.30)], 0.001));
    assert!(of(&differ, end(1), end(3)).unwrap().contradicts);
}

#[test]
fn ends_of_runs_are_compared_in_their_runs_alone() {
    let in_run = |version, run| End {
        version,
        run: Some(run),
    };
    let one = of(&runs(), in_run(0, 1), in_run(1, 1)).unwrap();
    assert_eq!((&one.way, one.runs.as_slice()), (&Way::InRun, &[1][..]));
    near(one.found.value, 0.02);
    let hours = of(&runs(), end(0), end(1)).unwrap();
    assert!(one.found.error < hours.found.error, "one hour alone");
    // The same build in two runs: by the base that both have.
    let again = of(&runs(), in_run(1, 0), in_run(1, 1)).unwrap();
    assert_eq!(
        (&again.way, again.runs.as_slice()),
        (&Way::Shared(0), &[0, 1][..])
    );
    near(again.found.value, 0.01);
    assert!(again.found.p > 0.05);
    // Base of one run, candidate of the other.
    near(
        of(&runs(), in_run(0, 0), in_run(2, 1)).unwrap().found.value,
        0.03,
    );
    near(
        of(&runs(), in_run(2, 1), in_run(0, 0)).unwrap().found.value,
        -0.03,
    );
    let apart = of(&runs(), in_run(0, 0), in_run(5, 3));
    assert_eq!(apart, None, "they have no version in common");
    // One end of a run, and a version that it has, or has not.
    assert_eq!(of(&runs(), in_run(0, 1), end(2)).unwrap().way, Way::InRun);
    let through = of(&runs(), in_run(1, 1), end(3)).unwrap();
    assert_eq!(through.way, Way::Through(vec![2]));
}

#[test]
fn runs_within_minutes_count_once_and_disturbed_ones_are_told() {
    let mut all = runs();
    let mut soon = run(1, 0, &[(1, 0.5)], 0.001);
    soon.began_ms += 60_000;
    soon.ended_ms += 60_000;
    all.insert(2, soon);
    all[0].cells[0].is_sound = false;
    let found = of(&all, end(0), end(1)).unwrap();
    assert_eq!((found.runs.as_slice(), found.disturbed), (&[0, 1][..], 1));
    near(found.found.value, 0.015);
}

#[test]
fn an_anchor_follows_another_after_enough_hours_with_both() {
    let builds: Vec<Build> = vec![build(0); 6];
    let overlap = |runs: &[Run]| Pairs::new(runs, &builds, ASSUMED).overlap(0, (0, 1), HOURS);
    let none = overlap(&[run(0, 0, &[(2, 0.01)], 0.001)]);
    assert_eq!((none.hours, none.missing), (0, 5));
    assert!(none.shift.is_none() && none.most.is_some());
    let both = |hours: usize| -> Vec<Run> {
        let all = (0..hours).map(|at| run(at, 0, &[(1, 0.02), (2, 0.01)], 0.001));
        all.collect()
    };
    let two = overlap(&both(2));
    near(two.shift.unwrap().value, 0.02);
    assert!(
        two.missing > 3,
        "five hours, and an error of a third: {two:?}"
    );
    // What is missing is enough.
    let enough = overlap(&both(2 + two.missing));
    assert_eq!(enough.missing, 0, "{enough:?}");
    let (error, most) = (enough.shift.unwrap().error, enough.most.unwrap());
    assert!(error <= most * (1.0 + 1e-9));
    let short = overlap(&both(4));
    assert!(short.missing >= 1);
}

#[test]
fn distant_versions_are_compared_on_the_newest_host_with_both() {
    let mut runs = [
        run(0, 0, &[(1, 0.01), (2, 0.03)], 0.001),
        run(1, 0, &[(1, 0.02), (2, 0.04)], 0.001),
        run(2, 0, &[(1, -0.03), (2, -0.01)], 0.001),
    ];
    runs[2].cells[0].host = 1;
    let far: Vec<Build> = [0, 1, 1].into_iter().map(build).collect();
    let pairs = Pairs::new(&runs, &far, ASSUMED);
    let found = pairs.of(0, end(0), end(1)).unwrap();
    assert_eq!((found.way, found.runs.as_slice()), (Way::Direct, &[2][..]));
    near(found.found.value, -0.03);
    // What a kernel does to a version it does to its neighbours.
    let found = pairs.of(0, end(1), end(2)).unwrap();
    assert_eq!(found.runs, [0, 1, 2]);
    near(found.found.value, 0.02);
}
