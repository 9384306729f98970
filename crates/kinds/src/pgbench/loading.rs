//! pgbench's tables and rows, and the tables that a user's SQL makes beside them.

use super::plans::plans;
use super::script::program;
use deltabench_driver::admin::Client;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PgbenchSetup, PgbenchTables, QueryMode};
use deltabench_run::admin::{failed, number, query, run, text};
use deltabench_run::benchmark::OwnTables;
use deltabench_run::load::durable;
use deltabench_workload::executable::Draws;
use deltabench_workload::pgbench::Action;
use deltabench_workload::pgbench::tables::{self, CopyRows, LOADED, PgbenchTable};

/// Rows that are sent at once.
const ROWS_AT_ONCE: u64 = 1000;

/// The tables that a plan's scripts work on.
#[derive(Debug)]
pub(crate) struct PgbenchData {
    setup: PgbenchSetup,
    /// Statements of the user's that make tables of their own.
    init: Vec<String>,
    /// Whether a script, or the user's SQL, has tables of sysbench in it.
    needs_usual: bool,
}

impl PgbenchData {
    /// Those of a plan; `None` where none of its workloads is a mix of scripts.
    ///
    /// Errors: SQL of the user's that cannot be read.
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>, Problem> {
        let Some(setup) = plan.work.pgbench() else {
            return Ok(None);
        };
        let scripts = setup.mixes.iter().flat_map(|mix| &mix.scripts);
        let sources = scripts
            .map(|script| &script.source)
            .chain(&setup.tables.init);
        let mut texts = sources.map(|source| &source.text);
        Ok(Some(Self {
            setup: setup.clone(),
            init: init_statements(setup)?,
            needs_usual: texts.any(|text| text.contains("sbtest")),
        }))
    }

    fn tables(&self) -> &PgbenchTables {
        &self.setup.tables
    }

    fn has_tables(&self) -> bool {
        self.tables().scale > 0
    }
}

/// The user's SQL, statement by statement; variables have their values in it.
///
/// Errors: what does not read, with its line; commands that would wait, or take values from results.
pub(crate) fn init_statements(setup: &PgbenchSetup) -> Result<Vec<String>, Problem> {
    let Some(source) = &setup.tables.init else {
        return Ok(Vec::new());
    };
    let (program, mut player) = program(setup, source, QueryMode::Simple)?;
    player.begin(&program, &mut Draws::new(0, 0));
    let refused = |what: &str| {
        Problem::new(format!(
            "{}: {what} cannot be used in SQL that creates tables",
            source.file
        ))
        .hint("write SQL statements, \\set and \\if only")
    };
    let mut statements = Vec::new();
    loop {
        let action = player.next(&program).map_err(|error| {
            Problem::new("the SQL that creates tables failed").detail(error.to_string())
        })?;
        match action {
            Action::Send(number) => {
                let statement = program.statements().get(number);
                if statement.is_some_and(|statement| statement.capture.is_some()) {
                    return Err(refused("\\gset or \\aset"));
                }
                let mut sql = Vec::new();
                player.write_sql(&program, &mut sql);
                statements.push(String::from_utf8_lossy(&sql).into_owned());
            }
            Action::Sleep(_) => return Err(refused("\\sleep")),
            Action::Done => return Ok(statements),
            Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {
                return Err(refused("a pipeline"));
            }
        }
    }
}

impl OwnTables for PgbenchData {
    fn needs_usual(&self) -> bool {
        self.needs_usual
    }

    fn rows(&self) -> u64 {
        let rows = LOADED.iter().map(|table| table.rows(self.tables().scale));
        rows.sum()
    }

    fn bytes(&self) -> u64 {
        if self.has_tables() {
            tables::estimate_bytes(self.tables())
        } else {
            0
        }
    }

    /// As `pgbench -i` does (steps d, t, g or G, v, p, f), then those of the user's SQL.
    fn load(&self, client: &mut Client, schema: &str) -> Result<(), Problem> {
        if self.has_tables() {
            make_tables(client, self.tables())?;
        }
        if self.init.is_empty() {
            return Ok(());
        }
        for sql in &self.init {
            run(client, sql)?;
        }
        // Somebody's SET should not be there for what comes.
        run(client, &format!("RESET ALL; SET search_path = {schema}"))?;
        durable(client)?;
        let sql = format!(
            "SELECT quote_ident(relname) FROM pg_class \
             WHERE relkind IN ('r', 'm') AND relnamespace = '{schema}'::regnamespace ORDER BY relname"
        );
        for table in query(client, &sql)?.into_iter().map(text) {
            run(client, &format!("VACUUM (ANALYZE) {schema}.{table}"))?;
        }
        Ok(())
    }

