//! The list of runs.

use crate::entry::Entry;
use crate::frame::{FILTER, Frame, framed, host_name, moment, run_link, where_and_how};
use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_report::words;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Runs that the list shows: of more, nobody reads the page.
const MOST: usize = 2000;

/// The page.
pub(crate) fn page(lab: &Lab, links: &Links) -> Page {
    let shown: Vec<&Entry> = lab.entries.iter().rev().take(MOST).collect();
    let body = html! {
        h1 { "Runs" }
        (filter(&shown, lab, links))
        (table(&shown, lab, links))
        @if lab.entries.len() > MOST {
            p.muted {
                "The newest " (MOST) " of " (lab.entries.len()) ". "
                "Pages of versions, cells and hosts list older ones."
            }
        }
    };
    let frame = Frame {
        title: "Runs",
        links,
        body,
        script: Some(FILTER),
    };
    Page::html(framed(&frame)).that_waits(lab.measured.is_some())
}

fn filter(shown: &[&Entry], lab: &Lab, links: &Links) -> Markup {
    let words = |of: &dyn Fn(&Entry) -> String| -> BTreeSet<String> {
        shown.iter().map(|entry| of(entry)).collect()
    };
    let hosts = shown.iter().filter_map(|entry| entry.host.as_ref());
    let hosts: BTreeSet<(String, String)> = hosts
        .map(|host| (host.key.clone(), host_name(host, lab)))
        .collect();
    let targets: BTreeSet<&str> = { shown.iter() }
        .flat_map(|entry| &entry.servers)
        .map(|server| server.name.as_str())
        .collect();
    html! {
        form.controls.filter role="search" method="get" action=(links.to(&Route::Runs)) {
            label { span { "text" } input type="search" name="q" placeholder="name, target, cell"; }
            label { span { "target" } select name="target" {
                option value="" { "all" }
                @for target in &targets { option { (target) } }
            } }
            label { span { "host" } select name="host" {
                option value="" { "all" }
                @for (key, name) in &hosts { option value=(key) { (name) } }
            } }
            label { span { "state" } select name="state" {
                option value="" { "all" }
                @for state in words(&|entry| state_word(entry, lab)) { option { (state) } }
            } }
            label { span { "kind" } select name="kind" {
                option value="" { "all" }
                @for kind in words(&|entry| entry.kind.clone()) { option { (kind) } }
            } }
            span.muted aria-live="polite" { b #count { (shown.len()) } " shown" }
        }
    }
}

fn state_word(entry: &Entry, lab: &Lab) -> String {
    match entry.withdrawn {
        Some(_) => "withdrawn".to_owned(),
        None => lab.state_word(entry).to_owned(),
    }
}

/// A row for each of these runs.
pub(crate) fn table(runs: &[&Entry], lab: &Lab, links: &Links) -> Markup {
    html! {
        @if runs.is_empty() { p { "There are no runs." } } @else {
            div.scroll {
                table.list.runs {
                    thead { tr {
                        th scope="col" { "run" } th scope="col" { "started" }
                        th scope="col" { "targets" } th scope="col" { "cells" }
                        th scope="col" { "state" } th scope="col" { "host" }
                    } }
                    tbody { @for entry in runs { (row(entry, lab, links)) } }
                }
            }
        }
    }
}

fn row(entry: &Entry, lab: &Lab, links: &Links) -> Markup {
    let targets: Vec<&str> = entry
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    let host = entry.host.as_ref();
    html! {
        tr class=[entry.withdrawn.is_some().then_some("gone")] data-text=(searched(entry))
            data-target=(targets.join("|")) data-host=(host.map_or("", |host| host.key.as_str()))
            data-state=(state_word(entry, lab)) data-kind=(entry.kind) {
            th scope="row" { (run_link(entry, links)) }
            td { (moment(entry.started_unix_ms)) }
            td.sides {
                (entry.sides())
                @if let Some((what, of)) = &entry.belongs { " " small { (what) " " (of) } }
                @if let Some(name) = &entry.execution {
                    " " small {
                        "part of "
                        a href=(links.to(&Route::Execution(name.clone()))) { (name) }
                    }
                }
            }
            td { (cells(entry)) }
            (where_and_how(entry, lab, links))
        }
    }
}

/// `point-query@1`, or how many cells there are.
fn cells(entry: &Entry) -> String {
    match entry.cells.as_slice() {
        [one] => one.name.clone(),
        all => words::plural(deltabench_model::units::count(all.len()), "cell"),
    }
}

/// What a run is found by, in lower case.
pub(crate) fn searched(entry: &Entry) -> String {
    let mut text = vec![entry.name.clone(), entry.kind.clone()];
    text.extend(entry.servers.iter().map(|server| server.name.clone()));
    text.extend(entry.cells.iter().map(|cell| cell.name.clone()));
    text.extend(entry.execution.clone());
    text.dedup();
    text.join(" ").to_lowercase()
}
