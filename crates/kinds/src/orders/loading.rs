//! The tables of order entry on a server, and what must hold on them.

use crate::pgbench::plans;
use deltabench_driver::admin::Client;
use deltabench_model::problem::Problem;
use deltabench_model::work::orders::{OrdersForm, OrdersSetup};
use deltabench_run::admin::{failed, number, run};
use deltabench_run::benchmark::OwnTables;
use deltabench_workload::orders::consistency::conditions;
use deltabench_workload::orders::rows::CopyRows;
use deltabench_workload::orders::scripts::functions_sql;
use deltabench_workload::orders::tables::{
    self, OrdersTable, create_sql, foreign_keys_sql, keys_sql, truncate_sql, vacuum_sql,
};

/// Rows that are sent at once.
const ROWS_AT_ONCE: u64 = 1000;

/// The tables of a plan's order entry.
#[derive(Debug)]
pub(super) struct OrdersData {
    setup: OrdersSetup,
    seed: u64,
}

impl OrdersData {
    pub(super) fn new(setup: OrdersSetup, seed: u64) -> Self {
        Self { setup, seed }
    }

    fn copy(
        &self,
        client: &mut Client,
        table: OrdersTable,
        version_num: u32,
    ) -> Result<(), Problem> {
        let mut rows = CopyRows::new(table, self.setup.warehouses, self.seed);
        let sql = table.copy_sql(version_num);
        let copied = client
            .copy_in(&sql, &mut |buffer| rows.fill(ROWS_AT_ONCE, buffer))
            .map_err(|error| failed(&sql, &error))?;
        let wanted = table.rows(self.setup.warehouses, self.seed);
        if copied == wanted {
            return Ok(());
        }
        let (name, what) = (table.name(), "rows were loaded and not");
        Err(Problem::new(format!("{name}: {copied} {what} {wanted}")))
    }

    /// What comes after the rows: keys, statistics and functions.
    fn finish_sql(&self) -> Vec<String> {
        let mut statements = keys_sql();
        if self.setup.foreign_keys {
            statements.extend(foreign_keys_sql());
        }
        if self.setup.form == OrdersForm::Functions {
            statements.extend(functions_sql());
        }
        statements.extend(vacuum_sql());
        statements
    }
}

impl OwnTables for OrdersData {
    fn needs_usual(&self) -> bool {
        false
    }

    fn rows(&self) -> u64 {
        let all = OrdersTable::ALL.into_iter();
        all.map(|table| table.nominal_rows(self.setup.warehouses))
            .sum()
    }

    fn bytes(&self) -> u64 {
        tables::estimate_bytes(self.setup.warehouses)
    }

    /// Rows first, in one transaction with TRUNCATE: only then may they be frozen. Then keys.
    fn load(&self, client: &mut Client, _: &str) -> Result<(), Problem> {
        let version_num = number(client, "SELECT current_setting('server_version_num')")?;
        let version_num = u32::try_from(version_num).unwrap_or(u32::MAX);
        for sql in create_sql() {
            run(client, &sql)?;
        }
        run(client, "BEGIN")?;
        run(client, &truncate_sql())?;
        for table in OrdersTable::ALL {
            self.copy(client, table, version_num)?;
        }
        run(client, "COMMIT")?;
        for sql in self.finish_sql() {
            run(client, &sql)?;
        }
        match self.broken(client)?.as_slice() {
            [] => Ok(()),
            broken => Err(Problem::new(
                "the tables of order entry are not consistent after they were loaded",
            )
            .detail(broken.join("; "))),
        }
    }

    fn anew_sql(
        &self,
        _: u32,
        fill: &mut dyn FnMut(&str) -> Result<String, Problem>,
    ) -> Result<Vec<String>, Problem> {
        let mut statements = create_sql();
        for table in OrdersTable::ALL {
            statements.push(fill(table.name())?);
        }
        statements.extend(self.finish_sql());
        Ok(statements)
    }

    fn check_crash(&self, _: &mut Client) -> Result<(), Problem> {
        Ok(())
    }

    fn broken(&self, client: &mut Client) -> Result<Vec<String>, Problem> {
        // They join whole tables: without room for the hashes they take twice as long.
        run(client, "SET work_mem = '128MB'")?;
        let mut broken = Vec::new();
        for condition in conditions() {
            let places = number(client, condition.sql)?;
            if places > 0 {
                let (number, what) = (condition.number, condition.what);
                broken.push(format!(
                    "condition {number} ({what}) fails in {places} places"
                ));
            }
        }
        run(client, "RESET work_mem")?;
        Ok(broken)
    }

    fn plans(
        &self,
        client: &mut Client,
        seed: u64,
        workload: &str,
    ) -> Result<Vec<String>, Problem> {
        plans(client, &self.setup.scripts, seed, workload)
    }
}
