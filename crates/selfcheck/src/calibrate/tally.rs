//! What calibration runs came to, against what was true. Pure.

use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Ratio, Verdict};
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::clopper_pearson;

/// One metric of one cell of one run, against the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// The true ratio, candidate / base; 1.0 in an A/A run.
    pub truth: f64,
    pub estimate: f64,
    /// Its 95 % interval; absent with fewer than two blocks.
    pub ci95: Option<(f64, f64)>,
}

impl Size {
    fn new(truth: f64, ratio: &Ratio) -> Self {
        Self {
            truth,
            estimate: ratio.estimate,
            ci95: ratio.ci95,
        }
    }

    /// Whether the interval holds the truth.
    fn covers(&self) -> Option<bool> {
        self.ci95
            .map(|(low, high)| (low..=high).contains(&self.truth))
    }
}

/// One cell of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Number of the run, from 1.
    pub run: u32,
    pub workload: String,
    /// What the product said.
    pub verdict: Verdict,
    pub throughput: Size,
    /// CPU per operation, where the host can tell.
    pub server_cpu: Option<Size>,
    /// Whether other load disturbed more than half of its rounds.
    pub contended: bool,
}

/// The trials of a run: the candidate's cells, with the truth of each.
///
/// The truth is computed with the run's own base: the burn is a fixed number of nanoseconds, so what share it
/// is depends on how fast the machine was during that run. With one truth for all runs, an interval could
/// miss it because the machine, and with it the true ratio, had changed. The base's own error enters the
/// truth only as a share of the injected share: 1 % off in 3 % is 0.03 %.
///
/// That of throughput holds on an otherwise idle machine. Where others take turns on the core, time is shared
/// out by CPU, and a burn costs more than its own length; that of CPU per operation holds in any case.
pub fn trials(run: u32, burn_ns: u64, plan: &Plan, comparison: &Comparison) -> Vec<Trial> {
    let trial = |cell: &CellComparison| {
        let burnt = to_f64(burn_ns) * to_f64(packets(plan, cell.cell));
        let of = |metric| {
            let found = cell.metrics.iter().find(|found| found.metric == metric)?;
            let truth = match metric {
                Metric::Throughput => true_throughput(1e9 / found.base, burnt),
                _ => true_cpu(1e3 * found.base, burnt),
            };
            Some(Size::new(truth, &found.ratio))
        };
        Some(Trial {
            run,
            workload: cell.workload.clone(),
            verdict: cell.verdict,
            throughput: of(Metric::Throughput)?,
            server_cpu: of(Metric::ServerCpuPerOperation),
            contended: cell.interference.contended,
        })
    };
    comparison.cells.iter().filter_map(trial).collect()
}

/// Packets that the client sends for an operation: the driver does not pipeline, so one for each statement.
pub fn packets(plan: &Plan, cell: CellId) -> u64 {
    plan.cell(cell)
        .map_or(1, |cell| u64::from(cell.statements_per_operation.max(1)))
}

/// True ratio of throughput when an operation that takes `time` takes `burnt` longer: one client waits for
/// each answer, so throughput is one over the time.
pub fn true_throughput(time_ns: f64, burnt_ns: f64) -> f64 {
    time_ns / (time_ns + burnt_ns)
}

/// True ratio of CPU per operation.
pub fn true_cpu(cpu_ns: f64, burnt_ns: f64) -> f64 {
    (cpu_ns + burnt_ns) / cpu_ns
}

/// What makes an operation of `time` slower by `share` in throughput: the b with T / (T + b) = 1 − share.
pub fn burn_for(time_ns: f64, share: f64) -> f64 {
    time_ns * share / (1.0 - share)
}

/// Trials of one workload, or of all, counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    pub trials: u64,
    /// Called slower.
    pub regressions: u64,
    /// Called faster.
    pub improvements: u64,
    /// Called equal.
    pub no_change: u64,
    /// Not decided, or not trusted.
    pub open: u64,
    /// Measured under other load.
    pub contended: u64,
    pub throughput: Option<Sizes>,
    /// CPU per operation.
    pub server_cpu: Option<Sizes>,
}

