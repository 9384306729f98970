//! Tables in schemas of ours on a server that was there before.

use super::schemas::{drop_schema, make};
use crate::admin::{number, query, run, text};
use crate::load::{DataSet, check_visibility, durable};
use crate::site::{Schemas, Site, Tables};
use deltabench_driver::admin::Client;
use deltabench_model::plan::{DataState, Plan};
use deltabench_model::problem::Problem;
use std::time::Duration;

/// Others' transactions may keep VACUUM from finishing; they are waited for, so many times and so long.
const VISIBLE_TRIES: u32 = 10;
const VISIBLE_PAUSE: Duration = Duration::from_secs(3);

/// First versions with identity columns and with generated ones.
const IDENTITY_SINCE: u64 = 100_000;
const GENERATED_SINCE: u64 = 120_000;

/// Rows come in the order in which they lie, whatever else reads the table at the time.
const IN_ORDER: &str = "SET synchronize_seqscans = off; \
                        SET max_parallel_workers_per_gather = 0; SET enable_seqscan = on";

/// Makes the schema of cells that write anew, with the tables that were loaded.
///
/// Errors: whatever the server answered.
pub(crate) fn renew(
    site: &Site,
    schemas: &Schemas,
    plan: &Plan,
    tables: &DataSet,
) -> Result<(), Problem> {
    let work = site.home.schema(Tables::Work);
    let client = &mut site.open(Tables::Work)?;
    drop_schema(client, &work)?;
    make(client, &work, &schemas.mark)?;
    fill(client, plan, tables, (&schemas.kept, &work))
}

/// Fills the empty schema of one server with what was loaded into that of another in the same database.
///
/// Errors: whatever the server answered.
pub(crate) fn copy(from: &Site, to: &Site, plan: &Plan, tables: &DataSet) -> Result<(), Problem> {
    let fresh = Tables::Kept(DataState::Fresh);
    let client = &mut to.open(fresh)?;
    let schemas = (from.home.schema(fresh), to.home.schema(fresh));
    fill(client, plan, tables, (&schemas.0, &schemas.1))
}

fn fill(
    client: &mut Client,
    plan: &Plan,
    tables: &DataSet,
    (from, to): (&str, &str),
) -> Result<(), Problem> {
    durable(client)?;
    run(client, IN_ORDER)?;
    let version_num = number(client, "SELECT current_setting('server_version_num')")?;
    let overriding = if version_num >= IDENTITY_SINCE {
        "OVERRIDING SYSTEM VALUE"
    } else {
        ""
    };
    let version = u32::try_from(version_num).unwrap_or(u32::MAX);
    let statements = tables.anew_sql(plan, (to, version), |table| {
        let columns = columns(client, (from, table), version_num)?;
        Ok(format!(
            "INSERT INTO {to}.{table} ({columns}) {overriding} SELECT {columns} FROM {from}.{table}"
        ))
    })?;
    for sql in &statements {
        run(client, sql)?;
    }
    advance(client, from, to)?;
    make_visible(client, to)
}

/// Columns of a table that values can be given for.
fn columns(
    client: &mut Client,
    (schema, table): (&str, &str),
    version_num: u64,
) -> Result<String, Problem> {
    let generated = if version_num >= GENERATED_SINCE {
        "AND attgenerated = ''"
    } else {
        ""
    };
    let sql = format!(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute \
         WHERE attrelid = '{schema}.{table}'::regclass AND attnum > 0 AND NOT attisdropped {generated}"
    );
    let rows = query(client, &sql)?;
    Ok(rows.into_iter().next().map(text).unwrap_or_default())
}

/// Brings sequences to where those of the same name are in another schema.
fn advance(client: &mut Client, from: &str, to: &str) -> Result<(), Problem> {
    let sql = format!(
        "SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'S' \
         AND relnamespace = '{from}'::regnamespace AND relname IN (SELECT relname FROM pg_class \
         WHERE relkind = 'S' AND relnamespace = '{to}'::regnamespace)"
    );
    for sequence in query(client, &sql)?.into_iter().map(text) {
        let sql = format!(
            "SELECT setval('{to}.{sequence}', last_value, is_called) FROM {from}.{sequence}"
        );
        query(client, &sql)?;
    }
    Ok(())
}

/// Sees to it that all rows are visible to everybody, so that index-only scans are index-only.
///
/// Errors: somebody's old transaction is in the way for longer than it is waited for.
pub(crate) fn make_visible(client: &mut Client, schema: &str) -> Result<(), Problem> {
    for _ in 1..VISIBLE_TRIES {
        if check_visibility(client, schema).is_ok() {
            return Ok(());
        }
        std::thread::sleep(VISIBLE_PAUSE);
        for table in relations(client, schema)? {
            run(
                client,
                &format!("VACUUM (FREEZE, ANALYZE) {schema}.{table}"),
            )?;
        }
    }
    check_visibility(client, schema)
}

fn relations(client: &mut Client, schema: &str) -> Result<Vec<String>, Problem> {
    let sql = format!(
        "SELECT quote_ident(relname) FROM pg_class \
         WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace ORDER BY relname"
    );
    Ok(query(client, &sql)?.into_iter().map(text).collect())
}

/// Reads every table and index of a schema, where there is no other way to bring them into memory. Rows
/// stored out of line are not read, and a large table may pass through a few buffers only and stay in the
/// page cache.
///
/// Errors: whatever the server answered.
pub(crate) fn read_all(client: &mut Client, schema: &str) -> Result<(), Problem> {
    run(client, IN_ORDER)?;
    let tables = relations(client, schema)?;
    for table in &tables {
        run(
            client,
            &format!("SELECT count(t.*) FROM {schema}.{table} AS t"),
        )?;
    }
    // In the order of an index, without a sort: the planner is left with that index.
    run(
        client,
        "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off",
    )?;
    let sql = format!(
        "SELECT quote_ident(t.relname), pg_get_indexdef(i.indexrelid, 1, true) FROM pg_index AS i \
         JOIN pg_class AS t ON t.oid = i.indrelid JOIN pg_class AS x ON x.oid = i.indexrelid \
         JOIN pg_am AS a ON a.oid = x.relam WHERE t.relnamespace = '{schema}'::regnamespace \
         AND t.relkind = 'r' AND a.amname = 'btree' AND i.indpred IS NULL"
    );
    for row in query(client, &sql)? {
        let [Some(table), Some(column)] = row.as_slice() else {
            continue;
        };
        let all = format!("SELECT {column} AS c FROM {schema}.{table} ORDER BY 1 OFFSET 0");
        run(client, &format!("SELECT count(*) FROM ({all}) AS s"))?;
    }
    run(
        client,
        "RESET enable_seqscan; RESET enable_sort; RESET enable_bitmapscan",
    )
}
