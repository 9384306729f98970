//! Connections to the servers of a replay.

use deltabench_driver::Client;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::problem::Problem;
use std::time::Duration;

/// Limit for one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection.
///
/// Errors: the server cannot be reached.
pub fn connect(endpoint: &Endpoint, login: &Login) -> Result<Client, Problem> {
    Client::connect(endpoint, login, CONNECT_TIMEOUT).map_err(|error| {
        Problem::new("cannot connect to a server of this replay").detail(error.to_string())
    })
}
