//! Do the intervals and verdicts of the Insert Benchmark in turns hold? Seeded runs with known truth: passes
//! as blocks, turns inside.
//!
//! `cargo test -p deltabench-kinds turns_model -- --nocapture` prints the figures of docs/error-rates.md.

use crate::builder::{BASE, CANDIDATE, PLACEBO};
use crate::calibration_model::Simulation;
use crate::insert_model::{insert_plan, judged, records};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::ServerId;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::insert::InsertStep;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::{t_interval, t_test_p};
use std::collections::BTreeMap;

/// Runs of each case, or what DELTABENCH_RUNS says; docs/error-rates.md has figures of 150.
fn runs() -> u64 {
    let asked = std::env::var("DELTABENCH_RUNS").ok();
    asked.and_then(|runs| runs.parse().ok()).unwrap_or(20)
}
/// Turns of a step.
const TURNS: u8 = 20;
/// Servers of a run: base, placebo, candidate.
const SERVERS: [ServerId; 3] = [BASE, PLACEBO, CANDIDATE];
/// Steps of a published run, which are one family.
const FAMILY: f64 = 10.0;

/// Standard deviations on the log scale.
#[derive(Clone, Copy)]
struct Model {
    /// Of a pass on a server: its data, its start, its autovacuum runs.
    pass: f64,
    /// Of a turn.
    turn: f64,
    /// Of the speed of the machine, which neighbours in time share.
    machine: f64,
}

/// As measured under load (docs/measuring-insert.md#turns-of-the-insert-benchmark): the log-ratio of a pass
/// has sd 18 % in turns, 1.7 times the variance that turns predict, and sd 58 % one server after another.
const LOADED: Model = Model {
    pass: 0.082,
    turn: 0.436,
    machine: 0.42,
};

/// Turns after which the machine has forgotten 63 % of its speed: those of all servers in a step.
const MEMORY: f64 = 60.0;

/// How servers share the time.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Turns,
    /// One server after another.
    Passes,
}

/// The machine's speed at one turn after another.
struct Machine {
    now: f64,
    sd: f64,
}

impl Machine {
    fn new(random: &mut Simulation, sd: f64) -> Self {
        Self {
            now: sd * random.normal(),
            sd,
        }
    }

    fn next(&mut self, random: &mut Simulation) -> f64 {
        let keep = (-1.0 / MEMORY).exp();
        self.now = keep * self.now + (1.0 - keep * keep).sqrt() * self.sd * random.normal();
        self.now
    }
}

/// A step of a pass: the log speeds of its turns on each server, without effects.
fn step(random: &mut Simulation, model: Model, way: Way) -> [Vec<f64>; 3] {
    let luck = SERVERS.map(|_| model.pass * random.normal());
    let mut speeds = [const { Vec::new() }; 3];
    let mut turn = |random: &mut Simulation, server: usize, machine: &mut Machine| {
        let machine = machine.next(random);
        speeds[server].push(luck[server] + machine + model.turn * random.normal());
    };
    match way {
        Way::Turns => {
            let mut machine = Machine::new(random, model.machine);
            for round in 0..usize::from(TURNS) {
                // The order is balanced: each server is first as often.
                for place in 0..SERVERS.len() {
                    turn(random, (place + round) % SERVERS.len(), &mut machine);
                }
            }
        }
        Way::Passes => {
            for server in 0..SERVERS.len() {
                // Other steps of other servers are in between.
                let mut machine = Machine::new(random, model.machine);
                for _ in 0..TURNS {
                    turn(random, server, &mut machine);
                }
            }
        }
    }
    speeds
}

/// Operations by time, of turns with equal operations; of steps of queries turns have equal time.
fn speed(step: InsertStep, turns: &[f64]) -> f64 {
    let turns = turns.iter().map(|log| log.exp());
    let number = f64::from(TURNS);
    match step.queries() {
        true => turns.sum::<f64>() / number,
        false => number / turns.map(|speed| 1.0 / speed).sum::<f64>(),
    }
}

/// A run whose candidate has this log effect in every step; also the log-ratios of all turns by step.
fn run(
    random: &mut Simulation,
    (model, way): (Model, Way),
    passes: u32,
    effect: f64,
) -> (Comparison, BTreeMap<InsertStep, Vec<f64>>) {
    let mut drawn = BTreeMap::new();
    let mut ratios: BTreeMap<InsertStep, Vec<f64>> = BTreeMap::new();
    let all = records(passes, |server, of, pass| {
        let turns = drawn.entry((of, pass)).or_insert_with(|| {
            let turns = step(random, model, way);
            let pairs = turns[0].iter().zip(&turns[2]);
            let found = pairs.map(|(base, candidate)| candidate + effect - base);
            ratios.entry(of).or_default().extend(found);
            turns
        });
        let place = SERVERS.iter().position(|one| *one == server).unwrap();
        let change = if server == CANDIDATE { effect } else { 0.0 };
        change.exp() * speed(of, &turns[place])
    });
    (judged(&insert_plan(passes), &all), ratios)
}

fn throughput(cell: &CellComparison) -> &deltabench_compare::comparison::MetricComparison {
    let mut all = cell.metrics.iter();
    all.find(|one| one.metric == Metric::Throughput).unwrap()
}

