//! The page: one file that needs nothing else.
//!
//! No script, no font, no network: a policy in the page forbids them all. Plots are SVG made here. The words
//! beside them are HTML, so that they keep their size on a phone; colour never is the only sign.

mod cards;
mod forest;
mod mark;
mod numbers;
mod provenance;
mod strips;
mod warm_up;

use crate::conditions::Conditions;
use crate::context::ReportContext;
use crate::remarks::{remarks, totals, troubles};
use crate::standing::marks;
use crate::summary::{summary, unchanged_delta};
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Verdict};
use deltabench_model::finding::Severity;
use deltabench_model::plan::Plan;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = include_str!("html/style.css");

/// The report as one self-contained HTML file.
#[must_use]
pub fn html(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let summary = summary(comparison, plan);
    let title = summary.split(": ").next().unwrap_or_default().to_owned();
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) " - deltabench" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    @for sentence in summary.lines() { h1 { (typeset(sentence)) } }
                    (byline(context, plan))
                    (counts(comparison))
                    (forest::section(comparison, plan))
                    (ground(comparison, plan, context))
                    (findings(comparison))
                    (numbers::section(comparison, plan))
                    (cards::section(comparison, plan, context))
                    (provenance::section(plan, context))
                }
            }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

fn byline(context: &ReportContext, plan: &Plan) -> Markup {
    let blocks = words::plural(u64::from(plan.timing.blocks), "restart block");
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
    lines.extend(totals(comparison, plan, context));
    lines.extend(troubles(comparison, plan));
    markup! {
        section {
            h2 { "What the verdicts rest on" }
            ul.findings { @for line in &lines { li { (typeset(line)) } } }
        }
    }
}

fn counts(comparison: &Comparison) -> Markup {
    let counts = comparison.counts;
    let cells: Vec<&CellComparison> = comparison.cells.iter().collect();
    let delta = unchanged_delta(&cells, comparison.delta);
    let chips = [
        (Verdict::Regression, counts.regression),
        (Verdict::Improvement, counts.improvement),
        (Verdict::NoChange, counts.no_change),
        (Verdict::Inconclusive, counts.inconclusive),
        (Verdict::Unfit, counts.unfit),
    ];
    markup! {
        ul.chips {
            @for (verdict, count) in chips {
                @if count > 0 || verdict != Verdict::Unfit {
                    li class=(class(verdict)) {
                        span aria-hidden="true" { (words::sign(verdict)) " " }
                        (count) " " (words::verdict(verdict))
                        @if verdict == Verdict::NoChange { " beyond " (delta) }
                    }
                }
            }
        }
    }
}

fn findings(comparison: &Comparison) -> Markup {
    let of = |severity: Severity| {
        comparison
            .findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    };
    markup! {
        section {
            h2 { "Fairness: what else differs" }
            @if comparison.findings.is_empty() {
                p { "Nothing was found that differs between the sides besides what was asked to differ." }
            } @else {
                ul.findings {
                    @for severity in [Severity::Unfit, Severity::Confounder, Severity::Note] {
                        @for finding in of(severity) {
                            @let word = words::severity(severity);
                            li { b class=(word) { (word) } " " (finding.text) }
                        }
                    }
                }
            }
        }
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
    markup! { (conditions.label(cell)) " " small { (words::plural(u64::from(cell.clients), "client")) } }
}

/// A share of a length as CSS and SVG take it.
fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// A text whose negative numbers have a real minus sign and whose percent signs stay with their number;
/// hyphens in names stay.
fn typeset(text: &str) -> String {
    let mut set = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let minus =
            c == '-' && " [(".contains(before) && rest.peek().is_some_and(char::is_ascii_digit);
        let glued = c == ' ' && rest.peek() == Some(&'%');
        set.push(match c {
            _ if minus => '−',
            _ if glued => '\u{a0}',
            c => c,
        });
        before = c;
    }
    set
}

/// The reason without the verdict's word, which stands beside it.
fn reason(cell: &CellComparison) -> String {
    let text = cell
        .reason
        .strip_prefix(words::verdict(cell.verdict))
        .unwrap_or(&cell.reason);
    typeset(text.trim_start_matches([':', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_negative_numbers_get_a_minus_sign_and_percent_signs_are_not_parted() {
        assert_eq!(
            typeset("range-16 -3.4 % [-4.1, -2.7]"),
            "range-16 −3.4\u{a0}% [−4.1, −2.7]"
        );
    }
}
