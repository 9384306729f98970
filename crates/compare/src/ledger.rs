//! What a host's placebos have said so far.

use crate::comparison::{Metric, Verdict};
use crate::thresholds::{LEVEL_DIFFERENT, LOPSIDED};
use deltabench_stats::Interval;
use deltabench_stats::binomial::symmetry_p;
use deltabench_stats::clustered::{ClusteredShare, Groups};
use deltabench_stats::skewed::SkewedMean;
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::mean;
use std::collections::BTreeMap;

/// The intervals that are asked whether they hold 0. The last is the one that reports print.
pub const LEVELS: [f64; 3] = [0.5, 0.8, LEVEL_DIFFERENT];

/// What one placebo cell of one run said.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The run: its cells share restarts and the hour, so they say less than as many cells of different runs.
    pub run: String,
    pub workload: String,
    /// Its verdict; of a placebo every regression and improvement is a false alarm.
    pub verdict: Verdict,
    /// Two-sided p of "throughput is equal", over all blocks that the cell has; absent where not known.
    pub throughput_p: Option<f64>,
    /// The same of CPU per operation.
    pub server_cpu_p: Option<f64>,
}

/// How many intervals of placebos hold 0, the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Throughput or CPU per operation.
    pub metric: Metric,
    /// Level of the intervals: the share that should hold 0.
    pub level: f64,
    /// Intervals of this level that hold 0.
    pub held: u64,
    /// Placebo cells that have one.
    pub cells: u64,
    /// Runs that these cells are of.
    pub runs: u64,
    /// 95 % interval of the share, which knows how much runs scatter.
    pub ci95: Interval,
    share: ClusteredShare,
}

impl Coverage {
    /// Whether intervals hold 0 less often than they say, beyond chance: they are too narrow.
    pub fn is_too_low(&self) -> bool {
        // One-sided p below the limit: the ledger is looked at again and again as it grows.
        self.share.interval(1.0 - 2.0 * LOPSIDED).high < self.level
    }
}

/// The p that an entry knows.
type Known = fn(&Entry) -> Option<f64>;

const METRICS: [(Metric, Known); 2] = [
    (Metric::Throughput, |entry| entry.throughput_p),
    (Metric::ServerCpuPerOperation, |entry| entry.server_cpu_p),
];

/// How often intervals of placebos hold 0: at each of [`LEVELS`] for throughput, then for CPU per operation.
///
/// Shape:  any order; a metric without any p has no rows.
/// Source: an interval at level L holds 0 exactly if p ≥ 1 − L, because p and intervals follow one rule
///         (`deltabench_stats::skewed`). Interval of a share: [`ClusteredShare`], with runs as groups.
pub fn coverage(entries: &[Entry]) -> Vec<Coverage> {
    Tally::of(tallies(entries).values()).coverage()
}

/// What the placebo cells of one run said, counted: what many runs say follows from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTally {
    called: Called,
    /// Of each of [`METRICS`].
    intervals: [Intervals; METRICS.len()],
}

/// Intervals of the cells of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Intervals {
    cells: u64,
    /// Those that hold 0, by level.
    held: [u64; LEVELS.len()],
}

/// What entries say run by run, by name.
pub fn tallies(entries: &[Entry]) -> BTreeMap<String, RunTally> {
    let mut runs: BTreeMap<String, RunTally> = BTreeMap::new();
    for entry in entries {
        let run = runs.entry(entry.run.clone()).or_default();
        run.called.add(entry.verdict);
        for ((_, known), own) in METRICS.iter().zip(&mut run.intervals) {
            let Some(p) = known(entry) else { continue };
            own.cells += 1;
            for (held, level) in own.held.iter_mut().zip(LEVELS) {
                *held += u64::from(p >= 1.0 - level);
            }
        }
    }
    runs
}

/// What the placebo cells of many runs said, as sums: a further run is an addition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    called: CalledRuns,
    /// Of each of [`METRICS`], the intervals that hold 0 among all, by level.
    intervals: [[Groups; LEVELS.len()]; METRICS.len()],
}

