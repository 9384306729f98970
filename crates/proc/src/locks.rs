//! Which files are locked, without locking them: `/proc/locks`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether some process that is visible from here holds a lock on this file. A file that cannot be looked at
/// is taken for one without a lock.
///
/// Source: proc_locks(5).
pub fn is_locked(path: &Path) -> bool {
    let Ok(file) = std::fs::metadata(path) else {
        return false;
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    has_lock(&locks, file.ino())
}

/// Whether a line of the kernel's list is of this inode. The device is not compared: file systems of several
/// devices name another one there than in a file's status.
fn has_lock(locks: &str, inode: u64) -> bool {
    let ending = format!(":{inode}");
    let held = locks.lines().filter(|line| !line.contains("->"));
    held.flat_map(str::split_whitespace)
        .any(|field| field.matches(':').count() == 2 && field.ends_with(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_while_somebody_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let file = std::fs::File::create(&path).unwrap();
        assert!(!is_locked(&path));
        file.lock().unwrap();
        assert!(is_locked(&path));
        file.unlock().unwrap();
        assert!(!is_locked(&path));
        assert!(!is_locked(&directory.path().join("none")));
    }

    #[test]
    fn who_waits_holds_nothing() {
        let locks = "1: FLOCK  ADVISORY  WRITE 7 00:2a:12 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 8 00:2a:13 0 EOF\n";
        assert!(has_lock(locks, 12));
        assert!(!has_lock(locks, 13) && !has_lock(locks, 2));
    }
}
