//! The first page: what changed, what is measured, which hosts, what is newest.

use crate::entry::Entry;
use crate::frame::{Frame, cell_link, framed, moment, pair, run_link, verdict, waits};
use crate::lab::{Found, Lab};
use crate::outcome::Outcome;
use crate::route::{Links, Route};
use crate::written::Page;
use deltabench_compare::comparison::Verdict;
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_report::words;
use maud::{Markup, html};

/// Newest runs of which changes are shown.
pub(crate) const RECENT: usize = 20;
/// Changes that the first page shows.
const CHANGES: usize = 25;
/// Rows of its other lists.
const ROWS: usize = 10;

/// A change that a run found.
pub(crate) struct Change {
    pub(crate) entry: Entry,
    pub(crate) outcome: Outcome,
}

/// The regressions and improvements of the newest runs that stand alone, worst first, and of how many runs
/// they are not known yet.
///
/// Errors: the store cannot be read.
pub(crate) fn changes(lab: &mut Lab) -> Result<(Vec<Change>, usize), Problem> {
    let newest: Vec<Entry> = { lab.entries.iter().rev() }
        .filter(|entry| entry.stands_alone() && entry.candidates().next().is_some())
        .take(RECENT)
        .cloned()
        .collect();
    let (known, missing) = lab.outcomes_of(newest.iter())?;
    let changed = |(entry, found): (&Entry, Found)| -> Vec<Change> {
        { found.iter() }
            .filter(|outcome| outcome.verdict().is_change() && !outcome.withdrawn)
            .map(|outcome| Change {
                entry: entry.clone(),
                outcome: outcome.clone(),
            })
            .collect()
    };
    let mut changes: Vec<Change> = known.into_iter().flat_map(changed).collect();
    let rank = |change: &Change| {
        let is_better = change.outcome.verdict() == Verdict::Improvement;
        (is_better, -change.outcome.at_least())
    };
    changes.sort_by(|one, other| {
        rank(one)
            .partial_cmp(&rank(other))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok((changes, missing))
}

/// The page.
///
/// Errors: the store cannot be read.
pub(crate) fn page(lab: &mut Lab, links: &Links) -> Result<Page, Problem> {
    let (found, missing) = changes(lab)?;
    let lab = &*lab;
    let runs = count(lab.entries.len());
    let body = html! {
        h1 { (sentence(&found, lab)) }
        p.muted { (words::plural(runs, "run")) " in this lab" }
        (measured(lab, links))
        section #changes {
            h2 { "What changed" }
            (waits(lab, missing))
            @if missing == 0 || !found.is_empty() {
                (change_table(found.get(..CHANGES.min(found.len())).unwrap_or_default(), links))
            }
            @if found.len() > CHANGES {
                p.muted { (found.len() - CHANGES) " smaller ones are in the reports of their runs." }
            }
            p {
                "What several runs show together: "
                a href=(links.to(&Route::Changes)) { "changes between versions" } ", "
                a href=(links.to(&Route::Trends)) { "trends" } ", "
                a href=(links.to(&Route::Compare)) { "compare two versions" }
            }
        }
        section #hosts { h2 { "Hosts" } (crate::hosts::table(lab, links)) }
        section #newest {
            h2 { "Newest runs" }
            @let newest: Vec<&Entry> = lab.entries.iter().rev()
                .filter(|entry| entry.belongs.is_none()).take(ROWS).collect();
            (crate::runs::table(&newest, lab, links))
            @if lab.entries.len() > ROWS { p { a href=(links.to(&Route::Runs)) { "all runs" } } }
        }
        (crate::executions::newest(lab, links, ROWS))
    };
    let frame = Frame {
        title: "Lab",
        links,
        body,
        script: None,
    };
    Ok(Page::html(framed(&frame)).that_waits(missing > 0 || lab.measured.is_some()))
}

fn sentence(found: &[Change], lab: &Lab) -> String {
    if lab.entries.is_empty() {
        return "This lab has no runs yet".to_owned();
    }
    let number = |wanted| {
        let of = found
            .iter()
            .filter(|change| change.outcome.verdict() == wanted);
        count(of.count())
    };
    let (worse, better) = (number(Verdict::Regression), number(Verdict::Improvement));
    match (worse, better) {
        (0, 0) => {
            "The newest runs list no regression and no improvement; what has no answer is in \
                   their reports"
                .to_owned()
        }
        _ => format!(
            "The newest runs found {} and {}",
            words::plural(worse, "regression"),
            words::plural(better, "improvement")
        ),
    }
}

fn measured(lab: &Lab, links: &Links) -> Markup {
    let Some(name) = &lab.measured else {
        return html! {};
    };
    html! {
        div.about role="status" {
            p {
                b { "Measured now: " }
                @match lab.entry(name) {
                    Some(entry) => {
                        a href=(links.to(&Route::Live(entry.name.clone()))) { (entry.name) }
                        ", " (entry.sides()) ", " (entry.blocks_done) " of " (entry.blocks_planned)
                        " blocks"
                    },
                    None => { (name) },
                }
            }
        }
    }
}

/// A row for each change.
pub(crate) fn change_table(changes: &[Change], links: &Links) -> Markup {
    if changes.is_empty() {
        return html! {
            p { "Nothing in any of the newest runs by itself." }
        };
    }
    html! {
        div.scroll {
            table.list {
                thead { tr {
                    th scope="col" { "cell" } th scope="col" { "verdict" }
                    th scope="col" { "candidate, relative to base" }
                    th scope="col" { "throughput, this hour" } th scope="col" { "other hours" }
                    th scope="col" { "run" }
                } }
                tbody { @for change in changes { (row(change, links)) } }
            }
        }
    }
}

fn row(change: &Change, links: &Links) -> Markup {
    let Change { entry, outcome } = change;
    html! {
        tr {
            th scope="row" { (cell_link(entry, outcome.cell, links)) }
            td { (verdict(outcome)) }
            td.sides { (pair(entry, outcome, links)) }
            td.figures data-name="this hour" { (outcome.change) }
            td.figures data-name="other hours" {
                @match &outcome.another { Some(note) => (note), None => "not known" }
            }
            td { (run_link(entry, links)) " " small { (moment(entry.started_unix_ms)) } }
        }
    }
}
