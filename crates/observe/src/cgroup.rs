//! A cgroup of a server's own, for hosts whose kernel keeps no schedstat.

use crate::error::ObserveError;
use deltabench_proc::ProcError;
use deltabench_proc::cgroup::{CgroupKind, directory_of, members, usage_ns};
use deltabench_proc::{KernelFile, Process};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Start of the names of groups that deltabench makes.
const PREFIX: &str = "deltabench-";

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
        let parent = cgroup_of(std::process::id(), kind)?;
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
            name.is_some_and(|name| name.starts_with(PREFIX))
        };
        match cgroup_of(pid, kind).ok().filter(ours) {
            Some(limited) if kind == CgroupKind::V2 => Self::create_below(kind, &limited, label),
            _ => Self::create(kind, label),
        }
    }

    /// Version of the interface.
    pub fn kind(&self) -> CgroupKind {
        self.kind
    }

    /// Its directory.
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
        self.usage.read(|bytes| usage_ns(self.kind, bytes))
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
                Ok(()) | Err(ObserveError::Kernel(ProcError::Gone { .. })) => {}
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
            "{PREFIX}{}",
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
        match KernelFile::open(&dir.join(file)).map_err(ObserveError::from) {
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
                    Ok(()) | Err(ObserveError::Kernel(ProcError::Gone { .. })) => {}
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

/// A group younger than this may be about to get its first process.
const LEFT_OVER_AGE: Duration = Duration::from_secs(10);

/// Removes the empty groups that killed deltabenches left below this process's own; how many.
///
/// A group is one of theirs if its name is `deltabench-PID-PID` or `deltabench-probe-PID`, as meters have
/// it, and no process has that PID of a deltabench now. The kernel refuses to remove a group that has
/// processes.
pub fn remove_left_over_cgroups() -> usize {
    let kinds = [CgroupKind::V1, CgroupKind::V2].into_iter();
    let parents = kinds.filter_map(|kind| cgroup_of(std::process::id(), kind).ok());
    parents
        .map(|parent| remove_left_over(&parent, LEFT_OVER_AGE))
        .sum()
}

fn remove_left_over(parent: &Path, least: Duration) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name();
        let maker = name.to_str().and_then(maker_of);
        let gone = maker.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        let age = entry.metadata().and_then(|data| data.modified());
        let old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= least));
        gone && old && entry.path().join("cgroup.procs").is_file()
    });
    left.filter(|entry| fs::remove_dir(entry.path()).is_ok())
        .count()
}

/// The deltabench that made a meter's group of this name.
fn maker_of(name: &str) -> Option<u32> {
    let label = name.strip_prefix(PREFIX)?;
    let (first, second) = label.split_once('-')?;
    let number = |text: &str| text.parse::<u32>().ok();
    match first {
        "probe" => number(second),
        first => number(second).and(number(first)),
    }
}

fn move_process(dir: &Path, pid: u32) -> Result<(), ObserveError> {
    let path = dir.join("cgroup.procs");
    fs::write(&path, pid.to_string()).map_err(|source| match source.raw_os_error() {
        Some(libc::ESRCH) => ObserveError::Kernel(ProcError::Gone { pid }),
        _ => ObserveError::file("write", &path, source),
    })
}

/// The directory of a process's cgroup.
fn cgroup_of(pid: u32, kind: CgroupKind) -> Result<PathBuf, ObserveError> {
    directory_of(&Process::of(pid), kind)?.ok_or_else(|| ObserveError::NoSource {
        reason: match kind {
            CgroupKind::V1 => "no cgroup v1 with the cpuacct controller is mounted".to_owned(),
            CgroupKind::V2 => "no cgroup v2 is mounted".to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::not_tested;

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
    fn only_groups_of_meters_have_a_maker() {
        assert_eq!(maker_of("deltabench-12-34"), Some(12));
        assert_eq!(maker_of("deltabench-probe-56"), Some(56));
        for other in [
            "deltabench-run-c0",
            "deltabench-12",
            "system-1-2",
            "deltabench-1-2-3",
        ] {
            assert_eq!(maker_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_group_of_a_dead_maker_is_removed_once_it_is_old_and_no_other() {
        let Ok(parent) = cgroup_of(std::process::id(), CgroupKind::V1) else {
            not_tested("groups that were left over", "there is no cgroup v1");
            return;
        };
        let (dead, alive) = (u32::MAX, std::process::id());
        let of = |maker: u32| parent.join(format!("deltabench-{maker}-7"));
        if fs::create_dir(of(dead)).is_err() {
            not_tested("groups that were left over", "cgroups cannot be made here");
            return;
        }
        fs::create_dir(of(alive)).unwrap();
        remove_left_over(&parent, LEFT_OVER_AGE);
        assert!(of(dead).exists(), "it is young");
        remove_left_over(&parent, Duration::ZERO);
        assert!(!of(dead).exists() && of(alive).exists());
        fs::remove_dir(of(alive)).unwrap();
    }

    #[test]
    fn a_directory_that_is_no_cgroup_is_refused_and_removed() {
        let parent =
            std::env::temp_dir().join(format!("deltabench-observe-plain-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        let refused = ServerCgroup::create_below(CgroupKind::V2, &parent, "server");
        assert!(matches!(
            refused,
            Err(ObserveError::Kernel(ProcError::File { action: "open", .. }))
        ));
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
        fs::remove_dir_all(&parent).unwrap();
    }
}
