use crate::fixture::{comparison, context, plan};
use deltabench_compare::comparison::{Comparison, Metric, Verdict, VerdictCounts};
use deltabench_compare::{Earlier, EarlierRun, foretell};
use deltabench_model::plan::{Plan, PlannedServer, ServerId};
use deltabench_report::{TerminalOptions, csv, html, json, markdown, summary, terminal};
use serde_json::Value;

fn at_width(width: usize) -> String {
    terminal(
        &comparison(),
        &plan(),
        &context(),
        TerminalOptions {
            width,
            colour: false,
            verbose: false,
        },
    )
}

#[test]
fn the_table_on_a_terminal_of_80_columns() {
    insta::assert_snapshot!(at_width(80));
}

#[test]
fn the_table_on_a_terminal_of_120_columns() {
    insta::assert_snapshot!(at_width(120));
}

#[test]
fn the_table_on_a_terminal_of_140_columns() {
    insta::assert_snapshot!(at_width(140));
}

#[test]
fn the_table_on_a_terminal_of_160_columns_has_bars() {
    insta::assert_snapshot!(at_width(160));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 76, 80, 100, 110, 120, 134, 140, 160, 200] {
        for line in at_width(width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    let plain = at_width(140);
    let coloured = terminal(
        &comparison(),
        &plan(),
        &context(),
        TerminalOptions {
            width: 140,
            colour: true,
            verbose: false,
        },
    );
    assert!(coloured.contains("\u{1b}[31m▼\u{1b}[0m range-covered-si"));
    let mut stripped = coloured;
    for code in [
        "\u{1b}[31m",
        "\u{1b}[32m",
        "\u{1b}[33m",
        "\u{1b}[2m",
        "\u{1b}[0m",
    ] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn the_json_report_of_a_run() {
    let mut comparison = comparison();
    // The regression and the open cell, with two blocks each, show every field.
    comparison
        .cells
        .retain(|cell| ["range-covered-si", "update-index"].contains(&cell.workload.as_str()));
    comparison.placebo_cells.truncate(1);
    for cell in comparison
        .cells
        .iter_mut()
        .chain(&mut comparison.placebo_cells)
    {
        cell.metrics
            .iter_mut()
            .for_each(|metric| metric.blocks.truncate(2));
    }
    insta::assert_snapshot!(json(
        deltabench_report::JsonVersion::One,
        &comparison,
        &plan(),
        &context()
    ));
}

#[test]
fn the_markdown_of_a_run() {
    insta::assert_snapshot!(markdown(&comparison(), &plan(), &context()));
}

#[test]
fn csv_has_a_line_for_every_metric_and_as_many_fields_as_its_header() {
    let text = csv(&comparison(), &plan(), &context());
    let mut lines = text.lines();
    let fields = lines.next().unwrap().split(',').count();
    let lines: Vec<&str> = lines.collect();
    // 16 cells with the placebo's, 4 metrics each, one of which is missing.
    assert_eq!(lines.len(), 63);
    assert!(
        lines
            .iter()
            .filter(|line| !line.contains('"'))
            .all(|line| line.split(',').count() == fields)
    );
    assert!(
        lines[16].starts_with("range-covered-si,range,1,postgres:18.6,regression,"),
        "{}",
        lines[16]
    );
    assert!(lines[16].contains(",throughput,ops/s,6890,"));
}

/// The columns of this name and those after it, of the line of a metric of the first candidate's cell.
fn fields_from(text: &str, cell: &str, metric: &str, first: &str) -> Vec<String> {
    let header = text.lines().next().unwrap().split(',');
    let place = header.rev().position(|column| column == first).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with(cell) && line.contains(&format!(",{metric},")))
        .unwrap();
    // From the end, because reasons have commas.
    let mut fields: Vec<String> = line
        .rsplit(',')
        .take(place + 1)
        .map(str::to_owned)
        .collect();
    fields.reverse();
    fields
}

#[test]
fn csv_has_another_hour_and_what_it_is_known_from() {
    let (throughput, cpu) = ("throughput", "server_cpu_us_per_op");
    let other_hour = |comparison: &Comparison, metric: &str| {
        let text = csv(comparison, &plan(), &context());
        let fields = fields_from(&text, "range-covered-si", metric, "another_hour_ci95_low");
        fields.into_iter().take(4).collect::<Vec<_>>()
    };
    let mut unknown = comparison();
    for metric in [throughput, cpu] {
        assert_eq!(other_hour(&unknown, metric), ["", "", "", ""]);
    }
    foretell(&mut unknown, |_, _| Earlier::default());
    let assumed = unknown;
    // This hour the cell is slower by 4.6 % to 6.4 %.
    let found = other_hour(&assumed, throughput);
    let ends: Vec<f64> = found[..2].iter().map(|end| end.parse().unwrap()).collect();
    let hours = assumed.cells[4].metrics[0].hours.as_ref().unwrap();
    assert_eq!(hours.another.ci95, Some((ends[0], ends[1])));
    assert!(
        (ends[0] - 0.924_290).abs() < 1e-6 && (ends[1] - 0.967_983).abs() < 1e-6,
        "{ends:?}"
    );
    assert_eq!(found[2..], ["prior", "true"]);
    assert_eq!(other_hour(&assumed, cpu)[2..], ["prior", "true"]);
    assert_eq!(other_hour(&assumed, "latency_us_p99"), ["", "", "", ""]);
    let mut measured = comparison();
    // Two blocks of each earlier run, and hours that hardly differ.
    let runs: Vec<EarlierRun> = { [-0.057, -0.056, -0.058, -0.055, -0.057, -0.056] }
        .iter()
        .zip(1..)
        .map(|(centre, hour)| EarlierRun {
            hour,
            blocks: vec![centre - 0.004, centre + 0.004],
        })
        .collect();
    foretell(&mut measured, |_, metric| match metric {
        Metric::Throughput => Earlier {
            pair: runs.clone(),
            ..Earlier::default()
        },
        _ => Earlier::default(),
    });
    let found = other_hour(&measured, throughput);
    assert!(
        found[0].starts_with("0.93600") && found[1].starts_with("0.95444"),
        "{found:?}"
    );
    assert_eq!(found[2..], ["pair", "false"]);
}

#[test]
fn csv_has_the_verdict_of_each_metric_beside_that_of_the_cell() {
    let mut comparison = comparison();
    let slow_end = comparison.cells[0].metrics.last_mut().unwrap();
    assert_eq!(slow_end.metric, Metric::LatencyP99);
    slow_end.verdict = Some(Verdict::Regression);
    let text = csv(&comparison, &plan(), &context());
    let verdict = |metric: &str| {
        let fields = fields_from(&text, "point-query,point,1,", metric, "metric_verdict");
        fields[0].clone()
    };
    assert_eq!(verdict("throughput"), "no-change");
    assert_eq!(verdict("latency_us_p99"), "regression");
    assert_eq!(verdict("latency_us_p50"), "");
    let line = text.lines().find(|line| line.contains(",latency_us_p99,"));
    let of_cell = "point-query,point,1,postgres:18.6,no-change,";
    assert!(line.unwrap().starts_with(of_cell), "{line:?}");
}

/// What a run cut short gives: one block, hence no interval, and numbers that are none.
fn barely_measured() -> Comparison {
    let mut comparison = comparison();
    for cell in comparison
        .cells
        .iter_mut()
        .chain(&mut comparison.placebo_cells)
    {
        cell.verdict = Verdict::Inconclusive;
        for metric in &mut cell.metrics {
            (metric.ratio.ci95, metric.ratio.ci90) = (None, None);
            metric.blocks.truncate(1);
        }
        cell.metrics[0].ratio.estimate = f64::NAN;
        cell.metrics[0].blocks = vec![f64::NAN];
        cell.metrics[1].base = f64::INFINITY;
        cell.series.truncate(3);
        cell.series[0].throughput = f64::NEG_INFINITY;
    }
    comparison.placebo.as_mut().unwrap().throughput.estimate = f64::NAN;
    comparison.counts = VerdictCounts {
        inconclusive: 8,
        ..VerdictCounts::default()
    };
    comparison
}

#[test]
fn what_is_not_a_number_is_never_printed_as_one() {
    let (comparison, plan, context) = (barely_measured(), plan(), context());
    let options = TerminalOptions {
        width: 140,
        colour: false,
        verbose: false,
    };
    let page = crate::page::without_script(&html(&comparison, &plan, &context));
    let texts = [
        terminal(&comparison, &plan, &context, options),
        json(
            deltabench_report::JsonVersion::One,
            &comparison,
            &plan,
            &context,
        ),
        csv(&comparison, &plan, &context),
        markdown(&comparison, &plan, &context),
        // What people read; the data of its charts have null for what is not known.
        page.split("<script id=\"data\"").next().unwrap().to_owned(),
    ];
    for text in texts {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            assert!(
                !["nan", "inf", "null"].contains(&word.to_lowercase().as_str()),
                "{word} in {text}"
            );
        }
    }
    let value: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &comparison,
        &plan,
        &context,
    ))
    .unwrap();
    let throughput = &value["cells"][0]["metrics"]["throughput"];
    assert!(throughput.get("ratio").is_none() && throughput.get("ci95").is_none());
    assert_eq!(throughput["base"], 21_400.0);
}

