//! Do intervals of totals hold the truth where a few slices take much longer? Seeded runs with known truth.
//!
//! `DELTABENCH_RUNS=2000 cargo test -p deltabench-compare --test it stalls:: -- --nocapture` prints the rates
//! of docs/measuring.md#totals, of 6, 8, 12 and 24 blocks. Without it, it is 12.

use crate::builder::{
    self, BASE, CANDIDATE, PLACEBO, as_run, cell, metric, only_cell, plan, slice,
};
use crate::calibration_model::{Model, QUIET, Simulation, THREE};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::t_interval;

/// Operations of a slice, and the time of each in seconds: 20 ms in all.
const OPERATIONS: f64 = 550.0;
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
    /// One operation in so many takes so many seconds more.
    Rare(f64, f64),
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
            Self::Rare(one_in, seconds) => {
                // Poisson, by the product of uniforms (Knuth).
                let none = (-OPERATIONS / one_in).exp();
                let mut product = random.uniform();
                let mut stalls = 0.0;
                while product > none {
                    product *= random.uniform();
                    stalls += 1.0;
                }
                seconds * stalls
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
            Self::Rare(one_in, seconds) => seconds * OPERATIONS / one_in,
            Self::Twice(share) => share * OPERATIONS * OPERATION,
            Self::HeavyTail => 0.05 * 0.010 * 2.5 / 1.5,
        }
    }

    /// The chance that it draws nothing but zeros for a whole run.
    fn unseen(self, blocks: u32) -> f64 {
        let none = match self {
            Self::Rare(one_in, _) => (-OPERATIONS / one_in).exp(),
            Self::Twice(share) => 1.0 - share,
            Self::HeavyTail => 0.95,
        };
        none.powi(i32::try_from(blocks * MODEL.rounds).unwrap())
    }

    /// What throughput becomes, as a share.
    fn left(self) -> f64 {
        1.0 / (1.0 + self.mean() / (OPERATIONS * OPERATION))
    }
}

fn plain_plan(blocks: u32) -> Plan {
    let mut plan = as_run(plan(vec![cell(1, true)]));
    plan.timing.blocks = blocks;
    plan.delta = 0.02;
    plan
}

/// A run in which these servers stall.
fn run(random: &mut Simulation, blocks: u32, stalls: Stalls, servers: &[ServerId]) -> Vec<Slice> {
    let mut slices = random.run(Model { blocks, ..MODEL }, 0.0, &THREE);
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

/// Runs of a case in CI.
const FEW: u64 = 250;

fn runs() -> u64 {
    builder::runs(FEW)
}

fn sizes() -> &'static [u32] {
    if runs() > FEW { &[6, 8, 12, 24] } else { &[12] }
}

/// A case: so many blocks with these stalls on these servers.
struct Simulated {
    runs: Vec<Comparison>,
}

impl Simulated {
    fn new(seed: u64, blocks: u32, stalls: Stalls, servers: &[ServerId]) -> Self {
        let mut random = Simulation::new(seed);
        let plan = plain_plan(blocks);
        let runs = (0..runs())
            .map(|_| {
                let slices = run(&mut random, blocks, stalls, servers);
                analyse(&plan, &slices, Vec::new())
            })
            .collect();
        Self { runs }
    }

    fn verdicts(&self, verdict: Verdict) -> usize {
        let all = self.runs.iter();
        all.filter(|run| only_cell(run).verdict == verdict).count()
    }

    fn covered(&self, truth: f64) -> usize {
        let holds = |run: &&Comparison| {
            let (low, high) = metric(only_cell(run), Metric::Throughput)
                .ratio
                .ci95
                .unwrap();
            low <= truth && truth <= high
        };
        self.runs.iter().filter(holds).count()
    }

    /// The mean of half-widths over Student's.
    fn wider(&self) -> f64 {
        let wider = |run: &Comparison| {
            let found = metric(only_cell(run), Metric::Throughput);
            let (low, high) = found.ratio.ci95.unwrap();
            let student = t_interval(&found.blocks, 0.95).unwrap();
            (high / low).ln() / 2.0 / student.half_width()
        };
        self.runs.iter().map(wider).sum::<f64>() / to_f64(runs())
    }
}

/// At least `rate`, as far as so many runs can tell.
fn at_least(rate: f64, hits: usize) -> bool {
    clopper_pearson(count(hits), runs(), 0.999).high >= rate
}

fn at_most(rate: f64, hits: usize) -> bool {
    clopper_pearson(count(hits), runs(), 0.999).low <= rate
}

