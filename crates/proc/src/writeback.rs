//! When the kernel writes pages of files to disk by itself.

use crate::memory::available_below;
use std::path::Path;
use std::time::Duration;

/// When the kernel begins to write.
///
/// Source: <https://docs.kernel.org/admin-guide/sysctl/vm.html>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writeback {
    /// When so many bytes of all files wait to be written.
    pub background_bytes: u64,
    /// When a page has waited for so long.
    pub expires: Duration,
}

impl Writeback {
    /// Of this machine, as it is now; absent where it cannot be read.
    pub fn read() -> Option<Self> {
        Self::read_below(Path::new("/"))
    }

    fn read_below(root: &Path) -> Option<Self> {
        let knob = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(root.join("proc/sys/vm").join(name));
            text.ok()?.trim().parse().ok()
        };
        let background_bytes = match knob("dirty_background_bytes")? {
            0 => available_below(root)? / 100 * knob("dirty_background_ratio")?,
            bytes => bytes,
        };
        Some(Self {
            background_bytes,
            expires: Duration::from_millis(10 * knob("dirty_expire_centisecs")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str, ratio: &str) -> Option<Writeback> {
        let root = tempfile::tempdir().unwrap();
        let vm = root.path().join("proc/sys/vm");
        std::fs::create_dir_all(&vm).unwrap();
        let meminfo = "MemTotal: 4000000 kB\nMemAvailable: 1000000 kB\n";
        std::fs::write(root.path().join("proc/meminfo"), meminfo).unwrap();
        std::fs::write(vm.join("dirty_background_bytes"), bytes).unwrap();
        std::fs::write(vm.join("dirty_background_ratio"), ratio).unwrap();
        std::fs::write(vm.join("dirty_expire_centisecs"), "3000\n").unwrap();
        Writeback::read_below(root.path())
    }

    #[test]
    fn the_limit_is_a_number_of_bytes_or_a_share_of_the_memory_to_be_had() {
        let expires = Duration::from_secs(30);
        let of = |background_bytes| {
            Some(Writeback {
                background_bytes,
                expires,
            })
        };
        assert_eq!(read("0\n", "10\n"), of(1_024_000_000 / 100 * 10));
        assert_eq!(read("65536\n", "0\n"), of(65_536));
        assert_eq!(read("0\n", "none\n"), None);
    }

    #[test]
    fn this_machine_has_both_limits() {
        let here = Writeback::read().unwrap();
        assert!(here.background_bytes > 0, "{here:?}");
    }
}
