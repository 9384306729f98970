//! Puts the same data on a server and reads back what the server is.

use deltabench_driver::WireError;
use deltabench_driver::admin::Client;
use deltabench_model::installation::{Build, Setting};
use deltabench_model::plan::{Cell, Plan};
use deltabench_model::problem::Problem;
use deltabench_workload::Sbtest;
use deltabench_workload::executable::Executable;

/// Schema of the tables that read cells share.
pub(crate) const READ_SCHEMA: &str = "deltabench_read";

/// Schema of the tables of one writing cell.
fn write_schema(workload: &str, clients: u32) -> String {
    format!("deltabench_{}_{clients}", workload.replace('-', "_"))
}

/// The schema whose tables a cell uses.
#[must_use]
pub fn schema_of(cell: &Cell) -> String {
    if cell.writes {
        write_schema(&cell.workload, cell.clients)
    } else {
        READ_SCHEMA.to_owned()
    }
}

/// Every schema that the plan's cells need, the shared one first.
#[must_use]
pub fn schemas(plan: &Plan) -> Vec<String> {
    let mut schemas = Vec::new();
    if plan.cells.iter().any(|cell| !cell.writes) {
        schemas.push(READ_SCHEMA.to_owned());
    }
    schemas.extend(plan.cells.iter().filter(|cell| cell.writes).map(schema_of));
    schemas
}

/// Bytes of all tables and indexes of one server when freshly loaded.
#[must_use]
pub fn data_bytes(plan: &Plan) -> u64 {
    let copies = deltabench_model::units::count(schemas(plan).len());
    Sbtest::estimate_bytes(&plan.data) * copies
}

/// Loads every schema of the plan: COPY, then indexes, then vacuum, statistics and a checkpoint.
///
/// Errors: whatever the server answered, with the statement.
pub fn load(client: &mut Client, plan: &Plan) -> Result<(), Problem> {
    let data = Sbtest::new(plan.data.clone(), plan.seed);
    // An asynchronous commit cannot be hinted before its WAL is on disk, and VACUUM would leave pages that
    // hold such rows out of the visibility map: half of the index-only scans then visit the heap, on some
    // servers.
    run(client, "SET synchronous_commit = on")?;
    run(client, "CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
    for schema in schemas(plan) {
        run(client, &format!("CREATE SCHEMA {schema}"))?;
        for table in 1..=plan.data.tables {
            for sql in data.create_sql(&schema, table) {
                run(client, &sql)?;
            }
            let mut rows = data.rows(table);
            let sql = data.copy_sql(&schema, table);
            let copied = client
                .copy_in(&sql, &mut |buffer| rows.fill(buffer))
                .map_err(|error| failed(&sql, &error))?;
            if copied != plan.data.rows {
                return Err(Problem::new(format!(
                    "{copied} of {} rows were loaded",
                    plan.data.rows
                ))
                .detail(sql));
            }
            for sql in data
                .index_sql(&schema, table)
                .iter()
                .chain(&data.settle_sql(&schema, table))
            {
                run(client, sql)?;
            }
        }
    }
    run(client, "CHECKPOINT")?;
    check_visibility(client)?;
    run(client, "RESET synchronous_commit")
}

/// Share of a table's pages that must be in the visibility map after loading.
///
/// Not 1: from version 16 COPY extends a table by many pages at once and leaves the last ones unused.
const VISIBLE_SHARE_MIN: f64 = 0.9;

/// Makes sure that index-only scans will be index-only, on every server alike.
fn check_visibility(client: &mut Client) -> Result<(), Problem> {
    let sql = "SELECT n.nspname || '.' || c.relname, c.relpages, c.relallvisible FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname LIKE 'deltabench%' AND c.relkind = 'r'";
    for row in query(client, sql)? {
        let [Some(table), Some(pages), Some(visible)] = row.as_slice() else {
            continue;
        };
        let share =
            visible.parse::<f64>().unwrap_or(0.0) / pages.parse::<f64>().unwrap_or(1.0).max(1.0);
        if share < VISIBLE_SHARE_MIN {
            return Err(Problem::new(format!("VACUUM left {table} half done"))
                .detail(format!(
                    "{visible} of {pages} pages are in the visibility map"
                ))
                .hint("something holds an old transaction open on this server"));
        }
    }
    Ok(())
}

/// The plan of every statement of `executable`, without costs: its shape.
///
/// Shape:  one text for each statement that the server plans, in the order of the operation.
/// Errors: whatever the server answered.
pub fn plans(
    client: &mut Client,
    executable: &Executable,
    schema: &str,
) -> Result<Vec<String>, Problem> {
    run(client, &format!("SET search_path = {schema}"))?;
    let mut plans = Vec::new();
    for sql in executable.sample_sql(1) {
        if ["BEGIN", "COMMIT", "ROLLBACK"].contains(&sql.trim()) {
            continue;
        }
        let rows = query(client, &format!("EXPLAIN (COSTS OFF) {sql}"))?;
        let lines: Vec<String> = rows
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect();
        let shape = lines
            .iter()
            .filter(|line| !line.contains("Cond:"))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n");
        if plans.last() != Some(&shape) {
            plans.push(shape);
        }
    }
    Ok(plans)
}

/// Brings every table and index into shared buffers; returns the blocks read.
///
/// Errors: whatever the server answered.
pub fn prewarm(client: &mut Client) -> Result<u64, Problem> {
    // The visibility map and free space map matter to index-only scans and updates; they are small and come
    // by use.
    let sql = "SELECT coalesce(sum(pg_prewarm(c.oid)), 0) FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname LIKE 'deltabench%' AND c.relkind IN ('r', 'i')";
    let rows = query(client, sql)?;
    Ok(rows
        .first()
        .and_then(|row| row.first().cloned().flatten())
        .and_then(|text| text.parse().ok())
        .unwrap_or(0))
}

/// Bytes of all relations in deltabench's schemas, as the server sees them.
///
/// Errors: whatever the server answered.
pub fn relation_bytes(client: &mut Client) -> Result<u64, Problem> {
    let sql = "SELECT coalesce(sum(pg_relation_size(c.oid)), 0)::bigint FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname LIKE 'deltabench%'";
    let rows = query(client, sql)?;
    rows.first()
        .and_then(|row| row.first().cloned().flatten())
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Problem::new("the server did not say how large its tables are").detail(sql))
}

