//! Scripts of pgbench: their tables on a server, and what can be refused or told before anything starts. They
//! are measured as [`crate::workloads`] are, and beside them.

mod findings;
mod loading;
mod plans;
mod script;
pub mod shown;

pub(crate) use findings::findings;
pub(crate) use loading::PgbenchData;
pub use loading::make_tables;
pub(crate) use plans::plans;

use deltabench_model::installation::Installation;
use deltabench_model::plan::CellOrder;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup, PgbenchTables};
use deltabench_workload::pgbench::tables;

/// Most partitions; more take longer to plan than to read.
const PARTITIONS_MAX: u32 = 10_000;

/// Refuses what no server could do as asked.
///
/// Errors: tables that are missing or cannot be, limits that mean nothing.
pub(crate) fn check(setup: &PgbenchSetup, order: CellOrder) -> Result<(), Problem> {
    if order == CellOrder::Published {
        return Err(
            Problem::new("the published order does not contain pgbench's scripts")
                .hint("measure them without --order published"),
        );
    }
    for mix in &setup.mixes {
        check_mix(mix, &setup.tables)?;
    }
    check_tables(&setup.tables)?;
    loading::init_statements(setup)?;
    if setup
        .latency_limit_ms
        .is_some_and(|limit| limit.is_nan() || limit <= 0.0)
    {
        return Err(Problem::new("no transaction can meet a latency limit of 0")
            .hint("use --latency-limit 50, in milliseconds"));
    }
    Ok(())
}

fn check_mix(mix: &PgbenchMix, wanted: &PgbenchTables) -> Result<(), Problem> {
    let missing = mix.scripts.iter().find_map(|script| {
        // What a statement that works on these tables has in it.
        let table = tables::table_names()
            .into_iter()
            .find(|table| script.source.text.contains(table))?;
        Some((script, table))
    });
    match missing {
        Some((script, table)) if wanted.scale == 0 && wanted.init.is_none() => Err(Problem::new(
            format!("{} needs {table}", script.source.file),
        )
        .detail("at scale 0 pgbench has no tables, and you gave no SQL that creates tables")
        .hint("use --scale 1 or more, or --init-sql FILE")),
        _ => Ok(()),
    }
}

fn check_tables(tables: &PgbenchTables) -> Result<(), Problem> {
    let PgbenchTables {
        scale,
        fillfactor,
        partitions,
        ..
    } = tables;
    if !(10..=100).contains(fillfactor) {
        return Err(
            Problem::new(format!("a fillfactor of {fillfactor} is out of range"))
                .hint("use --fillfactor between 10 and 100"),
        );
    }
    if *partitions > PARTITIONS_MAX {
        return Err(
            Problem::new(format!("{partitions} partitions are too many"))
                .hint(format!("use --partitions {PARTITIONS_MAX} or fewer")),
        );
    }
    if *scale == 0 && (*partitions > 0 || tables.foreign_keys) {
        return Err(
            Problem::new("at scale 0 there is no table to partition or to refer to")
                .hint("use --scale 1 or more"),
        );
    }
    Ok(())
}

/// Refuses tables that a server's version cannot have.
///
/// Errors: what it lacks.
pub(crate) fn check_server(setup: &PgbenchSetup, server: &Installation) -> Result<(), Problem> {
    tables::check(&setup.tables, server.version_num).map_err(|problem| Problem {
        error: format!("{}: {}", server.resolved, problem.error),
        ..problem
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use deltabench_model::plan::WorkloadSource;
    use deltabench_model::work::pgbench::{PgbenchScript, QueryMode};

    pub(crate) fn source(text: &str) -> WorkloadSource {
        WorkloadSource {
            file: "my.sql".to_owned(),
            text: text.to_owned(),
        }
    }

    /// One mix of one script, on tables of scale 1.
    pub(crate) fn setup(text: &str) -> PgbenchSetup {
        PgbenchSetup {
            tables: PgbenchTables::default(),
            mixes: vec![PgbenchMix {
                name: "mine".to_owned(),
                scripts: vec![PgbenchScript {
                    source: source(text),
                    weight: 1,
                }],
            }],
            mode: QueryMode::Simple,
            variables: Vec::new(),
            max_tries: 1,
            shared_names: false,
            reconnects: false,
            latency_limit_ms: None,
            writes: false,
        }
    }

    fn refusal(change: impl FnOnce(&mut PgbenchSetup)) -> String {
        let mut setup = setup("SELECT abalance FROM pgbench_accounts WHERE aid = 1;");
        change(&mut setup);
        check(&setup, CellOrder::Drawn).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_loaded_or_met_is_refused_with_a_way_out() {
        let mine = setup("SELECT count(*) FROM pgbench_history;");
        assert_eq!(check(&mine, CellOrder::Drawn), Ok(()));
        assert!(check(&mine, CellOrder::Published).is_err());
        assert!(refusal(|s| s.tables.scale = 0).contains("my.sql needs pgbench_accounts"));
        assert!(refusal(|s| s.tables.fillfactor = 5).contains("--fillfactor"));
        assert!(refusal(|s| s.tables.partitions = 20_000).contains("--partitions"));
        assert!(refusal(|s| s.latency_limit_ms = Some(0.0)).contains("--latency-limit"));
        let partitioned = refusal(|s| {
            s.mixes[0].scripts[0].source.text = "SELECT 1;".to_owned();
            s.tables.scale = 0;
            s.tables.partitions = 2;
        });
        assert!(partitioned.contains("at scale 0"), "{partitioned}");
    }

    #[test]
    fn sql_of_the_user_s_may_make_the_tables_that_a_script_needs() {
        let mut setup = setup("SELECT count(*) FROM pgbench_accounts;");
        setup.tables.scale = 0;
        setup.tables.init = Some(source("CREATE TABLE pgbench_accounts (aid integer);"));
        assert_eq!(check(&setup, CellOrder::Drawn), Ok(()));
    }
}
