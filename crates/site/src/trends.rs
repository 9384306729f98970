//! Cells over time: a grid of small bands, and a page for each cell of a host.

mod cell;
mod notes;

use crate::band::{self, Mark, Point, SMALL};
use crate::changes::Told;
use crate::frame::{FILTER, Frame, PART, framed, host_link, host_name, host_of, waits};
use crate::lab::{Lab, METRICS};
use crate::route::{Links, Route};
use crate::written::Page;
pub(crate) use cell::page;
use deltabench_compare::thresholds::HOURS_ASSUMED;
use deltabench_lab::{HostTrend, TrendCell, store_problem};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::{metric_word, words};
use deltabench_store::Triage;
use deltabench_trend::{Network, State};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Characters of a key that tell two cells of one name apart.
const SHORT: usize = 8;

/// What levels rest on where a host has measured too little again.
fn assumed() -> String {
    format!(
        "too little was measured again, and hours are taken to differ by about {:.1} % (standard deviation) \
         for all versions alike. On a virtual machine versions of two branches may differ by more: what the \
         report of a run says of another hour allows for that, and is wider.",
        100.0 * HOURS_ASSUMED
    )
}

/// The pages of all cells.
///
/// Errors: the store cannot be read.
pub(crate) fn all(lab: &mut Lab) -> Result<Vec<Route>, Problem> {
    if lab.is_part {
        return Ok(Vec::new());
    }
    let hosts = lab.trends()?.unwrap_or_default();
    let lab = &*lab;
    let mut routes = Vec::new();
    for host in hosts.iter() {
        if let Some(known) = host_of(lab, host) {
            let route = |cell: &TrendCell| Route::trend(&cell.key, &known.key);
            routes.extend(host.cells.iter().map(route));
        }
    }
    routes.sort();
    routes.dedup();
    Ok(routes)
}

/// The grid.
///
/// Errors: the store cannot be read.
pub(crate) fn list(lab: &mut Lab, links: &Links) -> Result<Page, Problem> {
    let (hosts, left) = lab.trends_so_far()?;
    let lab = &*lab;
    let said = lab.store.triages().map_err(store_problem)?;
    let body = html! {
        h1 { "Versions over time" }
        @if lab.is_part { p { (PART) } } @else {
            p.muted {
                "Each band is the level of all versions of a cell relative to the usual base, in the order "
                "of versions, with 95 % intervals over many hours. The figure is that of the last version. "
                "The line is “equal”; each band has a scale of its own, of ±2 % at least. Lines across a "
                "band are changes: confirmed ones in colour, suspected ones dashed."
            }
            (waits(lab, left))
            @if hosts.is_empty() && left == 0 { p { "No finished run compares two versions." } }
            @if !hosts.is_empty() { (filter()) }
            @for metric in METRICS {
                @let own: Vec<&HostTrend> = hosts.iter().filter(|host| host.metric == metric).collect();
                @if !own.is_empty() { section id=(metric.key()) {
                    h2 { (metric_word(metric)) }
                    (grid(&own, &said, lab, links))
                } }
            }
        }
    };
    let frame = Frame {
        title: "Trends",
        links,
        body,
        script: Some(FILTER),
    };
    Ok(Page::html(framed(&frame)).that_waits(left > 0))
}

fn filter() -> Markup {
    html! {
        form.controls.filter {
            label { span { "cell" } input type="search" name="q" placeholder="a part of its name"; }
            label { span { "metric" } select name="metric" {
                option value="" { "both" }
                @for metric in METRICS { option value=(metric.key()) { (metric_word(metric)) } }
            } }
            label { span { "show" } select name="changed" {
                option value="" { "all cells" }
                option value="confirmed" { "with a confirmed change" }
                option value="suspected" { "with a suspected change" }
            } }
        }
    }
}

/// Cells by hosts.
fn grid(hosts: &[&HostTrend], said: &[Triage], lab: &Lab, links: &Links) -> Markup {
    /// Whether it is a cell and no mean (these come first), its name and its key.
    type Row<'a> = (bool, &'a str, &'a str);
    let mut rows: BTreeMap<Row<'_>, Vec<(usize, usize)>> = BTreeMap::new();
    for (column, host) in hosts.iter().enumerate() {
        for (at, cell) in host.cells.iter().enumerate() {
            let key = (cell.members.is_empty(), &*cell.name, &*cell.key);
            let row = rows.entry(key).or_default();
            row.push((column, at));
        }
    }
    let told: Vec<Vec<Told<'_>>> = hosts.iter().map(|host| Told::of(host, said)).collect();
    let of = |column: usize, cell: usize| -> Vec<Told<'_>> {
        let all = told.get(column).into_iter().flatten();
        all.filter(|one| one.change.suspicion.series == cell)
            .copied()
            .collect()
    };
    html! {
        div.scroll { table.list.grid {
            thead { tr {
                th scope="col" { "cell" }
                @for host in hosts { th scope="col" {
                    @if let Some(host) = host_of(lab, host) { (host_link(host, lab, links)) }
                } }
            } }
            tbody { @for ((_, name, key), cells) in &rows {
                @let changes: Vec<Told<'_>> = cells.iter().flat_map(|(at, cell)| of(*at, *cell)).collect();
                tr data-text=(lab.secrets.clean(name).to_lowercase()) data-metric=(metric_of(hosts))
                    data-changed=(changed(&changes)) {
                    th scope="row" {
                        (name)
                        // Other data or settings under one name.
                        @if rows.keys().filter(|(_, other, _)| other == name).count() > 1 {
                            " " small.hash { (key.get(..SHORT).unwrap_or(key)) }
                        }
                    }
                    @for (column, host) in hosts.iter().enumerate() {
                    @let name = name_of(hosts, host, lab);
                    td data-name=[name] {
                        @if let Some((_, cell)) = cells.iter().find(|(at, _)| *at == column) {
                            (small(host, *cell, &of(column, *cell), lab, links))
                        }
                    } }
                }
            } }
        } }
    }
}

