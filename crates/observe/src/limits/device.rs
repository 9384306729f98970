//! The block device that holds a directory.

use deltabench_model::problem::Problem;
use deltabench_proc::block::whole_disk;
use deltabench_proc::mounts::{mount_of, mounts};
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
    let mount = mount_of(&mounts(root), &existing);
    let number = match (metadata.dev(), &mount) {
        // No device of its own: the file system gives out numbers, as btrfs does for its subvolumes.
        (dev, Some(mount)) if libc::major(dev) == 0 => fs::metadata(&mount.source)
            .ok()
            .filter(|source| mount.kind == "btrfs" && source.file_type().is_block_device())
            .map(|source| source.rdev()),
        (dev, _) => Some(dev),
    };
    number
        .and_then(|dev| whole_disk(root, (libc::major(dev), libc::minor(dev))))
        .map(|(number, name)| BlockDevice { number, name })
        .ok_or_else(|| {
            let kind = mount.map_or("an unknown file system".to_owned(), |mount| mount.kind);
            Problem::new("the servers' data is not on a block device that allows limits")
                .detail(format!("{} is on {kind}", existing.display()))
                .hint("name a directory on a local disk: --cluster-dir DIR, or leave out --storage")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_is_refused_with_its_file_system() {
        let problem = of_directory(Path::new("/"), Path::new("/proc/self")).unwrap_err();
        assert!(problem.detail.unwrap().ends_with("is on proc"));
        assert!(problem.hint.unwrap().contains("--cluster-dir"));
    }
}
