//! Blocks whose two sides nothing ties: two servers that ran one after another, for hours.
//!
//! The scatter of a block's ratio is not that of pairs then. Whatever the values of two sides have in common
//! by chance in a few blocks must not make an interval narrow, so the block values are spread to the variance
//! of a difference of two independent means, s²(base)/n + s²(candidate)/n. The degrees of freedom stay n − 1,
//! the fewest that Welch's approximation can give, so an interval is too wide rather than too narrow.
//!
//! Source: Welch 1947, "The generalization of Student's problem when several different population variances
//!         are involved".

use deltabench_stats::summary::{mean, sample_sd};

/// By how much the log-ratios of blocks, whose two sides are `base` and `candidate`, scatter less than two
/// independent samples would; 1 where they scatter as much or more, or where nobody can tell.
pub(crate) fn stretch(base: &[f64], candidate: &[f64]) -> f64 {
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value.ln()).collect() };
    let (base, candidate) = (logs(base), logs(candidate));
    let ratios = std::iter::zip(&base, &candidate);
    let ratios: Vec<f64> = ratios.map(|(base, candidate)| candidate - base).collect();
    let all = [&ratios, &base, &candidate].map(|values| sample_sd(values));
    let [Some(paired), Some(base), Some(candidate)] = all else {
        return 1.0;
    };
    let factor = base.hypot(candidate) / paired;
    if factor.is_finite() {
        factor.max(1.0)
    } else {
        1.0
    }
}

/// The values, so many times as far from their mean.
pub(crate) fn stretched(values: &[f64], factor: f64) -> Vec<f64> {
    let centre = mean(values).unwrap_or(0.0);
    let away = |value: &f64| centre + (value - centre) * factor;
    values.iter().map(away).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sd_of_logs(values: &[f64]) -> f64 {
        sample_sd(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn what_two_sides_have_in_common_makes_no_interval_narrow() {
        // Both sides go up and down together, by 10 %: paired, the ratio is known to 0.1 %.
        let (base, candidate) = (
            [100.0_f64, 110.0, 90.0, 105.0],
            [200.0_f64, 220.2, 179.9, 210.1],
        );
        let pairs = std::iter::zip(base, candidate);
        let ratios: Vec<f64> = pairs
            .map(|(base, candidate)| (candidate / base).ln())
            .collect();
        let spread = stretched(&ratios, stretch(&base, &candidate));
        let two = sd_of_logs(&base).hypot(sd_of_logs(&candidate));
        assert!((sample_sd(&spread).unwrap() / two - 1.0).abs() < 1e-9);
        assert!(two > 50.0 * sample_sd(&ratios).unwrap());
        assert!((mean(&spread).unwrap() - mean(&ratios).unwrap()).abs() < 1e-12);
    }

    #[test]
    fn sides_that_move_against_each_other_keep_their_scatter_and_one_block_has_none() {
        let factor = stretch(&[100.0, 110.0, 90.0], &[210.0, 190.0, 220.0]);
        assert!((factor - 1.0).abs() < 1e-12);
        assert!((stretch(&[100.0], &[200.0]) - 1.0).abs() < 1e-12);
    }
}
