//! A worker: the process of ours that loads a library, from the outside.
//!
//! It is frozen (`SIGSTOP`) from the end of each answer to the next order, with all its threads: the kernel
//! has stopped the last of them before an answer is handed on. No timer and no polling of it disturbs what
//! another target does meanwhile.

use crate::protocol::{Answer, OpenOrder, Opened, Order, StepOrder, TurnOrder, Turned};
use crate::spec::{EngineError, EngineSpec, Patience, Prepared};
use deltabench_model::work::rocksdb::StepFigures;
use deltabench_server::{ENGINE_MARK, Handle, Launch};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often an end that the user wants is looked for.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// How long a killed or crashed process has to be gone; a crash may write a large core file first.
pub(crate) const GONE_LIMIT: Duration = Duration::from_secs(60);
/// How long the threads of a process have to stop; one that writes to a slow disk stops after its write.
const FREEZE_LIMIT: Duration = Duration::from_secs(60);
/// How long a database has to close: it may flush what it still has in memory.
const CLOSE_LIMIT: Duration = Duration::from_secs(120);
/// The most of a log that is read back.
const TAIL_BYTES: u64 = 16 << 10;
/// Lines of a log that are shown with a crash.
const TAIL_LINES: usize = 5;

/// The process of a library.
pub(crate) struct Worker<'i> {
    child: Child,
    handle: Handle,
    orders: ChildStdin,
    answers: ChildStdout,
    /// What of the next answer has been read.
    begun: Vec<u8>,
    log: PathBuf,
    log_start: u64,
    name: String,
    patience: Patience,
    /// How long the step has that was begun last.
    limit: Duration,
    interrupted: &'i AtomicBool,
}

impl<'i> Worker<'i> {
    pub(crate) fn start(spec: EngineSpec<'_, 'i>) -> Result<(Self, Opened), EngineError> {
        let log_start = std::fs::metadata(spec.log).map_or(0, |metadata| metadata.len());
        let (program, arguments, environment) = started(&spec)?;
        let launch = Launch {
            program: &program,
            arguments,
            user: spec.user,
            directory: spec.directory,
            log: spec.log,
            cores: spec.cores,
            cgroups: spec.cgroups,
            environment: &environment,
            death_signal: libc::SIGKILL,
            piped: true,
        };
        let (mut child, handle) = launch
            .start()
            .map_err(|problem| EngineError::of_problem(&problem))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            end(&mut child, &handle);
            return Err(EngineError::Failed("a worker without pipes".to_owned()));
        };
        let patience = Patience::of(spec.setup);
        let mut worker = Self {
            child,
            handle,
            orders,
            answers,
            begun: Vec::new(),
            log: spec.log.to_path_buf(),
            log_start,
            name: spec.installation.resolved.clone(),
            patience,
            limit: patience.of_reads,
            interrupted: spec.interrupted,
        };
        let order = Order::Open(Box::new(OpenOrder {
            library: spec.installation.bin_dir.clone(),
            directory: spec.database(),
            setup: spec.setup.clone(),
            cache: spec.cache,
            options: spec.options.to_vec(),
        }));
        match worker.ask(&order)? {
            Answer::Opened(opened) => Ok((worker, *opened)),
            other => Err(worker.unexpected(&order, &other)),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn prepare(&mut self, order: StepOrder) -> Result<Prepared, EngineError> {
        self.limit = self.patience.of_step(order.step);
        let order = Order::Prepare(order);
        match self.ask(&order)? {
            Answer::Prepared {
                duration_ns,
                figures,
            } => Ok(Prepared {
                duration_ns,
                figures,
            }),
            other => Err(self.unexpected(&order, &other)),
        }
    }

    pub(crate) fn begin(&mut self, order: StepOrder) -> Result<(), EngineError> {
        self.limit = self.patience.of_step(order.step);
        let order = Order::Begin(order);
        match self.ask(&order)? {
            Answer::Ready => Ok(()),
            other => Err(self.unexpected(&order, &other)),
        }
    }

    pub(crate) fn turn(&mut self, order: TurnOrder) -> Result<Turned, EngineError> {
        self.turned(Order::Turn(order))
    }

    pub(crate) fn count(&mut self, order: TurnOrder) -> Result<Turned, EngineError> {
        self.turned(Order::Count(order))
    }

    fn turned(&mut self, order: Order) -> Result<Turned, EngineError> {
        match self.ask(&order)? {
            Answer::Turned(turned) => Ok(*turned),
            other => Err(self.unexpected(&order, &other)),
        }
    }

    pub(crate) fn finish(&mut self) -> Result<StepFigures, EngineError> {
        match self.ask(&Order::Finish)? {
            Answer::Finished(figures) => Ok(figures),
            other => Err(self.unexpected(&Order::Finish, &other)),
        }
    }

    /// Tells it to close and waits for its end.
    pub(crate) fn stop(mut self) -> Result<(), EngineError> {
        // An end that the user wants does not keep a database from closing: whoever is in a hurry drops it.
        let never = AtomicBool::new(false);
        self.send(&Order::Close)?;
        match self.receive(&Order::Close, CLOSE_LIMIT, &never)? {
            Answer::Closed => {}
            other => return Err(self.unexpected(&Order::Close, &other)),
        }
        if !self.handle.wait(GONE_LIMIT) {
            return Err(EngineError::Stalled(format!(
                "{} closed its database but did not end",
                self.name
            )));
        }
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            status => Err(self.lost(status.ok(), "while closing")),
        }
    }

