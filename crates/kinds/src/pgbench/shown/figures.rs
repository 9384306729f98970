//! What a report shows of pgbench's scripts beside the verdicts.

use super::text::{ScriptResult, pgbench, script_rows};
use deltabench_compare::absolute::CellResult;
use deltabench_model::figures::{Block, Figures, PageSection};
use deltabench_model::json::known;
use deltabench_model::plan::Plan;
use deltabench_model::table::{Cell, Column, Line, Look, Table};
use deltabench_report::words;
use serde_json::{Value, json};

const LEGEND: &str = "All transactions, disturbed or not; latency is the mean with the standard \
                      deviation of single transactions, no interval. Shares are of all transactions, \
                      failed and skipped ones included.";

/// The scripts on the page and in files, and pgbench's own form.
pub fn figures(plan: &Plan, results: &[CellResult]) -> Figures {
    let rows = script_rows(plan, results);
    let mut figures = Figures {
        formats: vec![("pgbench", pgbench(plan, results, None))],
        grids_in_text: true,
        ..Figures::default()
    };
    if rows.is_empty() {
        return figures;
    }
    figures
        .json
        .push(("pgbench", rows.iter().map(json).collect()));
    figures.page.push(PageSection {
        id: "scripts",
        heading: "pgbench: scripts",
        name: None,
        blocks: vec![
            Block::Legend(vec![LEGEND.into()]),
            Block::Table(table(&rows)),
        ],
    });
    figures
}

/// A script in the JSON report (`docs/reference/report.schema.json`).
fn json(row: &ScriptResult) -> Value {
    let tally = &row.tally;
    known(json!({
        "cell": row.cell,
        "workload": row.workload,
        "clients": row.clients,
        "server": row.server_id,
        "server_name": row.server,
        "script": row.script,
        "weight": row.weight,
        "share": row.share,
        "transactions": tally.operations,
        "tps": words::finite(row.tps),
        "latency_us_average": row.latency_us.and_then(|(mean, _)| words::finite(mean)),
        "latency_us_stddev": row.latency_us.and_then(|(_, stddev)| words::finite(stddev)),
        "failed": row.failed,
        "serialization_failures": tally.serialization_failures,
        "deadlock_failures": tally.deadlock_failures,
        "retried": tally.retried,
        "retries": tally.retries,
        "skipped": tally.skipped,
        "late": tally.late,
    }))
}

const HEADS: [&str; 9] = [
    "server",
    "weight",
    "share",
    "transactions",
    "tps",
    "latency, ms",
    "failed",
    "retried",
    "skipped",
];

fn table(rows: &[ScriptResult]) -> Table {
    Table {
        corner: "script".to_owned(),
        columns: HEADS.map(Column::of).to_vec(),
        lines: rows.iter().map(row).collect(),
        row_noun: "script",
        label: "results of each script".to_owned(),
        look: Look {
            class: "costs",
            ..Look::default()
        },
        ..Table::default()
    }
}

fn row(row: &ScriptResult) -> Line {
    let clients = words::plural(u64::from(row.clients), "client");
    let ms = |us: f64| words::figure(us / 1e3);
    let latency = row.latency_us;
    let latency = latency.map(|(mean, stddev)| format!("{} ± {}", ms(mean), ms(stddev)));
    let texts = [
        row.server.clone(),
        row.weight.to_string(),
        format!("{:.1} %", 100.0 * row.share),
        row.tally.operations.to_string(),
        words::figure(row.tps),
        latency.unwrap_or_default(),
        row.failed.to_string(),
        row.tally.retried.to_string(),
        row.tally.skipped.to_string(),
    ];
    let name = format!("{}, {clients}: {}", row.workload, row.script);
    Line::row(name, texts.map(Cell::from).to_vec())
}
