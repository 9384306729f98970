//! The block device that holds a directory.

use deltabench_proc::KernelFile;
use deltabench_proc::block::{DeviceReading, device_dir};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reader of the counts of one block device, a whole disk or a partition, that keeps its file open.
///
/// A request counts when the device has answered it. What the kernel writes back later counts then, whoever
/// had written it.
///
/// Source: Documentation/block/stat.rst; `st_dev` of the directory names the device.
#[derive(Debug)]
pub struct DeviceClock {
    name: String,
    file: KernelFile<256>,
    last: DeviceReading,
}

impl DeviceClock {
    /// The device of the file system that a directory is on, or what exists above it. `None` where that is no
    /// single block device: tmpfs, overlay, network, btrfs.
    pub fn of(data_dir: &Path) -> Option<Self> {
        let facts = data_dir
            .ancestors()
            .find_map(|dir| std::fs::metadata(dir).ok())?;
        let numbers = (libc::major(facts.dev()), libc::minor(facts.dev()));
        Self::open_at(&device_dir(Path::new("/"), numbers))
    }

    /// Its name, for example `nvme0n1p2`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts so far. A failed read repeats the last values.
    pub(crate) fn read(&mut self) -> DeviceReading {
        self.last = self.file.read(DeviceReading::parse).unwrap_or(self.last);
        self.last
    }

    fn open_at(dir: &Path) -> Option<Self> {
        let name = std::fs::canonicalize(dir).ok()?;
        let file = KernelFile::open(&dir.join("stat")).ok()?;
        let last = file.read(DeviceReading::parse).ok()?;
        Some(Self {
            name: name.file_name()?.to_str()?.to_owned(),
            file,
            last,
        })
    }
}

/// A server's main process works in its data directory.
pub(crate) fn data_of(postmaster: u32) -> PathBuf {
    deltabench_proc::Process::of(postmaster).directory()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::not_tested;
    use std::path::PathBuf;

    const LINE: &[u8] =
        b" 1716041    89644 59692386  3614354  3559938  2840651 903260896  4132685 \
         0   714556  8112184  2843274       70 597486632   303849 1293363 61294\n";

    #[test]
    fn a_partition_is_found_by_its_numbers_and_named() {
        let sys = tempdir("device");
        let disk = sys.join("sys/devices/pci0/block/sda/sda2");
        std::fs::create_dir_all(&disk).unwrap();
        std::fs::create_dir_all(sys.join("sys/dev/block")).unwrap();
        std::fs::write(disk.join("stat"), LINE).unwrap();
        std::os::unix::fs::symlink(&disk, sys.join("sys/dev/block/8:2")).unwrap();
        let clock = DeviceClock::open_at(&device_dir(&sys, (8, 2))).unwrap();
        assert_eq!(clock.name(), "sda2");
        assert_eq!(clock.last, DeviceReading::parse(LINE).unwrap());
        assert!(DeviceClock::open_at(&device_dir(&sys, (0, 21))).is_none());
        std::fs::remove_dir_all(&sys).unwrap();
    }

    #[test]
    fn what_has_no_device_has_no_clock() {
        assert!(DeviceClock::of(Path::new("/proc")).is_none());
        if Path::new("/dev/shm").is_dir() {
            assert!(DeviceClock::of(Path::new("/dev/shm/not-there")).is_none());
        }
    }

    #[test]
    fn a_file_that_is_synced_reaches_the_device_of_its_directory() {
        let dir = tempdir("device-write");
        let Some(mut clock) = DeviceClock::of(&dir) else {
            not_tested(
                "the device's clock",
                format!("{} is on no block device", dir.display()),
            );
            std::fs::remove_dir_all(&dir).unwrap();
            return;
        };
        let before = clock.read();
        let file = std::fs::File::create(dir.join("data")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7_u8; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let spent = clock.read().since(&before).costs;
        assert!(
            spent.write_bytes >= 1 << 20 && spent.writes >= 1,
            "{spent:?}"
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// On a disk: temporary files may be in memory, as in CI.
    fn tempdir(name: &str) -> PathBuf {
        let name = format!("deltabench-observe-{name}-{}", std::process::id());
        let dir = Path::new("/var/tmp").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }
}
