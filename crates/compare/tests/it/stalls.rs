//! Do intervals of totals hold the truth where a few slices take much longer? Seeded runs with known truth.
//!
//! `DELTABENCH_RUNS=5000 cargo test --release -p deltabench-compare --test it stalls -- --nocapture` prints
//! the rates of docs/measuring.md#totals.

use crate::builder::{self, BASE, CANDIDATE, cell, metric, only_cell, plan, slice};
use crate::calibration_model::{Model, QUIET, Simulation, TWO};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::{Plan, Role, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_stats::binomial::clopper_pearson;

/// Operations of a slice, and the time of each in seconds: 40 ms in all.
const OPERATIONS: f64 = 1_100.0;
const OPERATION: f64 = 36e-6;

const MODEL: Model = Model {
    blocks: 12,
    rounds: 20,
    restart: 0.004,
    ..QUIET
};

/// What makes some slices longer.
#[derive(Debug, Clone, Copy)]
enum Stalls {
    /// One operation in 20,000 takes 40 ms more.
    Rare,
    /// This share of slices takes twice the time.
    Twice(f64),
    /// One slice in twenty is longer by a Pareto tail of power 2.5, from 10 ms.
    HeavyTail,
}

impl Stalls {
    /// Seconds more in a slice.
    fn draw(self, random: &mut Simulation) -> f64 {
        let slice = OPERATIONS * OPERATION;
        match self {
            Self::Rare => {
                // Poisson, by the product of uniforms (Knuth).
                let none = (-OPERATIONS / 20_000.0).exp();
                let mut product = random.uniform();
                let mut stalls = 0.0;
                while product > none {
                    product *= random.uniform();
                    stalls += 1.0;
                }
                0.040 * stalls
            }
            Self::Twice(share) => f64::from(u8::from(random.uniform() < share)) * slice,
            Self::HeavyTail if random.uniform() < 0.05 => {
                0.010 * (1.0 - random.uniform()).powf(-1.0 / 2.5)
            }
            Self::HeavyTail => 0.0,
        }
    }

    /// The mean of what it draws.
    fn mean(self) -> f64 {
        match self {
            Self::Rare => 0.040 * OPERATIONS / 20_000.0,
            Self::Twice(share) => share * OPERATIONS * OPERATION,
            Self::HeavyTail => 0.05 * 0.010 * 2.5 / 1.5,
        }
    }
}

fn plain_plan() -> Plan {
    let mut plan = plan(vec![cell(1, true)]);
    plan.servers.retain(|server| server.role != Role::Placebo);
    plan.servers.insert(1, plan.servers[0].clone());
    plan.timing.blocks = MODEL.blocks;
    plan.delta = 0.02;
    plan
}

/// A run in which these servers stall.
fn run(random: &mut Simulation, stalls: Stalls, servers: &[ServerId]) -> Vec<Slice> {
    let mut slices = random.run(MODEL, 0.0, &TWO);
    for one in &mut slices {
        let rate = to_f64(one.operations) / (to_f64(one.duration_ns) * 1e-9) / 1000.0;
        let more = if servers.contains(&one.server) {
            stalls.draw(random)
        } else {
            0.0
        };
        let seconds = OPERATIONS * OPERATION / rate + more;
        *one = Slice {
            operations: to_u64(OPERATIONS),
            duration_ns: to_u64(seconds * 1e9),
            ..slice(one.server, one.block, one.round, 1.0, None)
        };
    }
    slices
}

fn runs() -> u64 {
    builder::runs(250)
}

fn simulated(seed: u64, stalls: Stalls, servers: &'static [ServerId]) -> Vec<Comparison> {
    let mut random = Simulation::new(seed);
    let plan = plain_plan();
    (0..runs())
        .map(|_| analyse(&plan, &run(&mut random, stalls, servers), Vec::new()))
        .collect()
}

fn verdicts(found: &[Comparison], verdict: Verdict) -> usize {
    let all = found.iter();
    all.filter(|run| only_cell(run).verdict == verdict).count()
}

fn covered(found: &[Comparison], truth: f64) -> usize {
    let holds = |cell: &CellComparison| {
        let (low, high) = metric(cell, Metric::Throughput).ratio.ci95.unwrap();
        low <= truth && truth <= high
    };
    found.iter().filter(|run| holds(only_cell(run))).count()
}

/// At least `rate`, as far as so many runs can tell.
fn at_least(rate: f64, hits: usize) -> bool {
    clopper_pearson(count(hits), runs(), 0.999).high >= rate
}

fn at_most(rate: f64, hits: usize) -> bool {
    clopper_pearson(count(hits), runs(), 0.999).low <= rate
}

#[test]
fn intervals_of_totals_hold_what_stalls_cost() {
    let kinds = [
        Stalls::Rare,
        Stalls::Twice(0.03),
        Stalls::Twice(0.10),
        Stalls::HeavyTail,
    ];
    for (seed, stalls) in (61..).zip(kinds) {
        let lost = 1.0 / (1.0 + stalls.mean() / (OPERATIONS * OPERATION));
        for (servers, truth) in [
            (&[CANDIDATE][..], lost),
            (&[BASE][..], 1.0 / lost),
            (&[BASE, CANDIDATE][..], 1.0),
        ] {
            let found = simulated(seed, stalls, servers);
            let hits = covered(&found, truth);
            let (equal, slower) = (
                verdicts(&found, Verdict::NoChange),
                verdicts(&found, Verdict::Regression),
            );
            println!(
                "{stalls:?} on {servers:?}: truth {truth:.4}, held {hits} of {}, no change {equal}, \
                 slower {slower}",
                runs()
            );
            assert!(at_least(0.94, hits), "{stalls:?} {servers:?}: {hits}");
            if servers.len() == 2 {
                let different = slower + verdicts(&found, Verdict::Improvement);
                assert!(at_most(0.05, different), "{stalls:?}: {different}");
            } else {
                // All of them lose more than δ: a trimmed mean called nearly all of them "no change".
                assert!(at_most(0.05, equal), "{stalls:?} {servers:?}: {equal}");
            }
        }
    }
}
