//! Many tests at once.

use crate::number::real;

/// p adjusted by Holm: rejecting what is at most α keeps the chance of *any* false rejection at α.
///
/// Shape:  as many as `p`, same order; each at least its p and at most 1. No assumption on dependence.
/// Source: Holm 1979; as R's `p.adjust(p, "holm")`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut highest = 0.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        let value = p.get(at).copied().unwrap_or(1.0) * real(p.len() - rank);
        highest = highest.max(value.min(1.0));
        if let Some(place) = adjusted.get_mut(at) {
            *place = highest;
        }
    }
    adjusted
}

/// p adjusted by Benjamini and Hochberg: of what is at most q, the share of false ones is at most q on
/// average.
///
/// Shape:  as many as `p`, same order; each at least its p and at most 1. For independent or positively
///         dependent tests.
/// Source: Benjamini & Hochberg 1995; as R's `p.adjust(p, "BH")` and `scipy.stats.false_discovery_control`.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut lowest = 1.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        let value = p.get(at).copied().unwrap_or(1.0) * real(p.len()) / real(rank + 1);
        lowest = lowest.min(value);
        if let Some(place) = adjusted.get_mut(at) {
            *place = lowest;
        }
    }
    adjusted
}

/// p of two independent tests of one hypothesis together.
///
/// Shape:  both between 0 and 1; so is the result.
/// Source: Fisher 1932 for two: c·(1 − ln c) with c the product.
pub fn fisher_of_two(first: f64, second: f64) -> f64 {
    let product = first * second;
    if product > 0.0 {
        (product * (1.0 - product.ln())).min(1.0)
    } else {
        0.0
    }
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| {
        let of = |at: usize| p.get(at).copied().unwrap_or(1.0);
        of(a).total_cmp(&of(b))
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_test_needs_no_adjustment() {
        assert_eq!(holm(&[0.03]), [0.03]);
        assert_eq!(benjamini_hochberg(&[0.03]), [0.03]);
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn adjusted_values_keep_the_order_and_stay_probabilities() {
        let p = [0.9, 0.001, 0.04, 0.04, 0.2];
        for adjusted in [holm(&p), benjamini_hochberg(&p)] {
            assert!(
                std::iter::zip(&p, &adjusted)
                    .all(|(p, adjusted)| p <= adjusted && *adjusted <= 1.0)
            );
            assert!(adjusted[1] < adjusted[2] && adjusted[2] <= adjusted[4]);
        }
    }

    #[test]
    fn two_tests_together_are_stronger_than_either_when_both_are_small() {
        assert!((fisher_of_two(1.0, 1.0) - 1.0).abs() < 1e-15);
        assert!(fisher_of_two(0.03, 0.02) < 0.02);
        assert!(fisher_of_two(0.03, 0.9) > 0.03);
        assert!(fisher_of_two(0.0, 0.5) < 1e-300);
    }
}
