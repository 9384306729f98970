//! Cells of two versions as a table.

use super::{OfHost, runs};
use crate::frame::host_of;
use crate::lab::Lab;
use crate::route::{Links, Route};
use deltabench_compare::comparison::{Ratio, Verdict};
use deltabench_compare::thresholds::{HOURS_ASSUMED, HOURS_ASSUMED_UNSTEADY};
use deltabench_compare::words::p;
use deltabench_lab::{ComparedCell, HostTrend};
use deltabench_model::units::count;
use deltabench_report::words;
use deltabench_trend::{Difference, Way};
use maud::{Markup, html};

/// The verdicts in the order of their numbers, each with what the filter calls it.
const VERDICTS: [Verdict; 4] = [
    Verdict::Regression,
    Verdict::Improvement,
    Verdict::NoChange,
    Verdict::Inconclusive,
];

/// How many cells of each verdict there are, and a filter.
pub(super) fn summary(found: &[OfHost<'_>]) -> Markup {
    let cells: Vec<&ComparedCell> = found.iter().flat_map(|host| &host.cells).collect();
    let number = |verdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
    html! {
        @if cells.is_empty() {
            p role="status" { "No runs of one host connect these two in any cell." }
        } @else {
            p.sentence {
                @for (at, verdict) in VERDICTS.into_iter().enumerate() {
                    @if at > 0 { ", " }
                    b class=(class(verdict)) { (number(verdict)) " " (words::verdict(verdict)) }
                }
            }
            form.controls.filter {
                label { span { "cell" } input type="search" name="q" placeholder="a part of its name"; }
                label { span { "show" } select name="show" {
                    option value="" { "all cells" }
                    option value="told" { "can tell" }
                    option value="differs" { "differs" }
                    @for verdict in VERDICTS {
                        option value=(verdict.word()) { (words::verdict(verdict)) }
                    }
                } }
                span.muted aria-live="polite" { b #count { (cells.len()) } " shown" }
            }
        }
    }
}

/// What the columns are.
pub(super) fn legend(found: &[OfHost<'_>]) -> Markup {
    let mut cells = found.iter().flat_map(|host| &host.cells);
    html! {
        p.muted {
            "The surest difference comes first. Figures have 95 % intervals. “Side by side” and “through” "
            "hold over many hours: they include how much this host differs from hour to hour. A figure of "
            "one run holds for its hour. “No change” is shown to be within ±δ. A difference counts if it "
            "holds among all cells of the table (Benjamini-Hochberg 5 %). “Can tell” hides what is "
            "inconclusive."
        }
        @if cells.any(|cell| cell.pair.assumed) {
            p.muted { "“In part assumed”: " (assumed()) }
        }
    }
}

/// What figures over many hours rest on where a host has measured too little again.
fn assumed() -> String {
    format!(
        "too little was measured again, and hours are taken to differ by about {:.1} % (standard deviation), \
         versions of two branches on a virtual machine by {:.1} %. What the report of a run says of another \
         hour also has a part of large differences, and is wider there.",
        100.0 * HOURS_ASSUMED,
        100.0 * HOURS_ASSUMED_UNSTEADY
    )
}

/// A row for each cell of a machine.
pub(super) fn table(of: &OfHost<'_>, lab: &Lab, links: &Links) -> Markup {
    if of.cells.is_empty() {
        return html! { p { "This host measured both, but no runs connect them in any cell." } };
    }
    html! {
        div.scroll { table.list.compared {
            thead { tr {
                th scope="col" { "cell" } th scope="col" { "verdict" } th scope="col" { "throughput" }
                th scope="col" { "CPU per operation" } th scope="col" { "p among all" }
                th scope="col" { "known from" }
            } }
            tbody { @for cell in &of.cells { (row(cell, of, lab, links)) } }
        } }
    }
}

fn row(cell: &ComparedCell, of: &OfHost<'_>, lab: &Lab, links: &Links) -> Markup {
    let Some(known) = of.host.cells.get(cell.cell) else {
        return html! {};
    };
    let cpu = of.cpu.get(known.key.as_str());
    let route = host_of(lab, of.host).map(|host| Route::trend(&known.key, &host.key));
    html! {
        tr data-text=(lab.secrets.clean(&known.name).to_lowercase()) data-show=(shown(cell.verdict)) {
            th scope="row" {
                @match route {
                    Some(route) => a href=(links.to(&route)) { (known.name) },
                    None => (known.name),
                }
            }
            td { b class=(class(cell.verdict)) {
                span aria-hidden="true" { (words::sign(cell.verdict)) " " } (words::verdict(cell.verdict))
            } " " small.nowrap { "±" (words::share(cell.pair.delta)) } }
            td.figures data-name="throughput" { (figure(&cell.pair.found)) }
            td.figures data-name="CPU per operation" {
                @if let Some(cpu) = cpu { (figure(&cpu.pair.found)) }
            }
            td.nowrap data-name="p among all" { (p(cell.p)) }
            td.known data-name="known from" { (known_from(cell, of.host, lab, links)) }
        }
    }
}

/// Which runs say so, and what they do not agree on.
fn known_from(cell: &ComparedCell, host: &HostTrend, lab: &Lab, links: &Links) -> Markup {
    let pair = &cell.pair;
    let name = |version: &usize| {
        let known = host.versions.get(*version);
        known.map_or("", |version| version.name.as_str())
    };
    html! {
        @match &pair.way {
            Way::InRun => { "this hour: " (runs(host, &pair.runs, lab, links)) },
            Way::Direct => { "side by side: " (runs(host, &pair.runs, lab, links)) },
            Way::Through(versions) => {
                "through "
                (versions.iter().map(name).collect::<Vec<_>>().join(", "))
                " (" (words::plural(count(pair.runs.len()), "run")) ")"
            },
            Way::Shared(version) => { "two runs, through " (name(version)) },
        }
        @if pair.assumed { " " small { "in part assumed" } }
        @if pair.disturbed > 0 {
            " " small { "other load disturbed " (pair.disturbed) " of " (pair.runs.len()) }
        }
        @if let Some(around) = pair.around.as_ref().filter(|_| pair.contradicts) {
            br; b.unfit { "contradiction" } ": runs without both say " (figure(around))
            ". Something else than these versions differs"
        }
    }
}

/// What the filter compares.
fn shown(verdict: Verdict) -> String {
    match verdict {
        Verdict::Regression | Verdict::Improvement => format!("told|differs|{}", verdict.word()),
        Verdict::NoChange => format!("told|{}", verdict.word()),
        _ => verdict.word().to_owned(),
    }
}

/// The class that gives a verdict its colour.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "worse",
        Verdict::Improvement => "better",
        Verdict::NoChange => "same",
        Verdict::Inconclusive => "open",
        Verdict::Unfit => "void",
    }
}

/// `-2.3 % [-3.1, -1.5]`.
fn figure(found: &Difference) -> String {
    words::change_interval(&Ratio {
        estimate: found.value.exp(),
        ci95: Some((found.ci95.0.exp(), found.ci95.1.exp())),
        ci90: None,
    })
}
