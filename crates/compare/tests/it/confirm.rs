//! What a second run says about the regressions of a first.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, Confirmation, Verdict};
use deltabench_compare::{analyse, confirm};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::slice::Slice;

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
    confirm(&mut first, again);
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
    let contended = run(true, &around(1.0, 0.01, 12), Vec::new(), |slice| {
        slice.steal_ns = Some(slice.duration_ns / 10);
    });
    assert!(contended.cells[0].interference.contended);
    let contended = after(&contended);
    assert_eq!((contended.0, contended.1, contended.2), stays);
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
