//! What can go wrong with the lab's file.

use deltabench_model::problem::Problem;
use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// What to do once the disk of a lab has space again. A run that is finished has its reports written then.
pub const FREE_SPACE: &str = "free some space, then `deltabench resume` if a run had begun, else give the \
                              command again: what was measured is kept";

/// A failure of the store. Whatever was committed before it is still there.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The lab directory could not be made or read.
    #[error("cannot use the lab directory {path}: {source}")]
    Directory {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no store in this lab.
    #[error("no runs here: {path} does not exist")]
    Missing {
        /// The file looked for.
        path: PathBuf,
    },
    /// The file is from a newer version.
    #[error("{path} was written by a newer deltabench; upgrade")]
    Newer {
        path: PathBuf,
        /// Number of its newest migration.
        found: u32,
        /// Number of the newest migration known here.
        known: u32,
    },
    /// A run does what this version does not know.
    #[error("{path} has a run of a kind that this deltabench does not know: {kind}")]
    UnknownKind { path: PathBuf, kind: String },
    /// The file is not a store of deltabench.
    #[error("{path} is not a deltabench store")]
    Foreign { path: PathBuf },
    /// No run has this name.
    #[error("there is no run `{run}` in {path}")]
    UnknownRun { path: PathBuf, run: String },
    #[error("no space left to write {path}")]
    Full {
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The database could not do it: I/O, permissions, a lock held for too long.
    #[error("cannot {action} {path}: {source}")]
    Sqlite {
        path: PathBuf,
        /// What was being done, for example `append a slice to`.
        action: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A stored value is not what this version writes.
    #[error("{path} contains a record that cannot be read: {what}")]
    Damaged {
        path: PathBuf,
        /// Which record, and what is wrong with it.
        what: String,
    },
    /// The sealed file of an archived run could not be written or read.
    #[error("the archive of run {run} cannot be used: {path}: {why}")]
    Archive {
        path: PathBuf,
        run: String,
        why: String,
    },
    /// The lab has this name already.
    #[error("{path} already has a {what} `{name}`")]
    Taken {
        path: PathBuf,
        /// `run` or `bisection`.
        what: &'static str,
        name: String,
    },
    /// The caller broke the order of calls or gave a value that cannot be stored.
    #[error("cannot store this in {path}: {what}")]
    Misuse { path: PathBuf, what: String },
}

impl StoreError {
    /// Sorts an SQLite failure: a full disk is told apart from everything else.
    pub(crate) fn sqlite(path: &Path, action: &'static str, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full { path, source },
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign { path },
            _ => Self::Sqlite {
                path,
                action,
                source,
            },
        }
    }

    /// Whether a file was not opened or written because it, or its directory, is read-only.
    pub(crate) fn is_of_read_only(&self) -> bool {
        let Self::Sqlite { source, .. } = self else {
            return false;
        };
        let refused = [ErrorCode::ReadOnly, ErrorCode::CannotOpen];
        { source.sqlite_error_code() }.is_some_and(|code| refused.contains(&code))
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Directory { source, .. } if is_of_space(source) => FREE_SPACE,
            Self::Directory { .. } => "name another place with --lab DIR",
            Self::Missing { .. } => {
                "start a run with `deltabench compare`, or name the lab with --lab DIR"
            }
            Self::Newer { .. } | Self::UnknownKind { .. } => {
                "upgrade deltabench, or name another lab with --lab DIR"
            }
            Self::Foreign { .. } => "name another lab with --lab DIR; the file is unchanged",
            Self::UnknownRun { .. } => "`deltabench list` shows all runs",
            Self::Full { .. } => FREE_SPACE,
            Self::Sqlite { .. } if self.is_of_read_only() => {
                "make the lab writable for this user, or copy it and name the copy with --lab DIR"
            }
            Self::Sqlite { .. } => {
                "check the disk and the permissions, then `deltabench resume` if a run had begun, else give \
                 the command again: what was measured is kept"
            }
            Self::Archive { .. } => {
                "nothing was deleted; check the disk, or put the file back from a copy of the lab"
            }
            Self::Damaged { .. } => "keep a copy of the file and report this",
            Self::Taken { .. } => "give the command again",
            Self::Misuse { .. } => "this is a bug in deltabench; please report it",
        }
    }
}

fn is_of_space(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        let problem = Self::new(error.to_string()).hint(hint).of_machine();
        match &error {
            StoreError::Full { source, .. } => problem.detail(source.to_string()),
            StoreError::Newer { found, known, .. } => problem.detail(format!(
                "its schema is number {found}, this version knows up to {known}"
            )),
            _ => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_one_way_out_where_tables_and_where_files_are_written() {
        let directory = |kind: io::ErrorKind| StoreError::Directory {
            path: "/lab".into(),
            source: kind.into(),
        };
        let full = StoreError::Full {
            path: "/lab/deltabench.sqlite".into(),
            source: rusqlite::Error::InvalidQuery,
        };
        assert_eq!(full.hint(), FREE_SPACE);
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert_eq!(directory(kind).hint(), FREE_SPACE);
        }
        let denied = directory(io::ErrorKind::PermissionDenied);
        assert_eq!(denied.hint(), "name another place with --lab DIR");
    }
}
