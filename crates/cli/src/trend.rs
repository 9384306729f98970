//! `deltabench trend`, `changes`, `triage`, `annotate`, `anchor`: versions over time, where they changed.

pub mod anchors;
pub mod annotate;
mod json;
pub mod places;
mod shown;

use crate::arguments::trend::{
    ChangesArguments, TrendArguments, TrendMetric, TriageArguments, Which,
};
use crate::clock::now;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, to_json, width, write_file};
use crate::failure::Failure;
use crate::store::{open, store_problem};
use deltabench_compare::comparison::Metric;
use deltabench_lab::{Change, HostTrend, trends, workload};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::units::count;
use deltabench_report::metric_word;
use deltabench_store::{Store, Triage, TriageState};
use deltabench_trend::State;
use serde_json::Value;
use std::collections::BTreeSet;

/// Widest line.
const WIDEST: usize = 110;

/// Prints levels and changes of cells.
pub fn trend(arguments: &TrendArguments, config: &Config) -> Result<u8, Failure> {
    check(&arguments.which)?;
    let store = open(config)?;
    let metric = [arguments.metric.metric()];
    let hosts = hosts(&store, &metric, arguments.which.host.as_deref())?;
    let said = store.triages().map_err(store_problem)?;
    let notes = store.annotations().map_err(store_problem)?;
    let (mut lines, mut all) = (Vec::new(), Vec::new());
    for host in &hosts {
        let anchor = arguments.anchor.as_deref();
        let (cells, anchor) = asked_of((host, &hosts), &arguments.cells, anchor)?;
        lines.extend(shown::host(host));
        if arguments.cells.is_empty() {
            lines.extend(shown::overview(host, &cells, anchor));
            lines.extend(annotate::lines(
                annotate::of_host(host, None, &notes),
                wide(),
            ));
        } else {
            for cell in &cells {
                lines.extend(shown::cell(host, *cell, anchor, &said));
                let name = host.cells.get(*cell).map(|cell| cell.name.as_str());
                lines.extend(annotate::lines(
                    annotate::of_host(host, name, &notes),
                    wide(),
                ));
            }
        }
        let mut value = json::trend(host, &cells, anchor, &said);
        if let Some(fields) = value.as_object_mut() {
            let own = annotate::values(annotate::of_host(host, None, &notes));
            fields.insert("annotations".to_owned(), own);
        }
        all.push(value);
    }
    if hosts.is_empty() {
        lines = shown::nothing();
    }
    publish(
        &arguments.which,
        &lines,
        &json::file("deltabench.trend", all),
    )?;
    Ok(0)
}

/// The cells of a host and its version that are meant.
///
/// Errors: the host has not all of them; another one may.
fn asked_of(
    (host, hosts): (&HostTrend, &[HostTrend]),
    named: &[String],
    anchor: Option<&str>,
) -> Result<(Vec<usize>, Option<usize>), Failure> {
    let found = |host: &HostTrend| {
        let anchor = anchor.map(|name| known_version(host, name)).transpose();
        Ok::<_, Problem>((cells(host, named)?, anchor?))
    };
    found(host).map_err(|problem| {
        let other = hosts.iter().find(|other| found(other).is_ok());
        Failure::Refused(match other {
            Some(other) => {
                problem.hint(format!("name a host that has it: --host {}", other.machine))
            }
            None => problem,
        })
    })
}

/// Both metrics.
pub const METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpuPerOperation];

/// Prints what changed between versions, in all cells.
pub fn changes(arguments: &ChangesArguments, config: &Config) -> Result<u8, Failure> {
    check(&arguments.which)?;
    let store = open(config)?;
    let said = store.triages().map_err(store_problem)?;
    let only = arguments.metric.map(TrendMetric::metric);
    let metrics: Vec<Metric> = { METRICS.into_iter() }
        .filter(|one| only.is_none_or(|only| only == *one))
        .collect();
    let hosts = hosts(&store, &metrics, arguments.which.host.as_deref())?;
    let (mut lines, mut all) = (Vec::new(), Vec::new());
    for host in &hosts {
        let shows = |change: &&Change| arguments.all || is_standing(change, &said);
        let standing: Vec<&Change> = host.changes.iter().filter(shows).collect();
        lines.extend(shown::host(host));
        lines.extend(shown::changes(host, &standing, &said));
        match host.changes.len() - standing.len() {
            0 => {}
            hidden => lines.extend([format!("{hidden} more with --all"), String::new()]),
        }
        all.push(json::changes(host, &standing, &said));
    }
    if hosts.is_empty() {
        lines = shown::nothing();
    }
    publish(
        &arguments.which,
        &lines,
        &json::file("deltabench.changes", all),
    )?;
    Ok(0)
}