    /// Has an order carried out; frozen again afterwards.
    fn ask(&mut self, order: &Order) -> Result<Answer, EngineError> {
        self.send(order)?;
        let answer = self.receive(order, self.limit, self.interrupted)?;
        self.freeze()?;
        match answer {
            Answer::Failed(words) => Err(EngineError::Failed(words)),
            answer => Ok(answer),
        }
    }

    fn send(&mut self, order: &Order) -> Result<(), EngineError> {
        let mut line = serde_json::to_string(order).map_err(|error| {
            EngineError::Failed(format!("cannot send an order to the worker: {error}"))
        })?;
        line.push('\n');
        self.thaw()?;
        let written = self.orders.write_all(line.as_bytes());
        written.map_err(|_| self.gone(order))
    }

    /// Waits for an answer.
    fn receive(
        &mut self,
        order: &Order,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Answer, EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|error| {
                    EngineError::Failed(format!("{} cannot be understood: {error}", self.name))
                });
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(EngineError::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(EngineError::Stalled(format!(
                    "{} did not answer {} within {} s{}",
                    self.name,
                    moment(order),
                    limit.as_secs(),
                    self.tail()
                )));
            }
            if !readable(&self.answers, LOOK) {
                continue;
            }
            let mut chunk = [0; 16 << 10];
            match self.answers.read(&mut chunk) {
                Ok(length @ 1..) => self
                    .begun
                    .extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return Err(self.gone(order)),
            }
        }
    }

    /// Its end is seen by its pipes: how did it end?
    fn gone(&mut self, order: &Order) -> EngineError {
        end_after(&mut self.child, &self.handle, GONE_LIMIT);
        let status = self.child.wait().ok();
        self.lost(status, &moment(order))
    }

    fn lost(&self, status: Option<ExitStatus>, when: &str) -> EngineError {
        EngineError::Lost(format!(
            "{} ended by {} {when}{}",
            self.name,
            how(status),
            self.tail()
        ))
    }

    fn unexpected(&self, order: &Order, answer: &Answer) -> EngineError {
        EngineError::Failed(format!(
            "{} gave another answer {}: {answer:?}",
            self.name,
            moment(order)
        ))
    }

    /// `: LAST LINES`, or nothing.
    fn tail(&self) -> String {
        match log_tail(&self.log, self.log_start) {
            lines if lines.is_empty() => String::new(),
            lines => format!(": {lines}"),
        }
    }

    fn thaw(&mut self) -> Result<(), EngineError> {
        self.signal(libc::SIGCONT)
    }

    /// Stops all its threads, and waits until the last one has.
    fn freeze(&mut self) -> Result<(), EngineError> {
        self.signal(libc::SIGSTOP)?;
        let deadline = Instant::now() + FREEZE_LIMIT;
        let mut pause = Duration::from_micros(50);
        loop {
            match stop_seen(self.child.id()) {
                Some(true) => return Ok(()),
                // It has ended: the next order tells how.
                None => return Ok(()),
                Some(false) if self.handle.wait(Duration::ZERO) => return Ok(()),
                Some(false) if Instant::now() >= deadline => {
                    let name = &self.name;
                    return Err(EngineError::Stalled(format!("{name} cannot be frozen")));
                }
                Some(false) => {}
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: i32) -> Result<(), EngineError> {
        let sent = self.handle.signal(signal);
        sent.map_err(|error| EngineError::Failed(format!("cannot signal {}: {error}", self.name)))
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        end(&mut self.child, &self.handle);
    }
}

/// What is started for an engine, with its arguments and environment: the worker, or its counter.
fn started(spec: &EngineSpec<'_, '_>) -> Result<Started, EngineError> {
    let own = vec!["engine-worker".into()];
    let mark = (ENGINE_MARK.0.to_owned(), ENGINE_MARK.1.to_owned());
    let Some(counter) = spec.counter else {
        return Ok((spec.worker.to_path_buf(), own, vec![mark]));
    };
    let counts = spec.counts();
    let made = spec.user.make_directory(&counts);
    made.map_err(|problem| EngineError::of_problem(&problem))?;
    let (program, arguments, mut environment) = counter.of_worker(&counts, spec.worker, own);
    environment.push(mark);
    Ok((program, arguments, environment))
}

/// A program with its arguments and environment.
type Started = (PathBuf, Vec<OsString>, Vec<(String, String)>);

/// Kills a child and reaps it. One that has been reaped is left alone.
fn end(child: &mut Child, handle: &Handle) {
    if let Ok(None) = child.try_wait() {
        // A refusal would leave nothing to do; the kernel ends it with us.
        let _ = handle.signal(libc::SIGKILL);
        if handle.wait(GONE_LIMIT) {
            let _ = child.wait();
        }
    }
}

/// Lets a child end by itself for so long, then kills it; it can be reaped afterwards.
fn end_after(child: &mut Child, handle: &Handle, limit: Duration) {
    if !handle.wait(limit) {
        end(child, handle);
    }
}

/// Whether something can be read, waiting for it for `limit`; also true at the end of the stream.
fn readable(stream: &impl AsFd, limit: Duration) -> bool {
    let mut entry = libc::pollfd {
        fd: stream.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one valid pollfd, of a descriptor that is open for the call.
    unsafe { libc::poll(&raw mut entry, 1, milliseconds) > 0 }
}

/// Whether the child has been seen to stop since it was last asked, all its threads; absent when there is no
/// such child. Its end is neither waited for nor taken.
fn stop_seen(pid: u32) -> Option<bool> {
    // SAFETY: `siginfo_t` is plain data for which all-zero bytes are a valid value.
    let mut seen: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WSTOPPED | libc::WNOHANG;
    // SAFETY: room for one siginfo_t; WSTOPPED alone reaps nothing.
    let result = unsafe { libc::waitid(libc::P_PID, pid, &raw mut seen, options) };
    if result != 0 {
        return None;
    }
    // SAFETY: waitid succeeded; a pid of 0 stands for "nothing yet".
    Some(unsafe { seen.si_pid() } != 0)
}

/// `signal 11 (segmentation fault)`, `exit status 3`.
pub(crate) fn how(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "an unknown cause".to_owned();
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = match signal {
                libc::SIGSEGV => " (segmentation fault)",
                libc::SIGABRT => " (abort)",
                libc::SIGBUS => " (bus error)",
                libc::SIGILL => " (illegal instruction)",
                libc::SIGFPE => " (arithmetic error)",
                libc::SIGKILL => " (killed)",
                libc::SIGTERM => " (terminated)",
                _ => "",
            };
            format!("signal {signal}{name}")
        }
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => status.to_string(),
    }
}

