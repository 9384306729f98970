//! Loads a dump into a server, statement by statement.

use super::error::DumpError;
use super::file::DumpFile;
use super::item::{Command, Item, command, item};
use super::splitter::{Piece, Splitter};
use super::survey::follow_escapes;
use super::words::{Word, summary, words};
use crate::said::{self, Known};
use crate::session::{ErrorClass, connect, disk_full, quoted};
use deltabench_driver::{Client, ServerError, WireError};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::problem::Problem;
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

/// More failures than this are no difference between versions.
const MOST_FAILURES: usize = 500;
/// Roles that a statement may lack.
const MOST_ROLES: usize = 50;
/// SQLSTATE of a statement in a transaction that has failed.
const FAILED_TRANSACTION: &str = "25P02";
/// SQLSTATE of an object, such as a role or a setting, that is not there.
const UNDEFINED_OBJECT: &str = "42704";
/// SQLSTATE of a value that a setting does not take, such as a role that is not there.
const INVALID_VALUE: &str = "22023";
/// SQLSTATEs of what is not there yet: nothing to drop.
const NOT_THERE: [&str; 5] = ["42P01", "3F000", UNDEFINED_OBJECT, "42883", "42703"];
/// SQLSTATEs of what each new database has: the schema `public`, a language, a role.
const THERE_ALREADY: [&str; 2] = ["42P06", "42710"];
/// SQLSTATE of an owner that has to be a superuser, as of an event trigger.
const NO_PRIVILEGE: &str = "42501";

/// Where a dump is loaded.
#[derive(Debug, Clone, Copy)]
pub struct Loading<'a> {
    pub dump: &'a DumpFile,
    pub endpoint: &'a Endpoint,
    /// A superuser, at the database that gets the objects.
    pub login: &'a Login,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
}

/// A statement of a dump that a server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFailure {
    /// Of the dump, from 1.
    pub line: u64,
    /// Its first words, without values.
    pub what: String,
    pub sqlstate: String,
    /// Without values.
    pub message: String,
    /// Whether rows are missing for it.
    pub of_data: bool,
}

/// What came of loading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    pub failures: Vec<LoadFailure>,
    /// Settings of the dump that the server does not know or take.
    pub settings_left_out: BTreeSet<String>,
    /// Predefined roles (`pg_maintain`) that the dump grants and the server does not have.
    pub grants_left_out: BTreeSet<String>,
    /// Roles that were made for the dump; all are superusers.
    pub roles: BTreeSet<String>,
}

/// Loads a dump. What the server refuses is told and the rest goes on, as with psql.
///
/// Errors: a dump that cannot be read to its end, a full disk, a lost connection, an interruption.
pub fn load(loading: &Loading<'_>) -> Result<Loaded, Problem> {
    let input = loading.dump.open().map_err(DumpError::Read);
    let input = input.map_err(|error| error.problem(loading.dump.path()))?;
    let mut loader = Loader {
        loading,
        client: connect(loading.endpoint, loading.login)?,
        loaded: Loaded::default(),
    };
    let mut splitter = Splitter::new(input);
    loop {
        let next = splitter.next_piece();
        let next = next.map_err(|error| loader.unreadable(&error))?;
        match next {
            None => return Ok(loader.loaded),
            Some(Piece::Comment(_)) => {}
            Some(Piece::Command { text, line }) => loader.command(&text, line)?,
            Some(Piece::Statement { sql, line }) => {
                loader.statement(&sql, line, &mut splitter)?;
            }
        }
    }
}

struct Loader<'a> {
    loading: &'a Loading<'a>,
    client: Client,
    loaded: Loaded,
}

