//! Candidates against both copies of the base.

use crate::builder::*;
use crate::calibration_model::{Model, QUIET, Simulation, THREE};
use crate::pipeline::sequential;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::thresholds::SECOND_CONTROL_SD;
use deltabench_compare::{Machine, add_costs, analyse, progress};
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, Plan, ServerId, Stopping};
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::{mean, median, sample_sd};

fn two_controls(blocks: u32) -> Plan {
    let mut plan = plan(vec![cell(4, false)]);
    plan.stopping = Stopping::Fixed;
    plan.timing.blocks = blocks;
    plan.two_controls = true;
    plan
}

fn throughput(comparison: &Comparison) -> f64 {
    metric(only_cell(comparison), Metric::Throughput)
        .ratio
        .estimate
}

/// Whether the 95 % interval of throughput lies above 1; `None` if it holds 1.
fn side_of_one(comparison: &Comparison) -> Option<bool> {
    let cell = only_cell(comparison);
    let (low, high) = metric(cell, Metric::Throughput).ratio.ci95.unwrap();
    (low > 1.0 || high < 1.0).then_some(low > 1.0)
}

#[test]
fn a_candidate_is_compared_with_the_mean_of_both_copies_and_the_placebo_with_the_base() {
    let (placebo, ours) = (around(0.96, 0.01, 8), around(0.9, 0.01, 8));
    let sides = [
        Blocks {
            server: PLACEBO,
            rates: &placebo,
            costs: &[1.1; 8],
        },
        candidate(&ours, &[1.2; 8]),
    ];
    let slices = slices(8, &sides);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found}");
    let comparison = analyse(&two_controls(8), &slices, Vec::new());
    near(throughput(&comparison), 0.9 / 0.96_f64.sqrt());
    let cell = only_cell(&comparison);
    let cpu = metric(cell, Metric::ServerCpuPerOperation);
    near(cpu.ratio.estimate, 1.2 / 1.1_f64.sqrt());
    near(cpu.base, 10.0 * 1.1_f64.sqrt());
    near(cpu.candidate, 12.0);
    near(
        cell.series[0].server_cpu.unwrap(),
        (1.2 / 1.1_f64.sqrt()).ln(),
    );
    let placebo = &comparison.placebo_cells[0].metrics[0];
    near(placebo.ratio.estimate, 0.96);
    // Relative to the candidate, the copy of the old base is no copy of the new one.
    let turned = analyse(&two_controls(8).relative_to(CANDIDATE), &slices, Vec::new());
    near(throughput(&turned), 1.0 / 0.9);
    // A run from before is read as it was.
    let mut old = two_controls(8);
    old.two_controls = false;
    near(throughput(&analyse(&old, &slices, Vec::new())), 0.9);
}

/// What a visit counted of a server on which all costs are this large.
fn counted(server: ServerId, block: u32, size: f64) -> VisitCounters {
    let values = [
        ("process_user_ns", 8_000.0),
        ("process_system_ns", 2_000.0),
        ("database_blocks_hit", 4.0),
    ];
    let operations = 400_000;
    let values = values.map(|(key, each)| (key.to_owned(), each * size * to_f64(operations)));
    VisitCounters {
        server,
        cell: CellId(0),
        block,
        operations,
        values: values.into_iter().collect(),
    }
}

