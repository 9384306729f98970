//! The ratio of two sides over paired rounds.

use deltabench_compare::thresholds::LEVEL_DIFFERENT;
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;

/// Geometric mean of ratios with its t interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanRatio {
    /// The mean; 1 of no rounds.
    pub estimate: f64,
    /// Its interval; absent with fewer than two rounds, and where a round measured nothing on one side.
    pub ci95: Option<[f64; 2]>,
}

impl MeanRatio {
    /// That of rounds whose ratios have these logarithms.
    pub fn of_logs(logs: &[f64]) -> Self {
        let interval = t_interval(logs, LEVEL_DIFFERENT).ok();
        let ends = interval.map(|found| [found.low.exp(), found.high.exp()]);
        Self {
            estimate: mean(logs).unwrap_or_default().exp(),
            ci95: ends.filter(|ends| ends.iter().all(|end| end.is_finite())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_geometric_mean_of_its_rounds() {
        let found = MeanRatio::of_logs(&[0.5_f64.ln(), 2.0_f64.ln()]);
        assert!((found.estimate - 1.0).abs() < 1e-12);
        let [low, high] = found.ci95.unwrap();
        assert!(low < 0.5 && high > 2.0);
        assert_eq!(MeanRatio::of_logs(&[0.0]).ci95, None);
        let nothing = 0.0_f64.ln();
        assert_eq!(MeanRatio::of_logs(&[0.0, nothing, 0.1]).ci95, None);
    }
}