impl Loader<'_> {
    fn unreadable(&self, error: &DumpError) -> Problem {
        error.problem(self.loading.dump.path())
    }

    fn command(&mut self, text: &str, line: u64) -> Result<(), Problem> {
        match command(text, line).map_err(|error| self.unreadable(&error))? {
            Command::Connect(_) => {
                self.client = connect(self.loading.endpoint, self.loading.login)?;
                Ok(())
            }
            Command::Encoding(name) => {
                let sql = format!("SET client_encoding = '{}'", name.replace('\'', "''"));
                self.send(sql.as_bytes(), line)
            }
            Command::Nothing => Ok(()),
        }
    }

    fn statement<R: Read>(
        &mut self,
        sql: &[u8],
        line: u64,
        splitter: &mut Splitter<R>,
    ) -> Result<(), Problem> {
        if self.loading.interrupted.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let item = item(sql, line).map_err(|error| self.unreadable(&error))?;
        follow_escapes(&item, splitter);
        match item {
            Item::Skip(_) => Ok(()),
            Item::Send | Item::Extension { .. } => self.send(sql, line),
            Item::Role { name } => {
                // One that exists is as good.
                self.make_role(&name)
                    .map(drop)
                    .or_else(|error| self.passed(error, line))
            }
            Item::Set { name, .. } => match self.client.execute_bytes(sql) {
                Err(WireError::Server(error)) if !is_fatal(&error) => {
                    self.loaded.settings_left_out.insert(name);
                    Ok(())
                }
                other => other.map_err(|error| self.lost(&error, line)),
            },
            Item::AlterDatabase => {
                let renamed = renamed(sql, &self.loading.login.database);
                self.send(&renamed, line)
            }
            Item::CopyIn { table } => self.copy(sql, (line, &table), splitter),
        }
    }

    /// Sends a statement, making the roles that it names.
    fn send(&mut self, sql: &[u8], line: u64) -> Result<(), Problem> {
        let mut unknown = None;
        for _ in 0..MOST_ROLES {
            let error = match self.client.execute_bytes(sql) {
                Ok(()) => return Ok(()),
                Err(WireError::Server(error)) => error,
                Err(error) => return Err(self.lost(&error, line)),
            };
            let Some(role) = missing_role(&error) else {
                return self.refused(sql, line, &error);
            };
            if is_predefined_grant(sql, &role) {
                self.loaded.grants_left_out.insert(role);
                return Ok(());
            }
            match self.make_role(&role) {
                Ok(()) => unknown = Some(error),
                Err(WireError::Server(_)) => return self.refused(sql, line, &error),
                Err(error) => return Err(self.lost(&error, line)),
            }
        }
        // It never took the statement.
        unknown.map_or(Ok(()), |error| self.refused(sql, line, &error))
    }

    /// Makes a role that may do everything while the dump is loaded, as its owners could in production.
    fn make_role(&mut self, name: &str) -> Result<(), WireError> {
        self.client
            .execute(&format!("CREATE ROLE {} SUPERUSER", quoted(name)))?;
        self.loaded.roles.insert(name.to_owned());
        Ok(())
    }

    /// Passes over what the server refuses.
    fn passed(&self, error: WireError, line: u64) -> Result<(), Problem> {
        match error {
            WireError::Server(error) if !is_fatal(&error) => Ok(()),
            error => Err(self.lost(&error, line)),
        }
    }

    /// Sends the rows of a table; what the server does not take is read all the same.
    fn copy<R: Read>(
        &mut self,
        sql: &[u8],
        (line, table): (u64, &str),
        splitter: &mut Splitter<R>,
    ) -> Result<(), Problem> {
        let skipped = splitter.skip_line();
        skipped.map_err(|error| self.unreadable(&error))?;
        let stop = self.loading.interrupted;
        let (mut more, mut unreadable) = (true, None);
        let mut feed = |out: &mut Vec<u8>| {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            match splitter.copy_data(out) {
                Ok(goes_on) => more = goes_on,
                Err(error) => {
                    more = false;
                    unreadable = Some(error);
                }
            }
            more
        };
        let copied = self.client.copy_in_bytes(sql, &mut feed);
        if stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let mut rest = Vec::new();
        while more && unreadable.is_none() {
            rest.clear();
            match splitter.copy_data(&mut rest) {
                Ok(goes_on) => more = goes_on,
                Err(error) => unreadable = Some(error),
            }
        }
        if let Some(error) = unreadable {
            return Err(self.unreadable(&error));
        }
        match copied {
            Ok(_) => Ok(()),
            Err(WireError::Server(error)) if !is_fatal(&error) => {
                self.failed((format!("COPY {table}"), sql), line, &error, true)
            }
            Err(error) => Err(self.lost(&error, line)),
        }
    }

    /// A statement that the server refused.
    fn refused(&mut self, sql: &[u8], line: u64, error: &ServerError) -> Result<(), Problem> {
        if is_fatal(error) {
            return Err(self.lost(&WireError::Server(error.clone()), line));
        }
        if error.sqlstate == FAILED_TRANSACTION {
            return Err(Problem::new("the dump cannot be loaded")
                .detail(format!(
                    "line {line}: the dump's transaction has failed at an earlier statement"
                ))
                .hint(
                    "remove BEGIN and COMMIT from the file: each statement is loaded by itself",
                ));
        }
        let words = words(sql, 40);
        if is_expected(&words, &error.sqlstate) {
            return Ok(());
        }
        let of_data = words.first().is_some_and(|word| word.keyword() == "insert");
        self.failed((summary(sql), sql), line, error, of_data)
    }

    fn failed(
        &mut self,
        (what, sql): (String, &[u8]),
        line: u64,
        error: &ServerError,
        of_data: bool,
    ) -> Result<(), Problem> {
        let known = Known::of(&String::from_utf8_lossy(sql), std::iter::empty());
        self.loaded.failures.push(LoadFailure {
            line,
            what,
            sqlstate: error.sqlstate.clone(),
            message: said::message(error, &known),
            of_data,
        });
        if self.loaded.failures.len() < MOST_FAILURES {
            return Ok(());
        }
        let first = self.loaded.failures.first();
        let first = first.map_or_else(String::new, LoadFailure::to_string);
        Err(Problem::new("the dump cannot be loaded").detail(format!(
            "{MOST_FAILURES} statements failed, the first: {first}"
        )))
    }

    /// A connection that is of no use any more, or a server that is not.
    fn lost(&self, error: &WireError, line: u64) -> Problem {
        let class = match error {
            WireError::Server(error) => Some(ErrorClass::of(error)),
            _ => None,
        };
        if class == Some(ErrorClass::DiskFull) {
            return disk_full(&format!("loading line {line} of the dump"));
        }
        let said = match error {
            WireError::Server(error) => {
                format!(
                    "{}: {}",
                    error.sqlstate,
                    said::message(error, &Known::default())
                )
            }
            other => other.to_string(),
        };
        Problem::new("loading the dump failed").detail(format!("line {line}: {said}"))
    }
}