/// The base is 3 % slower than its copy in all it does, and the candidate is as fast as both together: every
/// figure says the same.
#[test]
fn a_base_that_is_off_is_off_nowhere() {
    let (placebo, ours) = (1.03, 1.03_f64.sqrt());
    let rates = [around(placebo, 0.001, 8), around(ours, 0.002, 8)];
    let costs = [
        around(1.0 / placebo, 0.001, 8),
        around(1.0 / ours, 0.002, 8),
    ];
    let sides = [
        Blocks {
            server: PLACEBO,
            rates: &rates[0],
            costs: &costs[0],
        },
        candidate(&rates[1], &costs[1]),
    ];
    let mut all = slices(8, &sides);
    for slice in &mut all {
        let us = to_f64(slice.duration_ns) / to_f64(slice.operations) / 1e3;
        let latency = deltabench_model::units::to_u64(us * 1e3);
        slice.latency_histogram = histogram(&vec![latency; 1000]);
        slice.switches = slice.server_cpu_ns.map(|cpu| cpu / 1000);
    }
    let size =
        |slice: &Slice| 1e-4 * to_f64(slice.server_cpu_ns.unwrap()) / to_f64(slice.operations);
    let visits = all.iter().filter(|slice| slice.round == 0);
    let counters: Vec<_> = visits
        .map(|slice| counted(slice.server, slice.block, size(slice)))
        .collect();
    let plan = two_controls(8);
    let mut comparison = analyse(&plan, &all, Vec::new());
    let machines = vec![Machine::of_client(Some(2)); 3];
    add_costs(&mut comparison, &plan, &all, &counters, &machines);
    let cell = only_cell(&comparison);
    let near = |found: f64, expected: f64, what: &str| {
        assert!(
            (found / expected - 1.0).abs() < 3e-4,
            "{what}: {found}, not {expected}"
        );
    };
    // Ratios of all that is judged, in µs, and of all that explains it.
    for found in &cell.metrics {
        near(found.ratio.estimate, 1.0, found.metric.key());
        near(found.candidate, found.base, found.metric.key());
        if let Some(difference) = found.difference_us {
            assert!(difference.estimate.abs() < 0.3, "{difference:?}");
        }
    }
    let keys: Vec<&str> = cell.costs.iter().map(|cost| cost.key.as_str()).collect();
    for key in [
        "server_cpu_us_per_op",
        "user_cpu_us_per_op",
        "context_switches_per_op",
        "blocks_hit_per_op",
    ] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    for cost in &cell.costs {
        // Nobody counted the client's CPU.
        let Some(ratio) = cost.ratio else {
            assert!(cost.base + cost.candidate <= 0.0, "{cost:?}");
            continue;
        };
        near(ratio.estimate, 1.0, &cost.key);
        near(cost.candidate, cost.base, &cost.key);
        assert!(
            cost.difference.estimate.abs() < 3e-4 * cost.base,
            "{cost:?}"
        );
    }
    assert!(
        cell.moved.is_empty() && cell.explanation.is_none(),
        "{:?}",
        cell.moved
    );
    // Charts and exported rows.
    for rate in &cell.rates {
        let (cpu, switches) = (rate.server_cpu_us.unwrap(), rate.switches.unwrap());
        for (base, candidate) in [(rate.base, rate.candidate), cpu, switches] {
            assert!((candidate / base - 1.0).abs() < 0.0035, "{rate:?}");
        }
    }
    let curves = cell.latency.as_ref().unwrap();
    let middle = curves
        .percentiles
        .iter()
        .position(|at| (at - 50.0).abs() < 1e-9)
        .unwrap();
    assert!(
        (curves.candidate_us[middle] / curves.base_us[middle] - 1.0).abs() < 0.004,
        "{curves:?}"
    );
    // The placebo says what it is apart from the base alone.
    let placebo = &comparison.placebo_cells[0];
    for cost in &placebo.costs {
        let off = cost.ratio.map(|ratio| ratio.estimate * 1.03 - 1.0);
        assert!(off.is_none_or(|off| off.abs() < 3e-4), "{cost:?}");
    }
}

#[test]
fn a_round_counts_if_both_copies_have_it() {
    let (equal, ours) = (around(1.0, 0.01, 8), around(0.9, 0.01, 8));
    let placebo = Blocks {
        server: PLACEBO,
        rates: &equal,
        costs: &[],
    };
    let mut slices = slices(8, &[placebo, candidate(&ours, &[])]);
    let of_placebo = |slices: &mut Vec<deltabench_model::slice::Slice>, block, round| {
        let place = |slice: &deltabench_model::slice::Slice| {
            (slice.server, slice.block, slice.round) == (PLACEBO, block, round)
        };
        slices.iter().position(place).unwrap()
    };
    let void = of_placebo(&mut slices, 3, 1);
    slices[void].void = Some(VoidReason::Stalled);
    let gone = of_placebo(&mut slices, 4, 2);
    slices.remove(gone);
    let comparison = analyse(&two_controls(8), &slices, Vec::new());
    let cell = only_cell(&comparison);
    assert_eq!((cell.blocks, cell.rounds, cell.void_rounds), (8, 30, 1));
}

