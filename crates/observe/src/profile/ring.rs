//! Memory that the kernel writes samples to.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the kernel's and our place in the ring stand in its first page.
///
/// Source: perf_event_open(2), `perf_event_mmap_page`: `data_head` and `data_tail`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Least bytes of samples: a slice of 30 ms.
const BYTES_MIN: usize = 1 << 18;

/// The ring of an event: a page that says where to read, and a power of two of bytes behind it.
#[derive(Debug)]
pub(super) struct Ring {
    start: NonNull<u8>,
    page: usize,
    /// Bytes behind the first page.
    size: usize,
}

impl Ring {
    /// Maps a ring of so many bytes, or of fewer where users may not have as much.
    ///
    /// `bytes` is a power of two.
    pub(super) fn map(event: &File, bytes: usize) -> std::io::Result<Self> {
        let page = deltabench_proc::page_bytes();
        let page = usize::try_from(page).map_err(std::io::Error::other)?;
        let mut size = bytes.max(page);
        loop {
            match map(event, page + size) {
                Ok(start) => return Ok(Self { start, page, size }),
                // Without rights memory of rings is limited (perf_event_mlock_kb).
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && size > BYTES_MIN => {
                    size /= 2;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves what was written since the last time into `buffer`, whose contents are replaced.
    pub(super) fn take(&mut self, buffer: &mut Vec<u8>) {
        buffer.clear();
        // Everything before the head was written before the head was.
        let head = self.word(HEAD).load(Ordering::Acquire);
        let tail = self.word(TAIL).load(Ordering::Relaxed);
        let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0);
        let begin = usize::try_from(tail).unwrap_or(0) & (self.size - 1);
        let first = length.min(self.size - begin);
        for (from, length) in [(begin, first), (0, length - first)] {
            // SAFETY: `from + length` is at most `size`, all of which is mapped behind the first page, and
            // the kernel does not write there before the tail is moved.
            let part = unsafe {
                std::slice::from_raw_parts(self.start.as_ptr().add(self.page + from), length)
            };
            buffer.extend_from_slice(part);
        }
        self.word(TAIL).store(head, Ordering::Release);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` lies in the first page, is aligned for a word, and both sides use it as one; the page
        // is mapped as long as `self` lives.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.size) };
    }
}

fn map(event: &File, bytes: usize) -> std::io::Result<NonNull<u8>> {
    // SAFETY: a new mapping of an open event; no memory of ours is touched.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            event.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::OutOfMemory))
}