/// Estimates against truths, over trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Geometric mean of the true ratios.
    pub truth: f64,
    /// Geometric mean of the estimates.
    pub estimate: f64,
    /// Intervals that held the truth.
    pub covered: u64,
    pub intervals: u64,
}

/// Counts trials.
pub fn tally<'a>(trials: impl Iterator<Item = &'a Trial> + Clone) -> Tally {
    let with = |verdict| count(trials.clone().filter(|trial| trial.verdict == verdict));
    Tally {
        trials: count(trials.clone()),
        regressions: with(Verdict::Regression),
        improvements: with(Verdict::Improvement),
        no_change: with(Verdict::NoChange),
        open: with(Verdict::Inconclusive) + with(Verdict::Unfit),
        contended: count(trials.clone().filter(|trial| trial.contended)),
        throughput: sizes(trials.clone().map(|trial| trial.throughput)),
        server_cpu: sizes(trials.filter_map(|trial| trial.server_cpu)),
    }
}

/// The 95 % interval of a share that was counted; exact.
pub fn share_interval(of: u64, trials: u64) -> (f64, f64) {
    let interval = clopper_pearson(of, trials, 0.95);
    (interval.low, interval.high)
}

fn sizes(sizes: impl Iterator<Item = Size> + Clone) -> Option<Sizes> {
    let number = count(sizes.clone());
    if number == 0 {
        return None;
    }
    let mean = |of: fn(&Size) -> f64| {
        let sum: f64 = sizes.clone().map(|size| of(&size).ln()).sum();
        (sum / to_f64(number)).exp()
    };
    let held = sizes.clone().filter_map(|size| size.covers());
    Some(Sizes {
        truth: mean(|size| size.truth),
        estimate: mean(|size| size.estimate),
        covered: count(held.clone().filter(|held| *held)),
        intervals: count(held),
    })
}

fn count(items: impl Iterator) -> u64 {
    deltabench_model::units::count(items.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(truth: f64, estimate: f64, half: f64) -> Size {
        Size {
            truth,
            estimate,
            ci95: Some((estimate - half, estimate + half)),
        }
    }

    fn trial(run: u32, verdict: Verdict, throughput: Size) -> Trial {
        Trial {
            run,
            workload: "point-query".to_owned(),
            verdict,
            throughput,
            server_cpu: None,
            contended: false,
        }
    }

    #[test]
    fn the_burn_gives_the_share_that_was_asked_for() {
        for share in [0.001, 0.03, 0.5] {
            let burnt = burn_for(42_000.0, share);
            assert!((true_throughput(42_000.0, burnt) - (1.0 - share)).abs() < 1e-12);
        }
        assert!((true_cpu(20_000.0, 1000.0) - 1.05).abs() < 1e-12);
        assert!((true_cpu(20_000.0, 0.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_burn_is_a_smaller_share_of_a_slower_run() {
        let burnt = burn_for(40_000.0, 0.05);
        assert!(true_throughput(60_000.0, burnt) > true_throughput(40_000.0, burnt));
    }

    #[test]
    fn verdicts_sizes_and_coverage_are_counted() {
        let trials = [
            trial(1, Verdict::Regression, size(0.97, 0.97, 0.01)),
            trial(2, Verdict::Regression, size(0.97, 0.95, 0.01)),
            trial(3, Verdict::Inconclusive, size(0.97, 0.98, 0.02)),
            trial(
                4,
                Verdict::Unfit,
                Size {
                    ci95: None,
                    ..size(0.97, 0.97, 0.0)
                },
            ),
        ];
        let counted = tally(trials.iter());
        assert_eq!(
            (counted.trials, counted.regressions, counted.open),
            (4, 2, 2)
        );
        let throughput = counted.throughput.unwrap();
        assert!((throughput.truth - 0.97).abs() < 1e-12);
        assert!(
            (throughput.estimate - 0.967_435).abs() < 1e-5,
            "{throughput:?}"
        );
        assert_eq!((throughput.covered, throughput.intervals), (2, 3));
        assert_eq!(counted.server_cpu, None);
        assert_eq!(tally([].iter()).throughput, None);
    }

    #[test]
    fn intervals_of_shares_are_exact() {
        let (low, high) = share_interval(9, 10);
        assert!((low - 0.554_984).abs() < 1e-5 && (high - 0.997_471).abs() < 1e-5);
    }
}
