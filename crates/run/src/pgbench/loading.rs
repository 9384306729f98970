//! pgbench's tables and rows, and the tables that a user's SQL makes beside them.

use crate::admin::{failed, number, query, run, text};
use deltabench_driver::admin::Client;
use deltabench_model::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_model::plan::{Plan, WorkloadSource};
use deltabench_model::problem::Problem;
use deltabench_workload::executable::Draws;
use deltabench_workload::pgbench::tables::{self, CopyRows, LOADED, Table};
use deltabench_workload::pgbench::{Action, Player, Program};

/// Rows that are sent at once.
const ROWS_AT_ONCE: u64 = 1000;

/// The tables that a plan's scripts work on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PgbenchData {
    tables: PgbenchTables,
    /// Statements of the user's that make tables of their own.
    init: Vec<String>,
    /// Whether a script, or the user's SQL, has tables of sysbench in it.
    needs_sysbench: bool,
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
            tables: setup.tables.clone(),
            init: init_statements(setup)?,
            needs_sysbench: texts.any(|text| text.contains("sbtest")),
        }))
    }

    /// Whether the tables of sysbench are wanted too.
    pub(crate) fn needs_sysbench(&self) -> bool {
        self.needs_sysbench
    }

    /// Bytes of pgbench's tables and indexes; what the user's SQL makes is not known.
    pub(crate) fn bytes(&self) -> u64 {
        if self.has_tables() {
            tables::estimate_bytes(&self.tables)
        } else {
            0
        }
    }

    /// Rows of pgbench's tables.
    pub(crate) fn rows(&self) -> u64 {
        let rows = LOADED.iter().map(|table| table.rows(self.tables.scale));
        rows.sum()
    }

    fn has_tables(&self) -> bool {
        self.tables.scale > 0
    }

    /// Statements that make the tables anew in the schema of the search path. Rows of pgbench's tables come
    /// by `fill`; the user's SQL is run once more.
    ///
    /// Errors: those of `fill`; tables that the version cannot have.
    pub(crate) fn anew_sql(
        &self,
        version_num: u32,
        fill: &mut impl FnMut(&str) -> Result<String, Problem>,
    ) -> Result<Vec<String>, Problem> {
        let mut statements = Vec::new();
        if self.has_tables() {
            statements.extend(tables::create_sql(&self.tables, version_num)?);
            for table in tables::table_names() {
                statements.push(fill(table)?);
            }
            statements.extend(self.finish_sql());
        }
        statements.extend(self.init.iter().cloned());
        Ok(statements)
    }

    /// What comes after the rows.
    fn finish_sql(&self) -> Vec<String> {
        let mut statements = tables::vacuum_sql();
        statements.extend(tables::primary_keys_sql());
        statements.extend(tables::foreign_keys_sql(&self.tables));
        statements
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
            "{}: {what} has no place in SQL that makes tables",
            source.file
        ))
        .hint("write SQL statements, \\set and \\if only")
    };
    let mut statements = Vec::new();
    loop {
        let action = player.next(&program).map_err(|error| {
            Problem::new("the SQL that makes tables cannot be carried out")
                .detail(error.to_string())
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

/// A text as a script that is sent in this mode, with the variables of a setup.
pub(super) fn program(
    setup: &PgbenchSetup,
    source: &WorkloadSource,
    mode: QueryMode,
) -> Result<(Program, Player), Problem> {
    let plain = PgbenchSetup {
        mode,
        ..setup.clone()
    };
    let mix = PgbenchMix {
        name: source.file.clone(),
        scripts: vec![PgbenchScript {
            source: source.clone(),
            weight: 1,
        }],
    };
    let program = Program::parse(&plain, &mix)?;
    let player = Player::new(&program, 0);
    Ok((program, player))
}

/// Makes pgbench's tables and no others.
///
/// Errors: whatever the server answered, with the statement.
pub fn make_tables(
    client: &mut Client,
    tables: &PgbenchTables,
    schema: &str,
) -> Result<(), Problem> {
    let data = PgbenchData {
        tables: tables.clone(),
        init: Vec::new(),
        needs_sysbench: false,
    };
    load(client, &data, schema)
}

/// Makes the tables as `pgbench -i` does (steps d, t, g or G, v, p, f), then those of the user's SQL.
///
/// Errors: whatever the server answered, with the statement.
pub(crate) fn load(client: &mut Client, data: &PgbenchData, schema: &str) -> Result<(), Problem> {
    if data.has_tables() {
        make(client, data)?;
    }
    if data.init.is_empty() {
        return Ok(());
    }
    for sql in &data.init {
        run(client, sql)?;
    }
    // Somebody's SET should not be there for what comes.
    run(client, &format!("RESET ALL; SET search_path = {schema}"))?;
    crate::load::durable(client)?;
    let sql = format!(
        "SELECT quote_ident(relname) FROM pg_class \
         WHERE relkind IN ('r', 'm') AND relnamespace = '{schema}'::regnamespace ORDER BY relname"
    );
    for table in query(client, &sql)?.into_iter().map(text) {
        run(client, &format!("VACUUM (ANALYZE) {schema}.{table}"))?;
    }
    Ok(())
}

fn make(client: &mut Client, data: &PgbenchData) -> Result<(), Problem> {
    let version_num = number(client, "SELECT current_setting('server_version_num')")?;
    let version_num = u32::try_from(version_num).unwrap_or(u32::MAX);
    run(client, tables::drop_sql())?;
    for sql in tables::create_sql(&data.tables, version_num)? {
        run(client, &sql)?;
    }
    // In one transaction with TRUNCATE, as pgbench has it: only then may rows be frozen.
    run(client, "BEGIN")?;
    run(
        client,
        &format!("TRUNCATE {}", tables::table_names().join(", ")),
    )?;
    if data.tables.server_side {
        for sql in tables::server_side_sql(&data.tables) {
            run(client, &sql)?;
        }
    } else {
        for table in LOADED {
            copy(client, table, data, version_num)?;
        }
    }
    run(client, "COMMIT")?;
    for table in LOADED {
        check_rows(client, table, data)?;
    }
    for sql in data.finish_sql() {
        run(client, &sql)?;
    }
    Ok(())
}

fn copy(
    client: &mut Client,
    table: Table,
    data: &PgbenchData,
    version_num: u32,
) -> Result<(), Problem> {
    let mut rows = CopyRows::new(table, data.tables.scale);
    let sql = table.copy_sql(&data.tables, version_num);
    client
        .copy_in(&sql, &mut |buffer| rows.fill(ROWS_AT_ONCE, buffer))
        .map(drop)
        .map_err(|error| failed(&sql, &error))
}

fn check_rows(client: &mut Client, table: Table, data: &PgbenchData) -> Result<(), Problem> {
    let (name, wanted) = (table.name(), table.rows(data.tables.scale));
    let found = number(client, &format!("SELECT count(*) FROM {name}"))?;
    if found == wanted {
        return Ok(());
    }
    Err(
        Problem::new(format!("{name} has {found} rows and not {wanted}"))
            .detail("counted after they were loaded"),
    )
}

/// Refuses to go on with unlogged tables that a crash has emptied.
///
/// Errors: they are empty.
pub(crate) fn check_crash(client: &mut Client, plan: &Plan) -> Result<(), Problem> {
    let unlogged = |setup: &&PgbenchSetup| setup.tables.unlogged && setup.tables.scale > 0;
    if plan.work.pgbench().filter(unlogged).is_none() {
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
