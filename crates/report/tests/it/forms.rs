//! What each operation cost, what moved and what was withdrawn, in every form of text.

use crate::costs_fixture::{costed, withdrawn_cell, withdrawn_run};
use crate::full::{Full, full};
use deltabench_compare::comparison::{Comparison, Metric, Sessions, Verdict};
use deltabench_compare::exit_code;
use deltabench_model::plan::{CellId, GatedMetric, ServerId};
use deltabench_report::{
    Format, TerminalOptions, benchstat, costs_table, csv, json, junit, markdown, render,
};
use serde_json::Value;
use std::collections::BTreeMap;

fn options(width: usize) -> TerminalOptions {
    TerminalOptions {
        width,
        colour: false,
        verbose: false,
    }
}

fn form(format: Format, full: &Full, width: usize) -> String {
    render(
        format,
        &full.comparison,
        &full.plan,
        &full.context,
        options(width),
    )
}

fn costs_at(width: usize) -> String {
    let full = costed();
    costs_table(&full.comparison, &full.plan, &full.context, options(width))
}

#[test]
fn the_costs_on_a_terminal_of_80_columns() {
    insta::assert_snapshot!(costs_at(80));
}

#[test]
fn the_costs_on_a_terminal_of_100_columns() {
    insta::assert_snapshot!(costs_at(100));
}

#[test]
fn the_costs_on_a_terminal_of_120_columns() {
    insta::assert_snapshot!(costs_at(120));
}

#[test]
fn the_costs_on_a_terminal_of_160_columns() {
    insta::assert_snapshot!(costs_at(160));
}

