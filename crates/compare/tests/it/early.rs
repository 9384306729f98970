//! What is printed of cells that end at different looks: bias, and how often intervals hold the truth.
//!
//! `DELTABENCH_RUNS=3000 cargo test -p deltabench-compare --test it early:: -- --nocapture` prints the tables
//! of docs/decisions/0021-an-early-no-change-has-a-wider-interval.md.

use crate::builder::{cell, metric, only_cell, plan, runs};
use crate::calibration_model::{Model, Simulation, TWO};
use crate::pipeline::{MIDDLE, NOISY, QUIET, drive, sequential};
use deltabench_compare::comparison::{Comparison, DetectionOutcome, Metric, Verdict};
use deltabench_model::plan::{Plan, Role};
use deltabench_model::units::{count, index, to_f64};
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::skewed::SkewedMean;
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

#[derive(Default, Clone, Copy)]
struct Tally {
    runs: usize,
    shown: f64,
    /// The same, with what the reason says is left of it.
    left: f64,
    plain_held: usize,
    held: usize,
    plain_width: f64,
    width: f64,
}

impl Tally {
    fn add(&mut self, run: &Comparison, effect: f64) {
        let found = metric(only_cell(run), Metric::Throughput);
        let plain = SkewedMean::new(&found.blocks, found.skewness)
            .unwrap()
            .interval(0.95);
        let (low, high) = found.ratio.ci95.unwrap();
        let (low, high) = (low.ln(), high.ln());
        self.runs += 1;
        let shown = found.ratio.estimate.ln();
        self.shown += shown;
        self.left += left_of(&only_cell(run).reason).unwrap_or(shown);
        self.plain_held += usize::from(plain.contains(effect));
        self.held += usize::from(low <= effect && effect <= high);
        self.plain_width += plain.half_width();
        self.width += (high - low) / 2.0;
    }

    fn join(&mut self, other: &Self) {
        self.runs += other.runs;
        self.shown += other.shown;
        self.left += other.left;
        self.plain_held += other.plain_held;
        self.held += other.held;
        self.plain_width += other.plain_width;
        self.width += other.width;
    }

    fn share(&self, of: usize) -> f64 {
        100.0 * real(of) / real(self.runs.max(1))
    }

    fn print(&self, what: &str, all: usize) {
        let mean = |sum: f64| 100.0 * sum / real(self.runs.max(1));
        println!(
            "{what:<32} {:>5.1} % of runs, shows {:+.2} %, left {:+.2} %, plain {:>5.1} % ±{:.2}, \
             printed {:>5.1} % ±{:.2}",
            100.0 * real(self.runs) / real(all),
            mean(self.shown),
            mean(self.left),
            self.share(self.plain_held),
            mean(self.plain_width),
            self.share(self.held),
            mean(self.width),
        );
    }
}

/// What the reason of a change at the last look says is left of it.
fn left_of(reason: &str) -> Option<f64> {
    let (_, told) = reason.split_once("on average: about ")?;
    let percent: f64 = told.split(' ').next()?.parse().ok()?;
    Some((percent / 100.0).ln_1p())
}

fn end(run: &Comparison) -> End {
    let cell = only_cell(run);
    let fresh = cell
        .detection
        .as_ref()
        .is_some_and(|found| !matches!(found.outcome, DetectionOutcome::Confirming { .. }));
    match (cell.verdict, cell.decided_at) {
        _ if fresh => End::Fresh,
        (Verdict::NoChange, Some(look)) if look < 4 => End::Equal(look),
        (Verdict::NoChange, _) => End::EqualAtLast,
        (Verdict::Regression | Verdict::Improvement, _) => End::DifferentAtLast,
        _ => End::Open,
    }
}

/// Base and candidate only.
fn two() -> Plan {
    let mut plan = plan(vec![cell(4, false)]);
    plan.servers[1].role = Role::Base;
    sequential(plan)
}

fn tallies(seed: u64, model: Model, effect: f64, number: u64) -> BTreeMap<End, Tally> {
    let (plan, mut simulation) = (two(), Simulation::new(seed));
    let mut found: BTreeMap<End, Tally> = BTreeMap::new();
    for _ in 0..number {
        let run = drive(&plan, &simulation.run(model, effect, &TWO));
        found.entry(end(&run)).or_default().add(&run, effect);
    }
    found
}

#[test]
fn an_early_no_change_holds_the_truth_and_a_quiet_one_is_as_narrow_as_before() {
    let number = runs(25);
    for (seed, (name, model)) in
        (931..).zip([("quiet", QUIET), ("middle", MIDDLE), ("noisy", NOISY)])
    {
        let (mut early, mut all) = (Tally::default(), Tally::default());
        for (more, truth) in (0..).zip([0.0, -0.005, -0.01, -0.015, -0.02, -0.03_f64]) {
            let effect = truth.ln_1p();
            let found = tallies(10 * seed + more, model, effect, number);
            println!("{name}, true {:+.1} %", 100.0 * truth);
            for (end, tally) in &found {
                tally.print(&format!("    {end:?}"), index(number));
                all.join(tally);
                if matches!(end, End::Equal(_)) {
                    early.join(tally);
                }
            }
        }
        early.print(&format!("{name}: early no change"), all.runs);
        all.print(&format!("{name}: all"), all.runs);
        let right = |tally: &Tally| {
            clopper_pearson(count(tally.held), count(tally.runs), 0.999).high >= 0.95
        };
        assert!(right(&early) && right(&all), "{name}");
        match name {
            "quiet" => assert!(early.width <= 1.25 * early.plain_width),
            "middle" => assert!(early.held > early.plain_held),
            _ => {}
        }
    }
}
