//! Do intervals of placebos hold 0 as often as they say, and does the ledger show it where they do not?
//!
//! `DELTABENCH_RUNS=4000 cargo test -p deltabench-compare --test it ledger:: -- --nocapture` prints the table
//! of docs/sources/statistics.md#placebo.

use crate::builder::{CANDIDATE, PLACEBO, cell, plan, runs};
use crate::calibration_model::{Model, Simulation, THREE, TWO};
use crate::pipeline::{MIDDLE, drive, sequential};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::ledger::{Coverage, Entry, coverage};

use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::skewed::SkewedMean;

/// CPU per operation moves with restarts and drift, and has noise of its own.
const MODEL: Model = Model {
    cpu_noise: Some(0.02),
    ..MIDDLE
};
const TWELVE: Model = Model {
    blocks: 12,
    ..MODEL
};

fn entry(run: u64, comparison: &Comparison) -> Entry {
    let found = &comparison.placebo_cells[0];
    let p = |metric| crate::builder::metric(found, metric).p();
    Entry {
        run: run.to_string(),
        workload: found.workload.clone(),
        verdict: found.verdict,
        throughput_p: p(Metric::Throughput),
        server_cpu_p: p(Metric::ServerCpuPerOperation),
    }
}

fn told(what: &str, entries: &[Entry]) -> Vec<Coverage> {
    let rows = coverage(entries);
    for row in &rows {
        let share = 100.0 * to_f64(row.held) / to_f64(row.cells);
        println!(
            "{what:<40} {:?} {:.0} %: {share:.1} % [{:.1}, {:.1}] of {}",
            row.metric,
            100.0 * row.level,
            100.0 * row.ci95.low,
            100.0 * row.ci95.high,
            row.cells
        );
    }
    rows
}

fn fixed(blocks: u32) -> Plan {
    let mut plan = plan(vec![cell(4, false)]);
    plan.timing.blocks = blocks;
    plan
}

#[test]
fn intervals_of_equal_placebos_hold_zero_as_often_as_they_say() {
    let precision = |blocks| Plan {
        stopping: Stopping::Precision { half_width: 0.01 },
        ..fixed(blocks)
    };
    let plans = [
        ("all blocks of 12", fixed(12), 0.0),
        ("looks, equal candidate", sequential(fixed(24)), 0.0),
        ("looks, candidate 1 % slower", sequential(fixed(24)), -0.01),
        ("until a width, equal candidate", precision(24), 0.0),
    ];
    for (seed, (what, plan, effect)) in (901..).zip(plans) {
        let mut simulation = Simulation::new(seed);
        let run = |at| entry(at, &drive(&plan, &simulation.run(MODEL, effect, &THREE)));
        let entries: Vec<Entry> = (0..runs(250)).map(run).collect();
        for row in told(what, &entries) {
            // Stopping at a width takes a point or two; else within chance.
            let taken = if what.starts_with("until") { 0.03 } else { 0.0 };
            let chance = clopper_pearson(row.held, row.cells, 0.999);
            let right = chance.low <= row.level && row.level <= chance.high + taken;
            assert!(right, "{what}: {row:?}");
        }
    }
}

/// A luck that all blocks of a run share, as large as the error that its blocks show.
#[test]
fn the_ledger_shows_intervals_that_do_not_know_all_of_the_noise() {
    let mut simulation = Simulation::new(911);
    let plan = fixed(TWELVE.blocks);
    let entries: Vec<Entry> = (0..200)
        .map(|at| {
            let luck = 0.015 / 12.0_f64.sqrt() * simulation.normal();
            let slices: Vec<Slice> = simulation.run(TWELVE, luck, &TWO);
            let placebo = slices.into_iter().map(|slice| match slice.server {
                CANDIDATE => Slice {
                    server: PLACEBO,
                    ..slice
                },
                _ => slice,
            });
            entry(
                at,
                &analyse(&plan, &placebo.collect::<Vec<_>>(), Vec::new()),
            )
        })
        .collect();
    let rows = told("a luck of the run", &entries);
    let mut printed = rows.iter().filter(|row| row.level > 0.9);
    assert!(printed.all(Coverage::is_too_low), "{rows:?}");
    // t falls by the root of two: 2.2 / 1.41 holds in 85 %.
    assert!((0.75..0.91).contains(&(to_f64(rows[2].held) / 200.0)));
}

