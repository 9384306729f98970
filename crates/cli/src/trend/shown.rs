//! Trends and changes on the terminal.

use super::{newest, places, wide};
use crate::text::{paragraph, table};
use deltabench_compare::comparison::{Better, Metric, Ratio};
use deltabench_lab::{Change, HostChange, HostTrend};
use deltabench_model::units::count;
use deltabench_report::{metric_word, words};
use deltabench_store::Triage;
use deltabench_trend::{By, Estimate, Network, State};

/// What a lab says that has no run with two versions.
pub fn nothing() -> Vec<String> {
    paragraph(
        "",
        "no finished run of this lab compares versions on a host that it knows",
        wide(),
    )
}

/// The head of a host: what it is, and what its runs cover.
pub fn host(host: &HostTrend) -> Vec<String> {
    let name: String = host.machine.chars().take(12).collect();
    let class = [
        host.class.cpu_model.clone(),
        Some(words::plural(host.class.cores, "core")),
        host.class.memory_gib.map(|gib| format!("{gib} GiB")),
    ];
    let class: Vec<String> = class.into_iter().flatten().collect();
    let ends = (host.runs.first(), host.runs.last());
    let (first, last) = match ends {
        (Some(first), Some(last)) => (first.began_unix_ms, last.began_unix_ms),
        _ => (0, 0),
    };
    let text = format!(
        "host {name} ({}): {}, {} with {}, {} to {}",
        class.join(", "),
        metric_word(host.metric),
        words::plural(count(host.runs.len()), "run"),
        words::plural(count(host.versions.len()), "version"),
        words::date(first),
        words::date(last)
    );
    let mut lines = paragraph("", &text, wide());
    if !host.unplaced.is_empty() {
        let text = format!(
            "the place of these commits in their history is not known, because their clone is not there: \
             {}. They have levels, and no steps",
            host.unplaced.join(", ")
        );
        lines.extend(paragraph("note: ", &text, wide()));
    }
    lines.extend(disturbed(host.disturbed(|_| true), "cells in runs"));
    lines.extend(host_changes(host));
    lines
}

/// When the machine became another host, and what that does to levels.
fn host_changes(host: &HostTrend) -> Vec<String> {
    let one = |change: &HostChange| format!("{} ({})", words::date(change.at_unix_ms), change.what);
    let all: Vec<String> = host.host_changes.iter().map(one).collect();
    if all.is_empty() {
        return all;
    }
    let text = format!(
        "the machine changed on {}. Levels are those on the newest host that measured a branch, and only \
         runs on one host raise a suspicion by their levels",
        all.join(", ")
    );
    paragraph("note: ", &text, wide())
}

/// What does not raise or confirm anything.
pub fn disturbed((disturbed, all): (usize, usize), of: &str) -> Vec<String> {
    if disturbed == 0 {
        return Vec::new();
    }
    let text = format!(
        "other load disturbed {disturbed} of {all} {of}: more than half of their rounds. They count for \
         levels, and raise or confirm no change"
    );
    paragraph("note: ", &text, wide())
}

