//! What the results of runs depend on, as texts that differ if any of it does.

use crate::digest::digest;
use crate::entry::Entry;
use deltabench_lab::ANALYSIS;
use std::collections::{BTreeMap, HashMap};

/// Of all runs of a lab.
///
/// A report rests on the run's own records, on runs that belong to it (those that confirm it or count for it,
/// its sessions), and on what the lab knew when the run ended: other hours of its host, and the ledger of
/// placebos. So a run that ends later changes nothing, and a withdrawal changes what ended after its run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stamps {
    /// By run.
    runs: HashMap<String, String>,
}

impl Stamps {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        // What lists show of an analysis is made here, and no part of it.
        let shown = digest(include_str!("outcome.rs"));
        let before = Before::of(entries);
        let mut belonging: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            if let Some((_, of)) = &entry.belongs {
                belonging.entry(of).or_default().push(entry);
            }
        }
        let stamp = |entry: &Entry| {
            let mut parts = vec![
                env!("CARGO_PKG_VERSION").to_owned(),
                ANALYSIS.to_owned(),
                shown.clone(),
                entry.stamp.clone(),
                before.at(entry.state_unix_ms).to_owned(),
            ];
            let others = belonging.get(entry.name.as_str()).into_iter().flatten();
            parts.extend(others.map(|other| format!("{} {}", other.name, other.stamp)));
            (entry.name.clone(), digest(&parts.join("\n")))
        };
        Self {
            runs: entries.iter().map(stamp).collect(),
        }
    }

    /// That of a run; empty for one that the lab does not have.
    pub(crate) fn of_run(&self, name: &str) -> &str {
        self.runs.get(name).map_or("", String::as_str)
    }
}

/// What a lab had at a moment.
struct Before {
    /// When a run reached its state, with a hash of it and of all before it.
    steps: Vec<(i64, String)>,
}

impl Before {
    fn of(entries: &[Entry]) -> Self {
        let mut all: Vec<&Entry> = entries.iter().collect();
        all.sort_by_key(|entry| (entry.state_unix_ms, &entry.name));
        let mut hash = String::new();
        let step = |entry: &Entry| {
            hash = digest(&format!("{hash} {} {}", entry.name, entry.stamp));
            (entry.state_unix_ms, hash.clone())
        };
        Self {
            steps: all.into_iter().map(step).collect(),
        }
    }

    /// Of all runs that reached their state by then.
    fn at(&self, unix_ms: i64) -> &str {
        let until = self.steps.partition_point(|(at, _)| *at <= unix_ms);
        let last = until.checked_sub(1).and_then(|at| self.steps.get(at));
        last.map_or("", |(_, hash)| hash)
    }
}
