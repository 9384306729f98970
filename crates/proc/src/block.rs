//! Block devices.

use crate::file::{numbers, word_in};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a sector, whatever the device's own are. Source: Documentation/block/stat.rst.
const SECTOR: u64 = 512;

/// What reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceCosts {
    /// Read requests that it answered.
    pub reads: u64,
    pub read_bytes: u64,
    /// Write requests that it answered.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time of all reads with their wait in the queue, nanoseconds summed over requests.
    #[serde(default)]
    pub read_ns: u64,
    /// Time of all writes, likewise.
    #[serde(default)]
    pub write_ns: u64,
}

impl DeviceCosts {
    /// Those of two times together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            writes: self.writes + other.writes,
            write_bytes: self.write_bytes + other.write_bytes,
            read_ns: self.read_ns + other.read_ns,
            write_ns: self.write_ns + other.write_ns,
        }
    }
}

/// Nanoseconds of a millisecond, in which devices count.
const MS: u64 = 1_000_000;

/// Counts of a device up to a moment. Only differences mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceReading {
    /// Requests, bytes and their time.
    pub costs: DeviceCosts,
    /// Time in which it had a request, milliseconds.
    pub busy_ms: u64,
    /// Time of all requests, waiting ones included, milliseconds summed over requests.
    pub queue_ms: u64,
}

impl DeviceReading {
    /// Reads the `stat` of a device: the fields that kernels of all ages have are reads, merged, sectors, ms,
    /// the same four of writes, requests in flight, ms with a request, ms of requests.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = numbers(bytes);
        let mut next = || fields.next();
        let (reads, _, read_sectors, read_ms) = (next()?, next()?, next()?, next()?);
        let (writes, _, write_sectors, write_ms) = (next()?, next()?, next()?, next()?);
        let (_in_flight, busy_ms, queue_ms) = (next()?, next()?, next()?);
        Some(Self {
            costs: DeviceCosts {
                reads,
                read_bytes: read_sectors.checked_mul(SECTOR)?,
                writes,
                write_bytes: write_sectors.checked_mul(SECTOR)?,
                read_ns: read_ms.saturating_mul(MS),
                write_ns: write_ms.saturating_mul(MS),
            },
            busy_ms,
            queue_ms,
        })
    }

    /// What passed since an earlier reading; a count that fell is nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        let costs = |now: &DeviceCosts, then: &DeviceCosts| DeviceCosts {
            reads: now.reads.saturating_sub(then.reads),
            read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
            writes: now.writes.saturating_sub(then.writes),
            write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
            read_ns: now.read_ns.saturating_sub(then.read_ns),
            write_ns: now.write_ns.saturating_sub(then.write_ns),
        };
        Self {
            costs: costs(&self.costs, &earlier.costs),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            queue_ms: self.queue_ms.saturating_sub(earlier.queue_ms),
        }
    }
}

/// The directory of a device, a whole disk or a partition, below `/sys`.
pub fn device_dir(root: &Path, (major, minor): (u32, u32)) -> PathBuf {
    root.join(format!("sys/dev/block/{major}:{minor}"))
}

/// The disk that a device is, or is a partition of: its `major:minor` and its name.
pub fn whole_disk(root: &Path, numbers: (u32, u32)) -> Option<(String, String)> {
    let given = fs::canonicalize(device_dir(root, numbers)).ok()?;
    let disk = if given.join("partition").exists() {
        given.parent()?.to_owned()
    } else {
        given
    };
    let name = disk.file_name()?.to_string_lossy().into_owned();
    Some((word_in(&disk.join("dev"))?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const LINE: &[u8] =
        b" 1716041    89644 59692386  3614354  3559938  2840651 903260896  4132685 \
         0   714556  8112184  2843274       70 597486632   303849 1293363 61294\n";

    #[test]
    fn a_line_of_stat_is_read_in_the_kernels_order_and_sectors_are_512_bytes() {
        let reading = DeviceReading::parse(LINE).unwrap();
        let expected = DeviceCosts {
            reads: 1_716_041,
            read_bytes: 59_692_386 * 512,
            writes: 3_559_938,
            write_bytes: 903_260_896 * 512,
            read_ns: 3_614_354_000_000,
            write_ns: 4_132_685_000_000,
        };
        assert_eq!(reading.costs, expected);
        assert_eq!((reading.busy_ms, reading.queue_ms), (714_556, 8_112_184));
        assert_eq!(
            DeviceReading::parse(b"1 2 3 4 5 6 7 8 9 10 11"),
            DeviceReading::parse(b"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15")
        );
        assert_eq!(
            DeviceReading::parse(b"1 2 3 4"),
            None,
            "an old partition has four"
        );
    }

    #[test]
    fn a_difference_is_never_negative() {
        let reading = DeviceReading::parse(LINE).unwrap();
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
    fn a_partition_belongs_to_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/devices/pci/block/nvme0n1");
        let part = disk.join("nvme0n1p2");
        fs::create_dir_all(&part).unwrap();
        fs::write(disk.join("dev"), "259:0\n").unwrap();
        fs::write(part.join("dev"), "259:2\n").unwrap();
        fs::write(part.join("partition"), "2\n").unwrap();
        let by_number = root.path().join("sys/dev/block");
        fs::create_dir_all(&by_number).unwrap();
        symlink(&part, by_number.join("259:2")).unwrap();
        symlink(&disk, by_number.join("259:0")).unwrap();
        let expected = Some(("259:0".to_owned(), "nvme0n1".to_owned()));
        assert_eq!(whole_disk(root.path(), (259, 2)), expected);
        assert_eq!(whole_disk(root.path(), (259, 0)), expected);
        assert_eq!(whole_disk(root.path(), (0, 31)), None);
    }
}
