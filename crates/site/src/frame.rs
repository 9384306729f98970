//! What all pages of a lab have in common: head, way through the lab, tables and their words.

use crate::digest::digest;
use crate::entry::{Entry, Host};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::route::{Links, Route};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use deltabench_compare::comparison::Verdict;
use deltabench_lab::HostTrend;
use deltabench_report::{style, words};
use deltabench_store::RunState;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("site.css");
/// Filters lists by what is typed and chosen.
pub(crate) const FILTER: &str = include_str!("filter.js");
/// Shows what a run measures while it does.
pub(crate) const LIVE: &str = include_str!("live.js");

/// What a published experiment says instead.
pub(crate) const PART: &str = "This site shows one experiment. What all runs of a lab \
                                say together is on the site of the whole lab.";

/// A page of a lab.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) links: &'a Links,
    pub(crate) body: Markup,
    /// A script of ours, for pages that need one.
    pub(crate) script: Option<&'a str>,
}

/// The page as text.
pub(crate) fn framed(frame: &Frame<'_>) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy(frame.script));
                meta name="referrer" content="same-origin";
                meta name="color-scheme" content="light dark";
                link rel="alternate" type="application/atom+xml" title="Changes"
                    href=(frame.links.to(&Route::Feed));
                title { (frame.title) " - deltabench" }
                style { (PreEscaped(style())) (PreEscaped(STYLE)) }
            }
            body {
                main { (way(frame.links)) (frame.body) }
                @if let Some(script) = frame.script { script { (PreEscaped(script)) } }
            }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

/// Nothing from outside, and our own script alone.
fn policy(script: Option<&str>) -> String {
    let allowed = script.map_or_else(String::new, |script| {
        let hash = STANDARD.encode(Sha256::digest(script));
        format!("script-src 'sha256-{hash}'; connect-src 'self'; ")
    });
    format!(
        "default-src 'none'; {allowed}style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'"
    )
}

/// The lists of a lab.
pub(crate) fn way(links: &Links) -> Markup {
    let all = [
        ("Lab", Route::Home),
        ("Runs", Route::Runs),
        ("Versions", Route::Versions),
        ("Changes", Route::Changes),
        ("Trends", Route::Trends),
        ("Compare", Route::Compare),
        ("Cells", Route::Cells),
        ("Hosts", Route::Hosts),
        ("Search", Route::Search),
    ];
    html! {
        nav.lab aria-label="Pages of this lab" {
            @for (name, route) in &all { a href=(links.to(route)) { (name) } }
        }
    }
}

/// A run's name that leads to it.
pub(crate) fn run_link(entry: &Entry, links: &Links) -> Markup {
    html! { a href=(links.to(&Route::Run(entry.name.clone()))) { (entry.name) } }
}

/// What a host is called: by itself where names are shown, else by its key.
pub(crate) fn host_name(host: &Host, lab: &Lab) -> String {
    match host.machine.as_ref().filter(|_| lab.shows_hosts) {
        Some(name) => name.clone(),
        None => format!("host {}", digest(&host.key).get(..6).unwrap_or_default()),
    }
}

/// The machine as lists show it.
pub(crate) fn host_of<'a>(lab: &'a Lab, host: &HostTrend) -> Option<&'a Host> {
    let mut runs = host.runs.iter().rev();
    runs.find_map(|run| lab.entry(&run.name)?.host.as_ref())
}

/// What a host is called, leading to its page.
pub(crate) fn host_link(host: &Host, lab: &Lab, links: &Links) -> Markup {
    html! { a.host href=(links.to(&Route::Host(host.key.clone()))) { (host_name(host, lab)) } }
}

/// A build, leading to its page.
pub(crate) fn version_link(server: &crate::entry::Server, links: &Links) -> Markup {
    let route = Route::Version(server.version.key.clone());
    html! { a href=(links.to(&route)) { (server.name) } }
}

/// `finished`, `interrupted after 3 of 12 blocks`, `withdrawn: a backup ran`.
pub(crate) fn state(entry: &Entry, lab: &Lab) -> Markup {
    let is_measured = lab.measured.as_ref() == Some(&entry.name);
    let blocks = format!("{} of {} blocks", entry.blocks_done, entry.blocks_planned);
    html! {
        @if let Some(reason) = &entry.withdrawn { b.unfit { "withdrawn" } ": " (reason) }
        @else if is_measured { b.better { "measured now" } ", " (blocks) }
        @else if entry.state == RunState::Finished {
            "finished"
            @if entry.partly_withdrawn { ", " b.unfit { "cells withdrawn" } }
        }
        @else { (lab.state_word(entry)) @if entry.state != RunState::Planned { ", " (blocks) } }
    }
}

/// The class that gives a verdict its colour.
pub(crate) fn class(outcome: &Outcome) -> &'static str {
    match outcome.verdict() {
        Verdict::Regression => "worse",
        Verdict::Improvement => "better",
        Verdict::NoChange => "same",
        Verdict::Inconclusive => "open",
        Verdict::Unfit => "void",
    }
}

/// The sign and word of a verdict, in its colour.
pub(crate) fn verdict(outcome: &Outcome) -> Markup {
    let verdict = outcome.verdict();
    html! {
        @if outcome.withdrawn { b.void { "withdrawn" } } @else {
            b class=(class(outcome)) {
                span aria-hidden="true" { (words::sign(verdict)) " " } (words::verdict(verdict))
            }
            @match outcome.confirmed {
                Some(true) => small { " confirmed" },
                Some(false) => small { " did not recur" },
                None => {},
            }
        }
    }
}

/// Why a table is not complete while a run is measured here.
pub(crate) fn waits(lab: &Lab, missing: usize) -> Markup {
    let why = match &lab.measured {
        Some(run) => format!("{run} is measured now, and an analysis would disturb it"),
        None => "they are not analysed yet".to_owned(),
    };
    html! {
        @if missing > 0 {
            p.unusual role="status" {
                "Results of " (words::plural(deltabench_model::units::count(missing), "run"))
                " are not shown, because " (why) ". Load this page again "
                @if lab.measured.is_some() { "after the run." } @else { "to see more." }
            }
        }
    }
}

/// The day and time of a moment.
pub(crate) fn moment(unix_ms: i64) -> Markup {
    html! { time.nowrap datetime=(words::timestamp(unix_ms)) { (words::date(unix_ms)) } }
}

/// A cell, leading to its series on the run's host.
pub(crate) fn cell_link(entry: &Entry, cell: u32, links: &Links) -> Markup {
    html! {
        @if let Some(cell) = entry.cell(cell) {
            @match &entry.host {
                Some(host) => {
                    a href=(links.to(&Route::Cell(cell.key.clone(), host.key.clone()))) { (cell.name) }
                },
                None => (cell.name),
            }
        }
    }
}

/// `postgres:18.6, postgres:17.11`: candidate and base, each leading to its page.
pub(crate) fn pair(entry: &Entry, outcome: &Outcome, links: &Links) -> Markup {
    html! {
        @if let Some(server) = entry.server(outcome.candidate) { (version_link(server, links)) }
        @if let Some(base) = entry.base() { " relative to " (version_link(base, links)) }
    }
}

/// State and host of a run, for tables.
pub(crate) fn where_and_how(entry: &Entry, lab: &Lab, links: &Links) -> Markup {
    html! {
        td { (state(entry, lab)) }
        td data-name="host" {
            @if let Some(host) = &entry.host { (host_link(host, lab, links)) }
        }
    }
}
