//! What the page cache holds of a data directory, and how it is dropped.
//!
//! Only files of the directory given are touched; the rest of the machine keeps its cache. Inodes and
//! directory entries stay, as they would on a server that has been up for a while.

use crate::error::ObserveError;
use deltabench_model::units::{count, index};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Passes over files that keep pages: the first leaves what is being written or read at that moment.
const PASSES: usize = 3;

/// How much of a directory's files is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CachedFiles {
    pub files: u64,
    pub bytes: u64,
    /// Bytes of them in the page cache.
    pub resident_bytes: u64,
}

/// What dropping a directory's pages came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DroppedPages {
    pub files: u64,
    pub bytes: u64,
    /// Bytes in the page cache before.
    pub resident_before: u64,
    /// Bytes in the page cache after.
    pub resident_after: u64,
}

/// What the page cache holds of the files below a directory; nothing is brought in by looking.
///
/// Errors: a file that cannot be opened or mapped; files that vanish meanwhile count nothing.
pub fn cached_files(directory: &Path) -> Result<CachedFiles, ObserveError> {
    let mut found = CachedFiles::default();
    for path in files_below(directory)? {
        let Some(file) = open(&path)? else { continue };
        let (bytes, resident) =
            resident_of(&file).map_err(|source| ObserveError::file("look into", &path, source))?;
        found.files += 1;
        found.bytes += bytes;
        found.resident_bytes += resident;
    }
    Ok(found)
}

/// Drops the pages of all files below a directory, those not yet on disk after writing them.
///
/// To be called while no server works there: what is in use stays.
///
/// Errors: a file that cannot be opened, written back or mapped.
pub fn drop_pages(directory: &Path) -> Result<DroppedPages, ObserveError> {
    let mut dropped = DroppedPages::default();
    for path in files_below(directory)? {
        let Some(file) = open(&path)? else { continue };
        let told = |source| ObserveError::file("drop the pages of", &path, source);
        let (bytes, before) = resident_of(&file).map_err(told)?;
        let mut after = before;
        for pass in 0..PASSES {
            if after == 0 {
                break;
            }
            // Dirty pages stay, and a sync costs a flush of the device even where nothing is dirty.
            if pass > 0 {
                file.sync_data().map_err(told)?;
            }
            advise_unneeded(&file).map_err(told)?;
            after = resident_of(&file).map_err(told)?.1;
        }
        dropped.files += 1;
        dropped.bytes += bytes;
        dropped.resident_before += before;
        dropped.resident_after += after;
    }
    Ok(dropped)
}

/// Regular files below a directory; links are not followed.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>, ObserveError> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        let entries = match fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && next != directory => continue,
            Err(error) => return Err(ObserveError::file("read", &next, error)),
        };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    Ok(files)
}

fn open(path: &Path) -> Result<Option<File>, ObserveError> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path);
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ObserveError::file("open", path, error)),
    }
}

fn advise_unneeded(file: &File) -> io::Result<()> {
    // SAFETY: an open descriptor and plain numbers; a length of 0 means to the end.
    let result = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    match result {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// A file's size and how much of it is in the page cache, in bytes.
///
/// Source: mincore(2): a page of a mapping that has not been touched is looked up in the page cache. For
/// files of others it says what one likes to hear (since Linux 5.2); ours are ours, or we are root.
fn resident_of(file: &File) -> io::Result<(u64, u64)> {
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok((0, 0));
    }
    let length = index(bytes);
    let page = page_size();
    let mut pages = vec![0_u8; length.div_ceil(page)];
    // SAFETY: a new read-only mapping of an open file, at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has `length` bytes, and `pages` one byte for each of its pages.
    let looked = unsafe { libc::mincore(address, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping made above, which nothing refers to any more.
    unsafe { libc::munmap(address, length) };
    if looked != 0 {
        return Err(error);
    }
    let inside = count(pages.iter().filter(|flags| **flags & 1 == 1).count());
    Ok((bytes, (inside * count(page)).min(bytes)))
}

fn page_size() -> usize {
    // SAFETY: takes and returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096).max(512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn pages_written_a_moment_ago_are_dropped_and_come_back_when_read() {
        // Not in /tmp, which may be in memory: there pages have nowhere to go.
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let inner = scratch.path().join("base/1");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("16384"), vec![7_u8; 300_000]).unwrap();
        fs::write(inner.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("link")).unwrap();
        let before = cached_files(scratch.path()).unwrap();
        assert_eq!(
            (before.files, before.bytes, before.resident_bytes),
            (2, 300_000, 300_000)
        );
        let dropped = drop_pages(scratch.path()).unwrap();
        assert_eq!(
            (dropped.resident_before, dropped.resident_after),
            (300_000, 0)
        );
        assert_eq!(cached_files(scratch.path()).unwrap().resident_bytes, 0);
        let mut text = Vec::new();
        let mut file = File::open(inner.join("16384")).unwrap();
        file.read_to_end(&mut text).unwrap();
        assert!(text.iter().all(|byte| *byte == 7));
        assert!(cached_files(scratch.path()).unwrap().resident_bytes > 0);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = drop_pages(Path::new("/no/such/data")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /no/such/data");
    }
}