impl std::fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            line,
            what,
            sqlstate,
            message,
            ..
        } = self;
        write!(f, "line {line}: {what}: {sqlstate} {message}")
    }
}

fn interrupted() -> Problem {
    Problem::new("interrupted")
}

/// Whether the rest is not tried: the server or its disk is of no use, or its resources are used up, and rows
/// that are missing for it are no difference between versions.
fn is_fatal(error: &ServerError) -> bool {
    matches!(
        ErrorClass::of(error),
        ErrorClass::Useless | ErrorClass::DiskFull | ErrorClass::Resources | ErrorClass::Conflict
    )
}

/// Whether a statement grants a role that other versions have by themselves: nobody can make one, because
/// its name is reserved.
fn is_predefined_grant(sql: &[u8], role: &str) -> bool {
    let words = words(sql, 1);
    let first = words.first().map(Word::keyword);
    role.starts_with("pg_") && matches!(first, Some("grant" | "revoke"))
}

/// The role that a statement needs and that is not there.
fn missing_role(error: &ServerError) -> Option<String> {
    let rest = error.message.strip_prefix("role \"")?;
    let name = rest.strip_suffix("\" does not exist")?;
    let known = [UNDEFINED_OBJECT, INVALID_VALUE].contains(&error.sqlstate.as_str());
    known.then(|| name.to_owned())
}

