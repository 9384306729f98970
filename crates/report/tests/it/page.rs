use crate::fixture::{comparison, context, plan};
use crate::text::two_candidates;
use deltabench_model::finding::{Finding, Severity};
use deltabench_report::{TerminalOptions, csv, html, json, markdown, summary, terminal};

fn page() -> String {
    html(&comparison(), &plan(), &context())
}

#[test]
fn the_page_begins_with_the_sentence_and_has_every_cell_finding_and_hash() {
    let page = page();
    let body = page.split("<main>").nth(1).unwrap();
    // The page sets minus signs and keeps percent signs with their numbers; nothing else differs.
    let plain = |text: &str| text.replace('−', "-").replace('\u{a0}', " ");
    let sentence = plain(&summary(&comparison(), &plan()));
    let body = plain(body);
    assert!(body.starts_with(&format!("<h1>{sentence}</h1>")));
    for cell in comparison().cells {
        let reason = cell
            .reason
            .trim_start_matches("no change ")
            .trim_start_matches("slower ");
        assert!(
            body.contains(&cell.workload) && body.contains(reason),
            "{}",
            cell.workload
        );
    }
    for finding in comparison().findings {
        assert!(page.contains(&finding.text));
    }
    for server in plan().servers {
        assert!(page.contains(&server.installation.binary_sha256));
    }
    assert!(page.contains("deltabench compare postgres:17 postgres:18 --clients 1,4"));
    assert!(page.contains("9731004412345678901"));
}

#[test]
fn the_page_needs_nothing_else_and_stays_small() {
    let page = page();
    for outside in ["http://", "https://", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 300_000, "{} bytes", page.len());
    // Set to look at the page in a browser.
    if let Ok(path) = std::env::var("DELTABENCH_PAGE") {
        std::fs::write(path, &page).unwrap();
    }
}

#[test]
fn the_page_escapes_whatever_it_is_given() {
    const EVIL: &str = "</title><img src=x onerror=alert(1)>\"'&";
    let (mut comparison, mut plan, mut context) = (comparison(), plan(), context());
    comparison
        .findings
        .push(Finding::new(EVIL, Severity::Note, EVIL));
    for cell in &mut comparison.cells {
        (cell.workload, cell.reason, cell.candidate_name) =
            (EVIL.to_owned(), EVIL.to_owned(), EVIL.to_owned());
    }
    plan.servers[2].installation.resolved = EVIL.to_owned();
    plan.servers[2].installation.binary_sha256 = EVIL.to_owned();
    plan.command.push(EVIL.to_owned());
    plan.settings.push((EVIL.to_owned(), EVIL.to_owned()));
    (context.run, context.state) = (EVIL.to_owned(), EVIL.to_owned());
    context.host = serde_json::json!({ EVIL: EVIL });
    for facts in &mut context.servers {
        facts.settings[0].value = EVIL.to_owned();
        facts.build.as_mut().unwrap().configure = EVIL.to_owned();
    }
    let page = html(&comparison, &plan, &context);
    let at = page
        .find("<img")
        .map(|at| &page[at.saturating_sub(200)..at + 20]);
    assert_eq!(at, None);
    assert_eq!(
        page.split("</head>")
            .next()
            .unwrap()
            .matches("</title>")
            .count(),
        1
    );
    assert!(page.contains("&lt;img"));
    assert!(!markdown(&comparison, &plan, &context).contains("<img"));
}

#[test]
fn the_same_comparison_gives_the_same_bytes() {
    let all = || {
        let (comparison, plan, context) = (comparison(), plan(), context());
        [
            terminal(
                &comparison,
                &plan,
                &context,
                TerminalOptions {
                    width: 100,
                    colour: true,
                },
            ),
            json(&comparison, &plan, &context),
            csv(&comparison, &plan),
            markdown(&comparison, &plan, &context),
            html(&comparison, &plan, &context),
        ]
    };
    assert_eq!(all(), all());
}

#[test]
fn two_candidates_have_a_plot_each() {
    let (comparison, plan) = two_candidates();
    let page = html(&comparison, &plan, &context());
    assert_eq!(page.matches("<table class=\"forest\">").count(), 2);
    assert_eq!(page.matches("<article>").count(), 16);
    assert_eq!(page.matches("<h1>").count(), 2);
}
