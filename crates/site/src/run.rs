//! A run's report within its lab, and what a run has measured so far.

use crate::entry::Entry;
use crate::executions;
use crate::frame::{Frame, LIVE, framed, host_link, moment, run_link, state, version_link};
use crate::lab::Lab;
use crate::route::{Links, Route, segment};
use crate::within::{hide, within};
use crate::written::Page;
use deltabench_model::plan::Role;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::html_with_script_at as report;
use deltabench_store::RunState;
use maud::{Markup, html};

/// Letters of a script's hash that tell it from another one.
const VERSION: usize = 12;

/// Other times of the same comparison that a report links to.
const TIMES: usize = 12;

/// The page; `None` for a run that is not there.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &mut Lab, name: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let Some(entry) = lab.entry(name).cloned() else {
        return Ok(None);
    };
    if entry.is_replay {
        // Its page holds plans and results that are nowhere else.
        if let Some(page) = executions::stored(lab, &entry.name, links)? {
            return Ok(Some(page));
        }
    }
    if lab.must_wait() {
        return Ok(Some(after_the_run(lab, &entry, links)));
    }
    let analysed = lab.analysed(&entry.name)?;
    let mut plan = analysed.plan.clone();
    hide(&mut plan, lab);
    // A browser keeps files by their addresses, and the data are for one script.
    let (_, hash) = deltabench_report::script();
    let is_safe = |letter: &char| letter.is_ascii_alphanumeric();
    let version: String = hash.chars().filter(is_safe).take(VERSION).collect();
    let script = format!("{}?{version}", links.to(&Route::Script));
    let text = report(&script, &analysed.comparison, &plan, &analysed.context);
    Ok(Some(Page::html(within(
        &text,
        &about(&entry, lab, links),
        links,
    ))))
}

/// What a run has to do with the rest of the lab, and its state.
pub(crate) fn about(entry: &Entry, lab: &Lab, links: &Links) -> Markup {
    around(Some(state(entry, lab)), entry, lab, links)
}

/// The same without a state where the page has one that goes on while this would stay.
fn around(state: Option<Markup>, entry: &Entry, lab: &Lab, links: &Links) -> Markup {
    let parts: Vec<&Entry> = lab.belonging_to(&entry.name).collect();
    let (newest, times) = lab.same_versions(entry, TIMES);
    let mut servers = entry
        .servers
        .iter()
        .filter(|server| server.role != Role::Placebo);
    html! {
        div.about {
            p {
                @if let Some(state) = &state { (state) }
                @if let Some(host) = &entry.host {
                    @if state.is_some() { ", " } "on " (host_link(host, lab, links))
                }
                @if let Some(name) = &entry.execution {
                    ", part of " a href=(links.to(&Route::Execution(name.clone()))) { (name) }
                }
                @if let Some((what, of)) = &entry.belongs { "; " (what) " " (belongs_to(of, lab, links)) }
            }
            p {
                "Versions: "
                @if let Some(first) = servers.next() { (version_link(first, links)) }
                @for server in servers { ", " (version_link(server, links)) }
            }
            (list("Runs that belong to it: ", &parts, links))
            (list("The same versions at other times: ", &newest, links))
            @if times > TIMES {
                p.muted { (count(times - TIMES)) " earlier ones are in the list of runs." }
            }
        }
    }
}

fn belongs_to(of: &str, lab: &Lab, links: &Links) -> Markup {
    html! {
        @match lab.entry(of) {
            Some(entry) => (run_link(entry, links)),
            None => a href=(links.to(&Route::Stored(of.to_owned()))) { (of) },
        }
    }
}

fn list(head: &str, runs: &[&Entry], links: &Links) -> Markup {
    html! {
        @if !runs.is_empty() {
            p {
                (head)
                @for (place, entry) in runs.iter().enumerate() {
                    @if place > 0 { ", " }
                    (run_link(entry, links)) " "
                    small {
                        (moment(entry.started_unix_ms))
                        @if let Some((what, _)) = &entry.belongs { ", " (what) " this run" }
                    }
                }
            }
        }
    }
}

/// What stands for a report whose analysis would disturb a run.
pub(crate) fn after_the_run(lab: &Lab, entry: &Entry, links: &Links) -> Page {
    let measured = lab.measured.as_deref().unwrap_or_default();
    let body = html! {
        h1 { "The report of " (entry.name) " is shown after the run" }
        p role="status" {
            (measured) " is measured on this machine now, and an analysis would disturb it. "
            a href=(links.to(&Route::Run(entry.name.clone()))) { "Try again" } "."
        }
        @if entry.name == measured {
            p { a href=(links.to(&Route::Live(entry.name.clone()))) { "What it has measured so far" } }
        }
        (about(entry, lab, links))
    };
    let title = format!("{} after the run", entry.name);
    let frame = Frame {
        title: &title,
        links,
        body,
        script: None,
    };
    Page::html(framed(&frame)).for_later()
}

/// What a run has measured so far; the script goes on with it.
///
/// Errors: the store cannot be read.
pub(crate) fn live(lab: &Lab, name: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let Some(entry) = lab.entry(name) else {
        return Ok(None);
    };
    let visits = count(entry.cells.len()) * u64::from(entry.blocks_planned);
    let events = format!("/run/{}/events", segment(&entry.name));
    let state = lab.state_word(entry);
    let ended = state != RunState::Running.word();
    let body = html! {
        h1 { "Run " (entry.name) }
        section #progress data-events=(events) aria-live="polite" {
            p { "State: " b #state { (state) } }
            progress max=(visits.max(1)) value=(entry.visits_done) aria-label="visits" {}
            p { "Blocks: " b #blocks { (entry.blocks_done) " of " (entry.blocks_planned) } }
            p {
                "Visits: " b #visits { (entry.visits_done) } " of at most " (visits)
                " (" (count(entry.cells.len())) " cells in each block; a cell with an answer may end early)"
            }
            p #ended hidden[!ended] {
                "It is not measured any more: "
                a href=(links.to(&Route::Run(entry.name.clone()))) { "its report" }
            }
        }
        p.muted { "Verdicts are shown after the run, because an analysis would disturb it." }
        (around(None, entry, lab, links))
    };
    let frame = Frame {
        title: &entry.name,
        links,
        body,
        script: Some(LIVE),
    };
    Ok(Some(Page::html(framed(&frame)).that_waits(true)))
}
