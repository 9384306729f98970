//! Files that are there whole or not at all, and their hashes.

use deltabench_model::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

/// How long a file is not touched before nobody writes it any more.
const LEFT_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Writes a file beside its place, makes it durable and moves it there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    // A name that nobody looks for: one that is killed here leaves the file behind.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new-{}", std::process::id()));
    let done = || -> io::Result<()> {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        sync_directory_of(path)
    };
    done().map_err(|error| left_over("write", (path, &beside), &error))
}

/// That a file cannot be written. What was written of it beside its place goes: on a full disk it would take
/// the room that others need.
pub(crate) fn left_over(
    action: &str,
    (path, beside): (&Path, &Path),
    error: &io::Error,
) -> Problem {
    remove(beside);
    failed(action, path, error)
}

/// Makes the names in the directory of a file durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// Writes a value as JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| {
        Problem::new(format!("cannot write {}", path.display())).detail(error.to_string())
    })?;
    write(path, &text)
}

/// Reads a value from JSON; `None` where there is no file, or one that is none of ours.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// SHA-256 of a file, lower-case hex.
///
/// Errors: a file that cannot be read.
pub(crate) fn sha256(path: &Path) -> Result<String, Problem> {
    let done = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = file.read(&mut buffer)?;
            let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else {
                return Ok(format!("{:x}", hash.finalize()));
            };
            hash.update(part);
        }
    };
    done().map_err(|error| failed("read", path, &error))
}

/// Removes what a killed process left in a directory: names for which this holds, a day old. Another machine
/// may be writing younger ones.
pub(crate) fn sweep(directory: &Path, is_left: impl Fn(&str) -> bool) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        let name = entry.file_name();
        if name.to_str().is_some_and(&is_left) && age().is_some_and(|age| age > LEFT_AFTER) {
            remove(&entry.path());
        }
    }
}

/// Removes a file or a tree. One that is not there is what is wanted; one that cannot be removed stays.
pub(crate) fn remove(path: &Path) {
    if std::fs::remove_file(path).is_err() {
        std::fs::remove_dir_all(path).ok();
    }
}

/// That a file cannot be read or written.
pub(crate) fn failed(action: &str, path: &Path, error: &io::Error) -> Problem {
    Problem::new(format!("cannot {action} {}", path.display()))
        .detail(error.to_string())
        .caused_by(error)
}
