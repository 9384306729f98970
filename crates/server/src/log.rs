//! What a server wrote to its log, and what it means.

use deltabench_model::problem::Problem;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The most that is ever read back of a log.
const READ_BACK: u64 = 256 << 10;
/// Lines shown with a failure.
pub(crate) const SHOWN_LINES: usize = 20;

/// Length of the log now.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// What was written after `offset`, at most the last 256 kB of it; empty if there is no log.
pub(crate) fn since(path: &Path, offset: u64) -> String {
    let start = offset.max(length(path).saturating_sub(READ_BACK));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(start))?;
        file.take(READ_BACK).read_to_end(&mut bytes)
    });
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// The last lines of a text.
pub(crate) fn last_lines(text: &str, number: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(number);
    lines
        .iter()
        .skip(skipped)
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

/// The problem behind a failed start, if the log names one that we know. `server` is the target as
/// resolved.
///
/// Source: guc.c and guc-file.l of PostgreSQL 9.6 to 18 for the wording; servers are started with
/// English messages.
pub(crate) fn explain(log: &str, server: &str) -> Option<Problem> {
    log.lines().find_map(|line| {
        let message = message_of(line);
        setting_problem(message, server).or_else(|| resource_problem(message, server))
    })
}

fn setting_problem(message: &str, server: &str) -> Option<Problem> {
    if let Some(rest) = message.strip_prefix("unrecognized configuration parameter ") {
        let name = quoted(rest)?;
        return Some(
            Problem::new(format!("{server} does not know setting `{name}`"))
                .detail(message)
                .hint(format!(
                    "leave out {name}, or compare only versions that have it"
                )),
        );
    }
    let refused = message.starts_with("invalid value for parameter ")
        || message.contains("is outside the valid range for parameter ")
        || message.contains(" requires a ");
    if !refused {
        return None;
    }
    let name = quoted(message.split_once("parameter ")?.1)?;
    Some(
        Problem::new(format!("{server} refuses the value of setting `{name}`"))
            .detail(message)
            .hint(format!(
                "give {name} a value that every compared version accepts"
            )),
    )
}

fn resource_problem(message: &str, server: &str) -> Option<Problem> {
    if message.contains("could not map anonymous shared memory") {
        return Some(
            Problem::new(format!("{server} cannot get its shared memory"))
                .detail(message)
                .hint("use a smaller shared_buffers, or run without huge pages"),
        );
    }
    if message.contains("No space left on device") {
        return Some(
            Problem::new(format!("no disk space left for {server}"))
                .detail(message)
                .hint("free some disk space, or ask for fewer rows (--rows)"),
        );
    }
    if message.contains("could not load library") || message.contains("could not access file") {
        return Some(
            Problem::new(format!("{server} lacks a library that its settings load"))
                .detail(message),
        );
    }
    None
}

/// The message of a log line, behind prefix and severity; the line itself if it has none.
fn message_of(line: &str) -> &str {
    ["FATAL:  ", "PANIC:  ", "ERROR:  ", "LOG:  ", "WARNING:  "]
        .iter()
        .find_map(|severity| line.split_once(severity))
        .map_or(line, |(_, message)| message)
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?
        .split_once('"')
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_failures_are_told_in_words() {
        for (line, wanted) in [
            (
                "2025 [7] LOG:  unrecognized configuration parameter \"jit\" in file \"/d.conf\" line 7",
                "postgres:9.6.24 does not know setting `jit`",
            ),
            (
                "LOG:  invalid value for parameter \"wal_level\": \"maximal\"",
                "refuses the value of setting `wal_level`",
            ),
            (
                "LOG:  1 is outside the valid range for parameter \"shared_buffers\" (16 .. 1073741823)",
                "refuses the value of setting `shared_buffers`",
            ),
            (
                "LOG:  1 8kB is outside the valid range for parameter \"shared_buffers\" (16 8kB .. 10 8kB)",
                "refuses the value of setting `shared_buffers`",
            ),
            (
                "LOG:  parameter \"fsync\" requires a Boolean value",
                "refuses the value of setting `fsync`",
            ),
            (
                "FATAL:  could not map anonymous shared memory: Cannot allocate memory",
                "cannot get its shared memory",
            ),
            (
                "PANIC:  could not write to file \"pg_wal/x\": No space left on device",
                "no disk space left",
            ),
        ] {
            let problem = explain(line, "postgres:9.6.24")
                .unwrap_or_else(|| panic!("not recognised: {line}"));
            assert!(problem.error.contains(wanted), "{}", problem.error);
        }
        assert_eq!(
            explain("LOG:  database system is ready to accept connections", "x"),
            None
        );
    }

    #[test]
    fn the_tail_is_the_end_of_the_log_in_order() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 5), "a");
    }

    #[test]
    fn only_what_came_after_the_offset_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("server.log");
        std::fs::write(&path, "old\n").unwrap();
        let offset = length(&path);
        std::fs::write(&path, "old\nnew\n").unwrap();
        assert_eq!(since(&path, offset), "new\n");
        assert_eq!(since(&scratch.path().join("none"), 0), "");
    }
}
