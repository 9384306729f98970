//! `deltabench pgbench`: pgbench's scripts on its tables, on two servers or more.

mod elsewhere;
pub mod scripts;

use crate::Failure;
use crate::arguments::{Conditions, Shape};
use crate::compare::{Sides, carry_out};
use crate::config::Config;
use crate::request::{source, without_workloads};
use clap::{Args, ValueEnum};
use deltabench_model::pgbench::{PartitionMethod, PgbenchSetup, PgbenchTables, QueryMode};
use deltabench_model::plan::DataSize;
use deltabench_model::problem::Problem;
use deltabench_run::planning::Request;
use deltabench_workload::pgbench::is_variable_name;
use deltabench_workload::pgbench::tables::{ACCOUNTS, SCALE_MAX, table_names};
use elsewhere::Elsewhere;
use scripts::{Scripts, mixes};
use std::path::PathBuf;

/// `deltabench pgbench`.
#[derive(Debug, Args)]
pub struct PgbenchArguments {
    /// The side that the others are compared with, for example postgres:17
    pub base: String,
    /// The sides in question; without one the base is measured alone
    pub candidates: Vec<String>,
    /// A first answer within 10 minutes: short visits, 14 blocks
    #[arg(long)]
    pub quick: bool,
    /// What is sent
    #[command(flatten)]
    pub scripts: Scripts,
    /// Concurrent connections; a list makes a cell for each
    #[arg(
        short,
        long = "client",
        alias = "clients",
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1"
    )]
    pub clients: Vec<u32>,
    /// How statements are sent
    #[arg(short = 'M', long, value_enum, default_value_t = ModeWord::Simple)]
    pub protocol: ModeWord,
    /// A variable of the scripts; may be repeated
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// Open loop: so many transactions per second over all clients of a server
    #[arg(short = 'R', long, value_name = "PER SECOND")]
    pub rate: Option<f64>,
    /// Count transactions that take longer; with --rate skip those that would begin so late
    #[arg(short = 'L', long, value_name = "MS")]
    pub latency_limit: Option<f64>,
    /// Most tries of a transaction that fails for serialization or a deadlock; 0: no end but the latency
    /// limit
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub max_tries: u32,
    /// The tables
    #[command(flatten)]
    pub tables: TableArguments,
    /// How exactly, and how
    #[command(flatten)]
    pub shape: Shape,
    /// What is held on all servers
    #[command(flatten)]
    pub conditions: Conditions,
    /// Options of pgbench that have another name here, or no place
    #[command(flatten)]
    pub elsewhere: Elsewhere,
}

/// The tables that scripts work on; they are made as `pgbench -i` makes them.
#[derive(Debug, Args)]
pub struct TableArguments {
    /// 100,000 accounts, 10 tellers and a branch each; 0: none of pgbench's tables
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(SCALE_MAX))
    )]
    pub scale: u32,
    /// Share of a page that is filled, percent
    #[arg(short = 'F', long, value_name = "PERCENT", default_value_t = 100)]
    pub fillfactor: u32,
    /// Foreign keys between the tables
    #[arg(long)]
    pub foreign_keys: bool,
    /// Partitions of pgbench_accounts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub partitions: u32,
    /// How it is partitioned
    #[arg(long, value_enum, default_value_t = PartitionWord::Range)]
    pub partition_method: PartitionWord,
    /// Unlogged tables
    #[arg(long)]
    pub unlogged_tables: bool,
    /// The server makes the rows (`pgbench -I G`)
    #[arg(long)]
    pub server_side: bool,
    /// SQL of your own that makes tables, after those of pgbench
    #[arg(long, value_name = "FILE")]
    pub init_sql: Option<PathBuf>,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeWord {
    /// As text with the values in it.
    Simple,
    /// Parsed, bound and executed every time.
    Extended,
    /// Parsed once on each connection.
    Prepared,
}

impl From<ModeWord> for QueryMode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Simple => Self::Simple,
            ModeWord::Extended => Self::Extended,
            ModeWord::Prepared => Self::Prepared,
        }
    }
}