fn is_different(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Regression | Verdict::Improvement)
}

/// At most `rate`, as far as `trials` can tell: the exact 99.9 % interval of the share reaches down to it.
fn at_most(rate: f64, hits: usize, trials: usize) -> bool {
    clopper_pearson(count(hits), count(trials), 0.999).low <= rate
}

/// At least `rate`, in the same way.
fn at_least(rate: f64, hits: usize, trials: usize) -> bool {
    clopper_pearson(count(hits), count(trials), 0.999).high >= rate
}

fn percent(hits: usize, trials: usize) -> String {
    format!(
        "{:.1} %",
        100.0 * to_f64(count(hits)) / to_f64(count(trials))
    )
}

/// What equal servers are found to be.
#[derive(Default)]
struct Equal {
    cells: usize,
    alone: usize,
    listed: usize,
    runs_with_any: usize,
    placebos: usize,
    held: usize,
    held_by_turns: usize,
    /// Half of an interval, on the log scale.
    widths: Vec<f64>,
}

fn equal(seed: u64, model: Model, way: Way) -> Equal {
    let mut random = Simulation::new(seed);
    let mut found = Equal::default();
    for _ in 0..runs() {
        let (comparison, turns) = run(&mut random, (model, way), 6, 0.0);
        let mut any = false;
        for cell in &comparison.cells {
            let (low, high) = throughput(cell).ratio.ci95.unwrap();
            found.cells += 1;
            found.alone += usize::from(is_different(cell.alone));
            found.listed += usize::from(is_different(cell.verdict));
            any |= is_different(cell.verdict);
            found.held += usize::from(low <= 1.0 && 1.0 <= high);
            found.widths.push((high / low).ln() / 2.0);
        }
        found.runs_with_any += usize::from(any);
        let placebos = comparison.placebo_cells.iter();
        found.placebos += placebos.filter(|cell| is_different(cell.verdict)).count();
        for ratios in turns.values() {
            let by_turns = t_interval(ratios, 0.95).unwrap();
            found.held_by_turns += usize::from(by_turns.low <= 0.0 && 0.0 <= by_turns.high);
        }
    }
    found.widths.sort_by(f64::total_cmp);
    found
}

#[test]
fn intervals_of_passes_hold_and_equal_servers_are_rarely_called_different() {
    let mut widths = Vec::new();
    for (seed, name, model, way) in [
        (1, "loaded, turns", LOADED, Way::Turns),
        (2, "loaded, passes", LOADED, Way::Passes),
    ] {
        let found = equal(seed, model, way);
        let (cells, runs) = (found.cells, usize::try_from(runs()).unwrap());
        println!(
            "{name}: {runs} runs, alone {}, listed {}, any listed {}, placebo {}, interval holds {}, one \
             from turns {}, half-width {:.3}",
            percent(found.alone, cells),
            percent(found.listed, cells),
            percent(found.runs_with_any, runs),
            percent(found.placebos, cells),
            percent(found.held, cells),
            percent(found.held_by_turns, cells),
            found.widths[cells / 2]
        );
        assert!(at_most(0.05, found.alone, cells), "{name}: {}", found.alone);
        assert!(at_most(0.05, found.runs_with_any, runs), "{name}");
        assert!(at_most(0.05, found.placebos, cells), "{name}");
        assert!(at_least(0.95, found.held, cells), "{name}: {}", found.held);
        // Turns of a pass share its luck.
        assert!(found.held_by_turns < found.held, "{name}");
        widths.push(found.widths[cells / 2]);
    }
    assert!(
        widths[1] > 2.0 * widths[0],
        "turns are narrower: {widths:?}"
    );
}

/// How many of the steps are found at so many passes, alone and among ten steps, if fewer than six counted.
fn found(seed: u64, model: Model, passes: u32, effect: f64) -> (usize, usize, usize) {
    let mut random = Simulation::new(seed);
    let (mut alone, mut among_ten, mut cells) = (0, 0, 0);
    for _ in 0..runs() {
        let (comparison, _) = run(&mut random, (model, Way::Turns), passes, effect);
        for cell in &comparison.cells {
            let p = t_test_p(&throughput(cell).blocks).unwrap();
            cells += 1;
            alone += usize::from(p < 0.05);
            among_ten += usize::from(p < 0.05 / FAMILY);
            if passes < 6 {
                assert_eq!(cell.verdict, Verdict::Inconclusive);
            }
        }
    }
    (alone, among_ten, cells)
}

#[test]
fn two_passes_in_turns_find_nothing_among_ten_steps_and_six_find_large_changes() {
    let mut among_ten = Vec::new();
    for passes in [2, 6] {
        let (alone, ten, cells) = found(10, LOADED, passes, f64::ln(0.5));
        println!(
            "half as fast, {passes} passes: alone {}, among ten {}",
            percent(alone, cells),
            percent(ten, cells)
        );
        among_ten.push(to_f64(count(ten)) / to_f64(count(cells)));
    }
    assert!(among_ten[0] < 0.15 && among_ten[1] > 0.8, "{among_ten:?}");
}
