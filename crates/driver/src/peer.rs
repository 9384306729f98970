//! External tools as drivers: sysbench and pgbench doing a fixed number of operations, and what they cost.
//!
//! Their client CPU is what the kernel says of the whole process, less the same for a run of the least
//! possible length: reading the script, connecting, preparing. The scripts are ours (`workloads/peers`),
//! compiled in.

pub(crate) mod bare;
mod stub;

pub use stub::Stub;

use crate::sys;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::WorkloadSource;
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_workload::executable::{Executable, Slot, Statement, Step, TableChoice, Value};
use deltabench_workload::pgbench::Program;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of the range look-up.
const RANGE: i64 = 100;

/// A tool to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// sysbench 1.0, LuaJIT and libpq, one thread per connection.
    Sysbench,
    /// pgbench, `-M prepared` unless the work says otherwise, all connections in one thread.
    Pgbench,
}

/// What a peer, or our own lane, is made to do on table `sbtest1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerWork {
    /// One row by primary key.
    Point,
    /// 100 rows by primary key.
    Range,
    /// One row changed by primary key.
    Update,
    /// One row by primary key, by a pgbench script: we run the file that pgbench runs.
    Script,
    /// The same with `-M simple`.
    ScriptSimple,
}

/// One run of a peer.
#[derive(Debug, Clone, Copy)]
pub struct PeerRun<'a> {
    pub peer: Peer,
    pub work: PeerWork,
    pub clients: u32,
    /// Threads of pgbench; sysbench has one for each client.
    pub jobs: u32,
    /// Operations in all; pgbench rounds down to a multiple of `clients`.
    pub operations: u64,
    /// Rows of `sbtest1`.
    pub rows: u64,
    /// Cores it may use; none means all.
    pub affinity: &'a [usize],
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerOutcome {
    pub operations: u64,
    /// Their time by the tool's own account, nanoseconds.
    pub duration_ns: u64,
    /// CPU of the client for them, nanoseconds; for a tool, start-up is subtracted.
    pub client_cpu_ns: u64,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sysbench, Self::Pgbench];

    /// Its name, which is also its program.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sysbench => "sysbench",
            Self::Pgbench => "pgbench",
        }
    }

    /// The program, if it is installed.
    ///
    /// Debian's `/usr/bin/pgbench` is a Perl script that looks for the real one, so that one is looked for
    /// first.
    pub fn program(self) -> Option<PathBuf> {
        let mut places: Vec<PathBuf> = Vec::new();
        if self == Self::Pgbench {
            let versions = fs::read_dir("/usr/lib/postgresql")
                .into_iter()
                .flatten()
                .flatten();
            let mut bins: Vec<PathBuf> =
                versions.map(|version| version.path().join("bin")).collect();
            bins.sort();
            places.extend(bins.into_iter().rev());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path));
        places
            .into_iter()
            .map(|place| place.join(self.word()))
            .find(|program| program.is_file())
    }

    /// The program.
    ///
    /// Errors: it is not installed.
    pub fn installed(self) -> Result<PathBuf, Problem> {
        self.program().ok_or_else(|| {
            Problem::new(format!("{} is not installed", self.word()))
                .detail("no program of that name in PATH")
                .hint("run scripts/install-peers.sh")
        })
    }

    fn script(self, work: PeerWork) -> &'static str {
        match (self, work) {
            (Self::Sysbench, PeerWork::Point | PeerWork::Script | PeerWork::ScriptSimple) => {
                include_str!("../../../workloads/peers/sysbench/point.lua")
            }
            (Self::Sysbench, PeerWork::Range) => {
                include_str!("../../../workloads/peers/sysbench/range.lua")
            }
            (Self::Sysbench, PeerWork::Update) => {
                include_str!("../../../workloads/peers/sysbench/update.lua")
            }
            (Self::Pgbench, PeerWork::Point | PeerWork::Script | PeerWork::ScriptSimple) => {
                include_str!("../../../workloads/peers/pgbench/point.sql")
            }
            (Self::Pgbench, PeerWork::Range) => {
                include_str!("../../../workloads/peers/pgbench/range.sql")
            }
            (Self::Pgbench, PeerWork::Update) => {
                include_str!("../../../workloads/peers/pgbench/update.sql")
            }
        }
    }

    /// Operations and seconds from what the tool printed.
    fn account(self, printed: &str) -> Option<(u64, f64)> {
        let after = |label: &str| {
            let line = printed
                .lines()
                .rfind(|line| line.trim_start().starts_with(label))?;
            line.split(label)
                .nth(1)?
                .split(|c: char| c.is_whitespace() || c == '/')
                .find(|word| !word.is_empty())
        };
        match self {
            Self::Sysbench => {
                let seconds = after("total time:")?.trim_end_matches('s').parse().ok()?;
                Some((after("total number of events:")?.parse().ok()?, seconds))
            }
            Self::Pgbench => {
                let done: u64 = after("number of transactions actually processed:")?
                    .parse()
                    .ok()?;
                let rate: f64 = after("tps =")?.parse().ok()?;
                Some((done, to_f64(done) / rate))
            }
        }
    }
}

