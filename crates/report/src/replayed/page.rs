//! The page of a replay: one file without a script, with both plans side by side.

use super::parting::Parting;
use super::{
    Found, changed_for, error_texts, head, is_unstable, left_out, load_failures, new_load_failures,
    result_texts, server_name,
};
use deltabench_model::replayed::{
    ErrorVerdict, PlanLine, PlanVerdict, ReplayVerdict, Replayed, ReplayedLoadFailure,
    ReplayedStatement, ResultVerdict,
};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("../html/style.css");
/// What only this page has.
const OWN_STYLE: &str = include_str!("page.css");
/// Nothing from outside, and no script.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A replay as one self-contained HTML file.
pub fn replayed_page(replayed: &Replayed) -> String {
    let title = head(replayed, 1);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) " - deltabench" }
                style { (PreEscaped(STYLE)) (PreEscaped(OWN_STYLE)) }
            }
            body { main {
                @for place in 1..replayed.servers.len() { (candidate(replayed, place)) }
                (conditions(replayed))
            } }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

fn candidate(replayed: &Replayed, place: usize) -> Markup {
    let found = Found::of(replayed, place);
    let of = |wanted: fn(&ReplayVerdict) -> bool| -> Vec<(&ReplayedStatement, &ReplayVerdict)> {
        found
            .verdicts
            .iter()
            .copied()
            .filter(|(_, verdict)| wanted(verdict))
            .collect()
    };
    let failing = of(|verdict| verdict.errors == ErrorVerdict::New);
    let objects: Vec<_> = new_load_failures(replayed, place).collect();
    let changed = of(|verdict| verdict.plans == PlanVerdict::Changed);
    let differing = of(ReplayVerdict::results_differ);
    let unstable = of(is_unstable);
    html! {
        h1 { (head(replayed, place)) }
        (failures("Fails on the candidate only", &objects, &failing))
        (failures(
            "Ends in time on the base only",
            &[],
            &of(|verdict| verdict.errors == ErrorVerdict::TooLong),
        ))
        (failures("Other errors", &[], &of(|verdict| verdict.errors == ErrorVerdict::Differs)))
        @if !changed.is_empty() {
            h2 { "Other plans" }
            @for (statement, verdict) in changed { (card(statement, plans(replayed, statement, verdict))) }
        }
        @if !differing.is_empty() {
            h2 { "Other results" }
            @for (statement, verdict) in differing {
                (card(statement, html! { @for text in result_texts(verdict) { p { (text) } } }))
            }
        }
        @if !unstable.is_empty() {
            h2 { "Plans that change with the statistics" }
            @for (statement, verdict) in unstable {
                (card(statement, html! {
                    @for text in super::unstable_texts(replayed, statement, verdict) { p { (text) } }
                }))
            }
        }
        @let moved = of(|verdict| verdict.results == ResultVerdict::Moved);
        @if !moved.is_empty() {
            h2 { "Too few rows to compare" }
            @for (statement, verdict) in moved {
                (card(statement, html! { @for text in result_texts(verdict) { p { (text) } } }))
            }
        }
        (failures(
            "Without an answer",
            &[],
            &of(|verdict| verdict.errors == ErrorVerdict::Unknown),
        ))
        (failures(
            "Fails on both, and is not compared",
            &load_failures(replayed, &[0, place], &[]).collect::<Vec<_>>(),
            &of(|verdict| verdict.errors == ErrorVerdict::Both),
        ))
        (failures(
            "Fails on the base only",
            &load_failures(replayed, &[0], &[place]).collect::<Vec<_>>(),
            &of(|verdict| verdict.errors == ErrorVerdict::Resolved),
        ))
        (all(replayed, place, &found))
    }
}

/// Objects of the dump and statements that servers did not do.
fn failures(
    title: &str,
    objects: &[&ReplayedLoadFailure],
    statements: &[(&ReplayedStatement, &ReplayVerdict)],
) -> Markup {
    html! {
        @if !(objects.is_empty() && statements.is_empty()) {
            h2 { (title) }
            @for object in objects {
                section.replayed {
                    h3 { (object.what) " " small { "line " (object.line) " of the dump" } }
                    p.worse { (object.sqlstate) " " (object.message) }
                }
            }
            @for (statement, verdict) in statements {
                (card(statement, html! {
                    @for text in error_texts(statement, verdict) { p.worse { (text) } }
                }))
            }
        }
    }
}

/// A statement with what is said of it.
fn card(statement: &ReplayedStatement, body: Markup) -> Markup {
    html! {
        section.replayed {
            h3 {
                (statement.name.as_deref().unwrap_or(&statement.id)) " "
                small { (share(statement)) }
            }
            pre { (statement.text) }
            (body)
        }
    }
}

