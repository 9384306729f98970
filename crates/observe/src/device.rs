//! The block device that holds a directory.

use crate::reader::{KernelFile, numbers};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a sector, whatever the device's own are. Source: Documentation/block/stat.rst.
const SECTOR: u64 = 512;

/// What reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceCosts {
    /// Read requests that it answered.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests that it answered.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// Counts of a device up to a moment. Only differences mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DeviceReading {
    pub(crate) costs: DeviceCosts,
    /// Time of all reads, milliseconds summed over requests.
    pub(crate) read_ms: u64,
    /// Time of all writes, likewise.
    pub(crate) write_ms: u64,
    /// Time in which it had a request, milliseconds.
    pub(crate) busy_ms: u64,
    /// Time of all requests, waiting ones included, milliseconds summed over requests.
    pub(crate) queue_ms: u64,
}

impl DeviceReading {
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let costs = |now: &DeviceCosts, then: &DeviceCosts| DeviceCosts {
            reads: now.reads.saturating_sub(then.reads),
            read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
            writes: now.writes.saturating_sub(then.writes),
            write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
        };
        Self {
            costs: costs(&self.costs, &earlier.costs),
            read_ms: self.read_ms.saturating_sub(earlier.read_ms),
            write_ms: self.write_ms.saturating_sub(earlier.write_ms),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            queue_ms: self.queue_ms.saturating_sub(earlier.queue_ms),
        }
    }
}

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
    #[must_use]
    pub fn of(data_dir: &Path) -> Option<Self> {
        let facts = data_dir
            .ancestors()
            .find_map(|dir| std::fs::metadata(dir).ok())?;
        let numbers = (libc::major(facts.dev()), libc::minor(facts.dev()));
        Self::open_at(&device_dir(Path::new("/sys"), numbers))
    }

    /// Its name, for example `nvme0n1p2`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts so far. A failed read repeats the last values.
    pub(crate) fn read(&mut self) -> DeviceReading {
        self.last = self.file.read(parse).unwrap_or(self.last);
        self.last
    }

    fn open_at(dir: &Path) -> Option<Self> {
        let name = std::fs::canonicalize(dir).ok()?;
        let file = KernelFile::open(&dir.join("stat")).ok()?;
        let last = file.read(parse).ok()?;
        Some(Self {
            name: name.file_name()?.to_str()?.to_owned(),
            file,
            last,
        })
    }
}

fn device_dir(sys: &Path, (major, minor): (u32, u32)) -> PathBuf {
    sys.join(format!("dev/block/{major}:{minor}"))
}

/// The fields that kernels of all ages have: reads, merged, sectors, ms, the same four of writes, requests in
/// flight, ms with a request, ms of requests.
fn parse(bytes: &[u8]) -> Option<DeviceReading> {
    let mut fields = numbers(bytes);
    let mut next = || fields.next();
    let (reads, _, read_sectors, read_ms) = (next()?, next()?, next()?, next()?);
    let (writes, _, write_sectors, write_ms) = (next()?, next()?, next()?, next()?);
    let (_in_flight, busy_ms, queue_ms) = (next()?, next()?, next()?);
    Some(DeviceReading {
        costs: DeviceCosts {
            reads,
            read_bytes: read_sectors.checked_mul(SECTOR)?,
            writes,
            write_bytes: write_sectors.checked_mul(SECTOR)?,
        },
        read_ms,
        write_ms,
        busy_ms,
        queue_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] =
        b" 1716041    89644 59692386  3614354  3559938  2840651 903260896  4132685 \
         0   714556  8112184  2843274       70 597486632   303849 1293363 61294\n";

    #[test]
    fn a_line_of_stat_is_read_in_the_kernels_order_and_sectors_are_512_bytes() {
        let reading = parse(LINE).unwrap();
        let expected = DeviceCosts {
            reads: 1_716_041,
            read_bytes: 59_692_386 * 512,
            writes: 3_559_938,
            write_bytes: 903_260_896 * 512,
        };
        assert_eq!(reading.costs, expected);
        assert_eq!((reading.read_ms, reading.write_ms), (3_614_354, 4_132_685));
        assert_eq!((reading.busy_ms, reading.queue_ms), (714_556, 8_112_184));
        assert_eq!(
            parse(b"1 2 3 4 5 6 7 8 9 10 11"),
            parse(b"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15")
        );
        assert_eq!(parse(b"1 2 3 4"), None, "an old partition has four");
    }

    #[test]
    fn a_difference_is_never_negative() {
        let reading = parse(LINE).unwrap();
        assert_eq!(
            reading.since(&DeviceReading::default()),
            reading,
            "from zero"
        );
        assert_eq!(
            DeviceReading::default().since(&reading),
            DeviceReading::default()
        );
    }

    #[test]
    fn a_partition_is_found_by_its_numbers_and_named() {
        let sys = tempdir("device");
        let disk = sys.join("devices/pci0/block/sda/sda2");
        std::fs::create_dir_all(&disk).unwrap();
        std::fs::create_dir_all(sys.join("dev/block")).unwrap();
        std::fs::write(disk.join("stat"), LINE).unwrap();
        std::os::unix::fs::symlink(&disk, sys.join("dev/block/8:2")).unwrap();
        let clock = DeviceClock::open_at(&device_dir(&sys, (8, 2))).unwrap();
        assert_eq!(clock.name(), "sda2");
        assert_eq!(clock.last, parse(LINE).unwrap());
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
            eprintln!("SKIPPED: {} is on no block device", dir.display());
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

    fn tempdir(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("deltabench-observe-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }
}
