//! What can go wrong while observing.

use deltabench_model::problem::Problem;
use deltabench_proc::ProcError;
use std::path::{Path, PathBuf};

/// A failure to observe or to pin.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file of `/proc`, `/sys` or a cgroup could not be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried: `open`, `read`, `write`, `create`, `remove`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of `/proc`, `/sys` or a cgroup says something else than the kernel's documentation.
    #[error("{} is not as expected: {found:?}", path.display())]
    Format { path: PathBuf, found: String },
    /// There is no such process, or it has ended.
    #[error("process {pid} is gone")]
    Gone { pid: u32 },
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
        Self::File {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

impl From<ProcError> for ObserveError {
    fn from(error: ProcError) -> Self {
        match error {
            ProcError::File {
                action,
                path,
                source,
            } => Self::File {
                action,
                path,
                source,
            },
            ProcError::Format { path, found } => Self::Format { path, found },
            ProcError::Gone { pid } => Self::Gone { pid },
        }
    }
}

impl From<ObserveError> for Problem {
    fn from(error: ObserveError) -> Self {
        let problem = Self::new(error.to_string());
        match std::error::Error::source(&error) {
            Some(cause) => problem.detail(cause.to_string()),
            None => problem,
        }
    }
}
