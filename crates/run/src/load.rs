//! What is on a server, and how it comes there ([`crate::site`] says where it is).

mod cached;
mod data_set;
mod visibility;

use crate::admin::{connect, failed, number, query, run, text};
use crate::remote;
use crate::site::{Home, MAINTENANCE, Site, Tables, WORK, database_of, login, tables_of};
use crate::visit::Address;
use deltabench_driver::admin::Client;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::{Cell, CellOrder, DataState, Plan};
use deltabench_model::problem::Problem;
use deltabench_workload::{Sbtest, TableDefinition};

pub use crate::site::uses_work;
pub use cached::{Making, making};
pub(crate) use cached::{ShortVisits, delays};
pub use data_set::{DataSet, states};
pub(crate) use visibility::check_visibility;
pub use visibility::durable;

/// First version whose `CREATE DATABASE` copies through the WAL unless told not to.
const STRATEGY_SINCE: u32 = 150_000;

/// States that cells read where they are kept.
pub fn states_read(plan: &Plan) -> Vec<DataState> {
    let is_read = |state: &DataState| {
        let reads = |cell: &&Cell| !uses_work(plan.order, cell) && cell.state == *state;
        plan.cells.iter().any(|cell| reads(&cell))
    };
    states(plan).into_iter().filter(is_read).collect()
}

/// A server's address for the clients of a cell: with the database or schema of its tables, and the password
/// where there is one.
pub fn address_for(address: &Address, order: CellOrder, cell: &Cell) -> Address {
    let login = Login {
        password: address.login.password.clone(),
        ..address.home.login(tables_of(order, cell))
    };
    Address {
        login,
        ..address.clone()
    }
}

/// Loads the fresh state: rows, then indexes, then vacuum and statistics, and on a server of our own a
/// checkpoint. On another the schema must be there, and empty.
///
/// Errors: whatever the server answered, with the statement.
pub(crate) fn load_fresh(site: &Site, plan: &Plan, tables: &DataSet) -> Result<(), Problem> {
    let fresh = Tables::Kept(DataState::Fresh);
    let own = site.home == Home::Databases;
    if own {
        let mut maintenance = connect(&site.endpoint, &login(MAINTENANCE))?;
        let database = database_of(fresh);
        run(&mut maintenance, &format!("CREATE DATABASE {database}"))?;
    }
    let client = &mut site.open(fresh)?;
    let schema = &site.home.schema(fresh);
    durable(client)?;
    if own {
        run(client, "CREATE EXTENSION pg_prewarm SCHEMA public")?;
        run(client, &format!("CREATE SCHEMA {schema}"))?;
    }
    if let Some(data) = &tables.sbtest {
        for table in 1..=plan.data.tables {
            load_table(client, data, (schema, table), plan.data.rows)?;
        }
    }
    for table in &tables.own {
        fill_table(client, table, schema, plan)?;
    }
    if let Some(data) = &tables.of_kind {
        data.load(client, schema)?;
    }
    if own {
        run(client, "CHECKPOINT")?;
        return check_visibility(client, schema);
    }
    remote::make_visible(client, schema)
}

/// Loads a table of sysbench.
fn load_table(
    client: &mut Client,
    data: &Sbtest,
    (schema, table): (&str, u32),
    rows: u64,
) -> Result<(), Problem> {
    for sql in data.create_sql(schema, table) {
        run(client, &sql)?;
    }
    let mut source = data.rows(table);
    let sql = data.copy_sql(schema, table);
    let copied = client
        .copy_in(&sql, &mut |buffer| source.fill(buffer))
        .map_err(|error| failed(&sql, &error))?;
    if copied != rows {
        return Err(Problem::new(format!("{copied} of {rows} rows were loaded")).detail(sql));
    }
    let indexes = data.index_sql(schema, table);
    for sql in indexes.iter().chain(&data.settle_sql(schema, table)) {
        run(client, sql)?;
    }
    Ok(())
}

/// Loads a table of the user's.
fn fill_table(
    client: &mut Client,
    table: &TableDefinition,
    schema: &str,
    plan: &Plan,
) -> Result<(), Problem> {
    run(client, &table.create_sql(schema))?;
    let fill = table.fill_sql(schema, &plan.data)?;
    run(client, &fill)?;
    let (name, wanted) = (&table.name, table.rows(&plan.data)?);
    let rows = number(client, &format!("SELECT count(*) FROM {name}"))?;
    if rows != wanted {
        return Err(Problem::new(format!(
            "table {name} has {rows} rows after its `fill`, but `rows` says {wanted}"
        ))
        .detail(fill));
    }
    let indexes = table.index_sql(schema);
    for sql in indexes.iter().chain(&table.settle_sql(schema)) {
        run(client, sql)?;
    }
    Ok(())
}

/// First version whose VACUUM cleans indexes of few dead rows only when told to.
const INDEX_CLEANUP_SINCE: u32 = 120_000;

