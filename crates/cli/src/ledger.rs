//! `deltabench ledger`: how often this host's placebos were called different.

use crate::arguments::results::LedgerArguments;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, to_json, width, write_file};
use crate::failure::Failure;
use crate::store::{open, store_problem};
use crate::text::{paragraph, table};
use deltabench_compare::ledger::{Coverage, FalseAlarmRate, LEVELS};
use deltabench_lab::{CountedRun, Placebos};
use deltabench_model::json::known;
use deltabench_model::units::to_f64;
use deltabench_observe::machine_name;
use deltabench_report::{coverage_json, metric_word, narrow_words};
use serde_json::{Value, json};

/// Runs named on the terminal; the JSON names all.
const RUNS_NAMED: usize = 10;

/// Widest line.
const WIDEST: usize = 100;

/// Prints the ledger.
pub fn ledger(arguments: &LedgerArguments, config: &Config) -> Result<u8, Failure> {
    if let Some(path) = arguments.json.as_ref().filter(|path| !is_stdout(path)) {
        check_writable(path).map_err(Failure::Refused)?;
    }
    let store = open(config)?;
    let lines = store.placebo_results().map_err(store_problem)?;
    let host = machine_name();
    let counted = Placebos::count(&lines, (!arguments.all_hosts).then_some(host.as_str()));
    let page = page(&counted, width().min(WIDEST)).join("\n");
    match &arguments.json {
        Some(path) if is_stdout(path) => {
            say(&page);
            print_stdout(&json(&counted)?)?;
        }
        Some(path) => {
            print_stdout(&page)?;
            write_file(path, &json(&counted)?)?;
        }
        None => print_stdout(&page)?,
    }
    Ok(0)
}

/// The page for the terminal.
fn page(counted: &Placebos<'_>, width: usize) -> Vec<String> {
    let where_from = counted.host.unwrap_or("all hosts of this lab");
    let mut lines = paragraph("", &format!("placebos on {where_from}"), width);
    lines.push(String::new());
    match counted.rows.last().filter(|all| all.total > 0) {
        None => lines.extend(paragraph(
            "",
            "the ledger is empty: every run adds the verdicts on its placebo; to fill it now, run \
             `deltabench calibrate postgres:18 --runs 10`",
            width,
        )),
        Some(all) => {
            lines.extend(rate_table(&counted.rows));
            lines.push(String::new());
            lines.extend(paragraph("", &rate(all), width));
            lines.extend(paragraph("", &symmetry(all), width));
            lines.extend(intervals(counted, width));
            lines.push(String::new());
            lines.extend(run_lines(&counted.runs));
        }
    }
    let left_out = [
        (
            counted.too_short,
            "with too few blocks to be called different",
        ),
        (counted.elsewhere, "of other hosts (--all-hosts)"),
    ];
    for (cells, why) in left_out.into_iter().filter(|(cells, _)| *cells > 0) {
        lines.push(format!("not counted: {cells} cells {why}"));
    }
    lines
}

fn rate_table(rows: &[FalseAlarmRate]) -> Vec<String> {
    let head = [
        "workload",
        "cells",
        "flagged",
        "slower",
        "faster",
        "rate at most",
    ];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| {
        vec![
            row.workload.clone().unwrap_or_else(|| "all".to_owned()),
            row.total.to_string(),
            row.flagged().to_string(),
            row.regressions.to_string(),
            row.improvements.to_string(),
            format!("{:.1} %", 100.0 * row.upper95),
        ]
    }));
    table(&cells)
}

fn rate(all: &FalseAlarmRate) -> String {
    format!(
        "false alarms: {} of {} placebo cells, {:.1} %; at most {:.1} % (upper 95 % bound; the run is \
         the unit)",
        all.flagged(),
        all.total,
        100.0 * to_f64(all.flagged()) / to_f64(all.total),
        100.0 * all.upper95
    )
}

fn symmetry(all: &FalseAlarmRate) -> String {
    let counted = format!(
        "symmetry: {} called slower, {} called faster (p = {:.2} over runs)",
        all.regressions, all.improvements, all.symmetry_p
    );
    if all.prefers_a_side() {
        return format!(
            "{counted}: one side is preferred, so the set-up has an error; this is not chance"
        );
    }
    counted
}

