//! What two ends cannot be compared in, and why.

use super::ends::Found;
use super::{OfHost, end};
use crate::entry::{COUNT, Entry};
use crate::frame::{host_link, host_of, run_link};
use crate::lab::{Lab, METRICS};
use crate::route::Links;
use deltabench_lab::{HostTrend, store_problem};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use deltabench_store::RunState;
use maud::{Markup, html};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Runs that a line names.
const NAMED: usize = 5;

/// A line about it.
pub(super) enum Missing {
    /// A machine that has only one end: the name of a run there, and of the end.
    Host { run: String, only: String },
    /// A cell with one name that is another series at each end, and what differs in it.
    Other { cell: String, differs: Vec<String> },
    /// Cells that only one end has.
    Only { end: String, cells: Vec<String> },
    /// Cells that both have, and that no runs connect.
    Apart { cells: Vec<String> },
    /// Runs that do not count, and why.
    Runs { why: String, runs: Vec<String> },
}

impl Missing {
    pub(super) fn show(&self, lab: &Lab, links: &Links) -> Markup {
        html! {
            @match self {
                Self::Host { run, only } => {
                    @if let Some(host) = lab.entry(run).and_then(|run| run.host.as_ref()) {
                        (host_link(host, lab, links))
                    }
                    " measured " (only) " alone: runs of two hosts are never compared."
                },
                Self::Other { cell, differs } => {
                    b { (cell) } " is other work at each end: "
                    @if differs.is_empty() { "its content differs." }
                    @else { "it differs in " (differs.join(", ")) "." }
                },
                Self::Only { end, cells } => { "Only " (end) " has " (cells.join(", ")) "." },
                Self::Apart { cells } => {
                    "No runs connect both in " (cells.join(", "))
                    ": measure them side by side, or both next to one version."
                },
                Self::Runs { why, runs } => {
                    (words::plural(count(runs.len()), "run")) " left out (" (why) "): "
                    @for (at, run) in runs.iter().rev().take(NAMED).enumerate() {
                        @if at > 0 { ", " }
                        @if let Some(entry) = lab.entry(run) { (run_link(entry, links)) }
                    }
                    @if runs.len() > NAMED { ", and older ones" }
                    "."
                },
            }
        }
    }
}