/// Keeps what somebody says of a change.
pub fn triage(arguments: &TriageArguments, config: &Config) -> Result<u8, Failure> {
    let (state, text) = said_of(arguments).map_err(Failure::Refused)?;
    let mut store = open(config)?;
    let hosts = hosts(&store, &METRICS, None)?;
    let known = hosts.iter().flat_map(|host| &host.changes);
    let known: Vec<String> = known.map(|one| one.id.clone()).collect();
    let id = change_of(&arguments.change, &known).map_err(Failure::Refused)?;
    let triage = Triage {
        change: id.clone(),
        state,
        text: text.clone(),
        at_unix_ms: now().1,
    };
    store
        .add_triage(&triage)
        .map_err(|error| Failure::Failed(error.into()))?;
    say(&format!("{id} is {}: {text}", state.word()));
    Ok(0)
}

/// What a night says.
pub struct Night {
    pub lines: Vec<String>,
    /// Whether other load left at least one cell of its runs in which a change could be seen.
    pub could_say: bool,
    /// Whether its runs confirmed a regression of at least δ that nobody has explained.
    pub regressed: bool,
    /// Whether something is suspected that they raised or tried.
    pub is_open: bool,
}

/// What these runs raised or tried on a host.
pub fn changes_of_runs(
    host: &HostTrend,
    runs: &BTreeSet<String>,
    store: &Store,
) -> Result<Night, Failure> {
    let said = store.triages().map_err(store_problem)?;
    let is_own = |at: &usize| {
        host.runs
            .get(*at)
            .is_some_and(|run| runs.contains(&run.name))
    };
    let takes_part = |change: &&Change| {
        let one = &change.suspicion;
        is_own(&one.raised) || one.tries.iter().any(&is_own)
    };
    let own: Vec<&Change> = host.changes.iter().filter(takes_part).collect();
    let standing = || own.iter().filter(|one| is_standing(one, &said));
    let is_confirmed = |one: &&&Change| {
        let one = &one.suspicion;
        one.state == State::Confirmed && one.matters() && one.tries.last().is_some_and(is_own)
    };
    let mut lines = vec![format!("{}:", metric_word(host.metric))];
    match own.len() {
        0 => lines.extend(
            ["no change is suspected, confirmed or refuted by these runs"].map(str::to_owned),
        ),
        _ => lines.extend(shown::changes(host, &own, &said)),
    }
    let (disturbed, cells) = host.disturbed_of_runs(runs);
    lines.extend(shown::disturbed((disturbed, cells), "cells of these runs"));
    Ok(Night {
        lines,
        could_say: disturbed < cells || cells == 0,
        regressed: standing()
            .filter(is_confirmed)
            .any(|one| shown::is_worse(host, one)),
        is_open: standing().any(|one| one.suspicion.state == State::Suspected),
    })
}

/// Whether nobody and nothing took it back.
fn is_standing(change: &Change, said: &[Triage]) -> bool {
    let said = newest(change, said).is_none_or(|one| one.state == TriageState::Open);
    said && change.suspicion.state != State::Refuted
}

/// What was said of a change last.
fn newest<'a>(change: &Change, said: &'a [Triage]) -> Option<&'a Triage> {
    said.iter().rev().find(|one| one.change == change.id)
}

fn said_of(arguments: &TriageArguments) -> Result<(TriageState, String), Problem> {
    let all = [
        (TriageState::Explained, &arguments.explained),
        (TriageState::Expected, &arguments.expected),
        (TriageState::Open, &arguments.open),
    ];
    let given = all
        .into_iter()
        .find_map(|(state, text)| Some((state, text.as_ref()?)));
    let Some((state, text)) = given else {
        return Err(Problem::new("no word about the change")
            .hint("say it with --explained TEXT, --expected TEXT or --open TEXT"));
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Err(Problem::new(format!("--{} needs a text", state.word()))
            .hint("say why: `changes` shows it"));
    }
    Ok((state, text))
}

/// The change that a name or the beginning of one means.
fn change_of(asked: &str, known: &[String]) -> Result<String, Problem> {
    let mut found: Vec<&String> = known.iter().filter(|id| id.starts_with(asked)).collect();
    found.sort();
    found.dedup();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let none = Problem::new(format!("no change `{asked}`"));
            Err(match nearest(asked, known.iter().map(String::as_str)) {
                Some(near) => none.hint(format!("did you mean {near}?")),
                None => none.hint("`deltabench changes --all` lists them"),
            })
        }
        several => Err(
            Problem::new(format!("`{asked}` means {} changes", count(several.len())))
                .hint("write more characters of its name"),
        ),
    }
}

fn check(which: &Which) -> Result<(), Failure> {
    let file = which.json.as_ref().filter(|path| !is_stdout(path));
    file.map_or(Ok(()), |path| check_writable(path))
        .map_err(Failure::Refused)
}