/// Both plans side by side.
fn plans(replayed: &Replayed, statement: &ReplayedStatement, verdict: &ReplayVerdict) -> Markup {
    html! {
        p { (changed_for(statement, verdict)) }
        @for change in &verdict.changes {
            @let parting = Parting::of(replayed, &change.from, &change.to);
            @let (from_alone, to_alone) = parting.alone();
            p { (parting.sentence()) " " small { (change.tuples) " of " (statement.tuples) } }
            div.sides {
                div { h4 { (server_name(replayed, 0)) } (plan(parting.from, &from_alone)) }
                div { h4 { (server_name(replayed, verdict.server)) } (plan(parting.to, &to_alone)) }
            }
        }
    }
}

/// A plan as EXPLAIN prints it; what the other plan lacks is marked.
fn plan(lines: &[PlanLine], alone: &[bool]) -> Markup {
    let indent = |depth: u32| "  ".repeat(usize::try_from(depth).unwrap_or_default());
    html! {
        pre.plan {
            @for (line, alone) in lines.iter().zip(alone) {
                @let arrow = if line.depth > 0 { "-> " } else { "" };
                (indent(line.depth)) (arrow)
                @if *alone { mark { (line.node) } } @else { (line.node) }
                "\n"
                @for detail in &line.details { (indent(line.depth + 2)) (detail) "\n" }
            }
        }
    }
}

/// Every statement in a table.
fn all(replayed: &Replayed, place: usize, found: &Found<'_>) -> Markup {
    html! {
        h2 { "All statements" }
        table.numbers {
            thead { tr {
                th { "statement" } th { "share" } th { "errors" } th { "plans" } th { "result" } th { "rows" }
            } }
            tbody {
                @for (statement, verdict) in &found.verdicts {
                    tr {
                        td title=(statement.text) {
                            (label(statement))
                        }
                        td { (share(statement)) }
                        td { (errors_word(verdict.errors)) }
                        td { (plans_word(verdict.plans)) }
                        td title=(verdict.causes.join("; ")) { (results_word(verdict.results)) }
                        td { (rows(statement, 0)) " → " (rows(statement, place)) }
                    }
                }
            }
        }
        @if found.verdicts.is_empty() { p { "No statement of " (replayed.capture.path) " was replayed." } }
    }
}

/// The name of a statement, or the beginning of its text.
fn label(statement: &ReplayedStatement) -> String {
    let named = statement.name.clone();
    named.unwrap_or_else(|| super::short(&statement.text))
}

fn share(statement: &ReplayedStatement) -> String {
    let share = statement.share;
    share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0))
}

fn rows(statement: &ReplayedStatement, place: usize) -> String {
    let rows = statement.servers.get(place).and_then(|on| on.rows);
    rows.map_or_else(|| "–".to_owned(), |rows| rows.to_string())
}

fn errors_word(verdict: ErrorVerdict) -> &'static str {
    match verdict {
        ErrorVerdict::None => "none",
        ErrorVerdict::New => "new",
        ErrorVerdict::TooLong => "time-out",
        ErrorVerdict::Differs => "another one",
        ErrorVerdict::Unknown => "unknown",
        ErrorVerdict::Both => "on both",
        ErrorVerdict::Resolved => "on the base only",
    }
}

fn plans_word(verdict: PlanVerdict) -> &'static str {
    match verdict {
        PlanVerdict::Same => "same",
        PlanVerdict::Changed => "changed",
        PlanVerdict::UnstableBase => "unstable on the base",
        PlanVerdict::UnstableCandidate => "unstable on the candidate",
        PlanVerdict::Unknown => "unknown",
    }
}

fn results_word(verdict: ResultVerdict) -> &'static str {
    match verdict {
        ResultVerdict::Same => "same",
        ResultVerdict::RowsDiffer => "other rows",
        ResultVerdict::ResultsDiffer => "other values",
        ResultVerdict::OrderDiffers => "other order",
        ResultVerdict::NotRepeatable => "not repeatable",
        ResultVerdict::Moved => "too few rows",
        ResultVerdict::NotExecuted => "not executed",
    }
}

fn conditions(replayed: &Replayed) -> Markup {
    html! {
        h2 { "What was replayed" }
        ul.findings {
            @for text in left_out(replayed) { li { (text) } }
            @for (place, server) in replayed.servers.iter().enumerate() {
                li { (if place == 0 { "base" } else { "candidate" }) ": " (server_name(replayed, place))
                     ", SHA-256 " (server.binary_sha256) }
            }
            li { "statements: " (replayed.capture.path)
                 @if let Some(hash) = &replayed.capture.sha256 { ", SHA-256 " (hash) } }
            li { "data: " (replayed.data.path) ", SHA-256 " (replayed.data.sha256)
                 @if let Some(version) = &replayed.data.dumped_from { ", dumped from " (version) } }
        }
    }
}
