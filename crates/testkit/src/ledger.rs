//! Lines of a ledger.

use deltabench_model::plan::CellId;
use deltabench_store::{LedgerLine, PlaceboResult};

/// A placebo of a run, in one cell.
pub fn ledger_line(
    run: &str,
    host: &str,
    workload: &str,
    verdict: &str,
    blocks: u32,
) -> LedgerLine {
    LedgerLine {
        run: run.to_owned(),
        written_by: "0.1.0".to_owned(),
        result: PlaceboResult {
            cell: CellId(0),
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

/// Placebos of three runs on two hosts: two of them called different, one with too few blocks.
pub fn ledger_lines() -> Vec<LedgerLine> {
    let mut lines = vec![
        ledger_line("r1", "here", "point-query", "no-change", 14),
        ledger_line("r1", "here", "hot-points", "regression", 14),
        ledger_line("r2", "here", "point-query", "inconclusive", 14),
        ledger_line("r2", "here", "hot-points", "inconclusive", 3),
        ledger_line("r3", "there", "point-query", "improvement", 14),
    ];
    lines[2].result.clients = 4;
    lines
}
