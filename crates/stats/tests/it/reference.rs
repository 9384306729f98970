//! Every value of tests/reference/reference.csv (made by make.py there, with SciPy).

use deltabench_stats::binomial::{clopper_pearson, symmetry_p};
use deltabench_stats::chi_square::chi_square_quantile;
use deltabench_stats::multiplicity::{benjamini_hochberg, holm};
use deltabench_stats::normal::{normal_quantile, normal_tail};
use deltabench_stats::spending::{Sides, nominal_levels};
use deltabench_stats::steady::slope;
use deltabench_stats::student::{t_cdf, t_interval, t_quantile, t_test_above_p, t_test_p, welch};
use deltabench_stats::summary::{geometric_mean, mean, median, quantile, sample_sd, trimmed_mean};
use std::collections::BTreeMap;

const REFERENCE: &str = include_str!("../reference/reference.csv");

#[test]
fn every_function_agrees_with_scipy() {
    let mut checked: BTreeMap<&str, u32> = BTreeMap::new();
    for line in REFERENCE.lines().filter(|line| !line.starts_with('#')) {
        let [function, arguments, value] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("not three fields: {line}");
        };
        let expected: f64 = value.parse().unwrap();
        let lists: Vec<Vec<f64>> = arguments.split('|').map(numbers).collect();
        let found = evaluate(function, &lists);
        // Twelve digits: what is lost is the rounding of sums and of the incomplete beta function. Integrals
        // over several looks are done by two methods; they agree to five.
        let tolerance = match function.split('.').next() {
            Some("nominal_levels") => 1e-8 + 2e-5 * expected.abs(),
            Some("normal_tail") => 2e-12 * expected.abs(),
            _ => 1e-12 + 2e-12 * expected.abs(),
        };
        assert!(
            (found - expected).abs() <= tolerance,
            "{line}: found {found:e}, expected {expected:e}"
        );
        *checked
            .entry(function.split('.').next().unwrap())
            .or_default() += 1;
    }
    assert_eq!(checked.len(), 21, "functions covered: {checked:?}");
    assert!(checked.values().sum::<u32>() > 780);
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(' ')
        .map(|number| number.parse().unwrap())
        .collect()
}

fn evaluate(function: &str, lists: &[Vec<f64>]) -> f64 {
    let values = &lists[0];
    let whole = |list: usize| lists[list][0].to_string().parse::<u64>().unwrap();
    if let Some((function, part)) = function.split_once('.')
        && let Some(found) = evaluate_list(function, lists)
    {
        return found[part.parse::<usize>().unwrap()];
    }
    match function {
        "normal_tail" => normal_tail(values[0]),
        "normal_quantile" => normal_quantile(values[0]),
        "chi_square_quantile" => chi_square_quantile(values[0], lists[1][0]),
        "symmetry_p" => symmetry_p(whole(0), whole(1)),
        "t_test_above_p" => t_test_above_p(values).unwrap(),
        "theil_sen" => slope(values) * lists[0].iter().map(|_| 1.0).sum::<f64>(),
        // A family of one has no parts.
        "benjamini_hochberg" | "holm" => evaluate_list(function, lists).unwrap()[0],
        "t_cdf" => t_cdf(values[0], lists[1][0]),
        "t_quantile" => t_quantile(values[0], lists[1][0]),
        "mean" => mean(values).unwrap(),
        "sample_sd" => sample_sd(values).unwrap(),
        "median" => median(values).unwrap(),
        "quantile" => quantile(values, lists[1][0]).unwrap(),
        "trimmed_mean" => trimmed_mean(values, lists[1][0]).unwrap(),
        "geometric_mean" => geometric_mean(values).unwrap(),
        "t_test_p" => t_test_p(values).unwrap(),
        "t_interval.0" => t_interval(values, lists[1][0]).unwrap().low,
        "t_interval.1" => t_interval(values, lists[1][0]).unwrap().high,
        "clopper_pearson.0" => clopper_pearson(whole(0), whole(1), lists[2][0]).low,
        "clopper_pearson.1" => clopper_pearson(whole(0), whole(1), lists[2][0]).high,
        "welch.0" => welch(values, &lists[1], lists[2][0]).unwrap().difference,
        "welch.1" => welch(values, &lists[1], lists[2][0]).unwrap().interval.low,
        "welch.2" => welch(values, &lists[1], lists[2][0]).unwrap().interval.high,
        "welch.3" => welch(values, &lists[1], lists[2][0]).unwrap().df,
        "welch.4" => welch(values, &lists[1], lists[2][0]).unwrap().p,
        _ => panic!("no such function: {function}"),
    }
}

/// Functions with as many values as arguments.
fn evaluate_list(function: &str, lists: &[Vec<f64>]) -> Option<Vec<f64>> {
    match function {
        "benjamini_hochberg" => Some(benjamini_hochberg(&lists[0])),
        "holm" => Some(holm(&lists[0])),
        "nominal_levels" => {
            let looks: Vec<(f64, f64)> =
                std::iter::zip(lists[0].iter().copied(), lists[1].iter().copied()).collect();
            let sides = if lists[2][0] > 0.5 {
                Sides::Two
            } else {
                Sides::One
            };
            Some(nominal_levels(&looks, sides))
        }
        _ => None,
    }
}
