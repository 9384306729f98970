//! The page: one file that needs nothing else, or a page of a site, which shares the script with others.
//!
//! No font, no network, and one script: a policy forbids all that come from elsewhere. Sentence, table,
//! forest plot, strips and provenance are made here and need no script; the script (`web/`) draws from the
//! page's data what has to be zoomed, sorted or filtered. Words are HTML, so that they keep their size on a
//! phone; colour never is the only sign.

mod absolute;
mod bisected;
mod cards;
mod charts;
mod data;
mod explained;
mod forest;
mod grids;
mod lead;
mod mark;
mod numbers;
mod provenance;
mod steps;
mod strips;
mod study;
mod warm_up;

pub use bisected::bisected as bisected_html;
pub(crate) use study::study;

use crate::conditions::Conditions;
use crate::confirmation::marks;
use crate::context::ReportContext;
use crate::remarks::{remarks, totals, troubles};
use crate::summary::summary;
use crate::typesetting::{percent, typeset};
use crate::{counts, figures, placed, sampled, table, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Verdict};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::Plan;
use deltabench_model::table::Table;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

const STYLE: &str = include_str!("html/style.css");
/// For tables of steps.
const STEPS_STYLE: &str = include_str!("html/steps.css");
/// Bundled from `web/` by `cargo xtask web`.
const SCRIPT: &str = include_str!("../web/dist/report.js");
/// Its SHA-256 in base64: the only script that the page allows.
const SCRIPT_HASH: &str = include_str!("../web/dist/report.sha256");

/// The style that all pages have in common.
pub fn style() -> &'static str {
    STYLE
}

/// The script of a report, for sites that have it once, and its SHA-256.
pub fn script() -> (&'static str, &'static str) {
    (SCRIPT, SCRIPT_HASH)
}

/// The report as one self-contained HTML file.
pub fn html(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    page(comparison, plan, context, Script::Within)
}

/// The report as a page of a site that has the script at an address of its own.
pub fn html_with_script_at(
    address: &str,
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> String {
    page(comparison, plan, context, Script::At(address))
}

fn page(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    script: Script<'_>,
) -> String {
    let summary = summary(comparison, plan);
    let title = summary.split(": ").next().unwrap_or_default().to_owned();
    let data = data::text(
        comparison,
        plan,
        context,
        strips::dots(comparison.cells.len()),
    );
    document(&Document {
        title: &title,
        style: if context
            .figures
            .page
            .iter()
            .any(|section| section.name.is_some())
        {
            STEPS_STYLE
        } else {
            ""
        },
        body: sections(&summary, comparison, plan, context),
        script: Some(("data", &data, script)),
    })
}

/// Where the script of a page is.
pub(crate) enum Script<'a> {
    Within,
    At(&'a str),
}

/// What makes a page of one kind.
pub(crate) struct Document<'a> {
    pub(crate) title: &'a str,
    /// Style that only this kind needs.
    pub(crate) style: &'a str,
    pub(crate) body: Markup,
    /// For the script: the name of the element with the data, by which it knows the kind, JSON that is
    /// ready to stand inside a script element, and where the script is. Absent for a page that needs none.
    pub(crate) script: Option<(&'a str, &'a str, Script<'a>)>,
}

/// A page with its style, its data and the script, under a policy that forbids all else.
pub(crate) fn document(document: &Document<'_>) -> String {
    let script = document.script.as_ref().map(|(.., script)| script);
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy(script));
                meta name="color-scheme" content="light dark";
                title { (document.title) " - deltabench" }
                style { (PreEscaped(STYLE)) (PreEscaped(document.style)) }
            }
            body {
                main { (document.body) }
                @if let Some((name, data, script)) = &document.script {
                    script id=(name) type="application/json" { (PreEscaped(data)) }
                    @match script {
                        Script::Within => script { (PreEscaped(SCRIPT)) },
                        Script::At(address) => script src=(address) {},
                    }
                }
            }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

/// A value as JSON that nothing in it can end the element of or open a comment in.
fn embedded(value: &impl serde::Serialize) -> String {
    // Strings, numbers and lists alone: they always have a form in JSON.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    text.replace('<', "\\u003c")
}

