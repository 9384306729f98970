//! Atom: regressions and improvements that a second run found again, and confirmed changes between versions.

use crate::changes::Told;
use crate::home::changes;
use crate::lab::Lab;
use crate::route::Route;
use crate::written::{Kind, Page};
use deltabench_model::problem::Problem;
use deltabench_report::words;
use deltabench_trend::State;
use maud::{PreEscaped, html};

/// The feed. Its addresses are relative to the site, because a folder of files does not know where it will
/// be; readers of feeds resolve them against the address of the feed.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &mut Lab) -> Result<Page, Problem> {
    let (mut found, missing) = changes(lab)?;
    found.retain(|change| change.outcome.confirmed == Some(true));
    found.sort_by_key(|change| std::cmp::Reverse(change.entry.state_unix_ms));
    let between = confirmed(lab)?;
    let runs = found.iter().map(|change| change.entry.state_unix_ms);
    let newest = runs.chain(between.iter().map(|one| one.at_unix_ms)).max();
    let at = |unix_ms: i64| format!("{}Z", words::timestamp(unix_ms));
    let body = html! {
        feed xmlns="http://www.w3.org/2005/Atom" {
            title { "deltabench: confirmed changes" }
            id { "urn:deltabench:confirmed-changes" }
            updated { (at(newest.unwrap_or(0))) }
            author { name { "deltabench" } }
            link rel="self" href=(Route::Feed.file());
            @for one in &between {
                entry {
                    id { "urn:deltabench:change:" (one.id) }
                    title { (one.title) }
                    updated { (at(one.at_unix_ms)) }
                    link href=(Route::Change(one.id.clone()).file());
                    summary { (one.summary) }
                }
            }
            @for change in &found {
                @let (entry, outcome) = (&change.entry, &change.outcome);
                @let cell = entry.cell(outcome.cell).map_or("", |cell| cell.name.as_str());
                @let candidate = entry.server(outcome.candidate).map_or("", |server| &server.name);
                @let base = entry.base().map_or("", |server| server.name.as_str());
                entry {
                    id {
                        "urn:deltabench:" (entry.name) ":" (outcome.cell) ":" (outcome.candidate)
                    }
                    title { (words::verdict(outcome.verdict())) " in " (cell) ": " (candidate) }
                    updated { (at(entry.state_unix_ms)) }
                    link href=(Route::Run(entry.name.clone()).file());
                    summary {
                        (outcome.change) " relative to " (base) ", confirmed by a second run"
                    }
                }
            }
        }
    };
    let head = PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    // Elements without content are written for HTML; XML wants them closed.
    let text = html! { (head) (body) }.into_string();
    let text = closed(&text);
    Ok(Page {
        kind: Kind::Atom,
        text,
        waits: missing > 0,
        later: false,
    })
}

/// A confirmed change between versions.
struct Confirmed {
    id: String,
    title: String,
    summary: String,
    /// When the run that confirmed it ended.
    at_unix_ms: i64,
}

/// Those of all hosts, the newest first. None while runs are not known yet, or where a part is shown.
fn confirmed(lab: &mut Lab) -> Result<Vec<Confirmed>, Problem> {
    if lab.is_part {
        return Ok(Vec::new());
    }
    let hosts = lab.trends()?.unwrap_or_default();
    let mut all = Vec::new();
    for told in hosts.iter().flat_map(|host| Told::of(host, &[])) {
        let last = told.change.suspicion.tries.last();
        let run = last.and_then(|at| lab.entry(&told.host.runs.get(*at)?.name));
        if let Some(run) = run.filter(|_| told.state() == State::Confirmed) {
            all.push(Confirmed {
                id: told.change.id.clone(),
                title: format!("{} in {}: {}", told.way(), told.cell(), told.between()),
                summary: told.in_short(),
                at_unix_ms: run.state_unix_ms,
            });
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.at_unix_ms));
    Ok(all)
}

/// Closes the links, the only elements here that have no content.
fn closed(text: &str) -> String {
    let mut closed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("<link ") {
        let (before, link) = rest.split_at(at);
        let end = link.find('>').unwrap_or(link.len());
        let (link, after) = link.split_at(end);
        closed.push_str(before);
        closed.push_str(link);
        closed.push('/');
        rest = after;
    }
    closed.push_str(rest);
    closed
}
