//! pgbench itself, run as it is.

use crate::peer::{Peer, PeerOutcome, Scratch, cannot, finish, host_and_port, session};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::installation::Installation;
use deltabench_model::pgbench::QueryMode;
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Largest seed that pgbench takes on every platform.
const SEED_MAX: u64 = 0x7fff_ffff;

/// One run of a built-in script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgbenchRun<'a> {
    /// The program, from [`installed`].
    pub program: &'a Path,
    /// Its script: `select-only`.
    pub builtin: &'a str,
    /// How statements are sent.
    pub mode: QueryMode,
    /// Connections, all served by one thread.
    pub clients: u32,
    /// Transactions in all, a multiple of `clients`.
    pub transactions: u64,
    /// Seed of its parameters.
    pub seed: u64,
    /// Cores it may use; none means all.
    pub affinity: &'a [usize],
}

impl PgbenchRun<'_> {
    /// What is typed after `pgbench` to have the same transactions again, without the connection.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let each = self.transactions / u64::from(self.clients.max(1));
        vec![
            "--no-vacuum".to_owned(),
            "--jobs=1".to_owned(),
            format!("--builtin={}", self.builtin),
            format!("--protocol={}", self.mode.word()),
            format!("--client={}", self.clients),
            format!("--transactions={}", each.max(1)),
            format!("--random-seed={}", self.seed % SEED_MAX),
        ]
    }
}

/// The pgbench to run: the server's own if it has one, else the one that is installed.
///
/// Errors: there is none.
pub fn installed(server: &Installation) -> Result<PathBuf, Problem> {
    let own = server.bin_dir.join(Peer::Pgbench.word());
    if own.is_file() {
        return Ok(own);
    }
    Peer::Pgbench.installed()
}

/// What a pgbench says of its version: `pgbench (PostgreSQL) 18.1`.
///
/// Errors: it does not run.
pub fn pgbench_version(program: &Path) -> Result<String, Problem> {
    let word = Peer::Pgbench.word();
    let said = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|error| cannot(word, &error))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Runs a script; its client CPU is that of the whole process, start-up included.
///
/// Errors: pgbench fails, or prints something unknown.
pub fn run_pgbench(
    run: &PgbenchRun<'_>,
    endpoint: &Endpoint,
    login: &Login,
) -> Result<PeerOutcome, Problem> {
    let mut command = command(run.program, endpoint, login);
    command.args(run.arguments()).arg(&login.database);
    let word = Peer::Pgbench.word();
    let scratch = Scratch::new().map_err(|error| cannot(word, &error))?;
    let outcome = finish(Peer::Pgbench, command, &scratch, run.affinity)?;
    if outcome.operations != run.transactions {
        return Err(
            Problem::new("pgbench did not do what it was asked to").detail(format!(
                "{}: {} transactions instead of {}",
                run.builtin, outcome.operations, run.transactions
            )),
        );
    }
    Ok(outcome)
}

/// Makes tables with `pgbench -i`.
///
/// Errors: pgbench fails, with what it printed.
pub fn initialise(
    program: &Path,
    arguments: &[String],
    endpoint: &Endpoint,
    login: &Login,
) -> Result<(), Problem> {
    let mut command = command(program, endpoint, login);
    let said = command
        .args(["--initialize", "--quiet"])
        .args(arguments)
        .arg(&login.database)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot(Peer::Pgbench.word(), &error))?;
    if said.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&said.stderr);
    Err(Problem::new("pgbench -i failed").detail(complaint.trim()))
}

fn command(program: &Path, endpoint: &Endpoint, login: &Login) -> Command {
    let (host, port) = host_and_port(endpoint);
    let mut command = Command::new(program);
    command
        .args(["--host", &host, "--port", &port.to_string()])
        .args(["--username", &login.user]);
    session(&mut command, login);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_gets_its_share_of_the_transactions() {
        let run = PgbenchRun {
            program: Path::new("pgbench"),
            builtin: "select-only",
            mode: QueryMode::Prepared,
            clients: 4,
            transactions: 400,
            seed: SEED_MAX,
            affinity: &[],
        };
        assert_eq!(
            run.arguments().join(" "),
            "--no-vacuum --jobs=1 --builtin=select-only --protocol=prepared --client=4 --transactions=100 \
             --random-seed=0"
        );
    }
}
