//! `deltabench ledger`: how often this host's placebos were called different.

use crate::arguments::results::LedgerArguments;
use crate::config::Config;
use crate::console::{check_writable, is_stdout, print_stdout, say, width, write_file};
use crate::failure::Failure;
use crate::store::{open, store_problem};
use crate::text::{paragraph, table};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_compare::ledger::{Entry, FalseAlarmRate, summarise};
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, index, to_f64};
use deltabench_observe::HostFacts;
use deltabench_store::{LedgerLine, PlaceboResult, RecordedRatio};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.ledger", 1);

/// Runs named on the terminal; the JSON names all.
const RUNS_NAMED: usize = 10;

/// Below this p of "slower and faster are equally likely" the page says that a side is preferred. Small,
/// because the ledger is looked at again and again as it grows.
const LOPSIDED: f64 = 0.01;

/// Widest line.
const WIDEST: usize = 100;

/// What a run's placebo came to, for the store: judged now, on this host.
pub fn results(comparison: &Comparison, plan: &Plan) -> Vec<PlaceboResult> {
    let host = this_host();
    let finished_unix_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|now| i64::try_from(now.as_millis()).ok())
        .unwrap_or(0);
    let stopping = match comparison.stopping {
        Stopping::Fixed => "fixed",
        Stopping::Sequential { .. } => "sequential",
        Stopping::Precision { .. } => "precision",
    };
    let result = |cell: &CellComparison| {
        let recorded = |metric| {
            let found = cell.metrics.iter().find(|found| found.metric == metric)?;
            Some(RecordedRatio {
                estimate: found.ratio.estimate,
                ci95: found.ratio.ci95,
            })
        };
        PlaceboResult {
            cell: cell.cell,
            workload: cell.workload.clone(),
            clients: cell.clients,
            state: plan
                .cells
                .get(index(u64::from(cell.cell)))
                .map_or_else(String::new, |planned| planned.state.word().to_owned()),
            verdict: cell.verdict.word().to_owned(),
            throughput: recorded(Metric::Throughput),
            server_cpu: recorded(Metric::ServerCpuPerOperation),
            blocks: cell.blocks,
            stopping: stopping.to_owned(),
            host: host.clone(),
            finished_unix_ms,
        }
    };
    comparison.placebo_cells.iter().map(result).collect()
}

/// What had been said by the end of a run about the placebos of its host, over all workloads; `None` before
/// the first. Later runs do not change it, nor does the host that asks: a report stays the same.
///
/// `ended_unix_ms` counts for a run that is not in the ledger.
pub fn so_far(lines: &[LedgerLine], run: &str, ended_unix_ms: i64) -> Option<FalseAlarmRate> {
    let mut own = lines.iter().filter(|line| line.run == run);
    let (host, end) = own.next().map_or_else(
        || (this_host(), ended_unix_ms),
        |line| (line.result.host.clone(), line.result.finished_unix_ms),
    );
    let until = lines
        .iter()
        .filter(|line| line.result.finished_unix_ms <= end);
    let until: Vec<LedgerLine> = until.cloned().collect();
    let counted = Counted::of(&until, &host, false);
    counted.rows.last().filter(|row| row.total > 0).cloned()
}

/// How this host is called in the ledger: by its name and kind, so that a machine that got another processor
/// is another host.
pub fn this_host() -> String {
    let facts = HostFacts::read();
    let parts = [
        deltabench_proc::host::host_name().unwrap_or_default(),
        facts.cpu_model.unwrap_or_default(),
        format!("{} cores", facts.online_cores),
    ];
    let known: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    known.join(", ")
}

/// The ledger, counted.
struct Counted<'a> {
    host: Option<&'a str>,
    rows: Vec<FalseAlarmRate>,
    runs: Vec<RunRow<'a>>,
    /// Cells of other hosts, which do not count.
    elsewhere: u64,
    /// Cells with too few blocks to be called different, which do not count.
    too_short: u64,
}

/// A run that the ledger comes from.
#[derive(Serialize)]
struct RunRow<'a> {
    run: &'a str,
    cells: u64,
    flagged: u64,
    deltabench_version: &'a str,
    finished_unix_ms: i64,
}