#[test]
fn two_copies_say_more_than_one_and_intervals_keep_their_promise() {
    let model = Model {
        cpu_noise: Some(0.01),
        ..QUIET
    };
    let mut simulation = Simulation::new(2611);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (mut held, mut called, runs) = (0_u32, 0_u32, 1500);
    for _ in 0..runs {
        let slices = simulation.run(model, -0.02, &THREE);
        let plan = two_controls(model.blocks);
        let mut old = plan.clone();
        old.two_controls = false;
        let comparison = analyse(&plan, &slices, Vec::new());
        let (low, high) = metric(only_cell(&comparison), Metric::Throughput)
            .ratio
            .ci95
            .unwrap();
        held += u32::from((low..=high).contains(&(-0.02_f64).exp()));
        let equal = simulation.run(model, 0.0, &THREE);
        let equal = analyse(&plan, &equal, Vec::new());
        called += u32::from(side_of_one(&equal).is_some());
        two.push(throughput(&comparison).ln());
        one.push(throughput(&analyse(&old, &slices, Vec::new())).ln());
    }
    let narrower = sample_sd(&two).unwrap() / sample_sd(&one).unwrap();
    println!(
        "{runs} runs: sd {narrower:.3} of one control's, held {held}, {called} equal ones leave out 1"
    );
    assert!((narrower - SECOND_CONTROL_SD).abs() < 0.04, "{narrower}");
    assert!((mean(&two).unwrap() + 0.02).abs() < 0.001);
    assert!(f64::from(held) > 0.93 * f64::from(runs), "{held}");
    assert!(
        (0.02..0.08).contains(&(f64::from(called) / f64::from(runs))),
        "{called}"
    );
}

#[test]
fn fewer_blocks_decide() {
    let mut simulation = Simulation::new(2612);
    let model = Model {
        blocks: 24,
        ..QUIET
    };
    let mut needed = [0_u32; 2];
    for _ in 0..60 {
        let slices = simulation.run(model, 0.0, &THREE);
        for (place, two) in [false, true].into_iter().enumerate() {
            let mut plan = sequential(two_controls(24));
            plan.delta = 0.01;
            plan.two_controls = two;
            let decided = (1..=24).find(|&blocks| {
                let part: Vec<_> = slices
                    .iter()
                    .filter(|s| s.block < blocks)
                    .cloned()
                    .collect();
                progress(&plan, &part)[0] == deltabench_compare::CellProgress::Decided
            });
            needed[place] += decided.unwrap_or(24);
        }
    }
    println!("blocks of 60 equal cells until a verdict: {needed:?}");
    assert!(
        f64::from(needed[1]) < 0.95 * f64::from(needed[0]),
        "{needed:?}"
    );
}

/// One run of equal servers whose starts are slower by a few percent now and then, `rare` of them; the other
/// luck of a start is normal.
fn of_lucky_starts(simulation: &mut Simulation, blocks: u32, rare: f64) -> Comparison {
    let mut starts = || -> Vec<f64> {
        let luck = (0..blocks).map(|_| {
            let slow = f64::from(u8::from(simulation.uniform() < rare));
            (0.003 * simulation.normal() - 0.03 * slow).exp()
        });
        luck.collect()
    };
    let (base, placebo, ours) = (starts(), starts(), starts());
    let relative = |of: &[f64]| -> Vec<f64> {
        std::iter::zip(of, &base)
            .map(|(one, base)| one / base)
            .collect()
    };
    let (placebo, ours) = (relative(&placebo), relative(&ours));
    let side = Blocks {
        server: PLACEBO,
        rates: &placebo,
        costs: &[],
    };
    let slices = slices(blocks, &[side, candidate(&ours, &[])]);
    analyse(&two_controls(blocks), &slices, Vec::new())
}

/// A start of a candidate counts once, those of the base half each, so their skewness does not cancel. False
/// answers must not lean to one side for it, and where starts have no skewed luck intervals stay as short.
#[test]
fn rare_slow_starts_lean_false_answers_to_no_side() {
    let number = runs(300);
    let nominal = 0.025;
    for (seed, (blocks, rare)) in (2613..).zip([(12, 0.1), (12, 0.0), (8, 0.1), (24, 0.2)]) {
        let mut simulation = Simulation::new(seed);
        let (mut slower, mut faster, mut wider) = (0, 0, Vec::new());
        for _ in 0..number {
            let comparison = of_lucky_starts(&mut simulation, blocks, rare);
            match side_of_one(&comparison) {
                Some(true) => faster += 1,
                Some(false) => slower += 1,
                None => {}
            }
            let found = metric(only_cell(&comparison), Metric::Throughput);
            let (low, high) = found.ratio.ci95.unwrap();
            let student = t_interval(&found.blocks, 0.95).unwrap().half_width();
            wider.push((high / low).ln() / 2.0 / student);
        }
        let wider = median(&wider).unwrap();
        println!(
            "{blocks} blocks, {rare} of starts slow: of {number} intervals of equal servers {slower} lie \
             below 1 and {faster} above; median width {wider:.3} times Student's"
        );
        for side in [slower, faster] {
            let low = clopper_pearson(side, number, 0.999).low;
            assert!(low <= 1.25 * nominal, "{side} of {number}");
        }
        assert!(rare > 0.0 || wider <= 1.05, "{wider}");
    }
}