fn percent(hits: usize) -> f64 {
    100.0 * to_f64(count(hits)) / to_f64(runs())
}

#[test]
fn intervals_of_totals_hold_what_stalls_cost() {
    let kinds = [
        Stalls::Rare(20_000.0, 0.040),
        Stalls::Rare(60_000.0, 0.120),
        Stalls::Twice(0.03),
        Stalls::Twice(0.10),
        Stalls::HeavyTail,
    ];
    let sides = [
        &[CANDIDATE][..],
        &[BASE, PLACEBO][..],
        &[BASE, PLACEBO, CANDIDATE][..],
    ];
    for (&blocks, (seed, stalls)) in { sizes().iter() }.flat_map(|size| {
        let kinds = (61..).zip(kinds);
        kinds.map(move |kind| (size, kind))
    }) {
        let lost = stalls.left();
        for (servers, truth) in sides.into_iter().zip([lost, 1.0 / lost, 1.0]) {
            let found = Simulated::new(seed, blocks, stalls, servers);
            let hits = found.covered(truth);
            let equal = found.verdicts(Verdict::NoChange);
            let (slower, faster) = (
                found.verdicts(Verdict::Regression),
                found.verdicts(Verdict::Improvement),
            );
            println!(
                "{blocks} blocks, {stalls:?} on {servers:?}: truth {truth:.4}, held {:.1} %, no change \
                 {:.1} %, slower {:.1} %, faster {:.1} %, {:.2} times as wide as Student's",
                percent(hits),
                percent(equal),
                percent(slower),
                percent(faster),
                found.wider()
            );
            // What was not seen is not in the interval.
            let known = 0.94 * (1.0 - stalls.unseen(blocks));
            assert!(at_least(known, hits), "{stalls:?} {servers:?}: {hits}");
            if servers.len() == 3 {
                assert!(
                    at_most(0.05, slower + faster),
                    "{stalls:?}: {slower} {faster}"
                );
            } else {
                // All of them lose more than δ: a trimmed mean called nearly all of them "no change".
                let known = 0.05 + stalls.unseen(blocks);
                assert!(at_most(known, equal), "{stalls:?} {servers:?}: {equal}");
            }
        }
    }
}

/// What computes while it stalls costs CPU, and then the skewed side of the interval is the other one.
#[test]
fn intervals_of_cpu_hold_what_computing_stalls_cost() {
    for (seed, stalls) in (81..).zip([Stalls::Rare(20_000.0, 0.040), Stalls::Twice(0.03)]) {
        for (servers, truth) in [
            (&[CANDIDATE][..], 1.0 / stalls.left()),
            (&[BASE, PLACEBO][..], stalls.left()),
        ] {
            let mut random = Simulation::new(seed);
            let plan = plain_plan(12);
            let held = (0..runs()).filter(|_| {
                let mut slices = run(&mut random, 12, stalls, servers);
                for one in &mut slices {
                    one.server_cpu_ns = Some(one.duration_ns);
                }
                let found = analyse(&plan, &slices, Vec::new());
                let cpu = metric(only_cell(&found), Metric::ServerCpuPerOperation);
                let (low, high) = cpu.ratio.ci95.unwrap();
                low <= truth && truth <= high
            });
            let hits = held.count();
            println!(
                "CPU, {stalls:?} on {servers:?}: held {:.1} %",
                percent(hits)
            );
            assert!(at_least(0.94, hits), "{stalls:?} {servers:?}: {hits}");
        }
    }
}

/// Stalls that cost exactly δ.
#[test]
fn no_change_is_seldom_said_of_stalls_that_cost_as_much_as_matters() {
    let kinds = [
        Stalls::Rare(20_000.0, 0.0144),
        Stalls::Rare(60_000.0, 0.0432),
        Stalls::Twice(0.02),
    ];
    for &blocks in sizes() {
        for (seed, stalls) in (71..).zip(kinds) {
            assert!((stalls.left() - 1.0 / 1.02).abs() < 1e-9);
            let found = Simulated::new(seed, blocks, stalls, &[CANDIDATE]);
            let equal = found.verdicts(Verdict::NoChange);
            println!(
                "{blocks} blocks, {stalls:?}, exactly δ: no change {:.1} %",
                percent(equal)
            );
            let known = 0.07 + stalls.unseen(blocks);
            assert!(at_most(known, equal), "{stalls:?}: {equal}");
        }
    }
}
