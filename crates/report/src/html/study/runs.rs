//! The runs behind a study, and how to make it again.

use crate::study::context::{StudyContext, StudyRunFacts};
use crate::words;
use maud::{Markup, html};

pub(super) fn section(context: &StudyContext) -> Markup {
    html! {
        @if !context.runs.is_empty() {
            section #runs {
                h2 { "The runs" }
                p.legend { "Each run's own page has its cells, its host and how its servers were made." }
                div.scroll tabindex="0" role="region" aria-label="runs" {
                    table.numbers {
                        thead { tr {
                            th scope="col" { "run" } th scope="col" { "part" }
                            th scope="col" { "state" } th scope="col" { "machine" }
                        } }
                        tbody { @for run in &context.runs { (row(run)) } }
                    }
                }
            }
        }
        @if !context.command.is_empty() || context.file.is_some() { (again(context)) }
    }
}

fn row(run: &StudyRunFacts) -> Markup {
    html! {
        tr class=[run.withdrawn.is_some().then_some("withdrawn")] {
            th scope="row" {
                @match &run.page {
                    Some(page) => { a href=(local(page)) { (run.run) } },
                    None => (run.run),
                }
            }
            td { (run.place()) }
            td {
                (run.state)
                @if let Some(reason) = &run.withdrawn { br; small.doubt { "withdrawn: " (reason) } }
            }
            td {
                (run.host)
                @if let Some(began) = run.began_unix_ms { br; small { (words::date(began)) } }
            }
        }
    }
}

/// A path that a browser takes for nothing else: names may begin like the name of a protocol.
fn local(page: &str) -> String {
    let quoted = page
        .replace('%', "%25")
        .replace('\\', "%5C")
        .replace('#', "%23")
        .replace('?', "%3F");
    // Where pages are served they have paths from the root. Two slashes would begin the name of a host.
    let is_of_root = quoted.starts_with('/') && !quoted.starts_with("//");
    if is_of_root || quoted.starts_with("../") || quoted.starts_with("./") {
        quoted
    } else {
        format!("./{}", quoted.trim_start_matches('/'))
    }
}

/// The banner over everything, where runs are withdrawn.
pub(super) fn withdrawn(context: &StudyContext) -> Markup {
    let gone: Vec<(&StudyRunFacts, &String)> = context
        .runs
        .iter()
        .filter_map(|run| Some((run, run.withdrawn.as_ref()?)))
        .collect();
    html! {
        @if !gone.is_empty() {
            div.banner role="alert" {
                @for (run, reason) in gone { p { b { "withdrawn" } " run " (run.run) ": " (reason) } }
            }
        }
    }
}

fn again(context: &StudyContext) -> Markup {
    html! {
        section #again {
            h2 { "How to repeat it" }
            @if !context.command.is_empty() {
                pre tabindex="0" { code { (words::shell(&context.command)) } }
            }
            @if let Some(file) = &context.file {
                details {
                    summary { (file.file) }
                    pre tabindex="0" { code { (file.text) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_never_anything_but_a_file_nearby() {
        assert_eq!(local("../a b/report.html"), "../a b/report.html");
        assert_eq!(local("javascript:alert(1)"), "./javascript:alert(1)");
        assert_eq!(local("//host/x?y#z"), "./host/x%3Fy%23z");
        assert_eq!(local("/run/of-a-lab"), "/run/of-a-lab");
        assert_eq!(local("/\\host"), "/%5Chost");
    }
}