/// All settings of a server.
///
/// Errors: whatever the server answered.
pub fn settings(client: &mut Client) -> Result<Vec<Setting>, Problem> {
    let sql = "SELECT name, setting, unit, boot_val, source FROM pg_settings ORDER BY name";
    let rows = query(client, sql)?;
    let setting = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter();
        let mut next = || fields.next().flatten();
        Some(Setting {
            name: next()?,
            value: next().unwrap_or_default(),
            unit: next(),
            boot_value: next(),
            source: next().unwrap_or_default(),
        })
    };
    Ok(rows.into_iter().filter_map(setting).collect())
}

/// How the server was compiled, as it says itself.
///
/// Errors: whatever the server answered. Source: `version()` and the `pg_config` view (9.6 and later).
pub fn build(client: &mut Client) -> Result<Build, Problem> {
    let one = |client: &mut Client, sql: &str| -> Result<String, Problem> {
        let rows = query(client, sql)?;
        Ok(rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten())
            .unwrap_or_default())
    };
    let version_text = one(client, "SELECT version()")?;
    let compiler = version_text
        .split_once("compiled by ")
        .map_or(String::new(), |(_, rest)| {
            rest.trim_end_matches(", 64-bit").to_owned()
        });
    let cflags = one(
        client,
        "SELECT setting FROM pg_config WHERE name = 'CFLAGS'",
    )?;
    let configure = one(
        client,
        "SELECT setting FROM pg_config WHERE name = 'CONFIGURE'",
    )?;
    Ok(Build {
        version_text,
        compiler,
        cflags,
        configure,
    })
}

fn run(client: &mut Client, sql: &str) -> Result<(), Problem> {
    client.execute(sql).map_err(|error| failed(sql, &error))
}

fn query(client: &mut Client, sql: &str) -> Result<Vec<Vec<Option<String>>>, Problem> {
    client.query(sql).map_err(|error| failed(sql, &error))
}

fn failed(sql: &str, error: &WireError) -> Problem {
    Problem::new("a server refused a set-up statement").detail(format!("{error}\nin: {sql}"))
}
