//! Time in which some task of the host waited for a core.

use deltabench_proc::KernelFile;
use deltabench_proc::pressure::total_ns;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_pressure_has_no_clock() {
        assert!(PressureClock::open_at(Path::new("/proc/no-such-file")).is_none());
    }
}
