//! The page of a replay: one file without a script, with both plans side by side.

use super::findings::{Finding, Section, verdicts};
use super::parting::Parting;
use super::{
    changed_for, data, head, left_out, made_up, mix, not_compared, server_name, times, why,
};
use crate::html::{Document, document};
use deltabench_model::replayed::{
    ErrorVerdict, PlanLine, PlanVerdict, ReplayVerdict, Replayed, ReplayedStatement, ResultVerdict,
};
use maud::{Markup, html};

const STYLE: &str = include_str!("page.css");

/// A replay as one self-contained HTML file.
pub fn replayed_page(replayed: &Replayed) -> String {
    document(&Document {
        title: &head(replayed, 1),
        style: STYLE,
        body: html! {
            @for place in 1..replayed.servers.len() { (candidate(replayed, place)) }
            (conditions(replayed))
        },
        script: None,
    })
}

fn candidate(replayed: &Replayed, place: usize) -> Markup {
    html! {
        h1 { (head(replayed, place)) }
        @if let Some(text) = not_compared(replayed, place) { p.lead.worse { (text) } }
        @if let Some(text) = data::sentence(replayed, place) { p.lead { (text) } }
        @if let Some(text) = times::head(replayed, place) { p.lead { (text) } }
        @if let Some(text) = mix::sentence(replayed, place) { p.lead { (text) } }
        (server_time(replayed, place))
        @for section in Section::ALL {
            @let findings = section.findings(replayed, place);
            @if !findings.is_empty() {
                h2 { (section.title()) }
                @for finding in findings { (card(replayed, section, finding)) }
            }
        }
        (all(replayed, place))
    }
}

/// The times of all statements that matter.
fn server_time(replayed: &Replayed, place: usize) -> Markup {
    let rows = times::rows(replayed, place);
    html! {
        @if !rows.is_empty() {
            h2 { "Server time" }
            div.replayed-wide {
                table.replayed-all {
                    thead { tr { th {} @for name in times::columns(replayed) { th { (name) } } } }
                    @for row in &rows { (timed(row)) }
                }
            }
            p { small { (times::LEGEND) } }
        }
    }
}

/// A row of the times, with what is said below it over the whole width.
fn timed(row: &times::Row) -> Markup {
    html! {
        tbody {
            tr {
                td { (row.sign) }
                td title=(row.text) { (row.name) }
                td { (row.share) }
                td { (row.ratio) }
                td { (row.milliseconds) }
                td { (row.plan) }
                td { (row.workload) }
            }
            @for text in &row.below { tr.below { td {} td colspan="6" { small { (text) } } } }
        }
    }
}

/// A statement or an object of the dump with what is said of it.
fn card(replayed: &Replayed, section: Section, finding: Finding<'_>) -> Markup {
    html! {
        section.replayed {
            @match finding {
                Finding::Object(object) => {
                    h3 { (object.what) " " small { "line " (object.line) " of the dump" } }
                    p.worse { (object.sqlstate) " " (object.message) }
                }
                Finding::Statement(statement, verdict) => {
                    h3 {
                        (statement.name.as_deref().unwrap_or(&statement.id)) " "
                        small { (share(statement)) }
                    }
                    pre { (statement.text) }
                    @if let Some(text) = made_up::words(statement) { p { small { (text) } } }
                    @if section == Section::Plan {
                        (plans(replayed, statement, verdict))
                    } @else {
                        @for text in section.texts(replayed, statement, verdict) {
                            p.worse[section.is_failure()] { (text) }
                        }
                    }
                }
            }
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
            div.both-plans {
                div { h4 { (server_name(replayed, 0)) } (plan(parting.from, &from_alone)) }
                div { h4 { (server_name(replayed, verdict.server)) } (plan(parting.to, &to_alone)) }
            }
        }
        @for text in why::texts(verdict) { p { (text) } }
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
fn all(replayed: &Replayed, place: usize) -> Markup {
    let verdicts: Vec<_> = verdicts(replayed, place).collect();
    html! {
        h2 { "All statements" }
        div.replayed-wide { table.replayed-all {
            thead { tr {
                th { "statement" } th { (times::share_name(replayed.covered.weighted_by)) }
                th { "errors" } th { "plans" } th { "result" } th { "rows" }
            } }
            tbody {
                @for (statement, verdict) in &verdicts {
                    tr {
                        td title=(statement.text) {
                            (label(statement)) (made_up::mark(statement))
                        }
                        td { (share(statement)) }
                        td { (errors_word(verdict.errors)) }
                        td { (plans_word(verdict.plans)) }
                        td title=(verdict.causes.join("; ")) { (results_word(verdict.results)) }
                        td { (rows(statement, 0)) " → " (rows(statement, place)) }
                    }
                }
            }
        } }
        @if verdicts.is_empty() { p { "No statement of " (replayed.capture.path) " was replayed." } }
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
        ul.findings.replayed-notes {
            @for text in left_out(replayed) { li { (text) } }
            @for (place, server) in replayed.servers.iter().enumerate() {
                li { (if place == 0 { "base" } else { "candidate" }) ": " (server_name(replayed, place))
                     @if let Some(hash) = &server.binary_sha256 { ", SHA-256 " (hash) } }
            }
            li { "statements: " (replayed.capture.path)
                 @if let Some(hash) = &replayed.capture.sha256 { ", SHA-256 " (hash) } }
            @if let Some(data) = &replayed.data { li { (data::provenance(data)) } }
        }
    }
}
