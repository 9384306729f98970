//! Any two versions or servers of runs, cell by cell.

mod ends;
mod missing;
mod table;

use crate::changes::has_page;
use crate::entry::Server;
use crate::frame::{FILTER, Frame, PART, framed, host_link, host_of, run_link, waits};
use crate::lab::{Lab, METRICS};
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_lab::{ComparedCell, HostTrend};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use deltabench_trend::End;
use ends::Found;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs that get a page where pages are files, the newest: any pair would be too many. Each further run
/// makes all of them new, because all rest on what is known of hours. 60 are those of 20 nights.
const PAIRS: usize = 60;

/// The page on which two versions are chosen.
///
/// Errors: the store cannot be read.
pub(crate) fn list(lab: &mut Lab, links: &Links) -> Result<Page, Problem> {
    let (pairs, left) = match lab.is_part {
        true => (Vec::new(), 0),
        false => pairs(lab)?,
    };
    let lab = &*lab;
    let body = html! {
        h1 { "Compare two versions" }
        @if lab.is_part { p { (PART) } } @else {
            @if links.served() { (form(lab, ("", ""), links)) } @else {
                p {
                    "This copy of a lab has a page for each pair below. For any other pair, or for two runs, "
                    "start " code { "deltabench web" } " where the lab is."
                }
            }
            (waits(lab, left))
            section {
                h2 { "Side by side in a run, or neighbours" }
                @if pairs.is_empty() && left == 0 { p { "No finished run compares two versions." } }
                ul.findings { @for (base, with) in &pairs { li {
                    a href=(links.to(&Route::Pair(ends::key(base), ends::key(with)))) {
                        (with.name) " relative to " (base.name)
                    }
                } } }
                @if pairs.len() >= PAIRS {
                    p.muted { "The newest " (PAIRS) ", and those of confirmed changes." }
                }
            }
        }
    };
    let frame = Frame {
        title: "Compare",
        links,
        body,
        script: None,
    };
    Ok(Page::html(framed(&frame)).that_waits(left > 0))
}

/// The pairs that have a page of their own, the newest versions first; and of how many runs that is not
/// known.
fn pairs(lab: &mut Lab) -> Result<(Vec<(Server, Server)>, usize), Problem> {
    let trends = match lab.trends()? {
        Ok(trends) => trends,
        Err(left) => return Ok((Vec::new(), left)),
    };
    let known = lab.measured_servers();
    let (mut met, mut changed) = (BTreeMap::new(), BTreeMap::new());
    for host in trends.iter() {
        let pair = |(one, other): (usize, usize)| {
            let (one, other) = (host.versions.get(one)?, host.versions.get(other)?);
            let servers = (
                known.get(&one.identity)?.server.clone(),
                known.get(&other.identity)?.server.clone(),
            );
            let place = (one.identity.clone(), other.identity.clone());
            Some((place, (one.first_ms.max(other.first_ms), servers)))
        };
        met.extend(host.met().into_iter().filter_map(pair));
        let ends = host
            .changes
            .iter()
            .filter(|one| has_page(&one.suspicion))
            .map(|one| (one.suspicion.from, one.suspicion.to));
        changed.extend(ends.filter_map(pair));
    }
    let mut all: Vec<_> = met.into_iter().collect();
    all.sort_by_key(|(_, (newest, _))| std::cmp::Reverse(*newest));
    all.truncate(PAIRS);
    // Pages of changes lead to theirs.
    let rest = changed
        .into_iter()
        .filter(|(place, _)| !all.iter().any(|(known, _)| known == place));
    let rest: Vec<_> = rest.collect();
    all.extend(rest);
    Ok((
        all.into_iter().map(|(_, (_, servers))| servers).collect(),
        0,
    ))
}

/// The pages of pairs that a folder of files has.
///
/// Errors: the store cannot be read.
pub(crate) fn published(lab: &mut Lab) -> Result<Vec<Route>, Problem> {
    let (pairs, _) = pairs(lab)?;
    let route = |(base, with): (Server, Server)| Route::Pair(ends::key(&base), ends::key(&with));
    Ok(pairs.into_iter().map(route).collect())
}