impl PeerWork {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Point,
        Self::Range,
        Self::Update,
        Self::Script,
        Self::ScriptSimple,
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Range => "range-100",
            Self::Update => "update",
            Self::Script => "script",
            Self::ScriptSimple => "script-simple",
        }
    }

    /// How pgbench sends it.
    fn mode(self) -> QueryMode {
        match self {
            Self::ScriptSimple => QueryMode::Simple,
            _ => QueryMode::Prepared,
        }
    }

    /// The same for a [`Lane`](crate::Lane).
    pub fn executable(self, rows: u64) -> Executable {
        let high = i64::try_from(rows).unwrap_or(i64::MAX);
        let one = Value::Uniform {
            low: 1,
            high,
            count: 1,
        };
        let (sql, slots, value) = match self {
            Self::Point => ("SELECT c FROM sbtest1 WHERE id=$1", 1, one),
            Self::Range => {
                let range = Value::Range {
                    low: 1,
                    high: (high - RANGE + 1).max(1),
                    add: RANGE - 1,
                };
                ("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2", 2, range)
            }
            Self::Update => ("UPDATE sbtest1 SET k=k+1 WHERE id=$1", 1, one),
            Self::Script | Self::ScriptSimple => return self.program(rows),
        };
        let step = Step {
            statements: vec![0],
            table: TableChoice::Keep,
            values: vec![value],
        };
        let statement = Statement::prepared(sql, vec![Slot::BigInt; slots]);
        Executable::single(self.word(), vec![statement], vec![step], 1)
    }
}

impl PeerWork {
    /// pgbench's script, for our own client to carry out.
    fn program(self, rows: u64) -> Executable {
        let source = WorkloadSource {
            file: "script.sql".to_owned(),
            text: Peer::Pgbench.script(self).to_owned(),
        };
        let mix = PgbenchMix {
            name: self.word().to_owned(),
            scripts: vec![PgbenchScript { source, weight: 1 }],
        };
        let setup = PgbenchSetup {
            tables: PgbenchTables {
                scale: 0,
                ..PgbenchTables::default()
            },
            mixes: Vec::new(),
            mode: self.mode(),
            variables: vec![("rows".to_owned(), rows.to_string())],
            max_tries: 1,
            shared_names: false,
            reconnects: false,
            latency_limit_ms: None,
            writes: false,
        };
        let mut executable = Executable::single(self.word(), Vec::new(), Vec::new(), 1);
        // A test says that it parses; without a program it would be refused when connecting.
        executable.program = Program::parse(&setup, &mix).ok();
        executable
    }
}

/// Runs a tool once for the cost of starting up and once for the work.
///
/// Errors: the tool is not installed, fails, or prints something unknown.
pub fn run_peer(
    run: &PeerRun<'_>,
    endpoint: &Endpoint,
    login: &Login,
) -> Result<PeerOutcome, Problem> {
    let shortest = PeerRun {
        operations: u64::from(run.clients),
        ..*run
    };
    let start_up = run_whole(&shortest, endpoint, login)?;
    run_whole(run, endpoint, login).map(|whole| whole.less(&start_up))
}