impl<'a> Counted<'a> {
    fn of(lines: &'a [LedgerLine], host: &'a str, all_hosts: bool) -> Self {
        let (here, elsewhere): (Vec<&LedgerLine>, Vec<&LedgerLine>) = lines
            .iter()
            .partition(|line| all_hosts || line.result.host == host);
        // A cell with too few blocks for a verdict cannot raise a false alarm: counting it would make the
        // rate look smaller than it is.
        let (judged, short): (Vec<_>, Vec<_>) = here
            .into_iter()
            .filter_map(|line| Some((line, verdict(&line.result.verdict)?)))
            .partition(|(line, _)| index(u64::from(line.result.blocks)) >= MIN_BLOCKS);
        let entries: Vec<Entry> = judged
            .iter()
            .map(|(line, verdict)| Entry {
                workload: label(&line.result),
                verdict: *verdict,
            })
            .collect();
        let mut runs: Vec<RunRow<'_>> = Vec::new();
        for (line, verdict) in &judged {
            let flagged = u64::from(is_flagged(*verdict));
            match runs.last_mut().filter(|row| row.run == line.run) {
                Some(row) => {
                    row.cells += 1;
                    row.flagged += flagged;
                }
                None => runs.push(RunRow {
                    run: &line.run,
                    cells: 1,
                    flagged,
                    deltabench_version: &line.written_by,
                    finished_unix_ms: line.result.finished_unix_ms,
                }),
            }
        }
        Self {
            host: (!all_hosts).then_some(host),
            rows: summarise(&entries),
            runs,
            elsewhere: count(elsewhere.len()),
            too_short: count(short.len()),
        }
    }
}

fn is_flagged(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Regression | Verdict::Improvement)
}

fn verdict(word: &str) -> Option<Verdict> {
    [
        Verdict::Regression,
        Verdict::Improvement,
        Verdict::NoChange,
        Verdict::Inconclusive,
        Verdict::Unfit,
    ]
    .into_iter()
    .find(|verdict| verdict.word() == word)
}

fn label(result: &PlaceboResult) -> String {
    let mut label = result.workload.clone();
    if result.state == "aged" {
        label.push_str(", aged");
    }
    if result.clients != 1 {
        label.push_str(&format!(", {} clients", result.clients));
    }
    label
}

