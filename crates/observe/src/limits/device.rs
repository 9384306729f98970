//! The block device that holds a directory.

use deltabench_model::problem::Problem;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A device that can be limited: a whole disk, not a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockDevice {
    /// `major:minor`.
    pub(super) number: String,
    /// As in `/sys/block`.
    pub(super) name: String,
}

/// The device of a directory or of what exists above it.
///
/// Errors: the file system is not on one block device.
pub(super) fn of_directory(root: &Path, directory: &Path) -> Result<BlockDevice, Problem> {
    let existing = directory
        .ancestors()
        .find_map(|dir| fs::canonicalize(dir).ok())
        .unwrap_or_else(|| "/".into());
    let metadata = fs::metadata(&existing).map_err(|error| {
        Problem::new(format!("cannot look at {}", existing.display())).detail(error.to_string())
    })?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mount = mount_of(&mounts, &existing);
    let number = match (metadata.dev(), &mount) {
        // No device of its own: the file system gives out numbers, as btrfs does for its subvolumes.
        (dev, Some(mount)) if libc::major(dev) == 0 => fs::metadata(&mount.source)
            .ok()
            .filter(|source| mount.kind == "btrfs" && source.file_type().is_block_device())
            .map(|source| source.rdev()),
        (dev, _) => Some(dev),
    };
    number
        .and_then(|dev| whole(root, libc::major(dev), libc::minor(dev)))
        .ok_or_else(|| {
            let kind = mount.map_or("an unknown file system".to_owned(), |mount| mount.kind);
            Problem::new("the servers' data is not on a block device that can be limited")
                .detail(format!("{} is on {kind}", existing.display()))
                .hint("name a directory on a local disk: --cluster-dir DIR, or leave out --storage")
        })
}

struct Mount {
    kind: String,
    source: String,
}

/// The mount with the longest path that fits, the last of these if several cover each other.
///
/// Source: proc_pid_mountinfo(5).
fn mount_of(mounts: &str, directory: &Path) -> Option<Mount> {
    let fitting = |line: &str| {
        let (place, rest) = line.split_once(" - ")?;
        let point = place.split(' ').nth(4)?.replace("\\040", " ");
        let mut words = rest.split(' ');
        let mount = Mount {
            kind: words.next()?.to_owned(),
            source: words.next()?.replace("\\040", " "),
        };
        directory
            .starts_with(&point)
            .then_some((point.len(), mount))
    };
    let fits = mounts.lines().filter_map(fitting);
    fits.max_by_key(|(length, _)| *length)
        .map(|(_, mount)| mount)
}

/// The disk that a device is, or is a partition of; the kernel limits whole disks only.
///
/// Source: `blkg_conf_open_bdev` in block/blk-cgroup.c refuses partitions.
fn whole(root: &Path, major: u32, minor: u32) -> Option<BlockDevice> {
    let given = fs::canonicalize(root.join(format!("sys/dev/block/{major}:{minor}"))).ok()?;
    let disk = if given.join("partition").exists() {
        given.parent()?.to_owned()
    } else {
        given
    };
    Some(BlockDevice {
        number: fs::read_to_string(disk.join("dev")).ok()?.trim().to_owned(),
        name: disk.file_name()?.to_string_lossy().into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_partition_is_limited_as_its_disk() {
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
        let expected = BlockDevice {
            number: "259:0".to_owned(),
            name: "nvme0n1".to_owned(),
        };
        assert_eq!(whole(root.path(), 259, 2), Some(expected.clone()));
        assert_eq!(whole(root.path(), 259, 0), Some(expected));
        assert_eq!(whole(root.path(), 0, 31), None);
    }

    #[test]
    fn what_is_in_memory_is_refused_with_its_file_system() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(mount_of(&mounts, Path::new("/proc/self")).unwrap().kind == "proc");
        let problem = of_directory(Path::new("/"), Path::new("/proc/self")).unwrap_err();
        assert!(problem.detail.unwrap().ends_with("is on proc"));
        assert!(problem.hint.unwrap().contains("--cluster-dir"));
    }
}
