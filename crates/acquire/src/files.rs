//! Files and directories of the cache: written whole, readable for the servers' user.

use deltabench_model::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Reads JSON; nothing when it is not there or is something else.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Writes JSON beside its place and renames it, so that readers see the old or the new file, whole.
pub(crate) fn write_whole(path: &Path, content: &impl Serialize) -> Result<(), Problem> {
    let mut text = serde_json::to_string_pretty(content).map_err(|error| {
        Problem::new(format!("cannot write {}", path.display())).detail(error.to_string())
    })?;
    text.push('\n');
    // Not all files are written under a lock: two processes must not share this one.
    let new = path.with_extension(format!("new-{}", std::process::id()));
    std::fs::write(&new, text)
        .and_then(|()| std::fs::set_permissions(&new, Permissions::from_mode(0o644)))
        .and_then(|()| std::fs::rename(&new, path))
        .map_err(|error| failed("write", path, &error))
}

/// Writes a file that only we can read: an address may hold a password, which a client needs.
pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// Makes a directory and those above it, 0755 whatever our umask: the server runs as another user.
pub(crate) fn make_directory(dir: &Path) -> Result<(), Problem> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(above) = dir.parent() {
        make_directory(above)?;
    }
    match DirBuilder::new().mode(0o755).create(dir) {
        Ok(()) => std::fs::set_permissions(dir, Permissions::from_mode(0o755)),
        // Another process made it first.
        Err(_) if dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|error| failed("make", dir, &error))
}

/// Removes a directory with everything in it, if it is there.
pub(crate) fn remove_tree(dir: &Path) -> Result<(), Problem> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("remove", dir, &error))
        }
        _ => Ok(()),
    }
}

/// The problem of a file that could not be handled.
pub(crate) fn failed(doing: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot {doing} {}", path.display()))
        .detail(error.to_string())
        .caused_by(error)
}