#[test]
fn the_costs_keep_the_width() {
    for width in [80, 100, 120, 160] {
        for line in costs_at(width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn what_is_per_second_has_the_rate_of_the_blocks_that_its_costs_are_from() {
    let mut full = costed();
    for cell in &mut full.comparison.cells {
        cell.cost_rates = Some((1000.0, 500.0));
    }
    let of = |full: &Full| costs_table(&full.comparison, &full.plan, &full.context, options(160));
    let text = of(&full);
    assert!(
        text.contains("cs/s 1020") && text.contains("cs/s 511"),
        "{text}"
    );
    assert!(text.contains("21400"), "o/s is the judged one: {text}");
    for cell in &mut full.comparison.cells {
        cell.cost_rates = None;
    }
    assert!(
        !of(&full).contains("cs/s 1020"),
        "of no rate nothing is told"
    );
}

#[test]
fn the_legend_of_costs_says_of_which_blocks_they_are() {
    let mut full = costed();
    let flat = |full: &Full| {
        let text = costs_table(&full.comparison, &full.plan, &full.context, options(160));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(flat(&full).contains("the judged CPU/op and o/s are from these only"));
    full.comparison.sessions = Some(Sessions {
        number: 4,
        blocks: 8,
    });
    assert!(flat(&full).contains("blocks of the first session that counts"));
    assert!(!flat(&full).contains("[×0.1, ×0.2]"));
    full.comparison.cells[4].moved[0].text =
        "index scans from 100 to 1 /op [×0.01, ×0.01]".to_owned();
    assert!(flat(&full).contains("[×0.1, ×0.2]: candidate / base"));
}

#[test]
fn a_run_without_costs_says_so_and_still_has_its_rates() {
    let full = full();
    let text = costs_table(&full.comparison, &full.plan, &full.context, options(100));
    assert!(
        text.ends_with("\nno costs were collected in this run\n"),
        "{text}"
    );
    assert!(text.contains("o/s") && text.contains("21400"), "{text}");
}

#[test]
fn costs_are_for_a_published_unit_and_ratios_stay_the_same() {
    let mut full = costed();
    // The sum has 16 queries to an operation.
    let text = costs_table(&full.comparison, &full.plan, &full.context, options(160));
    let block = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with("read-only-sum"));
        lines.take(5).map(str::to_owned).collect()
    };
    let with = block(&text);
    assert!(
        with[2].contains("48320") && with[2].contains("0.0638"),
        "{with:#?}"
    );
    full.plan.cells[5].published.per_operation = 1.0;
    let without = block(&costs_table(
        &full.comparison,
        &full.plan,
        &full.context,
        options(160),
    ));
    assert!(
        without[2].contains(" 3020") && without[2].contains("1.02"),
        "{without:#?}"
    );
    // cpu/o and cs/o, whose ratios do not depend on what a unit is.
    let figures = |lines: &[String]| -> Vec<String> {
        let words = lines[4].split_whitespace().take(6);
        words.map(str::to_owned).collect()
    };
    assert_eq!(figures(&with)[0], "0.989");
    assert_eq!(figures(&with), figures(&without));
}

#[test]
fn a_ratio_that_is_hardly_known_has_a_factor_and_not_a_half_width() {
    let mut full = costed();
    let ratio = full.comparison.cells[0].costs[1].ratio.as_mut().unwrap();
    ratio.ci95 = Some((0.04, 25.0));
    let costs = |full: &Full, width| {
        costs_table(&full.comparison, &full.plan, &full.context, options(width))
    };
    let text = costs(&full, 120);
    assert!(text.contains("  1.001 ×÷25.0  "), "{text}");
    assert!(
        text.contains("\n×÷n: the interval is about 1/n to n times the figure\n"),
        "{text}"
    );
    assert!(costs(&full, 160).contains("  1.001 [0.040, 25.0]  "));
    assert!(!costs(&costed(), 120).contains("×÷"));
}

#[test]
fn the_full_table_with_costs_on_a_terminal_of_120_columns() {
    insta::assert_snapshot!(form(Format::Text, &costed(), 120));
}

#[test]
fn the_markdown_with_costs() {
    insta::assert_snapshot!(form(Format::Markdown, &costed(), 120));
}

#[test]
fn the_junit_report() {
    insta::assert_snapshot!(form(Format::Junit, &costed(), 120));
}

#[test]
fn the_benchmark_lines_of_two_cells() {
    let mut full = withdrawn_cell();
    full.comparison
        .cells
        .retain(|cell| [CellId(3), CellId(4)].contains(&cell.cell));
    for cell in &mut full.comparison.cells {
        cell.rates.truncate(3);
    }
    insta::assert_snapshot!(form(Format::Benchstat, &full, 120));
}

#[test]
fn the_costs_of_a_cell_in_json_and_csv() {
    let mut full = withdrawn_cell();
    full.comparison.cells.retain(|cell| cell.cell == CellId(4));
    full.comparison.placebo_cells.clear();
    let cell = &mut full.comparison.cells[0];
    cell.rates.truncate(2);
    cell.metrics.clear();
    let value: Value = serde_json::from_str(&form(
        Format::Json(deltabench_report::JsonVersion::One),
        &full,
        120,
    ))
    .unwrap();
    let mut shown = BTreeMap::from([
        ("invalidations".to_owned(), value["invalidations"].clone()),
        ("marks".to_owned(), value["marks"].clone()),
    ]);
    for key in [
        "cell",
        "costs",
        "moved",
        "explanation",
        "rates",
        "latency",
        "withdrawn",
    ] {
        shown.insert(format!("cells[0].{key}"), value["cells"][0][key].clone());
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap());
    insta::assert_snapshot!(form(Format::Csv, &full, 120));
}

#[test]
fn every_form_is_the_same_to_the_byte_when_made_again() {
    for format in Format::ALL {
        let first = form(format, &withdrawn_run(), 120);
        let other = form(format, &withdrawn_run(), 120);
        assert!(first == other, "{}", format.word());
        // Once more from the same values, after all others were made from them.
        let full = withdrawn_run();
        let others = Format::ALL.map(|format| form(format, &full, 80));
        assert!(others.iter().all(|text| !text.is_empty()));
        let of_kind = form(Format::OfKind("steps"), &full, 80);
        assert_eq!(of_kind, "", "the run has no steps");
        assert!(form(format, &full, 120) == first, "{}", format.word());
    }
}

#[test]
fn a_new_form_says_nothing_of_costs_where_there_are_none() {
    let full = full();
    let value: Value = serde_json::from_str(&form(
        Format::Json(deltabench_report::JsonVersion::One),
        &full,
        120,
    ))
    .unwrap();
    for key in [
        "costs",
        "moved",
        "explanation",
        "rates",
        "latency",
        "withdrawn",
    ] {
        assert!(value["cells"][4].get(key).is_none(), "{key}");
    }
    for key in ["invalidations", "marks"] {
        assert!(value.get(key).is_none(), "{key}");
    }
    for format in [Format::Text, Format::Markdown, Format::Junit] {
        let text = form(format, &full, 120);
        for words in ["what moved", "withdrawn", "What each operation cost"] {
            assert!(!text.contains(words), "{} has {words}", format.word());
        }
    }
}

#[test]
fn what_moved_stands_below_the_table_only_for_cells_that_changed() {
    let mut full = costed();
    let said = "what moved: range-covered-si at 1 client: +5.7 % CPU per operation, all of it user";
    assert!(form(Format::Text, &full, 200).contains(said));
    assert!(form(Format::Junit, &full, 200).contains("what moved: +5.7 % CPU per operation"));
    full.comparison.cells[4].verdict = Verdict::NoChange;
    assert!(!form(Format::Text, &full, 200).contains("what moved"));
}

#[test]
fn a_withdrawn_run_says_so_first_in_every_form() {
    let full = withdrawn_run();
    let sentence =
        "withdrawn: this whole run: somebody else used the machine (2025-11-22 08:27 UTC)";
    let text = form(Format::Text, &full, 120);
    assert_eq!(text.lines().next().unwrap(), sentence);
    assert!(
        text.lines()
            .nth(1)
            .unwrap()
            .starts_with("withdrawn: range-covered-si at 1 client: ")
    );
    let text = form(Format::Markdown, &full, 120);
    assert_eq!(text.lines().next().unwrap(), format!("**{sentence}**"));
    let csv = csv(&full.comparison, &full.plan, &full.context);
    let mut columns = csv.lines().next().unwrap().split(',');
    assert!(columns.any(|column| column == "withdrawn"));
    assert!(
        csv.lines()
            .skip(1)
            .all(|line| line.contains("somebody else used the machine"))
    );
    let value: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    ))
    .unwrap();
    assert_eq!(
        value["invalidations"][1]["reason"],
        "somebody else used the machine"
    );
    assert!(value["invalidations"][1].get("cell").is_none());
    assert_eq!(
        value["cells"][0]["withdrawn"],
        "somebody else used the machine"
    );
    let xml = junit(&full.comparison, &full.plan, &full.context);
    // Nothing passes but the host.
    let passed = xml.matches("<testcase").count()
        - xml.matches("<failure").count()
        - xml.matches("<skipped").count();
    assert_eq!(passed, 1, "{xml}");
    let costs = costs_table(&full.comparison, &full.plan, &full.context, options(120));
    assert_eq!(costs.lines().next().unwrap(), sentence);
    let lines = benchstat(&full.comparison, &full.plan, &full.context);
    assert!(
        lines.contains("\nwithdrawn: somebody else used the machine\n"),
        "{lines}"
    );
}

