//! Servers under a counter of instructions: valgrind's callgrind.
//!
//! The counter writes what a process has counted since the last time, by function and call path, before that
//! process runs a function that is named here. A backend runs it when a client asks for
//! [`Counter::MARK_SQL`], so a client marks the ends of what is counted in the stream of its statements.
//! Backends are forked and not started, and what speaks to the counter from outside does not reach those. A
//! small library in each of them asks the counter to begin when the first mark comes (`mark.c`).

use crate::failure::failed;
use crate::preload::{self, PRELOAD};
use deltabench_model::problem::Problem;
use deltabench_proc::program;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable of a server under a counter, and of all its processes: their program is the counter's, so it is
/// by this, and by where they work, that [`crate::sweep`] knows that they are ours.
pub(crate) const COUNTED_MARK: (&str, &str) = ("DELTABENCH_STARTED", "counted");

/// Where the counter writes, in a cluster's directory.
pub(crate) const COUNTS: &str = "counts";

/// Callers by which calls of a function are told apart: most of what a backend has on its stack in a
/// statement. A longer path is completed by its callers.
const CALLERS: u32 = 20;

/// The same where nobody asks for call paths: enough to know what the clock called for. A first operation
/// then takes a third of the time.
const FEW_CALLERS: u32 = 6;

/// The function before which counts are written, and the statement that runs it.
const MARK: &str = "pg_backend_pid";

/// A process runs this when it ends: else the counter would write, at its end, all that it did.
const ENDS: &str = "proc_exit";

/// The library that has a backend counted from its first mark on, built with this program.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libdeltabench_mark.so"));
/// File name of the library.
const LIBRARY_NAME: &str = "libdeltabench_mark.so";
/// Its function, in the place of the C library's `recv`.
const LIBRARY_FUNCTION: &str = "dlb";

/// Counts nothing before it is asked to: all that comes before goes five times as slow as without a counter,
/// and not fifty times.
const NOT_AT_START: &str = "--instr-atstart=no";

/// A counter of instructions on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    program: PathBuf,
    /// What it says of itself.
    pub version: String,
    callers: u32,
}

impl Counter {
    /// The statement before which the counter of a backend writes what was counted, and begins again.
    pub const MARK_SQL: &'static str = "SELECT pg_backend_pid()";

    /// Whether a text of a user's may ask for marks. They would be taken for those that end what is
    /// counted.
    pub fn is_mark_in(text: &str) -> bool {
        text.to_ascii_lowercase().contains(MARK)
    }

    /// The counter of this machine.
    ///
    /// Errors: there is none, with the package that has it; one that does not run.
    pub fn find() -> Result<Self, Problem> {
        let path = std::env::var_os("PATH");
        let Some(program) = program("valgrind", path.as_deref()) else {
            return Err(Problem::new("there is no valgrind on this machine")
                .detail("its tool callgrind counts instructions, but it is not on PATH")
                .hint("install the package `valgrind`, for example `apt-get install valgrind`"));
        };
        let asked = Command::new(&program).arg("--version").output();
        match asked {
            Ok(output) if output.status.success() => Ok(Self {
                program,
                version: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
                callers: CALLERS,
            }),
            other => Err(
                Problem::new(format!("{} does not run", program.display())).detail(match other {
                    Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                    Err(error) => error.to_string(),
                }),
            ),
        }
    }

