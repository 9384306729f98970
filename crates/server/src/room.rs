//! Refusals before anything starts: too little disk, too little memory, too long a socket path.

use crate::failure::failed;
use crate::kernel;
use deltabench_model::problem::Problem;
use deltabench_proc::memory::memory_available;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a socket's path, without the final NUL.
///
/// Source: unix(7): `sun_path` has 108 bytes.
const SOCKET_PATH_BYTES: usize = 107;
/// The longest name PostgreSQL gives a socket in its directory.
const LONGEST_SOCKET_NAME: &str = "/.s.PGSQL.65535";
/// Where sockets will be below the parent of a run's directory, with a run's name of the usual length.
pub(crate) const SOCKETS_OF_A_RUN: &str = "20000101-000000-0000/sockets";

/// Checks that the file system of `parent` (which need not exist yet) and this machine have that much
/// to give.
///
/// Units:  bytes.
/// Errors: too little disk, too little memory (counting the limit of our control group), or a path too long
/// for the sockets of a run in it.
pub fn check_room(
    parent: &Path,
    need_disk_bytes: u64,
    need_memory_bytes: u64,
) -> Result<(), Problem> {
    check_socket_path(&parent.join(SOCKETS_OF_A_RUN))?;
    let existing = parent
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() {
        Path::new(".")
    } else {
        existing
    };
    let free = kernel::free_bytes(existing).map_err(|error| failed("look at", existing, &error))?;
    if free < need_disk_bytes {
        return Err(Problem::new("not enough disk space")
            .detail(format!(
                "the servers need about {} in {}, and {} are free",
                megabytes(need_disk_bytes),
                parent.display(),
                megabytes(free)
            ))
            .hint(
                "ask for fewer rows or tables (--rows, --tables), or keep clusters on another disk",
            ));
    }
    let Some(available) = memory_available() else {
        return Ok(());
    };
    if available < need_memory_bytes {
        return Err(Problem::new("not enough memory")
            .detail(format!(
                "the servers need about {}, and {} are available",
                megabytes(need_memory_bytes),
                megabytes(available)
            ))
            .hint(
                "give each server less (shared_buffers, --memory), ask for fewer rows or tables (--rows, \
                 --tables), or compare fewer targets at a time",
            ));
    }
    Ok(())
}

/// Checks that sockets in `directory` can be addressed at all.
pub(crate) fn check_socket_path(directory: &Path) -> Result<(), Problem> {
    let length = directory.as_os_str().as_bytes().len() + LONGEST_SOCKET_NAME.len();
    if length <= SOCKET_PATH_BYTES {
        return Ok(());
    }
    Err(Problem::new("the path of the servers' sockets is too long")
        .detail(format!(
            "{}{LONGEST_SOCKET_NAME} has {length} bytes, and the system allows {SOCKET_PATH_BYTES}",
            directory.display()
        ))
        .hint(format!(
            "choose a place whose path is {} bytes shorter",
            length - SOCKET_PATH_BYTES
        )))
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / (1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_enough_of_either_is_refused_with_both_figures() {
        let scratch = tempfile::tempdir().unwrap();
        let later = scratch.path().join("not/yet/there");
        check_room(&later, 1, 1).unwrap();
        let disk = check_room(&later, u64::MAX, 1).unwrap_err();
        assert!(disk.error.contains("disk") && disk.detail.unwrap().contains("are free"));
        let memory = check_room(&later, 1, u64::MAX).unwrap_err();
        assert!(memory.error.contains("memory") && memory.hint.unwrap().contains("--rows"));
    }

    #[test]
    fn the_socket_path_limit_counts_the_longest_port() {
        let fits = format!("/{}", "d".repeat(91));
        check_socket_path(Path::new(&fits)).unwrap();
        let problem = check_socket_path(Path::new(&format!("{fits}d"))).unwrap_err();
        assert!(problem.hint.unwrap().contains("1 bytes shorter"));
    }
}
