//! What a crosscheck found, as it is written.

use super::finding::{Finding, WorkloadFinding};
use super::pgbench::{PgbenchFound, PgbenchRequest, ScriptCrosscheck};
use super::tables::TablesFound;
use super::{CrosscheckRequest, WorkloadCrosscheck};
use deltabench_compare::thresholds::CROSSCHECK_MARGIN;
use deltabench_model::work::pgbench::QueryMode;
use serde::Serialize;

/// Name and version of the JSON of a crosscheck with sysbench.
const FORMAT: (&str, u32) = ("deltabench.crosscheck", 2);

/// Those of one with pgbench.
const PGBENCH_FORMAT: (&str, u32) = ("deltabench.crosscheck-pgbench", 2);

/// What pgbench is called.
const PGBENCH: &str = "pgbench";

/// A crosscheck with sysbench's scripts.
#[derive(Debug, Serialize)]
pub struct CrosscheckJson {
    format: &'static str,
    version: u32,
    pub target: String,
    /// What sysbench says it is.
    pub sysbench: String,
    pub table_rows: u64,
    pub rounds: u32,
    /// Seed of keys and orders.
    pub seed: u64,
    /// How far the sides may be apart in speed.
    pub margin: f64,
    pub rows: Vec<WorkloadFinding>,
}

impl CrosscheckJson {
    /// What came out of a request.
    pub fn of(request: &CrosscheckRequest, sysbench: String, rows: &[WorkloadCrosscheck]) -> Self {
        Self {
            format: FORMAT.0,
            version: FORMAT.1,
            target: request.installation.resolved.clone(),
            sysbench,
            table_rows: request.rows,
            rounds: request.rounds,
            seed: request.seed,
            margin: CROSSCHECK_MARGIN,
            rows: rows.iter().map(WorkloadFinding::of).collect(),
        }
    }

    /// The workloads that have a script, with what was found of them.
    pub fn findings(&self) -> impl Iterator<Item = (&WorkloadFinding, &Finding)> {
        self.rows
            .iter()
            .filter_map(|row| row.finding.as_ref().map(|finding| (row, finding)))
    }

    /// Whether SQL or counts differ anywhere.
    pub fn differs(&self) -> bool {
        self.rows.iter().any(WorkloadFinding::differs)
    }
}

/// A crosscheck with pgbench.
#[derive(Debug, Serialize)]
pub struct PgbenchCrosscheckJson {
    format: &'static str,
    version: u32,
    pub target: String,
    /// What pgbench says it is.
    pub pgbench: String,
    pub program: String,
    /// Scale factor of the tables.
    pub scale: u32,
    pub rounds: u32,
    /// Seed of keys and orders.
    pub seed: u64,
    /// The tables, in each way to make them.
    pub tables: Vec<TablesJson>,
    /// The scripts, in each mode and at each number of clients.
    pub rows: Vec<ScriptFinding>,
}

/// One way to make the tables.
#[derive(Debug, Serialize)]
pub struct TablesJson {
    /// What was typed after `pgbench`.
    pub pgbench_arguments: String,
    pub same_facts: u64,
    /// Facts that only ours have.
    pub only_deltabench: Vec<String>,
    /// Facts that only pgbench's have.
    pub only_pgbench: Vec<String>,
    /// Why they were not made.
    pub skipped: Option<String>,
}

/// One script, mode and number of clients.
#[derive(Debug, Serialize)]
pub struct ScriptFinding {
    pub script: &'static str,
    /// How statements were sent.
    pub mode: QueryMode,
    pub clients: u32,
    /// What one would type after `pgbench`.
    pub pgbench_arguments: String,
    /// Clients divided by throughput, as pgbench computes its average; ours and theirs.
    pub latency_ms: [f64; 2],
    #[serde(flatten)]
    pub finding: Finding,
}

impl PgbenchCrosscheckJson {
    /// What came out of a request.
    pub fn of(request: &PgbenchRequest, pgbench: String, found: PgbenchFound) -> Self {
        Self {
            format: PGBENCH_FORMAT.0,
            version: PGBENCH_FORMAT.1,
            target: request.installation.resolved.clone(),
            pgbench,
            program: found.program.display().to_string(),
            scale: request.scale,
            rounds: request.rounds,
            seed: request.seed,
            tables: found.tables.into_iter().map(TablesJson::of).collect(),
            rows: found.rows.iter().map(ScriptFinding::of).collect(),
        }
    }

    /// Whether tables, SQL or counts differ anywhere.
    pub fn differs(&self) -> bool {
        self.tables.iter().any(TablesJson::differ)
            || self.rows.iter().any(|row| row.finding.differs())
    }
}

impl TablesJson {
    fn of(found: TablesFound) -> Self {
        Self {
            pgbench_arguments: format!("-i {}", found.arguments.join(" ")),
            same_facts: found.same,
            only_deltabench: found.own_only,
            only_pgbench: found.peer_only,
            skipped: found.skipped,
        }
    }

    /// Whether one side has a fact that the other has not.
    pub fn differ(&self) -> bool {
        !(self.only_deltabench.is_empty() && self.only_pgbench.is_empty())
    }
}

impl ScriptFinding {
    fn of(row: &ScriptCrosscheck) -> Self {
        let finding = Finding::of(&row.measured, PGBENCH);
        let latency = |rate: f64| f64::from(row.clients) * 1e3 / rate.max(1e-9);
        Self {
            script: row.script,
            mode: row.mode,
            clients: row.clients,
            pgbench_arguments: row.measured.arguments.join(" "),
            latency_ms: [
                latency(finding.operations_per_second.own),
                latency(finding.operations_per_second.peer),
            ],
            finding,
        }
    }
}
