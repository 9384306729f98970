//! What can go wrong while observing.

use deltabench_model::problem::Problem;
use deltabench_proc::ProcError;
use std::path::Path;

/// A failure to observe or to pin.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// `/proc`, `/sys` or a cgroup could not be used, or a process is gone.
    #[error(transparent)]
    Kernel(#[from] ProcError),
    /// The kernel refused an affinity.
    #[error("cannot pin thread {tid} to cores {cores:?}")]
    Pin {
        /// Thread id; 0 is the calling thread.
        tid: u32,
        cores: Vec<usize>,
        /// Why not.
        source: std::io::Error,
    },
    /// No thread could be started.
    #[error("cannot start the sampler's thread")]
    Thread {
        /// Why not.
        source: std::io::Error,
    },
    /// Neither schedstat nor a cgroup can be used here.
    #[error("no source of server CPU: {reason}")]
    NoSource {
        /// What was tried and why it failed, one after the other.
        reason: String,
    },
}

impl ObserveError {
    pub(crate) fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Kernel(ProcError::file(action, path, source))
    }
}

impl From<ObserveError> for Problem {
    fn from(error: ObserveError) -> Self {
        Self::of(&error)
    }
}