    /// Rows of pgbench's tables come by `fill`; the user's SQL is run once more.
    fn anew_sql(
        &self,
        version_num: u32,
        fill: &mut dyn FnMut(&str) -> Result<String, Problem>,
    ) -> Result<Vec<String>, Problem> {
        let mut statements = Vec::new();
        if self.has_tables() {
            statements.extend(tables::create_sql(self.tables(), version_num)?);
            for table in tables::table_names() {
                statements.push(fill(table)?);
            }
            statements.extend(finish_sql(self.tables()));
        }
        statements.extend(self.init.iter().cloned());
        Ok(statements)
    }

    fn check_crash(&self, client: &mut Client) -> Result<(), Problem> {
        if !(self.tables().unlogged && self.has_tables()) {
            return Ok(());
        }
        // Not the branches: where accounts are partitioned, those alone are unlogged.
        match number(
            client,
            "SELECT EXISTS (SELECT 1 FROM pgbench_accounts)::integer",
        )? {
            0 => Err(Problem::new("the unlogged tables are empty")
                .detail("a server of this run has crashed, and unlogged tables do not survive that")
                .hint("`deltabench resume` loads them again and goes on")),
            _ => Ok(()),
        }
    }

    fn plans(
        &self,
        client: &mut Client,
        seed: u64,
        workload: &str,
    ) -> Result<Vec<String>, Problem> {
        plans(client, &self.setup, seed, workload)
    }
}

/// Makes the tables and their rows in the schema of the search path, as `pgbench -i` does.
///
/// Errors: whatever the server answered, with the statement.
pub fn make_tables(client: &mut Client, wanted: &PgbenchTables) -> Result<(), Problem> {
    let version_num = number(client, "SELECT current_setting('server_version_num')")?;
    let version_num = u32::try_from(version_num).unwrap_or(u32::MAX);
    run(client, tables::drop_sql())?;
    for sql in tables::create_sql(wanted, version_num)? {
        run(client, &sql)?;
    }
    // In one transaction with TRUNCATE, as pgbench has it: only then may rows be frozen.
    run(client, "BEGIN")?;
    run(
        client,
        &format!("TRUNCATE {}", tables::table_names().join(", ")),
    )?;
    if wanted.server_side {
        for sql in tables::server_side_sql(wanted) {
            run(client, &sql)?;
        }
    } else {
        for table in LOADED {
            copy(client, table, wanted, version_num)?;
        }
    }
    run(client, "COMMIT")?;
    for table in LOADED {
        check_rows(client, table, wanted)?;
    }
    for sql in finish_sql(wanted) {
        run(client, &sql)?;
    }
    Ok(())
}

fn copy(
    client: &mut Client,
    table: PgbenchTable,
    wanted: &PgbenchTables,
    version_num: u32,
) -> Result<(), Problem> {
    let mut rows = CopyRows::new(table, wanted.scale);
    let sql = table.copy_sql(wanted, version_num);
    client
        .copy_in(&sql, &mut |buffer| rows.fill(ROWS_AT_ONCE, buffer))
        .map(drop)
        .map_err(|error| failed(&sql, &error))
}

fn check_rows(
    client: &mut Client,
    table: PgbenchTable,
    wanted: &PgbenchTables,
) -> Result<(), Problem> {
    let (name, rows) = (table.name(), table.rows(wanted.scale));
    let found = number(client, &format!("SELECT count(*) FROM {name}"))?;
    if found == rows {
        return Ok(());
    }
    Err(
        Problem::new(format!("{name} has {found} rows and not {rows}"))
            .detail("counted after they were loaded"),
    )
}

/// What comes after the rows.
fn finish_sql(wanted: &PgbenchTables) -> Vec<String> {
    let mut statements = tables::vacuum_sql();
    statements.extend(tables::primary_keys_sql());
    statements.extend(tables::foreign_keys_sql(wanted));
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::tests::{setup, source};

    fn read(text: &str) -> Result<Vec<String>, Problem> {
        let mut setup = setup("SELECT 1;");
        setup.variables = vec![("rows".to_owned(), "7".to_owned())];
        setup.tables.init = Some(source(text));
        init_statements(&setup)
    }

    #[test]
    fn sql_that_makes_tables_is_sent_statement_by_statement_with_its_variables() {
        let text = "-- mine\nCREATE TABLE t AS\n  SELECT generate_series(1, :rows) AS id;\n\
                    \\set last :rows * 2\nINSERT INTO t VALUES (:last); ANALYZE t;";
        let statements = read(text).unwrap();
        assert_eq!(statements.len(), 3, "{statements:?}");
        assert!(
            statements[0].contains("generate_series(1, 7)"),
            "{statements:?}"
        );
        assert!(statements[1].contains("VALUES (14)"), "{statements:?}");
        assert!(statements[2].contains("ANALYZE t"), "{statements:?}");
    }

    #[test]
    fn what_would_wait_or_take_values_from_results_has_no_place_in_it() {
        for (text, what) in [
            ("SELECT 1 AS a \\gset\nSELECT :a;", "gset"),
            ("\\sleep 1 s\nSELECT 1;", "sleep"),
            ("\\nonsense\n", "nonsense"),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(
                refused.contains(what) && refused.contains("my.sql"),
                "{refused}"
            );
        }
    }
}