impl PeerOutcome {
    /// Adds another part of the same run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.duration_ns += other.duration_ns;
        self.client_cpu_ns += other.client_cpu_ns;
    }

    /// What is left of a run without its start-up. Durations are the tool's own account and need no
    /// correction but that for the operations of the start-up run, which are too few to matter.
    #[must_use]
    pub fn less(self, start_up: &Self) -> Self {
        let operations = self.operations.saturating_sub(start_up.operations);
        let share = to_f64(operations) / to_f64(self.operations.max(1));
        Self {
            operations,
            duration_ns: to_u64(to_f64(self.duration_ns) * share),
            client_cpu_ns: self.client_cpu_ns.saturating_sub(start_up.client_cpu_ns),
        }
    }
}

/// One run with everything that the process cost.
pub(crate) fn run_whole(
    run: &PeerRun<'_>,
    endpoint: &Endpoint,
    login: &Login,
) -> Result<PeerOutcome, Problem> {
    let name = run.peer.word();
    let program = run.peer.installed()?;
    let scratch = Scratch::new().map_err(|error| cannot(name, &error))?;
    let script = scratch.path.join(if run.peer == Peer::Sysbench {
        "script.lua"
    } else {
        "script.sql"
    });
    fs::write(&script, run.peer.script(run.work)).map_err(|error| cannot(name, &error))?;
    let command = command(run, &program, &script, endpoint, login);
    finish(run.peer, command, &scratch, run.affinity)
}

/// Runs a tool in its scratch directory on some cores and reads its account.
pub(crate) fn finish(
    peer: Peer,
    mut command: Command,
    scratch: &Scratch,
    cores: &[usize],
) -> Result<PeerOutcome, Problem> {
    let name = peer.word();
    let complaints =
        fs::File::create(scratch.path.join("stderr")).map_err(|error| cannot(name, &error))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(complaints)
        .current_dir(&scratch.path);
    let (printed, finished) =
        on_cores(cores, || to_its_end(command)).map_err(|error| cannot(name, &error))?;
    match peer.account(&printed) {
        Some((operations, seconds)) if finished.success => Ok(PeerOutcome {
            operations,
            duration_ns: to_u64(seconds * 1e9),
            client_cpu_ns: finished.cpu_ns,
        }),
        _ => {
            let complaint = fs::read_to_string(scratch.path.join("stderr")).unwrap_or_default();
            let detail = format!("{}\n{}", last_lines(&printed), last_lines(&complaint));
            Err(Problem::new(format!("{name} failed")).detail(detail.trim()))
        }
    }
}

fn command(
    run: &PeerRun<'_>,
    program: &Path,
    script: &Path,
    endpoint: &Endpoint,
    login: &Login,
) -> Command {
    let (host, port) = host_and_port(endpoint);
    let mut command = Command::new(program);
    match run.peer {
        Peer::Sysbench => command
            .arg(script)
            .args(sysbench_connection(endpoint, login))
            .arg(format!("--threads={}", run.clients))
            .arg(format!("--events={}", run.operations))
            .arg(format!("--rows={}", run.rows))
            .arg("run"),
        Peer::Pgbench => command
            .arg("--no-vacuum")
            .arg(format!("--jobs={}", run.jobs))
            .arg(format!("--protocol={}", run.work.mode().word()))
            .args([
                "--host",
                &host,
                "--port",
                &port.to_string(),
                "--username",
                &login.user,
            ])
            .arg(format!("--client={}", run.clients))
            .arg(format!(
                "--transactions={}",
                (run.operations / u64::from(run.clients.max(1))).max(1)
            ))
            .arg(format!("--define=rows={}", run.rows))
            .arg("--file")
            .arg(script)
            .arg(&login.database),
    };
    session(&mut command, login);
    command
}