#[test]
fn a_withdrawn_cell_is_marked_where_it_stands_and_no_other() {
    let full = withdrawn_cell();
    let text = form(Format::Text, &full, 300);
    let marked: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("withdrawn (the disk"))
        .collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(marked[0].contains("range-covered-si"), "{text}");
    let value: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &full.comparison,
        &full.plan,
        &full.context,
    ))
    .unwrap();
    let cells = value["cells"].as_array().unwrap();
    let withdrawn = cells.iter().filter(|cell| cell.get("withdrawn").is_some());
    assert_eq!(withdrawn.count(), 1);
}

/// Many cells, each with long words.
fn large() -> Full {
    let mut full = costed();
    let (cells, planned) = (full.comparison.cells.clone(), full.plan.cells.clone());
    for copy in 1..60_u32 {
        for (cell, planned) in std::iter::zip(&cells, &planned) {
            let mut cell = cell.clone();
            cell.cell.0 += 8 * copy;
            cell.workload = format!("{}-{copy}", cell.workload);
            cell.verdict = Verdict::Regression;
            cell.explanation = Some("+5.7 % CPU per operation ".repeat(8));
            let mut planned = planned.clone();
            planned.workload.clone_from(&cell.workload);
            full.comparison.cells.push(cell);
            full.plan.cells.push(planned);
        }
    }
    full
}

