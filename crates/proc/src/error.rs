//! What can go wrong while the kernel is asked.

use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};

/// The kernel does not tell.
#[derive(Debug, thiserror::Error)]
pub enum ProcError {
    /// A file could not be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried: `open` or `read`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file says something else than the kernel's documentation.
    #[error("{} is not as expected: {found:?}", path.display())]
    Format { path: PathBuf, found: String },
    /// There is no such process, or it has ended.
    #[error("process {pid} is gone")]
    Gone { pid: u32 },
}

impl ProcError {
    /// A file that could not be used.
    pub fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

impl From<ProcError> for Problem {
    fn from(error: ProcError) -> Self {
        Self::of(&error)
    }
}