/// Prints the ledger.
pub fn ledger(arguments: &LedgerArguments, config: &Config) -> Result<u8, Failure> {
    if let Some(path) = arguments.json.as_ref().filter(|path| !is_stdout(path)) {
        check_writable(path).map_err(Failure::Refused)?;
    }
    let store = open(config)?;
    let lines = store.placebo_results().map_err(store_problem)?;
    let host = this_host();
    let counted = Counted::of(&lines, &host, arguments.all_hosts);
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
fn page(counted: &Counted<'_>, width: usize) -> Vec<String> {
    let where_from = counted.host.unwrap_or("all hosts of this lab");
    let mut lines = paragraph("", &format!("placebos on {where_from}"), width);
    lines.push(String::new());
    match counted.rows.last().filter(|all| all.total > 0) {
        None => lines.extend(paragraph(
            "",
            "the ledger is empty: every run adds what it said about its placebo; fill it on purpose with \
             `deltabench calibrate postgres:18 --runs 10`",
            width,
        )),
        Some(all) => {
            lines.extend(rate_table(&counted.rows));
            lines.push(String::new());
            lines.extend(paragraph("", &rate(all), width));
            lines.extend(paragraph("", &symmetry(all), width));
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
        "false alarms: {} of {} placebo cells, {:.1} %; at most {:.1} % (exact upper 95 % bound)",
        all.flagged(),
        all.total,
        100.0 * to_f64(all.flagged()) / to_f64(all.total),
        100.0 * all.upper95
    )
}

fn symmetry(all: &FalseAlarmRate) -> String {
    let counted = format!(
        "symmetry: {} called slower, {} called faster (p = {:.2})",
        all.regressions, all.improvements, all.symmetry_p
    );
    if all.symmetry_p < LOPSIDED {
        return format!(
            "{counted}: one side is preferred, which is an error of the set-up and not chance"
        );
    }
    counted
}

fn run_lines(runs: &[RunRow<'_>]) -> Vec<String> {
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

/// The file.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    deltabench_version: &'static str,
    /// The host that is counted; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    /// Each workload, with its clients where there are more than one.
    workloads: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<Row<'a>>,
    runs: &'a [RunRow<'a>],
    /// Cells of other hosts.
    elsewhere: u64,
    /// Cells with too few blocks to be called different.
    too_short: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a str>,
    cells: u64,
    flagged: u64,
    regressions: u64,
    improvements: u64,
    /// Exact one-sided upper 95 % bound of the rate of false alarms, as a share.
    rate_upper95: f64,
    /// Two-sided p of "slower and faster are equally likely".
    symmetry_p: f64,
}

fn json(counted: &Counted<'_>) -> Result<String, Failure> {
    let row = |row: &'_ FalseAlarmRate| Row {
        workload: None,
        cells: row.total,
        flagged: row.flagged(),
        regressions: row.regressions,
        improvements: row.improvements,
        rate_upper95: row.upper95,
        symmetry_p: row.symmetry_p,
    };
    let document = Document {
        format: FORMAT.0,
        version: FORMAT.1,
        deltabench_version: env!("CARGO_PKG_VERSION"),
        host: counted.host,
        workloads: counted
            .rows
            .iter()
            .filter_map(|of| {
                Some(Row {
                    workload: Some(of.workload.as_deref()?),
                    ..row(of)
                })
            })
            .collect(),
        all: counted.rows.last().filter(|all| all.total > 0).map(row),
        runs: &counted.runs,
        elsewhere: counted.elsewhere,
        too_short: counted.too_short,
    };
    serde_json::to_string_pretty(&document).map_err(|error| {
        Failure::Failed(Problem::new("cannot write JSON").detail(error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(run: &str, host: &str, workload: &str, verdict: &str, blocks: u32) -> LedgerLine {
        LedgerLine {
            run: run.to_owned(),
            written_by: "0.1.0".to_owned(),
            result: PlaceboResult {
                cell: 0,
                workload: workload.to_owned(),
                clients: 1,
                state: "fresh".to_owned(),
                verdict: verdict.to_owned(),
                throughput: None,
                server_cpu: None,
                blocks,
                stopping: "fixed".to_owned(),
                host: host.to_owned(),
                finished_unix_ms: 7,
            },
        }
    }

    fn lines() -> Vec<LedgerLine> {
        let mut lines = vec![
            line("r1", "here", "point-query", "no-change", 14),
            line("r1", "here", "hot-points", "regression", 14),
            line("r2", "here", "point-query", "inconclusive", 14),
            line("r2", "here", "hot-points", "inconclusive", 3),
            line("r3", "there", "point-query", "improvement", 14),
        ];
        lines[2].result.clients = 4;
        lines
    }

    #[test]
    fn this_host_is_counted_and_others_only_when_asked() {
        let lines = lines();
        let here = Counted::of(&lines, "here", false);
        let all = here.rows.last().unwrap();
        assert_eq!((all.total, all.flagged()), (3, 1));
        assert_eq!((here.elsewhere, here.too_short), (1, 1));
        let names: Vec<_> = here
            .rows
            .iter()
            .map(|row| row.workload.as_deref())
            .collect();
        let labels = ["hot-points", "point-query", "point-query, 4 clients"];
        assert_eq!(names[..3], labels.map(Some));
        let everywhere = Counted::of(&lines, "here", true);
        assert_eq!(everywhere.rows.last().unwrap().total, 4);
        assert_eq!(everywhere.elsewhere, 0);
    }

    #[test]
    fn a_report_counts_what_was_known_when_its_run_ended() {
        let mut lines = lines();
        lines[2].result.finished_unix_ms = 20;
        lines[3].result.finished_unix_ms = 20;
        let total = |run, ended| so_far(&lines, run, ended).map(|row| row.total);
        assert_eq!(total("r1", 99), Some(2), "r2 ended later");
        assert_eq!(total("r2", 0), Some(3));
        assert_eq!(total("r3", 0), Some(1), "its own host, not this one");
    }

    #[test]
    fn the_page_says_rate_bound_symmetry_and_runs() {
        let lines = lines();
        let page = page(&Counted::of(&lines, "here", false), 100);
        assert_eq!(page[0], "placebos on here");
        for wanted in [
            "workload                cells  flagged  slower  faster  rate at most",
            "false alarms: 1 of 3 placebo cells, 33.3 %; at most 86.5 % (exact upper 95 % bound)",
            "symmetry: 1 called slower, 0 called faster (p = 1.00)",
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
    fn an_empty_ledger_says_how_to_fill_it() {
        let page = page(&Counted::of(&[], "here", false), 100).join(" ");
        assert!(page.contains("deltabench calibrate"), "{page}");
        let text = json(&Counted::of(&[], "here", false)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value.get("all").is_none());
        assert_eq!(value["workloads"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn a_preferred_side_is_called_an_error() {
        let lines: Vec<LedgerLine> = (0..12)
            .map(|_| line("r1", "here", "scan", "regression", 14))
            .collect();
        let page = page(&Counted::of(&lines, "here", false), 200).join("\n");
        assert!(page.contains("one side is preferred"), "{page}");
        let row = Counted::of(&lines, "here", false);
        let value: serde_json::Value = serde_json::from_str(&json(&row).unwrap()).unwrap();
        assert_eq!(value["all"]["flagged"], 12);
        assert_eq!(value["runs"][0]["cells"], 12);
    }
}
