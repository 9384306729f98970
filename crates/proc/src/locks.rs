//! Which files are locked, without locking them: `/proc/locks`.

use std::io::Read;
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
    // The kernel hands the list out in pieces. If a lock is given back between two of them, the next piece
    // lacks an entry: a second look finds it.
    let seen = || has_lock(&list().unwrap_or_default(), file.ino());
    seen() || seen()
}

/// The kernel's list, in pieces as large as it makes them.
fn list() -> std::io::Result<String> {
    let mut file = std::fs::File::open("/proc/locks")?;
    let (mut list, mut piece) = (Vec::new(), [0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => list.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
    Ok(String::from_utf8_lossy(&list).into_owned())
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
