//! Differences that are clear after two fresh blocks: do the figures of all blocks hold what they state?
//!
//! `DELTABENCH_RUNS=4000 cargo test -p deltabench-compare --test it clear:: -- --nocapture` prints the table
//! of docs/decisions/0070-what-is-clear-ends-early.md.

use crate::builder::{as_run, cell, metric, only_cell, plan, runs};
use crate::calibration_model::{Simulation, THREE};
use crate::pipeline::{MIDDLE, drive};
use deltabench_compare::comparison::{CellComparison, Metric, Verdict};
use deltabench_compare::looks;
use deltabench_model::plan::Stopping;
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::clopper_pearson;

/// Runs of one true change, by how they ended.
#[derive(Default)]
struct Ends {
    runs: u64,
    blocks: u64,
    /// After two fresh blocks, and those of them whose interval holds the change.
    clear: u64,
    clear_hold: u64,
    /// After six, likewise.
    again: u64,
    again_hold: u64,
    /// Half-widths on the log scale and estimates / truth, summed.
    clear_width: f64,
    again_width: f64,
    clear_size: f64,
}

fn is_clear(cell: &CellComparison) -> bool {
    cell.reason.contains(", clear after ")
}

fn ends(seed: u64, (effect, blocks): (f64, u32), number: u64) -> Ends {
    let mut simulation = Simulation::new(seed);
    let mut plan = as_run(plan(vec![cell(4, false)]));
    plan.timing.blocks = blocks;
    plan.stopping = Stopping::Sequential {
        looks: looks(blocks),
    };
    let mut ends = Ends::default();
    for _ in 0..number {
        let run = drive(&plan, &simulation.run(MIDDLE, effect, &THREE));
        let cell = only_cell(&run);
        let ratio = &metric(cell, Metric::Throughput).ratio;
        let (low, high) = ratio.ci95.unwrap();
        let holds = u64::from((low..=high).contains(&effect.exp()));
        let width = (high / low).ln() / 2.0;
        ends.runs += 1;
        ends.blocks += u64::from(cell.blocks);
        if is_clear(cell) {
            // A placebo is off by chance in a few of a thousand runs.
            let told = [Verdict::Regression, Verdict::Improvement, Verdict::Unfit];
            assert!(told.contains(&cell.verdict), "{:?}", cell.verdict);
            ends.clear += 1;
            ends.clear_hold += holds;
            ends.clear_width += width;
            ends.clear_size += ratio.estimate.ln() / effect;
        } else if cell.detection.is_some() {
            ends.again += 1;
            ends.again_hold += holds;
            ends.again_width += width;
        }
    }
    ends
}

impl Ends {
    fn print(&self, effect: f64) {
        let of = |sum: f64, number: u64| sum / to_f64(number.max(1));
        println!(
            "{:+.0} %: {:.1} blocks; clear {:.1} % (holds {:.1} %, ±{:.2} %, {:.3} of its size); \
             six fresh ones {:.1} % (holds {:.1} %, ±{:.2} %); both hold {:.1} %",
            100.0 * effect.exp_m1(),
            of(to_f64(self.blocks), self.runs),
            100.0 * of(to_f64(self.clear), self.runs),
            100.0 * of(to_f64(self.clear_hold), self.clear),
            100.0 * of(self.clear_width, self.clear),
            of(self.clear_size, self.clear),
            100.0 * of(to_f64(self.again), self.runs),
            100.0 * of(to_f64(self.again_hold), self.again),
            100.0 * of(self.again_width, self.again),
            100.0
                * of(
                    to_f64(self.clear_hold + self.again_hold),
                    self.clear + self.again
                ),
        );
    }
}

#[test]
fn clear_differences_take_fewer_blocks_and_their_intervals_hold_the_truth() {
    let number = runs(30);
    let (mut hold, mut found) = (0, 0);
    // The mean of six blocks has a standard error of 0.65 %. The first look of 14 blocks asks for less than
    // that of 24.
    for blocks in [24, 14] {
        println!("of {blocks} blocks:");
        for (seed, effect) in (701..).zip([0.97_f64, 0.95, 0.93, 0.91, 1.12, 0.85, 0.7]) {
            let ends = ends(seed, (effect.ln(), blocks), number);
            ends.print(effect.ln());
            hold += ends.clear_hold + ends.again_hold;
            found += ends.clear + ends.again;
            if effect < 0.75 {
                assert_eq!((ends.clear, ends.blocks), (number, 8 * number));
            }
        }
    }
    let likely = clopper_pearson(hold, found, 0.999);
    assert!(likely.high >= 0.95, "{hold} of {found}");
    assert!(found > 10 * number, "most are found early: {found}");
}
