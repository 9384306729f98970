//! Executions of experiments, bisections and replays: lists, and the pages that they have.

use crate::entry::Entry;
use crate::frame::{Frame, framed, host_name, moment};
use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::runs::table;
use crate::study::{Loaded, place_unbegun, study_context, tables_of};
use crate::within::{hide, within};
use crate::written::Page;
use deltabench_lab::{analyse_this_hour, store_problem};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::{StudyFormat, TerminalOptions, render_study, words};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// The executions of experiments, newest first, with their runs in order.
pub(crate) fn all(lab: &Lab) -> Vec<(String, Vec<&Entry>)> {
    let mut found: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in lab.entries.iter().filter(|entry| entry.belongs.is_none()) {
        if let Some(name) = &entry.execution {
            found.entry(name).or_default().push(entry);
        }
    }
    let mut all: Vec<(String, Vec<&Entry>)> = { found.into_iter() }
        .map(|(name, runs)| (name.to_owned(), runs))
        .collect();
    let began = |runs: &Vec<&Entry>| runs.first().map_or(0, |run| run.started_unix_ms);
    all.sort_by_key(|(_, runs)| std::cmp::Reverse(began(runs)));
    all
}

/// The newest of them.
pub(crate) fn newest(lab: &Lab, links: &Links, most: usize) -> Markup {
    let executions = all(lab);
    html! {
        @if !executions.is_empty() {
            section #executions {
                h2 { "Experiments" }
                div.scroll { table.list {
                    thead { tr {
                        th scope="col" { "execution" } th scope="col" { "started" }
                        th scope="col" { "runs" }
                    } }
                    tbody { @for (name, runs) in executions.iter().take(most) { tr {
                        th scope="row" { a href=(links.to(&Route::Execution(name.clone()))) { (name) } }
                        td { @if let Some(first) = runs.first() { (moment(first.started_unix_ms)) } }
                        td { (words::plural(count(runs.len()), "run")) }
                    } } }
                } }
                @if executions.len() > most { p.muted { "Search lists all." } }
            }
        }
        @if !lab.stored.is_empty() {
            section #stored {
                h2 { "Bisections and replays" }
                ul.findings { @for name in lab.stored.iter().take(most) {
                    li { a href=(links.to(&Route::Stored(name.clone()))) { (name) } }
                } }
            }
        }
    }
}

/// An execution's page; `None` where there is none of that name.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &mut Lab, name: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let is = |known: &String| known == name || crate::route::segment(known) == name;
    let Some((name, runs)) = all(lab).into_iter().find(|(known, _)| is(known)) else {
        return Ok(None);
    };
    let about = html! {
        details.about { summary { "Its runs" } (table(&runs, lab, links)) }
    };
    if lab.must_wait() {
        let body = html! {
            h1 { "The tables of " (name) " are shown after the run" }
            p role="status" {
                "A run is measured on this machine now, and an analysis would disturb it. "
                a href=(links.to(&Route::Execution(name.clone()))) { "Try again" } "."
            }
            (about)
        };
        let frame = Frame {
            title: &name,
            links,
            body,
            script: None,
        };
        return Ok(Some(Page::html(framed(&frame)).for_later()));
    }
    let loaded = load(&runs, lab, links)?;
    let study = tables_of(&loaded)?;
    let options = TerminalOptions {
        width: 120,
        colour: false,
        verbose: false,
    };
    let mut context = study_context(&loaded);
    if let Some(file) = context.file.as_mut().filter(|_| !lab.shows_hosts) {
        file.file = file_name(&file.file);
    }
    let text = render_study(StudyFormat::Html, &study, &context, options);
    Ok(Some(Page::html(within(&text, &about, links))))
}

fn load(runs: &[&Entry], lab: &Lab, links: &Links) -> Result<Vec<Loaded>, Problem> {
    let mut loaded = Vec::new();
    for entry in runs {
        let plan = lab.store.plan(&entry.name).map_err(store_problem)?;
        let analysed = analyse_this_hour(&entry.name, &plan, &lab.store)?;
        let mut one = Loaded::of(lab.directory(), analysed, &lab.store)?;
        one.page = Some(links.to(&Route::Run(entry.name.clone())));
        hide(&mut one.plan, lab);
        if let Some(host) = entry.host.as_ref().filter(|_| !lab.shows_hosts) {
            one.host = host_name(host, lab);
        }
        loaded.push(one);
    }
    place_unbegun(&mut loaded);
    Ok(loaded)
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The page of a bisection or a replay, as its command wrote it; `None` where there is none.
///
/// Errors: its file cannot be read.
pub(crate) fn stored(lab: &Lab, name: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let Some(name) = lab.stored.iter().find(|known| *known == name) else {
        return Ok(None);
    };
    let path = lab.directory().join(format!("{name}.html"));
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Problem::new(format!("cannot read the page of {name}"))
            .detail(format!("{}: {error}", path.display()))
            .of_machine()
    })?;
    Ok(Some(Page::html(within(&text, &html! {}, links))))
}
