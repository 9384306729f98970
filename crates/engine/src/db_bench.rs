//! A user's `db_bench`, driven by its command line with the published flags: a step is one run of it, which
//! opens the database, does the step and closes it again. Between steps it has no process.
//!
//! Its clocks are its own: throughput is what its result line says. Its processor time is that of the whole
//! run: opening, closing and, where a step waits, waiting included. Waiting for compactions is not told
//! apart.

mod flags;
mod output;
#[cfg(test)]
mod tests;

use crate::process::{GONE_LIMIT, LOOK, how, log_tail};
use crate::protocol::{Opened, StepOrder, TurnOrder, Turned};
use crate::spec::{EngineError, EngineSpec, Patience, Prepared};
use crate::stats_text;
use deltabench_model::units;
use deltabench_model::work::rocksdb::{
    BlockCache, MULTI_READ_BATCH, RocksdbSetup, RocksdbStep, StepFigures,
};
use deltabench_server::{ENGINE_MARK, Handle, Launch, ServerUser, end_engines};
use flags::{Flags, Known};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it has to tell its flags, or to make a database of ten keys.
const PROBE_LIMIT: Duration = Duration::from_secs(60);
/// What a timed step has beyond its time.
///
/// Source: the published scripts, for versions that hang.
const SPARE: Duration = Duration::from_secs(600);
/// The most of an output that is read back, from its end.
const OUTPUT_BYTES: u64 = 16 << 20;

/// A `db_bench` and its database.
pub(crate) struct DbBench<'i> {
    command: Command<'i>,
    setup: RocksdbSetup,
    patience: Patience,
    common: Flags,
    known: Known,
    begun: Option<Begun>,
}

/// A step that was begun.
struct Begun {
    order: StepOrder,
    /// What moved; there once its turn is done.
    figures: Option<StepFigures>,
}

impl<'i> DbBench<'i> {
    pub(crate) fn start(spec: EngineSpec<'_, 'i>) -> Result<(Self, Opened), EngineError> {
        let command = Command {
            program: spec.installation.bin_dir.clone(),
            name: spec.installation.resolved.clone(),
            directory: spec.directory.to_path_buf(),
            log: spec.log.to_path_buf(),
            user: spec.user.clone(),
            cores: spec.cores.map(<[usize]>::to_vec),
            cgroups: spec.cgroups.to_vec(),
            interrupted: spec.interrupted,
        };
        let help = command.run(&["--help".to_owned()], PROBE_LIMIT, "printing its flags")?;
        let known = Known::of_help(&help.text);
        if !known.is_usable() {
            let name = &command.name;
            return Err(EngineError::Failed(format!(
                "{name} does not print the flags of a db_bench: {}",
                command.tail(help.log_start)
            )));
        }
        let version = match spec.installation.version_num {
            0 => command.version()?,
            told => told,
        };
        let common = flags::common(spec.setup, spec.cache, spec.options, &known, version)
            .map_err(|why| EngineError::Failed(format!("{}: {why}", command.name)))?;
        let bench = Self {
            patience: Patience::of(spec.setup),
            setup: spec.setup.clone(),
            common,
            known,
            begun: None,
            command,
        };
        let opened = bench.probe(spec.cache, version)?;
        Ok((bench, opened))
    }

    /// Process id: it has one in a step only, and then nobody can ask.
    pub(crate) fn pid(&self) -> u32 {
        0
    }

    pub(crate) fn prepare(&mut self, order: StepOrder) -> Result<Prepared, EngineError> {
        let done = self.step(order)?;
        Ok(Prepared {
            duration_ns: nanoseconds(done.took),
            figures: done.figures,
        })
    }

    pub(crate) fn begin(&mut self, order: StepOrder) -> Result<(), EngineError> {
        self.begun = Some(Begun {
            order,
            figures: None,
        });
        Ok(())
    }

