//! `deltabench pgbench`: pgbench's scripts on its tables, on two servers or more.

pub mod arguments;
mod elsewhere;
pub mod experiment;
pub mod scripts;

use self::arguments::{PartitionWord, PgbenchArguments, TableArguments};
use crate::config::Config;
use crate::failure::Failure;
use crate::kinds::sustained::{self, Typed};
use crate::ready::{Sides, carry_out};
use crate::request::{source, without_workloads};
use deltabench_model::plan::DataSize;
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{PartitionMethod, PgbenchSetup, PgbenchTables, QueryMode};
use deltabench_run::planning::Request;
use deltabench_workload::pgbench::is_variable_name;
use deltabench_workload::pgbench::tables::{ACCOUNTS, table_names};
use scripts::mixes;
use std::path::PathBuf;

/// Measures pgbench's scripts.
pub fn pgbench(mut arguments: PgbenchArguments, config: &Config) -> Result<u8, Failure> {
    let asked = arguments.sustained.as_deref();
    sustained::configure(asked, &mut arguments.conditions).map_err(Failure::Refused)?;
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    let request = request(&arguments).map_err(Failure::Refused)?;
    carry_out(request, &sides, &arguments.shape, config)
}

fn request(arguments: &PgbenchArguments) -> Result<Request, Problem> {
    arguments.elsewhere.check()?;
    let tables = tables(&arguments.tables)?;
    let request = without_workloads(&arguments.shape, &arguments.conditions, arguments.quick)?;
    let typed = Typed::new(
        arguments.sustained.as_ref(),
        arguments.quick,
        &arguments.shape,
        (&arguments.base, &arguments.candidates),
    );
    Ok(Request {
        rate: arguments.rate,
        clients: arguments.clients.clone(),
        data: DataSize {
            tables: 1,
            rows: u64::from(tables.scale.max(1)) * ACCOUNTS,
        },
        work: Work::scripts(Some(PgbenchSetup {
            mixes: mixes(&arguments.scripts)?,
            tables,
            mode: arguments.protocol.into(),
            variables: variables(&arguments.variables)?,
            max_tries: arguments.max_tries,
            shared_names: false,
            reconnects: arguments.connect,
            latency_limit_ms: arguments.latency_limit,
            writes: arguments.scripts.writes,
        })),
        ..sustained::sustained(&typed, request)?
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
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    }))
}

fn tables(arguments: &TableArguments) -> Result<PgbenchTables, Problem> {
    if arguments.partitions == 0 && arguments.partition_method == PartitionWord::Hash {
        return Err(
            Problem::new("--partition-method has no effect without --partitions")
                .detail("pgbench_accounts has no partitions")
                .hint("add for example --partitions 10, or leave out --partition-method"),
        );
    }
    let init = arguments.init_sql.as_deref().map(|path| {
        source(path).map_err(|problem| Problem {
            hint: Some(
                "--init-sql takes a file with the statements that create your tables".to_owned(),
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
