//! What is printed of cells that end at different looks: bias, and how often intervals hold the truth.
//!
//! `DELTABENCH_RUNS=3000 cargo test -p deltabench-compare --test it early:: -- --nocapture` prints the tables
//! of docs/decisions/0021-an-early-no-change-has-a-wider-interval.md.

use crate::builder::{as_run, cell, metric, only_cell, plan, runs};
use crate::calibration_model::{Model, Simulation, THREE};
use crate::pipeline::{MIDDLE, NOISY, QUIET, drive};
use deltabench_compare::comparison::{Comparison, DetectionOutcome, Metric, Verdict};
use deltabench_compare::looks;
use deltabench_compare::thresholds::{ALPHA_EQUIVALENT, EQUIVALENT_EXPONENT, log_delta};
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::units::{count, index, to_f64};
use deltabench_stats::Interval;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::spending::{Sides, nominal_levels, power_family};
use std::collections::BTreeMap;

fn real(number: usize) -> f64 {
    to_f64(count(number))
}

/// How a cell came to its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// No change at this look, before the last.
    Equal(u32),
    EqualAtLast,
    /// Different, and the figures are those of fresh blocks.
    Fresh,
    DifferentAtLast,
    Open,
}

/// What is printed of a run, as logarithms.
#[derive(Clone, Copy)]
struct Printed {
    truth: f64,
    shown: f64,
    /// The same, with what the reason says is left of it.
    left: f64,
    plain: Interval,
    printed: Interval,
}

impl Printed {
    fn of(run: &Comparison, truth: f64) -> Self {
        let found = metric(only_cell(run), Metric::Throughput);
        let mean = SkewedMean::new(&found.blocks, found.skewness).unwrap();
        let shown = found.ratio.estimate.ln();
        Self {
            truth,
            shown,
            left: left_of(&only_cell(run).reason).unwrap_or(shown),
            plain: mean.interval(0.95),
            printed: logs(found.ratio.ci95),
        }
    }
}

fn logs(ends: Option<(f64, f64)>) -> Interval {
    let (low, high) = ends.unwrap();
    Interval {
        low: low.ln(),
        high: high.ln(),
    }
}

#[derive(Default)]
struct Tally(Vec<Printed>);

impl Tally {
    fn held(&self, of: fn(&Printed) -> Interval) -> usize {
        let Self(all) = self;
        all.iter().filter(|one| of(one).contains(one.truth)).count()
    }

    fn mean(&self, of: impl Fn(&Printed) -> f64) -> f64 {
        let Self(all) = self;
        all.iter().map(of).sum::<f64>() / real(all.len().max(1))
    }

    fn width(&self, of: fn(&Printed) -> Interval) -> f64 {
        self.mean(|one| of(one).half_width())
    }

    fn print(&self, what: &str, all: usize) {
        let number = self.0.len();
        let share = |of: usize| 100.0 * real(of) / real(number.max(1));
        println!(
            "{what:<32} {:>5.1} % of runs, shows {:+.2} %, left {:+.2} %, plain {:>5.1} % ±{:.2}, \
             printed {:>5.1} % ±{:.2}",
            100.0 * real(number) / real(all),
            100.0 * self.mean(|one| one.shown),
            100.0 * self.mean(|one| one.left),
            share(self.held(PLAIN)),
            100.0 * self.width(PLAIN),
            share(self.held(PRINTED)),
            100.0 * self.width(PRINTED),
        );
    }
}

const PLAIN: fn(&Printed) -> Interval = |one| one.plain;
const PRINTED: fn(&Printed) -> Interval = |one| one.printed;

/// What the reason of a change at the last look says is left of it.
fn left_of(reason: &str) -> Option<f64> {
    let (_, told) = reason.split_once("on average: ")?;
    if told.starts_with("hardly anything") {
        return Some(0.0);
    }
    let percent: f64 = told
        .strip_prefix("about ")?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    Some((percent / 100.0).ln_1p())
}

/// The end of a run with so many looks.
fn end(run: &Comparison, looks: usize) -> End {
    let cell = only_cell(run);
    let fresh = cell
        .detection
        .as_ref()
        .is_some_and(|found| !matches!(found.outcome, DetectionOutcome::Confirming { .. }));
    match (cell.verdict, cell.decided_at) {
        _ if fresh => End::Fresh,
        (Verdict::NoChange, Some(look)) if index(u64::from(look)) < looks => End::Equal(look),
        (Verdict::NoChange, _) => End::EqualAtLast,
        (Verdict::Regression | Verdict::Improvement, _) => End::DifferentAtLast,
        _ => End::Open,
    }
}

/// One cell with these looks.
fn planned(looks: &[u32]) -> Plan {
    let mut plan = as_run(plan(vec![cell(4, false)]));
    plan.timing.blocks = *looks.last().unwrap();
    plan.stopping = Stopping::Sequential {
        looks: looks.to_vec(),
    };
    plan
}

/// Which looks test "equal" at 95 % or more.
fn strict(looks: &[u32]) -> Vec<bool> {
    let last = f64::from(*looks.last().unwrap());
    let spent = looks.iter().map(|&look| {
        let at = f64::from(look) / last;
        (at, power_family(ALPHA_EQUIVALENT, EQUIVALENT_EXPONENT, at))
    });
    let levels = nominal_levels(&spent.collect::<Vec<_>>(), Sides::One);
    levels.iter().map(|level| *level <= 0.025).collect()
}

