//! What a server may leave behind in the system when it does not end well, and how it is cleared.

use crate::kernel;
use crate::process::{Handle, engines_inside, servers_inside};
use deltabench_proc::Process;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File in a cluster's directory that lists its POSIX shared memory, one path a line.
const SEGMENTS_FILE: &str = "shared_memory";
/// How long a server has for an immediate shutdown.
pub(crate) const QUIT_LIMIT: Duration = Duration::from_secs(10);
/// How long the kernel has to end a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Ends every server process inside `directory`: immediate shutdown first, then by force. Returns how
/// many there were and how many would not go.
pub(crate) fn end_servers(directory: &Path, uid: u32) -> (usize, usize) {
    let engines = engines_inside(directory, uid).len();
    let engines_left = end_engines(directory, uid);
    let found = servers_inside(directory, uid);
    let number = found.len() + engines;
    signal_and_wait(&found, libc::SIGQUIT, QUIT_LIMIT);
    // A postmaster may have forked between the listing and its end, so look again.
    signal_and_wait(&servers_inside(directory, uid), libc::SIGKILL, KILL_LIMIT);
    (number, servers_inside(directory, uid).len() + engines_left)
}

/// Ends every engine's process inside `directory` by force, frozen or not: its database goes with the
/// directory. Returns how many would not go.
pub fn end_engines(directory: &Path, uid: u32) -> usize {
    // As the kernel tells where a process works.
    let Ok(directory) = &std::fs::canonicalize(directory) else {
        return 0;
    };
    // What a script starts while it is being killed is found by the second look.
    for _ in 0..2 {
        signal_and_wait(&engines_inside(directory, uid), libc::SIGKILL, KILL_LIMIT);
    }
    engines_inside(directory, uid).len()
}

fn signal_and_wait(handles: &[Handle], signal: i32, limit: Duration) {
    for handle in handles {
        // A refusal shows in the recount.
        let _ = handle.signal(signal);
    }
    let deadline = std::time::Instant::now() + limit;
    for handle in handles {
        // Who is left is counted afterwards.
        let _ = handle.wait(deadline.saturating_duration_since(std::time::Instant::now()));
    }
}

/// Shared memory of one cluster's server, noted while it can still be found out.
pub(crate) struct SharedMemory {
    /// Key and id of the System V segment.
    system_v: Option<(i32, i32)>,
    /// Files below `/dev/shm`.
    posix: Vec<PathBuf>,
}

impl SharedMemory {
    /// What the server of this cluster directory has or had.
    pub(crate) fn of(cluster: &Path) -> Self {
        let lock_file =
            std::fs::read_to_string(cluster.join("data/postmaster.pid")).unwrap_or_default();
        let listed = std::fs::read_to_string(cluster.join(SEGMENTS_FILE)).unwrap_or_default();
        Self {
            system_v: system_v_segment(&lock_file),
            posix: listed.lines().map(PathBuf::from).collect(),
        }
    }

    /// Notes the POSIX segments that a running server has mapped, for a time when it cannot be asked
    /// any more.
    pub(crate) fn note(cluster: &Path, postmaster: u32) {
        let mapped = Process::of(postmaster).mapped_files().unwrap_or_default();
        let mut segments: Vec<&str> = mapped
            .iter()
            .map(|path| path.trim_end_matches(" (deleted)"))
            .filter(|path| is_segment(path))
            .collect();
        segments.dedup();
        // Only a server killed by force would leave them; not worth failing a start.
        let _ = crate::tree::write_file(&cluster.join(SEGMENTS_FILE), &segments.join("\n"), None);
    }

    /// Removes what is left after the server's end. Anything of another user, or in use, stays.
    pub(crate) fn release(&self, uid: u32) {
        if let Some((key, id)) = self.system_v {
            kernel::remove_shared_memory(id, key, uid);
        }
        for path in self
            .posix
            .iter()
            .filter(|path| path.to_str().is_some_and(is_segment))
        {
            // A control segment lists the others, also those made after the note was taken.
            let control = if belongs_to(path, uid) {
                std::fs::read(path).ok()
            } else {
                None
            };
            for handle in control
                .as_deref()
                .map(handles_in_control_segment)
                .unwrap_or_default()
            {
                remove_segment(Path::new(&format!("/dev/shm/PostgreSQL.{handle}")), uid);
            }
            remove_segment(path, uid);
        }
    }
}

