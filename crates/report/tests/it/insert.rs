//! The Insert Benchmark in every form.

use crate::full::Full;
use crate::insert_fixture::{changed, insert_run};
use deltabench_kinds::insert::shown::FORM;
use deltabench_model::plan::Plan;
use deltabench_model::work::Work;
use deltabench_model::work::insert::InsertSetup;
use deltabench_report::{Format, TerminalOptions, html, json, markdown, render};
use serde_json::Value;

fn form(format: Format, full: &Full, width: usize) -> String {
    let options = TerminalOptions {
        width,
        colour: false,
        verbose: false,
    };
    render(format, &full.comparison, &full.plan, &full.context, options)
}

fn page(full: &Full) -> String {
    html(&full.comparison, &full.plan, &full.context)
}

#[test]
fn seven_passes_on_a_terminal_of_120_columns() {
    insta::assert_snapshot!(form(Format::Text, &insert_run(7), 120));
}

#[test]
fn two_passes_on_a_terminal_of_80_columns() {
    insta::assert_snapshot!(form(Format::Text, &insert_run(2), 80));
}

#[test]
fn seven_passes_in_markdown() {
    let full = insert_run(7);
    let text = markdown(&full.comparison, &full.plan, &full.context);
    let from = text.find("### Insert Benchmark").unwrap();
    let to = from + text[from..].find("</details>").unwrap();
    insta::assert_snapshot!(&text[from..to]);
}

#[test]
fn tables_keep_the_width() {
    for width in [60, 80, 100, 160] {
        let text = form(Format::Text, &insert_run(7), width);
        let from = text.find("Insert Benchmark:").unwrap();
        for line in text[from..].lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn one_pass_has_the_published_table_and_says_what_it_lacks() {
    let full = insert_run(1);
    let title = "Relative throughput, one pass: no interval, no verdict";
    let text = form(Format::Text, &full, 120);
    let from = text.find(title).unwrap_or_else(|| panic!("{text}"));
    let row = text[from..]
        .lines()
        .find(|line| line.starts_with("  postgres:18.6"));
    let figures = row.unwrap().matches("0.").count() + row.unwrap().matches("1.").count();
    assert!(figures >= 4, "{text}");
    assert!(row.unwrap().contains("SLA ×"), "{text}");
    for sign in ["▼", "▲", "=", "?"] {
        assert!(!row.unwrap().contains(sign), "{text}");
    }
    let markdown = markdown(&full.comparison, &full.plan, &full.context);
    assert!(markdown.contains(&format!("**{title}**")), "{markdown}");
}

#[test]
fn two_passes_have_no_ratio_with_two_decimals_in_any_table() {
    let full = insert_run(2);
    let text = form(Format::Text, &full, 120);
    assert!(
        text.contains("2 passes measured, but a verdict needs 6"),
        "{text}"
    );
    let from = text.find("Relative throughput, server /").unwrap();
    let row = |name: &str| {
        text[from..]
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
    };
    assert!(!row("  postgres:18.6").contains("0."), "{text}");
    assert!(row("  postgres:18.6").contains("SLA ×"), "{text}");
    let markdown = markdown(&full.comparison, &full.plan, &full.context);
    let from = markdown.find("**Relative throughput**").unwrap();
    let rows: Vec<&str> = markdown[from..].lines().skip(4).take(3).collect();
    assert!(rows[0].contains("1.00"), "{rows:?}");
    for row in &rows[1..] {
        assert!(row.contains("cannot tell") && !row.contains("0."), "{row}");
    }
}

#[test]
fn two_passes_have_no_relative_throughput_in_the_general_tables_either() {
    let full = insert_run(2);
    for width in [60, 80, 120] {
        let text = form(Format::Text, &full, width);
        let end = text.find("Insert Benchmark:").unwrap();
        let rows: Vec<&str> = text[..end]
            .lines()
            .filter(|line| line.contains(" l.") || line.contains(" q"))
            .filter(|line| line.starts_with(['?', '×']))
            .collect();
        assert_eq!(rows.len(), 10);
        for row in rows {
            assert!(row.contains("cannot tell (2 of 6 passes)"), "{row}");
            assert!(!row.contains('├'), "{row}");
        }
        assert!(!text.contains("geometric mean"), "{text}");
        assert!(
            text.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains("placebo cannot tell (2 of 6 passes)"),
            "{text}"
        );
    }
    let markdown = markdown(&full.comparison, &full.plan, &full.context);
    assert!(
        markdown.contains("| l.i0 | 2 | cannot tell (2 of 6 passes) |"),
        "{markdown}"
    );
    let published = markdown.split("### Relative throughput").nth(1).unwrap();
    let published = published.split("<details>").next().unwrap();
    assert!(
        published.contains("l.i0") && !published.contains("0."),
        "{published}"
    );
    let page = page(&full);
    // Forest, values, and cards with their panels.
    assert!(page.matches("cannot tell (2 of 6 passes)").count() >= 4 * 10);
    // Files have the figure, with its interval.
    let value: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    ))
    .unwrap();
    assert!(
        value["cells"][0]["metrics"].to_string().contains("ratio"),
        "{}",
        value["cells"][0]
    );
    let enough = insert_run(7);
    assert!(!self::page(&enough).contains("cannot tell ("));
}

