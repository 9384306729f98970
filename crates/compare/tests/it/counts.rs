//! Runs that counted instructions and measured nothing.

use crate::builder::*;
use deltabench_compare::comparison::{Comparison, Metric, MetricComparison, Ratio, Verdict};
use deltabench_compare::{add_apart, add_counts, analyse, exit_code};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;

/// What a base with 100 000 instructions per operation and this candidate come to, cell by cell; the starts
/// of each differ by 0.01 %.
fn counted(candidate: &[Option<f64>], findings: Vec<Finding>) -> Comparison {
    let plan: Plan = plan(vec![cell(1, false); candidate.len()]);
    let mut records = Vec::new();
    for (cell, candidate) in (0..).zip(candidate) {
        records.extend(starts(BASE, cell, 1e5));
        let counted = candidate.map(|per_op| starts(CANDIDATE, cell, per_op));
        records.extend(counted.into_iter().flatten());
    }
    let mut comparison = analyse(&plan, &[], findings);
    add_counts(&mut comparison, &plan, &records, true);
    comparison
}

#[test]
fn the_exit_code_of_a_count_is_that_of_its_worst_cell() {
    for (candidate, code) in [
        (vec![Some(1e5), Some(0.9e5)], 0),
        (vec![Some(1e5), Some(1.0101e5)], 3),
        (vec![Some(1.0101e5), Some(1.2e5)], 1),
        (vec![Some(1e5), None], 3),
        (vec![Some(1.2e5), None], 1),
        (vec![None, None], 5),
    ] {
        let comparison = counted(&candidate, Vec::new());
        assert_eq!(exit_code(&comparison), code, "{candidate:?}");
    }
}

#[test]
fn a_withdrawn_count_passes_nothing() {
    let mut comparison = counted(&[Some(1.2e5), Some(1e5)], Vec::new());
    comparison.cells[0].verdict = Verdict::Unfit;
    assert_eq!(exit_code(&comparison), 3);
    comparison.cells[1].verdict = Verdict::Unfit;
    assert_eq!(exit_code(&comparison), 4);
}

#[test]
fn a_count_leaves_out_findings_about_time_alone() {
    let kinds = [
        FindingKind::Steal,
        FindingKind::CflagsDiffer,
        FindingKind::Fsync,
    ];
    let findings = kinds.map(|kind| Finding::new(kind, Severity::Note, "so it is"));
    let comparison = counted(&[Some(1e5)], findings.to_vec());
    let left: Vec<&FindingKind> = comparison.findings.iter().map(|one| &one.kind).collect();
    assert_eq!(left, [&FindingKind::CflagsDiffer]);
}

#[test]
fn the_mean_of_a_count_is_geometric() {
    let comparison = counted(&[Some(1e5), Some(1.21e5)], Vec::new());
    let mean = comparison.counted_alone().unwrap().mean(CANDIDATE).unwrap();
    assert!((mean - 1.1).abs() < 1e-6, "{mean}");
}

#[test]
fn time_and_work_that_part_are_said_where_they_do() {
    let plan = plan(vec![cell(1, false); 4]);
    let mut comparison = counted(
        &[Some(1e5), Some(1.05e5), Some(0.9e5), Some(1.04e5)],
        Vec::new(),
    );
    let counts = comparison.instructions.as_mut().unwrap();
    counts.alone = false;
    let verdicts = [
        (Verdict::Regression, 0.9),
        (Verdict::NoChange, 1.0),
        (Verdict::Regression, 0.9),
        (Verdict::Regression, 0.96),
    ];
    for (cell, (verdict, ratio)) in comparison.cells.iter_mut().zip(verdicts) {
        cell.verdict = verdict;
        cell.metrics.push(MetricComparison {
            metric: Metric::Throughput,
            base: 1.0,
            candidate: ratio,
            ratio: Ratio {
                estimate: ratio,
                ci95: None,
                ci90: None,
            },
            typical: None,
            difference_us: None,
            verdict: None,
            blocks: Vec::new(),
            numbers: Vec::new(),
            other_blocks: Vec::new(),
            hours: None,
            skewness: Default::default(),
            probed: None,
        });
    }
    add_apart(&mut comparison, &plan);
    let said = comparison.findings.iter();
    let said: Vec<&str> = said
        .filter(|finding| finding.kind == FindingKind::CountAndTime)
        .map(|finding| finding.text.split_once(": ").unwrap().1)
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].starts_with("slower, but +0.00 % instructions"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("+5.00 % instructions, but no change of throughput"),
        "{said:?}"
    );
    assert!(
        said[2].ends_with("time and work say the opposite"),
        "{said:?}"
    );
}
