//! One-sided questions of a mean over groups, and differences of two means.

use deltabench_stats::between::{Between, mean_between};
use deltabench_stats::student::t_quantile;

/// Of Student's t with two degrees of freedom: the chance of a value below `t`.
fn below_of_two(t: f64) -> f64 {
    0.5 + t / (2.0 * (2.0 + t * t).sqrt())
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

fn mean_of(groups: &[&[f64]]) -> Between {
    mean_between(groups).unwrap()
}

/// Three values: mean −3 %, standard error 0.577 %.
const LOSS: [f64; 3] = [-0.04, -0.03, -0.02];

#[test]
fn the_p_of_no_loss_beyond_a_bound_is_that_of_a_one_sided_t_test() {
    let (one, error) = (mean_of(&[&LOSS]), 0.01 / 3.0_f64.sqrt());
    for bound in [0.0, -0.01, -0.03, -0.05] {
        let p = below_of_two((-0.03 - bound) / error);
        near(one.p_below(bound), p);
        // Where more is asked of what the values inside of groups say; never above 1.
        near(one.p_below_scaled(bound, 2.0), (2.0 * p).min(1.0));
    }
    assert!(one.p_below(0.0) < 0.02 && one.p_below(-0.05) > 0.95);
}

#[test]
fn values_without_scatter_lie_below_a_bound_or_do_not() {
    let same = mean_of(&[&[-0.03, -0.03]]);
    near(same.p_below(0.0), 0.0);
    near(same.p_below(-0.05), 1.0);
}

#[test]
fn of_groups_and_values_the_larger_p_counts() {
    // Two groups that are sure of themselves and 4 % apart: Student's t of one degree of freedom (Cauchy).
    let apart = mean_of(&[&[-0.0101, -0.0099], &[-0.0501, -0.0499]]);
    near(apart.estimate, -0.03);
    let between = 0.5 + (-0.03_f64 / 0.02).atan() / std::f64::consts::PI;
    near(apart.p_below(0.0), between);
    near(apart.p(), 2.0 * between);
    // What is scaled is the p of the values alone, and that is small.
    near(apart.p_below_scaled(0.0, 1.5), between);
    near(apart.p_scaled(1.5), 2.0 * between);
}

#[test]
fn a_scaled_p_is_below_five_percent_exactly_if_the_wider_interval_leaves_zero_out() {
    let times = 5.0 / 3.0;
    let mut seen = [0, 0];
    for step in 0..200 {
        let by = 0.0005 * f64::from(step) - 0.03;
        let moved = LOSS.map(|value| value + by);
        let one = mean_of(&[&moved]);
        let out = !one.interval(0.95, 1.0 - 0.05 / times).contains(0.0);
        assert_eq!(out, one.p_scaled(times) < 0.05, "{by}");
        seen[usize::from(out)] += 1;
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
}

#[test]
fn a_difference_of_two_means_has_the_errors_of_both_and_the_fewer_degrees_of_freedom() {
    let few = mean_of(&[&LOSS]);
    let many = mean_of(&[&[0.03, 0.01, 0.02, 0.01, 0.03, 0.02]]);
    for (left, right, estimate) in [(&few, &many, -0.05), (&many, &few, 0.05)] {
        let difference = left.less(right);
        near(difference.estimate, estimate);
        let error = few.error().hypot(many.error());
        near(difference.error(), error);
        let half = t_quantile(0.975, 2.0) * error;
        near(difference.interval(0.95, 0.95).half_width(), half);
    }
}