/// The hosts of the lab that are meant, for each metric.
pub fn hosts(
    store: &Store,
    metrics: &[Metric],
    asked: Option<&str>,
) -> Result<Vec<HostTrend>, Failure> {
    let places = |builds: &[&_]| places::commits(builds);
    let mut hosts = trends(store, metrics, &places).map_err(Failure::Failed)?;
    if let Some(asked) = asked {
        let known: Vec<String> = hosts.iter().map(|host| host.machine.clone()).collect();
        hosts.retain(|host| host.machine.starts_with(asked));
        if hosts.is_empty() {
            let none = Problem::new(format!("no run of this lab was measured on host `{asked}`"));
            return Err(Failure::Refused(match known.first() {
                Some(first) => none.hint(format!("known, for example: {first}")),
                None => none,
            }));
        }
    }
    Ok(hosts)
}

/// The cells that are meant, means first and then by name; all where none is named.
fn cells(host: &HostTrend, asked: &[String]) -> Result<Vec<usize>, Problem> {
    let mut named: Vec<(usize, &str)> = { host.cells.iter().enumerate() }
        .map(|(at, cell)| (at, cell.name.as_str()))
        .collect();
    let is_cell = |at: usize| {
        host.cells
            .get(at)
            .is_some_and(|cell| cell.members.is_empty())
    };
    named.sort_by_key(|(at, name)| (is_cell(*at), *name));
    for name in asked {
        if !named
            .iter()
            .any(|(_, known)| known.starts_with(name.as_str()))
        {
            let none = Problem::new(format!("no run of this host has a cell `{name}`"));
            let near = nearest(name, named.iter().map(|(_, known)| *known));
            return Err(match near {
                Some(near) => none.hint(format!("did you mean {near}?")),
                None => none.hint("`deltabench trend` lists the cells"),
            });
        }
    }
    // A name that is whole means this cell and no longer one.
    let is_whole = |name: &str| {
        named
            .iter()
            .any(|(_, known)| *known == name || workload(known) == name)
    };
    let means = |name: &str, cell: &str| match is_whole(name) {
        true => cell == name || workload(cell) == name,
        false => cell.starts_with(name),
    };
    let is_asked = |cell: &str| asked.is_empty() || asked.iter().any(|name| means(name, cell));
    let chosen = named.iter().filter(|(_, name)| is_asked(name));
    Ok(chosen.map(|(at, _)| *at).collect())
}

/// Whether a host has measured a version of this name.
fn is_named(host: &HostTrend, asked: &str) -> bool {
    host.versions.iter().any(|version| version.is_called(asked))
}

/// The version that a name means: the newest where several builds have it.
fn known_version(host: &HostTrend, asked: &str) -> Result<usize, Problem> {
    let all = || host.versions.iter().enumerate();
    let found = all().filter(|(_, version)| version.is_called(asked));
    if let Some((at, _)) = found.max_by_key(|(_, version)| version.first_ms) {
        return Ok(at);
    }
    let none = Problem::new(format!("no run of this host has the version `{asked}`"));
    Err(
        match nearest(asked, host.versions.iter().map(|one| one.name.as_str())) {
            Some(near) => none.hint(format!("did you mean {near}?")),
            None => none.hint("`deltabench trend CELL` lists the versions of a cell"),
        },
    )
}

fn publish(which: &Which, lines: &[String], json: &Value) -> Result<(), Failure> {
    let page = lines.join("\n");
    match &which.json {
        Some(path) if is_stdout(path) => {
            say(&page);
            print_stdout(&to_json(json)?)
        }
        Some(path) => {
            print_stdout(&page)?;
            write_file(path, &to_json(json)?)
        }
        None => print_stdout(&page),
    }
}

/// The widest line of this terminal.
fn wide() -> usize {
    width().min(WIDEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::labs;

    #[test]
    fn what_only_another_host_has_is_refused_with_that_host() {
        let of_lab = |runs| {
            let directory = tempfile::tempdir().unwrap();
            let store = labs::lab(directory.path(), runs);
            hosts(&store, &[Metric::Throughput], None)
                .unwrap()
                .remove(0)
        };
        let both = [of_lab(1), of_lab(12)];
        let has = |host: &HostTrend, name: &str| known_version(host, name).is_ok();
        let name = both[1].versions.iter().map(|one| one.name.clone());
        let name = name.into_iter().find(|name| !has(&both[0], name)).unwrap();
        assert!(asked_of((&both[1], &both), &[], Some(&name)).is_ok());
        let refused = |host, anchor| match asked_of((host, &both), &[], Some(anchor)) {
            Err(failure) => failure.problem().hint.clone().unwrap(),
            Ok(_) => panic!("{anchor}"),
        };
        assert!(refused(&both[0], &name).contains(&format!("--host {}", both[1].machine)));
        assert!(!refused(&both[0], "nonsense").contains("--host"));
    }
}
