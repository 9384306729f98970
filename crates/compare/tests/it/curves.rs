//! Rates of blocks and curves of latency.

use crate::builder::*;
use deltabench_compare::analyse;
use deltabench_model::slice::VoidReason;

#[test]
fn every_block_that_counts_has_its_rate_on_both_sides() {
    let rates = [0.9, 1.0, 1.1, 1.0];
    let mut slices = slices(4, &[candidate(&rates, &[])]);
    for slice in slices.iter_mut().filter(|slice| slice.block == 2) {
        slice.void = Some(VoidReason::Stalled);
    }
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let found = &only_cell(&comparison).rates;
    let blocks: Vec<u32> = found.iter().map(|rate| rate.block).collect();
    assert_eq!(blocks, [0, 1, 3]);
    assert!((found[0].base - 1000.0).abs() < 1e-6 && (found[0].candidate - 900.0).abs() < 1e-3);
}

#[test]
fn a_curve_is_of_all_slices_together_and_ends_where_ten_operations_are_slower() {
    let mut slices = slices(6, &[candidate(&[1.0; 6], &[])]);
    // 24 slices on a side: 24 × 100 operations, of 1 to 100 µs, and twice that.
    let micros: Vec<u64> = (1..=100).map(|us| us * 1000).collect();
    let twice: Vec<u64> = micros.iter().map(|ns| 2 * ns).collect();
    for slice in &mut slices {
        let latencies = if slice.server == BASE {
            &micros
        } else {
            &twice
        };
        slice.latency_histogram = histogram(latencies);
    }
    let comparison = analyse(&plan(vec![cell(1, false)]), &slices, Vec::new());
    let curves = only_cell(&comparison).latency.clone().unwrap();
    assert_eq!(curves.percentiles.first(), Some(&0.0));
    assert_eq!(
        curves.percentiles.last(),
        Some(&99.5),
        "0.5 % of 2400 are 12"
    );
    let at = |wanted: f64| {
        let at = curves
            .percentiles
            .iter()
            .position(|p| (p - wanted).abs() < 1e-9);
        (
            curves.base_us[at.unwrap()],
            curves.candidate_us[at.unwrap()],
        )
    };
    for (percentile, us) in [(0.0, 1.0), (50.0, 50.0), (90.0, 90.0), (99.0, 99.0)] {
        let (base, candidate) = at(percentile);
        assert!((base / us - 1.0).abs() < 0.01, "{percentile}: {base}");
        assert!(
            (candidate / (2.0 * us) - 1.0).abs() < 0.01,
            "{percentile}: {candidate}"
        );
    }
    assert!(curves.base_us.is_sorted() && curves.candidate_us.is_sorted());
    let nothing = analyse(&plan(vec![cell(1, false)]), &[], Vec::new());
    assert_eq!(only_cell(&nothing).latency, None);
}
