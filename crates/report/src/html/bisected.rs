//! The page of a bisection: the staircase of its looks, the culprits, every look, what was not searched.
//!
//! It needs no script: each mark of the staircase is a link to its look.

mod staircase;

use super::{Document, document, typeset};
use crate::bisected::{
    Bisected, BisectedLook, Culprit, TimeChange, beside, head, left_out, percent, searched, words,
};
use maud::{Markup, html};

const STYLE: &str = include_str!("bisected.css");

/// A bisection as one self-contained HTML file.
pub fn bisected(bisected: &Bisected) -> String {
    let title = format!(
        "{}, {} to {}",
        bisected.workload, bisected.base.name, bisected.candidate.name
    );
    document(&Document {
        title: &title,
        style: STYLE,
        body: sections(bisected),
        script: None,
    })
}

fn sections(bisected: &Bisected) -> Markup {
    html! {
        h1 { (typeset(&head(bisected))) }
        p.muted { "bisection " (bisected.name) "; " (searched(bisected)) }
        @if let Some(alone) = &bisected.base_alone {
            p.unusual {
                "The base is on another branch. The search begins at " (bisected.base.name) ", the newest "
                "commit that both have; " (alone.commits) " commits of the base alone were not searched."
            }
        }
        (staircase::section(bisected))
        (culprits(bisected))
        section #left {
            h2 { "What was not searched, and what this is not" }
            ul.findings { @for text in left_out(bisected) { li { (typeset(&text)) } } }
        }
        (looks(bisected))
    }
}

fn culprits(bisected: &Bisected) -> Markup {
    html! {
        @if !bisected.culprits.is_empty() {
            section #culprits {
                h2 { "Culprits, the largest first" }
                @for (place, one) in bisected.culprits.iter().enumerate() {
                    (culprit(place + 1, one, bisected))
                }
            }
        }
    }
}

fn culprit(number: usize, culprit: &Culprit, bisected: &Bisected) -> Markup {
    let change = typeset(&percent(culprit.change));
    let counted = culprit.instructions.map(|(before, after)| {
        typeset(&format!(
            "{before:.0} → {after:.0} instructions per operation"
        ))
    });
    html! {
        article.culprit id={ "culprit-" (number) } {
            h3 {
                (number) ". " b class=(class(culprit.change)) { (change) } " "
                @match culprit.one_of.as_slice() {
                    [one] => (words(&one.point)),
                    several => {
                        "one of these " (several.len()) ", of which only the last could be measured"
                    }
                }
            }
            @if culprit.one_of.len() > 1 {
                ul { @for suspect in &culprit.one_of {
                    li {
                        (words(&suspect.point))
                        @if let Some(why) = &suspect.skipped { " (" (why) ")" }
                    }
                } }
            }
            p.muted {
                @if let Some(counted) = counted { (counted) ", " }
                "compared with " (words(&culprit.parent))
            }
            ul { @for text in beside(culprit, bisected) { li { (typeset(&text)) } } }
        }
    }
}

/// More cost is worse.
fn class(change: f64) -> &'static str {
    if change > 0.0 { "worse" } else { "better" }
}

fn looks(bisected: &Bisected) -> Markup {
    html! {
        section #looks {
            h2 { "Every look" }
            div.scroll tabindex="0" role="region" aria-label="looks in order of time" {
                table.looks {
                    thead { tr {
                        th scope="col" { "point" }
                        th scope="col" { "committed" }
                        th scope="col" { "subject" }
                        th.figure scope="col" {
                            (bisected.by.noun()) br; small { "compared with the base" }
                        }
                        th scope="col" { "how" }
                        th scope="col" { "run" }
                    } }
                    tbody { @for one in &bisected.looks { (look(one)) } }
                }
            }
        }
    }
}

fn look(look: &BisectedLook) -> Markup {
    let words = |change| match look.ci95 {
        Some(_) => TimeChange {
            change,
            ci95: look.ci95,
        }
        .words(),
        None => percent(change),
    };
    let change = look.change.map(|change| typeset(&words(change)));
    html! {
        tr id=(anchor(look)) {
            th scope="row" { (look.point.name) }
            td { (look.point.date.as_deref().unwrap_or_default()) }
            td.subject { (look.point.subject.as_deref().unwrap_or_default()) }
            td.figure { (change.unwrap_or_default()) }
            td { (how(look)) }
            td { (look.run.as_deref().unwrap_or_default()) }
        }
    }
}

/// Where a look stands in the table.
fn anchor(look: &BisectedLook) -> String {
    format!("look-{}", look.number)
}

/// `built in 44 s, counted in 27 s`.
fn how(look: &BisectedLook) -> String {
    let built = match look.built {
        true => format!("built in {:.0} s, ", look.acquire_seconds),
        false => String::new(),
    };
    match look.outcome {
        "counted" => format!("{built}counted in {:.0} s", look.count_seconds),
        "timed" => format!("{built}measured in time"),
        "same" => format!("{built}the same server as another point"),
        _ => look.skipped.clone().unwrap_or_else(|| "skipped".to_owned()),
    }
}