/// How accounts are partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartitionWord {
    /// By ranges of `aid`.
    Range,
    /// By its hash.
    Hash,
}

/// Measures pgbench's scripts.
pub fn pgbench(arguments: &PgbenchArguments, config: &Config) -> Result<u8, Failure> {
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    let request = request(arguments).map_err(Failure::Refused)?;
    carry_out(request, &sides, &arguments.shape.ending, config)
}

fn request(arguments: &PgbenchArguments) -> Result<Request, Problem> {
    arguments.elsewhere.check()?;
    let tables = tables(&arguments.tables)?;
    Ok(Request {
        rate: arguments.rate,
        clients: arguments.clients.clone(),
        data: DataSize {
            tables: 1,
            rows: u64::from(tables.scale.max(1)) * ACCOUNTS,
        },
        pgbench: Some(PgbenchSetup {
            mixes: mixes(&arguments.scripts)?,
            tables,
            mode: arguments.protocol.into(),
            variables: variables(&arguments.variables)?,
            max_tries: arguments.max_tries,
            latency_limit_ms: arguments.latency_limit,
            writes: arguments.scripts.writes,
        }),
        ..without_workloads(&arguments.shape, &arguments.conditions, arguments.quick)?
    })
}

/// What scripts are measured with that are given to another command than this one: each a workload of its
/// own, sent as text, on the smallest tables of pgbench's if one of them looks like it.
///
/// Errors: a file that cannot be read.
pub fn of_scripts(paths: &[&PathBuf]) -> Result<Option<PgbenchSetup>, Problem> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mixes = paths
        .iter()
        .map(|path| scripts::alone(path))
        .collect::<Result<Vec<_>, Problem>>()?;
    let mut texts = mixes.iter().flat_map(|mix| &mix.scripts);
    let names = table_names();
    let wanted = texts.any(|script| {
        let text = &script.source.text;
        names.iter().any(|table| text.contains(table))
    });
    Ok(Some(PgbenchSetup {
        mixes,
        tables: PgbenchTables {
            scale: u32::from(wanted),
            ..PgbenchTables::default()
        },
        mode: QueryMode::Simple,
        variables: Vec::new(),
        max_tries: 1,
        latency_limit_ms: None,
        writes: false,
    }))
}

fn tables(arguments: &TableArguments) -> Result<PgbenchTables, Problem> {
    let init = arguments.init_sql.as_deref().map(|path| {
        source(path).map_err(|problem| Problem {
            hint: Some(
                "--init-sql takes a file with the statements that make your tables".to_owned(),
            ),
            ..problem
        })
    });
    Ok(PgbenchTables {
        scale: arguments.scale,
        fillfactor: arguments.fillfactor,
        foreign_keys: arguments.foreign_keys,
        partitions: arguments.partitions,
        partition_method: match arguments.partition_method {
            PartitionWord::Range => PartitionMethod::Range,
            PartitionWord::Hash => PartitionMethod::Hash,
        },
        unlogged: arguments.unlogged_tables,
        server_side: arguments.server_side,
        init: init.transpose()?,
    })
}

/// `NAME=VALUE` each; names are as pgbench takes them.
fn variables(texts: &[String]) -> Result<Vec<(String, String)>, Problem> {
    let variable = |text: &String| match text.split_once('=') {
        Some((name, value)) if is_variable_name(name) && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(Problem::new(format!("`{text}` does not define a variable"))
            .detail(
                "a name has letters, digits and underscores, no digit first; a value is not empty",
            )
            .hint("write for example --define rows=1000")),
    };
    texts.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_names_and_values() {
        let read = |text: &str| variables(&[text.to_owned()]);
        assert_eq!(read("a_1=b=c").unwrap(), [("a_1".into(), "b=c".into())]);
        for bad in ["a", "=b", "a b=c", "a-b=1", "1a=1", "a="] {
            assert!(read(bad).unwrap_err().hint.unwrap().contains("--define"));
        }
    }
}