/// Two versions to choose; it needs no script.
fn form(lab: &Lab, (base, with): (&str, &str), links: &Links) -> Markup {
    let known = lab.measured_servers().values();
    let mut versions: Vec<&Server> = known.map(|one| &one.server).collect();
    versions.sort_by(|one, other| {
        let order = |of: &Server| (crate::builds::order(&of.version), of.name.clone());
        order(one).cmp(&order(other))
    });
    let select = |name: &'static str, chosen: &str| {
        html! {
            select name=(name) required {
                @if chosen.is_empty() { option value="" { "choose" } }
                @for version in &versions {
                    @let key = ends::key(version);
                    option value=(key) selected[key == chosen] { (version.name) }
                }
                @if !chosen.is_empty() && !versions.iter().any(|one| ends::key(one) == chosen) {
                    option value=(chosen) selected { (chosen) }
                }
            }
        }
    };
    html! { div.choose {
        form.controls.ends method="get" action=(links.to(&Route::Compare)) {
            label { span { "base" } (select("base", base)) }
            label { span { "with" } (select("with", with)) }
            button { "Compare" }
        }
        p.muted {
            "An address may also name runs: " code { "/compare?base=RUN:0&with=RUN:1" }
            " compares two servers of runs, by the numbers of their reports."
        }
    } }
}

/// A comparison, or why there is none.
///
/// Errors: the store cannot be read.
pub(crate) fn page(
    lab: &mut Lab,
    (base, with): (&str, &str),
    links: &Links,
) -> Result<Page, Problem> {
    let (one, other) = (ends::find(lab, base), ends::find(lab, with));
    let (one, other) = match (one, other) {
        (Ok(one), Ok(other)) if !lab.is_part => (one, other),
        (one, other) => {
            let why = [one.err(), other.err(), lab.is_part.then(|| PART.to_owned())];
            let why: Vec<String> = why.into_iter().flatten().collect();
            return Ok(refused(lab, (base, with), &why, links));
        }
    };
    // Two runs may have measured one build.
    let two_runs = one.run.is_some() && other.run.is_some() && one.run != other.run;
    if one.server.identity == other.server.identity && !two_runs {
        let why = "Both ends are the same build with the same settings.".to_owned();
        return Ok(refused(lab, (base, with), &[why], links));
    }
    let (hosts, left) = match lab.trends()? {
        Ok(trends) => (trends, 0),
        Err(left) => (std::sync::Arc::new(Vec::new()), left),
    };
    let lab = &*lab;
    let found = compared(&hosts, &one, &other);
    let missing = match left {
        0 => missing::missing(lab, &hosts, (&one, &other), &found)?,
        _ => Vec::new(),
    };
    let title = format!("{} relative to {}", other.server.name, one.server.name);
    let body = html! {
        h1 { (title) }
        (both(lab, (&one, &other), links))
        @if links.served() { (form(lab, (&asked(&one, base), &asked(&other, with)), links)) }
        (waits(lab, left))
        @if left == 0 { (table::summary(&found)) }
        @for one in &found {
            section {
                @if let Some(host) = host_of(lab, one.host) { h2 { "On " (host_link(host, lab, links)) } }
                (table::table(one, lab, links))
            }
        }
        @if found.iter().any(|one| !one.cells.is_empty()) { (table::legend(&found)) }
        @if !missing.is_empty() {
            section #missing {
                h2 { "What cannot be compared" }
                ul.findings { @for line in &missing { li { (line.show(lab, links)) } } }
            }
        }
    };
    let frame = Frame {
        title: &title,
        links,
        body,
        script: Some(FILTER),
    };
    Ok(Page::html(framed(&frame)).that_waits(left > 0))
}

/// What the form shows as chosen: the key of a version, else what was asked for.
fn asked(end: &Found, text: &str) -> String {
    match end.run {
        Some(_) => text.to_owned(),
        None => ends::key(&end.server),
    }
}

