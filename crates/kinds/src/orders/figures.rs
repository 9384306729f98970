//! What a report shows of order entry beside the verdicts: what the mix came to on each server.

use super::setup::{MIX, workload_of};
use crate::pgbench::shown::{self, ScriptResult, script_rows};
use deltabench_compare::absolute::CellResult;
use deltabench_model::figures::{Block, Figures, PageSection};
use deltabench_model::json::known;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::table::{Cell, Column, Line, Look, Table};
use deltabench_report::words;
use deltabench_workload::orders::scripts::Transaction;
use serde_json::{Value, json};

const HEADING: &str = "Order entry: the mix";

const LEGEND: &str = "All transactions, disturbed or not. The columns of the transactions are mean latencies \
                      in ms, from the first try to the last, without interval; those that failed are left \
                      out. Verdicts are in the rows of the workloads. A new order that the client takes back \
                      (1 in 100) counts as done.";

/// What the mix came to on a server, at a number of clients.
struct MixResult<'a> {
    cell: CellId,
    server_id: ServerId,
    server: &'a str,
    clients: u32,
    /// In the order of [`Transaction::ALL`].
    scripts: Vec<&'a ScriptResult>,
}

impl MixResult<'_> {
    fn tps(&self) -> f64 {
        self.scripts.iter().map(|script| script.tps).sum()
    }

    fn of(&self, transaction: Transaction) -> Option<&ScriptResult> {
        let mut all = Transaction::ALL.into_iter().zip(&self.scripts);
        all.find_map(|(other, script)| (other == transaction).then_some(*script))
    }

    fn new_orders_per_minute(&self) -> Option<f64> {
        self.of(Transaction::NewOrder)
            .map(|script| 60.0 * script.tps)
    }

    fn failed(&self) -> u64 {
        self.scripts.iter().map(|script| script.failed).sum()
    }

    fn retried(&self) -> u64 {
        self.scripts.iter().map(|script| script.tally.retried).sum()
    }
}

/// The mix in every form, and each script as pgbench's are shown.
pub(super) fn figures(plan: &Plan, results: &[CellResult]) -> Figures {
    let rows = script_rows(plan, results);
    let mixes = mixes(&rows);
    let mut figures = shown::figures(plan, results);
    // A table over one number of clients has a line for each cell, and says nothing new.
    let first = plan.cells.first().map(|cell| cell.clients);
    figures.grids_in_text = plan.cells.iter().any(|cell| Some(cell.clients) != first);
    for section in &mut figures.page {
        section.heading = "Order entry: transactions";
    }
    if mixes.is_empty() {
        return figures;
    }
    let table = table(&mixes);
    let titled = Block::Table(Table {
        title: HEADING.to_owned(),
        reading: ": mean latency in ms of each transaction".to_owned(),
        corner: String::new(),
        ..table.clone()
    });
    let empty = || Block::Text(String::new());
    figures.terminal = vec![empty(), titled.clone(), empty()];
    figures.markdown = vec![titled];
    figures
        .json
        .push(("orders", mixes.iter().map(json).collect()));
    let section = PageSection {
        id: "mix",
        heading: HEADING,
        name: Some("mix"),
        blocks: vec![Block::Legend(vec![LEGEND.into()]), Block::Table(table)],
    };
    figures.page.insert(0, section);
    figures
}

/// The rows of scripts, those of one cell on one server together.
fn mixes(rows: &[ScriptResult]) -> Vec<MixResult<'_>> {
    let name = workload_of(MIX);
    let mut mixes: Vec<MixResult<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.workload == name) {
        let place = (row.cell, row.server_id);
        match mixes
            .last_mut()
            .filter(|last| (last.cell, last.server_id) == place)
        {
            Some(last) => last.scripts.push(row),
            None => mixes.push(MixResult {
                cell: row.cell,
                server_id: row.server_id,
                server: &row.server,
                clients: row.clients,
                scripts: vec![row],
            }),
        }
    }
    mixes
}

/// The mix on a server in the JSON report (`docs/reference/report.schema.json`).
fn json(mix: &MixResult<'_>) -> Value {
    let transactions = Transaction::ALL.into_iter().zip(&mix.scripts);
    let transactions = transactions.map(|(transaction, script)| {
        known(json!({
            "transaction": transaction.name(),
            "share": script.share,
            "tps": words::finite(script.tps),
            "latency_us_average": script.latency_us.and_then(|(mean, _)| words::finite(mean)),
            "failed": script.failed,
            "retried": script.tally.retried,
        }))
    });
    known(json!({
        "cell": mix.cell,
        "clients": mix.clients,
        "server": mix.server_id,
        "server_name": mix.server,
        "tps": words::finite(mix.tps()),
        "new_orders_per_minute": mix.new_orders_per_minute().and_then(words::finite),
        "transactions": transactions.collect::<Vec<_>>(),
    }))
}

fn table(mixes: &[MixResult<'_>]) -> Table {
    let heads = ["tps", "new orders/min"]
        .into_iter()
        .chain(Transaction::ALL.map(Transaction::name))
        .chain(["failed", "retried"]);
    Table {
        corner: "server".to_owned(),
        columns: heads.map(Column::of).collect(),
        lines: mixes.iter().map(line).collect(),
        row_noun: "server",
        label: "results of the mix on each server".to_owned(),
        look: Look {
            class: "costs",
            ..Look::default()
        },
        ..Table::default()
    }
}

fn line(mix: &MixResult<'_>) -> Line {
    let mut texts = vec![
        words::figure(mix.tps()),
        mix.new_orders_per_minute()
            .map_or(String::new(), words::figure),
    ];
    texts.extend(mix.scripts.iter().map(|script| {
        let mean = script.latency_us.map(|(mean, _)| words::figure(mean / 1e3));
        mean.unwrap_or_default()
    }));
    texts.extend([mix.failed().to_string(), mix.retried().to_string()]);
    let clients = words::plural(u64::from(mix.clients), "client");
    let cells = texts.into_iter().map(Cell::from).collect();
    Line::row(format!("{}, {clients}", mix.server), cells)
}
