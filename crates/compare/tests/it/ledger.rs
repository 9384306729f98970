//! Do intervals of placebos hold 0 as often as they say, and does the ledger show it where they do not?
//!
//! `DELTABENCH_RUNS=4000 cargo test -p deltabench-compare --test it ledger:: -- --nocapture` prints the table
//! of docs/measuring.md.

use crate::builder::{CANDIDATE, PLACEBO, cell, plan, runs};
use crate::calibration_model::{Model, Simulation, THREE, TWO};
use crate::pipeline::{MIDDLE, drive, sequential};
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::ledger::{Coverage, Entry, coverage};

use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::clopper_pearson;

/// CPU per operation moves with restarts and drift, and has noise of its own.
const MODEL: Model = Model {
    cpu_noise: Some(0.02),
    ..MIDDLE
};
const TWELVE: Model = Model {
    blocks: 12,
    ..MODEL
};

fn entry(comparison: &Comparison) -> Entry {
    let found = &comparison.placebo_cells[0];
    let p = |metric| crate::builder::metric(found, metric).p();
    Entry {
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
        let run = |_| entry(&drive(&plan, &simulation.run(MODEL, effect, &THREE)));
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
        .map(|_| {
            let luck = 0.015 / 12.0_f64.sqrt() * simulation.normal();
            let slices: Vec<Slice> = simulation.run(TWELVE, luck, &TWO);
            let placebo = slices.into_iter().map(|slice| match slice.server {
                CANDIDATE => Slice {
                    server: PLACEBO,
                    ..slice
                },
                _ => slice,
            });
            entry(&analyse(&plan, &placebo.collect::<Vec<_>>(), Vec::new()))
        })
        .collect();
    let rows = told("a luck of the run", &entries);
    let mut printed = rows.iter().filter(|row| row.level > 0.9);
    assert!(printed.all(Coverage::is_too_low), "{rows:?}");
    // t falls by the root of two: 2.2 / 1.41 holds in 85 %.
    assert!((0.75..0.91).contains(&(to_f64(rows[2].held) / 200.0)));
}
