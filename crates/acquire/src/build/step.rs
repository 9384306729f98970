//! One step of a build: a command whose words go to the build's log.

use crate::files::failed;
use deltabench_model::problem::Problem;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How much of the log a failure shows.
const TAIL_LINES: usize = 25;
/// How many of the first errors it shows before that: with many jobs, the end is often other jobs' output.
const ERROR_LINES: usize = 5;
/// How often a long step says that it is still going on.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// How often a step is looked at once it takes long.
const POLL: Duration = Duration::from_millis(100);

/// The log of one build.
pub(super) struct Log {
    pub path: PathBuf,
    file: File,
    /// Where the present attempt begins.
    attempt: u64,
    /// As messages call what is built.
    target: String,
    /// The lock of builds: each process holds it too, so that it is not free before the last one has ended.
    lock: File,
}

impl Log {
    /// Begins a log, over an older one of the same build.
    pub fn begin(path: PathBuf, target: &str, lock: File) -> Result<Self, Problem> {
        let opened = File::create(&path).and_then(|_| OpenOptions::new().append(true).open(&path));
        let file = opened.map_err(|error| failed("write", &path, &error))?;
        Ok(Self {
            path,
            file,
            attempt: 0,
            target: target.to_owned(),
            lock,
        })
    }

    /// A line of ours.
    pub fn note(&mut self, line: &str) -> Result<(), Problem> {
        writeln!(self.file, "# {line}").map_err(|error| failed("write", &self.path, &error))
    }

    /// What comes now is another attempt: a failure is told from here on.
    pub fn next_attempt(&mut self) -> Result<(), Problem> {
        let found = self.file.metadata();
        self.attempt = found
            .map_err(|error| failed("read", &self.path, &error))?
            .len();
        Ok(())
    }

    /// Runs a command to its end; it ends with us if we are killed.
    ///
    /// Errors: it cannot be started, or fails: with the first errors and the end of what it said.
    pub fn run(
        &mut self,
        step: &str,
        command: &mut Command,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Duration, Problem> {
        self.note(&format!("{step}: {}", written(command)))?;
        let start = Instant::now();
        let mut child = self.start(step, command)?;
        let (mut told, mut pause) = (Duration::ZERO, Duration::from_millis(1));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(self.failure(step, &error.to_string())),
            }
            std::thread::sleep(pause);
            pause = POLL.min(pause * 2);
            if start.elapsed() >= told + SIGN_OF_LIFE {
                told = start.elapsed();
                progress(&format!("{}: {step}, {}", self.target, clock(told)));
            }
        };
        if status.success() {
            return Ok(start.elapsed());
        }
        Err(self.failure(step, &ended(status)))
    }

    fn start(&self, step: &str, command: &mut Command) -> Result<Child, Problem> {
        let log = || {
            let file = self.file.try_clone();
            file.map_err(|error| failed("write", &self.path, &error))
        };
        let lock = self.lock.try_clone();
        let lock = lock.map_err(|error| failed("lock", &self.path, &error))?;
        command
            .stdin(Stdio::from(lock))
            .stdout(Stdio::from(log()?))
            .stderr(Stdio::from(log()?));
        // SAFETY: both calls are async-signal-safe, allocate nothing and take plain integers.
        unsafe {
            command.pre_exec(|| {
                libc::umask(0o022);
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let mut tries = 0;
        loop {
            match command.spawn() {
                // A child that another of our threads forked keeps a script that we wrote open until it
                // execs.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < 50 => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => {
                    let program = command.get_program().to_string_lossy().into_owned();
                    return Err(
                        self.failure(step, &format!("{program} cannot be started: {error}"))
                    );
                }
                Ok(child) => return Ok(child),
            }
        }
    }

    /// The problem of a step that failed, with what the log says.
    pub fn failure(&self, step: &str, how: &str) -> Problem {
        let (errors, tail) = self.telling().unwrap_or_default();
        let mut detail = String::new();
        if !errors.is_empty() {
            detail = format!("first errors:\n{}\n", errors.join("\n"));
        }
        if !tail.is_empty() {
            detail.push_str(&format!("end of the log:\n{}", tail.join("\n")));
        }
        Problem::new(format!("building {} failed: {step} {how}", self.target))
            .detail(detail)
            .hint(format!("the whole log is {}", self.path.display()))
    }

    /// The first lines of this attempt that tell an error, and the last lines.
    fn telling(&self) -> std::io::Result<(Vec<String>, Vec<String>)> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.attempt))?;
        let (mut errors, mut tail) = (Vec::new(), std::collections::VecDeque::new());
        for line in BufReader::new(file).split(b'\n') {
            let line = shortened(&String::from_utf8_lossy(&line?));
            let is_error = line.contains("error:") || line.contains("undefined reference");
            // Lines of ours hold commands, and those may hold anything.
            if is_error && errors.len() < ERROR_LINES && !line.starts_with("# ") {
                errors.push(line.clone());
            }
            tail.push_back(line);
            if tail.len() > TAIL_LINES {
                tail.pop_front();
            }
        }
        // What the tail shows need not be said twice.
        errors.retain(|error| !tail.contains(error));
        Ok((errors, tail.into()))
    }
}

/// Whether the source cannot be built this way, now or later: a step of the build said so itself. A full
/// disk, too little memory, a step that was killed or a source that is missing are no fault of the source.
pub fn did_not_compile(problem: &Problem) -> bool {
    let error = &problem.error;
    let ended = [ENDED, NO_SERVER].iter().any(|how| error.contains(how));
    let by_step = error.starts_with("building ") && ended;
    by_step && !is_of_machine(problem)
        || error.contains("cannot be built with")
        || error == "the build differs from the request"
}

