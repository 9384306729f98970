//! pgbench: its tables, and the scripts that are sent.

use crate::cell::WorkloadSource;
use serde::{Deserialize, Serialize};

/// How the statements of a script are sent; pgbench's `-M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryMode {
    /// As text with the variables' values in it.
    #[default]
    Simple,
    /// Parsed, bound and executed every time.
    Extended,
    /// Parsed once on each connection, then bound and executed.
    Prepared,
}

impl QueryMode {
    /// All of them, as pgbench orders them.
    pub const ALL: [Self; 3] = [Self::Simple, Self::Extended, Self::Prepared];

    /// The word in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// How `pgbench_accounts` is partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionMethod {
    /// By ranges of `aid`.
    #[default]
    Range,
    Hash,
}

impl PartitionMethod {
    /// The word in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Hash => "hash",
        }
    }
}

/// The tables that `pgbench -i` makes, and what else a script needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PgbenchTables {
    /// Scale factor: 100,000 rows of `pgbench_accounts` each. 0: none of pgbench's tables.
    pub scale: u32,
    /// Fillfactor of the tables, percent, 10 to 100.
    pub fillfactor: u32,
    /// Whether there are foreign keys between them.
    pub foreign_keys: bool,
    /// Partitions of `pgbench_accounts`; 0: it is one table.
    pub partitions: u32,
    pub partition_method: PartitionMethod,
    pub unlogged: bool,
    /// Whether the server makes the rows (`-I G`) and not the client.
    pub server_side: bool,
    /// SQL of the user's that makes tables of their own; it runs after pgbench's are there, before vacuum.
    pub init: Option<WorkloadSource>,
}

impl Default for PgbenchTables {
    fn default() -> Self {
        Self {
            scale: 1,
            fillfactor: 100,
            foreign_keys: false,
            partitions: 0,
            partition_method: PartitionMethod::Range,
            unlogged: false,
            server_side: false,
            init: None,
        }
    }
}

/// A script and how often it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgbenchScript {
    /// Its text; of a built-in one the file is called as pgbench calls it, for example
    /// `<builtin: TPC-B (sort of)>`.
    pub source: WorkloadSource,
    /// How often it is drawn, relative to the others; pgbench's `@`.
    pub weight: u32,
}

/// The scripts of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PgbenchMix {
    /// Name of the workload, for example `pgbench-select-only`.
    pub name: String,
    /// What a transaction can be; one of them is drawn for each.
    pub scripts: Vec<PgbenchScript>,
}

/// All that a run does with pgbench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PgbenchSetup {
    pub tables: PgbenchTables,
    pub mixes: Vec<PgbenchMix>,
    /// How statements are sent.
    pub mode: QueryMode,
    /// Variables by name; pgbench's `-D`.
    pub variables: Vec<(String, String)>,
    /// Most tries of a transaction that failed for serialization or a deadlock; 1: none is tried again. 0:
    /// any number, until the latency limit.
    pub max_tries: u32,
    /// Whether each transaction has a connection of its own; pgbench's `-C`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnects: bool,
    /// Whether statements with the same text share a name on a server, and so a plan. pgbench prepares each
    /// by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_names: bool,
    /// Transactions that take longer count as late, milliseconds; with a rate those that would begin so late
    /// are skipped.
    pub latency_limit_ms: Option<f64>,
    /// Whether every script changes data, whatever its statements look like: a function may.
    #[serde(default)]
    pub writes: bool,
}

impl PgbenchSetup {
    /// Whether a workload is one of its mixes.
    pub fn has(&self, workload: &str) -> bool {
        self.mixes.iter().any(|mix| mix.name == workload)
    }
}