/// Statements of the published step after a write phase: every table vacuumed, its statistics taken, and a
/// checkpoint, which is ours to ask for on servers of our own only.
///
/// Source: docs/sources/sysbench-microbenchmarks.md#after-the-writes.
pub fn settle_sql(version_num: u32, tables: &[String], own: bool) -> Vec<String> {
    let options = if version_num >= INDEX_CLEANUP_SINCE {
        "ANALYZE, INDEX_CLEANUP ON"
    } else {
        "ANALYZE"
    };
    let vacuum = |table: &String| format!("VACUUM ({options}) {table}");
    let mut statements: Vec<String> = tables.iter().map(vacuum).collect();
    if own {
        statements.push("CHECKPOINT".to_owned());
    }
    statements
}

/// Makes the aged database, as yet fresh.
pub(crate) fn clone_fresh(endpoint: &Endpoint, version_num: u32) -> Result<(), Problem> {
    let mut client = connect(endpoint, &login(MAINTENANCE))?;
    let aged = database_of(Tables::Kept(DataState::Aged));
    copy_database(&mut client, aged, DataState::Fresh, version_num)
}

/// Gives cells that write the tables of a state as they were made, and brings them into shared buffers.
///
/// When it returns, all of it is on disk on a server of our own, or in the page cache, as `making` says; no
/// more buffers are dirty than a handful of catalog pages of the new connection, and the latest checkpoint
/// is a moment old. Cost at 1M rows (280 MB) on the two-core machine of docs/error-rates.md: 0.9 s while it
/// is quiet, 0.5 s in the page cache. Copying through the WAL (`STRATEGY wal_log`) took three times as long
/// there and left 7000 dirty buffers and a checkpoint to do.
/// On another's server rows are copied and indexes built; what is left to be written is that server's
/// affair.
///
/// Errors: whatever the server answered; a connection to one of the two databases that is still open.
pub(crate) fn renew(
    site: &Site,
    (plan, tables): (&Plan, &DataSet),
    state: DataState,
    (version_num, making): (u32, Making),
) -> Result<(), Problem> {
    if let Home::Schemas(schemas) = &site.home {
        remote::renew(site, schemas, plan, tables)?;
        return prewarm(site, Tables::Work).map(drop);
    }
    let mut client = connect(&site.endpoint, &login(MAINTENANCE))?;
    let make = |client: &mut Client| {
        run(client, &format!("DROP DATABASE IF EXISTS {WORK}"))?;
        copy_database(client, WORK, state, version_num)?;
        tables.check_crash(site, Tables::Work)?;
        prewarm(site, Tables::Work)?;
        run(client, "CHECKPOINT")
    };
    match making {
        Making::Synced => make(&mut client),
        Making::Cached => cached::unsynced(&mut client, make),
    }
}

/// Drops the database of cells that write, on a server of our own.
///
/// Errors: whatever the server answered; a connection to it that is still open.
pub(crate) fn clear(site: &Site) -> Result<(), Problem> {
    let mut client = connect(&site.endpoint, &login(MAINTENANCE))?;
    run(&mut client, &format!("DROP DATABASE IF EXISTS {WORK}"))
}

fn copy_database(
    client: &mut Client,
    name: &str,
    from: DataState,
    version_num: u32,
) -> Result<(), Problem> {
    let from = database_of(Tables::Kept(from));
    // Files are copied as they are and synced; before 15 there is no other way.
    let strategy = if version_num >= STRATEGY_SINCE {
        " STRATEGY file_copy"
    } else {
        ""
    };
    let sql = format!("CREATE DATABASE {name} TEMPLATE {from}{strategy}");
    run(client, &sql)
}

/// Warms the tables that cells read where they are kept.
///
/// Errors: whatever the server answered.
pub(crate) fn prewarm_read(site: &Site, plan: &Plan, tables: &DataSet) -> Result<(), Problem> {
    for state in states_read(plan) {
        tables.check_crash(site, Tables::Kept(state))?;
        prewarm(site, Tables::Kept(state))?;
    }
    Ok(())
}

/// Warms the tables that a cell uses; false if they are yet to be made by [`renew`].
///
/// Errors: whatever the server answered.
pub(crate) fn prewarm_for(site: &Site, order: CellOrder, cell: &Cell) -> Result<bool, Problem> {
    let tables = tables_of(order, cell);
    let sql = match &site.home {
        Home::Databases => format!(
            "SELECT count(*) FROM pg_database WHERE datname = '{}'",
            database_of(tables)
        ),
        Home::Schemas(_) => format!(
            "SELECT count(*) FROM pg_namespace WHERE nspname = '{}'",
            site.home.schema(tables)
        ),
    };
    let mut client = match &site.home {
        Home::Databases => connect(&site.endpoint, &login(MAINTENANCE))?,
        Home::Schemas(_) => site.open(tables)?,
    };
    if number(&mut client, &sql)? == 0 {
        return Ok(false);
    }
    prewarm(site, tables).map(|()| true)
}

