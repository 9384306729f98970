//! What runs said about their placebos.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::plan::CellId;
use rusqlite::{Row, TransactionBehavior};

/// A relative value (placebo / base) with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedRatio {
    /// The estimate; 1.0 is equal.
    pub estimate: f64,
    /// Interval; absent with fewer than two blocks.
    pub ci95: Option<(f64, f64)>,
    /// Two-sided p of "both are equal": the interval at a level holds 1.0 exactly if p is at least 1 − level.
    /// Absent as the interval is, and from versions that did not keep it.
    pub p: Option<f64>,
}

/// What a run said about the placebo of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceboResult {
    /// The cell in the run's plan.
    pub cell: CellId,
    pub workload: String,
    pub clients: u32,
    /// State of its tables: `fresh` or `aged`.
    pub state: String,
    /// The verdict, as in files: `regression`, `no-change`, …
    pub verdict: String,
    /// Throughput; absent without a block to compare.
    pub throughput: Option<RecordedRatio>,
    /// Server CPU per operation; absent where the host cannot tell.
    pub server_cpu: Option<RecordedRatio>,
    pub blocks: u32,
    /// How the cell's measurement ended: `fixed`, `sequential`, `precision`.
    pub stopping: String,
    /// The host it was measured on.
    pub host: String,
    /// When it was analysed, milliseconds since 1970.
    pub finished_unix_ms: i64,
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerLine {
    /// The run that it comes from.
    pub run: String,
    /// Version of deltabench that judged it.
    pub written_by: String,
    pub result: PlaceboResult,
}

impl Store {
    /// Records what a run said about its placebo, in place of what it said in an earlier analysis. Nothing is
    /// recorded, and an earlier analysis stays, if `results` is empty.
    ///
    /// The earlier lines remain in the file, which is append-only; [`Store::placebo_results`] does not give
    /// them. Errors: `Misuse` while a visit is open, `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_placebo_results(
        &mut self,
        run: &str,
        results: &[PlaceboResult],
    ) -> Result<(), StoreError> {
        if self.visit.is_some() {
            return Err(self.misuse("the placebo of a run with an open visit".to_owned()));
        }
        let run = self.run_id(run)?;
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, "add to the placebo ledger in", source);
        let step = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let analysis: i64 = step
            .query_row(NEXT_ANALYSIS, [run], |row| row.get(0))
            .map_err(fail)?;
        for result in results {
            let throughput = columns(result.throughput);
            let cpu = columns(result.server_cpu);
            step.execute(
                INSERT,
                rusqlite::params![
                    run,
                    analysis,
                    result.cell.0,
                    result.workload,
                    result.clients,
                    result.state,
                    result.verdict,
                    throughput.0,
                    throughput.1,
                    throughput.2,
                    cpu.0,
                    cpu.1,
                    cpu.2,
                    result.throughput.and_then(|ratio| ratio.p),
                    result.server_cpu.and_then(|ratio| ratio.p),
                    result.blocks,
                    result.stopping,
                    result.host,
                    result.finished_unix_ms,
                    env!("CARGO_PKG_VERSION"),
                ],
            )
            .map_err(fail)?;
        }
        step.commit().map_err(fail)
    }

    /// The ledger: what every run said about its placebo in its latest analysis, oldest run first.
    ///
    /// Errors: `Sqlite`.
    pub fn placebo_results(&self) -> Result<Vec<LedgerLine>, StoreError> {
        self.collect(SELECT, [], read_line)
    }
}

impl Store {
    /// The hosts that the ledger names, each once.
    ///
    /// Errors: `Sqlite`.
    pub fn placebo_hosts(&self) -> Result<Vec<String>, StoreError> {
        let sql = "select distinct host from placebo_result order by host";
        self.collect(sql, [], |row| row.get(0))
    }
}

const NEXT_ANALYSIS: &str =
    "select coalesce(max(analysis) + 1, 0) from placebo_result where run = ?1";

const INSERT: &str = "insert into placebo_result (run, analysis, cell, workload, clients, state, verdict, \
    throughput_ratio, throughput_low, throughput_high, cpu_ratio, cpu_low, cpu_high, throughput_p, cpu_p, \
    blocks, stopping, host, finished_unix_ms, written_by) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
    ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";

const SELECT: &str = "select r.name, p.written_by, p.cell, p.workload, p.clients, p.state, p.verdict, \
    p.throughput_ratio, p.throughput_low, p.throughput_high, p.throughput_p, p.cpu_ratio, p.cpu_low, \
    p.cpu_high, p.cpu_p, p.blocks, p.stopping, p.host, p.finished_unix_ms \
    from placebo_result p join run r on r.id = p.run \
    where p.analysis = (select max(analysis) from placebo_result where run = p.run) \
    order by r.started_unix_ms, r.id, p.cell";

type Columns = (Option<f64>, Option<f64>, Option<f64>);

fn columns(ratio: Option<RecordedRatio>) -> Columns {
    let ends = ratio.and_then(|ratio| ratio.ci95);
    (
        ratio.map(|ratio| ratio.estimate),
        ends.map(|(low, _)| low),
        ends.map(|(_, high)| high),
    )
}

fn read_line(row: &Row<'_>) -> rusqlite::Result<LedgerLine> {
    Ok(LedgerLine {
        run: row.get(0)?,
        written_by: row.get(1)?,
        result: PlaceboResult {
            cell: CellId(row.get(2)?),
            workload: row.get(3)?,
            clients: row.get(4)?,
            state: row.get(5)?,
            verdict: row.get(6)?,
            throughput: ratio(row, 7)?,
            server_cpu: ratio(row, 11)?,
            blocks: row.get(15)?,
            stopping: row.get(16)?,
            host: row.get(17)?,
            finished_unix_ms: row.get(18)?,
        },
    })
}

/// Estimate, low and high end, and p from this column on.
fn ratio(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RecordedRatio>> {
    let estimate: Option<f64> = row.get(column)?;
    let low: Option<f64> = row.get(column + 1)?;
    let ci95 = low.zip(row.get(column + 2)?);
    let p = row.get(column + 3)?;
    Ok(estimate.map(|estimate| RecordedRatio { estimate, ci95, p }))
}
