//! Another time for a server, such as that of a dump that it has.

use crate::failure::failed;
use crate::preload::{self, PRELOAD};
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};

/// The library, built with this program. Its source says which clocks it sets.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libdeltabench_clock.so"));
/// File name of the library.
const NAME: &str = "libdeltabench_clock.so";
/// The variable that the library reads.
const VARIABLE: &str = "DELTABENCH_CLOCK_NS";

/// A small library that is loaded into every process of a server, and adds something to the time of day.
///
/// It works with every dynamically linked server, and needs no compiler on this machine. What a server says
/// and stores as the time is then that time; what measures how long something takes, and what the kernel
/// knows, stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    library: PathBuf,
}

impl Clock {
    /// Writes the library into a workspace's directory.
    ///
    /// Errors: a directory that cannot be written or that the dynamic linker cannot take.
    pub fn install(workspace_dir: &Path) -> Result<Self, Problem> {
        let library = preload::place(workspace_dir, NAME)?;
        std::fs::write(&library, LIBRARY).map_err(|error| failed("write", &library, &error))?;
        let library = preload::readable(&library)?;
        Ok(Self { library })
    }

    /// Variables for [`Slot::environment`](crate::Slot) of a server whose clock is ahead by so many
    /// nanoseconds, or behind if they are negative.
    ///
    /// Give all servers of a comparison the same: then their environments have the same size, too, which
    /// moves the stack and with it the timing.
    pub fn environment(&self, ahead_ns: i64) -> Vec<(String, String)> {
        vec![
            (PRELOAD.to_owned(), self.library.display().to_string()),
            (VARIABLE.to_owned(), format!("{ahead_ns:+020}")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{SystemTime, UNIX_EPOCH};

    /// Seconds since 1970 that a program says with a clock that is ahead by so much.
    fn said(clock: &Clock, ahead_ns: i64) -> i64 {
        let output = Command::new("date")
            .arg("+%s")
            .envs(clock.environment(ahead_ns))
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    #[test]
    fn a_program_has_the_time_that_it_is_given_and_we_have_ours() {
        const DAY_NS: i64 = 86_400_000_000_000;
        let scratch = tempfile::tempdir().unwrap();
        let clock = Clock::install(scratch.path()).unwrap();
        let now = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            i64::try_from(now.as_secs()).unwrap()
        };
        for (ahead_ns, seconds) in [(-400 * DAY_NS, -400 * 86_400), (0, 0), (DAY_NS, 86_400)] {
            let before = now();
            let said = said(&clock, ahead_ns) - seconds;
            assert!((before..=now()).contains(&said), "{said} {before}");
        }
        let sizes = [0, -1, i64::MIN, i64::MAX].map(|ns| clock.environment(ns)[1].1.len());
        assert_eq!(sizes, [20; 4], "the environment has the same size");
    }

    #[test]
    fn a_directory_that_the_linker_cannot_take_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let problem = Clock::install(&scratch.path().join("a b")).unwrap_err();
        assert!(problem.detail.unwrap().contains("blank"));
    }
}
