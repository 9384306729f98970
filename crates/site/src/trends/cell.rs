//! A cell of a host over time: levels of versions, run by run, changes and what people know.

use super::notes::{self, Note};
use super::{levels, marks, network};
use crate::band::{self, LARGE, Mark, POINTS, Point};
use crate::changes::{self, Told, figure};
use crate::frame::{Frame, framed, host_link, host_of, moment, run_link};
use crate::lab::Lab;
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_lab::{HostTrend, TrendCell, TrendPoint, Version, store_problem};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::{metric_word, words};
use deltabench_store::{Annotation, Triage};
use deltabench_trend::{Estimate, Network};
use maud::{Markup, html};

/// Runs that a row of the table names, the newest.
const NAMED: usize = 3;

/// What people said, for all cells.
struct Said {
    triages: Vec<Triage>,
    annotations: Vec<(i64, Annotation)>,
}

/// A cell's page; `None` for one that no run has.
///
/// Errors: the store cannot be read.
pub(crate) fn page(
    lab: &mut Lab,
    (cell, host): (&str, &str),
    links: &Links,
) -> Result<Option<Page>, Problem> {
    let hosts = match lab.trends()? {
        Ok(hosts) => hosts,
        Err(left) => return Ok(Some(changes::later(lab, left, links))),
    };
    let lab = &*lab;
    let said = Said {
        triages: lab.store.triages().map_err(store_problem)?,
        annotations: lab.store.annotations().map_err(store_problem)?,
    };
    let is_host = |one: &&HostTrend| host_of(lab, one).is_some_and(|known| known.key == host);
    let wanted = Route::Trend(cell.to_owned(), host.to_owned());
    let number = |one: &HostTrend| {
        let mut cells = one.cells.iter();
        cells.position(|known| Route::trend(&known.key, host) == wanted)
    };
    let own: Vec<(&HostTrend, usize)> = { hosts.iter().filter(is_host) }
        .filter_map(|host| Some((host, number(host)?)))
        .collect();
    let Some((first, at)) = own.first().copied() else {
        return Ok(None);
    };
    let name = first.cells.get(at).map_or("", |cell| cell.name.as_str());
    let known = host_of(lab, first);
    let notes = notes::of(first, name, &said.annotations);
    let body = html! {
        h1 { (name) " over time" @if let Some(host) = known { " on " (host_link(host, lab, links)) } }
        @for (host, at) in &own { (metric(host, *at, &said, lab, links)) }
        (notes::list(&notes))
        @match (first.cells.get(at).filter(|cell| !cell.members.is_empty()), known) {
            (Some(mean), Some(host)) => (members(first, mean, &host.key, links)),
            (None, Some(host)) => p {
                @let every = Route::Cell(cell.to_owned(), host.key.clone());
                a href=(links.to(&every)) { "every run of this cell" } ", with verdict and interval"
            },
            _ => {},
        }
    };
    let title = format!("{name} over time");
    let frame = Frame {
        title: &title,
        links,
        body,
        script: None,
    };
    Ok(Some(Page::html(framed(&frame))))
}

/// The cells of a mean.
fn members(host: &HostTrend, mean: &TrendCell, key: &str, links: &Links) -> Markup {
    html! { p {
        "The mean of the log-ratios of these cells, block by block, with δ of at most 1 %: "
        @for (at, cell) in host.members(mean).enumerate() {
            @if at > 0 { ", " }
            a href=(links.to(&Route::trend(&cell.key, key))) { (cell.name) }
        }
        ". It shows what is too small for each of them."
    } }
}

/// Charts, changes and versions of one metric.
fn metric(host: &HostTrend, cell: usize, said: &Said, lab: &Lab, links: &Links) -> Markup {
    let Some((anchor, network)) = network(host, cell) else {
        return html! {};
    };
    let name = host.cells.get(cell).map_or("", |cell| cell.name.as_str());
    let own: Vec<Told<'_>> = { Told::of(host, &said.triages).into_iter() }
        .filter(|one| one.change.suspicion.series == cell)
        .collect();
    let notes = notes::of(host, name, &said.annotations);
    let base = host
        .versions
        .get(anchor)
        .map_or("", |version| version.name.as_str());
    let runs = host.points(cell, &network);
    html! {
        section id=(host.metric.key()) {
            h2 { (metric_word(host.metric)) " relative to " (base) }
            (by_version(host, &network, (&own, &notes), base))
            (by_time(host, &runs, &notes, base))
            (meaning(&network, host.disturbed(|at| at == cell)))
            (host_changes(host, &network))
            (eras(host, &network))
            @if !own.is_empty() { h3 { "Changes" } (changes::table(&own, lab, links)) }
            h3 { "Versions" }
            (table((host, anchor), &network, &runs, lab, links))
        }
    }
}

fn by_version(
    host: &HostTrend,
    network: &Network,
    (changes, notes): (&[Told<'_>], &[Note<'_>]),
    base: &str,
) -> Markup {
    let points = levels(host, network);
    let mut all = marks(changes, &points);
    all.extend(notes::at_versions(notes, host, &points));
    let label = format!("level of each version relative to {base}, in the order of versions");
    html! {
        figure.plot.chart-of {
            (band::band(&points, &all, &LARGE, &label))
            figcaption.legend {
                "In the order of versions, oldest on the left: the level over many hours, with its 95 % "
                "interval. Lines are changes (▼ worse, ▲ better, ? suspected) and numbered notes."
            }
        }
    }
}

