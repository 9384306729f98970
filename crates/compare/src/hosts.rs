//! What a change on several hosts says: of each host, of hosts of one class, of one class against another.
//!
//! Absolute rates of two hosts are never compared. A ratio of candidate and base has in it what the host does
//! to both; whether the change is the same on another host is what this is about.

use deltabench_stats::between::{Between, difference_between, mean_between};
use std::collections::BTreeMap;

/// Hosts of one class, from which something is said of all hosts of that class.
const CLASS_HOSTS: usize = 3;
/// Hosts of each of two classes, from which one class is told from its hosts.
const SIDE_HOSTS: usize = 2;
const LEVEL: f64 = 0.95;

/// What was measured on a host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostValues {
    /// The host.
    pub host: String,
    /// What it is, in a few words: the same words mean the same class.
    pub class: String,
    /// Log-ratios, candidate / base, of the blocks of all its runs.
    pub values: Vec<f64>,
}

/// A claim, as a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claimed {
    pub estimate: f64,
    /// Its 95 % interval; absent where there are too few values.
    pub ci95: Option<(f64, f64)>,
}

/// What holds for hosts of a class.
#[derive(Debug, Clone, PartialEq)]
pub struct OfClass {
    pub class: String,
    /// Its hosts that measured.
    pub hosts: usize,
    pub change: Claimed,
    /// Interval of the change on one more host of the class; absent with the next.
    pub further: Option<(f64, f64)>,
    /// Whether it holds for hosts of this class, and not only for these hosts.
    pub holds: bool,
}

/// The change on one class over that on another.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// The first class and the second.
    pub classes: (String, String),
    /// Change on the second over change on the first.
    pub ratio: Claimed,
    /// Whether a class has too few hosts to be told from them: "confounded with the host".
    pub confounded: bool,
}

/// All claims about one change.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    /// Each host, by name.
    pub hosts: Vec<(String, Claimed)>,
    /// Each class, by name.
    pub classes: Vec<OfClass>,
    /// Each pair of classes.
    pub against: Vec<Against>,
}

/// What these hosts say; values of a host that is named twice count together.
///
/// Shape:  hosts without values are left out.
/// Source: [`mean_between`] over hosts with equal weights, Welch between classes; coverage:
///         crates/stats/tests/it/hosts.rs.
pub fn claims(measured: &[HostValues]) -> Claims {
    let mut classes: BTreeMap<&str, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for one in measured.iter().filter(|one| !one.values.is_empty()) {
        let hosts = classes.entry(&one.class).or_default();
        hosts.entry(&one.host).or_default().extend(&one.values);
    }
    let groups =
        |hosts: &BTreeMap<&str, Vec<f64>>| -> Vec<Vec<f64>> { hosts.values().cloned().collect() };
    let own = |(host, values): (&&str, &Vec<f64>)| {
        (
            (*host).to_owned(),
            claimed(mean_of(std::slice::from_ref(values)), values),
        )
    };
    let mut hosts: Vec<(String, Claimed)> = classes.values().flatten().map(own).collect();
    hosts.sort_by(|one, two| one.0.cmp(&two.0));
    let sides: Vec<(&str, Vec<Vec<f64>>)> = classes
        .iter()
        .map(|(class, hosts)| (*class, groups(hosts)))
        .collect();
    let mut against = Vec::new();
    for (place, first) in sides.iter().enumerate() {
        for second in sides.iter().skip(place + 1) {
            against.extend(between(first, second));
        }
    }
    Claims {
        hosts,
        classes: sides.iter().map(of_class).collect(),
        against,
    }
}

fn of_class((class, groups): &(&str, Vec<Vec<f64>>)) -> OfClass {
    let found = mean_of(groups);
    let all: Vec<f64> = groups.iter().flatten().copied().collect();
    let holds = groups.len() >= CLASS_HOSTS;
    let further = found
        .and_then(|found| found.next_group())
        .map(|next| ends(&next));
    OfClass {
        class: (*class).to_owned(),
        hosts: groups.len(),
        change: claimed(found, &all),
        further: further.filter(|_| holds),
        holds,
    }
}

fn between(
    (one, first): &(&str, Vec<Vec<f64>>),
    (two, second): &(&str, Vec<Vec<f64>>),
) -> Option<Against> {
    let left: Vec<&[f64]> = first.iter().map(Vec::as_slice).collect();
    let right: Vec<&[f64]> = second.iter().map(Vec::as_slice).collect();
    let found = difference_between(&left, &right).ok()?;
    Some(Against {
        classes: ((*one).to_owned(), (*two).to_owned()),
        ratio: Claimed {
            estimate: found.estimate.exp(),
            ci95: Some(ends(&found)),
        },
        confounded: first.len() < SIDE_HOSTS || second.len() < SIDE_HOSTS,
    })
}

fn mean_of(groups: &[Vec<f64>]) -> Option<Between> {
    let groups: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
    mean_between(&groups).ok()
}

fn claimed(found: Option<Between>, values: &[f64]) -> Claimed {
    let alone = deltabench_stats::summary::mean(values).unwrap_or(0.0);
    Claimed {
        estimate: found.map_or(alone, |found| found.estimate).exp(),
        ci95: found.map(|found| ends(&found)),
    }
}

/// The interval as a ratio.
fn ends(found: &Between) -> (f64, f64) {
    let interval = found.interval(LEVEL, LEVEL);
    (interval.low.exp(), interval.high.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, class: &str, change: f64) -> HostValues {
        HostValues {
            host: name.to_owned(),
            class: class.to_owned(),
            values: vec![change - 0.001, change + 0.001],
        }
    }

    #[test]
    fn a_class_needs_three_hosts_and_a_comparison_of_classes_two_each() {
        let two = claims(&[host("a", "epyc", -0.1), host("b", "epyc", -0.12)]);
        assert_eq!((two.hosts.len(), two.classes[0].holds), (2, false));
        assert_eq!(two.classes[0].further, None);
        let three = claims(&[
            host("a", "epyc", -0.10),
            host("b", "epyc", -0.11),
            host("c", "epyc", -0.12),
            host("x", "xeon", -0.10),
        ]);
        let epyc = &three.classes[0];
        assert!(epyc.holds && epyc.hosts == 3);
        assert!((epyc.change.estimate.ln() + 0.11).abs() < 1e-9);
        let (low, high) = epyc.change.ci95.unwrap();
        let further = epyc.further.unwrap();
        assert!(
            further.0 < low && high < further.1,
            "one more host is less certain"
        );
        assert!(three.against[0].confounded, "one xeon");
        let mut four = vec![host("x", "xeon", -0.10), host("y", "xeon", -0.10)];
        four.extend([host("a", "epyc", -0.10), host("b", "epyc", -0.11)]);
        let four = claims(&four);
        assert!(!four.against[0].confounded);
        assert_eq!(
            four.against[0].classes,
            ("epyc".to_owned(), "xeon".to_owned())
        );
        assert!(
            four.against[0].ratio.estimate > 1.0,
            "the loss is smaller on xeon"
        );
    }

    #[test]
    fn runs_of_one_host_count_as_one_host() {
        let again = claims(&[host("a", "epyc", -0.1), host("a", "epyc", -0.2)]);
        assert_eq!((again.hosts.len(), again.classes[0].hosts), (1, 1));
    }
}
