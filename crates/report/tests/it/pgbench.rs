//! What reports say of pgbench's scripts: its own text form, line by line beside a real one, grids, scripts.

use crate::pgbench_fixture::{CLIENTS, analysed, plan, setup, slices};
use deltabench_kinds::pgbench::shown::{FORM, pgbench};
use deltabench_model::plan::{Placement, Plan, Role, ServerId};
use deltabench_model::slice::{ErrorCount, Slice};
use deltabench_model::units::to_f64;
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{PgbenchSetup, QueryMode};
use deltabench_report::{
    Format, JsonVersion, StudyContext, StudyFormat, TerminalOptions, notes_text, render,
    render_study,
};
use serde_json::Value;

const OPTIONS: TerminalOptions = TerminalOptions {
    width: 100,
    colour: false,
    verbose: false,
};

/// Only the base, one mix, one number of clients.
fn alone(mix: &str, clients: u32, change: impl Fn(&mut Plan)) -> (Plan, Vec<Slice>) {
    let mut plan = plan(&[clients]);
    plan.cells.retain(|cell| cell.workload == mix);
    plan.servers.retain(|server| server.role == Role::Base);
    change(&mut plan);
    let slices = slices(&plan);
    (plan, slices)
}

fn text(plan: &Plan, slices: &[Slice], every: Option<f64>) -> String {
    let (_, context) = analysed(plan, slices);
    pgbench(plan, &context.results, every)
}

/// Each number as `N` with the digits after its point: `(N.NNN%)`.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut fraction = false;
    for sign in line.chars() {
        if sign == '.' && shape.ends_with('N') {
            shape.push('.');
            fraction = true;
        } else if sign.is_ascii_digit() {
            if fraction || !shape.ends_with('N') {
                shape.push('N');
            }
        } else {
            fraction = false;
            shape.push(sign);
        }
    }
    shape
}

/// The shapes of a real output, without the lines and words that are documented as missing.
fn real(output: &str) -> Vec<String> {
    let missing = [
        "pgbench (",
        "initial connection time",
        "rate limit schedule lag",
    ];
    let lines = output
        .lines()
        .filter(|line| !missing.iter().any(|start| line.starts_with(start)));
    lines
        .map(|line| match line.split_once(", lag ") {
            Some((before, after)) => {
                let rest = after.split_once(" ms").unwrap().1;
                shape(&format!("{before}{rest}"))
            }
            None => shape(line),
        })
        .collect()
}

/// Ours, with as many progress lines as the real one has.
fn ours(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(shape).collect();
    let progress = lines
        .iter()
        .filter(|line| line.starts_with("progress: "))
        .count();
    assert!(progress >= 2);
    lines.drain(2..progress);
    lines
}

#[test]
fn every_line_has_the_form_of_pgbench_18() {
    let (plan, slices) = alone("pgbench-select-only", 4, |_| {});
    let output = include_str!("../data/pgbench/18.6/progress.txt");
    assert_eq!(ours(&text(&plan, &slices, Some(1.0))), real(output));
}