impl Tally {
    fn of<'a>(runs: impl Iterator<Item = &'a RunTally>) -> Self {
        let mut all = Self::default();
        runs.for_each(|run| all.add(run));
        all
    }

    /// Adds a run.
    pub fn add(&mut self, run: &RunTally) {
        self.called.add(run.called);
        for (levels, own) in self.intervals.iter_mut().zip(&run.intervals) {
            for (groups, held) in levels.iter_mut().zip(own.held) {
                groups.add(held, own.cells);
            }
        }
    }

    /// As [`coverage`].
    pub fn coverage(&self) -> Vec<Coverage> {
        let mut rows = Vec::new();
        for ((metric, _), levels) in METRICS.iter().zip(&self.intervals) {
            let effect = effect(levels);
            let known = LEVELS.into_iter().zip(levels);
            let known = known.filter(|(_, groups)| groups.number() > 0);
            rows.extend(known.map(|(level, groups)| {
                let share = share(groups, effect);
                Coverage {
                    metric: *metric,
                    level,
                    held: groups.succeeded(),
                    cells: groups.members(),
                    runs: groups.number(),
                    ci95: share.interval(LEVEL_DIFFERENT),
                    share,
                }
            }));
        }
        rows
    }

    /// The last row of [`summarise`].
    pub fn over_all(&self) -> FalseAlarmRate {
        self.called.rate(None, self.shared_effect())
    }

    /// What the cells of a run have in common, over both metrics: the larger one.
    fn shared_effect(&self) -> Option<f64> {
        let of = self.intervals.iter().filter_map(|levels| effect(levels));
        of.reduce(f64::max)
    }
}

/// The share behind sums over groups, with what their members have in common where that is known.
fn share(groups: &Groups, effect: Option<f64>) -> ClusteredShare {
    let own = ClusteredShare::of(groups);
    effect.map_or(own, |effect| own.with_effect(effect))
}

/// What the cells of a run have in common, as far as it is known: it shows best where many of them miss 0.
fn effect(levels: &[Groups]) -> Option<f64> {
    let shares = levels.iter().map(ClusteredShare::of);
    let effects = shares.filter_map(|share| share.effect());
    mean(&effects.collect::<Vec<_>>())
}

/// The p behind a ratio of so many blocks of which only the 95 % interval was kept: exact where its blocks
/// were not skewed, and below 5 % exactly if the interval leaves out 1.0 in any case. `None` for less than
/// two blocks, and for ends that no ratio has.
pub fn p_of_interval(estimate: f64, (low, high): (f64, f64), blocks: u32) -> Option<f64> {
    let df = f64::from(blocks.checked_sub(2)?) + 1.0;
    let centre = estimate.ln();
    let end = if centre > 0.0 { low } else { high };
    let error = (centre - end.ln()).abs() / t_quantile(0.5 + LEVEL_DIFFERENT / 2.0, df);
    let known = centre.is_finite() && error.is_finite();
    known.then(|| SkewedMean::assumed(centre, error, df, 0.0).p())
}

/// False alarms of one workload, or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct FalseAlarmRate {
    /// The workload; absent for all together.
    pub workload: Option<String>,
    /// Cells judged.
    pub total: u64,
    /// Of these called slower.
    pub regressions: u64,
    /// Of these called faster.
    pub improvements: u64,
    /// Upper end of the one-sided 95 % interval of the false-alarm rate, as a share; the run is the unit.
    pub upper95: f64,
    /// Two-sided p of "slower and faster are equally likely", over runs that called more cells one of them; 1
    /// without any. A small one means that one side is preferred: an error of the set-up, which chance is
    /// not.
    pub symmetry_p: f64,
}

impl FalseAlarmRate {
    /// Cells called different.
    pub fn flagged(&self) -> u64 {
        self.regressions + self.improvements
    }

    /// Whether slower and faster differ by more than chance: one side is preferred.
    pub fn prefers_a_side(&self) -> bool {
        self.symmetry_p < LOPSIDED
    }
}

/// False-alarm rates so far: each workload in alphabetical order, then all together.
///
/// Shape:  any order; the last row is always there, for nothing with a bound of 1.
/// Source: bound: [`ClusteredShare`] with runs as groups, and with what the intervals of their cells have in
///         common, because false alarms are too few to show it. Symmetry: exact binomial test over runs.
///         docs/sources/statistics.md#placebo.
pub fn summarise(entries: &[Entry]) -> Vec<FalseAlarmRate> {
    let all = Tally::of(tallies(entries).values());
    let shared = all.shared_effect();
    let mut workloads: BTreeMap<&String, BTreeMap<&str, Called>> = BTreeMap::new();
    for entry in entries {
        let own = workloads.entry(&entry.workload).or_default();
        own.entry(&entry.run).or_default().add(entry.verdict);
    }
    let of_workload = |(name, runs): (&String, BTreeMap<&str, Called>)| {
        let mut called = CalledRuns::default();
        runs.into_values().for_each(|run| called.add(run));
        called.rate(Some(name.clone()), shared)
    };
    let rows = workloads.into_iter().map(of_workload);
    rows.chain([all.over_all()]).collect()
}