/// Placebo cells of a run of 12 blocks with exact t intervals; blocks of two cells are correlated like this,
/// because cells of a block share its restart.
fn cells_of_a_run(random: &mut Simulation, run: u32, correlation: f64, luck: f64) -> Vec<Entry> {
    let luck = luck / 12.0_f64.sqrt() * random.normal();
    let shared: Vec<f64> = (0..12).map(|_| random.normal()).collect();
    let cell = |_| {
        let own = (1.0 - correlation).sqrt();
        let blocks = { shared.iter() }
            .map(|restart| luck + correlation.sqrt() * restart + own * random.normal());
        let mean = SkewedMean::new(&blocks.collect::<Vec<f64>>(), 0.0).unwrap();
        Entry {
            run: format!("r{run}"),
            workload: "scan".to_owned(),
            verdict: Verdict::NoChange,
            throughput_p: Some(mean.p()),
            server_cpu_p: None,
        }
    };
    (0..26).map(cell).collect()
}

/// A ledger is looked at after each of its runs.
#[test]
fn cells_that_share_restarts_do_not_make_exact_intervals_look_too_narrow() {
    let ledgers = runs(100);
    for (seed, correlation) in (921..).zip([0.0, 0.3, 0.5, 0.8]) {
        let mut random = Simulation::new(seed);
        let (mut last, mut ever, mut held, mut by_cells) = (0, 0, 0, 0);
        for _ in 0..ledgers {
            let mut entries = Vec::new();
            let mut too_low = Vec::new();
            for run in 0..10 {
                entries.extend(cells_of_a_run(&mut random, run, correlation, 0.0));
                too_low.push(coverage(&entries)[2].is_too_low());
            }
            last += u64::from(too_low[9]);
            ever += u64::from(too_low.contains(&true));
            held += u64::from(coverage(&entries)[2].ci95.contains(0.95));
            for (at, entry) in entries.iter_mut().enumerate() {
                entry.run = at.to_string();
            }
            by_cells += u64::from(coverage(&entries)[2].is_too_low());
        }
        println!(
            "10 runs of 26 cells, correlation {correlation}: too narrow after the tenth in {last}, after \
             any in {ever}; the interval of the share contains 95 % in {held}; too narrow with cells as \
             if independent in {by_cells}, of {ledgers}"
        );
        let at_most = |rate: f64, hits: u64| clopper_pearson(hits, ledgers, 0.999).low <= rate;
        assert!(
            at_most(0.01, last) && at_most(0.05, ever),
            "{correlation}: {last} {ever}"
        );
        assert!(at_most(0.05, ledgers - held), "{correlation}: {held}");
        assert!(correlation < 0.7 || by_cells > ledgers / 20, "{by_cells}");
    }
}

/// In the first set intervals miss 0 in 10 % of the cells for reasons of their own, in the second because
/// each run has a luck, as large as the error of its cells and the same for all of them.
#[test]
fn the_ledger_finds_narrow_intervals_sooner_if_cells_miss_one_by_one() {
    let ledgers = runs(100);
    let mut random = Simulation::new(931);
    let mut found = [0, 0];
    let mut held = [0, 0];
    for _ in 0..ledgers {
        for (set, (luck, missing)) in [(0.0, 0.10), (1.0, 0.0)].into_iter().enumerate() {
            let mut entries = Vec::new();
            for run in 0..10 {
                for entry in cells_of_a_run(&mut random, run, 0.3, luck) {
                    let missed = (random.uniform() < missing).then_some(0.01);
                    entries.push(Entry {
                        throughput_p: missed.or(entry.throughput_p),
                        ..entry
                    });
                }
            }
            let of_95 = coverage(&entries)[2];
            found[set] += u64::from(of_95.is_too_low());
            held[set] += of_95.held;
        }
    }
    let share = |held: u64| 100.0 * to_f64(held) / to_f64(260 * ledgers);
    println!(
        "10 runs of 26 cells: {:.1} % of intervals hold 0, cell by cell: found in {}; {:.1} % because of a \
         luck of the run: found in {}; of {ledgers}",
        share(held[0]),
        found[0],
        share(held[1]),
        found[1]
    );
    assert!(
        clopper_pearson(found[0], ledgers, 0.999).high > 0.8,
        "{found:?}"
    );
    assert!(share(held[1]) < 92.0, "{held:?}");
    assert!(found[1] < found[0], "{found:?}");
}
