//! Where instructions went, from counts of real servers: a point query 200 times on 17.11 and 18.6.

use crate::fixture::{comparison, context, plan};
use crate::full::Full;
use deltabench_compare::comparison::{
    BlockRate, CountedCell, InstructionCounts, ServerCount, Verdict,
};
use deltabench_explain::{LINES, explain};
use deltabench_model::explanation::{ExplainedCell, Place, TimeChange};
use deltabench_model::profile::Profile;
use deltabench_model::sampled::{FunctionTime, SampledCell, SampledTime};
use deltabench_model::units::{signed_to_f64, to_f64};
use deltabench_report::{
    JsonVersion, TerminalOptions, benchstat, explained_json, explained_markdown, explained_text,
    html, json, junit, markdown, terminal,
};
use serde_json::Value;

const BASE: &str = include_str!("../../../explain/tests/data/postgres/point-query-17.11.json");
const CANDIDATE: &str = include_str!("../../../explain/tests/data/postgres/point-query-18.6.json");

fn cells() -> Vec<ExplainedCell> {
    let read = |text: &str| serde_json::from_str::<Profile>(text).unwrap();
    let mut changed = comparison().cells.into_iter();
    let changed = changed
        .find(|cell| cell.verdict == Verdict::Regression)
        .unwrap();
    vec![ExplainedCell {
        cell: changed.cell,
        candidate: changed.candidate,
        explanation: explain(&read(BASE), &read(CANDIDATE), LINES),
        notes: vec!["no kernel: system calls are not in these counts".to_owned()],
    }]
}

/// A run with an explained cell.
pub fn explained() -> Full {
    let mut context = context();
    context.explained = cells();
    let mut comparison = comparison();
    let [explained] = context.explained.as_slice() else {
        panic!("one cell")
    };
    let count = |per_op| ServerCount {
        per_op,
        span: Some(0.000_02),
        starts: 2,
        rows_per_op: 1.0,
        beside: None,
    };
    let (base, candidate) = explained.explanation.total();
    let each = |value| signed_to_f64(value) / to_f64(explained.explanation.operations);
    comparison.instructions = Some(InstructionCounts {
        limit: 0.01,
        alone: false,
        cells: vec![CountedCell::of(
            (explained.cell, explained.candidate),
            count(each(base)),
            count(each(candidate)),
            0.01,
        )],
    });
    Full {
        plan: plan(),
        comparison,
        context,
    }
}

/// The same of a run that counted and measured nothing.
pub fn counted() -> Full {
    let mut run = explained();
    run.comparison.instructions = Some(InstructionCounts {
        limit: 0.01,
        alone: true,
        cells: Vec::new(),
    });
    run
}

#[test]
fn the_text_says_where_and_why_with_figures_that_add_up() {
    insta::assert_snapshot!(explained_text(&cells(), &plan(), 110));
}

#[test]
fn forms_for_programs_have_the_figures_of_a_count_and_nothing_of_time() {
    let mut run = explained();
    run.comparison.instructions.as_mut().unwrap().alone = true;
    for cell in &mut run.comparison.cells {
        cell.metrics.clear();
        cell.rates.clear();
    }
    let text = junit(&run.comparison, &run.plan, &run.context);
    assert_eq!(
        text.matches("<system-out>instr/op: 1.0").count(),
        1,
        "{text}"
    );
    for word in ["code layout", "false alarms", "another hour", "placebo"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let text = benchstat(&run.comparison, &run.plan, &run.context);
    let lines: Vec<&str> = { text.lines() }
        .filter(|line| line.starts_with("Benchmark"))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        assert_eq!(line.split_whitespace().count(), 4, "{line}");
        assert!(line.ends_with(" instructions/op"), "{line}");
    }
}

#[test]
fn markdown_has_the_same_places() {
    let text = explained_markdown(&cells(), &plan());
    assert!(
        text.contains("| LockAcquireExtended, wherever it is called | 649 | 996 | +347 |"),
        "{text}"
    );
    let whole = explained();
    let report = markdown(&whole.comparison, &whole.plan, &whole.context);
    assert!(report.contains("### Where the instructions went"));
}

#[test]
fn calls_that_moved_are_told_with_what_they_call() {
    let mut cells = cells();
    let lines = &mut cells[0].explanation.lines;
    let lock = lines
        .iter_mut()
        .find(|line| line.names == ["LockAcquireExtended"]);
    lock.unwrap().place = Place::EverywhereWithCalls;
    let text = explained_text(&cells, &plan(), 400);
    let words = "LockAcquireExtended with what it calls, wherever it is called: same calls";
    assert!(text.contains(words), "{text}");
}