/// How often the intervals of placebos hold 0.
fn intervals(counted: &Placebos<'_>, width: usize) -> Vec<String> {
    let known = &counted.coverage;
    if known.is_empty() {
        return Vec::new();
    }
    let levels = LEVELS.map(|level| format!("{:.0} % interval", 100.0 * level));
    let head = ["holds 0".to_owned(), "cells".to_owned()];
    let mut rows = vec![head.into_iter().chain(levels).collect()];
    rows.extend(known.chunk_by(|a, b| a.metric == b.metric).map(|levels| {
        let named = |row: &Coverage| [metric_word(row.metric).to_owned(), row.cells.to_string()];
        let named = levels.first().into_iter().flat_map(named);
        named.chain(levels.iter().map(held)).collect()
    }));
    let mut lines = vec![String::new()];
    lines.extend(table(&rows));
    lines.push(String::new());
    if let Some(narrow) = narrow_words(known) {
        lines.extend(paragraph("", &narrow, width));
    }
    lines.extend(paragraph("", &blocks_used(counted), width));
    lines
}

/// `81 % [72, 88]`.
fn held(row: &Coverage) -> String {
    format!(
        "{:.0} % [{:.0}, {:.0}]",
        100.0 * to_f64(row.held) / to_f64(row.cells),
        100.0 * row.ci95.low,
        100.0 * row.ci95.high
    )
}

/// What the intervals are made of.
fn blocks_used(counted: &Placebos<'_>) -> String {
    let all = counted.rows.last().map_or(0, |all| all.total);
    let used = "each interval is that of all blocks of its cell";
    match counted.may_stop {
        0 => used.to_owned(),
        some => format!(
            "{used}; {some} of {all} cells end by what their candidates say, and that changes these \
             shares by one or two points"
        ),
    }
}

