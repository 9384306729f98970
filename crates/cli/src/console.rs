//! What is said on stdout and stderr, and files that are written.

use crate::failure::Failure;
use deltabench_model::problem::Problem;
use deltabench_store::FREE_SPACE;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Whether a destination is stdout.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file for writing without touching what is in it.
pub fn check_writable(path: &Path) -> Result<(), Problem> {
    let existed = path.exists();
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| {
            Problem::new(format!("cannot write {}", path.display()))
                .detail(error.to_string())
                .hint("name a file in a directory that exists")
        })?;
    if !existed {
        // Only our own empty file is removed; a failure here shows again when the report is written.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Columns of the terminal, or a default where there is none.
pub fn width() -> usize {
    let from_environment = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    from_environment
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .unwrap_or(120)
}

/// Says a line on stderr; nobody listening there is no reason to stop a run.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes to stdout; a reader that went away is not a failure.
pub fn print_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Failed(
            Problem::new("cannot write to stdout").detail(error.to_string()),
        )),
        _ => Ok(()),
    }
}

/// Writes a report file.
pub fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        let problem =
            Problem::new(format!("cannot write {}", path.display())).detail(error.to_string());
        Failure::Failed(match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => problem.hint(FREE_SPACE),
            _ => problem,
        })
    })
}

/// A value as JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let written = serde_json::to_value(value).map(deltabench_report::of_no_run);
    written
        .and_then(|value| serde_json::to_string_pretty(&value))
        .map_err(|error| {
            Failure::Failed(
                Problem::new("the result cannot be written as JSON").detail(error.to_string()),
            )
        })
}

/// Writes a value as JSON; `-` is stdout.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let json = to_json(value)?;
    if is_stdout(path) {
        print_stdout(&json)
    } else {
        write_file(path, &json)
    }
}