fn by_time(host: &HostTrend, runs: &[TrendPoint], notes: &[Note<'_>], base: &str) -> Markup {
    let point = |one: &TrendPoint| {
        let (run, version) = (host.runs.get(one.run)?, host.versions.get(one.version)?);
        let level = Estimate {
            value: one.found.value,
            low: one.found.ci95.0,
            high: one.found.ci95.1,
        };
        let title = format!(
            "{} {} in {}, {}",
            version.name,
            figure(&level),
            run.name,
            words::date(run.began_unix_ms)
        );
        Some(Point {
            x: notes::moment_x(run.began_unix_ms),
            version: one.version,
            level,
            name: words::date(run.began_unix_ms),
            title,
            // Runs are not joined: each has a luck of its own.
            line: one.run * host.versions.len() + one.version,
        })
    };
    let points: Vec<Point> = runs.iter().filter_map(point).collect();
    let mut marks: Vec<Mark> = notes::at_moments(notes, host);
    marks.extend(host.eras().iter().map(|era| Mark {
        x: notes::moment_x(era.at_unix_ms),
        class: "note",
        label: "anchor".to_owned(),
        title: "another anchor follows".to_owned(),
    }));
    let ends = (points.first(), points.last());
    let is_long = ends
        .0
        .zip(ends.1)
        .is_some_and(|(first, last)| first.x < last.x);
    let label = format!("each version of each run relative to {base}, in the order of time");
    html! {
        @if is_long { figure.plot.chart-of.by-time {
            (band::band(&points, &marks, &LARGE, &label))
            figcaption.legend {
                "In the order of time, from "
                (words::date(host.runs.first().map_or(0, |run| run.began_unix_ms))) " to "
                (words::date(host.runs.last().map_or(0, |run| run.began_unix_ms)))
                ": a dot for each version of a run, with the interval of its hour. "
                "Runs of another base are moved by its level."
                @if points.len() > POINTS { " The newest " (POINTS) "." }
            }
        } }
    }
}

/// Anchors that followed each other, and how far they are apart in this cell.
fn eras(host: &HostTrend, network: &Network) -> Markup {
    let name = |at: usize| {
        host.versions
            .get(at)
            .map_or("", |version| version.name.as_str())
    };
    html! { @for era in host.eras() {
        @if let Some(shift) = network.change(era.before, era.after) { p.muted {
            "Anchor: " (name(era.after)) " follows " (name(era.before)) " since "
            (moment(era.at_unix_ms)) "; relative to it " (figure(&shift)) " here. Levels go on."
        } }
    } }
}

/// What the intervals rest on, and what does not count.
fn meaning(network: &Network, (disturbed, all): (usize, usize)) -> Markup {
    html! {
        p.muted {
            "Intervals of levels hold each by itself. They rest on how hours differ on this host (sd "
            (format!("{:.1}", 100.0 * network.sd)) " %)"
            @if network.assumed { ", and in part on an assumption: " (super::assumed()) } @else { "." }
            @if disturbed > 0 {
                " Other load disturbed " (disturbed) " of " (words::plural(count(all), "run"))
                ": they count for levels, and raise or confirm no change."
            }
        }
    }
}

/// When the machine became another host, and what that does to levels.
fn host_changes(host: &HostTrend, network: &Network) -> Markup {
    html! { @if !host.host_changes.is_empty() { p.muted {
        "The machine changed: "
        @for (at, one) in host.host_changes.iter().enumerate() {
            @if at > 0 { ", " }
            (moment(one.at_unix_ms)) " (" (one.what) ")"
        }
        ". Levels are those on the newest host that measured a branch."
        @if network.rests_on_anchor {
            " No version was measured both before and after, so the anchor alone connects them."
        }
    } } }
}

/// A row for each version, the newest first.
fn table(
    (host, anchor): (&HostTrend, usize),
    network: &Network,
    runs: &[TrendPoint],
    lab: &Lab,
    links: &Links,
) -> Markup {
    let known: Vec<(usize, &Version)> = { host.versions.iter().enumerate() }
        .filter(|(at, _)| network.level(*at).is_some())
        .collect();
    let before = |place: usize| {
        let (_, version) = known.get(place)?;
        let (earlier, other) = known.get(place.checked_sub(1)?)?;
        (version.line == other.line).then_some(*earlier)
    };
    html! {
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "version" } th scope="col" { "level" }
                th scope="col" { "since the version before" } th scope="col" { "runs" }
                th scope="col" { "newest" }
            } }
            tbody { @for (place, (at, version)) in known.iter().enumerate().rev() { tr {
                th scope="row" { (version.name) }
                td.figures data-name="level" { (level(network, *at, anchor)) }
                td.figures data-name="since the version before" {
                    @if let Some(step) = before(place).and_then(|before| network.change(before, *at)) {
                        (figure(&step))
                    }
                }
                td data-name="runs" { (network.level(*at).map_or(0, |level| level.runs)) }
                td { (newest(runs, *at, host, lab, links)) }
            } } }
        } }
    }
}

fn level(network: &Network, version: usize, anchor: usize) -> Markup {
    html! {
        @if version == anchor { "base" } @else if let Some(level) = network.level(version) {
            (figure(&level.change)) @if !level.direct { " " small { "through others" } }
        }
    }
}

/// The newest runs that have a version as candidate.
fn newest(
    runs: &[TrendPoint],
    version: usize,
    host: &HostTrend,
    lab: &Lab,
    links: &Links,
) -> Markup {
    let own = runs.iter().rev().filter(|one| one.version == version);
    let own = own.filter_map(|one| lab.entry(&host.runs.get(one.run)?.name));
    html! { @for (at, entry) in own.take(NAMED).enumerate() {
        @if at > 0 { ", " } (run_link(entry, links))
    } }
}
