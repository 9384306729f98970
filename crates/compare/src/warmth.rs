//! Whether servers are warm.

use crate::thresholds::{TREND_P, TREND_SHARE, log_delta};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::steady::steady;
use deltabench_stats::summary::mean;

/// Whether servers that take turns have become steady against each other.
///
/// Each server's curve is judged against the mean of the others, so that a host which changes its speed for
/// all of them keeps nobody waiting. A trend of less than a quarter of δ over the whole length is none;
/// neither is a larger one that chance makes one time in twenty, because on a noisy host nothing shorter than
/// minutes would pass otherwise. Servers may also warm up together, equally fast: they are not steady while
/// all of them get faster beyond chance.
///
/// Shape:  for each server the time of an operation in consecutive slices, any unit; a server that is absent
///         has an empty curve. Fewer than six slices are never steady.
/// Source: docs/sources/statistics.md#warm-up, docs/decisions/0068-steady-against-each-other.md.
pub fn are_steady(curves: &[Vec<f64>], delta: f64) -> bool {
    let logs = logarithms(curves);
    match logs.as_slice() {
        [one] => has_settled(one, delta),
        all => {
            let together = means(all);
            let against =
                |curve: &Vec<f64>| has_settled(&against_others(curve, all, &together), delta);
            is_warm(&together, delta) && all.iter().all(against)
        }
    }
}

/// Whether each of these servers has become steady by itself: where something fills or turns over, they get
/// faster or slower together, and that counts.
///
/// Shape: as [`are_steady`].
pub fn each_is_steady(curves: &[Vec<f64>], delta: f64) -> bool {
    let logs = logarithms(curves);
    logs.iter().all(|curve| has_settled(curve, delta))
}

/// A curve less the mean of the other ones.
fn against_others(curve: &[f64], all: &[Vec<f64>], together: &[f64]) -> Vec<f64> {
    let servers = to_f64(count(all.len()));
    let pairs = curve.iter().zip(together);
    pairs
        .map(|(own, mean)| (own - mean) * servers / (servers - 1.0))
        .collect()
}

/// Those of the servers that are present.
fn logarithms(curves: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let present = curves.iter().filter(|curve| !curve.is_empty());
    present
        .map(|curve| curve.iter().map(|time| time.ln()).collect())
        .collect()
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
        let two = [server(0, |_| 1.0), server(1, |_| 1.0)];
        assert!(are_steady(&two, 0.03) && each_is_steady(&two, 0.03));
    }

    #[test]
    fn a_host_that_slows_down_keeps_no_servers_from_being_steady() {
        let slows: fn(f64) -> f64 = |n| 1.0 + 0.02 * n;
        let jumps: fn(f64) -> f64 = |n| if n < 9.0 { 1.0 } else { 1.3 };
        for curve in [slows, jumps] {
            let servers = [server(0, curve), server(1, curve), server(2, curve)];
            assert!(are_steady(&servers, 0.03));
            assert!(!are_steady(&servers[..1], 0.03), "alone, nobody can tell");
            assert!(!each_is_steady(&servers, 0.03));
        }
    }

    #[test]
    fn one_that_gets_faster_than_the_others_is_not_steady() {
        let warming = server(2, |n| 1.0 - 0.01 * n);
        let servers = [server(0, |_| 1.0), server(1, |_| 1.0), warming];
        assert!(!are_steady(&servers, 0.03));
        assert!(!are_steady(&servers[1..], 0.03), "of two");
    }

    #[test]
    fn a_server_is_judged_by_how_far_it_is_from_the_others() {
        let two = [vec![1.0, 2.0], vec![0.0, 4.0]];
        assert_eq!(against_others(&two[0], &two, &means(&two)), [1.0, -2.0]);
        let three = [vec![6.0], vec![0.0], vec![3.0]];
        assert_eq!(against_others(&three[0], &three, &means(&three)), [4.5]);
    }

    #[test]
    fn servers_that_get_faster_together_are_not_steady() {
        let fills = |n: f64| 1.0 - 0.02 * n;
        let servers = [server(0, fills), server(1, fills), server(2, fills)];
        assert!(!are_steady(&servers, 0.03));
    }
}
