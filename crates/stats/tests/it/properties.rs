//! What must hold for any values: order, place and unit do not matter.

use deltabench_stats::student::{t_cdf, t_interval, t_quantile, t_test_p};
use deltabench_stats::summary::{geometric_mean, mean, median, quantile, sample_sd, trimmed_mean};
use proptest::prelude::*;

type Summary = (&'static str, fn(&[f64]) -> f64);

const LOCATIONS: [Summary; 5] = [
    ("mean", |v| mean(v).unwrap()),
    ("median", |v| median(v).unwrap()),
    ("quantile", |v| quantile(v, 0.9).unwrap()),
    ("trimmed_mean", |v| trimmed_mean(v, 0.2).unwrap()),
    ("t_interval low", |v| t_interval(v, 0.95).unwrap().low),
];

fn values() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(-100.0..100.0_f64, 2..40)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #[test]
    fn locations_scale_and_shift_with_the_values(
        v in values(), scale in 0.01..50.0_f64, shift in -500.0..500.0_f64
    ) {
        let moved: Vec<f64> = v.iter().map(|x| x * scale + shift).collect();
        for (name, location) in LOCATIONS {
            prop_assert!(close(location(&moved), location(&v) * scale + shift), "{name}");
        }
        prop_assert!(close(sample_sd(&moved).unwrap(), sample_sd(&v).unwrap() * scale));
    }

    #[test]
    fn the_order_of_values_does_not_matter(
        (v, shuffled) in values().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle()))
    ) {
        for (name, location) in LOCATIONS {
            prop_assert!(close(location(&shuffled), location(&v)), "{name}");
        }
        prop_assert!(close(t_test_p(&shuffled).unwrap(), t_test_p(&v).unwrap()));
    }

    #[test]
    fn locations_lie_between_the_smallest_and_the_largest(
        v in values(), share in 0.0..0.499_f64, q in 0.0..=1.0_f64
    ) {
        let low = v.iter().copied().fold(f64::INFINITY, f64::min);
        let high = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for found in [mean(&v), median(&v), trimmed_mean(&v, share), quantile(&v, q)] {
            prop_assert!((low - 1e-9..=high + 1e-9).contains(&found.unwrap()));
        }
    }

    #[test]
    fn turning_the_sign_turns_the_interval(v in values()) {
        let turned: Vec<f64> = v.iter().map(|x| -x).collect();
        let (a, b) = (t_interval(&v, 0.9).unwrap(), t_interval(&turned, 0.9).unwrap());
        prop_assert!(close(a.low, -b.high) && close(a.high, -b.low));
        prop_assert!(close(t_test_p(&v).unwrap(), t_test_p(&turned).unwrap()));
    }

    #[test]
    fn an_interval_leaves_zero_out_exactly_when_p_is_below_its_complement(
        v in values(), level in 0.5..0.999_f64
    ) {
        let p = t_test_p(&v).unwrap();
        prop_assume!((p - (1.0 - level)).abs() > 1e-9);
        prop_assert_eq!(!t_interval(&v, level).unwrap().contains(0.0), p < 1.0 - level);
    }

    #[test]
    fn the_quantile_undoes_the_distribution(p in 1e-9..1.0_f64, df in 0.5..300.0_f64) {
        prop_assume!(p < 1.0);
        prop_assert!((t_cdf(t_quantile(p, df), df) - p).abs() < 1e-12);
    }

    #[test]
    fn the_geometric_mean_of_inverses_is_the_inverse(v in proptest::collection::vec(1e-3..1e3_f64, 1..30)) {
        let inverse: Vec<f64> = v.iter().map(|x| 1.0 / x).collect();
        prop_assert!(close(geometric_mean(&v).unwrap() * geometric_mean(&inverse).unwrap(), 1.0));
    }
}
