//! What probes of the core are good for, and what they must not do.

use crate::builder::*;
use crate::calibration_model::{Simulation, THREE};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric, MetricComparison};
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::{CellId, Plan, Stopping};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_stats::summary::{mean, sample_sd};

/// A host that changes its speed from slice to slice, and probes that tell it.
#[derive(Clone, Copy)]
struct Host {
    blocks: u32,
    rounds: u32,
    /// Standard deviation of ln of a probe that the host causes.
    speed: f64,
    /// By how much ln of an operation's time rises with that.
    slope: f64,
    /// Noise of an operation's time in a slice, and of a probe.
    noise: f64,
    probe_noise: f64,
    /// How much longer a probe takes beside the candidate.
    beside: f64,
    /// Standard deviation of what a start of a server does to probes in all cells of its block.
    start: f64,
    /// Share of the candidate's slices that stall for twice their time.
    stalls: f64,
}

const HOST: Host = Host {
    blocks: 8,
    rounds: 20,
    speed: 0.05,
    slope: 1.6,
    noise: 0.03,
    probe_noise: 0.015,
    beside: 0.0,
    start: 0.0,
    stalls: 0.0,
};

/// A run; `effect` is ln(candidate / base) of throughput.
fn run(random: &mut Simulation, host: Host, effect: f64) -> Vec<Slice> {
    let mut slices = Vec::new();
    for block in 0..host.blocks {
        let luck = THREE.map(|_| 0.003 * random.normal());
        for round in 0..host.rounds {
            for (server, luck) in std::iter::zip(THREE, luck) {
                let ours = f64::from(u8::from(server == CANDIDATE));
                let speed = host.speed * random.normal();
                let stall = ours * f64::from(u8::from(random.uniform() < host.stalls));
                let slow = host.slope * speed + host.noise * random.normal() + stall * 2.0_f64.ln();
                let log = effect * ours + luck - slow;
                let cpu_us = 900.0 * (-log).exp();
                let mut one = slice(server, block, round, 1000.0 * log.exp(), Some(cpu_us));
                let probe = speed + host.beside * ours + host.probe_noise * random.normal();
                one.probe_ns = Some(to_u64(10_000.0 * probe.exp()));
                slices.push(one);
            }
        }
    }
    slices
}

fn fixed(blocks: u32) -> Plan {
    let mut plan = as_run(plan(vec![cell(1, false)]));
    plan.stopping = Stopping::Fixed;
    plan.timing.blocks = blocks;
    plan
}

fn without(slices: &[Slice]) -> Vec<Slice> {
    let blind = |slice: &Slice| Slice {
        probe_ns: None,
        ..slice.clone()
    };
    slices.iter().map(blind).collect()
}

fn analysed(slices: &[Slice]) -> Comparison {
    let blocks = slices.iter().map(|slice| slice.block + 1).max().unwrap();
    analyse(&fixed(blocks), slices, Vec::new())
}

fn of(comparison: &Comparison, wanted: Metric) -> &MetricComparison {
    metric(only_cell(comparison), wanted)
}

/// What many runs say.
struct Said {
    /// ln of the estimates with probes, and as timed.
    probed: Vec<f64>,
    timed: Vec<f64>,
    /// Share of intervals of 95 % that hold the truth.
    held: f64,
}

fn said(host: Host, effect: f64, truth: f64, which: Metric, seed: u64) -> Said {
    let (runs, mut random) = (runs(400), Simulation::new(seed));
    let (mut probed, mut timed, mut held) = (Vec::new(), Vec::new(), 0_u32);
    for _ in 0..runs {
        let slices = run(&mut random, host, effect);
        let comparison = analysed(&slices);
        let found = of(&comparison, which);
        let (low, high) = found.ratio.ci95.unwrap();
        held += u32::from((low..=high).contains(&truth.exp()));
        probed.push(found.ratio.estimate.ln());
        timed.push(of(&analysed(&without(&slices)), which).ratio.estimate.ln());
    }
    Said {
        probed,
        timed,
        held: f64::from(held) / to_f64(runs),
    }
}

impl Said {
    /// How much estimates with probes scatter, over those as timed.
    fn narrower(&self) -> f64 {
        sample_sd(&self.probed).unwrap() / sample_sd(&self.timed).unwrap()
    }
}

