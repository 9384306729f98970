//! What an engine is started with, how long it may take, and why an order is not carried out.

use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_model::work::rocksdb::{BlockCache, RocksdbSetup, RocksdbStep, StepFigures};
use deltabench_server::{Counter, ServerUser};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What to start.
#[derive(Clone, Copy)]
pub struct EngineSpec<'a, 'i> {
    pub installation: &'a Installation,
    /// The program started with the argument `engine-worker`: `/proc/self/exe` is this program itself. Not
    /// used for a `db_bench`. A counter opens it by this name, which must not be that of itself then.
    pub worker: &'a Path,
    /// Directory of the engine; made here, inside the run's workspace. Its database is `db` in it.
    pub directory: &'a Path,
    /// What the engine writes to standard error goes here, and all that a `db_bench` says.
    pub log: &'a Path,
    pub user: &'a ServerUser,
    /// Sizes and common options.
    pub setup: &'a RocksdbSetup,
    pub cache: BlockCache,
    /// Options of this target, by their names in option files.
    pub options: &'a [(String, String)],
    /// Counts the instructions of the worker, into `counts` in its directory.
    pub counter: Option<&'a Counter>,
    /// Cores to run on; absent means all.
    pub cores: Option<&'a [usize]>,
    /// Directories of control groups to start it in.
    pub cgroups: &'a [PathBuf],
    /// Set when the user wants an end; looked at every 50 ms while an order is carried out.
    pub interrupted: &'i AtomicBool,
}

impl EngineSpec<'_, '_> {
    /// Where the database is.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join("db")
    }

    /// Where its counter writes, in the directory of an engine.
    pub(crate) fn counts(&self) -> PathBuf {
        counts_dir(self.directory)
    }
}

/// Where the counter of an engine writes, by the directory of the engine.
#[must_use]
pub fn counts_dir(directory: &Path) -> PathBuf {
    directory.join("counts")
}

/// How long an engine has for something: far more than one that works needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Where it only reads, opens or gets ready; even with all compactions of a load at 4 MB/s beside it.
    ///
    /// Source: the published scripts give each step its duration and 600 s more.
    pub(crate) of_reads: Duration,
    /// Where it writes or waits for its compactions. That work is a count and no time: the base does it in
    /// the seconds of the step, and an engine that is 20 times slower is slow and not stuck. A load has no
    /// seconds; it may go at 1 MB/s.
    pub(crate) of_writes: Duration,
}

impl Patience {
    pub(crate) fn of(setup: &RocksdbSetup) -> Self {
        let seconds = u64::from(setup.seconds);
        let raw = setup.raw_bytes();
        Self {
            of_reads: Duration::from_secs(600 + seconds + raw / (4 << 20)),
            of_writes: Duration::from_secs(600 + 20 * seconds + raw / (1 << 20)),
        }
    }

    /// For a step, its turns and its end.
    pub(crate) fn of_step(self, step: RocksdbStep) -> Duration {
        match step.writes() || !step.is_measured() {
            true => self.of_writes,
            false => self.of_reads,
        }
    }
}

/// An unmeasured step that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// How long it took, nanoseconds.
    pub duration_ns: u64,
    pub figures: StepFigures,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It crashed: how, when, and the last lines of its log.
    #[error("{0}")]
    Lost(String),
    /// It did not answer in time.
    #[error("{0}")]
    Stalled(String),
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// It cannot be done: the library's words, or the system's.
    #[error("{0}")]
    Failed(String),
}

impl EngineError {
    /// A problem of starting or of directories, in one line.
    pub(crate) fn of_problem(problem: &Problem) -> Self {
        let parts = [
            Some(&problem.error),
            problem.detail.as_ref(),
            problem.hint.as_ref(),
        ];
        let words: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        Self::Failed(words.join(": "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn an_engine_that_writes_twenty_times_slower_than_the_base_is_not_given_up() {
        let mut setup = Bench::worker("").setup;
        setup.seconds = 1800;
        setup.keys = 40_000_000;
        let patience = Patience::of(&setup);
        let writes = patience.of_step(RocksdbStep::Overwriteandwait);
        assert!(writes >= Duration::from_secs(600 + 20 * 1800), "{writes:?}");
        // 16.8 GB.
        let loads = patience.of_step(RocksdbStep::Fillseq);
        assert!(loads >= Duration::from_secs(16_000), "{loads:?}");
        assert_eq!(patience.of_step(RocksdbStep::Drain), writes);
        let reads = patience.of_step(RocksdbStep::Readwhilewriting);
        assert!(5 * reads < writes, "a hang is told sooner: {reads:?}");
    }
}
