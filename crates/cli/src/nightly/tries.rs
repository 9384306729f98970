//! What a night tries again.

use crate::trend::{places::target, workload};
use deltabench_lab::HostTrend;
use deltabench_trend::{State, TRIED_FOR_MS, TRIES};
use std::collections::{BTreeMap, BTreeSet};

/// Two versions, by how they can be asked for, and what to measure on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    pub from: String,
    pub to: String,
    /// By name.
    pub workloads: BTreeSet<String>,
}

/// What is suspected of the cells that nights of this base measure, was raised within a week and can be tried
/// further, over all metrics; what was raised first comes first.
pub fn tries(hosts: &[HostTrend], base: &str, now_ms: i64) -> Vec<Try> {
    let mut pairs: BTreeMap<(String, String), (i64, BTreeSet<String>)> = BTreeMap::new();
    for host in hosts {
        let own = host.series_beside(base);
        for one in host.changes.iter().map(|change| &change.suspicion) {
            let raised = host.runs.get(one.raised).map_or(0, |run| run.began_unix_ms);
            let is_open = one.state == State::Suspected && one.tries.len() < TRIES;
            let ends = host.versions.get(one.from).zip(host.versions.get(one.to));
            let (Some((from, to)), Some(cell)) = (ends, host.cells.get(one.series)) else {
                continue;
            };
            let pair = (target(&from.installation), target(&to.installation));
            let can_be_asked = from.is_plain && to.is_plain && pair.0 != pair.1;
            let is_fresh = now_ms - raised <= TRIED_FOR_MS;
            if !(is_open && is_fresh && can_be_asked && own.contains(&one.series)) {
                continue;
            }
            let (first, workloads) = pairs.entry(pair).or_insert((raised, BTreeSet::new()));
            *first = raised.min(*first);
            workloads.insert(workload(&cell.name).to_owned());
        }
    }
    let mut all: Vec<_> = pairs.into_iter().collect();
    all.sort_by_key(|(_, (raised, _))| *raised);
    let one = |((from, to), (_, workloads))| Try {
        from,
        to,
        workloads,
    };
    all.into_iter().map(one).collect()
}

/// The options of a night with these workloads only.
pub fn only(options: &[String], workloads: &BTreeSet<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--all" => {}
            "--only" => {
                rest.next();
            }
            given if given.starts_with("--only=") => {}
            _ => kept.push(option.clone()),
        }
    }
    let names: Vec<&str> = workloads.iter().map(String::as_str).collect();
    kept.push(format!("--only={}", names.join(",")));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_workloads_are_taken_out_of_the_options() {
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let workloads = BTreeSet::from(["scan".to_owned(), "hot-points".to_owned()]);
        for given in [
            &["--quick", "--only", "a,b", "--rows", "9"][..],
            &["--quick", "--only=a,b", "--rows", "9"],
            &["--quick", "--all", "--rows", "9"],
        ] {
            let found = only(&words(given), &workloads);
            assert_eq!(found, ["--quick", "--rows", "9", "--only=hot-points,scan"]);
        }
    }
}