    pub(crate) fn turn(&mut self, turn: TurnOrder) -> Result<Turned, EngineError> {
        let order = match &self.begun {
            Some(begun) if begun.figures.is_none() => begun.order,
            Some(_) => return Err(self.failed("does a step in one turn, and has done it")),
            None => return Err(self.failed("was asked for a turn of no step")),
        };
        if turn.counted {
            return Ok(Turned::default());
        }
        let done = self.step(order)?;
        let outcome = done.outcome.ok_or_else(|| {
            let words = log_tail(&self.command.log, done.log_start);
            self.failed(&format!(
                "reported no result of {}: {words}",
                order.step.name()
            ))
        })?;
        let turned = Turned {
            operations: outcome.operations,
            rows: outcome.found,
            duration_ns: units::to_u64(outcome.seconds * 1e9),
            cpu_ns: done.cpu_ns,
            ..Turned::default()
        };
        if let Some(begun) = &mut self.begun {
            begun.figures = Some(done.figures);
        }
        Ok(turned)
    }

    pub(crate) fn finish(&mut self) -> Result<StepFigures, EngineError> {
        match self.begun.take() {
            Some(begun) => Ok(begun.figures.unwrap_or_default()),
            None => Err(self.failed("was asked to end no step")),
        }
    }

    /// Does a whole step.
    fn step(&self, order: StepOrder) -> Result<Done, EngineError> {
        let step = order.step;
        let flags = flags::of_step(
            &self.common,
            &self.setup,
            step,
            order.threads,
            order.seed,
            &self.known,
        );
        let mut arguments = flags.arguments(&self.known);
        arguments.push(format!("--db={}", self.database().display()));
        let timed = step.is_measured()
            && !matches!(step, RocksdbStep::Fillseq | RocksdbStep::Overwriteandwait);
        let limit = if timed {
            Duration::from_secs(u64::from(self.setup.seconds)) + SPARE
        } else {
            self.patience.of_step(step)
        };
        let ran = self.command.run(&arguments, limit, step.name())?;
        ran.check(&self.command, step.name())?;
        let batch = match step {
            RocksdbStep::Multireadrandom => u64::from(MULTI_READ_BATCH),
            _ => 1,
        };
        let outcome = output::outcome(&ran.text, benchmark_of(step), batch);
        let mut figures = figures(&ran, outcome.as_ref());
        figures.extend(sizes(&self.database()));
        Ok(Done {
            took: ran.took,
            cpu_ns: ran.usage.user_ns + ran.usage.system_ns,
            outcome,
            figures,
            log_start: ran.log_start,
        })
    }

    fn database(&self) -> PathBuf {
        self.command.directory.join("db")
    }

    /// Makes a database of ten keys with all flags, asks what is in force in it, and removes it.
    fn probe(&self, cache: BlockCache, version: u32) -> Result<Opened, EngineError> {
        let database = self.command.directory.join("probe");
        let mut arguments = flags::of_probe(&self.common).arguments(&self.known);
        arguments.push(format!("--db={}", database.display()));
        let what = "making a database of ten keys";
        let ran = self.command.run(&arguments, PROBE_LIMIT, what)?;
        ran.check(&self.command, what)?;
        let in_force = crate::options::in_force(&database).map_err(|words| self.failed(&words))?;
        let removed = std::fs::remove_dir_all(&database);
        removed.map_err(|error| self.failed(&format!("left {}: {error}", database.display())))?;
        let cache = match cache {
            BlockCache::Lru => "lru",
            BlockCache::HyperClock if flags::hyper_clock(version).starts_with("auto") => {
                "hyper-clock (sized by itself)"
            }
            BlockCache::HyperClock => "hyper-clock (entries of 8192 bytes)",
        };
        Ok(Opened {
            left_out: flags::left_out(&self.common, &self.setup, &self.known),
            cache: cache.to_owned(),
            warnings: output::warnings(&ran.text),
            // Its own flag says whether it does.
            batches: false,
            in_force,
        })
    }

    fn failed(&self, what: &str) -> EngineError {
        EngineError::Failed(format!("{} {what}", self.command.name))
    }
}

/// A step that was done.
struct Done {
    took: Duration,
    cpu_ns: u64,
    outcome: Option<output::Outcome>,
    figures: StepFigures,
    log_start: u64,
}