/// Brings every table and index into shared buffers, as far as they fit.
fn prewarm(site: &Site, tables: Tables) -> Result<(), Problem> {
    let client = &mut site.open(tables)?;
    let schema = site.home.schema(tables);
    let function = match &site.home {
        Home::Databases => "public.pg_prewarm",
        Home::Schemas(schemas) => match &schemas.prewarm {
            Some(function) => function,
            None => return remote::read_all(client, &schema),
        },
    };
    // The visibility map and free space map matter to index-only scans and updates; they are small and come
    // by use.
    // With all of its arguments: anybody may have put a function of that name beside it which takes fewer.
    let sql = format!(
        "SELECT coalesce(sum({function}(oid::regclass, 'buffer'::text, 'main'::text, NULL::bigint, \
         NULL::bigint)), 0) FROM pg_class \
         WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'i') \
         OR oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = '{schema}'::regnamespace)"
    );
    number(client, &sql).map(drop)
}

/// Rows and bytes of the tables in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StateSize {
    pub state: DataState,
    /// Rows of all tables, counted.
    pub rows: u64,
    /// Bytes of all tables and indexes.
    pub relation_bytes: u64,
}

/// Counts and measures the tables of a state.
pub(crate) fn size(site: &Site, state: DataState) -> Result<StateSize, Problem> {
    let tables = Tables::Kept(state);
    let mut client = site.open(tables)?;
    let schema = site.home.schema(tables);
    let relations = format!("FROM pg_class WHERE relnamespace = '{schema}'::regnamespace");
    let sql = format!("SELECT relname {relations} AND relkind = 'r'");
    let mut rows = 0;
    for row in query(&mut client, &sql)? {
        let table = text(row);
        rows += number(&mut client, &format!("SELECT count(*) FROM \"{table}\""))?;
    }
    let sql = format!("SELECT coalesce(sum(pg_relation_size(oid)), 0)::bigint {relations}");
    Ok(StateSize {
        state,
        rows,
        relation_bytes: number(&mut client, &sql)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_observe::Postmaster;

    pub(super) fn plan(cells: &[(&str, bool, DataState)]) -> Plan {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let like = plan.cells.remove(0);
        plan.cells = cells
            .iter()
            .map(|(workload, writes, state)| Cell {
                workload: (*workload).to_owned(),
                writes: *writes,
                state: *state,
                ..like.clone()
            })
            .collect();
        plan
    }

    #[test]
    fn cells_that_write_have_a_database_of_their_own_and_share_one_in_the_published_order() {
        let plan = plan(&[
            ("point-query", false, DataState::Fresh),
            ("scan", false, DataState::Aged),
            ("update-one", true, DataState::Aged),
        ]);
        let databases = |order| -> Vec<String> {
            let cells = plan.cells.iter();
            let login = |cell| Home::Databases.login(tables_of(order, cell));
            cells.map(|cell| login(cell).database).collect()
        };
        assert_eq!(
            databases(CellOrder::Drawn),
            ["deltabench_fresh", "deltabench_aged", "deltabench_work"]
        );
        assert_eq!(databases(CellOrder::Published), ["deltabench_work"; 3]);
    }

    #[test]
    fn only_states_that_cells_ask_for_are_made_and_only_those_read_in_place_are_warmed() {
        let (fresh, aged) = (DataState::Fresh, DataState::Aged);
        let reading = plan(&[("point-query", false, fresh)]);
        assert_eq!(
            (states(&reading), states_read(&reading)),
            (vec![fresh], vec![fresh])
        );
        let mut both = plan(&[("update-one", true, fresh), ("scan", false, aged)]);
        assert_eq!(
            (states(&both), states_read(&both)),
            (vec![fresh, aged], vec![aged])
        );
        both.order = CellOrder::Published;
        assert_eq!(
            (states(&both), states_read(&both)),
            (vec![fresh, aged], vec![])
        );
    }

    #[test]
    fn an_address_for_a_cell_keeps_its_password() {
        let plan = plan(&[("point-query", false, DataState::Fresh)]);
        let mut address = Address {
            endpoint: Endpoint::Unix {
                directory: "/tmp".into(),
                port: 1,
            },
            login: login(MAINTENANCE),
            postmaster: Postmaster::Local(1),
            home: Home::Databases,
        };
        address.login.password = Some("secret".to_owned());
        let found = address_for(&address, plan.order, plan.cells.first().unwrap());
        assert_eq!(found.login.password.as_deref(), Some("secret"));
        assert_eq!(found.login.database, "deltabench_fresh");
    }

    #[test]
    fn indexes_are_cleaned_whatever_the_version_thinks_of_it() {
        let tables = ["a".to_owned(), "b".to_owned()];
        assert_eq!(
            settle_sql(90_624, &tables, true).join("; "),
            "VACUUM (ANALYZE) a; VACUUM (ANALYZE) b; CHECKPOINT"
        );
        let new = settle_sql(180_006, &tables, false);
        assert_eq!(new.first().unwrap(), "VACUUM (ANALYZE, INDEX_CLEANUP ON) a");
        assert_eq!(new.len(), 2, "no checkpoint on somebody else's server");
    }
}