#[test]
fn indexes_have_no_percentiles() {
    let text = form(Format::Text, &insert_run(7), 80);
    let from = text.find("  l.x ").unwrap();
    let row: Vec<&str> = text[from..].lines().take(2).collect();
    assert!(!row[1].contains("p50"), "{row:?}");
    let page = page(&insert_run(7));
    // Of inserts in all steps but l.x.
    assert_eq!(page.matches("Response times of each insert").count(), 9);
}

#[test]
fn a_server_against_itself_keeps_its_own_colours() {
    let full = changed(7, |_, report| {
        for row in &mut report.servers {
            row.name = "postgres:18.6".to_owned();
        }
    });
    let page = page(&full);
    assert!(
        page.contains("<td class=\"red\" title=\"0.920"),
        "colours of the candidate"
    );
}

fn setup_of(plan: &mut Plan) -> &mut InsertSetup {
    match &mut plan.work {
        Work::Insert(setup) => setup,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_what_is_written_is_said_to_be_written() {
    let of_steps = |number: usize| {
        let full = changed(2, |plan, _| {
            setup_of(plan).steps.truncate(number);
        });
        form(Format::Text, &full, 120)
    };
    assert!(of_steps(3).contains("160k written after that"));
    assert!(!of_steps(2).contains("written after that"));
}

#[test]
fn settling_is_told_of_in_every_form() {
    let full = insert_run(2);
    let said = "postgres:17.11 1.50 + 0.50";
    assert!(form(Format::Text, &full, 200).contains(said));
    assert!(markdown(&full.comparison, &full.plan, &full.context).contains(said));
    assert!(page(&full).contains(said));
    let value: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    ))
    .unwrap();
    assert_eq!(value["insert"]["settled"].as_array().unwrap().len(), 6);
}

#[test]
fn the_json_has_every_step_server_and_pass() {
    let full = insert_run(7);
    let text = json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    );
    let value: Value = serde_json::from_str(&text).unwrap();
    let insert = &value["insert"];
    assert_eq!(insert["passes_planned"], 7);
    assert_eq!(insert["setup"]["clients"], 2);
    let steps = insert["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 10);
    for step in steps {
        let servers = step["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 3);
        for server in servers {
            assert_eq!(server["passes"].as_array().unwrap().len(), 7);
            assert!(server["metrics"]["cpupq"].as_f64().unwrap() > 0.0);
        }
        assert!(servers[0].get("relative").is_none());
    }
    let missed = &steps[8]["servers"][2];
    assert_eq!(steps[8]["step"], "qr1000");
    assert_eq!(missed["background"]["met"], false);
    assert_eq!(missed["relative"]["verdict"], "unfit");
    assert_eq!(missed["quartile"], "sla-missed");
    let response = &steps[4]["servers"][0]["response"][2];
    assert_eq!(response["role"], "query");
    assert_eq!(response["percent"].as_array().unwrap().len(), 10);
    assert!(!text.contains("null"), "absent is absent");
}

#[test]
fn a_run_of_anything_else_says_nothing_of_it() {
    let full = crate::full::full();
    let text = json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    );
    assert!(!text.contains("\"insert\":"));
    assert!(!page(&full).contains("id=\"insert\""));
    assert!((FORM.check)(&full.plan).is_err());
    assert_eq!(form(Format::OfKind("steps"), &full, 80), "");
}

#[test]
fn the_csv_has_a_line_for_each_server_step_and_pass() {
    let text = form(Format::OfKind("steps"), &insert_run(7), 80);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 3 * 10 * 7);
    let columns = lines[0].split(',').count();
    for line in &lines {
        assert_eq!(line.split(',').count(), columns, "{line}");
    }
    let missed = lines
        .iter()
        .find(|line| line.starts_with("postgres:18.6,candidate,qr1000,3,"));
    assert!(missed.unwrap().contains(",queries/s,1860.0"), "{missed:?}");
}

#[test]
fn the_page_has_the_published_tables_and_every_step() {
    let page = page(&insert_run(7));
    for text in [
        "id=\"insert\"",
        "<td class=\"red\" title=\"0.920",
        "SLA ×",
        "Background inserts",
        "Response times of each delete",
        "as published",
        "Sizes, and known pitfalls",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("data-step=").count(), 10);
    // Two runs differ in nothing.
    assert_eq!(page, self::page(&insert_run(7)));
    if let Some(path) = std::env::var_os("DELTABENCH_INSERT_PAGE") {
        std::fs::write(path, &page).unwrap();
    }
}

#[test]
fn long_series_are_folded_to_what_a_page_can_hold() {
    let full = changed(7, |_, report| {
        for figures in report.servers.iter_mut().flat_map(|row| &mut row.steps) {
            for pass in &mut figures.passes {
                let second = pass.seconds[0];
                pass.seconds = vec![second; 1800];
                pass.seconds[900].max_insert_us = 9_876_000;
                pass.duration_ns = 1_800_000_000_000;
            }
        }
    });
    let page = page(&full);
    assert!(page.len() < 4_000_000, "{}", page.len());
    assert!(
        page.contains("9876"),
        "the slowest second is not lost by folding"
    );
}