#[test]
fn markdown_fits_into_a_comment_and_says_what_is_left_out() {
    let text = form(Format::Markdown, &large(), 120);
    let length = text.chars().count();
    assert!((60_000..=65_000).contains(&length), "{length}");
    let cut: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("… and "))
        .collect();
    assert!(cut.len() >= 3, "{cut:?}");
    assert!(
        cut.iter()
            .all(|line| line.contains(" more; the page and the JSON")),
        "{cut:?}"
    );
    // The parts are still whole.
    assert_eq!(
        text.matches("<details>").count(),
        text.matches("</details>").count()
    );
    assert_eq!(text.matches("```").count() % 2, 0);
    for heading in ["### What changed", "### How to repeat it"] {
        assert!(text.contains(heading), "{heading}");
    }
}

/// Elements and attributes that the common schema allows, with what each element may contain.
const SCHEMA: [(&str, &[&str], &[&str]); 9] = [
    (
        "testsuites",
        &["name", "tests", "failures", "errors"],
        &["testsuite"],
    ),
    (
        "testsuite",
        &[
            "name",
            "tests",
            "failures",
            "errors",
            "skipped",
            "timestamp",
        ],
        &["properties", "testcase", "system-out"],
    ),
    ("properties", &[], &["property"]),
    ("property", &["name", "value"], &[]),
    (
        "testcase",
        &["classname", "name"],
        &["skipped", "error", "failure", "system-out"],
    ),
    ("skipped", &["message"], &[]),
    ("failure", &["message", "type"], &[]),
    ("error", &["message", "type"], &[]),
    ("system-out", &[], &[]),
];

fn check(node: roxmltree::Node<'_, '_>) {
    let name = node.tag_name().name();
    let (_, attributes, children) = SCHEMA
        .iter()
        .find(|(known, _, _)| *known == name)
        .unwrap_or_else(|| panic!("{name} is not in the schema"));
    for attribute in node.attributes() {
        assert!(
            attributes.contains(&attribute.name()),
            "{name} {}",
            attribute.name()
        );
    }
    let inside: Vec<_> = node
        .children()
        .filter(roxmltree::Node::is_element)
        .collect();
    for child in &inside {
        assert!(children.contains(&child.tag_name().name()), "{name}");
        check(*child);
    }
    // What a suite says of its cases is true.
    if name == "testsuite" || name == "testsuites" {
        for (attribute, wanted) in [
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ] {
            let found = node
                .descendants()
                .filter(|child| child.has_tag_name(wanted))
                .count();
            let said = node.attribute(attribute);
            let needed = attributes.contains(&attribute);
            assert_eq!(
                said,
                needed.then(|| found.to_string()).as_deref(),
                "{attribute}"
            );
        }
    }
}

/// Failures and errors of the report.
fn failing(full: &Full) -> usize {
    let text = junit(&full.comparison, &full.plan, &full.context);
    let tree = roxmltree::Document::parse(&text).unwrap();
    check(tree.root_element());
    let bad = tree
        .descendants()
        .filter(|node| node.has_tag_name("failure") || node.has_tag_name("error"));
    bad.count()
}

