//! Busy time of the whole host, finer than clock ticks.

use deltabench_proc::cgroup::{CgroupKind, membership, mount_point, mounts, usage_ns};
use deltabench_proc::{KernelFile, Process};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the busy time of the host comes from.
///
/// `/proc/stat` counts in ticks unless the kernel was built with `CONFIG_VIRT_CPU_ACCOUNTING_GEN` and runs
/// with it, which distributions do not. The scheduler's own count, which cgroups show, is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BusySource {
    /// `cpuacct.usage` of the root of cgroup version 1: every thread of the host, nanoseconds.
    CgroupV1,
    /// Sum of `usage_usec` over the top-level groups of cgroup version 2, microseconds. The root's own figure
    /// is made from ticks, so threads that live there (the kernel's) are missing.
    CgroupV2,
    /// `/proc/stat`, clock ticks.
    Ticks,
}

impl BusySource {
    /// The word stored and printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::CgroupV1 => "cgroup-v1",
            Self::CgroupV2 => "cgroup-v2",
            Self::Ticks => "ticks",
        }
    }
}

/// Count of busy time from cgroups.
///
/// What it holds: time of threads on a core. Interrupts are in the thread that they hit, stolen time is in
/// none. A thread that runs on another core at the moment of reading lags by up to one tick of the kernel.
///
/// Source: kernel/sched/cpuacct.c (`cpuacct_charge` goes up to the root); kernel/cgroup/rstat.c
/// (`root_cgroup_cputime` sums ticks); Documentation/admin-guide/cgroup-v2.rst.
#[derive(Debug)]
pub(crate) struct BusyCounter {
    source: BusySource,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    file: KernelFile<64>,
    last_ns: u64,
}

impl BusyCounter {
    /// Opens the finest one of this host; `None` where only ticks are to be had.
    pub(crate) fn open() -> Option<Self> {
        let mounts = mounts().ok()?;
        let own = Process::of(std::process::id()).cgroups().ok()?;
        mount_point(CgroupKind::V1, &mounts)
            .and_then(|root| Self::open_v1(&root))
            .or_else(|| Self::open_v2(&v2_root(&mounts, &own)?))
    }

    pub(crate) fn source(&self) -> BusySource {
        self.source
    }

    /// Busy time so far, nanoseconds. Never falls: a group that has been removed keeps its last value.
    pub(crate) fn read(&mut self) -> u64 {
        bring_own_time_up_to_date();
        let kind = match self.source {
            BusySource::CgroupV1 => CgroupKind::V1,
            _ => CgroupKind::V2,
        };
        let mut sum = 0;
        for group in &mut self.groups {
            let now = group
                .file
                .read(|bytes| usage_ns(kind, bytes))
                .unwrap_or(group.last_ns);
            group.last_ns = now.max(group.last_ns);
            sum += group.last_ns;
        }
        sum
    }

    fn open_v1(root: &Path) -> Option<Self> {
        // Only the root of the whole host has this file; below a container's mount it is not there.
        if !root.join("release_agent").exists() {
            return None;
        }
        Self::of(BusySource::CgroupV1, &[root.join("cpuacct.usage")])
    }

    fn open_v2(root: &Path) -> Option<Self> {
        // Every group has this file except the root of the whole host.
        if root.join("cgroup.events").exists() {
            return None;
        }
        let mut files: Vec<PathBuf> = fs::read_dir(root)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path().join("cpu.stat")))
            .filter(|file| file.is_file())
            .collect();
        files.sort();
        Self::of(BusySource::CgroupV2, &files)
    }

    fn of(source: BusySource, files: &[PathBuf]) -> Option<Self> {
        let groups: Vec<Group> = files
            .iter()
            .filter_map(|path| KernelFile::open(path).ok())
            .map(|file| Group { file, last_ns: 0 })
            .collect();
        let mut counter = Self { source, groups };
        (counter.read() > 0).then_some(counter)
    }
}

/// Makes the scheduler bill the calling thread up to now: its count of a running thread is otherwise as old
/// as the last tick.
///
/// Source: kernel/sched/core.c, `task_sched_runtime`: reading the clock of a running thread calls
/// `update_curr`.
fn bring_own_time_up_to_date() {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: clock_gettime writes the timespec that it is given. Its value is not needed.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
}

/// The mount of version 2, unless this process lives in its root: then so may others, whom no group counts.
fn v2_root(mounts: &str, own: &str) -> Option<PathBuf> {
    membership(CgroupKind::V2, own).filter(|path| path.len() > 1)?;
    mount_point(CgroupKind::V2, mounts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::not_tested;

    /// A directory that looks like a cgroup mount.
    struct Mount(PathBuf);

    impl Mount {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!(
                "deltabench-observe-busy-{name}-{}",
                std::process::id()
            ));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn version_1_is_read_at_the_root_of_the_host_only() {
        let host = Mount::new("v1", &[("cpuacct.usage", "77\n"), ("release_agent", "")]);
        assert_eq!(BusyCounter::open_v1(&host.0).unwrap().read(), 77);
        let container = Mount::new("v1-inside", &[("cpuacct.usage", "77\n")]);
        assert!(BusyCounter::open_v1(&container.0).is_none());
    }

    #[test]
    fn version_2_is_the_sum_of_the_top_groups_and_keeps_what_a_removed_one_had() {
        let host = Mount::new(
            "v2",
            &[
                ("cpu.stat", "usage_usec 999\n"),
                ("system.slice/cpu.stat", "usage_usec 5\nuser_usec 5\n"),
                ("user.slice/cpu.stat", "usage_usec 7\n"),
            ],
        );
        let mut counter = BusyCounter::open_v2(&host.0).unwrap();
        assert_eq!(counter.source(), BusySource::CgroupV2);
        assert_eq!(counter.read(), 12_000);
        fs::write(host.0.join("user.slice/cpu.stat"), "").unwrap();
        assert_eq!(counter.read(), 12_000);
        let container = Mount::new(
            "v2-inside",
            &[("cgroup.events", ""), ("a/cpu.stat", "usage_usec 5\n")],
        );
        assert!(BusyCounter::open_v2(&container.0).is_none());
    }

    #[test]
    fn version_2_is_not_used_from_its_root() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(v2_root(mounts, "2:cpuacct:/\n0::/\n"), None);
        assert_eq!(
            v2_root(mounts, "0::/user.slice/x\n"),
            Some(PathBuf::from("/sys/fs/cgroup"))
        );
    }

    #[test]
    fn the_finest_count_of_this_host_sees_a_busy_thread_to_the_microsecond() {
        let Some(mut counter) = BusyCounter::open() else {
            not_tested("the busy time of a core", "nothing here counts it finely");
            return;
        };
        let before = counter.read();
        let start = std::time::Instant::now();
        while start.elapsed().as_micros() < 2000 {
            std::hint::black_box(start);
        }
        // Others may run beside it, and a full machine may have kept this thread waiting: only the lower
        // side is certain, and only roughly.
        let spent = counter.read() - before;
        assert!(spent > 200_000, "{spent} ns");
    }
}
