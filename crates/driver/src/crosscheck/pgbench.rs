//! pgbench itself, run as it is.

use crate::peer::{Peer, PeerOutcome, Scratch, cannot, finish, host_and_port, session};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::QueryMode;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Largest seed that pgbench takes on every platform.
const SEED_MAX: u64 = 0x7fff_ffff;
/// First version that takes a seed.
const SEED_SINCE: u32 = 11;

/// One run of a built-in script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgbenchRun<'a> {
    /// The program, from [`installed`].
    pub program: &'a Path,
    /// Its major version, from [`major`].
    pub major: u32,
    /// Its script: `select-only`.
    pub builtin: &'a str,
    /// How statements are sent.
    pub mode: QueryMode,
    /// Connections, all served by one thread.
    pub clients: u32,
    /// Transactions in all, a multiple of `clients`.
    pub transactions: u64,
    pub seed: u64,
    /// Cores it may use; none means all.
    pub affinity: &'a [usize],
}

impl PgbenchRun<'_> {
    /// What is typed after `pgbench` to have the same transactions again, without the connection.
    pub fn arguments(&self) -> Vec<String> {
        let each = self.transactions / u64::from(self.clients.max(1));
        let mut arguments = vec![
            "--no-vacuum".to_owned(),
            "--jobs=1".to_owned(),
            format!("--builtin={}", self.builtin),
            format!("--protocol={}", self.mode.word()),
            format!("--client={}", self.clients),
            format!("--transactions={}", each.max(1)),
        ];
        // An older one draws its own.
        if self.major >= SEED_SINCE {
            arguments.push(format!("--random-seed={}", self.seed % SEED_MAX));
        }
        arguments
    }
}

/// The pgbench to run: the newer one of the server's own and the one that is installed, its own if they are
/// alike. What is compared with is pgbench 18, and an old one lacks options.
///
/// Errors: there is none.
pub fn installed(server: &Installation) -> Result<PathBuf, Problem> {
    let own = server.bin_dir.join(Peer::Pgbench.word());
    if !own.is_file() {
        return Peer::Pgbench.installed();
    }
    let version = |program: &Path| pgbench_version(program).map_or(0, |said| major(&said));
    let newer = Peer::Pgbench.program();
    let newer = newer.filter(|other| version(other) > version(&own));
    Ok(newer.unwrap_or(own))
}

/// The major version in what a pgbench says of itself; 9 for all before 10, 0 where it says none.
pub fn major(said: &str) -> u32 {
    let after = said
        .split_once("(PostgreSQL)")
        .map_or("", |(_, after)| after);
    let digits = after.trim_start().split(|c: char| !c.is_ascii_digit());
    digits
        .into_iter()
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
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
            Problem::new("pgbench did not do the requested work").detail(format!(
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
            major: 18,
        };
        assert_eq!(
            run.arguments().join(" "),
            "--no-vacuum --jobs=1 --builtin=select-only --protocol=prepared --client=4 --transactions=100 \
             --random-seed=0"
        );
        let old = PgbenchRun { major: 10, ..run };
        assert!(!old.arguments().join(" ").contains("seed"));
    }

    #[test]
    fn the_major_version_is_read_whoever_packaged_it() {
        for (said, wanted) in [
            ("pgbench (PostgreSQL) 18.1", 18),
            ("pgbench (PostgreSQL) 9.6.24", 9),
            ("pgbench (PostgreSQL) 17.2 (Debian 17.2-1.pgdg120+1)", 17),
            ("pgbench (PostgreSQL) 19beta1", 19),
            ("something else 3", 0),
        ] {
            assert_eq!(major(said), wanted, "{said}");
        }
    }
}