/// Whether disk, memory or the lab failed, or a program that failed said so in its own words, or was killed.
pub fn is_of_machine(problem: &Problem) -> bool {
    const SAID: [&str; 8] = [
        "No space left on device",
        "Disk quota exceeded",
        "out of memory allocating",
        "Cannot allocate memory",
        "virtual memory exhausted",
        "Killed signal terminated program",
        "Too many open files",
        "signal 9",
    ];
    let detail = problem.detail.as_deref().unwrap_or_default();
    let said = |words: &&str| problem.error.contains(words) || detail.contains(words);
    // The shell's and make's word for what the kernel ended, at the end of their lines.
    let mut lines = problem.error.lines().chain(detail.lines());
    let is_killed = lines.any(|line| line.split(' ').next_back() == Some("Killed"));
    problem.of_machine || is_killed || SAID.iter().any(said)
}

/// How a step that failed by itself ended.
const ENDED: &str = "ended with exit status ";

/// How one ended that made nothing.
pub(super) const NO_SERVER: &str = "produced no server";

/// A line that a terminal can bear: compiler commands are up to thousands of characters long.
fn shortened(line: &str) -> String {
    const LONGEST: usize = 300;
    if line.chars().count() <= LONGEST {
        return line.to_owned();
    }
    let start: String = line.chars().take(LONGEST).collect();
    format!("{start} …")
}

fn ended(status: ExitStatus) -> String {
    match (
        status.code(),
        std::os::unix::process::ExitStatusExt::signal(&status),
    ) {
        (Some(code), _) => format!("{ENDED}{code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended without a status".to_owned(),
    }
}

/// A command as it could be typed.
fn written(command: &Command) -> String {
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<String> = words
        .map(|word| {
            let word = word.to_string_lossy();
            match word.contains([' ', '$', '\'']) {
                true => format!("'{word}'"),
                false => word.into_owned(),
            }
        })
        .collect();
    let place = command.get_current_dir().unwrap_or(Path::new("."));
    format!("cd {} && {}", place.display(), words.join(" "))
}

/// `45 s`, `3 min 20 s`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {:02} s", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(dir: &Path) -> Log {
        let lock = File::create(dir.join("lock")).unwrap();
        Log::begin(dir.join("log"), "postgres:17.11+o3", lock).unwrap()
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_shows_the_first_errors_and_the_end_of_this_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let first = log.run(
            "make",
            &mut shell("echo 'old error: x' >&2; exit 1"),
            &mut |_| {},
        );
        assert!(first.is_err());
        log.next_attempt().unwrap();
        let script = "echo 'a.c:1: error: what'; seq 1 100; echo last; exit 2";
        let problem = log
            .run("make", &mut shell(script), &mut |_| {})
            .unwrap_err();
        assert_eq!(
            problem.error,
            "building postgres:17.11+o3 failed: make ended with exit status 2"
        );
        let detail = problem.detail.unwrap();
        assert!(
            detail.starts_with("first errors:\na.c:1: error: what\nend of the log:\n77\n"),
            "{detail}"
        );
        assert!(detail.ends_with("100\nlast"));
        assert!(!detail.contains("old error"));
        assert!(problem.hint.unwrap().ends_with("/log"));
    }

    #[test]
    fn only_a_step_that_ended_by_itself_is_a_fault_of_the_source() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let mut failed = |script: &str| {
            log.next_attempt().unwrap();
            let run = log.run("make", &mut shell(script), &mut |_| {});
            did_not_compile(&run.unwrap_err())
        };
        assert!(failed("echo 'a.c:1: error: what'; exit 2"));
        assert!(!failed("kill -9 $$"));
        assert!(!failed(
            "echo 'cannot write: No space left on device'; exit 2"
        ));
        for said in [
            "a.c: Disk quota exceeded",
            "cc1: out of memory allocating 65536 bytes",
            "make[2]: *** [a.o] Killed",
        ] {
            assert!(!failed(&format!("echo '{said}'; exit 2")), "{said}");
        }
        assert!(failed("echo 'a.c:1: error: isKilled'; exit 2"));
        assert!(!did_not_compile(&Problem::new(
            "cannot get the source of PostgreSQL 17.1"
        )));
    }

    #[test]
    fn a_step_that_a_signal_ended_or_that_is_not_there_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        let killed = log
            .run("make", &mut shell("kill -9 $$"), &mut |_| {})
            .unwrap_err();
        assert!(killed.error.ends_with("was ended by signal 9"));
        let absent = log.run("make", &mut Command::new("/no/such/make"), &mut |_| {});
        assert!(
            absent
                .unwrap_err()
                .error
                .contains("/no/such/make cannot be started")
        );
    }

    #[test]
    fn the_log_has_the_commands_and_what_they_said_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path());
        log.run("one", &mut shell("echo first; umask"), &mut |_| {})
            .unwrap();
        log.note("between").unwrap();
        log.run("two", &mut shell("echo second >&2"), &mut |_| {})
            .unwrap();
        let text = std::fs::read_to_string(&log.path).unwrap();
        let said: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("/bin/sh"))
            .collect();
        assert_eq!(said, ["first", "0022", "# between", "second"]);
    }

    #[test]
    fn times_are_told_in_minutes_once_there_are_any() {
        assert_eq!(clock(Duration::from_secs(45)), "45 s");
        assert_eq!(clock(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(clock(Duration::from_secs(61)), "1 min 01 s");
    }
}
