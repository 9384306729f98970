//! The disk that data directories will be on.

use deltabench_model::units::{count, index};
use deltabench_proc::mounts::{mount_of, mounts};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is written for each fsync, bytes: a page of WAL.
const BLOCK: usize = 8192;

/// Facts about a disk that bear on measurements. What cannot be read is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskFacts {
    /// The directory looked at: the one asked for, or what exists above it.
    pub directory: PathBuf,
    /// Type of its file system, for example `ext4`.
    pub file_system: Option<String>,
    /// Space for programs that are not root, bytes.
    pub free_bytes: Option<u64>,
    /// How long a commit waits for it.
    pub fsync: Option<Fsync>,
}

/// Overwriting a page in place and waiting until it is on disk: the last step of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fsync {
    /// How often it was tried.
    pub count: u64,
    pub median_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
}

impl DiskFacts {
    /// Looks at the disk of a directory, which need not exist yet, and writes to it for as long as
    /// `fsync_for`: one page again and again, in a file that is removed afterwards.
    pub fn probe(directory: &Path, fsync_for: Duration) -> Self {
        let Some(directory) = directory
            .ancestors()
            .find_map(|dir| std::fs::canonicalize(dir).ok().filter(|dir| dir.is_dir()))
        else {
            return Self::default();
        };
        let mount = mount_of(&mounts(Path::new("/")), &directory);
        Self {
            file_system: mount.map(|mount| mount.kind),
            free_bytes: free_bytes(&directory),
            fsync: fsync(&directory, fsync_for),
            directory,
        }
    }
}

fn free_bytes(directory: &Path) -> Option<u64> {
    let path = CString::new(directory.as_os_str().as_bytes()).ok()?;
    // SAFETY: a statvfs is plain numbers; the kernel fills it in through a pointer that lives through the
    // call, as does the path.
    let facts = unsafe {
        let mut facts: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut facts) != 0 {
            return None;
        }
        facts
    };
    facts.f_bavail.checked_mul(facts.f_frsize)
}

fn fsync(directory: &Path, limit: Duration) -> Option<Fsync> {
    let path = directory.join(format!(".deltabench-fsync-{}", std::process::id()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .ok()?;
    let taken = overwrite(&file, limit);
    // Ours; if it cannot be removed, there is nothing better to do than to leave it.
    let _ = std::fs::remove_file(&path);
    let mut taken = taken.ok()?;
    taken.sort_unstable();
    let at = |share: u64| {
        taken
            .get(index((count(taken.len()).saturating_sub(1)) * share / 100))
            .copied()
    };
    Some(Fsync {
        count: count(taken.len()),
        median_ns: at(50)?,
        p99_ns: at(99)?,
    })
}

/// Nanoseconds of each overwrite.
fn overwrite(file: &File, limit: Duration) -> std::io::Result<Vec<u64>> {
    let page = [0x5A_u8; BLOCK];
    // Space is given out here, so that what follows changes data only, as WAL files that are used again do.
    file.write_all_at(&page, 0)?;
    file.sync_all()?;
    let started = Instant::now();
    let mut taken = Vec::new();
    while started.elapsed() < limit {
        let before = Instant::now();
        file.write_all_at(&page, 0)?;
        file.sync_data()?;
        taken.push(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_is_probed_above_and_nothing_stays() {
        let scratch =
            std::env::temp_dir().join(format!("deltabench-observe-disk-{}", std::process::id()));
        std::fs::create_dir(&scratch).unwrap();
        let facts = DiskFacts::probe(&scratch.join("not/yet"), Duration::from_millis(50));
        assert_eq!(facts.directory, std::fs::canonicalize(&scratch).unwrap());
        assert!(facts.file_system.is_some() && facts.free_bytes.unwrap() > 0);
        let fsync = facts.fsync.unwrap();
        assert!(fsync.count >= 1 && fsync.median_ns <= fsync.p99_ns && fsync.median_ns > 0);
        std::fs::remove_dir(&scratch).unwrap();
    }
}
