//! Which file system a directory is on.

use std::path::Path;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its type, for example `ext4`.
    pub kind: String,
    /// What is mounted, for example `/dev/sda1`.
    pub source: String,
    /// Options of the file system, for example `rw,data=ordered`.
    pub options: String,
}

/// The mounts that this process sees, for [`mount_of`]; empty where the kernel does not tell.
pub fn mounts(root: &Path) -> String {
    std::fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default()
}

/// The mount with the longest path that fits a directory, the last of these if several cover each other.
///
/// Source: proc_pid_mountinfo(5): field 5 is the mount point; type and source follow ` - `.
pub fn mount_of(mounts: &str, directory: &Path) -> Option<Mount> {
    let fitting = |line: &str| {
        let (place, rest) = line.split_once(" - ")?;
        let point = place.split(' ').nth(4)?.replace("\\040", " ");
        let mut words = rest.split(' ');
        let mount = Mount {
            kind: words.next()?.to_owned(),
            source: words.next()?.replace("\\040", " "),
            options: words.next().unwrap_or_default().to_owned(),
        };
        directory
            .starts_with(&point)
            .then_some((point.len(), mount))
    };
    let fits = mounts.lines().filter_map(fitting);
    fits.max_by_key(|(length, _)| *length)
        .map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw - proc proc rw
30 22 0:30 / /var/tmp rw,nosuid shared:7 - tmpfs tmpfs rw
31 22 8:2 / /mnt/my\\040disk rw - xfs /dev/sdb1 rw,noquota
32 30 8:3 / /var/tmp rw - btrfs /dev/sdc1 rw
";

    #[test]
    fn the_mount_nearest_to_the_directory_tells_type_and_source() {
        let of = |path: &str| mount_of(MOUNTS, Path::new(path)).map(|mount| mount.kind);
        assert_eq!(of("/home/x").as_deref(), Some("ext4"));
        assert_eq!(of("/var/tmp/deltabench").as_deref(), Some("btrfs"));
        assert_eq!(of("/var/tmpfiles").as_deref(), Some("ext4"));
        assert_eq!(of("/mnt/my disk/x").as_deref(), Some("xfs"));
        let disk = mount_of(MOUNTS, Path::new("/mnt/my disk")).unwrap();
        assert_eq!(disk.source, "/dev/sdb1");
        assert_eq!(disk.options, "rw,noquota");
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn this_machine_has_proc_mounted() {
        let mount = mount_of(&mounts(Path::new("/")), Path::new("/proc/self"));
        assert_eq!(mount.unwrap().kind, "proc");
    }
}
