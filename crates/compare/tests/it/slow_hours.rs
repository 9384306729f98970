//! What sessions of one evening say of hours that they did not meet.

use crate::builder::*;
use crate::hours::{gated, over, session};
use deltabench_compare::comparison::{Comparison, HoursFrom, Metric, Ratio, Verdict};
use deltabench_compare::gate::gate_reasons;
use deltabench_compare::{
    Earlier, EarlierRun, SessionTimes, allow_for_slow_hours, exit_code, foretell,
};
use deltabench_model::plan::Gate;

/// Four sessions of five minutes that begin so many minutes after each other.
fn every(minutes: i64) -> Vec<SessionTimes> {
    let of = |number: i64| SessionTimes {
        began_ms: number * minutes * 60_000,
        ended_ms: (number * minutes + 5) * 60_000,
    };
    (0..4).map(of).collect()
}

/// What cells say of another hour.
fn another(comparison: &Comparison) -> (Ratio, Verdict, f64) {
    let speed = metric(only_cell(comparison), Metric::Throughput);
    let hours = speed.hours.as_ref().unwrap();
    (hours.another, hours.verdict, hours.p)
}

#[test]
fn sessions_of_an_evening_say_no_more_of_slow_hours_than_runs_of_their_own() {
    let plan = gated(Gate {
        on: true,
        another_hour: true,
        not_worse_than: Some(0.06),
        ..Gate::default()
    });
    let centres = [0.950, 0.951, 0.949, 0.950];
    let evening = every(30);
    let alone = over(&plan, &centres);
    let mut steady = alone.clone();
    allow_for_slow_hours(&mut steady, &evening, |_| false);
    assert_eq!(steady, alone);
    let mut slow = alone.clone();
    allow_for_slow_hours(&mut slow, &evening, |_| true);
    // The same hours as runs of their own.
    let pair = centres[1..]
        .iter()
        .zip(1..)
        .map(|(centre, hour)| EarlierRun {
            hour,
            blocks: metric(only_cell(&session(&plan, *centre)), Metric::Throughput)
                .blocks
                .clone(),
        });
    let earlier = Earlier {
        pair: pair.collect(),
        is_unsteady: true,
        ..Earlier::default()
    };
    let mut runs = session(&plan, centres[0]);
    foretell(&mut runs, |_, _| earlier.clone());
    let ends = |comparison: &Comparison| another(comparison).0.ci95.unwrap();
    let (narrow, wide, of_runs) = (ends(&alone), ends(&slow), ends(&runs));
    assert!(
        narrow.1 / narrow.0 < 1.02 && wide.1 / wide.0 > 1.03,
        "{narrow:?} {wide:?}"
    );
    let same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
    assert!(
        same(wide.0, of_runs.0) && same(wide.1, of_runs.1),
        "{wide:?} {of_runs:?}"
    );
    let hours = |comparison: &Comparison| {
        let speed = metric(only_cell(comparison), Metric::Throughput);
        speed.hours.clone().unwrap()
    };
    let found = hours(&slow);
    assert!(found.by_slow_hours && !found.assumed);
    assert_eq!(
        (found.from, found.sessions.len()),
        (HoursFrom::Sessions(4), 4)
    );
    assert!(another(&slow).2 > another(&alone).2);
    assert_eq!(
        another(&slow).1,
        Verdict::Regression,
        "5 % less, and 3 % of doubt"
    );
    // The loss may be more than 6 % in a slow hour.
    assert_eq!(exit_code(&alone), 0, "{:?}", gate_reasons(&alone));
    assert_eq!(exit_code(&slow), 3, "{:?}", gate_reasons(&slow));
    // Without a pause between them they are one hour, and one hour knows less.
    let mut row = alone.clone();
    allow_for_slow_hours(&mut row, &every(5), |_| true);
    assert!(ends(&row).0 < wide.0 && wide.1 < ends(&row).1, "{row:?}");
    let mut day = alone.clone();
    allow_for_slow_hours(&mut day, &every(240), |_| true);
    assert_eq!(day, alone, "12 hours");
    // Sessions that differ by more than is assumed say so themselves.
    let mut apart = over(&plan, &[0.90, 0.95, 1.02, 0.96]);
    let before = ends(&apart);
    allow_for_slow_hours(&mut apart, &evening, |_| true);
    assert_eq!(ends(&apart), before);
    assert!(!hours(&apart).by_slow_hours);
    // A run of one session is none of its business.
    let mut one = session(&plan, 0.95);
    foretell(&mut one, |_, _| Earlier::default());
    let before = one.clone();
    allow_for_slow_hours(&mut one, &evening, |_| true);
    assert_eq!(one, before);
}
