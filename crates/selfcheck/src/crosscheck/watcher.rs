//! Reads what a server counted while somebody ran against it.

use super::statements::{Counted, StatementCount, one_line};
use deltabench_driver::admin::Client;
use deltabench_model::endpoint::Login;
use deltabench_model::problem::Problem;
use deltabench_run::admin::{connect, number, query, run};
use deltabench_run::visit::Address;
use std::time::{Duration, Instant};

/// Where the view is, and where nobody who is watched connects to.
const DATABASE: &str = "postgres";

/// Until a backend whose client has left is gone.
const LEAVING_MAX: Duration = Duration::from_secs(10);

/// How often to look whether it is.
const PAUSE: Duration = Duration::from_millis(2);

/// First version that counts time of execution apart from time of planning, and plans.
const PLANS_SINCE: u32 = 130_000;

/// First version whose counts of transactions are current; those before answer with what was true half a
/// second ago.
const CURRENT_SINCE: u32 = 150_000;

/// How old those counts may be (`PGSTAT_STAT_INTERVAL` in pgstat.c), and some more.
const STALE: Duration = Duration::from_millis(600);

/// Settings that the server needs to be watched.
pub(crate) fn settings(version_num: u32) -> Vec<(String, String)> {
    let library = ("shared_preload_libraries", "pg_stat_statements");
    let plans = ("pg_stat_statements.track_planning", "on");
    [Some(library), (version_num >= PLANS_SINCE).then_some(plans)]
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A connection that looks at what others do.
pub(crate) struct Watcher {
    client: Client,
    version_num: u32,
}

impl Watcher {
    /// Connects and installs the view.
    pub(crate) fn start(address: &Address, version_num: u32) -> Result<Self, Problem> {
        let login = Login {
            database: DATABASE.to_owned(),
            ..address.login.clone()
        };
        let mut client = connect(&address.endpoint, &login)?;
        run(
            &mut client,
            "CREATE EXTENSION pg_stat_statements SCHEMA public",
        )?;
        Ok(Self {
            client,
            version_num,
        })
    }

    /// Whether counting transactions costs nothing.
    pub(crate) fn has_current_transactions(&self) -> bool {
        self.version_num >= CURRENT_SINCE
    }

    /// Counts what `work` makes the server do in a database; nobody else may be connected to it.
    ///
    /// Shape:  `operations` says how many operations the result of `work` stands for. Transactions are
    ///         counted only if asked for: old versions take a second for that.
    /// Errors: those of `work`; a connection that stays open.
    pub(crate) fn count<T>(
        &mut self,
        database: &str,
        transactions: bool,
        operations: impl Fn(&T) -> u64,
        work: impl FnOnce() -> Result<T, Problem>,
    ) -> Result<(T, Counted), Problem> {
        self.wait_until_alone(database)?;
        let before = if transactions {
            Some(self.transactions(database)?)
        } else {
            None
        };
        run(&mut self.client, "SELECT public.pg_stat_statements_reset()")?;
        let result = work()?;
        self.wait_until_alone(database)?;
        let statements = self.statements(database)?;
        let after = if transactions {
            Some(self.transactions(database)?)
        } else {
            None
        };
        let counted = Counted {
            operations: operations(&result),
            statements,
            transactions: before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before)),
        };
        Ok((result, counted))
    }

    fn statements(&mut self, database: &str) -> Result<Vec<StatementCount>, Problem> {
        let times = if self.version_num >= PLANS_SINCE {
            "total_exec_time, plans"
        } else {
            "total_time, NULL"
        };
        let sql = format!(
            "SELECT queryid, query, calls, rows, {times} FROM public.pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = '{database}') ORDER BY query"
        );
        let unreadable = || Problem::new("pg_stat_statements cannot be read").detail(sql.clone());
        let mut statements = Vec::new();
        for row in query(&mut self.client, &sql)? {
            let [
                Some(id),
                Some(text),
                Some(calls),
                Some(rows),
                Some(time),
                plans,
            ] = row.as_slice()
            else {
                return Err(unreadable());
            };
            statements.push(StatementCount {
                id: id.clone(),
                text: one_line(text),
                calls: calls.parse().map_err(|_| unreadable())?,
                rows: rows.parse().map_err(|_| unreadable())?,
                time_ms: time.parse().map_err(|_| unreadable())?,
                plans: plans.as_ref().and_then(|plans| plans.parse().ok()),
            });
        }
        Ok(statements)
    }

    /// Transactions of a database so far.
    fn transactions(&mut self, database: &str) -> Result<u64, Problem> {
        if !self.has_current_transactions() {
            std::thread::sleep(STALE);
        }
        let sql = format!(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{database}'"
        );
        number(&mut self.client, &sql)
    }

    /// Waits until nobody is connected to a database: a backend reports what it did when it ends.
    fn wait_until_alone(&mut self, database: &str) -> Result<(), Problem> {
        let limit = Instant::now() + LEAVING_MAX;
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
        while number(&mut self.client, &sql)? > 0 {
            if Instant::now() > limit {
                return Err(Problem::new(format!(
                    "somebody stays connected to {database}"
                )));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}