    /// The same counter with short call paths: its totals are the same, and it is faster.
    #[must_use]
    pub fn shallow(&self) -> Self {
        Self {
            callers: FEW_CALLERS,
            ..self.clone()
        }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// What the counter is told, with the program that it counts.
    pub(crate) fn arguments(
        &self,
        directory: &Path,
        program: &Path,
        own: Vec<OsString>,
    ) -> Vec<OsString> {
        let when = [
            NOT_AT_START.to_owned(),
            format!("--dump-before={MARK}"),
            format!("--zero-before={ENDS}"),
        ];
        self.told(directory, when, program, own)
    }

    /// A worker under the counter, which writes into `directory` when the worker asks it to: the program that
    /// is started, its arguments and the variables of its environment.
    #[must_use]
    pub fn of_worker(
        &self,
        directory: &Path,
        program: &Path,
        own: Vec<OsString>,
    ) -> (PathBuf, Vec<OsString>, Vec<(String, String)>) {
        let when = [NOT_AT_START.to_owned()];
        let arguments = self.told(directory, when, program, own);
        let scratch = ("TMPDIR".to_owned(), directory.display().to_string());
        (self.program.clone(), arguments, vec![scratch])
    }

    /// `when` it counts, and writes what it counted.
    fn told(
        &self,
        directory: &Path,
        when: impl IntoIterator<Item = String>,
        program: &Path,
        own: Vec<OsString>,
    ) -> Vec<OsString> {
        let mut file = OsString::from("--callgrind-out-file=");
        file.push(directory.join("cg.%p"));
        let mut arguments: Vec<OsString> = vec![
            "--tool=callgrind".into(),
            "--quiet".into(),
            // Else it leaves pipes in /tmp when it is killed.
            "--vgdb=no".into(),
        ];
        arguments.extend(when.into_iter().map(OsString::from));
        arguments.extend([
            format!("--separate-callers={}", self.callers).into(),
            // Line numbers only make files larger: functions are what is compared.
            "--dump-line=no".into(),
            file,
            program.into(),
        ]);
        arguments.extend(own);
        arguments
    }

    /// Whether this function is ours, in each backend that is counted: what it does is no part of a count.
    #[must_use]
    pub fn is_own(function: &str) -> bool {
        function == LIBRARY_FUNCTION
    }

    /// Writes the library into the directory of counts; variables of the server's environment, with those
    /// that it has of its own.
    ///
    /// Errors: a directory that cannot be written or that the dynamic linker cannot take.
    pub(crate) fn environment(
        directory: &Path,
        own: &[(String, String)],
    ) -> Result<Vec<(String, String)>, Problem> {
        let library = preload::place(directory, LIBRARY_NAME)?;
        std::fs::write(&library, LIBRARY).map_err(|error| failed("write", &library, &error))?;
        let library = preload::readable(&library)?;
        let mut all = vec![
            (COUNTED_MARK.0.to_owned(), COUNTED_MARK.1.to_owned()),
            // Its scratch files go where everything of the server goes.
            ("TMPDIR".to_owned(), directory.display().to_string()),
        ];
        let (others, rest): (Vec<_>, Vec<_>) =
            own.iter().cloned().partition(|(name, _)| name == PRELOAD);
        all.extend(rest);
        let libraries: Vec<String> = std::iter::once(library.display().to_string())
            .chain(others.into_iter().map(|(_, library)| library))
            .collect();
        all.push((PRELOAD.to_owned(), libraries.join(preload::SEPARATOR)));
        Ok(all)
    }
}

/// The file that a process wrote at its `number`th mark, counted from 1.
#[must_use]
pub fn counts_file(directory: &Path, pid: u32, number: u32) -> PathBuf {
    directory.join(format!("cg.{pid}.{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_comes_last_with_its_own_arguments() {
        let counter = Counter {
            program: "/usr/bin/valgrind".into(),
            version: String::new(),
            callers: CALLERS,
        };
        let told = counter.shallow().arguments(
            Path::new("/w/counts"),
            Path::new("/pg/bin/postgres"),
            vec!["-D".into(), "/w/data".into()],
        );
        let text: Vec<&str> = told.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(
            text[text.len() - 3..],
            ["/pg/bin/postgres", "-D", "/w/data"]
        );
        assert!(text.contains(&"--callgrind-out-file=/w/counts/cg.%p"));
        assert!(text.contains(&"--dump-before=pg_backend_pid"));
        assert!(text.contains(&"--separate-callers=6"));
        assert_eq!(
            counts_file(Path::new("/w/counts"), 12, 3),
            Path::new("/w/counts/cg.12.3")
        );
        assert!(Counter::is_mark_in(Counter::MARK_SQL));
        assert!(!Counter::is_mark_in("SELECT pg_backend"));
    }

    #[test]
    fn the_library_of_marks_is_loaded_before_those_that_a_server_has() {
        let scratch = tempfile::tempdir().unwrap();
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let own = [variable(PRELOAD, "/w/x.so"), variable("A", "1")];
        let found = Counter::environment(scratch.path(), &own).unwrap();
        let value = |name: &str| {
            let mut found = found.iter().filter(|(found, _)| found == name);
            (found.next().map(|(_, value)| value.clone()), found.next())
        };
        let library = scratch.path().canonicalize().unwrap().join(LIBRARY_NAME);
        let both = format!("{}:/w/x.so", library.display());
        assert_eq!(value(PRELOAD), (Some(both), None));
        assert_eq!(value("A"), (Some("1".to_owned()), None));
        assert!(library.is_file());
    }
}
