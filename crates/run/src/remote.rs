//! Servers that were there before: reached, loaded in schemas of their own, and left as they were.
//!
//! Nothing of such a server is started, stopped, configured or restarted, no database is made on it, and
//! nothing is asked of it that needs more than the right to make a schema. What deltabench makes there are
//! schemas `deltabench_RUN_N` and, for cells that write, `deltabench_RUN_N_work`, each with a comment that
//! says which run made it (`schemas`). They are dropped when the run ends; those of a run that was killed
//! when the next one starts. No schema without such a comment is ever dropped.
//!
//! What that costs: a block cannot restart the server, so what a start draws anew is in no interval; caches,
//! checkpoints and settings of the server stay what they are; CPU time of servers is there only where an
//! agent reads it (`agents`). All that is said as findings (`findings`).

mod access;
mod agents;
mod check;
mod findings;
mod schemas;
mod server;
mod tables;

pub use access::{Readable, installation, readable};
pub(crate) use agents::{Agents, Watcher};
pub(crate) use check::check_servers;
pub use check::{check, only_own};
pub(crate) use findings::{findings, round_trip_us};
pub(crate) use server::RemoteServer;
pub(crate) use tables::{copy, make_visible, read_all, renew};

use deltabench_model::installation::{Installation, Remote};

/// Whether two installations are the same server: the same files, or the same one that was there before.
pub(crate) fn same_server(one: &Installation, other: &Installation) -> bool {
    one.bin_dir == other.bin_dir && one.remote == other.remote
}

/// `HOST:PORT` for sentences.
fn place(remote: &Remote) -> String {
    format!("{}:{}", remote.host, remote.port)
}
