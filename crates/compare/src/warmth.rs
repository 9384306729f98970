//! Whether servers are warm.

use crate::thresholds::{TREND_P, TREND_SHARE, log_delta};
use deltabench_stats::steady::steady;
use deltabench_stats::summary::mean;

/// Whether servers that take turns have become steady.
///
/// Each server's curve is judged against the mean of all: what the host does to a round is no part of it. A
/// trend of less than a quarter of δ over the whole length is none; neither is a larger one that chance makes
/// one time in twenty, because on a noisy host nothing shorter than minutes would pass otherwise. Servers may
/// also warm up together, equally fast: they are not steady while all of them get faster beyond chance.
///
/// Shape:  for each server the time of an operation in consecutive slices, any unit; a server that is absent
///         has an empty curve. Fewer than six slices are never steady.
/// Source: docs/sources/statistics.md#warm-up, docs/decisions/0068-steady-against-each-other.md.
pub fn are_steady(curves: &[Vec<f64>], delta: f64) -> bool {
    let present = curves.iter().filter(|curve| !curve.is_empty());
    let logs: Vec<Vec<f64>> = present.map(|curve| logarithms(curve)).collect();
    if let [one] = logs.as_slice() {
        return has_settled(one, delta);
    }
    let means = means(&logs);
    let ratio = |curve: &Vec<f64>| -> Vec<f64> {
        let pairs = curve.iter().zip(&means);
        pairs.map(|(own, all)| own - all).collect()
    };
    is_warm(&means, delta) && logs.iter().all(|curve| has_settled(&ratio(curve), delta))
}

fn logarithms(curve: &[f64]) -> Vec<f64> {
    curve.iter().map(|time| time.ln()).collect()
}

/// The mean of all servers in each round.
fn means(logs: &[Vec<f64>]) -> Vec<f64> {
    let rounds = logs.iter().map(Vec::len).min().unwrap_or(0);
    let values = |round: usize| {
        logs.iter()
            .filter_map(move |curve| curve.get(round).copied())
    };
    (0..rounds)
        .filter_map(|round| mean(&values(round).collect::<Vec<f64>>()))
        .collect()
}

/// Whether the first half at most is unlike the rest, and the rest has no trend that counts.
fn has_settled(logs: &[f64], delta: f64) -> bool {
    steady(logs, tolerance(delta)).is_ok_and(|found| {
        let settled = 2 * found.discard <= logs.len();
        found.steady || (settled && found.trend_p > TREND_P)
    })
}

/// Whether operations do not get faster beyond chance; a host that slows down does not count.
fn is_warm(logs: &[f64], delta: f64) -> bool {
    steady(logs, tolerance(delta)).is_ok_and(|found| {
        let warming = found.trend <= -tolerance(delta) && found.trend_p <= TREND_P;
        !warming
    })
}

fn tolerance(delta: f64) -> f64 {
    TREND_SHARE * log_delta(delta)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve slices of a server: a curve and noise of its own, up to 1 %.
    fn server(own: u8, curve: impl Fn(f64) -> f64) -> Vec<f64> {
        let each = |round: u8| {
            let noise = f64::from((round * 3 + own * 3) % 11) - 5.0;
            30.0 * curve(f64::from(round)) * (1.0 + 0.01 * noise / 5.0)
        };
        (0..12).map(each).collect()
    }

    #[test]
    fn one_server_that_gets_faster_is_not_steady_and_a_flat_noisy_one_is() {
        let falling: Vec<f64> = (0..12).map(|n| 30.0 - f64::from(n)).collect();
        assert!(!are_steady(&[falling], 0.03));
        assert!(are_steady(&[server(0, |_| 1.0)], 0.03));
        assert!(
            are_steady(&[server(0, |_| 1.0), Vec::new()], 0.03),
            "one is absent"
        );
        assert!(
            !are_steady(&[vec![30.0; 5]], 0.03),
            "five values are too few to know"
        );
        assert!(!are_steady(&[], 0.03), "nobody");
    }

    #[test]
    fn a_host_that_slows_down_keeps_no_servers_from_being_steady() {
        let slows: fn(f64) -> f64 = |n| 1.0 + 0.02 * n;
        let jumps: fn(f64) -> f64 = |n| if n < 9.0 { 1.0 } else { 1.3 };
        for curve in [slows, jumps] {
            let servers = [server(0, curve), server(1, curve), server(2, curve)];
            assert!(are_steady(&servers, 0.03));
            assert!(!are_steady(&servers[..1], 0.03), "alone, nobody can tell");
        }
    }

    #[test]
    fn one_that_gets_faster_than_the_others_is_not_steady() {
        let warming = server(2, |n| 1.0 - 0.01 * n);
        let servers = [server(0, |_| 1.0), server(1, |_| 1.0), warming];
        assert!(!are_steady(&servers, 0.03));
    }

    #[test]
    fn servers_that_get_faster_together_are_not_steady() {
        let fills = |n: f64| 1.0 - 0.02 * n;
        let servers = [server(0, fills), server(1, fills), server(2, fills)];
        assert!(!are_steady(&servers, 0.03));
    }
}
