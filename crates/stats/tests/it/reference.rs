//! Every value of tests/reference/reference.csv (made by make.py there, with SciPy).

use deltabench_stats::binomial::clopper_pearson;
use deltabench_stats::student::{t_cdf, t_interval, t_quantile, t_test_p, welch};
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
        // Twelve digits: what is lost is the rounding of sums and of the incomplete beta function.
        let tolerance = 1e-12 + 2e-12 * expected.abs();
        assert!(
            (found - expected).abs() <= tolerance,
            "{line}: found {found:e}, expected {expected:e}"
        );
        *checked
            .entry(function.split('.').next().unwrap())
            .or_default() += 1;
    }
    assert_eq!(checked.len(), 12, "functions covered: {checked:?}");
    assert!(checked.values().sum::<u32>() > 600);
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(' ')
        .map(|number| number.parse().unwrap())
        .collect()
}

fn evaluate(function: &str, lists: &[Vec<f64>]) -> f64 {
    let values = &lists[0];
    let whole = |list: usize| lists[list][0].to_string().parse::<u64>().unwrap();
    match function {
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