/// Nothing from outside; our script alone, on a page that has it; images only for saving its charts. A page
/// of a site takes scripts from where the site is, which may be a folder: browsers check no hash of a
/// script that is a file.
fn policy(script: Option<&Script<'_>>) -> String {
    let script = script.map_or_else(String::new, |script| {
        let from = match script {
            Script::Within => format!("'sha256-{}'", SCRIPT_HASH.trim()),
            Script::At(_) => "'self' file:".to_owned(),
        };
        format!("script-src {from}; img-src data: blob:; ")
    });
    format!(
        "default-src 'none'; {script}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
}

fn sections(
    summary: &str,
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Markup {
    let counted = counts::tables(comparison, plan);
    if comparison.counted_alone().is_some() {
        return markup! {
            (lead::banner(plan, context))
            @for sentence in summary.lines() { h1 { (typeset(sentence)) } }
            (byline(context, plan))
            (counted_section(&counted))
            (explained::section(plan, context))
            (findings(comparison))
            (provenance::section(plan, context))
        };
    }
    markup! {
        (lead::banner(plan, context))
        @let several = summary.lines().count() > 2;
        @for sentence in summary.lines() { h1 class=[several.then_some("several")] { (typeset(sentence)) } }
        (byline(context, plan))
        (lead::counts(comparison))
        (lead::changes(comparison, plan, context))
        (lead::way(plan, context))
        (figures::page(&context.figures, false))
        (forest::section(comparison, plan, context))
        (numbers::section(comparison, plan, context))
        (explained::section(plan, context))
        (sampled_section(plan, context))
        @if !counted.is_empty() { (counted_section(&counted)) }
        (ground(comparison, plan, context))
        (findings(comparison))
        (grids::section(&context.grids))
        (figures::page(&context.figures, true))
        (absolute::section(plan, context))
        (charts::published(comparison, plan))
        (cards::section(comparison, plan, context))
        (charts::host(context))
        (provenance::section(plan, context))
    }
}

/// Where the servers' time went, in cells of which it was sampled; nothing without one.
fn sampled_section(plan: &Plan, context: &ReportContext) -> Markup {
    markup! {
        @if !context.sampled.is_empty() {
            section #sampled {
                h2 { "Time by function" }
                @for cell in &context.sampled {
                    p { (typeset(&sampled::head(cell, plan))) }
                    (table::page::table(&sampled::table(cell)))
                    p.muted { (typeset(&sampled::foot(cell))) }
                    @for note in sampled::notes(cell) { p.muted { (typeset(&note)) } }
                }
            }
        }
    }
}

/// What was counted, a table for each candidate.
fn counted_section(tables: &[Table]) -> Markup {
    markup! {
        section #instructions {
            h2 { "Instructions of an operation" }
            @for table in tables { (table::page::table(table)) }
        }
    }
}

fn byline(context: &ReportContext, plan: &Plan) -> Markup {
    let blocks = words::plural(u64::from(plan.blocks()), "restart block");
    markup! {
        p.muted {
            "run " (context.run)
            @if !context.state.is_empty() { ", " (context.state) }
            @if let Some(start) = context.started_unix_ms { ", started " (words::date(start)) }
            ", " (blocks) " planned, deltabench " (context.deltabench_version)
        }
        @let unusual = Conditions::new(plan).unusual();
        @if !unusual.is_empty() { p.unusual { b { "conditions: " } (typeset(&unusual.join("; "))) } }
    }
}

/// What the verdicts rest on: placebo, error rates, other load, what restarts cannot average.
fn ground(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Markup {
    let mut lines = remarks(comparison, plan, context);
    // The page has it beside each grid.
    let placed = placed::over_clients(context);
    lines.retain(|line| !placed.contains(line));
    lines.extend(totals(comparison, plan, context));
    lines.extend(troubles(comparison, plan, context));
    markup! {
        section {
            h2 { "What the verdicts rest on" }
            ul.findings { @for line in &lines { li { (typeset(line)) } } }
        }
    }
}

/// What no measurement can repair first, then what changes how the work is done, then the rest as found.
fn findings(comparison: &Comparison) -> Markup {
    let rank = |finding: &&Finding| match (finding.severity, &finding.kind) {
        (Severity::Unfit, _) => 0,
        (_, FindingKind::PlanDiffers) => 1,
        (_, FindingKind::DefaultsDiffer) => 2,
        (Severity::Confounder, _) => 3,
        (Severity::Note, _) => 4,
    };
    let mut all: Vec<&Finding> = comparison.findings.iter().collect();
    // Stable: within a rank the order is that of the comparison.
    all.sort_by_key(rank);
    markup! {
        section #findings {
            h2 { "Fairness: what else differs" }
            @if all.is_empty() {
                p { "No difference between the sides was found, other than those that you asked for." }
            } @else {
                ul.findings {
                    @for finding in all {
                        @let word = words::severity(finding.severity);
                        li { b class=(word) { (word) } " " (typeset(&finding.text)) }
                    }
                }
            }
        }
    }
}

/// Where a cell's card is in the page.
fn anchor(cell: &CellComparison) -> String {
    format!("cell-{}-{}", cell.cell, cell.candidate)
}

/// Name and clients of a cell, leading to its card.
fn link(cell: &CellComparison, conditions: &Conditions<'_>) -> Markup {
    markup! { a href={ "#" (anchor(cell)) } { (cell_name(cell, conditions)) } }
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

/// The verdict's sign and word, with the cell's marks.
fn verdict(cell: &CellComparison) -> Markup {
    markup! {
        b class=(class(cell.verdict)) {
            span aria-hidden="true" { (words::sign(cell.verdict)) (marks(cell)) " " }
            (words::verdict(cell.verdict))
        }
    }
}

/// Name and clients of a cell.
fn cell_name(cell: &CellComparison, conditions: &Conditions<'_>) -> Markup {
    markup! { (conditions.label(cell)) " " small { (words::workers(conditions.plan(), cell.clients)) } }
}

/// The reason without the verdict's word, which stands beside it.
fn reason(cell: &CellComparison) -> String {
    let text = cell
        .reason
        .strip_prefix(words::verdict(cell.verdict))
        .unwrap_or(&cell.reason);
    typeset(text.trim_start_matches([':', ' ']))
}
