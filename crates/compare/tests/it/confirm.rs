//! What a second run says about the differences of a first.

use crate::builder::*;
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::{Comparison, Confirmation, Verdict};
use deltabench_compare::{analyse, confirm};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::slice::Slice;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::student::t_quantile;

/// A run of twelve blocks.
fn run(
    confirms: bool,
    rates: &[f64],
    findings: Vec<Finding>,
    change: fn(&mut Slice),
) -> Comparison {
    let mut plan = plan(vec![cell(4, false)]);
    plan.confirms = confirms.then(|| "20260101-first".to_owned());
    plan.timing.blocks = 12;
    let mut slices = slices(12, &[candidate(rates, &[])]);
    slices.iter_mut().for_each(change);
    analyse(&plan, &slices, findings)
}

/// A first run that found 6 % less, after a second with these rates.
fn after(again: &Comparison) -> (Option<Confirmation>, Verdict, u32, String) {
    let mut first = run(false, &around(0.94, 0.01, 12), Vec::new(), |_| {});
    assert_eq!(first.counts.regression, 1, "what is to be confirmed");
    confirm(&mut first, again, Some(7200.0));
    let cell = &first.cells[0];
    let reason = cell.reason.clone();
    (
        cell.confirmation,
        cell.verdict,
        first.counts.regression,
        reason,
    )
}

fn second(centre: f64, spread: f64) -> Comparison {
    run(true, &around(centre, spread, 12), Vec::new(), |_| {})
}

#[test]
fn what_comes_again_is_confirmed_and_what_is_refuted_is_open_again() {
    let (said, verdict, regressions, _) = after(&second(0.95, 0.01));
    assert_eq!(
        (said, verdict),
        (Some(Confirmation::Recurred), Verdict::Regression)
    );
    assert_eq!(regressions, 1);
    let (said, verdict, regressions, reason) = after(&second(1.0, 0.01));
    assert_eq!(
        (said, verdict),
        (Some(Confirmation::DidNotRecur), Verdict::Inconclusive)
    );
    assert_eq!(regressions, 0);
    assert!(
        reason.starts_with("did not recur on a fresh load; at first slower by"),
        "{reason}"
    );
}

#[test]
fn a_second_run_that_cannot_tell_refutes_nothing() {
    let stays = (Some(Confirmation::Open), Verdict::Regression, 1);
    let wide = after(&second(0.99, 0.15));
    assert_eq!((wide.0, wide.1, wide.2), stays, "it holds -6 % too");
    let unfit = Finding::new(FindingKind::OtherLoad, Severity::Unfit, "somebody compiles");
    let unfit = run(true, &around(1.0, 0.01, 12), vec![unfit], |_| {});
    let unfit = after(&unfit);
    assert_eq!((unfit.0, unfit.1, unfit.2), stays);
    // Neither what it denies nor what it shows again is to be trusted.
    for centre in [1.0, 0.95] {
        let contended = run(true, &around(centre, 0.01, 12), Vec::new(), |slice| {
            slice.steal_ns = Some(slice.duration_ns / 10);
        });
        assert!(contended.cells[0].interference.contended);
        let contended = after(&contended);
        assert_eq!((contended.0, contended.1, contended.2), stays, "{centre}");
    }
}

#[test]
fn what_recurs_is_decided_by_the_skewed_blocks_and_not_by_their_wider_interval() {
    let mut found = with_interval(false, -0.04, 0.03);
    let mut again = with_interval(true, -0.02, 0.025);
    let speed = &mut again.cells[0].metrics[0];
    speed.skewness = (-0.9).into();
    let turned: Vec<f64> = speed.blocks.iter().map(|gain| -gain).collect();
    let expected = SkewedMean::new(&turned, 0.9).unwrap().p_above();
    // Printed wider, as where measuring stopped at a width.
    speed.ratio.ci95 = Some((0.9, 1.1));
    confirm(&mut found, &again, None);
    let recurrence = found.cells[0].recurrence.clone().unwrap();
    assert!((recurrence.p - expected).abs() < 1e-12, "{}", recurrence.p);
}

#[test]
fn cells_that_were_not_measured_again_stay_as_they_are() {
    let mut elsewhere = second(1.0, 0.01);
    elsewhere.cells[0].clients = 8;
    let (said, verdict, ..) = after(&elsewhere);
    assert_eq!((said, verdict), (None, Verdict::Regression));
    let mut unfinished = second(1.0, 0.01);
    unfinished.cells[0].confirmation = None;
    let (said, verdict, ..) = after(&unfinished);
    assert_eq!((said, verdict), (None, Verdict::Regression));
}

