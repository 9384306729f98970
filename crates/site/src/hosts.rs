//! Hosts: what they are, what changed of them, how often their placebos were called different.

use crate::entry::{Entry, Host};
use crate::frame::{Frame, framed, host_link, host_name, moment, run_link};
use crate::lab::Lab;
use crate::route::Links;
use crate::runs;
use crate::written::Page;
use deltabench_lab::{Placebos, store_problem};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use deltabench_store::LedgerLine;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Runs of a host that its page lists.
const RUNS: usize = 200;

/// The list.
pub(crate) fn list(lab: &Lab, links: &Links) -> Page {
    let body = html! { h1 { "Hosts" } (table(lab, links)) };
    let frame = Frame {
        title: "Hosts",
        links,
        body,
        script: None,
    };
    Page::html(framed(&frame)).that_waits(lab.measured.is_some())
}

/// The hosts, that of the newest run first, each with its runs, newest first.
pub(crate) fn all(lab: &Lab) -> Vec<(&Host, Vec<&Entry>)> {
    let mut found: Vec<(&Host, Vec<&Entry>)> = Vec::new();
    for entry in lab.entries.iter().rev() {
        let Some(host) = &entry.host else { continue };
        match found.iter_mut().find(|(known, _)| known.key == host.key) {
            Some((_, runs)) => runs.push(entry),
            None => found.push((host, vec![entry])),
        }
    }
    found
}

/// A row for each host.
pub(crate) fn table(lab: &Lab, links: &Links) -> Markup {
    let hosts = all(lab);
    html! {
        @if hosts.is_empty() { p { "No run of this lab knows its host." } } @else {
            div.scroll { table.list {
                thead { tr {
                    th scope="col" { "host" } th scope="col" { "state" } th scope="col" { "machine" }
                    th scope="col" { "kernel" } th scope="col" { "runs" } th scope="col" { "newest run" }
                } }
                tbody { @for (host, runs) in &hosts { tr {
                    th scope="row" { (host_link(host, lab, links)) }
                    td { (busy(runs, lab)) }
                    td { (class(host)) }
                    td data-name="kernel" { (host.kernel.as_deref().unwrap_or("not known")) }
                    td { (words::plural(count(runs.len()), "run")) }
                    td {
                        @if let Some(run) = runs.first() {
                            (run_link(run, links)) " " small { (moment(run.started_unix_ms)) }
                        }
                    }
                } } }
            } }
        }
    }
}

fn busy(runs: &[&Entry], lab: &Lab) -> &'static str {
    match runs
        .iter()
        .any(|run| lab.measured.as_ref() == Some(&run.name))
    {
        true => "measures now",
        false => "idle",
    }
}

/// `AMD EPYC, 2 cores, 8 GiB, virtual`.
fn class(host: &Host) -> String {
    let class = &host.class;
    let mut parts = vec![
        class
            .cpu_model
            .clone()
            .unwrap_or_else(|| "processor not known".to_owned()),
        words::plural(class.cores, "core"),
    ];
    parts.extend(class.memory_gib.map(|gib| format!("{gib} GiB")));
    parts.extend(
        class
            .virtual_machine
            .map(|is| if is { "virtual" } else { "physical" }.to_owned()),
    );
    parts.join(", ")
}

/// A host's page; `None` for one that no run knows.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &Lab, key: &str, links: &Links) -> Result<Option<Page>, Problem> {
    let hosts = all(lab);
    let Some((host, runs)) = hosts.into_iter().find(|(host, _)| host.key == key) else {
        return Ok(None);
    };
    let names: BTreeSet<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let lines = lab.store.placebo_results().map_err(store_problem)?;
    let here = lines
        .iter()
        .filter(|line| names.contains(line.run.as_str()));
    let placebos = Placebos::count(here, None);
    let name = host_name(host, lab);
    let body = html! {
        h1 { (name) }
        p.muted { (class(host)) ", " (words::plural(count(runs.len()), "run")) }
        section { h2 { "Facts over time" } (facts(&runs, links)) }
        section #ledger { h2 { "False alarms on this host" } (ledger(&placebos, &lines)) }
        section {
            h2 { "Runs" }
            (runs::table(runs.get(..RUNS.min(runs.len())).unwrap_or_default(), lab, links))
            @if runs.len() > RUNS { p.muted { "The newest " (RUNS) " of " (runs.len()) "." } }
        }
    };
    let frame = Frame {
        title: &name,
        links,
        body,
        script: None,
    };
    Ok(Some(
        Page::html(framed(&frame)).that_waits(lab.measured.is_some()),
    ))
}

/// What the host was, from when on; newest first.
fn facts(runs: &[&Entry], links: &Links) -> Markup {
    let mut periods: Vec<(&Host, &Entry, u64)> = Vec::new();
    for run in runs.iter().rev() {
        let Some(host) = &run.host else { continue };
        match periods.last_mut().filter(|(known, ..)| same(known, host)) {
            Some((_, _, runs)) => *runs += 1,
            None => periods.push((host, run, 1)),
        }
    }
    html! {
        div.scroll { table.list {
            thead { tr {
                th scope="col" { "from" } th scope="col" { "kernel" } th scope="col" { "microcode" }
                th scope="col" { "machine" } th scope="col" { "runs" } th scope="col" { "first run" }
            } }
            tbody { @for (host, first, runs) in periods.iter().rev() { tr {
                td { (moment(first.started_unix_ms)) }
                td data-name="kernel" { (host.kernel.as_deref().unwrap_or("not known")) }
                td data-name="microcode" { (host.microcode.as_deref().unwrap_or("not known")) }
                td { (class(host)) }
                td { (words::plural(*runs, "run")) }
                td { (run_link(first, links)) }
            } } }
        } }
        p.muted {
            "With another kernel, microcode or class, what is known of other hours starts again."
        }
    }
}

fn same(one: &Host, other: &Host) -> bool {
    let facts = |host: &Host| {
        (
            host.class.clone(),
            host.kernel.clone(),
            host.microcode.clone(),
        )
    };
    facts(one) == facts(other)
}

fn ledger(placebos: &Placebos<'_>, lines: &[LedgerLine]) -> Markup {
    let rows = placebos.rows.iter().filter(|row| row.total > 0);
    html! {
        @if placebos.rows.last().is_none_or(|row| row.total == 0) {
            p {
                "No placebo was judged here yet."
                @if lines.is_empty() { " The lab's ledger is empty." }
            }
        } @else {
            p {
                "A placebo is a second copy of the base. Each time it is called different is a false alarm."
            }
            div.scroll { table.list {
                thead { tr {
                    th scope="col" { "workload" } th scope="col" { "called different" }
                    th scope="col" { "judged" } th scope="col" { "rate is at most (95 %)" }
                } }
                tbody { @for row in rows { tr {
                    th scope="row" { (row.workload.as_deref().unwrap_or("all")) }
                    td data-name="called different" { (row.flagged()) }
                    td data-name="judged" { (row.total) }
                    td data-name="at most" { (words::share(row.upper95)) }
                } } }
            } }
        }
    }
}