/// A line for each cell.
pub fn overview(host: &HostTrend, cells: &[usize], anchor: Option<usize>) -> Vec<String> {
    let head = [
        "cell",
        "runs",
        "versions",
        "newest version",
        "relative to",
        "level",
        "changes",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for &at in cells {
        let Some(cell) = host.cells.get(at) else {
            continue;
        };
        let network = network(host, at, anchor);
        let levels = network
            .as_ref()
            .map_or_else(Vec::new, |(anchor, network)| levels(host, network, *anchor));
        let newest = levels.last();
        let own = host.changes.iter().filter(|one| one.suspicion.series == at);
        let confirmed = own.filter(|one| one.suspicion.state == State::Confirmed);
        let name = |version: Option<usize>| {
            let known = version.and_then(|version| host.versions.get(version));
            known.map_or_else(String::new, |version| version.name.clone())
        };
        rows.push(vec![
            cell.name.clone(),
            host.runs_of(at).to_string(),
            // With the anchor, as the table of the cell lists them.
            (levels.len() + network.iter().count()).to_string(),
            name(newest.map(|(version, _)| *version)),
            name(network.as_ref().map(|(anchor, _)| *anchor)),
            newest.map_or_else(String::new, |(_, level)| change(level)),
            match confirmed.count() {
                0 => String::new(),
                some => format!("{some} confirmed"),
            },
        ]);
    }
    let mut lines = table(&rows);
    lines.push(String::new());
    lines
}

/// The network of a cell, from the version asked for or the usual base.
fn network(host: &HostTrend, cell: usize, anchor: Option<usize>) -> Option<(usize, Network)> {
    let anchor = anchor.or_else(|| host.usual_base(cell))?;
    Some((anchor, host.network(cell, anchor)?))
}

/// The versions that have a level, with it, in their order.
fn levels(host: &HostTrend, network: &Network, anchor: usize) -> Vec<(usize, Estimate)> {
    let all = 0..host.versions.len();
    all.filter(|version| *version != anchor)
        .filter_map(|version| Some((version, network.level(version)?.change)))
        .collect()
}

/// A cell: its versions with their levels, and its changes.
pub fn cell(host: &HostTrend, at: usize, anchor: Option<usize>, said: &[Triage]) -> Vec<String> {
    let Some(cell) = host.cells.get(at) else {
        return Vec::new();
    };
    let runs = words::plural(count(host.runs_of(at)), "run");
    let mut lines = vec![String::new()];
    let Some((anchor, network)) = network(host, at, anchor) else {
        lines.push(format!("{}: no run of it has this version", cell.name));
        return lines;
    };
    let name = |version: usize| {
        host.versions
            .get(version)
            .map_or("", |known| known.name.as_str())
    };
    lines.push(format!(
        "{} relative to {}, {runs}",
        cell.name,
        name(anchor)
    ));
    let head = [
        "version",
        "hash",
        "runs",
        "level",
        "since the version before",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut before: Option<usize> = None;
    for (version, known) in host.versions.iter().enumerate() {
        let Some(level) = network.level(version) else {
            continue;
        };
        let line = |at: usize| host.versions.get(at).map(|one| &one.line);
        let step = before.filter(|before| line(*before) == line(version));
        let step = step.and_then(|before| network.change(before, version));
        let hash = &known.installation.binary_sha256;
        rows.push(vec![
            known.name.clone(),
            hash.get(..8).unwrap_or(hash).to_owned(),
            level.runs.to_string(),
            match version == anchor {
                true => "anchor".to_owned(),
                false if level.direct => change(&level.change),
                false => format!("{} through others", change(&level.change)),
            },
            step.map_or_else(String::new, |step| change(&step)),
        ]);
        before = Some(version);
    }
    lines.extend(table(&rows));
    lines.extend(paragraph("", &meaning(&network), wide()));
    lines.extend(eras(host, &network));
    lines.extend(disturbed(
        host.disturbed(|cell| cell == at),
        "runs of this cell",
    ));
    let own: Vec<&Change> = { host.changes.iter() }
        .filter(|one| one.suspicion.series == at)
        .collect();
    if !own.is_empty() {
        lines.push(String::new());
    }
    lines.extend(changes(host, &own, said));
    lines
}

/// Anchors that followed each other, and how far they are apart in this cell.
fn eras(host: &HostTrend, network: &Network) -> Vec<String> {
    let name = |at: usize| {
        host.versions
            .get(at)
            .map_or("", |version| version.name.as_str())
    };
    let line = |era: &deltabench_lab::Era| {
        let shift = network.change(era.before, era.after)?;
        let text = format!(
            "anchor: {} follows {} since {}; relative to it {} here",
            name(era.after),
            name(era.before),
            words::date(era.at_unix_ms),
            change(&shift)
        );
        Some(paragraph("", &text, wide()))
    };
    host.eras().iter().filter_map(line).flatten().collect()
}

/// What the intervals of levels are.
fn meaning(network: &Network) -> String {
    let rests = match network.assumed {
        true => ", and in part on an assumption: too little was measured again on this host",
        false => "",
    };
    let alone = match network.rests_on_anchor {
        true => {
            "; no version was measured both before and after a change of the machine, so the anchor alone \
             connects them"
        }
        false => "",
    };
    format!(
        "95 % intervals over many hours, each by itself; they rest on how hours differ (sd {:.1} \
         %){rests}{alone}",
        100.0 * network.sd
    )
}

/// The changes of some cells.
pub fn changes(host: &HostTrend, changes: &[&Change], said: &[Triage]) -> Vec<String> {
    if changes.is_empty() {
        return vec![
            "no change is suspected or confirmed".to_owned(),
            String::new(),
        ];
    }
    let mut lines = Vec::new();
    for state in [State::Confirmed, State::Suspected, State::Refuted] {
        let own: Vec<&&Change> = { changes.iter() }
            .filter(|one| one.suspicion.state == state)
            .collect();
        for one in own {
            lines.extend(paragraph(
                &format!("{}  ", one.id),
                &sentence(host, one),
                wide(),
            ));
            let more = [beside(host, one), said_words(one, said)];
            for text in more.into_iter().flatten() {
                lines.extend(paragraph("          ", &text, wide()));
            }
        }
    }
    lines.push(String::new());
    lines
}

/// Whether it is for the worse.
pub fn is_worse(host: &HostTrend, change: &Change) -> bool {
    change.suspicion.falls == (host.metric.better() == Better::Higher)
}

/// `confirmed regression in scan@1, postgres:17.5 to postgres:17.6: -2.3 % [-3.1, -1.5] …`
fn sentence(host: &HostTrend, change: &Change) -> String {
    let one = &change.suspicion;
    let cell = host
        .cells
        .get(one.series)
        .map_or("", |cell| cell.name.as_str());
    let version = |at: usize| {
        host.versions
            .get(at)
            .map_or("", |known| known.name.as_str())
    };
    let what = match (is_worse(host, change), host.metric) {
        (true, Metric::Throughput) => "slower",
        (false, Metric::Throughput) => "faster",
        (true, _) => "more CPU",
        (false, _) => "less CPU",
    };
    let state = match one.state {
        State::Confirmed => "confirmed",
        State::Suspected => "suspected",
        State::Refuted => "refuted",
    };
    let between = format!(
        "{state}: {cell} {what} between {} and {}",
        version(one.from),
        version(one.to)
    );
    let tries = words::plural(count(one.tries.len()), "later run");
    match &one.found {
        None => format!("{between}; no later run has both versions yet"),
        Some(found) => {
            let small = match one.state == State::Confirmed && !one.matters() {
                true => format!(
                    "; less than δ = {}: the place of code in memory may do as much",
                    words::share(one.delta)
                ),
                false => String::new(),
            };
            format!(
                "{between}: {} in {tries} ({}, at most {} here){small}",
                self::change(&found.change),
                deltabench_compare::words::p(found.p),
                words::p_value(found.limit)
            )
        }
    }
}

/// Where it came from, and what can be done next.
fn beside(host: &HostTrend, change: &Change) -> Option<String> {
    let one = &change.suspicion;
    let run = |at: usize| host.runs.get(at).map_or("", |run| run.name.as_str());
    let mut text = match one.by {
        By::Step => format!("raised by {}", run(one.raised)),
        By::Level => format!("raised by the levels up to {}", run(one.raised)),
    };
    let tries: Vec<&str> = one.tries.iter().map(|at| run(*at)).collect();
    if !tries.is_empty() {
        text.push_str(&format!(", tried by {}", tries.join(", ")));
    }
    if let Some((change, runs)) = &one.since {
        let runs = words::plural(count(*runs), "run");
        text.push_str(&format!("; since then {} in {runs}", self::change(change)));
    }
    if one.by == By::Level
        && let Some(first) = host.versions.get(one.earliest)
    {
        text.push_str(&format!("; {} is the first that may differ", first.name));
    }
    if host.holds_another(change) {
        text.push_str("; another confirmed change lies inside of this range");
    }
    let (from, to) = (host.versions.get(one.from)?, host.versions.get(one.to)?);
    let workloads = host.workloads(one.series).into_iter().collect::<Vec<_>>();
    let (from, to) = (
        places::target(&from.installation),
        places::target(&to.installation),
    );
    match one.state {
        State::Suspected => text.push_str(&format!(
            "; next: measure both again in the same way, 10 minutes later or more: deltabench compare \
             {from} {to} --fixed --only {}",
            workloads.join(",")
        )),
        // A search goes by one workload.
        State::Confirmed => {
            let range = commits(&from, &to).filter(|_| workloads.len() == 1);
            text.push_str(&range.map_or_else(String::new, |range| {
                format!("; next: deltabench bisect {range} --only {}", workloads.join(","))
            }));
        }
        State::Refuted => {}
    }
    Some(text)
}

/// `git:/src/pg@abc..def+o2` of two builds of one clone.
fn commits(from: &str, to: &str) -> Option<String> {
    let (clone, from) = from.strip_prefix("git:")?.rsplit_once('@')?;
    let (other, to) = to.strip_prefix("git:")?.rsplit_once('@')?;
    let (commit, _) = from.rsplit_once('+')?;
    (clone == other).then(|| format!("git:{clone}@{commit}..{to}"))
}

fn said_words(change: &Change, said: &[Triage]) -> Option<String> {
    let said = newest(change, said)?;
    let when = words::date(said.at_unix_ms);
    Some(format!("{} ({when}): {}", said.state.word(), said.text))
}

/// `-2.3 % [-3.1, -1.5]`.
fn change(estimate: &Estimate) -> String {
    words::change_interval(&ratio(estimate))
}

/// A log-ratio as ratio.
pub fn ratio(estimate: &Estimate) -> Ratio {
    Ratio {
        estimate: estimate.value.exp(),
        ci95: Some((estimate.low.exp(), estimate.high.exp())),
        ci90: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_of_one_clone_make_a_range() {
        let found = commits("git:/src/a@b/pg@0123+o2", "git:/src/a@b/pg@4567+o2");
        assert_eq!(found.unwrap(), "git:/src/a@b/pg@0123..4567+o2");
        assert!(commits("git:/src/pg@0123+o2", "git:/other@4567+o2").is_none());
        assert!(commits("postgres:17.5", "postgres:17.6").is_none());
    }
}