/// Twelve blocks with this mean change and this half-width of its 95 % interval.
fn with_interval(confirms: bool, change: f64, half: f64) -> Comparison {
    let sd = half / t_quantile(0.975, 11.0) * 12.0_f64.sqrt();
    // Values at ±a have the sd a·√(12/11).
    let spread = sd * (11.0_f64 / 12.0).sqrt();
    run(
        confirms,
        &around(change.exp(), spread, 12),
        Vec::new(),
        |_| {},
    )
}

#[test]
fn what_points_the_same_way_is_never_said_not_to_recur() {
    let first = || with_interval(false, -0.04, 0.03);
    assert_eq!(first().counts.regression, 1);
    for (change, half, expected) in [
        // -1.5 [-3.2, +0.2]: one-sided p = 0.04.
        (-0.015, 0.017, Confirmation::Recurred),
        (-0.018, 0.023, Confirmation::Open),
        (-0.005, 0.060, Confirmation::Open),
        (0.0, 0.005, Confirmation::DidNotRecur),
        (0.010, 0.010, Confirmation::DidNotRecur),
    ] {
        let mut found = first();
        confirm(&mut found, &with_interval(true, change, half), None);
        let cell = &found.cells[0];
        assert_eq!(cell.confirmation, Some(expected), "{change} ± {half}");
        let both = cell.recurrence.clone().unwrap();
        assert!(both.seconds_later.is_none());
        // Selected by its size, the first counts for less than it says.
        let pooled = both.together.estimate.ln();
        assert!(
            pooled > -0.04 && pooled < change.max(0.0) + 0.001,
            "{pooled}"
        );
    }
}

#[test]
fn a_first_that_is_beyond_doubt_is_denied_by_a_second_that_is_too() {
    let mut found = with_interval(false, -0.06, 0.006);
    confirm(&mut found, &with_interval(true, -0.001, 0.006), Some(60.0));
    let cell = &found.cells[0];
    assert_eq!(cell.confirmation, Some(Confirmation::DidNotRecur));
    assert_eq!(cell.verdict, Verdict::Inconclusive);
}

#[test]
fn improvements_are_confirmed_and_what_recurs_below_delta_is_no_change() {
    let mut found = with_interval(false, 0.045, 0.02);
    assert_eq!(found.counts.improvement, 1);
    confirm(&mut found, &with_interval(true, 0.04, 0.015), Some(60.0));
    let cell = &found.cells[0];
    assert_eq!(
        (cell.confirmation, cell.verdict),
        (Some(Confirmation::Recurred), Verdict::Improvement)
    );
    let mut found = with_interval(false, 0.045, 0.02);
    confirm(&mut found, &with_interval(true, 0.01, 0.004), Some(60.0));
    let cell = &found.cells[0];
    assert_eq!(
        (cell.confirmation, cell.verdict),
        (Some(Confirmation::Recurred), Verdict::NoChange)
    );
    assert_eq!((found.counts.improvement, found.counts.no_change), (0, 1));
    assert!(
        cell.reason.contains("on a fresh load; at first"),
        "{}",
        cell.reason
    );
}

/// Of first runs of this true change that call it different in the direction that it has (or any, for none):
/// how many seconds say (recurred, did not recur, open), of so many.
fn confirmed(random: &mut Simulation, effect: f64, sd: f64, firsts: u64) -> [u64; 4] {
    let mut one = |confirms| {
        let rates: Vec<f64> = (0..12)
            .map(|_| (effect + sd * random.normal()).exp())
            .collect();
        run(confirms, &rates, Vec::new(), |_| {})
    };
    let mut said = [0; 4];
    for _ in 0..firsts {
        let mut first = one(false);
        if first.counts.regression == 0 && (effect < 0.0 || first.counts.improvement == 0) {
            continue;
        }
        confirm(&mut first, &one(true), None);
        said[3] += 1;
        match first.cells[0].confirmation.unwrap() {
            Confirmation::Recurred => said[0] += 1,
            Confirmation::DidNotRecur => said[1] += 1,
            Confirmation::Open => said[2] += 1,
        }
    }
    said
}

#[test]
fn what_is_not_there_recurs_in_one_of_twenty_and_what_is_there_is_rarely_denied() {
    let mut random = Simulation::new(45);
    for sd in [0.04, 0.08] {
        let [recurred, denied, open, all] = confirmed(&mut random, 0.0, sd, runs(5000));
        println!(
            "equal servers, sd of a block {sd}: of {all} found different {recurred} recur, {denied} do not, \
             {open} stay open"
        );
        assert!(clopper_pearson(recurred, all, 0.999).low <= 0.05);
    }
    for effect in [-0.03, -0.05] {
        let [recurred, denied, open, all] = confirmed(&mut random, effect, 0.04, runs(800));
        println!(
            "{effect}, sd of a block 0.04: of {all} found slower {recurred} recur, {denied} do not, {open} \
             stay open"
        );
        assert!(clopper_pearson(denied, all, 0.999).low <= 0.05);
    }
}
