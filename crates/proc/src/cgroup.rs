//! Control groups: where they are mounted, which one a process is in, and what their files say.
//!
//! Source: Documentation/admin-guide/cgroup-v1; Documentation/admin-guide/cgroup-v2.rst.

use crate::error::ProcError;
use crate::file::{number_in, numbers};
use crate::process::Process;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the cgroup interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupKind {
    /// Version 1, controller `cpuacct`.
    V1,
    /// Version 2; `cpu.stat` counts there even where the `cpu` controller is not enabled.
    V2,
}

/// The processes in a group.
///
/// Errors: `File`.
pub fn members(dir: &Path) -> Result<BTreeSet<u32>, ProcError> {
    let path = dir.join("cgroup.procs");
    let list =
        fs::read_to_string(&path).map_err(|source| ProcError::file("read", &path, source))?;
    Ok(list
        .split_ascii_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect())
}

/// The words of a file in a group that lists controllers; none if it cannot be read.
pub fn controllers(dir: &Path, file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// CPU of all processes that are or were in a group, nanoseconds: `cpuacct.usage` of version 1, `cpu.stat` of
/// version 2.
pub fn usage_ns(kind: CgroupKind, bytes: &[u8]) -> Option<u64> {
    match kind {
        CgroupKind::V1 => numbers(bytes).next(),
        CgroupKind::V2 => {
            let rest = bytes.strip_prefix(b"usage_usec ")?;
            numbers(rest).next()?.checked_mul(1000)
        }
    }
}

/// The mounts that this process sees, for [`mount_point`].
///
/// Errors: `File`.
pub fn mounts() -> Result<String, ProcError> {
    let path = Path::new("/proc/self/mounts");
    fs::read_to_string(path).map_err(|source| ProcError::file("read", path, source))
}

/// The directory of a process's group with CPU accounting; `None` where that is not mounted.
///
/// Errors: `File` if the kernel's lists cannot be read.
pub fn directory_of(process: &Process, kind: CgroupKind) -> Result<Option<PathBuf>, ProcError> {
    let (mounts, own) = (mounts()?, process.cgroups()?);
    let found = mount_point(kind, &mounts).zip(membership(kind, &own));
    Ok(found.map(|(mount, own)| nested(&mount, &own)))
}

/// Where the hierarchy with CPU accounting is mounted.
pub fn mount_point(kind: CgroupKind, mounts: &str) -> Option<PathBuf> {
    mount_of(kind, "cpuacct", mounts)
}

/// This process's cgroup with a controller of version 1, or in version 2, and all groups above it that its
/// mount shows. Paths are below `root`.
pub fn cgroup_dirs(root: &Path, kind: CgroupKind, controller: &str) -> Vec<PathBuf> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let below = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let mount = mount_of(kind, controller, &text("proc/self/mounts")).map(|dir| below(&dir));
    let own = membership_of(kind, controller, &text("proc/self/cgroup"));
    let (Some(mount), Some(own)) = (mount, own) else {
        return Vec::new();
    };
    nested(&mount, &own)
        .ancestors()
        .take_while(|dir| dir.starts_with(&mount))
        .map(Path::to_owned)
        .collect()
}

/// The group with this path in a hierarchy. In a container the path may be the host's, which its own mount
/// does not show.
fn nested(mount: &Path, path: &str) -> PathBuf {
    let nested = mount.join(path.trim_start_matches('/'));
    if nested.is_dir() {
        nested
    } else {
        mount.to_owned()
    }
}

/// Options that a hierarchy of version 2 is mounted with. Paths are below `root`.
pub fn mount_options(root: &Path) -> Option<String> {
    let mounts = fs::read_to_string(root.join("proc/self/mounts")).ok()?;
    find_mount(CgroupKind::V2, "", &mounts).map(|(_, options)| options.to_owned())
}

fn mount_of(kind: CgroupKind, controller: &str, mounts: &str) -> Option<PathBuf> {
    find_mount(kind, controller, mounts).map(|(dir, _)| PathBuf::from(dir))
}

/// Where a hierarchy is mounted, and with which options.
fn find_mount<'a>(
    kind: CgroupKind,
    controller: &str,
    mounts: &'a str,
) -> Option<(&'a str, &'a str)> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (dir, fs_type, options) = (words.nth(1)?, words.next()?, words.next()?);
        let fits = match kind {
            CgroupKind::V1 => {
                fs_type == "cgroup" && options.split(',').any(|word| word == controller)
            }
            CgroupKind::V2 => fs_type == "cgroup2",
        };
        fits.then_some((dir, options))
    })
}

/// A process's path in the hierarchy with CPU accounting, from lines `id:controllers:path`; version 2 has
/// id 0 and no controllers.
pub fn membership(kind: CgroupKind, lines: &str) -> Option<String> {
    membership_of(kind, "cpuacct", lines)
}

fn membership_of(kind: CgroupKind, controller: &str, lines: &str) -> Option<String> {
    lines.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let fits = match kind {
            CgroupKind::V1 => controllers.split(',').any(|name| name == controller),
            CgroupKind::V2 => id == "0" && controllers.is_empty(),
        };
        fits.then(|| path.to_owned())
    })
}

