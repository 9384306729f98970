//! Another hour of a host whose speed changes, of a pair that goes with it.
//!
//! `DELTABENCH_RUNS=2000 cargo test -p deltabench-compare --test it other_speeds:: -- --nocapture` prints the
//! table of docs/decisions/0063.

use crate::builder::*;
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::{Comparison, Hours, Metric};
use deltabench_compare::{Earlier, EarlierRun, analyse, foretell};
use deltabench_model::units::{count, to_f64};

/// ln of what a neighbour costs that is there in half of the blocks.
const NEIGHBOUR: f64 = 0.35;

const BLOCKS: u32 = 12;

/// A host, and a pair on it.
#[derive(Clone, Copy)]
struct Pair {
    /// ln of what the neighbour of blocks costs.
    neighbour: f64,
    /// What the candidate loses for each ln that the host is slower.
    goes: f64,
    /// Standard deviation of ln of the host's speed from hour to hour.
    hours: f64,
    /// The same of what else moves the ratio.
    luck: f64,
    /// Its luck of a start beside the neighbour is so many times as large.
    unrest: f64,
}

const PAIR: Pair = Pair {
    neighbour: NEIGHBOUR,
    goes: 0.0,
    hours: NEIGHBOUR / 2.0,
    luck: 0.005,
    unrest: 1.0,
};

impl Pair {
    /// Hours of this host as one of many: each standard deviation is known like one of four degrees of
    /// freedom.
    fn of_some_host(self, random: &mut Simulation) -> Self {
        let mut times = || {
            let squares: f64 = (0..4).map(|_| random.normal().powi(2)).sum();
            (4.0 / squares).sqrt()
        };
        Self {
            hours: times() * self.hours,
            luck: times() * self.luck,
            ..self
        }
    }

    /// A run of an hour.
    fn run(self, random: &mut Simulation) -> Comparison {
        let (hour, luck) = (self.hours * random.normal(), self.luck * random.normal());
        let mut all = Vec::new();
        for block in 0..BLOCKS {
            let is_beside = random.uniform() < 0.5;
            let slow = hour + f64::from(is_beside) * self.neighbour;
            let unrest = if is_beside { self.unrest } else { 1.0 };
            for server in [BASE, PLACEBO, CANDIDATE] {
                let own = match server == CANDIDATE {
                    true => luck - self.goes * slow + 0.006 * unrest * random.normal(),
                    false => 0.006 * random.normal(),
                };
                for round in 0..8 {
                    let speed = own - slow + 0.01 * random.normal();
                    let (rate, cpu) = (1000.0 * speed.exp(), 10.0 * (-speed).exp());
                    all.push(slice(server, block, round, rate, Some(cpu)));
                }
            }
        }
        analyse(&as_run(plan(vec![cell(1, true)])), &all, Vec::new())
    }
}

/// What a run says of another hour, with what it knows of the host's speed and without.
fn told(run: &Comparison, earlier: &Earlier, of: Metric) -> [Hours; 2] {
    let mut known = run.clone();
    let mut blind = run.clone();
    blind.cells[0].host_speed = None;
    [&mut known, &mut blind].map(|run| {
        foretell(run, |_, _| earlier.clone());
        metric(only_cell(run), of).hours.clone().unwrap()
    })
}

fn half(hours: &Hours) -> f64 {
    let (low, high) = hours.another.ci95.unwrap();
    (high / low).ln() / 2.0
}

fn holds(hours: &Hours, figure: f64) -> bool {
    let (low, high) = hours.another.ci95.unwrap();
    (low..=high).contains(&figure)
}

/// How often another hour holds the figure of a run in another hour, with the speed and without; how many
/// times as wide that makes it (mean), and how often it says why.
fn found(pair: Pair, of: Metric, number: u64) -> ([f64; 2], f64, f64) {
    let mut random = Simulation::new(63);
    let (mut held, mut wider, mut said) = ([0.0; 2], 0.0, 0.0);
    let part = 1.0 / to_f64(number);
    for _ in 0..number {
        let host = pair.of_some_host(&mut random);
        let (now, next) = (host.run(&mut random), host.run(&mut random));
        let figure = metric(only_cell(&next), of).ratio.estimate;
        let both = told(&now, &Earlier::default(), of);
        for (sum, hours) in held.iter_mut().zip(&both) {
            *sum += part * f64::from(holds(hours, figure));
        }
        wider += part * half(&both[0]) / half(&both[1]);
        said += part * f64::from(both[0].by_host_speed);
    }
    (held, wider, said)
}

