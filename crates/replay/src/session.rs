//! Connections to the servers of a replay, and deltabench's own statements on them.

use crate::said::{self, Known};
use deltabench_driver::{Client, ServerError, WireError};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::problem::Problem;
use std::time::Duration;

/// Limit for one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long an answer may take on the client's side: the server's own limit, and some more. A connection that
/// a firewall has dropped says nothing.
pub fn answer_limit(timeout_seconds: u32) -> Duration {
    Duration::from_secs(u64::from(timeout_seconds) + 30)
}

/// A connection.
///
/// Errors: the server cannot be reached.
pub fn connect(endpoint: &Endpoint, login: &Login) -> Result<Client, Problem> {
    Client::connect(endpoint, login, CONNECT_TIMEOUT).map_err(|error| {
        Problem::new("cannot connect to a server of this replay").detail(error.to_string())
    })
}

/// What an error of a server says about the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// It is about the statement.
    Statement,
    /// The statement did not end in time.
    TooLong,
    /// Memory or another limit of a machine was too small: no difference between servers.
    Resources,
    /// Other work was in the way, which another time it may not be: no difference between servers. A standby
    /// may end the whole session.
    Conflict,
    DiskFull,
    /// The server is of no use any more.
    Useless,
}

/// SQLSTATE of a statement that took too long.
const TOO_LONG: &str = "57014";
/// SQLSTATE of a full disk.
const DISK_FULL: &str = "53100";
/// SQLSTATE of a connection too many: fatal for that connection, and not for the server.
const TOO_MANY: &str = "53300";
/// Class of errors of resources, which are those of a machine.
const RESOURCES: &str = "53";
/// Class of conflicts with other transactions, on a standby with what it replays; and a lock that was not had
/// in time.
const CONFLICTS: &str = "40";
const NO_LOCK: &str = "55P03";
/// SQLSTATEs after which a server is of no use: it shuts down, crashed or starts, a device fails, data or an
/// index is damaged. A missing library (58P01), an internal error (XX000) and the connection of a foreign
/// table (08) are differences like any other.
const USELESS: [&str; 6] = ["57P01", "57P02", "57P03", "58030", "XX001", "XX002"];

/// Class of errors of constraints.
const CONSTRAINTS: &str = "23";

/// Whether a constraint refused what was written.
pub fn violates(sqlstate: &str) -> bool {
    sqlstate.starts_with(CONSTRAINTS)
}

/// Why a constraint refuses what is written, by its SQLSTATE.
pub fn why_refused(sqlstate: &str) -> &'static str {
    match sqlstate {
        "23505" => "the tables have its row already",
        "23P01" => "the tables have a row that excludes it",
        "23503" => "the tables lack a row that it needs, or have one that needs its row",
        "23502" | "23514" => "a value in it is not allowed there",
        _ => "the tables or its values do not allow it",
    }
}

/// Whether an error only says that other work was in the way.
pub fn is_conflict(sqlstate: &str) -> bool {
    sqlstate.starts_with(CONFLICTS) || sqlstate == NO_LOCK
}

impl ErrorClass {
    /// Of this error.
    pub fn of(error: &ServerError) -> Self {
        match error.sqlstate.as_str() {
            DISK_FULL => Self::DiskFull,
            state if is_conflict(state) => Self::Conflict,
            TOO_MANY => Self::Resources,
            _ if error.is_fatal() => Self::Useless,
            state if USELESS.contains(&state) => Self::Useless,
            TOO_LONG => Self::TooLong,
            state if state.starts_with(RESOURCES) => Self::Resources,
            _ => Self::Statement,
        }
    }
}

/// A full disk, and when it was found.
pub fn disk_full(when: &str) -> Problem {
    Problem::new("the disk is full")
        .detail(when)
        .hint("keep the servers on another disk with --cluster-dir DIR")
}

/// A statement that sets a setting; `SET` or `SET LOCAL`.
pub fn set(word: &str, (name, value): &(String, String)) -> String {
    format!("{word} {name} = '{}'", value.replace('\'', "''"))
}

/// A name as it is written in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A server that can no longer be asked, and the statement that it had last.
pub fn gone(error: &WireError, server: &str, statement: &str) -> Problem {
    let said = match error {
        WireError::Server(error) => format!(
            "{} {}",
            error.sqlstate,
            said::message(error, &Known::default())
        ),
        other => other.to_string(),
    };
    Problem::new("a server of the replay failed")
        .detail(format!("{server}: {said}\nwhile it had {statement}"))
}

/// Carries out a statement of ours.
///
/// Errors: what the server answered.
pub fn run(client: &mut Client, sql: &str) -> Result<(), Problem> {
    client.execute(sql).map_err(|error| refused(&error))
}

/// The rows of a query of ours.
///
/// Errors: what the server answered.
pub fn query(client: &mut Client, sql: &str) -> Result<Vec<Vec<Option<String>>>, Problem> {
    client.query(sql).map_err(|error| refused(&error))
}

/// What the server answered to a statement of ours. It may be about rows of the user: an index on an
/// expression computes it again.
pub fn refused(error: &WireError) -> Problem {
    let what = "a server refused a statement of deltabench";
    match error {
        WireError::Server(error) => {
            let said = said::message(error, &Known::default());
            Problem::new(what).detail(format!("{} {said}", error.sqlstate))
        }
        error => error.problem(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_there_is_said_of_keys_alone() {
        assert!(why_refused("23505").contains("its row already"));
        assert!(why_refused("23503").contains("lack"));
        for value in ["23514", "23502"] {
            assert!(why_refused(value).contains("a value in it"), "{value}");
        }
        assert!(why_refused("23000").contains("do not allow it"));
    }

    #[test]
    fn only_a_server_that_is_of_no_use_ends_the_rest_and_this_machine_is_no_difference() {
        let class = |severity: &str, sqlstate: &str| {
            ErrorClass::of(&ServerError {
                severity: severity.to_owned(),
                sqlstate: sqlstate.to_owned(),
                message: String::new(),
                detail: None,
                hint: None,
                routine: None,
            })
        };
        for sqlstate in ["58P01", "XX000", "42883", "08001", "22012"] {
            assert_eq!(
                class("ERROR", sqlstate),
                ErrorClass::Statement,
                "{sqlstate}"
            );
        }
        for sqlstate in ["57P01", "58030", "XX001"] {
            assert_eq!(class("ERROR", sqlstate), ErrorClass::Useless, "{sqlstate}");
        }
        assert_eq!(class("FATAL", "42501"), ErrorClass::Useless);
        assert_eq!(class("ERROR", "57014"), ErrorClass::TooLong);
        assert_eq!(class("ERROR", "53100"), ErrorClass::DiskFull);
        for small in ["53200", "53400"] {
            assert_eq!(class("ERROR", small), ErrorClass::Resources);
        }
        for passing in ["40001", "40P01", "55P03"] {
            assert_eq!(class("ERROR", passing), ErrorClass::Conflict);
        }
        assert_eq!(class("FATAL", "40001"), ErrorClass::Conflict);
        assert_eq!(class("FATAL", "53300"), ErrorClass::Resources);
    }
}