/// All of it.
///
/// Errors: the store cannot be read.
pub(super) fn missing(
    lab: &Lab,
    hosts: &[HostTrend],
    ends: (&Found, &Found),
    found: &[OfHost<'_>],
) -> Result<Vec<Missing>, Problem> {
    let mut all = Vec::new();
    for of in found {
        cells(lab, of, ends, &mut all)?;
    }
    for host in hosts.iter().filter(|host| host.metric == METRICS[0]) {
        let has = (end(host, ends.0).is_some(), end(host, ends.1).is_some());
        let only = match has {
            (true, false) => ends.0,
            (false, true) => ends.1,
            _ => continue,
        };
        let run = host.runs.last().map(|run| run.name.clone());
        if host_of(lab, host).is_some() {
            all.push(Missing::Host {
                run: run.unwrap_or_default(),
                only: only.server.name.clone(),
            });
        }
    }
    runs(lab, hosts, ends, &mut all);
    Ok(all)
}

/// Cells of one machine.
fn cells(
    lab: &Lab,
    of: &OfHost<'_>,
    (one, other): (&Found, &Found),
    all: &mut Vec<Missing>,
) -> Result<(), Problem> {
    let host = of.host;
    let own = |found: &Found| -> BTreeSet<usize> {
        end(host, found).map_or_else(BTreeSet::new, |end| host.cells_of(end))
    };
    let (first, second) = (own(one), own(other));
    let done: BTreeSet<usize> = of.cells.iter().map(|cell| cell.cell).collect();
    let names = |cells: &BTreeSet<usize>| -> BTreeMap<String, usize> {
        let named = |at: &usize| Some((host.cells.get(*at)?.name.clone(), *at));
        cells.iter().filter_map(named).collect()
    };
    let only = |cells: &BTreeSet<usize>, others: &BTreeSet<usize>| -> BTreeSet<usize> {
        cells
            .difference(others)
            .filter(|at| !done.contains(at))
            .copied()
            .collect()
    };
    let (left, right) = (names(&only(&first, &second)), names(&only(&second, &first)));
    for (name, at) in &left {
        if let Some(beside) = right.get(name) {
            let differs = differs(lab, host, (*at, *beside))?;
            all.push(Missing::Other {
                cell: name.clone(),
                differs,
            });
        }
    }
    for (end, own, others) in [(one, &left, &right), (other, &right, &left)] {
        let cells = own.keys().filter(|name| !others.contains_key(*name));
        let cells: Vec<String> = cells.cloned().collect();
        if !cells.is_empty() {
            let end = end.server.name.clone();
            all.push(Missing::Only { end, cells });
        }
    }
    let both: BTreeSet<usize> = first.intersection(&second).copied().collect();
    let apart: Vec<String> = names(&only(&both, &BTreeSet::new())).into_keys().collect();
    if !apart.is_empty() {
        all.push(Missing::Apart { cells: apart });
    }
    Ok(())
}

/// What differs between two cells of one name, in the words of their stored content.
fn differs(
    lab: &Lab,
    host: &HostTrend,
    (one, other): (usize, usize),
) -> Result<Vec<String>, Problem> {
    let content = |cell: usize| -> Result<Value, Problem> {
        let Some(key) = host.cells.get(cell).map(|cell| cell.key.as_str()) else {
            return Ok(Value::Null);
        };
        for run in host.runs.iter().rev() {
            let series = lab.store.series(&run.name).map_err(store_problem)?;
            if let Some(own) = series.iter().find(|series| series.key == key) {
                return Ok(serde_json::from_str(&own.content).unwrap_or_default());
            }
        }
        Ok(Value::Null)
    };
    let (one, other) = (content(one)?, content(other)?);
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return Ok(vec!["how much was stored of it".to_owned()]);
    };
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let changed = keys
        .into_iter()
        .filter(|key| one.get(*key) != other.get(*key));
    Ok(changed.map(|key| word(key)).collect())
}

/// A field of a cell's content in words.
fn word(key: &str) -> String {
    match key {
        "text_sha256" | "own_sha256" => "the text of the workload".to_owned(),
        "measurement" => {
            "the way in which deltabench measures (its measurement version)".to_owned()
        }
        "client_threads" => "threads of the client".to_owned(),
        "client_cores" => "cores of the client".to_owned(),
        "draws_executables" => "copies of the executable at each start".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Runs with an end that do not count.
fn runs(lab: &Lab, hosts: &[HostTrend], ends: (&Found, &Found), all: &mut Vec<Missing>) {
    let known = lab.measured_servers();
    let of = |end: &Found| -> Vec<usize> {
        if let Some(run) = &end.run {
            return lab.place(run).into_iter().collect();
        }
        let known = known.get(&end.server.identity);
        known.map_or_else(Vec::new, |known| known.runs.clone())
    };
    let meant: BTreeSet<usize> = of(ends.0).into_iter().chain(of(ends.1)).collect();
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in meant.iter().filter_map(|at| lab.entries.get(*at)) {
        if !hosts.iter().any(|host| host.has_run(&entry.name)) {
            let runs = by_reason.entry(why(entry)).or_default();
            runs.push(entry.name.clone());
        }
    }
    let line = |(why, runs)| Missing::Runs { why, runs };
    all.extend(by_reason.into_iter().map(line));
}

/// Why a run does not count.
fn why(entry: &Entry) -> String {
    let of = match entry {
        Entry {
            withdrawn: Some(_), ..
        } => "withdrawn",
        Entry { kind, .. } if kind == COUNT => "it only counts instructions",
        Entry { state, .. } if *state != RunState::Finished => "not finished",
        Entry {
            belongs: Some((what, _)),
            ..
        } => return format!("it {what} another run"),
        Entry { host: None, .. } => "its host is not known",
        _ => "an unfit host, or nothing in it can be compared",
    };
    of.to_owned()
}
