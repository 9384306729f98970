//! A cell of one host over time: every ratio that its runs found.

mod chart;

use crate::entry::{Cell, Entry, Host};
use crate::frame::{
    Frame, framed, host_link, host_name, moment, pair, run_link, verdict, version_link, waits,
};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Points that a series shows, the newest.
const POINTS: usize = 500;

/// A cell on a host.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) key: String,
    /// Key of the host.
    pub(crate) host: String,
    /// Runs that measured it, oldest first.
    pub(crate) runs: Vec<String>,
}

/// All series, by name and host.
pub(crate) fn all(lab: &Lab) -> Vec<Series> {
    series(lab, |_, _| true)
}

/// Those that are wanted, by cell and host.
fn series(lab: &Lab, is_wanted: impl Fn(&Cell, &Host) -> bool) -> Vec<Series> {
    let mut found: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
    for entry in lab.entries.iter() {
        let Some(host) = &entry.host else { continue };
        for cell in entry.cells.iter().filter(|cell| is_wanted(cell, host)) {
            let place = (cell.name.clone(), cell.key.clone(), host.key.clone());
            let runs = found.entry(place).or_default();
            if runs.last() != Some(&entry.name) {
                runs.push(entry.name.clone());
            }
        }
    }
    let series = |((name, key, host), runs)| Series {
        name,
        key,
        host,
        runs,
    };
    found.into_iter().map(series).collect()
}

/// The list.
pub(crate) fn list(lab: &Lab, links: &Links) -> Page {
    let hosts = crate::hosts::all(lab);
    let body = html! {
        h1 { "Cells" }
        p.muted {
            "A cell is a workload with one number of clients, data, settings and limits, on one host. "
            "Another text of the workload begins another series."
        }
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "cell" } th scope="col" { "host" } th scope="col" { "runs" }
                th scope="col" { "newest run" } th scope="col" { "key" }
            } }
            tbody { @for one in all(lab) { tr {
                th scope="row" {
                    a href=(links.to(&Route::Cell(one.key.clone(), one.host.clone()))) { (one.name) }
                }
                td {
                    @if let Some((host, _)) = hosts.iter().find(|(host, _)| host.key == one.host) {
                        (host_link(host, lab, links))
                    }
                }
                td { (words::plural(count(one.runs.len()), "run")) }
                td {
                    @if let Some(run) = one.runs.last().and_then(|name| lab.entry(name)) {
                        (run_link(run, links)) " " small { (moment(run.started_unix_ms)) }
                    }
                }
                td.hash { (one.key) }
            } } }
        } }
    };
    let frame = Frame {
        title: "Cells",
        links,
        body,
        script: None,
    };
    Page::html(framed(&frame))
}

/// What a run found in the series.
struct Point<'a> {
    entry: &'a Entry,
    outcome: &'a Outcome,
}

/// A series; `None` for one that no run has.
///
/// Errors: the store cannot be read.
pub(crate) fn page(
    lab: &mut Lab,
    (cell, host): (&str, &str),
    links: &Links,
) -> Result<Option<Page>, Problem> {
    let is = |one: &Cell, on: &Host| one.key == cell && on.key == host;
    let Some(series) = series(lab, is).into_iter().next() else {
        return Ok(None);
    };
    // The same runs whatever becomes known of them.
    let entries = Arc::clone(&lab.entries);
    let older = series.runs.len().saturating_sub(POINTS);
    let newest = series.runs.iter().skip(older);
    let newest = newest.filter_map(|run| entries.get(lab.place(run)?));
    let newest: Vec<&Entry> = newest.collect();
    let (known, missing) = lab.outcomes_of(newest.into_iter())?;
    let points: Vec<Point<'_>> = { known.iter() }
        .flat_map(|(entry, found)| points(entry, found, &series))
        .collect();
    let trend = Route::Trend(series.key.clone(), series.host.clone());
    let trend = crate::trends::all(lab)?.contains(&trend).then_some(trend);
    let lab = &*lab;
    let host = { points.first().and_then(|point| point.entry.host.clone()) }.or_else(|| {
        Some(
            crate::hosts::all(lab)
                .into_iter()
                .find(|(host, _)| host.key == series.host)?
                .0
                .clone(),
        )
    });
    let title = series.name.clone();
    let frame = Frame {
        title: &title,
        links,
        body: body(
            (&series, trend.as_ref()),
            (&points, missing),
            host.as_ref(),
            lab,
            links,
        ),
        script: None,
    };
    Ok(Some(Page::html(framed(&frame)).that_waits(missing > 0)))
}

/// What a run found in a series.
fn points<'a>(entry: &'a Entry, found: &'a [Outcome], series: &Series) -> Vec<Point<'a>> {
    let is_it = |outcome: &&Outcome| {
        let cell = entry.cell(outcome.cell);
        outcome.ratio.is_some() && cell.is_some_and(|cell| cell.key == series.key)
    };
    let own = found.iter().filter(is_it);
    own.map(|outcome| Point { entry, outcome }).collect()
}

fn body(
    (series, trend): (&Series, Option<&Route>),
    (points, missing): (&[Point<'_>], usize),
    host: Option<&Host>,
    lab: &Lab,
    links: &Links,
) -> Markup {
    let mut bases: BTreeMap<&str, Vec<&Point<'_>>> = BTreeMap::new();
    for point in points {
        if let Some(base) = point.entry.base() {
            bases.entry(&base.identity).or_default().push(point);
        }
    }
    html! {
        h1 { (series.name) @if let Some(host) = host { " on " (host_name(host, lab)) } }
        p.muted {
            "Throughput of each candidate relative to the base of its run, with the 95 % interval of that "
            "hour. Intervals of two runs do not say whether their versions differ: compare these. Runs of "
            "another base are a list of their own."
        }
        (waits(lab, missing))
        @if bases.is_empty() { p { "No run compared two versions in this cell." } }
        @for points in bases.values() {
            section {
                @if let Some(base) = points.first().and_then(|point| point.entry.base()) {
                    h2 { "Relative to " (version_link(base, links)) }
                }
                (chart::chart(points))
                (table(points, links))
            }
        }
        @if let Some(trend) = trend {
            p { a href=(links.to(trend)) { "levels of its versions over all runs, and their changes" } }
        }
        @if series.runs.len() > POINTS {
            p.muted { "The newest " (POINTS) " of " (series.runs.len()) " runs." }
        }
    }
}

fn table(points: &[&Point<'_>], links: &Links) -> Markup {
    html! {
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "run" } th scope="col" { "candidate" } th scope="col" { "verdict" }
                th scope="col" { "throughput, this hour" } th scope="col" { "other hours" }
                th scope="col" { "blocks" }
            } }
            tbody { @for point in points.iter().rev() {
                @let Point { entry, outcome } = point;
                tr class=[outcome.withdrawn.then_some("gone")] {
                    th scope="row" {
                        (run_link(entry, links)) " " small { (moment(entry.started_unix_ms)) }
                    }
                    td.sides { (pair(entry, outcome, links)) }
                    td { (verdict(outcome)) }
                    td.figures data-name="this hour" { (outcome.change) }
                    td.figures data-name="other hours" {
                        (outcome.another.as_deref().unwrap_or("not known"))
                    }
                    td data-name="blocks" { (outcome.blocks) }
                }
            } }
        } }
    }
}
