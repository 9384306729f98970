//! Where a server's tables are, and how set-up work comes to them.
//!
//! A server that deltabench started has up to four databases. `deltabench_fresh` is loaded once.
//! `deltabench_aged` is a copy of it that went through the write phase ([`crate::aging`]); it is there only
//! if a cell asks for it. Cells that only read use those two directly. Cells that write use
//! `deltabench_work`, which `renew` makes anew before each visit from the database of the cell's state; in
//! the published order all cells use it. In each database deltabench uses one schema, which it created, and
//! nothing else.
//!
//! On a server that was there before it has two schemas in the database it was told: one for what is kept,
//! one for cells that write ([`crate::remote`]).

use crate::admin::{connect, run};
use deltabench_driver::admin::Client;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::{Cell, CellOrder, DataState};
use deltabench_model::problem::Problem;

/// The schema of all tables, in each database of a server of our own.
pub(crate) const SCHEMA: &str = "deltabench";

/// The database that set-up work connects to when it may not be in one of ours.
pub(crate) const MAINTENANCE: &str = "postgres";

/// The database of cells that write, and of all cells in the published order.
pub(crate) const WORK: &str = "deltabench_work";

/// What the schema of cells that write is called, after the other's name.
pub(crate) const WORK_SUFFIX: &str = "_work";

/// Limits of set-up work on a server that others use, instead of what its role has by default.
const LIMITS: &str = "SET statement_timeout = '2h'; SET lock_timeout = '60s'; \
                      SET idle_in_transaction_session_timeout = 0";

/// Which of a server's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// Those of a state, as they were made.
    Kept(DataState),
    /// Those that are made anew for a cell.
    Work,
}

/// Whether a cell uses tables that are made anew for it, rather than those that its state is kept in.
pub fn uses_work(order: CellOrder, cell: &Cell) -> bool {
    cell.writes || order == CellOrder::Published
}

/// The tables that the clients of a cell use.
pub(crate) fn tables_of(order: CellOrder, cell: &Cell) -> Tables {
    if uses_work(order, cell) {
        Tables::Work
    } else {
        Tables::Kept(cell.state)
    }
}

/// The database that holds tables on a server of our own.
pub(crate) fn database_of(tables: Tables) -> &'static str {
    match tables {
        Tables::Kept(DataState::Fresh) => "deltabench_fresh",
        Tables::Kept(DataState::Aged) => "deltabench_aged",
        Tables::Work => WORK,
    }
}

/// How deltabench logs in to a database of a server of its own.
pub(crate) fn login(database: &str) -> Login {
    Login {
        user: deltabench_server::SUPERUSER.to_owned(),
        database: database.to_owned(),
        password: None,
        options: vec![search_path(SCHEMA)],
        confirm_path: false,
    }
}

fn search_path(schema: &str) -> (String, String) {
    ("search_path".to_owned(), schema.to_owned())
}

/// Where deltabench has its tables on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// In databases of its own, on a server that it started.
    Databases,
    /// In schemas of its own in a database that was there before.
    Schemas(Box<Schemas>),
}

/// Schemas of ours on a server that was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schemas {
    /// How to log in, without the search path.
    pub(crate) login: Login,
    pub(crate) kept: String,
    /// The comment that marks both as ours.
    pub(crate) mark: String,
    /// How `pg_prewarm` is called there, if it may be.
    pub(crate) prewarm: Option<String>,
}

impl Home {
    /// The schema of tables.
    pub(crate) fn schema(&self, tables: Tables) -> String {
        match (self, tables) {
            (Self::Databases, _) => SCHEMA.to_owned(),
            (Self::Schemas(schemas), Tables::Kept(_)) => schemas.kept.clone(),
            (Self::Schemas(schemas), Tables::Work) => format!("{}{WORK_SUFFIX}", schemas.kept),
        }
    }

    /// How to log in so that unqualified names are those of these tables.
    pub(crate) fn login(&self, tables: Tables) -> Login {
        match self {
            Self::Databases => login(database_of(tables)),
            Self::Schemas(schemas) => {
                let mut login = schemas.login.clone();
                login.options.push(search_path(&self.schema(tables)));
                login
            }
        }
    }
}

/// A running server as set-up work reaches it.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) endpoint: Endpoint,
    pub(crate) home: Home,
}

impl Site {
    /// A server of our own.
    pub(crate) fn own(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            home: Home::Databases,
        }
    }

    /// A connection to tables for set-up work.
    pub(crate) fn open(&self, tables: Tables) -> Result<Client, Problem> {
        let mut client = connect(&self.endpoint, &self.home.login(tables))?;
        if matches!(self.home, Home::Schemas(_)) {
            limit(&mut client)?;
        }
        Ok(client)
    }
}

/// Bounds what a set-up connection to somebody else's server may do to others.
pub(crate) fn limit(client: &mut Client) -> Result<(), Problem> {
    run(client, LIMITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_and_clients_find_the_same_tables_by_their_search_path() {
        let kept = Tables::Kept(DataState::Fresh);
        let own = Home::Databases.login(Tables::Work);
        assert_eq!(own.database, "deltabench_work");
        assert_eq!(own.options, [search_path("deltabench")]);
        let mut login = login("shop");
        login.options = vec![("work_mem".to_owned(), "8MB".to_owned())];
        let remote = Home::Schemas(Box::new(Schemas {
            login,
            kept: "deltabench_r_0".to_owned(),
            mark: String::new(),
            prewarm: None,
        }));
        for (tables, schema) in [
            (kept, "deltabench_r_0"),
            (Tables::Work, "deltabench_r_0_work"),
        ] {
            let login = remote.login(tables);
            assert_eq!(login.database, "shop");
            assert_eq!(login.options.last(), Some(&search_path(schema)));
            assert_eq!(login.options.len(), 2, "settings are kept");
        }
    }
}
