//! What a host's placebos have said so far.

use crate::comparison::Verdict;
use crate::thresholds::LOPSIDED;
use deltabench_stats::binomial::{clopper_pearson, symmetry_p};
use std::collections::BTreeMap;

/// What one placebo cell of one run said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub workload: String,
    /// Its verdict; of a placebo every regression and improvement is a false alarm.
    pub verdict: Verdict,
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
    /// Upper end of the exact one-sided 95 % interval of the false-alarm rate, as a share.
    pub upper95: f64,
    /// Two-sided p of "slower and faster are equally likely"; 1 without any. A small one means that one
    /// side is preferred: an error of the set-up, which chance is not.
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

    fn add(&mut self, verdict: Verdict) {
        self.total += 1;
        match verdict {
            Verdict::Regression => self.regressions += 1,
            Verdict::Improvement => self.improvements += 1,
            Verdict::NoChange | Verdict::Inconclusive | Verdict::Unfit => {}
        }
    }
}

/// False-alarm rates so far: each workload in alphabetical order, then all together.
///
/// Shape:  any order; the last row is always there, for nothing with a bound of 1.
/// Source: bound: Clopper & Pearson 1934, so 0 of 300 is below 1 % (rule of three). Symmetry: exact binomial
///         test. docs/sources/statistics.md#placebo.
pub fn summarise(entries: &[Entry]) -> Vec<FalseAlarmRate> {
    let row = |workload: Option<&String>| FalseAlarmRate {
        workload: workload.cloned(),
        total: 0,
        regressions: 0,
        improvements: 0,
        upper95: 1.0,
        symmetry_p: 1.0,
    };
    let mut workloads: BTreeMap<&String, FalseAlarmRate> = BTreeMap::new();
    let mut all = row(None);
    for entry in entries {
        let found = workloads.entry(&entry.workload);
        found
            .or_insert_with_key(|name| row(Some(name)))
            .add(entry.verdict);
        all.add(entry.verdict);
    }
    let rows = workloads.into_values().chain([all]);
    rows.map(|row| FalseAlarmRate {
        // One-sided 95 % is the upper end of two-sided 90 %.
        upper95: clopper_pearson(row.flagged(), row.total, 0.90).high,
        symmetry_p: symmetry_p(row.improvements, row.regressions),
        ..row
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(workload: &str, verdicts: &[(Verdict, usize)]) -> Vec<Entry> {
        let repeated = verdicts
            .iter()
            .flat_map(|&(verdict, times)| std::iter::repeat_n(verdict, times));
        repeated
            .map(|verdict| Entry {
                workload: workload.to_owned(),
                verdict,
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
    fn false_alarms_of_one_kind_only_show() {
        let rows = summarise(&entries("scan", &[(Verdict::Regression, 10)]));
        assert!((rows[0].symmetry_p - 2.0 / 1024.0).abs() < 1e-12);
    }
}