#[test]
fn another_hour_holds_where_hours_are_as_fast_or_slow_as_blocks() {
    let of = Metric::Throughput;
    for (goes, most_before, least_said) in [(0.05, 0.88, 0.5), (0.1, 0.75, 0.9), (0.2, 0.65, 0.9)] {
        let ([with, without], wider, said) = found(Pair { goes, ..PAIR }, of, runs(150));
        println!(
            "goes {goes}: held {with:.3}, before {without:.3}; {wider:.2} times as wide, said {said:.2}"
        );
        assert!(with >= 0.88, "{goes}: {with}");
        assert!(without <= most_before, "{goes}: {without}");
        assert!(said >= least_said, "{goes}: {said}");
    }
    let pair = Pair { goes: 0.2, ..PAIR };
    let ([with, without], ..) = found(pair, Metric::ServerCpuPerOperation, runs(150));
    println!("CPU: held {with:.3}, before {without:.3}");
    assert!(with >= 0.9 && without < 0.75, "{with} {without}");
}

#[test]
fn another_hour_of_a_pair_that_does_not_go_with_the_speed_is_hardly_wider() {
    let cases = [
        ("even noise", PAIR),
        (
            "starts 3 times as uneven beside it",
            Pair {
                unrest: 3.0,
                ..PAIR
            },
        ),
    ];
    for (name, pair) in cases {
        let ([with, without], wider, said) = found(pair, Metric::Throughput, runs(150));
        println!(
            "{name}: held {with:.3}, before {without:.3}; {wider:.2} times as wide, said {said:.2}"
        );
        assert!(with >= without && with >= 0.9, "{name}: {with} {without}");
        assert!(wider < 1.15 && said < 0.15, "{name}: {wider} {said}");
    }
    // Nothing at all where the host is steady.
    let steady = Pair {
        neighbour: 0.0,
        goes: 0.2,
        ..PAIR
    };
    let run = steady.run(&mut Simulation::new(64));
    let [with, without] = told(&run, &Earlier::default(), Metric::Throughput);
    assert_eq!(with, without);
}

#[test]
fn what_goes_with_the_speed_gives_way_to_hours_that_measured_it() {
    let run = Pair { goes: 0.2, ..PAIR }.run(&mut Simulation::new(66));
    let figure = metric(only_cell(&run), Metric::Throughput)
        .ratio
        .estimate
        .ln();
    let after = |repeats: usize| {
        let earlier = |hour: usize| {
            let luck = if hour.is_multiple_of(2) { 0.01 } else { -0.01 };
            let blocks = vec![figure + luck - 0.001, figure + luck + 0.001];
            EarlierRun { hour, blocks }
        };
        let pair = (1..=repeats).map(earlier).collect();
        let [with, without] = told(
            &run,
            &Earlier {
                pair,
                ..Earlier::default()
            },
            Metric::Throughput,
        );
        (
            with.sd.powi(2) - without.sd.powi(2),
            with.assumed,
            with.by_host_speed,
        )
    };
    let (alone, assumed, said) = after(0);
    assert!(assumed && said);
    let speed = only_cell(&run).host_speed.as_ref().unwrap();
    let half_by_slope = 0.5 * speed.slowdown.ln() * 0.2;
    let share = alone.sqrt() / half_by_slope;
    assert!((0.7..1.3).contains(&share), "{share} of {half_by_slope}");
    for repeats in [4, 11] {
        let (left, assumed, said) = after(repeats);
        let share = 4.0 / (4.0 + to_f64(count(repeats)));
        assert!((left / alone / share - 1.0).abs() < 1e-6, "{left} {alone}");
        assert!(assumed && said, "it stays the larger part");
    }
}
