//! What the user is told when deltabench refuses or fails: error, detail, hint.

use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// A refusal or failure in PostgreSQL's three parts.
///
/// `error` is one line, lower case, no full stop; `detail` holds the facts; `hint` is the next thing to type
/// or do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong, in one line.
    pub error: String,
    /// The facts behind it; may have several lines.
    pub detail: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// Whether disk, memory or the lab failed, and not what was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_machine: bool,
}

/// Too many open files, here and in the whole system, and a disk that fails: `io::ErrorKind` has no names for
/// them. Source: errno(3).
const WITHOUT_NAMES: [i32; 3] = [24, 23, 5];

impl Problem {
    /// A problem with only its first line.
    pub fn new(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            ..Self::default()
        }
    }

    /// A problem with the cause of an error as its facts, if it has one.
    pub fn of(error: &dyn std::error::Error) -> Self {
        Self {
            error: error.to_string(),
            detail: error.source().map(ToString::to_string),
            ..Self::default()
        }
    }

    /// Adds the facts.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says that disk, memory or the lab failed.
    #[must_use]
    pub fn of_machine(mut self) -> Self {
        self.of_machine = true;
        self
    }

    /// Says so if that is what the system's error means: a full disk or quota, too little memory, too many
    /// open files, a disk that fails.
    #[must_use]
    pub fn caused_by(mut self, error: &io::Error) -> Self {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let named = matches!(
            error.kind(),
            StorageFull | QuotaExceeded | OutOfMemory | ReadOnlyFilesystem
        );
        let number = error.raw_os_error();
        self.of_machine |= named || number.is_some_and(|number| WITHOUT_NAMES.contains(&number));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.error)?;
        if let Some(detail) = &self.detail {
            write!(
                f,
                "\ndetail: {}",
                detail.trim_end().replace('\n', "\n        ")
            )?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", hint.trim_end().replace('\n', "\n      "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// The candidate nearest to `wanted`, for "did you mean" hints; `None` when nothing is near.
///
/// Source: Damerau-Levenshtein distance, at most a third of the wanted name's length and at least 2.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wanted.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_prints_its_three_parts_with_aligned_lines() {
        let problem = Problem::new("no such target")
            .detail("line 1\nline 2\n")
            .hint("try postgres:18");
        assert_eq!(
            problem.to_string(),
            "error: no such target\ndetail: line 1\n        line 2\nhint: try postgres:18"
        );
    }

    #[test]
    fn a_full_disk_and_too_little_memory_are_the_machines_and_a_missing_file_is_not() {
        let caused = |number| {
            let error = io::Error::from_raw_os_error(number);
            Problem::new("x").caused_by(&error).of_machine
        };
        // ENOSPC, EDQUOT, ENOMEM, EROFS; ENOENT, EACCES, ECONNREFUSED.
        for number in [28, 122, 12, 30] {
            assert!(caused(number), "{number}");
        }
        for number in WITHOUT_NAMES {
            assert!(caused(number), "{number}");
        }
        for number in [2, 13, 111] {
            assert!(!caused(number), "{number}");
        }
    }

    #[test]
    fn nearest_finds_a_typo_and_refuses_a_stranger() {
        let known = ["point-query", "hot-points", "update-index"];
        assert_eq!(nearest("point-qurey", known), Some("point-query"));
        assert_eq!(nearest("tpcc", known), None);
    }
}
