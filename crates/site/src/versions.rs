//! Builds: where each was measured, against what, and what came of it.

use crate::entry::{COUNT, Entry, Version};
use crate::frame::{Frame, cell_link, framed, host_link, moment, pair, run_link, verdict, waits};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use maud::{Markup, html};
use std::sync::Arc;

/// Rows of results that a build's page shows.
const ROWS: usize = 1000;

/// All builds in the order of their targets, each with its runs, newest first.
pub(crate) fn all(lab: &Lab) -> Vec<(&Version, Vec<&Entry>)> {
    let of = |places: &Vec<usize>| {
        places
            .iter()
            .filter_map(|at| lab.entries.get(*at))
            .collect()
    };
    let all = lab.versions().iter();
    all.map(|(version, places)| (version, of(places))).collect()
}

/// The list.
pub(crate) fn list(lab: &Lab, links: &Links) -> Page {
    let body = html! {
        h1 { "Versions" }
        p.muted { "A version is a build: the hash of its executable, wherever it lies." }
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "target" } th scope="col" { "version" } th scope="col" { "hash" }
                th scope="col" { "runs" } th scope="col" { "newest run" }
            } }
            tbody { @for (version, runs) in all(lab) { tr {
                th scope="row" {
                    a href=(links.to(&Route::Version(version.key.clone()))) { (version.target) }
                }
                td data-name="version" { (version.number) }
                td.hash { (version.sha256.get(..16).unwrap_or("not known")) }
                td { (words::plural(count(runs.len()), "run")) }
                td {
                    @if let Some(run) = runs.first() {
                        (run_link(run, links)) " " small { (moment(run.started_unix_ms)) }
                    }
                }
            } } }
        } }
    };
    let frame = Frame {
        title: "Versions",
        links,
        body,
        script: None,
    };
    Page::html(framed(&frame))
}

/// A build's page; `None` for one that no run has.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &mut Lab, key: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let mut known = lab.versions().iter();
    let Some((version, places)) = known.find(|(version, _)| version.key == key).cloned() else {
        return Ok(None);
    };
    let runs = places.iter().filter_map(|at| lab.entries.get(*at)).cloned();
    let runs: Vec<Arc<Entry>> = runs.map(Arc::new).collect();
    let (rows, missing) = rows(lab, &runs, key)?;
    let lab = &*lab;
    let newest: Vec<&Entry> = { runs.iter().take(ROWS / 4) }.map(Arc::as_ref).collect();
    let body = html! {
        h1 { (version.target) }
        p.muted {
            "version " (version.number) ", in " (words::plural(count(runs.len()), "run")) ", "
            span.hash { @if version.sha256.is_empty() { "hash not known" } @else { (version.sha256) } }
        }
        section #results {
            h2 { "Results in each cell" }
            (waits(lab, missing))
            @if rows.is_empty() { p { "No run compared it with another version." } } @else {
                (table(rows.get(..ROWS.min(rows.len())).unwrap_or_default(), lab, links))
            }
            @if rows.len() > ROWS { p.muted { "The newest " (ROWS) " of " (rows.len()) " rows." } }
        }
        section {
            h2 { "Runs" }
            (crate::runs::table(&newest, lab, links))
        }
    };
    let frame = Frame {
        title: &version.target,
        links,
        body,
        script: None,
    };
    Ok(Some(Page::html(framed(&frame)).that_waits(missing > 0)))
}

type Row = (Arc<Entry>, Outcome);

/// What the runs found of a build as base or candidate, by cell, the newest of each first.
fn rows(lab: &mut Lab, runs: &[Arc<Entry>], key: &str) -> Result<(Vec<Row>, usize), Problem> {
    let (mut rows, mut missing) = (Vec::new(), 0);
    // More instructions are not slower: what was counted is on the page of its run.
    for entry in runs.iter().filter(|entry| entry.kind != COUNT) {
        let Some(found) = lab.outcomes(&entry.name)? else {
            missing += 1;
            continue;
        };
        let is_base = entry.base().is_some_and(|base| base.version.key == key);
        let is_it = |outcome: &Outcome| {
            let server = entry.server(outcome.candidate);
            is_base || server.is_some_and(|server| server.version.key == key)
        };
        let own = found.iter().filter(|outcome| is_it(outcome)).cloned();
        rows.extend(own.map(|outcome| (Arc::clone(entry), outcome)));
    }
    let name = |(entry, outcome): &Row| {
        entry
            .cell(outcome.cell)
            .map_or_else(String::new, |cell| cell.name.clone())
    };
    rows.sort_by_key(name);
    Ok((rows, missing))
}

/// A row for each result.
fn table(rows: &[Row], lab: &Lab, links: &Links) -> Markup {
    html! {
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "cell" } th scope="col" { "verdict" }
                th scope="col" { "candidate, relative to base" }
                th scope="col" { "throughput, this hour" } th scope="col" { "other hours" }
                th scope="col" { "run" } th scope="col" { "host" }
            } }
            tbody { @for (entry, outcome) in rows { tr class=[outcome.withdrawn.then_some("gone")] {
                th scope="row" { (cell_link(entry, outcome.cell, links)) }
                td { (verdict(outcome)) }
                td.sides { (pair(entry, outcome, links)) }
                td.figures data-name="this hour" {
                    (outcome.change)
                }
                td.figures data-name="other hours" {
                    (outcome.another.as_deref().unwrap_or("not known"))
                }
                td {
                    (run_link(entry, links)) " " small {
                        (moment(entry.started_unix_ms))
                        @if let Some((what, _)) = &entry.belongs { ", " (what) " another run" }
                    }
                }
                td { @if let Some(host) = &entry.host { (host_link(host, lab, links)) } }
            } } }
        } }
    }
}