/// What holds for every early "no change", whatever is true.
fn is_as_promised(run: &Comparison, delta: f64, strict: bool) {
    let found = metric(only_cell(run), Metric::Throughput);
    let mean = SkewedMean::new(&found.blocks, found.skewness).unwrap();
    let (plain, printed) = (mean.interval(0.95), logs(found.ratio.ci95));
    let what = format!("{plain:?} {printed:?} {}", only_cell(run).reason);
    let apart = |one: f64, other: f64| (one - other).abs() > 1e-9;
    assert!(
        printed.low <= plain.low + 1e-9 && plain.high <= printed.high + 1e-9,
        "{what}"
    );
    if strict {
        assert!(
            printed.low > -log_delta(delta) && printed.high < log_delta(delta),
            "{what}"
        );
    } else {
        assert!(
            !apart(printed.low, plain.low) && !apart(printed.high, plain.high),
            "{what}"
        );
    }
    let (narrow, ninety) = (logs(found.ratio.ci90), mean.interval(0.90));
    assert!(
        !apart(narrow.low, ninety.low) && !apart(narrow.high, ninety.high),
        "{what}"
    );
    let wider = printed.half_width() / plain.half_width();
    let told = only_cell(run).reason.contains("wider for that)");
    assert!(
        (wider - 1.1).abs() < 1e-6 || told == (wider > 1.1),
        "{wider} {what}"
    );
}

fn tallies(
    seed: u64,
    looks: &[u32],
    model: Model,
    effect: f64,
    number: u64,
) -> BTreeMap<End, Tally> {
    let (plan, mut simulation) = (planned(looks), Simulation::new(seed));
    let strict = strict(looks);
    let mut found: BTreeMap<End, Tally> = BTreeMap::new();
    for _ in 0..number {
        let run = drive(&plan, &simulation.run(model, effect, &THREE));
        let end = end(&run, looks.len());
        if let End::Equal(look) = end {
            is_as_promised(&run, plan.delta, strict[index(u64::from(look)) - 1]);
        }
        let Tally(all) = found.entry(end).or_default();
        all.push(Printed::of(&run, effect));
    }
    found
}

/// At least in 95 of 100, as far as so many can tell.
fn holds(tally: &Tally) -> bool {
    let (held, number) = (count(tally.held(PRINTED)), count(tally.0.len()));
    clopper_pearson(held, number, 0.999).high >= 0.95
}

#[test]
fn an_early_no_change_holds_the_truth_and_a_quiet_one_is_as_narrow_as_before() {
    let number = runs(25);
    for (seed, (name, model)) in
        (931..).zip([("quiet", QUIET), ("middle", MIDDLE), ("noisy", NOISY)])
    {
        let (mut early, mut all) = (Tally::default(), Tally::default());
        for (more, truth) in (0..).zip([0.0, -0.005, -0.01, -0.015, -0.02, -0.03_f64]) {
            let found = tallies(10 * seed + more, &looks(24), model, truth.ln_1p(), number);
            println!("{name}, true {:+.1} %", 100.0 * truth);
            for (end, tally) in found {
                tally.print(&format!("    {end:?}"), index(number));
                all.0.extend(&tally.0);
                if matches!(end, End::Equal(_)) {
                    early.0.extend(&tally.0);
                }
            }
        }
        early.print(&format!("{name}: early no change"), all.0.len());
        all.print(&format!("{name}: all"), all.0.len());
        assert!(holds(&early) && holds(&all), "{name}");
        match name {
            "quiet" => assert!(early.width(PRINTED) <= 1.25 * early.width(PLAIN)),
            "middle" => assert!(early.held(PRINTED) > early.held(PLAIN)),
            _ => {}
        }
    }
}

/// Plans of few blocks, and runs that their time ended, have looks before the last that test "equal" at less
/// than 95 %.
#[test]
fn an_early_no_change_is_never_narrower_than_the_plain_interval_whatever_the_looks() {
    let plans: [&[u32]; 6] = [
        &[6, 7],
        &[6, 8],
        &[6, 9, 12],
        &[6, 10, 12],
        &[6, 12, 13],
        &[6, 12, 18, 19],
    ];
    let number = runs(6);
    let mut loose = Tally::default();
    for (seed, looks) in (941..).zip(plans) {
        let strict = strict(looks);
        println!("looks {looks:?}, at 95 % or more: {strict:?}");
        let mut early = Tally::default();
        for (more, (model, truth)) in (0..).zip(
            [QUIET, MIDDLE, NOISY]
                .into_iter()
                .flat_map(|model| [0.0, -0.01, -0.015_f64].map(|truth| (model, truth))),
        ) {
            for (end, tally) in tallies(10 * seed + more, looks, model, truth.ln_1p(), number) {
                let End::Equal(look) = end else { continue };
                early.0.extend(&tally.0);
                if !strict[index(u64::from(look)) - 1] {
                    loose.0.extend(&tally.0);
                }
            }
        }
        early.print("    early no change", 9 * index(number));
        assert!(holds(&early), "{looks:?}");
    }
    loose.print("at less than 95 %", 54 * index(number));
    assert!(loose.0.len() > 40 && holds(&loose), "{}", loose.0.len());
    let beyond = |one: &&Printed| one.printed.low < -log_delta(0.03);
    println!(
        "    of these beyond ±δ: {}",
        loose.0.iter().filter(beyond).count()
    );
}
