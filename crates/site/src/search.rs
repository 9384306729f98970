//! Everything that has a name, in one list that is filtered by what is typed.

use crate::frame::{FILTER, Frame, framed, host_name, moment};
use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::runs::searched;
use crate::written::Page;
use crate::{cells, executions, hosts, versions};
use deltabench_lab::store_problem;
use deltabench_model::problem::Problem;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Findings that are listed, the newest; each text once.
const FINDINGS: usize = 500;
/// Runs that are listed, the newest.
const RUNS: usize = 2000;

/// What can be found.
struct Thing {
    what: &'static str,
    route: Route,
    name: String,
    /// What it is found by beside its name.
    also: String,
    at_unix_ms: Option<i64>,
}

/// The page.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &Lab, links: &Links) -> Result<Page, Problem> {
    let things = things(lab)?;
    let body = html! {
        h1 { "Search" }
        form.controls.filter role="search" method="get" action=(links.to(&Route::Search)) {
            label { span { "text" }
                input type="search" name="q" autofocus placeholder="name, target, hash, finding"; }
            label { span { "what" } select name="what" {
                option value="" { "all" }
                @for what in ["version", "cell", "host", "run", "experiment", "report", "finding"] {
                    option { (what) }
                }
            } }
            span.muted aria-live="polite" { b #count { (things.len()) } " found" }
        }
        ul.findings { @for thing in &things { (item(thing, lab, links)) } }
    };
    let frame = Frame {
        title: "Search",
        links,
        body,
        script: Some(FILTER),
    };
    Ok(Page::html(framed(&frame)))
}

fn item(thing: &Thing, lab: &Lab, links: &Links) -> Markup {
    // In an attribute nobody looks for names any more, nor in lower case.
    let text = lab.secrets.clean(&format!("{} {}", thing.name, thing.also));
    let text = text.to_lowercase();
    html! {
        li data-text=(text) data-what=(thing.what) {
            b.note { (thing.what) } " "
            a href=(links.to(&thing.route)) { (thing.name) }
            @if let Some(at) = thing.at_unix_ms { " " small { (moment(at)) } }
        }
    }
}

fn things(lab: &Lab) -> Result<Vec<Thing>, Problem> {
    let thing = |what, route, name: String, also: String| Thing {
        what,
        route,
        name,
        also,
        at_unix_ms: None,
    };
    let mut all = Vec::new();
    for (version, _) in versions::all(lab) {
        let route = Route::Version(version.key.clone());
        let also = format!("{} {}", version.number, version.sha256);
        all.push(thing("version", route, version.target.clone(), also));
    }
    for one in cells::all(lab) {
        let route = Route::Cell(one.key.clone(), one.host);
        let newest = one.runs.last().and_then(|name| lab.entry(name));
        all.push(Thing {
            at_unix_ms: newest.map(|run| run.started_unix_ms),
            ..thing(
                "cell",
                route,
                format!("{} ({})", one.name, one.key),
                String::new(),
            )
        });
    }
    for (host, _) in hosts::all(lab) {
        let model = host.class.cpu_model.clone().unwrap_or_default();
        let also = format!("{model} {}", host.kernel.as_deref().unwrap_or_default());
        all.push(thing(
            "host",
            Route::Host(host.key.clone()),
            host_name(host, lab),
            also,
        ));
    }
    for (name, _) in executions::all(lab) {
        let route = Route::Execution(name.clone());
        all.push(thing("experiment", route, name, String::new()));
    }
    if !lab.is_part {
        for name in lab.stored.clone() {
            all.push(thing(
                "report",
                Route::Stored(name.clone()),
                name,
                String::new(),
            ));
        }
    }
    for entry in lab.entries.iter().rev().take(RUNS) {
        all.push(Thing {
            at_unix_ms: Some(entry.started_unix_ms),
            ..thing(
                "run",
                Route::Run(entry.name.clone()),
                entry.name.clone(),
                searched(entry),
            )
        });
    }
    all.extend(findings(lab)?);
    Ok(all)
}

/// The findings of runs, each text once, with the newest run that has it.
fn findings(lab: &Lab) -> Result<Vec<Thing>, Problem> {
    let mut seen: BTreeMap<String, ()> = BTreeMap::new();
    let mut all = Vec::new();
    for entry in lab.entries.iter().rev().take(RUNS) {
        for finding in lab.store.findings(&entry.name).map_err(store_problem)? {
            if all.len() == FINDINGS {
                return Ok(all);
            }
            if seen.insert(finding.text.clone(), ()).is_none() {
                all.push(Thing {
                    what: "finding",
                    route: Route::Run(entry.name.clone()),
                    also: entry.name.clone(),
                    name: finding.text,
                    at_unix_ms: Some(entry.started_unix_ms),
                });
            }
        }
    }
    Ok(all)
}