fn refused(lab: &Lab, (base, with): (&str, &str), why: &[String], links: &Links) -> Page {
    let body = html! {
        h1 { "Nothing to compare" }
        @for why in why { p role="alert" { (why) } }
        @if links.served() && !lab.is_part { (form(lab, (base, with), links)) }
    };
    let frame = Frame {
        title: "Nothing to compare",
        links,
        body,
        script: None,
    };
    // Not kept: any text may be asked for.
    Page::html(framed(&frame)).that_waits(true)
}

/// Both ends by name, hash and run.
fn both(lab: &Lab, (one, other): (&Found, &Found), links: &Links) -> Markup {
    let end = |word: &str, end: &Found| {
        let version = &end.server.version;
        html! {
            div {
                dt { (word) }
                dd {
                    a href=(links.to(&Route::Version(version.key.clone()))) { (end.server.name) }
                    @if let Some(run) = end.run.as_deref().and_then(|name| lab.entry(name)) {
                        ", server " (end.server.id.0) " of run " (run_link(run, links))
                    }
                    br;
                    span.hash { @match version.sha256.get(..16) {
                        Some(hash) => { "executable " (hash) }, None => "hash not known",
                    } }
                    @if end.others > 0 {
                        br; small {
                            "the newest of " (words::plural(count(end.others + 1), "build"))
                            " with this name"
                        }
                    }
                }
            }
        }
    };
    html! { dl.ends { (end("base", one)) (end("with", other)) } }
}

/// What the runs of one machine say of both ends.
struct OfHost<'a> {
    /// Throughput.
    host: &'a HostTrend,
    cells: Vec<ComparedCell>,
    /// The same of CPU per operation, by key of the cell.
    cpu: BTreeMap<&'a str, ComparedCell>,
}

/// Of each machine that has both ends.
fn compared<'a>(hosts: &'a [HostTrend], one: &Found, other: &Found) -> Vec<OfHost<'a>> {
    let of = |host: &HostTrend| Some(host.compare(end(host, one)?, end(host, other)?));
    let mut found = Vec::new();
    for host in hosts.iter().filter(|host| host.metric == METRICS[0]) {
        let Some(cells) = of(host) else { continue };
        let is_same = |cpu: &&HostTrend| {
            cpu.metric == METRICS[1] && cpu.machine == host.machine && cpu.class == host.class
        };
        let cpu = hosts.iter().find(is_same);
        let by_key = cpu.into_iter().flat_map(|cpu| {
            let cells = of(cpu).unwrap_or_default().into_iter();
            cells.filter_map(|cell| Some((cpu.cells.get(cell.cell)?.key.as_str(), cell)))
        });
        found.push(OfHost {
            host,
            cells,
            cpu: by_key.collect(),
        });
    }
    found
}

/// An end among the versions and runs of a machine; `None` where the machine has not measured it.
fn end(host: &HostTrend, found: &Found) -> Option<End> {
    let is = |version: &deltabench_lab::Version| version.identity == found.server.identity;
    let version = host.versions.iter().position(is)?;
    let run = match &found.run {
        Some(name) => Some(host.runs.iter().position(|run| run.name == *name)?),
        None => None,
    };
    Some(End { version, run })
}

/// Numbers of runs as links, a few of them.
fn runs(host: &HostTrend, numbers: &[usize], lab: &Lab, links: &Links) -> Markup {
    /// More are a number alone.
    const NAMED: usize = 3;
    let names: BTreeSet<&str> = { numbers.iter() }
        .filter_map(|at| Some(host.runs.get(*at)?.name.as_str()))
        .collect();
    let entries: Vec<_> = names
        .iter()
        .rev()
        .filter_map(|name| lab.entry(name))
        .collect();
    html! {
        @if names.len() > NAMED { (words::plural(count(names.len()), "run")) ", newest " }
        @for (at, entry) in entries.iter().take(if names.len() > NAMED { 1 } else { NAMED }).enumerate() {
            @if at > 0 { ", " }
            (run_link(entry, links))
        }
    }
}
