//! Which host is unlike the others of its class, by what the base does on it.

use deltabench_stats::summary::{mean, median};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts of a class from which one can be told from the others.
const HOSTS: usize = 4;
/// How many times the usual distance from the median is odd.
const TIMES: f64 = 4.0;
/// The median distance of normal values, in standard deviations, the other way round.
const NORMAL: f64 = 1.4826;
/// A distance that nobody minds, as a share: hosts may be more alike than that.
const SMALL: f64 = 0.02;

/// What the base does on a host in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseRate {
    /// The host.
    pub host: String,
    /// What it is: the same words mean the same class.
    pub class: String,
    /// What is the same on all hosts: workload, clients, data.
    pub cell: String,
    /// Operations a second; above 0.
    pub rate: f64,
}

/// A host that is unlike the others of its class.
#[derive(Debug, Clone, PartialEq)]
pub struct OddHost {
    pub host: String,
    /// Its base's rate over the median of its class, a geometric mean over cells.
    pub ratio: f64,
    /// Hosts of its class.
    pub hosts: usize,
    /// How far from the median a host may be, as a share.
    pub spread: f64,
}

/// The hosts of which the base's rate is further from the median of its class than four times the median
/// distance (as of normal values) and 2 %. Only cells that all hosts of the class have measured count, and at
/// least four hosts.
pub fn odd_hosts(rates: &[BaseRate]) -> Vec<OddHost> {
    // Class, cell and host; logarithms of each occasion.
    let mut classes: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, Vec<f64>>>> = BTreeMap::new();
    for one in rates.iter().filter(|one| one.rate > 0.0) {
        let cells = classes.entry(&one.class).or_default();
        let hosts = cells.entry(&one.cell).or_default();
        hosts.entry(&one.host).or_default().push(one.rate.ln());
    }
    classes.values().flat_map(of_class).collect()
}

fn of_class(cells: &BTreeMap<&str, BTreeMap<&str, Vec<f64>>>) -> Vec<OddHost> {
    let all: BTreeSet<&str> = cells.values().flat_map(BTreeMap::keys).copied().collect();
    let count = all.len();
    if count < HOSTS {
        return Vec::new();
    }
    // Of each host its distances from the medians of cells.
    let mut distances: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for hosts in cells.values().filter(|hosts| hosts.len() == count) {
        for (host, distance) in from_middle(hosts) {
            distances.entry(host).or_default().push(distance);
        }
    }
    let each = from_middle(&distances);
    let sizes: Vec<f64> = each.iter().map(|(_, distance)| distance.abs()).collect();
    let usual = NORMAL * median(&sizes).unwrap_or(0.0);
    let limit = (TIMES * usual).max(SMALL);
    let odd = each
        .into_iter()
        .filter(|(_, distance)| distance.abs() > limit);
    odd.map(|(host, distance)| OddHost {
        host: host.to_owned(),
        ratio: distance.exp(),
        hosts: count,
        spread: limit.exp_m1(),
    })
    .collect()
}

/// How far the mean of each host is from the median of all.
fn from_middle<'a>(hosts: &BTreeMap<&'a str, Vec<f64>>) -> Vec<(&'a str, f64)> {
    let means = hosts
        .iter()
        .filter_map(|(host, values)| Some((*host, mean(values)?)));
    let means: Vec<(&str, f64)> = means.collect();
    let values: Vec<f64> = means.iter().map(|(_, value)| *value).collect();
    let middle = median(&values).unwrap_or(0.0);
    means
        .into_iter()
        .map(|(host, value)| (host, value - middle))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts of one class with these speeds, each in two cells and on two occasions.
    fn rates(class: &str, speeds: &[f64]) -> Vec<BaseRate> {
        let mut rates = Vec::new();
        for (host, speed) in speeds.iter().enumerate() {
            for (cell, base) in [("point", 9_000.0), ("scan", 3.0)] {
                for luck in [0.999, 1.001] {
                    rates.push(BaseRate {
                        host: format!("{class} {host}"),
                        class: class.to_owned(),
                        cell: cell.to_owned(),
                        rate: base * speed * luck,
                    });
                }
            }
        }
        rates
    }

    #[test]
    fn a_host_three_percent_off_is_named_and_one_of_another_class_is_not() {
        let mut all = rates("epyc", &[1.0, 1.003, 0.97, 0.998, 1.001]);
        all.extend(rates("xeon", &[0.8, 0.801]));
        let odd = odd_hosts(&all);
        assert_eq!(odd.len(), 1);
        assert_eq!((odd[0].host.as_str(), odd[0].hosts), ("epyc 2", 5));
        assert!((odd[0].ratio - 0.97).abs() < 0.002, "{odd:?}");
    }

    #[test]
    fn three_hosts_or_hosts_that_differ_anyway_name_nobody() {
        assert_eq!(odd_hosts(&rates("epyc", &[1.0, 1.0, 0.9])), []);
        assert_eq!(odd_hosts(&rates("epyc", &[1.0, 1.0, 1.0, 1.015])), []);
        assert_eq!(odd_hosts(&rates("epyc", &[0.9, 1.0, 1.1, 1.05, 0.95])), []);
    }

    #[test]
    fn cells_that_some_hosts_lack_say_nothing() {
        let mut all = rates("epyc", &[1.0, 1.0, 1.0, 0.9]);
        all.retain(|one| one.cell == "point" || one.host != "epyc 0");
        all.retain(|one| one.cell == "scan" || one.host != "epyc 1");
        assert_eq!(odd_hosts(&all), []);
        // Four of five in each cell.
        let mut all = rates("epyc", &[1.0, 1.0, 1.0, 1.0, 0.9]);
        all.retain(|one| one.cell == "point" || one.host != "epyc 0");
        all.retain(|one| one.cell == "scan" || one.host != "epyc 1");
        assert_eq!(odd_hosts(&all), []);
    }
}
