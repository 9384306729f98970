//! How a server of a replay is reached: who logs in, and what a session is that replays.

use crate::said::{self, Known};
use crate::session::{ErrorClass, connect, query, refused, run};
use deltabench_capture::{Kind, Statement};
use deltabench_driver::{Client, WireError};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::problem::Problem;
use deltabench_server::SUPERUSER;
use std::collections::BTreeSet;

/// Settings of every session that replays, whether its answers or its times are wanted: nothing changes,
/// nothing waits for ever, and values are printed in one way. What values mean stays as it is configured: the
/// order of day and month, the time zone. So does what printing a float costs, which depends on the version.
const SESSION: [&str; 7] = [
    // A serializable reader can make the transactions of others fail.
    "SET default_transaction_isolation = 'read committed'",
    "SET lock_timeout = '5s'",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET datestyle = 'ISO'",
    "SET intervalstyle = 'postgres'",
    "SET bytea_output = 'hex'",
    "SET client_encoding = 'UTF8'",
];
/// Besides, where rows are compared and no time is taken: floats have 15 digits, because the last ones depend
/// on the order of a sum, and on the version before 12.
pub const COMPARABLE: &str = "SET extra_float_digits = 0";

/// The database that gets the dump.
pub const DATABASE: &str = "deltabench_replay";
/// Its copy, which writes change.
const COPY: &str = "deltabench_replay_copy";
/// The first version that says how it copies a database.
const STRATEGY_SINCE: u32 = 150_000;
/// The settings of the database with the dump are those of its copy.
const SETTINGS_OF_COPY: &str =
    "INSERT INTO pg_catalog.pg_db_role_setting (setdatabase, setrole, setconfig)
  SELECT copied.oid, s.setrole, s.setconfig FROM pg_catalog.pg_db_role_setting s
    JOIN pg_catalog.pg_database kept ON kept.oid = s.setdatabase
    CROSS JOIN pg_catalog.pg_database copied
    WHERE kept.datname = 'deltabench_replay' AND copied.datname = 'deltabench_replay_copy'";
/// The role that replays where the captured one is unknown: no superuser.
pub const ROLE: &str = "deltabench_replayer";
/// Settings of our own sessions, over those that the dump gives to its database: no limit, and writes. What
/// loads commits synchronously: VACUUM marks no page as all visible whose last commit is not in the log yet,
/// and plans depend on that.
const OURS: [(&str, &str); 6] = [
    ("synchronous_commit", "on"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("default_transaction_read_only", "off"),
    ("default_transaction_isolation", "read committed"),
];
/// After loading, too: event triggers of the dump do not fire for us.
const NO_TRIGGERS: (&str, &str) = ("session_replication_role", "replica");

/// Which tables statements of the user work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    /// Those that have the dump, or those of somebody else: nothing changes them.
    Kept,
    /// A copy on a server of our own.
    Copy,
}

impl Tables {
    /// Those that a statement of this kind works on.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::Kept,
            _ => Self::Copy,
        }
    }

    /// Whether sessions only read.
    fn read_only(self) -> &'static str {
        match self {
            Self::Kept => "on",
            Self::Copy => "off",
        }
    }
}

/// The statements that begin a session, with this limit for each statement.
pub fn session(timeout_seconds: u32, tables: Tables) -> Vec<String> {
    let read_only = tables.read_only();
    let own = [
        format!("SET default_transaction_read_only = {read_only}"),
        format!("SET statement_timeout = '{timeout_seconds}s'"),
    ];
    SESSION.map(str::to_owned).into_iter().chain(own).collect()
}

/// Whether each session that replays has a value of our own for a setting, whatever the server's is. Of
/// `datestyle` it has the style only: the order of day and month stays the user's.
pub fn is_of_sessions(name: &str) -> bool {
    let all = session(0, Tables::Kept);
    let mut own = all.iter().filter_map(|statement| {
        let (own, _) = statement.strip_prefix("SET ")?.split_once(" = ")?;
        (own != "datestyle").then_some(own)
    });
    own.any(|own| name.eq_ignore_ascii_case(own))
}

/// Who replays a statement, with which path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub role: String,
    pub search_path: Option<String>,
}

impl Who {
    /// As captured; another role where its own may not log in everywhere, as `roles` may.
    pub fn of(statement: &Statement, roles: &BTreeSet<String>) -> Self {
        let captured = statement.role.as_ref().filter(|role| roles.contains(*role));
        Self {
            role: captured.map_or(ROLE, String::as_str).to_owned(),
            search_path: statement.search_path.clone(),
        }
    }

