//! Builds: where each was measured, against what, and what came of it.

use crate::entry::{COUNT, Entry, Server, Version};
use crate::frame::{Frame, cell_link, framed, host_link, moment, pair, run_link, verdict, waits};
use crate::lab::{Found, Lab};
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
    // The same runs whatever becomes known of them.
    let entries = Arc::clone(&lab.entries);
    let runs: Vec<&Entry> = places.iter().filter_map(|at| entries.get(*at)).collect();
    // More instructions are not slower: what was counted is on the page of its run.
    let judged = runs.iter().filter(|entry| entry.kind != COUNT).copied();
    let (found, missing) = lab.outcomes_of(judged)?;
    let rows = rows(&found, key);
    let lab = &*lab;
    let newest = runs.get(..runs.len().min(ROWS / 4)).unwrap_or_default();
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
            (crate::runs::table(newest, lab, links))
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

type Row<'a> = (&'a Entry, &'a Outcome);

/// What the runs found of a build as base or candidate, by cell, the newest of each first.
fn rows<'a>(found: &'a [(&'a Entry, Found)], key: &str) -> Vec<Row<'a>> {
    let is_it = |(entry, outcome): &Row<'_>| {
        let is_version = |server: &Server| server.version.key == key;
        entry.base().is_some_and(is_version)
            || entry.server(outcome.candidate).is_some_and(is_version)
    };
    let all = found.iter();
    let all = all.flat_map(|(entry, found)| found.iter().map(move |outcome| (*entry, outcome)));
    let mut rows: Vec<Row<'_>> = all.filter(is_it).collect();
    let name = |(entry, outcome): &Row<'a>| entry.cell(outcome.cell).map(|cell| &*cell.name);
    rows.sort_by_key(name);
    rows
}

/// A row for each result.
fn table(rows: &[Row<'_>], lab: &Lab, links: &Links) -> Markup {
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