/// The benchmark whose result is that of the step.
fn benchmark_of(step: RocksdbStep) -> &'static str {
    match step {
        RocksdbStep::Fillseq => "fillseq",
        RocksdbStep::Fwdrange => "seekrandom",
        RocksdbStep::Multireadrandom => "multireadrandom",
        RocksdbStep::Overwritesome | RocksdbStep::Overwriteandwait => "overwrite",
        RocksdbStep::Revrangewhilewriting | RocksdbStep::Fwdrangewhilewriting => {
            "seekrandomwhilewriting"
        }
        RocksdbStep::Readwhilewriting => "readwhilewriting",
        RocksdbStep::Readrandom => "readrandom",
        // They have no result.
        RocksdbStep::Drain | RocksdbStep::FlushMtL0 => "",
    }
}

fn figures(ran: &Ran, outcome: Option<&output::Outcome>) -> StepFigures {
    let stats = stats_text::parse(&ran.text);
    let told = [
        ("compaction_write_bytes", stats.compaction_write_bytes),
        ("compaction_read_bytes", stats.compaction_read_bytes),
        ("compaction_ns", stats.compaction_seconds.map(|s| s * 1e9)),
        (
            "compaction_cpu_ns",
            stats.compaction_cpu_seconds.map(|s| s * 1e9),
        ),
        ("flush_bytes", stats.flush_bytes),
        ("ingest_bytes", stats.ingest_bytes),
        ("wal_write_bytes", stats.wal_write_bytes),
        ("stall_ns", stats.stall_seconds.map(|s| s * 1e9)),
        ("stalls", stats.stalls),
        ("l0_files", stats.level_0_files),
        ("uptime_seconds", stats.uptime_seconds),
        ("active_ns", Some(units::to_f64(nanoseconds(ran.took)))),
        ("user_cpu_ns", Some(units::to_f64(ran.usage.user_ns))),
        ("system_cpu_ns", Some(units::to_f64(ran.usage.system_ns))),
        (
            "largest_rss_bytes",
            Some(units::to_f64(ran.usage.largest_rss_bytes)),
        ),
        (
            "process_read_bytes",
            Some(units::to_f64(ran.usage.read_bytes)),
        ),
        (
            "process_written_bytes",
            Some(units::to_f64(ran.usage.written_bytes)),
        ),
        (
            "megabytes_per_second",
            outcome.and_then(|outcome| outcome.megabytes_per_second),
        ),
    ];
    let latencies = outcome.map_or(&[][..], |outcome| &outcome.latencies);
    let latencies = latencies.iter().map(|(key, value)| (*key, Some(*value)));
    told.into_iter()
        .chain(latencies)
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

/// Bytes of the files of tables and of blobs.
fn sizes(database: &Path) -> Vec<(String, f64)> {
    let total = |ending: &str| {
        let entries = std::fs::read_dir(database).into_iter().flatten().flatten();
        let sizes = entries
            .filter(|entry| {
                let path = entry.path();
                path.extension().is_some_and(|found| found == ending)
            })
            .filter_map(|entry| Some(entry.metadata().ok()?.len()));
        units::to_f64(sizes.sum())
    };
    vec![
        ("lsm_bytes".to_owned(), total("sst")),
        ("blob_bytes".to_owned(), total("blob")),
    ]
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How it is run.
struct Command<'i> {
    program: PathBuf,
    name: String,
    directory: PathBuf,
    log: PathBuf,
    user: ServerUser,
    cores: Option<Vec<usize>>,
    cgroups: Vec<PathBuf>,
    interrupted: &'i AtomicBool,
}

/// A run that ended by itself.
struct Ran {
    status: ExitStatus,
    text: String,
    /// Where its output begins in the log.
    log_start: u64,
    took: Duration,
    usage: Usage,
}

/// What the kernel counted of a process and of those it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Usage {
    user_ns: u64,
    system_ns: u64,
    largest_rss_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
}