    /// The statement that sets the path.
    pub fn set_path(&self) -> Option<String> {
        let path = self.search_path.as_ref();
        path.map(|path| format!("SET search_path = {path}"))
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct Reach {
    /// As reports call it.
    pub name: String,
    pub endpoint: Endpoint,
    /// The only login of a server that somebody else runs; absent on a server of our own.
    theirs: Option<Login>,
}

/// Settings of deltabench's own sessions on a server of somebody else.
const CAREFUL: [(&str, &str); 3] = [
    ("default_transaction_read_only", "on"),
    ("statement_timeout", "60s"),
    ("lock_timeout", "5s"),
];

impl Reach {
    /// A server of our own.
    pub fn ours(name: &str, endpoint: Endpoint) -> Self {
        Self {
            name: name.to_owned(),
            endpoint,
            theirs: None,
        }
    }

    /// One that somebody else runs. Its sessions bear the name of the replay.
    pub fn theirs(name: &str, (endpoint, login): (Endpoint, Login), replay: &str) -> Self {
        let mut login = login;
        login.options.retain(|(name, _)| name != "application_name");
        let named = ("application_name".to_owned(), replay.to_owned());
        login.options.push(named);
        Self {
            name: name.to_owned(),
            endpoint,
            theirs: Some(login),
        }
    }

    /// The role that logs in to a server of somebody else.
    pub fn user(&self) -> &str {
        self.theirs.as_ref().map_or(SUPERUSER, |login| &login.user)
    }

    /// Whether it is a server of our own, where copies can be made and changed.
    pub fn is_ours(&self) -> bool {
        self.theirs.is_none()
    }

    /// How statements of the user log in: with this role, or with the only one that there is. Somebody else's
    /// server has no copy.
    pub fn login(&self, who: &Who, tables: Tables) -> Login {
        let Some(theirs) = &self.theirs else {
            return login(&who.role, tables);
        };
        let mut login = theirs.clone();
        // They have the path of their role, or of the capture.
        login.options.retain(|(name, _)| name != "search_path");
        login.confirm_path = false;
        login
    }

    /// A connection for statements of deltabench itself, which only reads on a server of somebody else.
    ///
    /// Errors: the server cannot be reached.
    pub fn own(&self) -> Result<Client, Problem> {
        let login = match &self.theirs {
            None => after_loading(),
            Some(theirs) => {
                let careful = CAREFUL.map(|(name, value)| (name.to_owned(), value.to_owned()));
                let mut login = theirs.clone();
                login.options.extend(careful);
                login
            }
        };
        connect(&self.endpoint, &login).map_err(|problem| self.named(problem))
    }

    /// A connection to a server of somebody else with the settings of its role and database, as statements of
    /// the user have it.
    ///
    /// Errors: the server cannot be reached.
    pub fn plain(&self) -> Result<Client, Problem> {
        let who = Who {
            role: self.user().to_owned(),
            search_path: None,
        };
        let login = self.login(&who, Tables::Kept);
        connect(&self.endpoint, &login).map_err(|problem| self.named(problem))
    }

    /// Makes the copy for writes anew, on a server of our own: files are copied as they are, with statistics.
    ///
    /// Errors: what the server answers; a server of somebody else.
    pub fn copy(&self, version_num: u32) -> Result<(), Problem> {
        if !self.is_ours() {
            return Err(self.named(Problem::new(
                "nothing is copied on servers that already run",
            )));
        }
        // Without it the copy goes through the write-ahead log, with checkpoints later.
        let strategy = match version_num >= STRATEGY_SINCE {
            true => " STRATEGY file_copy",
            false => "",
        };
        self.maintain(&[
            &format!("DROP DATABASE IF EXISTS {COPY}"),
            &format!("CREATE DATABASE {COPY} TEMPLATE {DATABASE}{strategy}"),
            SETTINGS_OF_COPY,
        ])
    }

    /// Removes the copy for writes, if there is one.
    ///
    /// Errors: what the server answers.
    pub fn drop_copy(&self) -> Result<(), Problem> {
        match self.is_ours() {
            true => self.maintain(&[&format!("DROP DATABASE IF EXISTS {COPY}")]),
            false => Ok(()),
        }
    }

    /// Statements of ours about databases of a server of our own.
    fn maintain(&self, statements: &[&str]) -> Result<(), Problem> {
        let client = connect(&self.endpoint, &superuser("postgres"));
        let mut client = client.map_err(|problem| self.named(problem))?;
        let mut statements = statements.iter();
        statements
            .try_for_each(|sql| run(&mut client, sql))
            .map_err(|problem| self.named(problem))
    }

    /// Has new statistics drawn on a server of our own. What is refused was refused after loading, too, and
    /// is told.
    ///
    /// Errors: what the server answers.
    pub fn analyze(&self) -> Result<(), Problem> {
        if self.theirs.is_some() {
            return Ok(());
        }
        let drawn = analyze(&mut self.own()?, "ANALYZE");
        drawn.map(drop).map_err(|problem| self.named(problem))
    }

    /// Ends what the server does for this replay: a long statement does not hear of an interruption.
    pub fn end_sessions(&self) {
        let mut others =
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
                          WHERE pid <> pg_catalog.pg_backend_pid()"
                .to_owned();
        if self.theirs.is_some() {
            others.push_str(
                " AND usename = current_user \
                  AND application_name = pg_catalog.current_setting('application_name')",
            );
        }
        // Best effort: without it the statement ends at its time-out.
        let _ = self
            .own()
            .and_then(|mut client| query(&mut client, &others));
    }

    /// A problem with this server.
    pub fn named(&self, problem: Problem) -> Problem {
        let detail = problem.detail.clone().unwrap_or_default();
        let detail = format!("{}: {detail}", self.name);
        problem.detail(detail.trim_end_matches([' ', ':']))
    }
}

/// How a role logs in to replay.
fn login(role: &str, tables: Tables) -> Login {
    Login {
        user: role.to_owned(),
        // The limit of the replay comes after the log-in.
        options: vec![("statement_timeout".to_owned(), "0".to_owned())],
        ..superuser(match tables {
            Tables::Kept => DATABASE,
            Tables::Copy => COPY,
        })
    }
}

/// How deltabench logs in to a server of its own.
pub fn superuser(database: &str) -> Login {
    Login {
        user: SUPERUSER.to_owned(),
        database: database.to_owned(),
        password: None,
        options: OURS
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        confirm_path: false,
    }
}

/// How we log in to a server that has the tables.
fn after_loading() -> Login {
    let mut login = superuser(DATABASE);
    let (name, value) = NO_TRIGGERS;
    login.options.push((name.to_owned(), value.to_owned()));
    login
}

/// Has statistics of every table drawn, one by one: a table with a partition on another server has none.
///
/// Shape:  what the server refused, with the reason.
/// Errors: a lost connection.
pub fn analyze(client: &mut Client, command: &str) -> Result<BTreeSet<String>, Problem> {
    let mut refused_by_server = BTreeSet::new();
    for row in query(client, TABLES)? {
        let Ok([Some(name), Some(kind)]) = <[Option<String>; 2]>::try_from(row) else {
            continue;
        };
        // A partitioned table has no pages of its own.
        let command = if kind == "p" { "ANALYZE" } else { command };
        match client.execute(&format!("{command} {name}")) {
            Ok(()) => {}
            Err(WireError::Server(error)) if ErrorClass::of(&error) != ErrorClass::Useless => {
                let said = said::message(&error, &Known::default());
                refused_by_server.insert(format!("{name}: {} {said}", error.sqlstate));
            }
            Err(error) => return Err(refused(&error)),
        }
    }
    Ok(refused_by_server)
}

/// Tables that have statistics.
const TABLES: &str = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.relkind::text
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'm', 'p') AND c.relpersistence <> 't'
    AND (c.relkind <> 'm' OR c.relispopulated)
  ORDER BY c.oid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sessions_set_is_no_choice_of_the_user_but_for_the_order_of_day_and_month() {
        for own in [
            "statement_timeout",
            "DEFAULT_transaction_read_only",
            "default_transaction_isolation",
            "lock_timeout",
            "bytea_output",
        ] {
            assert!(is_of_sessions(own), "{own}");
        }
        for theirs in [
            "datestyle",
            "extra_float_digits",
            "timezone",
            "work_mem",
            "SET",
            "",
        ] {
            assert!(!is_of_sessions(theirs), "{theirs}");
        }
    }

    #[test]
    fn a_problem_names_its_server() {
        let socket = Endpoint::Unix {
            directory: "/tmp".into(),
            port: 1,
        };
        let reach = Reach::ours("postgres:18.6", socket);
        let named = reach.named(Problem::new("x").detail("line 3"));
        assert_eq!(named.detail.unwrap(), "postgres:18.6: line 3");
        let bare = reach.named(Problem::new("x"));
        assert_eq!(bare.detail.unwrap(), "postgres:18.6");
    }
}
