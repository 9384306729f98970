//! A cgroup of a server's own, for hosts whose kernel keeps no schedstat.

use crate::error::ObserveError;
use crate::reader::{KernelFile, numbers};
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

/// A cgroup made for one server, removed on drop. Only cgroups made here are ever written to or removed.
///
/// Source: Documentation/admin-guide/cgroup-v1/cpuacct.rst; cgroup-v2.rst, section "CPU Interface Files".
#[derive(Debug)]
pub struct ServerCgroup {
    kind: CgroupKind,
    dir: PathBuf,
    usage: KernelFile<64>,
}

impl ServerCgroup {
    /// Makes a cgroup `deltabench-<label>` below this process's own.
    ///
    /// A leftover of that name is used again. Letters, digits, `-`, `_` and `.` of the label are kept, all
    /// else becomes `_`.
    ///
    /// Errors: `NoSource` if the interface is not mounted; `File` if the directory cannot be made.
    pub fn create(kind: CgroupKind, label: &str) -> Result<Self, ObserveError> {
        let parent = cgroup_of("self", kind)?;
        Self::create_below(kind, &parent, label)
    }

    /// As [`ServerCgroup::create`], but below the group of a server whose limits deltabench has set: taken
    /// out of that, it would lose them.
    pub(crate) fn create_for(
        kind: CgroupKind,
        pid: u32,
        label: &str,
    ) -> Result<Self, ObserveError> {
        let ours = |dir: &PathBuf| {
            let name = dir.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("deltabench-"))
        };
        match cgroup_of(&pid.to_string(), kind).ok().filter(ours) {
            Some(limited) if kind == CgroupKind::V2 => Self::create_below(kind, &limited, label),
            _ => Self::create(kind, label),
        }
    }

    /// Version of the interface.
    #[must_use]
    pub fn kind(&self) -> CgroupKind {
        self.kind
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Moves a process, with its threads and later children, into this cgroup.
    ///
    /// Errors: `Gone` if it has ended; `File` if the kernel refuses.
    pub fn attach(&self, pid: u32) -> Result<(), ObserveError> {
        move_process(&self.dir, pid)
    }

    /// CPU of all processes that are or were in it, nanoseconds.
    ///
    /// # Errors
    /// When the kernel file cannot be read or understood.
    pub fn cpu_ns(&self) -> std::io::Result<u64> {
        self.usage.read(match self.kind {
            CgroupKind::V1 => v1_usage_ns,
            CgroupKind::V2 => v2_usage_ns,
        })
    }

    /// Puts remaining processes back beside it and removes it.
    ///
    /// Errors: `File` if the kernel refuses, for example because processes kept forking.
    pub fn remove(self) -> Result<(), ObserveError> {
        self.clear()
    }

    pub(crate) fn attach_all(&self, pids: &BTreeSet<u32>) -> Result<(), ObserveError> {
        let inside = members(&self.dir)?;
        for &pid in pids.difference(&inside) {
            match self.attach(pid) {
                Ok(()) | Err(ObserveError::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn create_below(kind: CgroupKind, parent: &Path, label: &str) -> Result<Self, ObserveError> {
        let keep = |c: char| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        };
        let dir = parent.join(format!(
            "deltabench-{}",
            label.chars().map(keep).collect::<String>()
        ));
        match fs::create_dir(&dir) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ObserveError::file("create", &dir, error)),
        }
        let file = match kind {
            CgroupKind::V1 => "cpuacct.usage",
            CgroupKind::V2 => "cpu.stat",
        };
        match KernelFile::open(&dir.join(file)) {
            Ok(usage) => Ok(Self { kind, dir, usage }),
            Err(error) => {
                // Nothing is in it yet; if the removal fails too, the first error is the one to tell.
                let _ = fs::remove_dir(&dir);
                Err(error)
            }
        }
    }

    fn clear(&self) -> Result<(), ObserveError> {
        let Some(parent) = self.dir.parent() else {
            return Ok(());
        };
        // Several passes: a process may fork while its siblings are moved.
        for _ in 0..10 {
            let inside = members(&self.dir)?;
            for pid in &inside {
                match move_process(parent, *pid) {
                    Ok(()) | Err(ObserveError::Gone { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if inside.is_empty() {
                break;
            }
        }
        match fs::remove_dir(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ObserveError::file("remove", &self.dir, error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for ServerCgroup {
    fn drop(&mut self) {
        // Nobody is left to tell; an empty directory of ours stays behind at worst and is used again.
        let _ = self.clear();
    }
}

fn move_process(dir: &Path, pid: u32) -> Result<(), ObserveError> {
    let path = dir.join("cgroup.procs");
    fs::write(&path, pid.to_string()).map_err(|source| match source.raw_os_error() {
        Some(libc::ESRCH) => ObserveError::Gone { pid },
        _ => ObserveError::file("write", &path, source),
    })
}

pub(crate) fn members(dir: &Path) -> Result<BTreeSet<u32>, ObserveError> {
    let path = dir.join("cgroup.procs");
    let list =
        fs::read_to_string(&path).map_err(|source| ObserveError::file("read", &path, source))?;
    Ok(list
        .split_ascii_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect())
}

fn v1_usage_ns(bytes: &[u8]) -> Option<u64> {
    numbers(bytes).next()
}

fn v2_usage_ns(bytes: &[u8]) -> Option<u64> {
    let rest = bytes.strip_prefix(b"usage_usec ")?;
    numbers(rest).next()?.checked_mul(1000)
}

/// The directory of a process's cgroup; its directory in `/proc` names the process.
fn cgroup_of(process: &str, kind: CgroupKind) -> Result<PathBuf, ObserveError> {
    let text = |path: &str| {
        fs::read_to_string(path)
            .map_err(|source| ObserveError::file("read", Path::new(path), source))
    };
    let missing = || ObserveError::NoSource {
        reason: match kind {
            CgroupKind::V1 => "no cgroup v1 with the cpuacct controller is mounted".to_owned(),
            CgroupKind::V2 => "no cgroup v2 is mounted".to_owned(),
        },
    };
    let mount = mount_point(kind, &text("/proc/self/mounts")?).ok_or_else(missing)?;
    let own = membership(kind, &text(&format!("/proc/{process}/cgroup"))?).ok_or_else(missing)?;
    // In a container the path may be the host's, which its own mount does not show.
    let nested = mount.join(own.trim_start_matches('/'));
    Ok(if nested.is_dir() { nested } else { mount })
}

/// Where the hierarchy with CPU accounting is mounted.
pub(crate) fn mount_point(kind: CgroupKind, mounts: &str) -> Option<PathBuf> {
    mount_of(kind, "cpuacct", mounts)
}

/// This process's cgroup with a controller of version 1, or in version 2, and all groups above it that its
/// mount shows. Paths are below `root`.
pub(crate) fn cgroup_dirs(root: &Path, kind: CgroupKind, controller: &str) -> Vec<PathBuf> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let below = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let mount = mount_of(kind, controller, &text("proc/self/mounts")).map(|dir| below(&dir));
    let own = membership_of(kind, controller, &text("proc/self/cgroup"));
    let (Some(mount), Some(own)) = (mount, own) else {
        return Vec::new();
    };
    let nested = mount.join(own.trim_start_matches('/'));
    // In a container the path may be the host's, which its own mount does not show.
    let start = if nested.is_dir() {
        nested
    } else {
        mount.clone()
    };
    start
        .ancestors()
        .take_while(|dir| dir.starts_with(&mount))
        .map(Path::to_owned)
        .collect()
}

/// Options that a hierarchy of version 2 is mounted with. Paths are below `root`.
pub(crate) fn mount_options(root: &Path) -> Option<String> {
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

/// This process's path in a hierarchy, from lines `id:controllers:path`; version 2 has id 0 and no
/// controllers.
fn membership(kind: CgroupKind, lines: &str) -> Option<String> {
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
        assert_eq!(v1_usage_ns(b"123456789\n"), Some(123_456_789));
        assert_eq!(
            v2_usage_ns(b"usage_usec 5432\nuser_usec 5000\nsystem_usec 432\n"),
            Some(5_432_000)
        );
        assert_eq!(v2_usage_ns(b"user_usec 5000\n"), None);
        assert_eq!(v1_usage_ns(b"\n"), None);
    }

    #[test]
    fn names_cannot_leave_the_parent_directory() {
        let parent =
            std::env::temp_dir().join(format!("deltabench-observe-cgroup-{}", std::process::id()));
        fs::create_dir_all(parent.join("deltabench-.._x")).unwrap();
        fs::write(parent.join("deltabench-.._x/cpuacct.usage"), "7\n").unwrap();
        fs::write(parent.join("deltabench-.._x/cgroup.procs"), "").unwrap();
        let cgroup = ServerCgroup::create_below(CgroupKind::V1, &parent, "../x").unwrap();
        assert_eq!(cgroup.dir(), parent.join("deltabench-.._x"));
        assert_eq!(cgroup.cpu_ns().unwrap(), 7);
        assert!(
            cgroup.remove().is_err(),
            "an ordinary directory with files in it stays"
        );
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn a_directory_that_is_no_cgroup_is_refused_and_removed() {
        let parent =
            std::env::temp_dir().join(format!("deltabench-observe-plain-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        let refused = ServerCgroup::create_below(CgroupKind::V2, &parent, "server");
        assert!(matches!(
            refused,
            Err(ObserveError::File { action: "open", .. })
        ));
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
        fs::remove_dir_all(&parent).unwrap();
    }
}