impl Command<'_> {
    /// Runs it to its end.
    ///
    /// Errors: it cannot be started, crashes, takes longer than `limit`, or the user wants an end.
    fn run(&self, arguments: &[String], limit: Duration, what: &str) -> Result<Ran, EngineError> {
        let log_start = std::fs::metadata(&self.log).map_or(0, |metadata| metadata.len());
        let launch = Launch {
            program: &self.program,
            arguments: arguments.iter().map(Into::into).collect(),
            user: &self.user,
            directory: &self.directory,
            log: &self.log,
            cores: self.cores.as_deref(),
            cgroups: &self.cgroups,
            environment: &[(ENGINE_MARK.0.to_owned(), ENGINE_MARK.1.to_owned())],
            death_signal: libc::SIGKILL,
            piped: false,
        };
        let started = Instant::now();
        let (child, handle) = launch
            .start()
            .map_err(|problem| EngineError::of_problem(&problem))?;
        let mut running = Running {
            child: Some(child),
            handle,
            command: self,
        };
        while !running.handle.wait(LOOK) {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(EngineError::Interrupted);
            }
            if started.elapsed() >= limit {
                return Err(EngineError::Stalled(format!(
                    "{} did not end {what} within {} s: {}",
                    self.name,
                    limit.as_secs(),
                    self.tail(log_start)
                )));
            }
        }
        let took = started.elapsed();
        let (status, usage) = running
            .reap()
            .ok_or_else(|| EngineError::Failed(format!("{} cannot be waited for", self.name)))?;
        if status.signal().is_some() {
            return Err(EngineError::Lost(format!(
                "{} ended by {} in {what}: {}",
                self.name,
                how(Some(status)),
                self.tail(log_start)
            )));
        }
        Ok(Ran {
            status,
            text: self.text(log_start),
            log_start,
            took,
            usage,
        })
    }

    /// The version that it says it is; 0 if it does not say.
    fn version(&self) -> Result<u32, EngineError> {
        let ran = self.run(
            &["--version".to_owned()],
            PROBE_LIMIT,
            "printing its version",
        )?;
        Ok(output::version(&ran.text).unwrap_or(0))
    }

    fn tail(&self, log_start: u64) -> String {
        log_tail(&self.log, log_start)
    }

    /// What it printed.
    fn text(&self, log_start: u64) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(
                log_start.max(length.saturating_sub(OUTPUT_BYTES)),
            ))?;
            let mut bytes = Vec::new();
            file.take(OUTPUT_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        // Nothing read is nothing told, which whoever reads it says.
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

impl Ran {
    /// Whether it did what it was to do.
    ///
    /// Errors: its last words.
    fn check(&self, command: &Command<'_>, what: &str) -> Result<(), EngineError> {
        if self.status.success() {
            return Ok(());
        }
        Err(EngineError::Failed(format!(
            "{} ended by {} in {what}: {}",
            command.name,
            how(Some(self.status)),
            command.tail(self.log_start)
        )))
    }
}

/// A run that may have to be ended.
struct Running<'c, 'i> {
    /// Gone once reaped.
    child: Option<Child>,
    handle: Handle,
    command: &'c Command<'i>,
}

impl Running<'_, '_> {
    /// Takes its end, and what it used.
    fn reap(&mut self) -> Option<(ExitStatus, Usage)> {
        let pid = libc::pid_t::try_from(self.child.as_ref()?.id()).ok()?;
        let mut status = 0;
        // SAFETY: `rusage` is plain data for which all-zero bytes are a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let reaped = loop {
            // SAFETY: room for one status and one rusage; the pid is that of our child, not reaped yet.
            let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
            let again = std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
            if reaped != -1 || !again {
                break reaped;
            }
        };
        // Whatever came of it, there is nothing to reap any more.
        self.child = None;
        (reaped == pid).then(|| (ExitStatus::from_raw(status), Usage::of(&usage)))
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        if self.child.is_some() {
            // A refusal would leave nothing to do; the kernel ends it with us.
            let _ = self.handle.signal(libc::SIGKILL);
            if self.handle.wait(GONE_LIMIT) {
                let _ = self.reap();
            }
        }
        // A script around it may have left what it started.
        end_engines(&self.command.directory, self.command.user.uid);
    }
}

impl Usage {
    fn of(usage: &libc::rusage) -> Self {
        let time = |time: libc::timeval| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            let micros = u64::try_from(time.tv_usec).unwrap_or(0);
            seconds * 1_000_000_000 + micros * 1000
        };
        let number = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        // Source: getrusage(2): kilobytes, and blocks of 512 bytes.
        Self {
            user_ns: time(usage.ru_utime),
            system_ns: time(usage.ru_stime),
            largest_rss_bytes: number(usage.ru_maxrss) << 10,
            read_bytes: number(usage.ru_inblock) * 512,
            written_bytes: number(usage.ru_oublock) * 512,
        }
    }
}