/// The tightest CPU quota of this process's groups, in cores.
///
/// Source: cgroup-v2.rst, `cpu.max`; sched-bwc.rst, `cpu.cfs_quota_us`. A limit on a group holds for all
/// below it.
pub fn cpu_quota(root: &Path) -> Option<f64> {
    let quotas = own_groups(root, "cpu").filter_map(|(kind, dir)| {
        let text = |name: &str| fs::read_to_string(dir.join(name)).ok();
        let words = match kind {
            CgroupKind::V1 => format!(
                "{} {}",
                text("cpu.cfs_quota_us")?.trim(),
                text("cpu.cfs_period_us")?.trim()
            ),
            CgroupKind::V2 => text("cpu.max")?,
        };
        quota_cores(&words)
    });
    quotas.min_by(f64::total_cmp)
}

/// The tightest memory limit of this process's groups, bytes.
pub(crate) fn memory_limit(root: &Path) -> Option<u64> {
    let limits = own_groups(root, "memory").filter_map(|(kind, dir)| {
        number_in(&dir.join(match kind {
            CgroupKind::V1 => "memory.limit_in_bytes",
            CgroupKind::V2 => "memory.max",
        }))
    });
    limits.min()
}

fn own_groups(root: &Path, controller: &str) -> impl Iterator<Item = (CgroupKind, PathBuf)> {
    let of = |kind| {
        let dirs = cgroup_dirs(root, kind, controller);
        dirs.into_iter().map(move |dir| (kind, dir))
    };
    of(CgroupKind::V1).chain(of(CgroupKind::V2))
}

/// Quota over period; `max` and `-1` are no limit.
fn quota_cores(words: &str) -> Option<f64> {
    let mut words = words.split_ascii_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// The value of a device in a file of version 1: `254:0 2000`, or with an operation `254:0 Read 123`.
pub fn device_value_v1(text: &str, device: &str, operation: Option<&str>) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(device) {
            return None;
        }
        if let Some(operation) = operation
            && words.next() != Some(operation)
        {
            return None;
        }
        words.next()?.parse().ok()
    })
}

/// The value of a device in a file of version 2: `254:0 rbps=max wbps=max riops=2000 wiops=max`.
pub fn device_value_v2(text: &str, device: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(device)?.strip_prefix(' '))?;
    let word = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
    word.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";
    const PURE_V2: &str =
        "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n";

    #[test]
    fn mount_points_are_found_in_mixed_and_pure_hosts() {
        let dir = |kind, mounts| {
            mount_point(kind, mounts).map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(
            dir(CgroupKind::V1, MOUNTS).as_deref(),
            Some("/sys/fs/cgroup/cpu,cpuacct")
        );
        assert_eq!(
            dir(CgroupKind::V2, MOUNTS).as_deref(),
            Some("/sys/fs/cgroup/unified")
        );
        assert_eq!(dir(CgroupKind::V1, PURE_V2), None);
        assert_eq!(
            dir(CgroupKind::V2, PURE_V2).as_deref(),
            Some("/sys/fs/cgroup")
        );
        assert_eq!(dir(CgroupKind::V2, "cut short\n"), None);
    }

    #[test]
    fn membership_is_read_for_either_version() {
        let lines = "4:memory:/a\n2:cpu,cpuacct:/docker/x:y\n0::/user.slice/one\n";
        assert_eq!(
            membership(CgroupKind::V1, lines).as_deref(),
            Some("/docker/x:y")
        );
        assert_eq!(
            membership(CgroupKind::V2, lines).as_deref(),
            Some("/user.slice/one")
        );
        assert_eq!(membership(CgroupKind::V1, "0::/\n"), None);
    }

    #[test]
    fn usage_becomes_nanoseconds_in_either_version() {
        assert_eq!(usage_ns(CgroupKind::V1, b"123456789\n"), Some(123_456_789));
        assert_eq!(
            usage_ns(
                CgroupKind::V2,
                b"usage_usec 5432\nuser_usec 5000\nsystem_usec 432\n"
            ),
            Some(5_432_000)
        );
        assert_eq!(usage_ns(CgroupKind::V2, b"user_usec 5000\n"), None);
        assert_eq!(usage_ns(CgroupKind::V1, b"\n"), None);
    }

    #[test]
    fn quotas_are_cores_and_no_limit_is_absent() {
        assert_eq!(quota_cores("150000 100000\n"), Some(1.5));
        assert_eq!(quota_cores("max 100000\n"), None);
        assert_eq!(quota_cores("-1 100000"), None);
        assert_eq!(quota_cores(""), None);
    }

    #[test]
    fn lines_of_either_version_are_read_by_whole_device_and_key() {
        let v1 = "254:10 Read 7\n254:1 Read 5\n254:1 Write 6\nTotal 18\n";
        assert_eq!(device_value_v1(v1, "254:1", Some("Write")), Some(6));
        let limits = "254:10 7\n254:1 2000\n";
        assert_eq!(device_value_v1(limits, "254:1", None), Some(2000));
        assert_eq!(device_value_v1("", "254:1", None), None);
        let v2 = "254:10 riops=1\n254:1 rbps=max wbps=9 riops=2000 wiops=max\n";
        assert_eq!(device_value_v2(v2, "254:1", "riops"), Some(2000));
        assert_eq!(device_value_v2(v2, "254:1", "rbps"), None);
        assert_eq!(device_value_v2(v2, "254:1", "iops"), None);
    }
}