fn setup_of(plan: &mut Plan) -> &mut PgbenchSetup {
    match &mut plan.work {
        Work::Workloads(setup) => setup.pgbench.as_mut().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn several_scripts_have_their_blocks_as_in_pgbench_18() {
    let (plan, slices) = alone("mix", 2, |plan| {
        setup_of(plan).mode = QueryMode::Extended;
    });
    let output = include_str!("../data/pgbench/18.6/mix.txt");
    assert_eq!(ours(&text(&plan, &slices, Some(1.0))), real(output));
}

#[test]
fn tries_skipped_and_late_transactions_are_told_as_in_pgbench_18() {
    let (plan, mut slices) = alone("mix", 2, |plan| {
        let setup = setup_of(plan);
        setup.mode = QueryMode::Simple;
        setup.max_tries = 3;
        setup.latency_limit_ms = Some(0.5);
        setup.mixes[1].scripts[0].source.file = "<builtin: TPC-B (sort of)>".to_owned();
        setup.mixes[1].scripts[0].weight = 2;
        setup.mixes[1].scripts[1].source.file = "<builtin: select only>".to_owned();
        plan.cells[0].rate = Some(200.0);
    });
    for slice in &mut slices {
        let tally = &mut slice.scripts[0];
        (tally.retried, tally.retries, tally.skipped, tally.late) = (3, 4, 2, 7);
        (tally.serialization_failures, tally.deadlock_failures) = (1, 1);
        slice.failed = 2;
    }
    let text = text(&plan, &slices, Some(1.0));
    let output = include_str!("../data/pgbench/18.6/rate.txt");
    assert_eq!(ours(&text), real(output));
    let operations: u64 = slices.iter().map(|slice| slice.operations).sum();
    let total = operations + 4 * 32;
    for line in [
        format!("number of transactions actually processed: {operations}"),
        format!(
            "number of failed transactions: 64 ({:.3}%)",
            6400.0 / to_f64(total)
        ),
        format!(
            "number of transactions retried: 96 ({:.3}%)",
            9600.0 / to_f64(total)
        ),
        "total number of retries: 128".to_owned(),
        format!(
            "number of transactions skipped: 64 ({:.3}%)",
            6400.0 / to_f64(total)
        ),
        format!(
            "number of transactions above the 0.5 ms latency limit: 224/{operations} ({:.3}%)",
            22400.0 / to_f64(operations)
        ),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

/// What the scripts of users take from it: the words that follow a start of a line.
fn value(text: &str, start: &str) -> Vec<f64> {
    let found = text.lines().filter_map(|line| line.strip_prefix(start));
    let number = |rest: &str| rest.split([' ', '/']).next().unwrap().parse().unwrap();
    found.map(number).collect()
}

#[test]
fn a_parser_of_pgbench_reads_it() {
    let (plan, slices) = alone("pgbench-select-only", 4, |_| {});
    let text = text(&plan, &slices, None);
    assert!(
        !text.contains('#'),
        "one server and one cell have no header"
    );
    let operations: u64 = slices.iter().map(|slice| slice.operations).sum();
    // 8 blocks of 4 slices of a quarter of a second.
    let tps = to_f64(operations) / 8.0;
    assert!((value(&text, "tps = ")[0] - tps).abs() < 1e-5);
    assert_eq!(value(&text, "duration: "), [8.0]);
    assert!(text.contains(&format!(
        "number of transactions actually processed: {operations}\n"
    )));
    // Four clients that are always busy.
    assert!((value(&text, "latency average = ")[0] - 4e3 / tps).abs() < 1e-3);
    assert!((value(&text, "latency stddev = ")[0] - 0.3 * 4e3 / tps).abs() < 1e-3);
}

#[test]
fn parts_of_a_mix_add_up_to_its_whole() {
    let (plan, slices) = alone("mix", 2, |_| {});
    let text = text(&plan, &slices, None);
    let parts: f64 = value(&text, " - number of transactions actually processed: ")
        .iter()
        .sum();
    assert_eq!(
        value(&text, "number of transactions actually processed: "),
        [parts]
    );
    assert!(text.contains("SQL script 1: own.sql\n - weight: 3 (targets 75.0% of total)\n"));
}

#[test]
fn servers_and_cells_are_told_apart_by_comments_and_the_placebo_is_left_out() {
    let plan = plan(&[1, 4]);
    let text = text(&plan, &slices(&plan), None);
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        heads.len(),
        2 * 4,
        "two servers, two mixes, two numbers of clients"
    );
    assert_eq!(
        heads[0],
        "# server postgres:17.11, pgbench-select-only, clients 1"
    );
    assert_eq!(
        heads[1],
        "# server postgres:18.6, pgbench-select-only, clients 1"
    );
    assert_eq!(value(&text, "tps = ").len(), 8);
}

#[test]
fn progress_is_measured_time_and_loses_nothing() {
    let (plan, slices) = alone("pgbench-select-only", 4, |_| {});
    let text = text(&plan, &slices, Some(3.0));
    let at = value(&text, "progress: ");
    assert_eq!(at, [3.0, 6.0, 8.0]);
    let rates: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with("progress"))
        .map(|line| line.split(' ').nth(3).unwrap().parse().unwrap())
        .collect();
    let operations: u64 = slices.iter().map(|slice| slice.operations).sum();
    let sum = 3.0 * rates[0] + 3.0 * rates[1] + 2.0 * rates[2];
    assert!((sum - to_f64(operations)).abs() < 1.0, "{sum} {operations}");
}

#[test]
fn runs_without_scripts_are_refused_in_this_form() {
    let plan = crate::fixture::plan();
    let problem = (FORM.check)(&plan).unwrap_err();
    assert!(problem.hint.unwrap().contains("deltabench pgbench"));
    assert!((FORM.check)(&crate::pgbench_fixture::plan(&[1])).is_ok());
    assert_eq!(pgbench(&plan, &[], None), "");
}

#[test]
fn the_grid_on_a_terminal_names_segments_and_fits() {
    let plan = plan(&CLIENTS);
    let (comparison, context) = analysed(&plan, &slices(&plan));
    for width in [60, 80, 120] {
        let options = TerminalOptions { width, ..OPTIONS };
        let text = render(Format::Text, &comparison, &plan, &context, options);
        let from = text.find("pgbench-select-only by clients").unwrap();
        let to = text.find("placebo").unwrap_or(text.len()).max(from);
        for line in text[from..to].lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let text = render(Format::Text, &comparison, &plan, &context, OPTIONS);
    let from = text.find("pgbench-select-only by clients").unwrap();
    let to = text.find("mix by clients").unwrap();
    insta::assert_snapshot!(&text[from..to]);
}

#[test]
fn the_grids_of_a_study_in_every_form() {
    let plan = plan(&[1, 4, 16]);
    let (comparison, context) = analysed(&plan, &slices(&plan));
    let run = deltabench_compare::study::StudyRun {
        run: "r1",
        plan: &plan,
        comparison: &comparison,
        results: &context.results,
        host: "box",
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    };
    let study = deltabench_compare::study::study(&[run]).unwrap();
    let form = |format| render_study(format, &study, &StudyContext::default(), OPTIONS);
    let markdown = form(StudyFormat::Markdown);
    assert!(markdown.contains("### pgbench-select-only by clients: throughput, ops/s"));
    assert!(markdown.contains("### mix by clients: latency, 99th percentile, ms"));
    let csv = form(StudyFormat::Csv);
    let columns = csv.lines().next().unwrap().split(',').count();
    let grid: Vec<&str> = csv.lines().filter(|line| line.contains(",grid,")).collect();
    assert_eq!(
        grid.len(),
        2 * 3 * 2 * 5,
        "mixes, clients, servers, figures"
    );
    assert!(grid.iter().all(|line| line.split(',').count() == columns));
    let json: Value = serde_json::from_str(&form(StudyFormat::Json(
        deltabench_report::JsonVersion::One,
    )))
    .unwrap();
    let point = &json["grids"][0]["columns"][1]["points"][2];
    assert_eq!(point["clients"], 16);
    assert_eq!(point["verdict"], "regression");
    let [low, high] = [0, 1].map(|end| point["throughput"]["ci95"][end].as_f64().unwrap());
    assert!((low..high).contains(&point["throughput"]["value"].as_f64().unwrap()));
    // Sixteen clients that are always busy, 5 % below 40,000/s.
    let average = point["latency_us_average"]["value"].as_f64().unwrap();
    assert!(
        (average / (16e6 / 38_000.0) - 1.0).abs() < 0.02,
        "{average}"
    );
    assert_eq!(
        json["grids"][0]["columns"][0]["segments_text"],
        "linear to 4, flat from 16"
    );
    let html = form(StudyFormat::Html);
    assert!(html.contains("data-grid=\"0\"") && html.contains("\"grids\":["));
}

#[test]
fn a_point_of_another_placement_is_no_part_of_the_line_and_it_is_said_once() {
    let mut plan = plan(&[1, 4, 16]);
    plan.placement_single = Placement::SameCore;
    let (comparison, mut context) = analysed(&plan, &slices(&plan));
    let json = Format::Json(JsonVersion::Two);
    let json = render(json, &comparison, &plan, &context, OPTIONS);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["grids"][0]["apart"], serde_json::json!([1]));
    let times = |text: String| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.matches("no segment and no scaleup connects them")
            .count()
    };
    let form = |format, context: &_| render(format, &comparison, &plan, context, OPTIONS);
    assert_eq!(times(form(Format::Text, &context)), 2, "below each grid");
    assert_eq!(times(notes_text(&comparison, &plan, &context, 100)), 0);
    let page = form(Format::Html, &context);
    assert!(page.contains("\"apart\":[1]"));
    context.figures.grids_in_text = false;
    assert_eq!(times(form(Format::Markdown, &context)), 1);
    assert_eq!(times(notes_text(&comparison, &plan, &context, 100)), 1);
    assert_eq!(times(form(Format::Html, &context)), 2, "beside each grid");
}

#[test]
fn the_run_tells_scripts_on_the_page_and_in_json() {
    let plan = plan(&[1, 4]);
    let (comparison, context) = analysed(&plan, &slices(&plan));
    let json = render(
        Format::Json(deltabench_report::JsonVersion::One),
        &comparison,
        &plan,
        &context,
        OPTIONS,
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    let scripts = json["pgbench"].as_array().unwrap();
    assert_eq!(scripts.len(), 2 * 2 * 3, "servers, clients, scripts");
    let own = scripts
        .iter()
        .find(|one| one["script"] == "own.sql")
        .unwrap();
    assert!((own["share"].as_f64().unwrap() - 0.75).abs() < 0.01);
    assert_eq!(own["weight"], 3);
    assert_eq!(json["grids"].as_array().unwrap().len(), setup().mixes.len());
    let html = render(Format::Html, &comparison, &plan, &context, OPTIONS);
    for text in [
        "pgbench: scripts",
        "own.sql",
        "id=\"course-chart\"",
        "linear to 4",
    ] {
        assert!(html.contains(text), "{text}");
    }
    if let Some(path) = std::env::var_os("DELTABENCH_PAGE") {
        let plan = crate::pgbench_fixture::plan(&CLIENTS);
        let (comparison, context) = analysed(&plan, &slices(&plan));
        let html = render(Format::Html, &comparison, &plan, &context, OPTIONS);
        std::fs::write(path, html).unwrap();
    }
}

#[test]
fn transactions_that_fail_are_told_with_their_reason_for_a_lone_base_too() {
    let mut plan = plan(&[1]);
    let mut slices = slices(&plan);
    for (place, slice) in slices.iter_mut().enumerate() {
        slice.failed = slice.operations;
        slice.errors = vec![ErrorCount {
            sqlstate: "22012".to_owned(),
            count: slice.failed,
            first_message: format!("division by\nzero, number {place}"),
        }];
    }
    let told = |plan: &Plan, slices: &[Slice], format| {
        let (comparison, context) = analysed(plan, slices);
        let text = render(format, &comparison, plan, &context, OPTIONS);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    plan.servers.retain(|server| server.role != Role::Candidate);
    let servers = u32::try_from(plan.servers.len()).unwrap();
    let mut alone: Vec<Slice> = slices
        .into_iter()
        .filter(|one| one.server < ServerId(servers))
        .collect();
    for format in [Format::Text, Format::Markdown] {
        let text = told(&plan, &alone, format);
        assert!(text.contains("50.0 % of the operations"), "{text}");
        assert!(text.contains("22012: division by zero, number"), "{text}");
    }
    assert!(told(&plan, &alone, Format::Html).contains("22012: division by zero"));
    // One in a thousand and fewer is what retries and luck do.
    for slice in &mut alone {
        slice.failed = slice.operations / 2000;
    }
    assert!(!told(&plan, &alone, Format::Text).contains("division"));
}