#[test]
fn json_has_it_beside_the_cell_and_the_command_alone() {
    let whole = explained();
    let report = json(
        JsonVersion::Two,
        &whole.comparison,
        &whole.plan,
        &whole.context,
    );
    let report: Value = serde_json::from_str(&report).unwrap();
    let mut cells = report["cells"].as_array().unwrap().iter();
    let beside = cells.find_map(|cell| cell.get("explain")).unwrap();
    assert_eq!(beside["unit"], "instructions per operation");
    let alone: Value = serde_json::from_str(&explained_json(
        "r",
        (&whole.context.explained, &[]),
        &whole.plan,
    ))
    .unwrap();
    assert_eq!(&alone["cells"][0]["explain"], beside);
    let lines = beside["lines"].as_array().unwrap();
    let sum: f64 = lines
        .iter()
        .map(|line| line["difference"].as_f64().unwrap())
        .sum();
    let whole = beside["candidate"].as_f64().unwrap() - beside["base"].as_f64().unwrap();
    assert!((sum / whole - beside["accounted"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn the_page_has_a_panel_whose_frames_sum_to_the_cell() {
    let whole = explained();
    let page = html(&whole.comparison, &whole.plan, &whole.context);
    assert!(page.contains("id=\"explained\"") && page.contains("data-flame=\"0\""));
    let (_, rest) = page
        .split_once("<script id=\"data\" type=\"application/json\">")
        .unwrap();
    let data: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let frames = data["explained"][0]["frames"].as_array().unwrap();
    let sum = |column: usize| {
        frames
            .iter()
            .map(|frame| frame[column].as_i64().unwrap())
            .sum::<i64>()
    };
    let (base, candidate) = whole.context.explained[0].explanation.total();
    assert_eq!((sum(2), sum(3)), (base, candidate));
}

#[test]
fn the_lines_of_a_run_name_where_most_of_it_went() {
    let whole = explained();
    let options = TerminalOptions {
        width: 100,
        colour: false,
        verbose: false,
    };
    let text = terminal(&whole.comparison, &whole.plan, &whole.context, options);
    assert!(text.contains("where it went: "), "{text}");
    let page = html(&whole.comparison, &whole.plan, &whole.context);
    assert!(
        page.contains("+2.5\u{a0}% instructions, the largest part in"),
        "no head line"
    );
}

#[test]
fn beside_times_every_form_has_a_column_of_instructions() {
    let mut run = explained();
    for cell in &mut run.comparison.cells {
        cell.rates = vec![BlockRate {
            block: 0,
            base: 100.0,
            candidate: 95.0,
            server_cpu_us: None,
            switches: None,
        }];
    }
    // In 64 columns names are on lines of their own; in 80 there is no room for CPU beside the count.
    for (width, cpu) in [(64, true), (80, false), (84, true), (120, true)] {
        let options = TerminalOptions {
            width,
            colour: false,
            verbose: false,
        };
        let table = terminal(&run.comparison, &run.plan, &run.context, options);
        let head = table.lines().find(|line| line.contains(" throughput  "));
        let head = head.unwrap();
        assert!(
            head.contains("instr/op") && table.contains("1.0248"),
            "{table}"
        );
        assert_eq!(head.contains("CPU/op"), cpu, "{table}");
        assert!(
            table.lines().all(|line| line.chars().count() <= width),
            "{table}"
        );
    }
    let report = markdown(&run.comparison, &run.plan, &run.context);
    assert!(
        report.contains("| instr/op |") && report.contains("1.0248"),
        "{report}"
    );
    let page = html(&run.comparison, &run.plan, &run.context);
    assert!(page.contains("instructions/op") && page.contains("not counted"));
    let lines = benchstat(&run.comparison, &run.plan, &run.context);
    assert!(
        lines.lines().any(|line| line.contains(" instructions/op ")),
        "{lines}"
    );
}

#[test]
fn sampled_time_stands_beside_the_count_in_every_form() {
    let mut run = explained();
    let told = &mut run.context.explained[0];
    let change = TimeChange {
        base_ns: 100.0,
        candidate_ns: 146.0,
        low_ns: 32.0,
        high_ns: 60.0,
    };
    let name = told.explanation.lines[0].names.last().unwrap().clone();
    let function = |p| FunctionTime {
        name: name.clone(),
        change,
        p,
    };
    let time = SampledTime {
        own: vec![function(0.001)],
        inclusive: vec![function(0.8)],
        blocks: 8,
        samples: (38_000, 38_100),
        complete: 0.999,
        overdispersion: 1.0,
        lasting: 0.0,
        unseen_ns: 24.0,
    };
    for line in &mut told.explanation.lines {
        let of = |asked: &String| (*asked == name).then_some(change);
        line.find_time(&of, &of);
    }
    let first = &mut told.explanation.lines[0];
    let more = first.difference() > 0;
    let word = if more { "agrees" } else { "against" };
    assert_eq!(first.agreement().unwrap().word(), word);
    let sampled = SampledCell {
        cell: told.cell,
        candidate: told.candidate,
        time,
        placebo: None,
        biased: false,
        rate: 997,
        cost: Some(0.01),
        lost: 0,
    };
    run.context.sampled = vec![sampled];
    let said = format!("+46 [+32, +60] ns, {word}");
    let text = explained_text(&run.context.explained, &run.plan, 200);
    assert!(text.contains(&said), "{text}");
    let report = markdown(&run.comparison, &run.plan, &run.context);
    assert!(
        report.contains("### Time by function") && report.contains(word),
        "{report}"
    );
    let page = html(&run.comparison, &run.plan, &run.context);
    assert!(page.contains("id=\"sampled\"") && page.contains("href=\"#sampled\""));
    assert!(page.contains("called different"));
    let text = json(JsonVersion::Two, &run.comparison, &run.plan, &run.context);
    let report: Value = serde_json::from_str(&text).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let cell = cells
        .iter()
        .find(|cell| cell.get("sampled").is_some())
        .unwrap();
    assert_eq!(cell["sampled"]["itself"][0]["different"], true);
    assert_eq!(
        cell["sampled"]["itself"][0]["difference_ns"]["ci95"]["low"],
        32.0
    );
    assert_eq!(cell["explain"]["lines"][0]["time"]["agreement"], word);
    assert_eq!(
        cell["explain"]["lines"][0]["time"]["difference_ns"]["estimate"],
        46.0
    );
}
