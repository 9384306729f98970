//! What a counter wrote at the marks of a backend.

use crate::clock::without;
use deltabench_explain::callgrind::{self, Part, Unread};
use deltabench_model::problem::Problem;
use deltabench_model::profile::Profile;
use deltabench_server::counts_file;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The function below which a backend does its work.
const ROOT: &str = "PostgresMain";

/// Enough of a file's end to hold its total.
const TAIL: u64 = 4096;

/// The marks of one backend.
#[derive(Debug)]
pub struct Marks {
    directory: PathBuf,
    pid: u32,
    /// Marks so far; files are numbered by them, from 1.
    number: u32,
}

impl Marks {
    /// Those of a backend, which has had none.
    pub fn of(directory: &Path, pid: u32) -> Self {
        Self {
            directory: directory.to_path_buf(),
            pid,
            number: 0,
        }
    }

    /// The file of the mark that was just answered: a server writes it before it answers.
    ///
    /// Errors: there is another one after it, so something else asked for marks.
    pub fn next(&mut self) -> Result<PathBuf, Problem> {
        self.number += 1;
        let file = |number| counts_file(&self.directory, self.pid, number);
        if file(self.number + 1).exists() {
            return Err(Problem::new("the count is in pieces")
                .detail("an operation called pg_backend_pid, but calls of it start and end a count")
                .hint("leave out that function, also in functions and triggers"));
        }
        Ok(file(self.number))
    }
}

/// Instructions of a whole file.
///
/// Errors: it is not there, or is none of callgrind's.
/// Source: callgrind's format, `totals:` after all costs.
pub fn total(path: &Path) -> Result<u64, Problem> {
    let unread = |why: String| {
        Problem::new("cannot read the output of the counter")
            .detail(format!("{}: {why}", path.display()))
    };
    let mut file = File::open(path).map_err(|error| unread(error.to_string()))?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut tail = Vec::new();
    let read = file
        .seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .and_then(|_| file.read_to_end(&mut tail));
    read.map_err(|error| unread(error.to_string()))?;
    let text = String::from_utf8_lossy(&tail);
    let found = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"));
    found
        .and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok())
        .ok_or_else(|| unread("it has no total".to_owned()))
}

/// Where the instructions between two marks went, function by function and path by path.
///
/// Errors: a file that is not there, or is none of callgrind's.
pub fn read(path: &Path) -> Result<Profile, Problem> {
    last_part(path, |text| callgrind::read(text, ROOT)).map(|part| part.profile)
}

/// As `read`, of a program that calls a library: what was done in calls of its functions, whose names begin
/// with `prefix`, below a node `name`.
///
/// Errors: those of `read`.
pub fn of_library(path: &Path, prefix: &str, name: &str) -> Result<OfLibrary, Problem> {
    let part = last_part(path, |text| callgrind::read_calls(text, prefix, name))?;
    Ok(OfLibrary {
        instructions: part.profile.total().unsigned_abs(),
        profile: without(&part.profile, 0),
        of_threads: part.of_threads.unsigned_abs(),
    })
}

/// What a library did between two marks.
#[derive(Debug)]
pub struct OfLibrary {
    /// Instructions in calls of it.
    pub instructions: u64,
    /// Where they went, with the allocator's work at a fixed price.
    pub profile: Profile,
    /// Instructions of its own threads.
    pub of_threads: u64,
}

fn last_part(
    path: &Path,
    parts: impl Fn(&str) -> Result<Vec<Part>, Unread>,
) -> Result<Part, Problem> {
    let unread = |why: String| {
        Problem::new("cannot read the output of the counter")
            .detail(format!("{}: {why}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| unread(error.to_string()))?;
    let parts = parts(&text).map_err(|error| unread(error.to_string()))?;
    let part = parts.into_iter().next_back();
    part.ok_or_else(|| unread("it has no parts".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_nobody_asked_for_ends_the_count() {
        let scratch = tempfile::tempdir().unwrap();
        let mut marks = Marks::of(scratch.path(), 7);
        for number in [1, 2] {
            std::fs::write(counts_file(scratch.path(), 7, number), "").unwrap();
        }
        let refused = marks.next().unwrap_err();
        assert!(refused.detail.unwrap().contains("pg_backend_pid"));
    }

    #[test]
    fn the_total_is_at_the_end_of_a_file() {
        let scratch = tempfile::tempdir().unwrap();
        let mut marks = Marks::of(scratch.path(), 7);
        let path = marks.next().unwrap();
        assert!(path.ends_with("cg.7.1"));
        assert!(marks.next().unwrap().ends_with("cg.7.2"));
        assert!(total(&path).unwrap_err().to_string().contains("cg.7.1"));
        let costs = "0 1\n".repeat(3000);
        std::fs::write(&path, format!("events: Ir\n{costs}\ntotals: 44365278\n")).unwrap();
        assert_eq!(total(&path), Ok(44_365_278));
        std::fs::write(&path, "events: Ir\n").unwrap();
        assert!(total(&path).unwrap_err().to_string().contains("no total"));
    }
}