fn run_lines(runs: &[CountedRun<'_>]) -> Vec<String> {
    let mut rows = vec![["run", "cells", "flagged"].map(str::to_owned).to_vec()];
    rows.extend(runs.iter().rev().take(RUNS_NAMED).map(|row| {
        vec![
            row.run.to_owned(),
            row.cells.to_string(),
            row.flagged.to_string(),
        ]
    }));
    let mut lines = table(&rows);
    if runs.len() > RUNS_NAMED {
        lines.push(format!("and {} earlier runs", runs.len() - RUNS_NAMED));
    }
    lines
}

fn json(counted: &Placebos<'_>) -> Result<String, Failure> {
    let rate = |workload: Option<&str>, row: &FalseAlarmRate| {
        known(json!({
            "workload": workload,
            "cells": row.total,
            "flagged": row.flagged(),
            "regressions": row.regressions,
            "improvements": row.improvements,
            // Exact one-sided upper 95 % bound of the rate of false alarms, as a share.
            "rate_upper95": row.upper95,
            // Two-sided p of "slower and faster are equally likely".
            "symmetry_p": row.symmetry_p,
        }))
    };
    let workloads = counted.rows.iter();
    let workloads = workloads.filter_map(|of| Some(rate(Some(of.workload.as_deref()?), of)));
    let all = counted.rows.last().filter(|all| all.total > 0);
    let runs = counted.runs.iter().map(|run| {
        json!({
            "run": run.run,
            "cells": run.cells,
            "flagged": run.flagged,
            "deltabench_version": run.written_by,
            "finished_unix_ms": run.finished_unix_ms,
        })
    });
    to_json(&known(json!({
        "format": "deltabench.ledger",
        "version": 2,
        "deltabench_version": env!("CARGO_PKG_VERSION"),
        "host": counted.host,
        "workloads": workloads.collect::<Value>(),
        "all": all.map(|all| rate(None, all)),
        "coverage": coverage_json(&counted.coverage),
        "may_stop": counted.may_stop,
        "runs": runs.collect::<Value>(),
        "elsewhere": counted.elsewhere,
        "too_short": counted.too_short,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_store::RecordedRatio;
    use deltabench_testkit::ledger::{ledger_line, ledger_lines};

    #[test]
    fn the_page_says_rate_bound_symmetry_and_runs() {
        let lines = ledger_lines();
        let page = page(&Placebos::count(&lines, Some("here")), 100);
        assert_eq!(page[0], "placebos on here");
        for wanted in [
            "workload                cells  flagged  slower  faster  rate at most",
            "false alarms: 1 of 3 placebo cells, 33.3 %; at most 94.6 % (upper 95 % bound; the run is the \
             unit)",
            "symmetry: 1 called slower, 0 called faster (p = 1.00 over runs)",
            "r1       2        1",
            "not counted: 1 cells with too few blocks to be called different",
            "not counted: 1 cells of other hosts (--all-hosts)",
        ] {
            assert!(
                page.iter().any(|line| line == wanted),
                "{wanted}: {page:#?}"
            );
        }
        let newest = page.iter().position(|line| line.starts_with("r2")).unwrap();
        assert!(page[newest + 1].starts_with("r1"), "newest first");
    }

    #[test]
    fn the_page_says_how_often_intervals_hold_zero_and_where_they_are_too_narrow() {
        let mut lines: Vec<_> = (0..100)
            .map(|at| ledger_line(&format!("r{}", at % 20), "here", "scan", "no-change", 14))
            .collect();
        for (at, line) in lines.iter_mut().enumerate() {
            line.result.throughput = Some(RecordedRatio {
                estimate: 1.0,
                ci95: Some((0.99, 1.01)),
                p: Some(if at < 81 { 0.6 } else { 0.01 }),
            });
        }
        lines[0].result.stopping = "sequential".to_owned();
        let counted = Placebos::count(&lines, Some("here"));
        let page = page(&counted, 200);
        for wanted in [
            "holds 0     cells  50 % interval  80 % interval  95 % interval",
            "throughput    100  81 % [72, 88]  81 % [72, 88]  81 % [72, 88]",
            "throughput: the 95 % intervals contained 0 in 81 of 100 placebo cells of 20 runs [72, 88]: \
             intervals on this host are too narrow",
            "each interval is that of all blocks of its cell; 1 of 100 cells end by what their \
             candidates say, and that changes these shares by one or two points",
        ] {
            assert!(
                page.iter().any(|line| line == wanted),
                "{wanted}: {page:#?}"
            );
        }
        let value: serde_json::Value = serde_json::from_str(&json(&counted).unwrap()).unwrap();
        assert_eq!(value["coverage"].as_array().unwrap().len(), 3);
        assert_eq!(value["coverage"][2]["too_narrow"], true);
    }

    #[test]
    fn an_empty_ledger_says_how_to_fill_it() {
        let page = page(&Placebos::count(&[], Some("here")), 100).join(" ");
        assert!(page.contains("deltabench calibrate"), "{page}");
        let text = json(&Placebos::count(&[], Some("here"))).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value.get("all").is_none());
        assert_eq!(value["workloads"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn a_preferred_side_is_called_an_error() {
        let lines: Vec<_> = (0..12)
            .map(|at| ledger_line(&format!("r{at}"), "here", "scan", "regression", 14))
            .collect();
        let page = page(&Placebos::count(&lines, Some("here")), 200).join("\n");
        assert!(page.contains("one side is preferred"), "{page}");
        let row = Placebos::count(&lines, Some("here"));
        let value: serde_json::Value = serde_json::from_str(&json(&row).unwrap()).unwrap();
        assert_eq!(value["all"]["flagged"], 12);
        assert_eq!(value["runs"].as_array().unwrap().len(), 12);
        // Cells of one run may all have its luck.
        let lines: Vec<_> = (0..12)
            .map(|_| ledger_line("r1", "here", "scan", "regression", 14))
            .collect();
        let row = Placebos::count(&lines, Some("here"));
        assert_eq!(row.runs[0].cells, 12);
        assert!(!row.rows.last().unwrap().prefers_a_side());
    }
}