fn metric_of(hosts: &[&HostTrend]) -> &'static str {
    hosts.first().map_or("", |host| host.metric.key())
}

/// The name of a column on narrow screens, where there are several.
fn name_of(hosts: &[&HostTrend], host: &HostTrend, lab: &Lab) -> Option<String> {
    let several = hosts.len() > 1;
    host_of(lab, host)
        .filter(|_| several)
        .map(|host| host_name(host, lab))
}

fn changed(changes: &[Told<'_>]) -> String {
    let has = |wanted: State| changes.iter().any(|one| one.state() == wanted);
    let all = [
        (State::Confirmed, "confirmed"),
        (State::Suspected, "suspected"),
    ];
    let words = all.into_iter().filter(|(state, _)| has(*state));
    words.map(|(_, word)| word).collect::<Vec<_>>().join("|")
}

/// A band with its last event, leading to the page of the cell.
fn small(host: &HostTrend, cell: usize, changes: &[Told<'_>], lab: &Lab, links: &Links) -> Markup {
    let Some((known, network)) = host.cells.get(cell).zip(network(host, cell)) else {
        return html! {};
    };
    let points = levels(host, &network.1);
    let name = |at: usize| {
        host.versions
            .get(at)
            .map_or("", |version| version.name.as_str())
    };
    let standing = changes.iter().filter(|one| one.state() != State::Refuted);
    let last =
        standing.max_by_key(|one| (one.change.suspicion.raised, one.state() == State::Confirmed));
    let label = format!("levels of {} relative to {}", known.name, name(network.0));
    let drawn = band::band(&points, &marks(changes, &points), &SMALL, &label);
    html! {
        @match host_of(lab, host) {
            Some(host) => a.small href=(links.to(&Route::trend(&known.key, &host.key))) { (drawn) },
            None => (drawn),
        }
        // Bands have scales of their own, so the figure says how much it is.
        small {
            @match points.last().filter(|point| point.version != network.0) {
                Some(newest) => { (newest.title) " relative to " (name(network.0)) ", " },
                None => { "base " (name(network.0)) ", " },
            }
            (words::plural(count(points.len()), "version"))
        }
        @if let Some(last) = last {
            " " small { a href=(links.to(&last.route())) {
                b class=(last.class()) { (last.in_short()) } ", " (last.between())
            } }
        }
    }
}

/// The network of a cell from its usual base, with the number of that.
pub(crate) fn network(host: &HostTrend, cell: usize) -> Option<(usize, Network)> {
    let anchor = host.usual_base(cell)?;
    Some((anchor, host.network(cell, anchor)?))
}

/// The versions of a cell in their order.
pub(crate) fn levels(host: &HostTrend, network: &Network) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut before: Option<&str> = None;
    let mut line = 0;
    for (at, version) in host.versions.iter().enumerate() {
        let Some(level) = network.level(at) else {
            continue;
        };
        if before.is_some_and(|before| before != version.line) {
            line += 1;
        }
        before = Some(&version.line);
        let figure = crate::changes::figure(&level.change);
        points.push(Point {
            // Versions that this cell does not have leave no gaps.
            x: band::place(points.len()),
            version: at,
            level: level.change,
            name: version.name.clone(),
            title: format!("{} {figure}", version.name),
            line,
        });
    }
    points
}

/// Changes at the versions after them.
pub(crate) fn marks(changes: &[Told<'_>], points: &[Point]) -> Vec<Mark> {
    let mark = |told: &Told<'_>| {
        let one = &told.change.suspicion;
        let point = points.iter().find(|point| point.version == one.to)?;
        Some(Mark {
            x: point.x,
            class: match told.state() {
                State::Suspected => "suspected",
                _ => told.class(),
            },
            label: match told.class() {
                "worse" => "▼".to_owned(),
                "better" => "▲".to_owned(),
                _ => "?".to_owned(),
            },
            title: format!("{}, {}", told.in_short(), told.between()),
        })
    };
    let standing = changes.iter().filter(|one| one.state() != State::Refuted);
    standing.filter_map(mark).collect()
}
