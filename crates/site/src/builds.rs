//! What runs measured: builds, and builds with their settings, each with its runs.

use crate::entry::{Entry, Server, Version};
use deltabench_model::plan::Role;
use std::collections::{BTreeMap, BTreeSet};

/// The builds of runs in the order of their targets, each with the places of its runs, the newest first.
pub(crate) fn builds(entries: &[Entry]) -> Vec<(Version, Vec<usize>)> {
    let mut found: BTreeMap<&str, (&Version, Vec<usize>)> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate().rev() {
        let own: BTreeSet<&Version> = { entry.servers.iter() }
            .filter(|server| server.role != Role::Placebo)
            .map(|server| &server.version)
            .collect();
        for version in own {
            let known = found.entry(&version.key);
            let (_, places) = known.or_insert_with(|| (version, Vec::new()));
            if places.last() != Some(&at) {
                places.push(at);
            }
        }
    }
    let known = found.into_values();
    let mut all: Vec<_> = known
        .map(|(version, places)| (version.clone(), places))
        .collect();
    all.sort_by_cached_key(|(version, _)| order(version));
    all
}

/// By name, and numbers in it by what they are: 9.6 before 17.
pub(crate) fn order(version: &Version) -> (String, Vec<u64>, String) {
    let name = version
        .target
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let numbers = version.number.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter_map(|number| number.parse().ok()).collect();
    (name.to_owned(), numbers, version.key.clone())
}

/// A version with its settings.
#[derive(Debug)]
pub(crate) struct Known {
    /// As the newest run calls it.
    pub(crate) server: Server,
    /// The places of its runs, oldest first.
    pub(crate) runs: Vec<usize>,
}

/// All versions of runs with their settings, by identity.
pub(crate) fn with_settings(entries: &[Entry]) -> BTreeMap<String, Known> {
    let mut all: BTreeMap<String, Known> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate().rev() {
        for server in { entry.servers.iter() }.filter(|server| server.role != Role::Placebo) {
            match all.get_mut(&server.identity) {
                Some(known) if known.runs.last() == Some(&at) => {}
                Some(known) => known.runs.push(at),
                None => {
                    let known = Known {
                        server: server.clone(),
                        runs: vec![at],
                    };
                    all.insert(server.identity.clone(), known);
                }
            }
        }
    }
    all.values_mut().for_each(|known| known.runs.reverse());
    all
}