#[test]
fn probes_take_out_what_the_host_did_and_leave_what_the_server_did() {
    for (which, sign, seed) in [
        (Metric::Throughput, 1.0, 651),
        (Metric::ServerCpuPerOperation, -1.0, 652),
    ] {
        let truth = sign * -0.02;
        let said = said(HOST, -0.02, truth, which, seed);
        let (narrower, centre) = (said.narrower(), mean(&said.probed).unwrap());
        println!(
            "{which:?}: {narrower:.2} times the sd, held {:.3}, mean {centre:.4}",
            said.held
        );
        assert!((0.3..0.65).contains(&narrower), "{which:?}: {narrower}");
        assert!((centre - truth).abs() < 0.001, "{which:?}: {centre}");
        assert!(said.held > 0.92, "{which:?}: {}", said.held);
    }
}

#[test]
fn equal_servers_are_called_different_as_rarely_as_without_probes() {
    let said = said(HOST, 0.0, 0.0, Metric::Throughput, 653);
    println!("called different: {:.3}", 1.0 - said.held);
    assert!((0.92..0.985).contains(&said.held), "{}", said.held);
}

#[test]
fn probes_that_say_nothing_of_the_server_cost_little() {
    let deaf = Host { slope: 0.0, ..HOST };
    let said = said(deaf, -0.02, -0.02, Metric::Throughput, 654);
    println!("{:.3} times the sd, held {:.3}", said.narrower(), said.held);
    assert!(said.narrower() < 1.03, "{}", said.narrower());
    assert!(said.held > 0.92, "{}", said.held);
}

#[test]
fn stalls_of_the_server_stay_in_the_totals() {
    let stalling = Host {
        stalls: 0.05,
        ..HOST
    };
    let lost = -1.05_f64.ln();
    let said = said(stalling, 0.0, lost, Metric::Throughput, 655);
    let (probed, timed) = (mean(&said.probed).unwrap(), mean(&said.timed).unwrap());
    println!(
        "lost {lost:.4}: {probed:.4} with probes, {timed:.4} as timed, held {:.3}",
        said.held
    );
    assert!((probed - lost).abs() < 0.002 && (timed - lost).abs() < 0.003);
    assert!(said.held > 0.92, "{}", said.held);
}

#[test]
fn a_few_long_slices_do_not_tell_how_operations_go_with_the_core() {
    let mut random = Simulation::new(661);
    let (mut plain, mut stalled) = (Vec::new(), Vec::new());
    for _ in 0..runs(100) {
        let mut slices = run(&mut random, HOST, 0.0);
        plain.push(scatter(&slices));
        // One in a hundred slices of the candidate takes five times as long.
        let long = slices.iter_mut().filter(|slice| slice.server == CANDIDATE);
        for slice in long.step_by(100) {
            slice.duration_ns *= 5;
        }
        stalled.push(scatter(&slices));
    }
    let (plain, stalled) = (mean(&plain).unwrap(), mean(&stalled).unwrap());
    println!(
        "typical operation scatters {plain:.3} times, with stalls {stalled:.3} times as timed"
    );
    assert!(plain < 0.6 && stalled < 0.6, "{plain} {stalled}");
}

/// The sd of typical block values with probes, over that as timed.
fn scatter(slices: &[Slice]) -> f64 {
    let half = |slices: &[Slice]| {
        let comparison = analysed(slices);
        let (low, high) = of(&comparison, Metric::Throughput)
            .typical
            .unwrap()
            .ci95
            .unwrap();
        (high / low).ln()
    };
    half(slices) / half(&without(slices))
}

#[test]
fn what_a_block_says_does_not_depend_on_later_ones() {
    let slices = run(
        &mut Simulation::new(656),
        Host { blocks: 12, ..HOST },
        -0.03,
    );
    let early: Vec<Slice> = { slices.iter() }
        .filter(|slice| slice.block < 6)
        .cloned()
        .collect();
    let (all, early) = (analysed(&slices), analysed(&early));
    for which in [Metric::Throughput, Metric::ServerCpuPerOperation] {
        assert_eq!(of(&all, which).blocks[..6], of(&early, which).blocks[..]);
    }
}

#[test]
fn a_block_without_all_of_its_probes_is_as_timed() {
    let mut slices = run(&mut Simulation::new(657), HOST, 0.0);
    slices[200].probe_ns = None;
    let place = usize::try_from(slices[200].block).unwrap();
    let (some, none) = (analysed(&slices), analysed(&without(&slices)));
    let (some, none) = (of(&some, Metric::Throughput), of(&none, Metric::Throughput));
    let same: Vec<bool> = std::iter::zip(&some.blocks, &none.blocks)
        .map(|(one, other)| one.to_bits() == other.to_bits())
        .collect();
    let expected: Vec<bool> = (0..8).map(|block| block == place).collect();
    assert_eq!(same, expected);
    assert!(some.probed.is_some(), "of the other blocks");
    assert!(none.probed.is_none());
}

