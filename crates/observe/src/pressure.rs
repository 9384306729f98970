//! Time in which some task of the host waited for a core.

use crate::reader::{KernelFile, numbers};
use std::path::Path;

/// Reader of `/proc/pressure/cpu` that keeps it open.
///
/// Source: Documentation/accounting/psi.rst: `total` of the line `some`, microseconds. Cost: 3 µs.
#[derive(Debug)]
pub struct PressureClock {
    file: KernelFile<128>,
    last_ns: u64,
}

impl PressureClock {
    /// Opens it; `None` where the kernel keeps no pressure, or is told not to (`psi=0`).
    #[must_use]
    pub fn open() -> Option<Self> {
        Self::open_at(Path::new("/proc/pressure/cpu"))
    }

    /// Waiting time so far, nanoseconds. Only differences mean something. A failed read repeats the last
    /// value.
    pub fn read(&mut self) -> u64 {
        self.last_ns = self.file.read(total_ns).unwrap_or(self.last_ns);
        self.last_ns
    }

    pub(crate) fn open_at(path: &Path) -> Option<Self> {
        let file = KernelFile::open(path).ok()?;
        // With pressure switched off the file is there and cannot be read.
        let last_ns = file.read(total_ns).ok()?;
        Some(Self { file, last_ns })
    }
}

fn total_ns(bytes: &[u8]) -> Option<u64> {
    let line = bytes.split(|&byte| byte == b'\n').next()?;
    let rest = line.strip_prefix(b"some ")?;
    let word = rest
        .split(|&byte| byte == b' ')
        .find_map(|word| word.strip_prefix(b"total="))?;
    numbers(word).next()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_some_is_read_as_nanoseconds() {
        let text = b"some avg10=0.03 avg60=0.08 avg300=0.28 total=2610313317\n\
                     full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(total_ns(text), Some(2_610_313_317_000));
        assert_eq!(total_ns(b"full avg10=0.00 total=5\n"), None);
        assert_eq!(total_ns(b""), None);
    }

    #[test]
    fn a_host_without_pressure_has_no_clock() {
        assert!(PressureClock::open_at(Path::new("/proc/no-such-file")).is_none());
    }
}