#[test]
fn junit_follows_the_schema_and_fails_where_the_exit_code_is_not_0() {
    let mut seen = Vec::new();
    for lenient in [false, true] {
        for host_ok in [true, false] {
            for change in CHANGES {
                let mut full = costed();
                (
                    full.plan.gate.inconclusive_passes,
                    full.comparison.gate.inconclusive_passes,
                ) = (lenient, lenient);
                full.comparison.host_ok = host_ok;
                change(&mut full.comparison);
                let code = exit_code(&full.comparison);
                assert_eq!(failing(&full) > 0, code != 0, "exit code {code}");
                seen.push(code);
            }
        }
    }
    for code in [0, 1, 3, 4, 5] {
        assert!(seen.contains(&code), "{code} is not covered");
    }
}

const CHANGES: [fn(&mut Comparison); 7] = [
    |_| {},
    |comparison| each(comparison, Verdict::NoChange),
    |comparison| each(comparison, Verdict::Inconclusive),
    |comparison| each(comparison, Verdict::Unfit),
    |comparison| {
        each(comparison, Verdict::NoChange);
        comparison.gate.not_worse_than = Some(0.02);
    },
    |comparison| {
        each(comparison, Verdict::Inconclusive);
        comparison.cells.iter_mut().for_each(|cell| cell.blocks = 0);
    },
    |comparison| {
        each(comparison, Verdict::NoChange);
        comparison.unfinished = true;
    },
];

fn each(comparison: &mut Comparison, verdict: Verdict) {
    for cell in &mut comparison.cells {
        (cell.verdict, cell.alone) = (verdict, verdict);
    }
}