#[test]
fn a_run_without_placebo_or_cells_says_so() {
    let mut comparison = comparison();
    comparison.placebo = None;
    comparison.placebo_cells.clear();
    assert!(summary(&comparison, &plan()).ends_with("; no placebo; host ok"));
    comparison.cells.clear();
    comparison.host_ok = false;
    let line = summary(&comparison, &plan());
    assert_eq!(
        line,
        "postgres:18.6 vs postgres:17.11: nothing measured; no placebo; host unfit"
    );
    let value: Value = serde_json::from_str(&json(
        deltabench_report::JsonVersion::One,
        &comparison,
        &plan(),
        &context(),
    ))
    .unwrap();
    assert!(value.get("placebo").is_none());
    assert_eq!(
        (&value["host"]["ok"], &value["exit_code"]),
        (&false.into(), &5.into())
    );
}

/// A second candidate that is everywhere equal to the first.
pub fn two_candidates() -> (Comparison, Plan) {
    let (mut comparison, mut plan) = (comparison(), plan());
    let mut third: PlannedServer = plan.servers[2].clone();
    third.installation.resolved = "path:/opt/patched".to_owned();
    plan.servers.push(third);
    for mut cell in comparison.cells.clone() {
        cell.candidate = ServerId(3);
        cell.candidate_name = "path:/opt/patched".to_owned();
        comparison.cells.push(cell);
    }
    comparison
        .cells
        .sort_by_key(|cell| (cell.cell, cell.candidate));
    (comparison, plan)
}

#[test]
fn several_candidates_have_a_sentence_and_a_table_each() {
    let (comparison, plan) = two_candidates();
    let text = terminal(
        &comparison,
        &plan,
        &context(),
        TerminalOptions {
            width: 120,
            colour: false,
            verbose: false,
        },
    );
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(count("path:/opt/patched vs postgres:17.11: 1 slower"), 1);
    assert_eq!(
        text.lines()
            .filter(|line| *line == "path:/opt/patched vs postgres:17.11")
            .count(),
        1
    );
    assert_eq!((count("▼ range-covered-si"), count("  workload")), (2, 2));
}