fn belongs_to(path: &Path, uid: u32) -> bool {
    std::fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.uid() == uid)
}

fn remove_segment(path: &Path, uid: u32) {
    if belongs_to(path, uid) {
        // What cannot be removed goes with the machine's next start.
        let _ = std::fs::remove_file(path);
    }
}

/// Handles of the segments in use that a control segment lists; none if it is not a control segment.
///
/// Source: `dsm_control_header` in dsm.c of PostgreSQL 9.6 to 18: magic, items in use, items at most, then
/// the items, each starting with handle and reference count. The size of an item differs between versions
/// and follows from the size of the segment.
fn handles_in_control_segment(bytes: &[u8]) -> Vec<u32> {
    const MAGIC: u32 = 0x9a50_3d32;
    const HEADER: usize = 16;
    let word = |place: usize| {
        let four = bytes.get(place..place.checked_add(4)?)?;
        Some(u32::from_ne_bytes(four.try_into().ok()?))
    };
    let read = || {
        let used = usize::try_from(word(4)?).ok()?;
        let most = usize::try_from(word(8)?).ok()?;
        let items = bytes.len().checked_sub(HEADER)?;
        if word(0)? != MAGIC || most == 0 || used > most || items % most != 0 {
            return None;
        }
        let size = items / most;
        let starts = (0..used).map(|number| HEADER + number * size);
        let in_use = starts.filter(|start| word(start + 4).is_some_and(|count| count > 0));
        Some(in_use.filter_map(word).collect())
    };
    read().unwrap_or_default()
}

fn is_segment(path: &str) -> bool {
    path.strip_prefix("/dev/shm/PostgreSQL.")
        .is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
}

/// Source: miscadmin.h of PostgreSQL, `LOCK_FILE_LINE_SHMEM_KEY`: line 7 holds key and id.
fn system_v_segment(lock_file: &str) -> Option<(i32, i32)> {
    let mut fields = lock_file.lines().nth(6)?.split_ascii_whitespace();
    // Printed as an unsigned long: a negative key has its upper half set.
    let key: u64 = fields.next()?.parse().ok()?;
    let key = u32::try_from(key & 0xffff_ffff).ok()?;
    let id = fields.next()?.parse().ok()?;
    Some((i32::from_ne_bytes(key.to_ne_bytes()), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_id_come_from_the_seventh_line() {
        let lock_file = "123\n/data\n1700000000\n5500\n/sockets\n\n  2623488        15\nready   \n";
        assert_eq!(system_v_segment(lock_file), Some((2_623_488, 15)));
        let negative = "1\n2\n3\n4\n5\n6\n18446744073709551615 7\n";
        assert_eq!(system_v_segment(negative), Some((-1, 7)));
        assert_eq!(system_v_segment("1\n2\n"), None);
    }

    #[test]
    fn a_control_segment_lists_what_is_in_use_whatever_the_size_of_its_items() {
        for item in [24, 40] {
            let mut bytes = vec![0_u8; 16 + 5 * item];
            let mut put = |place: usize, value: u32| {
                bytes[place..place + 4].copy_from_slice(&value.to_ne_bytes())
            };
            put(0, 0x9a50_3d32);
            put(4, 3);
            put(8, 5);
            // Handle and reference count; the second is free, the fourth beyond those in use.
            for (number, handle, count) in [(0, 11, 2), (1, 12, 0), (2, 13, 1), (3, 14, 1)] {
                put(16 + number * item, handle);
                put(20 + number * item, count);
            }
            assert_eq!(handles_in_control_segment(&bytes), [11, 13]);
            bytes[0] ^= 1;
            assert!(handles_in_control_segment(&bytes).is_empty());
        }
        assert!(handles_in_control_segment(b"short").is_empty());
    }

    #[test]
    fn only_segments_of_postgres_are_ever_removed() {
        assert!(is_segment("/dev/shm/PostgreSQL.123456"));
        for path in [
            "/dev/shm/PostgreSQL.",
            "/dev/shm/other",
            "/dev/shm/PostgreSQL.1/../x",
            "/etc/passwd",
        ] {
            assert!(!is_segment(path), "{path}");
        }
    }
}