/// The cells of one run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Called {
    cells: u64,
    slower: u64,
    faster: u64,
}

impl Called {
    fn add(&mut self, verdict: Verdict) {
        self.cells += 1;
        match verdict {
            Verdict::Regression => self.slower += 1,
            Verdict::Improvement => self.faster += 1,
            Verdict::NoChange | Verdict::Inconclusive | Verdict::Unfit => {}
        }
    }
}

/// The cells of many runs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct CalledRuns {
    /// Cells called different among all.
    groups: Groups,
    all: Called,
    /// Runs that called more cells slower, and those that called more faster.
    more: (u64, u64),
}

impl CalledRuns {
    fn add(&mut self, run: Called) {
        let Called {
            cells,
            slower,
            faster,
        } = run;
        self.groups.add(slower + faster, cells);
        self.all.cells += cells;
        self.all.slower += slower;
        self.all.faster += faster;
        self.more.0 += u64::from(slower > faster);
        self.more.1 += u64::from(faster > slower);
    }

    fn rate(&self, workload: Option<String>, shared: Option<f64>) -> FalseAlarmRate {
        FalseAlarmRate {
            workload,
            total: self.all.cells,
            regressions: self.all.slower,
            improvements: self.all.faster,
            // One-sided 95 % is the upper end of two-sided 90 %.
            upper95: share(&self.groups, shared).interval(0.90).high,
            symmetry_p: symmetry_p(self.more.1, self.more.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(workload: &str, verdicts: &[(Verdict, usize)]) -> Vec<Entry> {
        let repeated = verdicts
            .iter()
            .flat_map(|&(verdict, times)| std::iter::repeat_n(verdict, times));
        repeated
            .enumerate()
            .map(|(run, verdict)| Entry {
                run: format!("{workload} {verdict:?} {run}"),
                workload: workload.to_owned(),
                verdict,
                throughput_p: None,
                server_cpu_p: None,
            })
            .collect()
    }

    #[test]
    fn nothing_said_bounds_nothing() {
        let rows = summarise(&[]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].total, rows[0].flagged()), (0, 0));
        assert!(rows[0].upper95 > 0.999 && rows[0].symmetry_p > 0.999);
    }

    #[test]
    fn rates_are_by_workload_and_over_all_with_exact_bounds() {
        use Verdict::{Improvement, Inconclusive, NoChange, Regression};
        let mut all = entries("update-index", &[(NoChange, 9), (Regression, 1)]);
        all.extend(entries(
            "point-query",
            &[(NoChange, 280), (Inconclusive, 20)],
        ));
        all.extend(entries("update-index", &[(Improvement, 2)]));
        let rows = summarise(&all);
        let names: Vec<_> = rows.iter().map(|row| row.workload.as_deref()).collect();
        assert_eq!(names, [Some("point-query"), Some("update-index"), None]);
        // R: binom.test(0, 300)$conf.int one-sided 1 − 0.05^(1/300); binom.test(3, 12): 0.5273.
        assert!((rows[0].upper95 - (1.0 - 0.05_f64.powf(1.0 / 300.0))).abs() < 1e-9);
        assert!(
            (rows[1].upper95 - 0.527_327).abs() < 1e-5,
            "{}",
            rows[1].upper95
        );
        assert_eq!((rows[2].total, rows[2].flagged()), (312, 3));
        assert!(
            (rows[2].symmetry_p - 1.0).abs() < 1e-12,
            "2 against 1 is nothing"
        );
    }

    #[test]
    fn cells_of_a_run_say_less_than_as_many_runs() {
        let mut all = entries(
            "scan",
            &[(Verdict::NoChange, 208), (Verdict::Regression, 8)],
        );
        for (at, entry) in all.iter_mut().enumerate() {
            entry.run = (at / 27).to_string();
        }
        let row = &summarise(&all)[0];
        assert!((row.symmetry_p - 1.0).abs() < 1e-12, "all of one run");
        assert!(row.upper95 > 0.1, "{}", row.upper95);
        all.iter_mut()
            .for_each(|one| one.verdict = Verdict::NoChange);
        // Nothing is known of what they have in common: 8 runs.
        let bound = |rows: &[FalseAlarmRate]| rows[0].upper95;
        let unknown = bound(&summarise(&all));
        assert!(
            (unknown - (1.0 - 0.05_f64.powf(1.0 / 8.0))).abs() < 1e-9,
            "{unknown}"
        );
        // Their intervals miss 0 one by one.
        for (at, entry) in all.iter_mut().enumerate() {
            entry.throughput_p = Some(if at % 3 == 0 { 0.1 } else { 0.9 });
        }
        let known = bound(&summarise(&all));
        assert!((0.0137..0.05).contains(&known), "{known}");
    }

    #[test]
    fn false_alarms_of_one_kind_only_show() {
        let rows = summarise(&entries("scan", &[(Verdict::Regression, 10)]));
        assert!((rows[0].symmetry_p - 2.0 / 1024.0).abs() < 1e-12);
    }

    /// Each in a run of its own.
    fn known(throughput_p: &[f64], server_cpu_p: Option<f64>) -> Vec<Entry> {
        let entry = |(at, p): (usize, &f64)| Entry {
            run: format!("r{at}"),
            workload: "scan".to_owned(),
            verdict: Verdict::NoChange,
            throughput_p: Some(*p),
            server_cpu_p,
        };
        throughput_p.iter().enumerate().map(entry).collect()
    }

    #[test]
    fn shares_are_counted_for_each_level_and_metric() {
        let mut entries = known(&[0.9, 0.6, 0.3, 0.1, 0.04], None);
        let held = |entries: &[Entry]| -> Vec<(u64, u64)> {
            let rows = coverage(entries);
            rows.iter().map(|row| (row.held, row.cells)).collect()
        };
        assert_eq!(held(&entries), [(2, 5), (3, 5), (4, 5)], "CPU is not known");
        entries[0].server_cpu_p = Some(0.01);
        assert_eq!(held(&entries)[3..], [(0, 1), (0, 1), (0, 1)]);
        assert!(coverage(&[]).is_empty());
    }

    #[test]
    fn eighty_one_of_a_hundred_is_too_few_and_ninety_is_not() {
        let of_95 = |held: usize| {
            let p: Vec<f64> = (0..100)
                .map(|at| if at < held { 0.5 } else { 0.01 })
                .collect();
            coverage(&known(&p, None))[2]
        };
        let low = of_95(81);
        // R: binom.test(81, 100)$conf.int: 0.7193 0.8816.
        assert!((low.ci95.low - 0.7193).abs() < 1e-4 && (low.ci95.high - 0.8816).abs() < 1e-4);
        assert!(low.is_too_low());
        assert!(!of_95(90).is_too_low() && !of_95(100).is_too_low());
    }

    #[test]
    fn cells_of_one_run_may_all_have_its_luck() {
        let mut entries = known(&[&[0.5; 95][..], &[0.01; 25]].concat(), None);
        assert!(coverage(&entries)[2].is_too_low());
        // All that miss 0 but one are the cells of one run.
        for (at, entry) in entries.iter_mut().rev().enumerate() {
            entry.run = format!("r{}", at / 24);
        }
        let found = &coverage(&entries)[2];
        assert_eq!((found.held, found.cells, found.runs), (95, 120, 5));
        assert!(!found.is_too_low() && found.ci95.high > 0.95, "{found:?}");
    }

    #[test]
    fn a_p_of_an_interval_is_that_of_its_blocks() {
        let blocks = [0.01, -0.02, 0.03, 0.005, 0.012, -0.004, 0.02, 0.008];
        for shift in [-0.03, -0.012, -0.0076, 0.0, 0.004] {
            let mean = SkewedMean::new(&blocks.map(|value| value + shift), 0.0).unwrap();
            let ends = mean.interval(0.95);
            let kept = (ends.low.exp(), ends.high.exp());
            let p = p_of_interval(mean.centre.exp(), kept, 8).unwrap();
            assert!((p - mean.p()).abs() < 1e-9, "{shift}: {p}");
        }
        assert_eq!(p_of_interval(1.0, (1.0, 1.0), 1), None);
        assert!(p_of_interval(1.0, (0.0, 1.1), 8).is_some());
        assert_eq!(p_of_interval(1.01, (0.0, 1.1), 8), None);
    }
}