#[test]
fn junit_says_what_the_gate_asks_for() {
    let mut full = costed();
    let gate = &mut full.comparison.gate;
    (gate.on, gate.metrics) = (true, vec![GatedMetric::P999]);
    each(&mut full.comparison, Verdict::Regression);
    let text = junit(&full.comparison, &full.plan, &full.context);
    let unknown = r#"<failure message="p99.9 latency unknown (too few operations in a block); "#;
    assert!(text.contains(unknown), "{text}");
    assert!(!text.contains("Holm)\" type"), "{text}");
    assert!(!text.contains("p95: "), "{text}");
    full.comparison.gate.metrics = vec![GatedMetric::P95];
    for cell in &mut full.comparison.cells {
        let mut p95 = cell.metric(Metric::LatencyP99).unwrap().clone();
        (p95.metric, p95.verdict) = (Metric::LatencyP95, Some(Verdict::Inconclusive));
        cell.metrics.push(p95);
    }
    let text = junit(&full.comparison, &full.plan, &full.context);
    assert!(text.contains(r#"<failure message="p95 latency: no answer; "#));
    assert!(text.contains("\np95: "), "{text}");
    // In another hour, of which nothing is known.
    let gate = &mut full.comparison.gate;
    (gate.metrics, gate.another_hour) = (Vec::new(), true);
    let text = junit(&full.comparison, &full.plan, &full.context);
    assert!(text.contains(r#"<failure message="no answer in another hour; "#));
    assert!(!text.contains("Holm)\" type"), "{text}");
}

#[test]
fn servers_of_one_name_are_told_apart() {
    let mut full = costed();
    full.plan.servers[0].label = Some("same".to_owned());
    full.plan.servers[2].label = Some("same".to_owned());
    let text = benchstat(&full.comparison, &full.plan, &full.context);
    assert!(text.contains("\nserver: same\n") && text.contains("\nserver: same (2)\n"));
    let text = junit(&full.comparison, &full.plan, &full.context);
    assert!(
        text.contains(r#"<testsuite name="same (2) vs same" "#),
        "{text}"
    );
}

#[test]
fn a_base_alone_has_its_blocks_for_benchstat() {
    let mut full = costed();
    full.comparison.placebo_cells = full.comparison.cells.clone();
    full.comparison.cells.clear();
    full.plan.servers.truncate(2);
    let text = benchstat(&full.comparison, &full.plan, &full.context);
    assert_eq!(text.matches("server: ").count(), 1);
    let lines = text.lines().filter(|line| line.starts_with("Benchmark"));
    let blocks: usize = { full.comparison.placebo_cells.iter() }
        .map(|cell| cell.rates.len())
        .sum();
    assert_eq!(lines.count(), blocks);
}

#[test]
fn a_reason_with_quotes_and_control_characters_is_still_xml() {
    let mut full = withdrawn_cell();
    full.context.invalidations[0].reason = "a \"<b>\" & \u{1} ]]> \u{ffff} line\nbreak".to_owned();
    assert!(failing(&full) > 0);
}

/// What the Go project says of its format: a line is a result, a configuration or neither.
#[test]
fn every_benchmark_line_is_a_result_or_a_configuration() {
    let full = withdrawn_cell();
    let text = benchstat(&full.comparison, &full.plan, &full.context);
    let (mut server, mut results) = (String::new(), BTreeMap::<String, usize>::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("Unit ") {
            continue;
        }
        if let Some((key, value)) = line
            .split_once(':')
            .filter(|_| !line.starts_with("Benchmark"))
        {
            assert!(key.starts_with(|c: char| c.is_lowercase()), "{line}");
            assert!(
                !key.contains(|c: char| c.is_uppercase() || c.is_whitespace()),
                "{line}"
            );
            if key == "server" {
                server = value.trim().to_owned();
            }
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert!(fields[0].starts_with("Benchmark"), "{line}");
        assert!(
            fields[0].chars().nth(9).is_some_and(|c| !c.is_lowercase()),
            "{line}"
        );
        assert!(fields[1].parse::<u64>().is_ok_and(|n| n > 0), "{line}");
        let pairs = &fields[2..];
        assert_eq!(pairs.len() % 2, 0, "{line}");
        assert!(
            pairs
                .iter()
                .step_by(2)
                .all(|value| value.parse::<f64>().is_ok()),
            "{line}"
        );
        *results.entry(server.clone()).or_default() += 1;
    }
    let blocks: usize = full
        .comparison
        .cells
        .iter()
        .map(|cell| cell.rates.len())
        .sum();
    assert_eq!(
        results,
        BTreeMap::from([
            ("postgres:17.11".to_owned(), blocks),
            ("postgres:18.6".to_owned(), blocks)
        ])
    );
}

#[test]
fn with_two_candidates_the_base_is_said_once() {
    let mut full = costed();
    let mut third = full.plan.servers[2].clone();
    third.installation.resolved = "path:/opt/patched".to_owned();
    full.plan.servers.push(third);
    for mut cell in full.comparison.cells.clone() {
        cell.candidate = ServerId(3);
        cell.candidate_name = "path:/opt/patched".to_owned();
        full.comparison.cells.push(cell);
    }
    full.comparison
        .cells
        .sort_by_key(|cell| (cell.cell, cell.candidate));
    let text = benchstat(&full.comparison, &full.plan, &full.context);
    assert_eq!(text.matches("server: ").count(), 3);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("Benchmark"))
        .collect();
    let blocks: usize = full
        .comparison
        .cells
        .iter()
        .map(|cell| cell.rates.len())
        .sum();
    assert_eq!(lines.len(), blocks / 2 * 3);
    let costs = costs_table(&full.comparison, &full.plan, &full.context, options(120));
    assert_eq!(costs.matches("point-query at 1 client\n").count(), 1);
    assert!(costs.contains("path:/opt/patched / base"));
    let text = markdown(&full.comparison, &full.plan, &full.context);
    assert!(text.contains("col-2 : path:/opt/patched\n"));
    assert!(text.contains("\n0.94   0.94   range-covered-si"), "{text}");
    assert_eq!(failing(&full) % 2, 0);
    let long = "path:/srv/builds/18-with-a-long-name";
    full.plan.servers[3].installation.resolved = long.to_owned();
    let costs = costs_table(&full.comparison, &full.plan, &full.context, options(120));
    assert!(
        costs.starts_with(&format!(
            "base: postgres:17.11\ncandidate 1: postgres:18.6\ncandidate 2: {long}\n\n"
        )),
        "{costs}"
    );
    assert!(costs.contains(" candidate 2 / base\n"), "{costs}");
}
