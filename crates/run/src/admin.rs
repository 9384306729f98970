//! Set-up statements, with problems that name them.

use deltabench_driver::WireError;
use deltabench_driver::admin::Client;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::problem::Problem;
use std::time::Duration;

/// Limit for one set-up connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection for set-up work.
///
/// Errors: the server cannot be reached, with what to do about its path where that is the reason.
pub fn connect(endpoint: &Endpoint, login: &Login) -> Result<Client, Problem> {
    Client::connect(endpoint, login, CONNECT_TIMEOUT).map_err(|error| {
        without_path(&error).unwrap_or_else(|| {
            Problem::new("cannot connect to a server of this run")
                .detail(format!("database {}: {error}", login.database))
        })
    })
}

/// Carries out statements.
///
/// Errors: what the server answered, with the statement.
pub fn run(client: &mut Client, sql: &str) -> Result<(), Problem> {
    client.execute(sql).map_err(|error| failed(sql, &error))
}

/// The rows that a query gives.
///
/// Errors: what the server answered, with the statement.
pub fn query(client: &mut Client, sql: &str) -> Result<Vec<Vec<Option<String>>>, Problem> {
    client.query(sql).map_err(|error| failed(sql, &error))
}

/// The number that a query gives in its first row.
///
/// Errors: those of [`query`]; there is none.
pub fn number(client: &mut Client, sql: &str) -> Result<u64, Problem> {
    let rows = query(client, sql)?;
    let found = rows.into_iter().next().map(text).unwrap_or_default();
    found.parse().map_err(|_| {
        Problem::new("a server answered with something that is not a number").detail(sql)
    })
}

/// The first field of a row.
pub fn text(row: Vec<Option<String>>) -> String {
    row.into_iter().next().flatten().unwrap_or_default()
}

/// What a server answered to a statement, as a problem.
pub fn failed(sql: &str, error: &WireError) -> Problem {
    Problem::new("a server refused a set-up statement").detail(format!("{error}\nin: {sql}"))
}

/// Statements would find tables of others.
pub(crate) fn pathless(at: &str, error: &WireError) -> Problem {
    Problem::new(format!("{at} does not accept search_path at log-in"))
        .detail(error.to_string())
        .hint(
            "a connection pooler between deltabench and the server drops it \
             (ignore_startup_parameters): name the server itself",
        )
}

/// What is to be said if an error is that a session has another `search_path` than it was given.
pub(crate) fn without_path(error: &WireError) -> Option<Problem> {
    match error {
        WireError::SearchPath { endpoint, .. } => Some(pathless(endpoint, error)),
        WireError::At { error, .. } => without_path(error),
        _ => None,
    }
}