#[test]
fn both_ratios_are_kept_and_absolute_values_stay_as_timed() {
    let slices = run(&mut Simulation::new(658), HOST, -0.05);
    let (probed, timed) = (analysed(&slices), analysed(&without(&slices)));
    let (ours, plain) = (
        of(&probed, Metric::Throughput),
        of(&timed, Metric::Throughput),
    );
    let probes = ours.probed.as_ref().unwrap();
    assert_eq!((ours.base, ours.candidate), (plain.base, plain.candidate));
    assert!((probes.timed.estimate / plain.ratio.estimate - 1.0).abs() < 1e-9);
    assert!(probes.scatter.unwrap() < 0.8, "{probes:?}");
    let says = |comparison: &Comparison| -> Vec<FindingKind> {
        let kinds = comparison
            .findings
            .iter()
            .map(|finding| finding.kind.clone());
        kinds
            .filter(|kind| matches!(kind, FindingKind::Probes | FindingKind::ProbesDiffer))
            .collect()
    };
    assert_eq!(says(&probed), [FindingKind::Probes]);
    assert!(says(&timed).is_empty());
}

/// Whether probes are said to have taken longer beside a server.
fn tells(comparison: &Comparison) -> bool {
    let mut findings = comparison.findings.iter();
    findings.any(|finding| finding.kind == FindingKind::ProbesDiffer)
}

#[test]
fn a_server_beside_which_probes_take_longer_is_told() {
    let told = |beside: f64, seed: u64| {
        let mut random = Simulation::new(seed);
        let runs = runs(200);
        let differ =
            (0..runs).filter(|_| tells(&analysed(&run(&mut random, Host { beside, ..HOST }, 0.0))));
        (count(differ.count()), runs)
    };
    let (equal, runs) = told(0.0, 659);
    let (different, _) = told(0.03, 660);
    println!("of {runs} runs: {equal} with equal probes, {different} with 3 % longer ones");
    assert!(equal * 20 <= runs, "{equal}");
    assert!(different * 10 >= 9 * runs, "{different}");
}

/// Whether a run of 12 cells tells it, whose starts have offsets of their own.
fn tells_of_many(random: &mut Simulation, host: Host) -> bool {
    let cells = 12;
    let mut many = fixed(host.blocks);
    many.cells = vec![cell(1, false); 12];
    let blocks = (0..host.blocks).map(|_| THREE.map(|_| host.start * random.normal()));
    let starts: Vec<[f64; 3]> = blocks.collect();
    let mut slices = Vec::new();
    for cell in 0..cells {
        for mut slice in run(random, host, 0.0) {
            let block = usize::try_from(slice.block).unwrap();
            let place = THREE.iter().position(|one| *one == slice.server).unwrap();
            let probe = to_f64(slice.probe_ns.unwrap()) * starts[block][place].exp();
            slice.probe_ns = Some(to_u64(probe));
            slice.cell = CellId(cell);
            slices.push(slice);
        }
    }
    tells(&analyse(&many, &slices, Vec::new()))
}

/// Cells of which each alone is too noisy to tell.
#[test]
fn what_probes_are_apart_in_all_cells_is_told_though_no_cell_tells_it() {
    let told = |host: Host, seed: u64| {
        let mut random = Simulation::new(seed);
        let runs = runs(60);
        let differ = (0..runs).filter(|_| tells_of_many(&mut random, host));
        (count(differ.count()), runs)
    };
    let (equal, runs) = told(HOST, 662);
    let of_starts = Host {
        start: 0.003,
        ..HOST
    };
    let (starts, _) = told(of_starts, 664);
    // With cells for a sample 36 of 60 such runs are told.
    let apart = Host {
        start: 0.02,
        ..HOST
    };
    let (apart, _) = told(apart, 665);
    assert!(apart * 10 <= runs, "{apart} with starts that differ by 2 %");
    let longer = Host {
        beside: 0.01,
        ..HOST
    };
    let (different, _) = told(longer, 663);
    println!(
        "of {runs} runs: {equal} with equal probes, {starts} with starts that differ by 0.3 %, {different} \
         with 1 % longer ones"
    );
    assert!(
        equal * 10 <= runs && starts * 10 <= runs,
        "{equal} {starts}"
    );
    assert!(different * 10 >= 9 * runs, "{different}");
}