/// Whether a failure is no loss: what is dropped is not there, what is made is there already, an owner has to
/// be a superuser.
fn is_expected(words: &[Word], sqlstate: &str) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word.keyword() == wanted);
    let starts = |wanted: &str| words.first().is_some_and(|word| word.keyword() == wanted);
    let drops = starts("drop") || starts("alter") && has("drop");
    let made = starts("create") && (has("schema") || has("role") || has("user") || has("language"));
    (drops && NOT_THERE.contains(&sqlstate))
        || (made && THERE_ALREADY.contains(&sqlstate))
        || ((has("owner") || starts("comment")) && sqlstate == NO_PRIVILEGE)
}

/// `ALTER DATABASE x …` and `ALTER ROLE y IN DATABASE x …` with the name of another database.
fn renamed(sql: &[u8], database: &str) -> Vec<u8> {
    let words = words(sql, 6);
    let named = words.iter().position(|word| word.keyword() == "database");
    let end_of = |word: Option<&Word>| word.map_or(sql.len(), Word::end);
    let before = end_of(named.and_then(|named| words.get(named)));
    let after = end_of(named.and_then(|named| words.get(named + 1)));
    let mut renamed = sql.get(..before).unwrap_or_default().to_vec();
    renamed.extend_from_slice(format!(" {}", quoted(database)).as_bytes());
    renamed.extend_from_slice(sql.get(after..).unwrap_or_default());
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_the_dumped_database_become_those_of_ours() {
        let sql = b"ALTER DATABASE \"my set\" SET search_path TO 'shop', 'public'";
        let renamed = renamed(sql, "replay");
        assert_eq!(
            String::from_utf8(renamed).unwrap(),
            "ALTER DATABASE \"replay\" SET search_path TO 'shop', 'public'"
        );
        let of_role = super::renamed(
            b"ALTER ROLE \"database\" IN DATABASE shop SET work_mem TO '8MB'",
            "replay",
        );
        assert_eq!(
            String::from_utf8(of_role).unwrap(),
            "ALTER ROLE \"database\" IN DATABASE \"replay\" SET work_mem TO '8MB'"
        );
    }

    #[test]
    fn a_grant_of_a_role_of_another_version_is_left_out_and_nothing_else() {
        assert!(is_predefined_grant(
            b"GRANT pg_maintain TO app",
            "pg_maintain"
        ));
        assert!(is_predefined_grant(
            b"revoke pg_maintain from app",
            "pg_maintain"
        ));
        assert!(!is_predefined_grant(b"GRANT app TO reader", "app"));
        let policy = b"CREATE POLICY p ON t TO pg_maintain USING (true)";
        assert!(!is_predefined_grant(policy, "pg_maintain"));
    }

    #[test]
    fn what_a_new_database_lacks_or_has_is_no_failure() {
        let expected =
            |sql: &str, sqlstate: &str| is_expected(&words(sql.as_bytes(), 40), sqlstate);
        assert!(expected("DROP TABLE a.t", "42P01"));
        assert!(expected("ALTER TABLE ONLY a.t DROP CONSTRAINT c", "42P01"));
        assert!(expected("CREATE SCHEMA public", "42P06"));
        assert!(expected("ALTER EVENT TRIGGER e OWNER TO app", "42501"));
        assert!(!expected("CREATE TABLE t (a int)", "42P07"));
        assert!(!expected(
            "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
            "42P01"
        ));
        assert!(!expected("DROP TABLE t", "42501"));
    }

    #[test]
    fn the_role_that_is_missing_is_named_by_the_server() {
        let mut error = ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: UNDEFINED_OBJECT.to_owned(),
            message: "role \"my app\" does not exist".to_owned(),
            detail: None,
            hint: None,
            routine: None,
        };
        assert_eq!(missing_role(&error).as_deref(), Some("my app"));
        error.message = "type \"x\" does not exist".to_owned();
        assert_eq!(missing_role(&error), None);
    }
}