pub(crate) fn host_and_port(endpoint: &Endpoint) -> (String, u16) {
    match endpoint {
        Endpoint::Unix { directory, port } => (directory.display().to_string(), *port),
        Endpoint::Tcp { host, port, .. } => (host.clone(), *port),
    }
}

/// Options of sysbench that say where it connects to, and that it ends by a number of events.
pub(crate) fn sysbench_connection(endpoint: &Endpoint, login: &Login) -> Vec<String> {
    let (host, port) = host_and_port(endpoint);
    let password = login.password.as_deref().unwrap_or_default();
    vec![
        "--db-driver=pgsql".to_owned(),
        "--time=0".to_owned(),
        format!("--pgsql-host={host}"),
        format!("--pgsql-port={port}"),
        format!("--pgsql-user={}", login.user),
        format!("--pgsql-db={}", login.database),
        format!("--pgsql-password={password}"),
    ]
}

/// Gives a tool the settings of a session, and the password, as libpq takes them.
pub(crate) fn session(command: &mut Command, login: &Login) {
    let mut options = String::new();
    for (setting, value) in &login.options {
        let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
        // Writing to a string cannot fail.
        let _ = write!(options, "-c {setting}={value} ");
    }
    command.env("PGOPTIONS", options.trim_end());
    if let Some(password) = &login.password {
        command.env("PGPASSWORD", password);
    }
}

/// What a process was when it ended.
struct Finished {
    success: bool,
    cpu_ns: u64,
}

/// Starts a process, reads all it prints and waits for it.
fn to_its_end(mut command: Command) -> io::Result<(String, Finished)> {
    let mut child = command.spawn()?;
    let mut printed = Vec::new();
    if let Some(output) = &mut child.stdout {
        output.read_to_end(&mut printed)?;
    }
    let (success, cpu_ns) = sys::wait_for(child.id())?;
    Ok((
        String::from_utf8_lossy(&printed).into_owned(),
        Finished { success, cpu_ns },
    ))
}

/// Does something on a thread of its own that may only use some cores; processes that it starts inherit that.
pub(crate) fn on_cores<T: Send>(
    cores: &[usize],
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            sys::pin_thread(cores)?;
            work()
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    })
}

pub(crate) fn cannot(name: &str, error: &io::Error) -> Problem {
    Problem::new(format!("cannot run {name}")).detail(error.to_string())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .get(lines.len().saturating_sub(20)..)
        .unwrap_or(&[])
        .join("\n")
}

/// A directory for one run, removed afterwards.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("deltabench-peer-{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing but our own script is in it; leaving it behind harms nobody.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_print_is_understood() {
        let sysbench = "General statistics:\n    total time:                          5.4321s\n    \
                        total number of events:              100000\n";
        assert_eq!(Peer::Sysbench.account(sysbench), Some((100_000, 5.4321)));
        let pgbench = "number of transactions actually processed: 4000/4000\nlatency average = 0.1 ms\n\
                       initial connection time = 1.2 ms\n\
                       tps = 8000.000000 (without initial connection time)\n";
        assert_eq!(Peer::Pgbench.account(pgbench), Some((4000, 0.5)));
        assert_eq!(
            Peer::Pgbench.account("pgbench: error: connection failed"),
            None
        );
    }

    #[test]
    fn the_scripts_of_pgbench_are_programs_of_ours() {
        for work in PeerWork::ALL {
            let program = work.executable(1000).program;
            let script = matches!(work, PeerWork::Script | PeerWork::ScriptSimple);
            assert_eq!(program.is_some(), script, "{work:?}");
            assert!(program.is_none_or(|program| program.statements().len() == 1));
        }
    }

    #[test]
    fn start_up_is_subtracted() {
        let outcome = |operations, duration_ns, client_cpu_ns| PeerOutcome {
            operations,
            duration_ns,
            client_cpu_ns,
        };
        let net = outcome(1000, 1_000_000, 5_000).less(&outcome(4, 900, 1_000));
        assert_eq!(net, outcome(996, 996_000, 4_000));
    }
}