/// When it was, in words.
fn moment(order: &Order) -> String {
    match order {
        Order::Open(_) => "while opening its database".to_owned(),
        Order::Prepare(step) => format!("in {}", step.step.name()),
        Order::Begin(step) => format!("at the start of {}", step.step.name()),
        Order::Turn(_) | Order::Count(_) => "in mid-turn".to_owned(),
        Order::Finish => "at the end of a step".to_owned(),
        Order::Close => "while closing".to_owned(),
    }
}

/// The last lines that were logged after `start`, joined by ` / `.
pub(crate) fn log_tail(path: &Path, start: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            start.max(length.saturating_sub(TAIL_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    // A log that cannot be read tells nothing; the crash is told all the same.
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    lines.get(skipped..).unwrap_or_default().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, is_running};
    use deltabench_model::work::rocksdb::RocksdbStep;

    /// Answers what it is asked; after `begin` it goes on by itself for some seconds, as compactions would.
    const WORKER: &str = r#"
        echo "the worker works" >&2
        while read -r order; do
            case "$order" in
            *'"open"'*) echo '{"opened":{"left_out":[],"cache":"lru","in_force":{}}}' ;;
            *'"begin"'*) echo '"ready"'; i=0; while [ $i -lt 3000000 ]; do i=$((i + 1)); done ;;
            *'"turn"'*) ON_TURN ;;
            *'"finish"'*) echo '{"finished":{"stalls":2.0}}' ;;
            '"close"') echo '"closed"'; exit 0 ;;
            *) echo '{"failed":"IO error: no such step"}' ;;
            esac
        done
    "#;

    fn step() -> StepOrder {
        StepOrder {
            step: RocksdbStep::Readrandom,
            threads: 1,
            seed: 1,
            batched: false,
        }
    }

    const TURN: TurnOrder = TurnOrder {
        number: 1,
        operations: 10,
        counted: false,
        settle: false,
    };

    fn ticks(pid: u32) -> (u64, u64) {
        let stat = deltabench_proc::Process::of(pid).stat().unwrap();
        assert_eq!(stat.state, b'T', "{stat:?}");
        (stat.user_ticks, stat.system_ticks)
    }

    #[test]
    fn a_worker_that_still_has_work_to_do_is_frozen_between_orders() {
        let bench = Bench::worker(&WORKER.replace("ON_TURN", "exit 3"));
        let (mut engine, opened) = bench.start().unwrap();
        assert_eq!(opened.cache, "lru");
        engine.begin(step()).unwrap();
        let before = ticks(engine.pid());
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(ticks(engine.pid()), before);
        // It goes on where it was: the answer comes once its own work is done.
        assert_eq!(engine.finish().unwrap().get("stalls"), Some(&2.0));
        let after = ticks(engine.pid());
        assert!(after.0 > before.0, "{before:?} {after:?}");
        engine.stop().unwrap();
    }

    #[test]
    fn a_refusal_is_told_in_its_words_and_the_worker_goes_on() {
        let bench = Bench::worker(&WORKER.replace("ON_TURN", "exit 3"));
        let (mut engine, _) = bench.start().unwrap();
        let refused = engine.prepare(step()).unwrap_err();
        assert_eq!(
            refused,
            EngineError::Failed("IO error: no such step".into())
        );
        engine.finish().unwrap();
        let pid = engine.pid();
        engine.stop().unwrap();
        assert!(!is_running(pid));
    }

    #[test]
    fn a_crash_in_mid_turn_is_told_with_its_signal_and_last_words_and_the_next_engine_works() {
        let crash = "echo 'pure virtual method called' >&2; kill -SEGV $$";
        let bench = Bench::worker(&WORKER.replace("ON_TURN", crash));
        let (mut engine, _) = bench.start().unwrap();
        let pid = engine.pid();
        let lost = engine.turn(TURN).unwrap_err();
        let EngineError::Lost(words) = &lost else {
            panic!("{lost:?}");
        };
        let wanted = "ended by signal 11 (segmentation fault) in mid-turn: \
            the worker works / pure virtual method called";
        assert!(words.ends_with(wanted), "{words}");
        drop(engine);
        assert!(!is_running(pid));
        std::fs::remove_dir_all(bench.directory()).unwrap();
        let (mut next, _) = bench.start().unwrap();
        next.finish().unwrap();
        next.stop().unwrap();
    }

    #[test]
    fn an_end_that_the_user_wants_is_heard_at_once_and_the_worker_is_gone() {
        let bench = Bench::worker(&WORKER.replace("ON_TURN", "while :; do :; done"));
        let (mut engine, _) = bench.start().unwrap();
        let pid = engine.pid();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                bench.interrupted.store(true, Ordering::Relaxed);
            });
            assert_eq!(engine.turn(TURN), Err(EngineError::Interrupted));
        });
        drop(engine);
        assert!(!is_running(pid));
    }

    #[test]
    fn an_answer_that_does_not_come_is_a_stall() {
        let bench = Bench::worker(&WORKER.replace("ON_TURN", "while :; do :; done"));
        std::fs::create_dir(bench.directory()).unwrap();
        let (mut worker, _) = Worker::start(bench.spec()).unwrap();
        worker.limit = Duration::from_millis(300);
        let stalled = worker.turn(TURN).unwrap_err();
        assert!(
            matches!(&stalled, EngineError::Stalled(words) if words.contains("in mid-turn")),
            "{stalled:?}"
        );
    }

    #[test]
    fn a_worker_that_dies_while_it_is_frozen_is_lost_at_its_next_order() {
        let bench = Bench::worker(&WORKER.replace("ON_TURN", "exit 3"));
        let (mut engine, _) = bench.start().unwrap();
        bench.kill(engine.pid());
        let lost = engine.finish().unwrap_err();
        assert!(
            matches!(&lost, EngineError::Lost(words) if words.contains("signal 9 (killed)")),
            "{lost:?}"
        );
    }
}
